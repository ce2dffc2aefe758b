//! Which of a server's replies may be deferred.

use super::Member;

impl Member {
    /// Calls that the server has or will get.
    pub(crate) fn calls_under_way(&self) -> usize {
        self.executor.calls()
    }

    /// See [`crate::Replica::reply_wanted`].
    pub(crate) fn reply_wanted(&self) -> Option<bool> {
        self.executor.is_busy().then(|| self.executor.is_awaited())
    }
}
