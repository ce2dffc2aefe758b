//! Which proxies a channel has ended, and why.
//!
//! What it is not: replicated. Each replica counts what it has carried out since it began, and the
//! one that leads is asked.
//!
//! Invariant: what a client has asked for itself is not told.

use alloc::collections::VecDeque;
use alloc::string::String;
use core::fmt;

use quorba_corba::Object;

use crate::channel::Channel;
use crate::outgoing::{Outgoing, Reason};
use crate::shown;

/// So many of the last ones are kept.
const KEPT_MAX: usize = 8;

/// A proxy that the channel, or an operator, has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its number.
    pub proxy: u64,
    /// It was a consumer's; else a supplier's.
    pub is_consumer: bool,
    /// Where its client was called, as host and port; the number of the proxy if nowhere.
    pub place: String,
    /// Why.
    pub why: Reason,
    /// The channel's time then, in 100 ns.
    pub at: u64,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.is_consumer { "consumer" } else { "supplier" };
        let Self { proxy, place, why, .. } = self;
        write!(f, "{whose} {proxy} ({place}) is disconnected: {}", why.text())
    }
}

/// How many ended for each reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndCounts {
    /// See [`Reason::TooSlow`].
    pub too_slow: u64,
    /// See [`Reason::HoldsTooMuch`].
    pub holds_too_much: u64,
    /// See [`Reason::TooLarge`].
    pub too_large: u64,
    /// See [`Reason::Gone`].
    pub gone: u64,
    /// See [`Reason::Raises`].
    pub raises: u64,
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) counts: EndCounts,
    /// The last ones, in their order.
    pub(crate) last: VecDeque<Ended>,
}

impl Ends {
    fn add(&mut self, ended: Ended) {
        match ended.why {
            Reason::Asked | Reason::Destroyed => return,
            Reason::TooSlow => self.counts.too_slow += 1,
            Reason::HoldsTooMuch => self.counts.holds_too_much += 1,
            Reason::TooLarge => self.counts.too_large += 1,
            Reason::Gone => self.counts.gone += 1,
            Reason::Raises => self.counts.raises += 1,
            // Whoever did it knows; it is no fault of the channel's or of a client's.
            Reason::Removed => {}
        }
        if self.last.len() >= KEPT_MAX {
            self.last.pop_front();
        }
        self.last.push_back(ended);
    }
}

impl Channel {
    /// How many proxies the channel has ended, by reason.
    #[must_use]
    pub const fn end_counts(&self) -> EndCounts {
        self.ends.counts
    }

    /// The last proxies that the channel has ended.
    pub fn last_ended(&self) -> impl Iterator<Item = &Ended> {
        self.ends.last.iter()
    }

    /// A proxy has ended; whoever leads says it.
    pub(crate) fn has_ended(
        &mut self,
        proxy: u64,
        is_consumer: bool,
        peer: Option<&Object>,
        why: Reason,
    ) {
        if matches!(why, Reason::Asked | Reason::Destroyed) {
            return;
        }
        let place = shown::place(peer, proxy);
        let ended = Ended { proxy, is_consumer, place, why, at: self.now };
        if self.leads {
            let told = Outgoing::Ended(ended.clone());
            self.outgoing.push_back((self.registry.sequence, told));
        }
        self.ends.add(ended);
    }
}
