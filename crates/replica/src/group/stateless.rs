//! Calls to a stateless group; see [`crate::calls::stateless`].

use super::reads::fits_message;
use super::{Group, NodeContext};
use crate::calls::reads::{Ordered, Read};
use crate::messages::envelope::RequestEnvelope;
use crate::output::Outbox;
use crate::words::ids::GatewayKey;
use quorba_base::NodeId;
use quorba_base::policy::Style;

impl Group {
    pub(crate) fn is_stateless(&self) -> bool {
        self.table.style == Style::Stateless
    }

    /// Who gets the next call of this node's gateway.
    pub(crate) fn callee(&self) -> Option<NodeId> {
        let mut able = self.reads.linked(self.table.in_set(), self.here);
        if !self.reads_here() {
            able.remove(self.here);
        }
        self.reads.load.least(able, self.here)
    }

    /// Whether a call of that length can be handed out now; a longer one needs the own member.
    pub(crate) fn takes_call(&self, bytes: usize) -> bool {
        self.callee().is_some() && (fits_message(bytes) || self.reads_here())
    }

    /// A call of this node's gateway. Nobody waits for what becomes of a oneway.
    pub(crate) fn call(&mut self, read: Read, oneway: bool, out: &mut Outbox) {
        let is_long = !fits_message(read.bytes());
        let callee = if is_long && self.reads_here() { Some(self.here) } else { self.callee() };
        match callee {
            Some(node) if node == self.here => self.execute_read(read, 0),
            Some(node) if !is_long => {
                if !oneway {
                    self.reads.sent(read.asker.number, node, false);
                }
                self.send_call(node, read, out);
            }
            Some(_) | None => self.give_back([read.asker.number], out),
        }
    }

    /// A call of another node's gateway.
    pub(super) fn execute_call(&mut self, read: Read, here: NodeContext, out: &mut Outbox) {
        if self.reads_here() {
            self.execute_read(read, 0);
        } else {
            self.reply(read.asker, None, here, out);
        }
    }

    /// A call that was ordered all the same: the member on its gateway's node executes it, or the
    /// next one in ring order.
    pub(super) fn deliver_call(
        &mut self,
        origin: NodeId,
        incarnation: u64,
        request: RequestEnvelope,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let RequestEnvelope { number, giop, code_sets, .. } = request;
        let asker = GatewayKey { node: origin, incarnation, number };
        let members = self.table.in_set();
        let own = members.contains(origin).then_some(origin);
        let callee = own.or_else(|| members.successor(origin));
        if callee == Some(here.node) {
            if origin != here.node {
                self.reads.called_by(origin);
                self.reads.ordered.insert(asker, Ordered::Call);
            }
            self.execute_call(Read { asker, giop, code_sets }, here, out);
        } else if (origin, incarnation) == (here.node, here.incarnation)
            && let Some(callee) = callee
        {
            self.reads.sent(number, callee, true);
        }
    }
}
