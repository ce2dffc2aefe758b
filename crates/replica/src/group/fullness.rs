//! Replies that are remembered: when there are too many, new requests of clients are refused.
//!
//! What it is not: the table of replies. How many bytes a member has depends on how fast its server
//! is, so it is said in an ordered message, and what follows from that is the same for all.
//! Invariant: a request that is known is answered, however full a member is.

use super::Group;
use crate::messages::envelope::Envelope;
use crate::output::{Event, OrderOutput, Outbox, Output};
use crate::table::MemberState;
use crate::words::ids::Attempt;
use quorba_base::NodeId;

impl Group {
    /// Says how it stands with the local member's replies, if the group believes something else.
    pub(super) fn tell_fullness(&mut self, out: &mut Outbox) {
        let Some(MemberState::In { attempt }) = self.table.state(self.here) else { return };
        let Some(member) = &self.member else { return };
        let said = self.table.full.contains(self.here);
        let is_full = member.retention.is_full(self.config.retention_bytes_max, said);
        if is_full == said || self.told_full == Some((attempt, is_full)) {
            return;
        }
        self.told_full = Some((attempt, is_full));
        let full = Envelope::Full { group: self.id, attempt, is_full };
        out.push_back(OrderOutput::Submit(full.encode()).into());
    }

    /// What the member on `origin` says of itself.
    pub(crate) fn deliver_full(
        &mut self,
        origin: NodeId,
        attempt: Attempt,
        is_full: bool,
        out: &mut Outbox,
    ) {
        if origin == self.here {
            self.told_full = None;
        }
        let before = self.table.is_full();
        self.table.set_full(origin, attempt, is_full);
        let is_full = self.table.is_full();
        if is_full != before {
            out.push_back(Output::Event(Event::Full { group: self.id, is_full }));
        }
    }
}
