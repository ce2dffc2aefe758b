//! What the node says of the ordered request that is executed: it is asked before the channels are
//! held, so that no push waits for the node's answer.
//!
//! Invariant: what was said of one request is forgotten with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorba_events::{OrderedCaller, OrderedClock};
use quorba_naming::Clock;

use super::super::OrderedTime;

/// Operations for which it matters who calls.
const PULL_OPERATIONS: [&str; 2] = ["pull", "try_pull"];

#[derive(Clone, Copy, Default)]
struct Answers {
    now: Option<u64>,
    caller: Option<u64>,
}

/// See the module's text.
#[derive(Clone, Default)]
pub(in super::super) struct Told(Arc<Mutex<Answers>>);

impl Told {
    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of the request.
    pub(in super::super) fn clock(&self) -> OrderedClock {
        let told = self.clone();
        Box::new(move || told.lock().now)
    }

    /// Whose request it is.
    pub(in super::super) fn caller(&self) -> OrderedCaller {
        let told = self.clone();
        Box::new(move || told.lock().caller)
    }
}

/// Who asks.
pub(in super::super) struct Asker {
    pub(in super::super) time: OrderedTime,
    pub(in super::super) told: Told,
}

impl Asker {
    /// Of the request that begins.
    pub(super) fn ask(&mut self, operation: &str) {
        let now = self.time.now();
        let caller = PULL_OPERATIONS.contains(&operation).then(|| self.time.caller()).flatten();
        *self.told.lock() = Answers { now, caller };
    }

    /// It has ended.
    pub(super) fn forget(&self) {
        *self.told.lock() = Answers::default();
    }
}
