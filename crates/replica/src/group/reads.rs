//! Who executes a read, and the way of its reply.
//!
//! What it is not: when a reply may leave, which is [`crate::calls::reads`]. Invariant: a read that
//! cannot go on is given back at once, never kept for better times; but nobody else is given what
//! may have ended a process before the node of that process has said so.

use super::{Group, NodeContext};
use crate::calls::reads::{Ordered, Read, ReadId};
use crate::messages::envelope::Envelope;
use crate::messages::peer::{PEER_MESSAGE_BYTES_MAX, PeerMessage};
use crate::output::{DriverOutput, GatewayOutput, OrderOutput, Outbox, Output};
use crate::table::{DownReason, MemberState};
use crate::words::ids::{GatewayKey, RequestNumber};
use bytes::Bytes;
use quorba_base::policy::ReadConsistency;
use quorba_base::{Instant, NodeId, NodeSet, canary};

/// What a read, or its reply, is wrapped in at most, beside the code sets.
const WRAPPING_BYTES_MAX: usize = 64;

impl Group {
    /// Nodes whose members have executed all that the group was delivered, or will have when what
    /// they have queued is done.
    pub(super) fn readers(&self) -> NodeSet {
        if !self.table.style.lets_one_read() {
            return NodeSet::EMPTY;
        }
        if self.table.style.is_passive() || self.config.reads.of_leader.is_some() {
            return self.table.leading().into_iter().collect();
        }
        self.table.in_set()
    }

    /// Nodes whose server's process has ended: each says at which reads, and gives the others back.
    /// That its member is down comes through the order, which overtakes what comes over links; who
    /// gave them to another member at once would not count the end in time, and one process more
    /// would end at the same call (seed 625 of the simulator's `styles`).
    fn yet_to_tell(&self) -> NodeSet {
        let ended = MemberState::Down(DownReason::ServerExited);
        let members = self.table.members().filter(|(_, state)| *state == ended);
        members.map(|(node, _)| node).collect::<NodeSet>().intersection(self.reads.links())
    }

    pub(super) fn reads_here(&self) -> bool {
        let Some(member) = &self.member else { return false };
        if canary!(ReadsOutside) {
            return self.table.style.lets_one_read() && member.has_server();
        }
        if self.is_stateless() && self.is_late {
            return false;
        }
        let is_reader = self.readers().contains(self.here);
        let state = self.table.state(self.here).filter(|_| is_reader);
        matches!(state, Some(MemberState::In { attempt }) if member.can_read(attempt))
    }

    /// The node that executes a read of this node's gateway: this one if it can.
    pub(crate) fn reader(&self) -> Option<NodeId> {
        if self.reads_here() {
            return Some(self.here);
        }
        self.reads.reachable(self.readers(), self.here)
    }

    /// A read of this node's gateway.
    pub(crate) fn read(&mut self, read: Read, here: NodeContext, out: &mut Outbox) {
        if self.is_stateless() {
            return self.call(read, false, out);
        }
        let number = read.asker.number;
        match self.reader() {
            Some(node) if node == here.node => {
                if self.config.reads.consistency == ReadConsistency::Linearizable {
                    return self.reads.wait(read);
                }
                let behind = self.reads.mark_behind(self.table.history.count);
                self.execute_read(read, behind);
            }
            Some(node) if fits_message(read.bytes()) => {
                self.reads.sent(number, node, false);
                self.send_call(node, read, out);
            }
            Some(_) | None => self.give_back([number], out),
        }
    }

    pub(super) fn send_call(&self, to: NodeId, read: Read, out: &mut Outbox) {
        let (group, stateless) = (self.id, self.is_stateless());
        let Read { asker, giop, code_sets } = read;
        let number = asker.number;
        send(to, &PeerMessage::Call { group, number, stateless, code_sets, giop }, out);
    }

    /// The reads go to the gateway again, which has them ordered.
    pub(super) fn give_back(
        &self,
        numbers: impl IntoIterator<Item = RequestNumber>,
        out: &mut Outbox,
    ) {
        let group = self.id;
        let ended = false;
        let read = |number| GatewayOutput::Read { group, number, giop: None, ended };
        out.extend(numbers.into_iter().map(read).map(Output::from));
    }

