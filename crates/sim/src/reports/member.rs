//! A member of the service, and what its process does beside: it tells the news of its node, and
//! the one that leads calls consumers and the replication manager.
//!
//! What it is not: threads. Invariant: nothing of a process outlives it.

use super::consumers::Life;
use super::fault::DOMAIN;
use super::operation::home;
use quorba_notifier::{Courier, Errand, Limits, Notifier};
use std::time::Duration;

/// Reports in one call.
const BATCH: u32 = 16;

/// See the module's text.
pub(crate) struct Member {
    pub(crate) notifier: Notifier,
    pub(crate) courier: Courier,
    /// Tells the replication manager.
    pub(crate) accuser: Courier,
    /// No other process has it.
    pub(crate) boot: u64,
    /// How many states it was given.
    pub(crate) states: u64,
    pub(crate) leads: bool,
    /// How many news of its node were told.
    pub(crate) told: usize,
    pub(crate) is_telling: bool,
    /// It is looked at again.
    pub(crate) is_due: bool,
}

impl Member {
    pub(crate) fn new(boot: u64, waiting_max: usize) -> Self {
        let limits = Limits { waiting_max, ..Limits::default() };
        Self {
            notifier: Notifier::new(home(), DOMAIN, limits),
            courier: Courier::default(),
            accuser: Courier::default(),
            boot,
            states: 0,
            leads: false,
            told: 0,
            is_telling: false,
            is_due: false,
        }
    }

    pub(crate) fn life(&self, member: usize) -> Life {
        (member, self.boot, self.states)
    }

    pub(crate) fn take_over(&mut self, state: &[u8]) {
        self.notifier.take_over(state).expect("a state");
        self.states += 1;
    }

    /// What it wants done now.
    pub(crate) fn errands(&mut self, now: Duration) -> Vec<Errand> {
        if !self.leads {
            self.courier.follow_another();
            self.accuser.follow_another();
            return Vec::new();
        }
        let mut errands = self.courier.look(&self.notifier, BATCH, now);
        errands.extend(self.accuser.look_for_manager(&self.notifier, BATCH, now));
        errands
    }

    /// Whether reports wait for somebody.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.notifier.pending(1).is_empty()
            || self.notifier.for_manager(0, 1).is_some()
            || self.notifier.has_untold()
    }
}
