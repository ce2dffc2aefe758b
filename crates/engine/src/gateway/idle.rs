//! Room for a client where all connections are taken: the one that is of least use goes.
//!
//! What it is not: the limit of a client address. Invariant: a client that waits for something, or
//! is in the middle of saying something, is not asked to go.

use super::Gateway;
use crate::output::{CloseReason, ConnectionId};
use quorba_base::{Duration, Instant};

/// A client that has just spoken is about to speak again.
const SILENCE_MIN: Duration = Duration::from_secs(1);

impl Gateway {
    /// Ends the connection whose client has said nothing for longest and waits for nothing, in good
    /// order: the client makes another one when it needs it. Whether there was such a one.
    pub(super) fn make_room(&mut self, now: Instant) -> bool {
        let idle = self.connections.iter().filter(|(_, connection)| {
            let is_silent = connection.is_idle(now, SILENCE_MIN) && !connection.turned_away;
            is_silent && !connection.framer.waiting_since_partial()
        });
        let longest = idle.min_by_key(|(id, connection)| (connection.last_heard, **id));
        let Some(id) = longest.map(|(id, _)| *id) else { return false };
        self.ends_idle(id);
        true
    }

    pub(super) fn ends_idle(&mut self, id: ConnectionId) {
        self.say_goodbye(id);
        self.close(id, CloseReason::Idle);
    }
}