    pub(super) fn execute_read(&mut self, read: Read, behind: u64) {
        let Read { asker, giop, code_sets } = read;
        let Some(member) = self.member.as_deref_mut().filter(|_| !self.reads.is_running(&asker))
        else {
            return;
        };
        let id = self.reads.started(asker, behind, self.here);
        member.read(id, giop, code_sets);
    }

    /// A mark, at its place.
    pub(crate) fn deliver_mark(
        &mut self,
        (origin, incarnation): (NodeId, u64),
        mark: u64,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if (origin, incarnation) != (here.node, here.incarnation) {
            return;
        }
        let can_read = self.reads_here();
        for read in self.reads.mark_delivered(mark, self.table.history.count) {
            if can_read {
                self.execute_read(read, mark);
            } else {
                self.reply(read.asker, None, here, out);
            }
        }
    }

    /// A mark is as safe as the group asks of a request.
    pub(crate) fn mark_safe(&mut self, mark: u64) {
        if self.config.durable {
            self.reads.mark_held(mark);
        } else {
            self.reads.mark_safe(mark);
        }
    }

    /// Enough disks have a mark of this node.
    pub(crate) fn mark_logged(&mut self, mark: u64, here: NodeContext, out: &mut Outbox) {
        self.reads.mark_logged(mark);
        self.send_reads(here, out);
    }

    /// The server has answered a read.
    pub(super) fn read_executed(
        &mut self,
        id: ReadId,
        reply: Option<Bytes>,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if let Some(asker) = self.reads.executed(id, reply) {
            self.reply(asker, None, here, out);
        }
    }

    /// The process of the server has ended while it executed these.
    pub(super) fn reads_ended(&mut self, ids: &[ReadId], here: NodeContext, out: &mut Outbox) {
        for id in ids {
            if let Some(asker) = self.reads.executed(*id, None) {
                self.reply_with(asker, None, true, here, out);
            }
        }
    }

    /// The server of a stateless group has one call for long: others execute what waits behind it.
    pub(super) fn mind_late_server(&mut self, now: Instant, here: NodeContext, out: &mut Outbox) {
        let is_late = self.member.as_deref().is_some_and(|member| member.is_late(now));
        let was_late = core::mem::replace(&mut self.is_late, is_late);
        if was_late || !is_late || !self.is_stateless() {
            return;
        }
        let waiting = self.member.as_deref_mut().map(crate::member::Member::take_reads);
        for id in waiting.unwrap_or_default() {
            if let Some(asker) = self.reads.executed(id, None) {
                self.reply(asker, None, here, out);
            }
        }
    }

    /// Sends what may leave, gives back what cannot go on, and asks for a mark.
    pub(super) fn settle_reads(
        &mut self,
        now: Instant,
        in_primary: bool,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let epoch = self.member.as_deref().map(crate::member::Member::epoch);
        if self.reads.is_quiet(epoch) {
            return;
        }
        self.reads.load.forgive(now);
        for asker in self.reads.in_epoch(epoch) {
            self.reply(asker, None, here, out);
        }
        if !in_primary || !self.reads_here() {
            for asker in self.reads.refuse_waiting() {
                self.reply(asker, None, here, out);
            }
        }
        let lost = self.reads.keep_at(self.readers().union(self.yet_to_tell()));
        self.give_back(lost, out);
        if in_primary && let Some(number) = self.reads.next_mark() {
            let payload = Envelope::ReadMark { group: self.id, number }.encode();
            out.push_back(GatewayOutput::Mark { group: self.id, number, payload }.into());
        }
        self.send_reads(here, out);
    }

    /// Sends what may leave.
    fn send_reads(&mut self, here: NodeContext, out: &mut Outbox) {
        while let Some((asker, reply)) = self.reads.next_reply() {
            self.reply(asker, Some(reply), here, out);
        }
    }

    /// The view is over.
    pub(crate) fn end_reads(&mut self, here: NodeContext, out: &mut Outbox) {
        for asker in self.reads.begin_again() {
            self.reply(asker, None, here, out);
        }
    }

    pub(super) fn reply(
        &mut self,
        to: GatewayKey,
        giop: Option<Bytes>,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        self.reply_with(to, giop, false, here, out);
    }

