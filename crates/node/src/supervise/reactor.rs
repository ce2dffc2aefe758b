//! What the supervisor's thread has for all servers: the poller, the timers, threads for what
//! blocks, and whom it tells what happened.
//!
//! Invariant: a token of the poller says whose it is, so that a late event finds nobody, or
//! somebody whom it does no harm to look again.

use super::known::{Known, Table};
use super::places::Places;
use super::timers::Timers;
use super::{Key, Life, ServerNews, SupervisorContext, SupervisorMessage};
use crate::wake::MailboxSender;
use crate::workers::Workers;
use quorba_engine::replica::GroupId;
use quorba_net::Poller;
use std::sync::Arc;

/// The mailbox's.
pub(super) const BELL: u64 = 0;

/// Whose event it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Bell,
    /// The process of this server has ended.
    Process(Key),
    /// A look at this server.
    Look(Key),
    /// A look at a place where somebody else's servers are.
    Place(u64),
}

impl Source {
    pub(super) const fn token(self) -> u64 {
        match self {
            Self::Bell => BELL,
            Self::Process(Key(key)) => key << 2 | 1,
            Self::Look(Key(key)) => key << 2 | 2,
            Self::Place(number) => number << 2 | 3,
        }
    }

    pub(super) const fn of(token: u64) -> Self {
        match token & 3 {
            1 => Self::Process(Key(token >> 2)),
            2 => Self::Look(Key(token >> 2)),
            3 => Self::Place(token >> 2),
            _ => Self::Bell,
        }
    }
}

type Tell = dyn Fn(GroupId, Life, ServerNews) -> bool + Send;

/// See the module's text.
pub(super) struct Reactor {
    pub(super) site: Arc<SupervisorContext>,
    pub(super) poller: Poller,
    pub(super) timers: Timers<Key>,
    pub(super) places: Places,
    /// For processes that are started.
    pub(super) starters: Workers,
    /// To this thread.
    pub(super) messages: MailboxSender<SupervisorMessage>,
    pub(super) known: Table,
    pub(super) tell: Box<Tell>,
}

impl Reactor {
    pub(super) fn update(&self, id: GroupId, key: Key, change: impl FnOnce(&mut Known)) {
        self.known.update(id, key, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_whose_it_is() {
        for source in [
            Source::Bell,
            Source::Process(Key(1)),
            Source::Look(Key(1)),
            Source::Look(Key(77_000)),
            Source::Place(0),
            Source::Place(3),
        ] {
            assert_eq!(Source::of(source.token()), source);
        }
    }
}
