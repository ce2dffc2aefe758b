//! What a member captures of its server: for a joiner, a checkpoint, a backup, a comparison.
//!
//! What it is not: how a state travels, which is `transfers`, and what it waits for before it is
//! given, which is `settled`. Invariant: what a member remembers is frozen at the place in the
//! order where the capture was asked for, not where the server came to it.

use super::settled::{Recipient, Unsettled};
use super::{Consequence, Member, Stage};
use crate::messages::pieces::Chunk;
use crate::server::executor::{Capture, Job};
use crate::state::passive::Logged;
use crate::state::retention::Frozen;
use crate::state::transfer::{Outgoing, TransferProgress};
use crate::words::ids::Attempt;
use crate::words::rules::TransferRule;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Instant, NodeId, canary};

/// The states that are given to other members, from the capture to the last chunk.
pub(super) struct Giving {
    rule: TransferRule,
    /// What was known when a join was delivered, until the state is there.
    frozen: Vec<(NodeId, Attempt, Frozen)>,
    /// States that wait until the replies that go with them are decided.
    unsettled: Vec<Unsettled>,
    /// States for members that join.
    outgoing: Vec<(NodeId, Attempt, Outgoing)>,
}

impl Giving {
    pub(super) const fn new(rule: TransferRule) -> Self {
        Self { rule, frozen: Vec::new(), unsettled: Vec::new(), outgoing: Vec::new() }
    }

    pub(super) const fn rule(&self) -> TransferRule {
        self.rule
    }

    pub(super) const fn set_rule(&mut self, rule: TransferRule) {
        self.rule = rule;
    }

    /// What was known when the joiner's last try was delivered.
    pub(super) fn freeze(&mut self, joiner: NodeId, attempt: Attempt, frozen: Frozen) {
        self.frozen.retain(|(node, _, _)| *node != joiner);
        self.frozen.push((joiner, attempt, frozen));
    }

    /// What [`Self::freeze`] was given, once. `None`: the joiner is gone, or started over.
    pub(super) fn take_frozen(&mut self, joiner: NodeId, attempt: Attempt) -> Option<Frozen> {
        let index = self.frozen.iter().position(|(node, a, _)| *node == joiner && *a == attempt)?;
        Some(self.frozen.swap_remove(index).2)
    }

    /// Forgets what was frozen for these.
    pub(super) fn desert(&mut self, deserted: &[(NodeId, Attempt)]) {
        self.frozen.retain(|(node, _, _)| deserted.iter().all(|(joiner, _)| joiner != node));
    }

    /// The server is still to give a state for a joiner.
    pub(super) const fn awaits_state(&self) -> bool {
        !self.frozen.is_empty()
    }

    /// A state waits for the replies that go with it.
    pub(super) fn wait(&mut self, unsettled: Unsettled) {
        self.unsettled.push(unsettled);
    }

    /// A state for which nothing is voted on any more. `is_over`: whether all votes up to that
    /// request are.
    pub(super) fn take_settled(&mut self, is_over: impl Fn(u64) -> bool) -> Option<Unsettled> {
        let at = self.unsettled.iter().position(|unsettled| is_over(unsettled.up_to))?;
        Some(self.unsettled.remove(at))
    }

    /// A joiner is gone, or started over: no state that waits is for it.
    pub(super) fn give_no_more(&mut self, joiner: NodeId) {
        let is_for =
            |whom: &Recipient| matches!(whom, Recipient::Joiner(node, ..) if *node == joiner);
        self.unsettled.retain(|unsettled| !is_for(&unsettled.whom));
    }

    /// Nothing is given to the joiner any more, nor captured for it.
    pub(super) fn stop(&mut self, joiner: NodeId) {
        self.outgoing.retain(|(node, _, _)| *node != joiner);
        self.frozen.retain(|(node, _, _)| *node != joiner);
        self.give_no_more(joiner);
    }

    /// What needs this server is given to nobody any more.
    pub(super) fn forget(&mut self) {
        self.outgoing.retain(|(_, _, outgoing)| outgoing.needs_no_server());
        self.frozen.clear();
        self.unsettled.clear();
    }

    /// Nothing is given to anybody any more.
    pub(super) fn forget_all(&mut self) {
        self.outgoing.clear();
        self.frozen.clear();
        self.unsettled.clear();
    }