    /// `ended`: there is no reply because the process of the server has ended.
    fn reply_with(
        &mut self,
        to: GatewayKey,
        giop: Option<Bytes>,
        ended: bool,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if to.node == here.node {
            let number = to.number;
            out.push_back(GatewayOutput::Read { group: self.id, number, giop, ended }.into());
            return;
        }
        let was_ordered = self.reads.ordered.remove(&to) == Some(Ordered::Call);
        match giop {
            Some(giop) if was_ordered => self.order_answer(to, giop, out),
            Some(giop) if !fits_message(giop.len()) => self.reply_by_order(to, giop, out),
            giop => send(to.node, &PeerMessage::Answer { group: self.id, to, giop, ended }, out),
        }
    }

    /// A reply that finds no room in messages. What was read may be gone with that, so it is not
    /// thrown away.
    pub(crate) fn reply_by_order(&mut self, to: GatewayKey, giop: Bytes, out: &mut Outbox) {
        if !self.is_stateless() {
            self.reads.ordered.insert(to, Ordered::Reply);
        }
        self.order_answer(to, giop, out);
    }

    fn order_answer(&self, to: GatewayKey, giop: Bytes, out: &mut Outbox) {
        let reply = Envelope::Reply { group: self.id, to, giop };
        out.push_back(OrderOutput::Submit(reply.encode()).into());
    }

    /// The order has lost a reply of this node's member. Whether it is to be said again: nobody
    /// asks for it again, as for one to a request.
    pub(crate) fn says_again(&self, to: &GatewayKey) -> bool {
        self.reads.ordered.get(to) == Some(&Ordered::Reply)
    }

    /// This node was cut off, and replies to its reads may have been ordered where it was not.
    pub(super) fn read_again(&mut self, out: &mut Outbox) {
        // What changes the leader is not done twice for that: its client is told in time.
        if self.config.reads.of_leader.is_none() {
            let lost = self.reads.keep_at(NodeSet::EMPTY);
            self.give_back(lost, out);
        }
    }

    // -- other nodes ------------------------------------------------------------------------

    /// A node's gateway has a read for the local member.
    pub(super) fn called(
        &mut self,
        read: Read,
        stateless: bool,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        self.reads.called_by(read.asker.node);
        if stateless != self.is_stateless() {
            // One of the two nodes has not been delivered the change of style.
            self.reply(read.asker, None, here, out);
        } else if stateless {
            self.execute_call(read, here, out);
        } else {
            self.reads.wait(read);
        }
    }

    /// A node's word on a read of this gateway; `None`: it has nothing to say.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        by: NodeId,
        to: GatewayKey,
        (giop, ended): (Option<Bytes>, bool),
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let number = to.number;
        let mine = (to.node, to.incarnation) == (here.node, here.incarnation);
        if mine && self.reads.answered(number, by) {
            if giop.is_none() {
                self.reads.load.avoid(now, by);
            }
            out.push_back(GatewayOutput::Read { group: self.id, number, giop, ended }.into());
        } else if mine && ended {
            out.push_back(GatewayOutput::ReadEnded { group: self.id, number }.into());
        }
    }

    /// A node's answers may have been dropped.
    pub(super) fn answers_lost(&mut self, by: NodeId, out: &mut Outbox) {
        let lost = self.reads.lost_at(by);
        self.give_back(lost, out);
    }

    pub(super) fn reads_link_up(&mut self, node: NodeId, out: &mut Outbox) {
        if self.reads.link_up(node) {
            send(node, &PeerMessage::AnswersLost { group: self.id }, out);
        }
    }

    pub(super) fn reads_link_down(&mut self, node: NodeId, out: &mut Outbox) {
        let lost = self.reads.link_down(node);
        self.give_back(lost, out);
    }
}

pub(super) fn fits_message(bytes: usize) -> bool {
    bytes + WRAPPING_BYTES_MAX <= PEER_MESSAGE_BYTES_MAX
}

fn send(to: NodeId, message: &PeerMessage, out: &mut Outbox) {
    out.push_back(DriverOutput::Peer { to, lane: message.lane(), bytes: message.encode() }.into());
}
