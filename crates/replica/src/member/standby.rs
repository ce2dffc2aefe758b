//! A member's duty changes while the group works: it stands by, takes over, sends checkpoints.
//!
//! What it is not: it does not know why a duty changes. Invariants: what the server has seen, with
//! the base and the log behind it, is everything that the group was delivered; a server is ended
//! only if what it knows is kept elsewhere.

use super::{ASK_AGAIN, Consequence, Member, Server, Stage};
use crate::executor::{Call, Capture, Job, Restore};
use crate::history::History;
use crate::ids::Attempt;
use crate::output::ServerCommand;
use crate::passive::{
    Base, Checkpoint, CheckpointPiece, Checkpointer, Logged, Source, UPDATES_MAX, Underway,
};
use crate::style::Duty;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Instant, NodeId, NodeSet, canary};

impl Member {
    /// Whether requests go to the server at once.
    pub(super) fn executes_now(&self) -> bool {
        self.duty.executes() && self.server == Server::Up
    }

    /// Requests that were delivered and not given to the server.
    pub(crate) fn logged(&self) -> usize {
        self.log.len()
    }

    /// From here on the member has this duty; `audience`: other members are in, or join.
    /// Returns the members that join and cannot be given a state by this one any more.
    pub(crate) fn take_duty(&mut self, duty: Duty, audience: bool) -> Vec<(NodeId, Attempt)> {
        let before = core::mem::replace(&mut self.duty, duty);
        if before != duty {
            // The others log what this one does; some of them may log more.
            let since = u32::try_from(self.log.len()).unwrap_or(u32::MAX);
            let before = core::mem::take(&mut self.checkpoints);
            let Checkpointer { joined_at, joiners, .. } = before;
            self.checkpoints =
                Checkpointer { since, others_log: true, joined_at, joiners, ..Default::default() };
        }
        let is_relieved = before.executes() && !duty.executes();
        let deserted = if is_relieved { self.log.take_captures() } else { Vec::new() };
        self.frozen.retain(|(node, _, _)| deserted.iter().all(|(joiner, _)| joiner != node));
        self.checkpoints.audience = audience;
        if !audience {
            self.checkpoints.completed.clear();
        }
        self.go_on();
        deserted
    }

    /// Members came or went: who comes has not seen the last checkpoint, so the next one has to be
    /// a whole state. `index`: requests that the group was delivered.
    pub(crate) fn members_changed(&mut self, index: u64, joining: NodeSet, inside: NodeSet) {
        let c = &mut self.checkpoints;
        c.base = None;
        c.joined_at = index;
        // Who is in now logs what was delivered since it joined, or what it had missed before.
        c.others_log |= c.joiners.iter().any(|node| inside.contains(node)) || self.durable;
        c.joiners = joining;
    }

    /// The style changed: members may wait for a checkpoint although nothing is asked of the group.
    pub(crate) fn want_checkpoint(&mut self) {
        self.checkpoints.wanted = true;
        self.checkpoints.base = None;
    }

    /// Gives the server what is meant for it: what it lacks, and if the member executes, the log.
    pub(super) fn go_on(&mut self) {
        if !matches!(self.stage, Stage::Serving { .. })
            || self.server != Server::Up
            || !self.duty.needs_server()
        {
            return;
        }
        self.recovered = false;
        self.remains = crate::remains::Remains::NotLooked;
        if let Some(Base { index, state, updates }) = self.base.take() {
            self.seen = index;
            let purpose = Restore::Base;
            self.executor.extend(state.map(|state| Job::Restore { state, purpose }));
            let purpose = Restore::Update;
            self.executor.extend(updates.into_iter().map(|state| Job::Restore { state, purpose }));
        }
        if !self.duty.executes() {
            return;
        }
        self.seen = self.delivered;
        let log = if canary!(TakesOverWithoutLog) { Default::default() } else { self.log.take() };
        for entry in log.into_iter().skip(usize::from(canary!(ReplaysLogOffByOne))) {
            self.executor.push(match entry {
                Logged::Request { history, moment, key, giop, code_sets } => {
                    let (call, moment) = (Call::Request(key, history), Some(moment));
                    Job::Execute { call, moment, giop, code_sets, awaited: true }
                }
                Logged::Capture { joiner, attempt } => {
                    Job::Capture(Capture::Join { joiner, attempt })
                }
            });
        }
    }

    /// Has a server started or ended as the duty wants it.
    pub(super) fn mind_server(&mut self, out: &mut Vec<ServerCommand>) {
        if self.duty.needs_server() {
            if self.server == Server::Absent {
                self.server = Server::Starting;
                out.push(ServerCommand::Start);
            }
            return;
        }
        let is_needed = match self.stage {
            Stage::NoServer => false,
            // Somebody may wait for the state as it was before the duty changed.
            Stage::Serving { .. } if canary!(StopsTooEarly) => false,
            Stage::Serving { .. } => {
                self.base.is_none() || !self.frozen.is_empty() || self.backup.is_some()
            }
            Stage::Ready { .. }
            | Stage::Asked { .. }
            | Stage::Receiving { .. }
            | Stage::Restoring { .. }
            | Stage::Out { .. } => self.server == Server::Up,
        };
        if self.server != Server::Absent && !is_needed {
            self.server = Server::Absent;
            self.executor.reset();
            out.push(ServerCommand::Stop);
        }
        if matches!(self.stage, Stage::NoServer) {
            // Whichever server it will have is fresh.
            let claim = Some(History::EMPTY);
            self.stage = Stage::Ready { claim, not_before: Instant::ZERO };
        }
    }