    /// Gives the joiner a state, or the updates of one, and what goes in front.
    pub(super) fn send(&mut self, joiner: NodeId, attempt: Attempt, (head, state): (Bytes, Bytes)) {
        self.outgoing.retain(|(node, _, _)| *node != joiner);
        self.outgoing.push((joiner, attempt, Outgoing::new(head, state, self.rule)));
    }

    /// Gives the joiner requests.
    pub(super) fn send_requests(&mut self, joiner: NodeId, attempt: Attempt, missed: Bytes) {
        self.outgoing.retain(|(node, _, _)| *node != joiner);
        self.outgoing.push((joiner, attempt, Outgoing::requests(missed, self.rule)));
    }

    /// What the joiner is given in that try.
    pub(super) fn outgoing(&mut self, joiner: NodeId, attempt: Attempt) -> Option<&mut Outgoing> {
        let is_it = |(node, a, _): &&mut (NodeId, Attempt, _)| *node == joiner && *a == attempt;
        self.outgoing.iter_mut().find(is_it).map(|(_, _, outgoing)| outgoing)
    }

    /// The queue to a node is full, or has room again.
    pub(super) fn set_blocked(&mut self, joiner: NodeId, is_blocked: bool) {
        let its = self.outgoing.iter_mut().filter(|(node, _, _)| *node == joiner);
        its.for_each(|(_, _, outgoing)| outgoing.set_blocked(is_blocked));
    }

    /// When the next chunk is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.outgoing.iter().filter_map(|(_, _, outgoing)| outgoing.due()).min()
    }

    /// A chunk to send now, and to whom.
    pub(super) fn next_chunk(&mut self, now: Instant) -> Option<(NodeId, Attempt, Chunk)> {
        self.outgoing.iter_mut().find_map(|(joiner, attempt, outgoing)| {
            outgoing.next_chunk(now).map(|chunk| (*joiner, *attempt, chunk))
        })
    }

    /// How far they are.
    pub(super) fn progress(&self) -> impl Iterator<Item = TransferProgress> + '_ {
        self.outgoing.iter().map(|(joiner, _, outgoing)| TransferProgress {
            peer: *joiner,
            gives: true,
            done: outgoing.received(),
            total: Some(outgoing.total()),
        })
    }
}

impl Member {
    /// This member was chosen as donor: capture the state after what was delivered so far.
    pub(crate) fn capture(&mut self, joiner: NodeId, attempt: Attempt) -> Option<Consequence> {
        if !matches!(self.stage, Stage::Serving { .. }) {
            // The server is gone already; the Down that is on its way makes the joiner start over.
            return None;
        }
        if self.replays.is_wanted() {
            return self.give_archive(joiner, attempt);
        }
        self.giving.give_no_more(joiner);
        self.giving.freeze(joiner, attempt, self.freeze());
        if self.executes_now() {
            self.keep_chain_at_state();
            self.executor.push(Job::Capture(Capture::Join { joiner, attempt }));
        } else if self.duty.executes() {
            self.checkpoints.break_chain(self.delivered.count);
            self.log.push(Logged::Capture { joiner, attempt });
        } else {
            return Some(Consequence::CannotGive { joiner, attempt });
        }
        None
    }

    /// The joiner is gone or started over.
    pub(crate) fn stop_giving(&mut self, joiner: NodeId) {
        self.giving.stop(joiner);
    }

    /// The server has given its state, or has not.
    pub(super) fn captured(
        &mut self,
        purpose: Capture,
        state: Option<Bytes>,
    ) -> Option<Consequence> {
        match purpose {
            Capture::Join { joiner, attempt } => {
                let Some(state) = state else {
                    return Some(Consequence::CannotGive { joiner, attempt });
                };
                let mut frozen = self.giving.take_frozen(joiner, attempt)?;
                if canary!(FreezesLate) {
                    frozen = self.retention.freeze();
                }
                self.give_when_settled(Recipient::Joiner(joiner, attempt, frozen), state)
            }
            Capture::LogSnapshot { record } => {
                self.log_snapshot_taken(record, state);
                None
            }
            Capture::Backup { number } => self.backup_taken(number, state),
            Capture::Checkpoint { number, up_to, update, joiner } => {
                self.checkpoint_taken(number, (up_to, update), joiner, state)
            }
            Capture::Compare { number } => {
                self.compared(number, state.as_ref());
                None
            }
            Capture::Proof => {
                self.proves(state.as_ref());
                None
            }
        }
    }
}
