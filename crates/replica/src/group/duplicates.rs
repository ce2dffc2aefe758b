//! Replies through the order, each of which should be one: see [`crate::duplicates`].

use super::{Group, NodeContext};
use crate::duplicates::OrderedReplies;
use crate::envelope::Envelope;
use crate::ids::{GatewayKey, RequestNumber};
use crate::output::{OrderOutput, Outbox};
use bytes::Bytes;
use quorba_base::NodeId;
use quorba_base::policy::ReplyPath;

impl Group {
    fn sends_once(&self) -> bool {
        self.config.reply == ReplyPath::OrderedOnce
    }

    /// What became of the replies of this node's member.
    pub(super) fn ordered_replies(&self) -> OrderedReplies {
        self.duplicates_of_replies.figures
    }

    /// A request was delivered that the local member answers.
    pub(super) fn owes_reply(&mut self, to: GatewayKey, released_below: RequestNumber) {
        if self.sends_once() {
            self.duplicates_of_replies.owed(to, released_below);
        }
    }

    pub(super) fn order_reply(&mut self, to: GatewayKey, giop: Bytes, out: &mut Outbox) {
        let group = self.id;
        let reply = |giop| Envelope::Reply { group, to, giop }.encode();
        if !self.sends_once() {
            out.push_back(OrderOutput::Submit(reply(giop)).into());
        } else if self.duplicates_of_replies.replies(to) {
            out.push_back(OrderOutput::SubmitReply { group, to, payload: reply(giop) }.into());
        }
    }

    /// A reply of `origin`, which is in, was delivered.
    pub(super) fn heard_reply(
        &mut self,
        origin: NodeId,
        to: GatewayKey,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if self.duplicates_of_replies.delivered(to, origin == here.node) && self.sends_once() {
            out.push_back(OrderOutput::Withdraw { group: self.id, to }.into());
        }
    }

    /// The reply that was to be withdrawn had not left.
    pub(crate) fn withdrawn(&mut self) {
        self.duplicates_of_replies.withdrawn();
    }
}
