//! What the driver asks to know what can wait: replies that nobody wants yet, and how much there
//! is to do.

use super::Node;
use quorba_base::Instant;
#[cfg(doc)]
use quorba_replica::Replica;
use quorba_replica::{ChannelId, GroupId};

impl Node {
    /// The same for bytes that may have been there for a while; see
    /// [`Replica::handle_deferred_server_bytes`].
    pub fn handle_deferred_server_bytes(
        &mut self,
        now: Instant,
        group: GroupId,
        channel: ChannelId,
        bytes: &[u8],
    ) {
        self.replica.handle_deferred_server_bytes(now, group, channel, bytes);
        self.unsettled = Some(now);
    }

    /// Whether anybody waits for what the server says next; see [`Replica::reply_wanted`].
    #[must_use]
    pub fn reply_wanted(&self, group: GroupId) -> Option<bool> {
        self.replica.reply_wanted(group)
    }

    /// Calls of this node's clients that are not answered, or that its servers have not executed,
    /// whichever are more.
    #[must_use]
    pub fn calls_under_way(&self) -> usize {
        self.gateway.pending_count().max(self.replica.calls_under_way())
    }
}
