//! Whether a server that serves has the object that references name, where that is not the one that
//! must be there before it counts as up.
//!
//! What it is not: a condition of anything; it is told to operators. Invariant: one that is found
//! is not looked for again.

use super::looker::Looker;
use crate::endpoint::ServerEndpoint;
use crate::launch::wanted_key;
use crate::ready::Look;
use quorba_config::Group;
use quorba_net::Poller;
use std::time::{Duration, Instant};

/// How long after a server's start, and at the longest how often, it is looked for the object: it
/// may be created later.
const FIRST: Duration = Duration::from_millis(500);
const LAST: Duration = Duration::from_secs(10);

/// See the module's text.
#[derive(Default)]
pub(super) enum ObjectLook {
    /// There is none to look for, or it was found.
    #[default]
    Over,
    /// The next look is at that time.
    Rests { next: Instant, pause: Duration },
    /// A look is taken.
    Looks { looker: Box<Looker>, pause: Duration },
}

/// What came of a look.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Found {
    Here,
    Missing,
    /// Nobody can tell.
    Unknown,
}

impl ObjectLook {
    /// For a server of `group` that serves now.
    pub(super) fn begin(group: &Group, now: Instant) -> Self {
        let wanted = wanted_key(group).map(|(_, key)| key);
        match group.object_key.as_deref() {
            // At once: who waits for a healthy domain must not be told so before.
            Some(key) if Some(key) != wanted => Self::Rests { next: now, pause: FIRST / 2 },
            _ => Self::Over,
        }
    }

    /// When [`Self::step`] is wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Over => None,
            Self::Rests { next, .. } => Some(*next),
            Self::Looks { looker, .. } => Some(looker.until()),
        }
    }

    /// Something may be due, or have come: what came of a look that is over. It is for `key`, at
    /// `endpoint`.
    pub(super) fn step(
        &mut self,
        (endpoint, key): (&ServerEndpoint, &[u8]),
        token: u64,
        now: Instant,
        poller: &Poller,
    ) -> Option<Found> {
        let (begun, pause) = match std::mem::take(self) {
            Self::Over => return None,
            Self::Rests { next, pause } if next > now => {
                *self = Self::Rests { next, pause };
                return None;
            }
            Self::Rests { pause, .. } => {
                let begun = Looker::begin(endpoint, Some(key), token, now);
                (begun.map(|begun| begun.map(Box::new)), pause)
            }
            Self::Looks { looker, pause } => (Ok(Ok(looker)), pause),
        };
        let look = match begun {
            Err(_) => None,
            Ok(Err(look)) => Some(look),
            Ok(Ok(mut looker)) => {
                let look = looker.step(now, poller);
                if look.is_none() {
                    *self = Self::Looks { looker, pause };
                    return None;
                }
                look
            }
        };
        if look == Some(Look::Ready) {
            return Some(Found::Here);
        }
        let pause = (pause * 2).min(LAST);
        *self = Self::Rests { next: now + pause, pause };
        Some(if look == Some(Look::NoObject) { Found::Missing } else { Found::Unknown })
    }
}
