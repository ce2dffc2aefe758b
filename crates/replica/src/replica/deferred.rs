//! Replies that nobody waits for, and that the driver of the replica may defer.
//!
//! Invariant: what is decided does not depend on it; only how long servers work is not known then.

use super::Replica;
use crate::ids::{ChannelId, GroupId};
use quorba_base::Instant;

impl Replica {
    /// The same for bytes that may have been there for a while: how long the server worked on what
    /// they answer is not known.
    pub fn handle_deferred_server_bytes(
        &mut self,
        now: Instant,
        group: GroupId,
        channel: ChannelId,
        bytes: &[u8],
    ) {
        let came = (channel, bytes);
        self.with_group(now, group, |group, here, out| group.received(None, came, here, out));
    }

    /// Calls that servers here are to execute. It is up to date when [`Self::poll`] gave `None`.
    #[must_use]
    pub fn calls_under_way(&self) -> usize {
        self.groups.calls()
    }

    /// Whether anybody waits for what the server of `group` says next; `None` if it has nothing to
    /// say. If nobody does, nothing is lost by reading it a moment later.
    #[must_use]
    pub fn reply_wanted(&self, group: GroupId) -> Option<bool> {
        self.groups.get(group)?.reply_wanted()
    }
}
