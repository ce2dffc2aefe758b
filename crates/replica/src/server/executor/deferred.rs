//! What is asked of an executor by whoever may defer its server's replies.
//!
//! What it is not: a decision; the executor works alike either way.

use super::{Executor, Job};

impl Executor {
    /// Whether anything waits for what the server says next.
    pub(crate) fn is_awaited(&self) -> bool {
        self.schedule.is_awaited() || self.reentrant.is_running() || self.aside.calls() > 0
    }

    /// Jobs that the server has or will get.
    pub(crate) fn calls(&self) -> usize {
        self.schedule.queued() + self.schedule.outstanding_count() + self.aside.calls()
    }

    /// Whether something is with the server.
    pub(crate) fn is_busy(&self) -> bool {
        self.schedule.oldest().is_some() || self.aside.calls() > 0
    }
}

impl Job {
    /// Whether anything waits for its end.
    pub(super) fn is_awaited(&self) -> bool {
        !matches!(self, Self::Execute { awaited: false, .. })
    }
}
