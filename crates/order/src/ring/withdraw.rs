//! Taking back what was submitted and has not been sent: it waits for the token, and meanwhile may
//! have become useless.

use super::Ring;
use crate::ids::Ticket;

impl Ring {
    /// Takes `ticket`'s message back. Whether that was in time: then it is delivered nowhere, and
    /// nothing is said of it any more; else it is on its way, as if nobody had asked.
    pub fn withdraw(&mut self, ticket: Ticket) -> bool {
        self.core.queue.withdraw(ticket)
    }
}