    // -- the leader -------------------------------------------------------------------------

    /// When a checkpoint is due.
    pub(super) fn checkpoint_at(&self) -> Option<Instant> {
        let c = &self.checkpoints;
        let leads = matches!(self.stage, Stage::Serving { .. }) && self.duty == Duty::Lead;
        if !leads || !self.executes_now() || c.underway.is_some() || !c.audience {
            return None;
        }
        let at = if c.wanted || c.since >= self.rule.requests {
            Instant::ZERO
        } else {
            c.waiting_since? + self.rule.after
        };
        Some(at.max(c.not_before))
    }

    pub(super) fn begin_checkpoint(&mut self, now: Instant) {
        let c = &mut self.checkpoints;
        if (c.since > 0 || c.others_log) && c.waiting_since.is_none() {
            c.waiting_since = Some(now);
        }
        if core::mem::take(&mut c.failed) {
            c.not_before = now + ASK_AGAIN;
        }
        if self.checkpoint_at().is_none_or(|at| at > now) {
            return;
        }
        let c = &mut self.checkpoints;
        let update = self.rule.updates && c.base.is_some() && c.updates < UPDATES_MAX;
        (c.since, c.waiting_since, c.wanted, c.others_log) = (0, None, false, false);
        self.checkpoint_number += 1;
        let (number, up_to) = (self.checkpoint_number, self.seen);
        c.underway = Some(Underway::Asked(number));
        self.executor.push(Job::Capture(Capture::Checkpoint { number, up_to, update }));
    }

    /// The server gave its state, or could not.
    pub(super) fn checkpoint_taken(
        &mut self,
        number: u64,
        up_to: u64,
        update: bool,
        state: Option<Bytes>,
    ) -> Option<Consequence> {
        let c = &mut self.checkpoints;
        if c.underway.take_if(|underway| *underway == Underway::Asked(number)).is_none() {
            // Asked before the member led anew. Updates of the server go on from this one now.
            c.base = None;
            return None;
        }
        let Some(state) = state else {
            (c.wanted, c.failed, c.base) = (true, true, None);
            return None;
        };
        let from = c.base.filter(|_| update);
        if update && from.is_none() {
            // Somebody came meanwhile who lacks what the update goes on from.
            c.wanted = true;
            return None;
        }
        let completed = core::mem::take(&mut c.completed);
        // Whoever has not seen the one before may lack any reply. In a durable group that may be a
        // member that came in with what its disk had, all requests and not all checkpoints; an
        // update is not for such a one.
        let seen_by_all = c.base.is_some() && (update || !self.durable);
        let since = seen_by_all.then_some(completed.as_slice());
        let since = if canary!(CheckpointsWithoutReplies) { Some([].as_slice()) } else { since };
        let replies = self.retention.replies(since);
        let checkpoint = Checkpoint { from, up_to, replies, state };
        // Whoever joined behind it cannot use it.
        c.base = Some(up_to).filter(|up_to| *up_to >= c.joined_at);
        c.updates = if update { c.updates + 1 } else { 0 };
        c.underway = Some(Underway::Sending { number, bytes: checkpoint.encode(), next: 0 });
        Some(Consequence::Send)
    }

    /// Pieces of the checkpoint to send now, and whose they are: the first ones, or one more
    /// because one of that number was delivered.
    pub(crate) fn checkpoint_pieces(
        &mut self,
        delivered: Option<u64>,
    ) -> Option<(Source, Vec<CheckpointPiece>)> {
        let attempt = self.attempt()?;
        let Some(Underway::Sending { number, bytes, next }) = &mut self.checkpoints.underway else {
            return None;
        };
        if delivered.is_some_and(|delivered| delivered != *number) {
            return None;
        }
        let source = Source { leader: self.me, attempt, number: *number };
        Some((source, CheckpointPiece::next(bytes, next, delivered.is_none())))
    }

    /// The last piece was delivered.
    pub(crate) fn checkpoint_sent(&mut self, sent: u64) {
        self.checkpoints.underway.take_if(
            |underway| matches!(underway, Underway::Sending { number, .. } if *number == sent),
        );
    }

    // -- the others -------------------------------------------------------------------------

    /// A piece of the leader's checkpoint was delivered.
    pub(crate) fn take_checkpoint(&mut self, source: Source, piece: &CheckpointPiece) {
        if !matches!(self.stage, Stage::Serving { .. }) || self.duty.executes() {
            return;
        }
        let Some(whole) = self.assembly.add(source, piece) else { return };
        let Ok(checkpoint) = Checkpoint::decode(whole) else { return };
        let Checkpoint { from, up_to, replies, state } = checkpoint;
        let mine = self.base.as_ref().map_or(self.seen, |base| base.index);
        let fits = from.is_none_or(|from| from == mine) || canary!(UpdatesAnything);
        if up_to < mine || !fits {
            return;
        }
        for (key, reply) in replies {
            // The leader has answered those who wait, or whoever follows it is asked again.
            let _ = self.retention.complete(&key, reply);
        }
        self.log.drop_up_to(up_to);
        // A server that is not wanted any more has the state that an update goes on from.
        let by_server = self.duty == Duty::StandBy || from.is_some();
        if self.base.is_none() && by_server {
            let purpose = if from.is_some() { Restore::Update } else { Restore::Base };
            self.seen = up_to;
            self.executor.push(Job::Restore { state, purpose });
        } else if from.is_none() {
            self.base = Some(Base { index: up_to, state: Some(state), updates: Vec::new() });
        } else if let Some(base) = &mut self.base {
            base.index = up_to;
            base.updates.push(state);
        }
    }
}
