//! A member's duty changes while the group works: it stands by, takes over, sends checkpoints.
//!
//! What it is not: it does not know why a duty changes. Invariants: what the server has seen, with
//! the base and the log behind it, is everything that the group was delivered; a server is ended
//! only if what it knows is kept elsewhere.

use super::{BufferedDelivery, Consequence, Member, Server, Stage, ask_again_after};
use crate::messages::pieces::CheckpointPiece;
use crate::output::ServerCommand;
use crate::server::executor::{Call, Capture, Job, Restore, Returning};
use crate::state::passive::{Base, Checkpoint, Logged, RequestLog, Sending, Source, UPDATES_MAX};
use crate::table::DownReason;
use crate::words::history::History;
use crate::words::ids::Attempt;
use crate::words::released::Released;
use crate::words::style::Duty;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Instant, NodeId, NodeSet, canary};

impl Member {
    /// Whether requests go to the server at once.
    pub(super) fn executes_now(&self) -> bool {
        self.duty.executes() && self.server == Server::Up && self.base.is_none()
    }

    /// The gateway at `node` will not ask again for these. A member that is being given the state
    /// is told so with the next request.
    pub(crate) fn release(&mut self, node: NodeId, incarnation: u64, released: &Released) {
        if matches!(self.stage, Stage::Serving { .. }) {
            self.retention.release(node, incarnation, released);
        }
    }

    /// Requests that were delivered and not given to the server.
    pub(crate) fn logged(&self) -> usize {
        self.log.len()
    }

    /// From here on the member has this duty; `audience`: other members are in, or join.
    /// Returns the members that join and cannot be given a state by this one any more.
    pub(crate) fn take_duty(&mut self, duty: Duty, audience: bool) -> Vec<(NodeId, Attempt)> {
        let before = core::mem::replace(&mut self.duty, duty);
        self.executor.set_alone(duty == Duty::Lead);
        if before != duty {
            self.takeover = None;
            // Others are asked now.
            self.executor.tell_anew();
            // The others log what this one does; some of them may log more.
            let since = u32::try_from(self.log.len()).unwrap_or(u32::MAX);
            self.checkpoints.leads_anew(since);
            self.executor.forget_checkpoints();
        }
        let is_relieved = before.executes() && !duty.executes();
        let deserted = if is_relieved { self.log.take_captures() } else { Vec::new() };
        self.giving.desert(&deserted);
        self.checkpoints.audience = audience;
        if !audience {
            self.checkpoints.completed.clear();
            if self.logged {
                // Nobody is told what it replies alone, but its own disk goes on from here, too:
                // the next checkpoint has to have it.
                self.checkpoints.chain.break_off();
            }
        }
        self.go_on();
        deserted
    }

    /// Members came or went. Who comes, but for one that this member itself brings to where the
    /// next update goes on from, has not seen the last checkpoint: `strangers`. So the next one
    /// has to be a whole state. `index`: requests that the group was delivered.
    pub(crate) fn members_changed(
        &mut self,
        index: u64,
        (joining, inside): (NodeSet, NodeSet),
        strangers: bool,
    ) {
        let c = &mut self.checkpoints;
        let has_missed = c.missed_whole && c.joiners.iter().any(|node| inside.contains(node));
        if strangers || has_missed || !c.rule.updates {
            c.break_chain(index);
        }
        c.missed_whole &= !joining.is_empty();
        // Who is in now logs what was delivered since it joined, or what it had missed before.
        c.others_log |= c.joiners.iter().any(|node| inside.contains(node)) || self.logged;
        c.joiners = joining;
    }

    /// The style changed: members may wait for a checkpoint although nothing is asked of the group.
    pub(crate) fn want_checkpoint(&mut self) {
        self.checkpoints.wanted = true;
        self.checkpoints.chain.break_off();
    }

    /// Gives the server what is meant for it: what it lacks, and if the member executes, the log.
    pub(super) fn go_on(&mut self) {
        if !matches!(self.stage, Stage::Serving { .. })
            || self.server != Server::Up
            || !self.duty.needs_server()
        {
            return;
        }
        if self.base.is_some() && self.executor.has_abandoned() {
            // Should the server never be through with that, the next one is given the base.
            return;
        }
        let is_recovered = core::mem::replace(&mut self.recovered, false);
        self.disk_state = crate::table::disk_census::DiskState::NotLooked;
        if let Some(base) = self.base.take() {
            self.takeover = self.takes_over(&base);
            self.given = base.state.is_some().then(|| Box::new(base.clone()));
            let Base { at, state, updates } = base;
            self.seen = at;
            let purpose = Restore::Base;
            self.executor.extend(state.map(|state| Job::Restore { state, purpose }));
            let purpose = Restore::Update;
            self.executor.extend(updates.into_iter().map(|state| Job::Restore { state, purpose }));
        }
        if !self.duty.executes() {
            return;
        }
        self.seen = self.delivered;
        let shared_behind = self.executes_odd_again(is_recovered);
        let log = if canary!(TakesOverWithoutLog) { Default::default() } else { self.log.take() };
        for entry in log.into_iter().skip(usize::from(canary!(ReplaysLogOffByOne))) {
            match entry {
                Logged::Request { history, moment, key, giop, code_sets } => {
                    let (call, moment) = (Call::Request(key, history), Some(moment));
                    self.executor.push(Job::Execute {
                        call,
                        moment,
                        giop,
                        code_sets,
                        awaited: true,
                    });
                    if shared_behind == Some(history.count) {
                        self.share_what_is_done(history);
                    }
                }
                Logged::Capture { joiner, attempt } => {
                    self.executor.push(Job::Capture(Capture::Join { joiner, attempt }));
                }
            }
        }
    }

    /// What is in the log is about to be executed. If some of it had no reply, what comes of it is
    /// this server's alone: the others are compared with it, or are given the leader's state (seed
    /// 9400316 of the simulator's `calls`). Gives the request behind which that is to be taken.
    fn executes_odd_again(&mut self, is_recovered: bool) -> Option<u64> {
        let ended = self.log.names().filter(|(key, at)| self.executor.knows_end_of(key, *at));
        let last = ended.map(|(_, at)| at.count).max()?;
        if is_recovered {
            self.statements.replayed();
        }
        if self.duty != Duty::Lead {
            return None;
        }
        self.statements.is_alone_behind(last);
        if self.checkpoints.audience && !self.checkpoints.is_underway() {
            return Some(last);
        }
        self.want_checkpoint();
        None
    }

    /// As [`Self::server_lost`]; but if what the member executes from is kept here, and its server
    /// was to be given it, the next one is.
    pub(crate) fn server_failed(&mut self, reason: DownReason) -> Option<Consequence> {
        let serves = matches!(self.stage, Stage::Serving { .. }) && self.duty.executes();
        if serves && self.server == Server::Replacing {
            self.server = Server::Starting;
            return None;
        }
        let keeps_all = self.base.is_some() || serves && self.takes_back(reason);
        if !serves || self.server != Server::Up || !keeps_all {
            return self.server_lost(reason);
        }
        self.server = Server::Replacing;
        self.executor.reset();
        self.executor.forget_not_given();
        Some(Consequence::Replace(reason))
    }

    /// The server has taken a state, or an update of it.
    pub(super) fn has_taken(&mut self) {
        if !self.executor.awaits_state() {
            self.given = None;
            self.is_slow_no_more();
        }
    }

    /// The server has not taken what the member executes from, and no other one has the group's
    /// state: all of it is kept here for the next server. Whether that can be done.
    pub(super) fn takes_back(&mut self, reason: DownReason) -> bool {
        let is_asked = self.is_asked_for_updates();
        let is_of_use = self.nobody_else && self.server == Server::Up && !is_asked;
        let Some(base) = self.given.take_if(|_| is_of_use) else { return false };
        self.takes_back_behind(*base, RequestLog::default());
        if reason == DownReason::ServerHung {
            self.was_too_slow();
        }
        true
    }

    /// Whether a member that comes back with an earlier state waits for an answer of the server:
    /// the next one cannot give it.
    /// An operator is told that the backup was interrupted (seed 563 of the simulator's `backups`).
    pub(super) fn is_asked_for_updates(&self) -> bool {
        self.executor
            .is_to(|capture| matches!(capture, Capture::Checkpoint { joiner: Some(_), .. }))
    }

    /// The next server is given this, then what the one before had `done`, and what it was to do.
    pub(super) fn takes_back_behind(&mut self, base: Base, mut done: RequestLog) {
        let jobs = self.executor.take_back();
        done.retain(|history| !jobs.iter().any(|job| job.is_request(history)));
        let mut log = RequestLog::default();
        for job in jobs {
            let entry = match job {
                Job::Execute {
                    call: Call::Request(key, history), moment, giop, code_sets, ..
                } => {
                    let moment = moment.unwrap_or_default();
                    log.append_up_to(&mut done, history.count);
                    Logged::Request { history, moment, key, giop, code_sets }
                }
                Job::Capture(Capture::Join { joiner, attempt }) => {
                    log.append_up_to(&mut done, u64::MAX);
                    Logged::Capture { joiner, attempt }
                }
                Job::Capture(purpose) => {
                    // Nobody waits for these in vain: they are asked for again.
                    let _ = self.captured(purpose, None);
                    continue;
                }
                Job::Execute { .. } | Job::Restore { .. } => continue,
            };
            log.push(entry);
        }
        log.append_up_to(&mut done, u64::MAX);
        (self.seen, self.base, self.log) = (base.at, Some(base), log);
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
                let is_asked =
                    self.giving.awaits_state() || self.is_backing_up() || self.is_snapshotting();
                self.base.is_none() || is_asked
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
            self.executor.forget_not_given();
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
        if !leads || !self.executes_now() || c.is_underway() || !c.audience {
            return None;
        }
        let at = if c.wanted || c.since >= c.rule.requests {
            Instant::ZERO
        } else {
            c.waiting_since? + c.rule.after
        };
        Some(at.max(c.not_before))
    }

    pub(super) fn begin_checkpoint(&mut self, now: Instant) {
        let c = &mut self.checkpoints;
        if (c.since > 0 || c.others_log) && c.waiting_since.is_none() {
            c.waiting_since = Some(now);
        }
        if core::mem::take(&mut c.failed) {
            c.failures = c.failures.saturating_add(1);
            c.not_before = now + ask_again_after(c.failures);
        }
        if self.checkpoint_at().is_none_or(|at| at > now) {
            return;
        }
        let c = &self.checkpoints;
        // Who joins leaves whole states out.
        let is_room = c.chain.updates() < UPDATES_MAX || !c.joiners.is_empty();
        let update = c.rule.updates && c.chain.end().is_some() && is_room;
        self.ask_checkpoint(update, None);
    }

    /// From here on only this member executes, and others were not given what it did with a request
    /// that had no reply: they log it, and would execute it anew (seed 7033 of the simulator's
    /// `backups`).
    pub(crate) fn leads_in_doubt(&mut self, request: u64) {
        let leads = self.duty == Duty::Lead && matches!(self.stage, Stage::Serving { .. });
        if !leads || !self.checkpoints.audience {
            return;
        }
        self.statements.is_alone_behind(request);
        if self.executes_now() && !self.checkpoints.is_underway() {
            self.share_what_is_done(self.seen);
        } else {
            self.want_checkpoint();
        }
    }

    /// Has a whole one taken behind all that the server was given, up to that request. Replies
    /// wait for it.
    fn share_what_is_done(&mut self, up_to: History) {
        self.checkpoints.chain.break_off();
        let (number, update, joiner) = (self.checkpoints.ask(), false, None);
        self.executor.push(Job::Capture(Capture::Checkpoint { number, up_to, update, joiner }));
        self.statements.shares_in(number);
    }

    /// Has a whole one taken in front of all that the server was not given; what it was is in it.
    /// Which one that is.
    pub(super) fn share_state(&mut self, up_to: History) -> u64 {
        self.checkpoints.chain.break_off();
        let (number, update, joiner) = (self.checkpoints.ask(), false, None);
        let capture = Capture::Checkpoint { number, up_to, update, joiner };
        self.executor.push_first(Job::Capture(capture));
        number
    }

    /// Has one taken of what was delivered so far.
    pub(super) fn ask_checkpoint(&mut self, update: bool, joiner: Option<Returning>) {
        let c = &mut self.checkpoints;
        (c.since, c.waiting_since, c.wanted, c.others_log) = (0, None, false, false);
        let (number, up_to) = (c.ask(), self.seen);
        self.executor.push(Job::Capture(Capture::Checkpoint { number, up_to, update, joiner }));
    }

    /// The server gave its state, or could not.
    pub(super) fn checkpoint_taken(
        &mut self,
        number: u64,
        (up_to, update): (History, bool),
        joiner: Option<Returning>,
        state: Option<Bytes>,
    ) -> Option<Consequence> {
        let c = &mut self.checkpoints;
        let no_update = joiner.map(Consequence::CannotUpdate);
        let Some(asked) = c.asked.iter().position(|asked| *asked == number) else {
            // Asked before the member led anew. Updates of the server go on from this one now.
            c.chain.break_off();
            return no_update;
        };
        c.asked.remove(asked);
        let Some(state) = state else {
            (c.wanted, c.failed) = (true, true);
            c.chain.break_off();
            self.shares_once_more(number, up_to);
            return no_update;
        };
        c.failures = 0;
        if let Some(takeover) = &mut self.takeover {
            takeover.has_state(up_to, update, &state);
        }
        let from = c.chain.end().filter(|_| update);
        if update && from.is_none() {
            // Somebody came meanwhile who lacks what the update goes on from.
            c.wanted = true;
            return no_update;
        }
        let completed = core::mem::take(&mut c.completed);
        // Whoever has not seen the one before may lack any reply. Where there is a log that may be
        // a member that came in with what its disk had, all requests and not all checkpoints; an
        // update is not for such a one.
        let seen_by_all = c.chain.end().is_some() && (update || !self.logged);
        let since = seen_by_all.then_some(completed.as_slice());
        let since = if canary!(CheckpointsWithoutReplies) { Some([].as_slice()) } else { since };
        let replies = self.retention.replies(since);
        if update {
            c.chain.go_on(up_to, state.clone());
        } else {
            c.chain.begin(up_to);
            c.missed_whole |= !c.joiners.is_empty();
        }
        // Whoever joined behind it cannot use it; and as in `take_duty`, what is replied while the
        // others are away is on this member's own disk with the next whole state only.
        if up_to.count < c.joined_at || (self.logged && !c.audience) {
            c.chain.break_off();
        }
        let bytes = Checkpoint { from, up_to, replies, state }.encode();
        c.sending.push_back(Sending { number, up_to: up_to.count, bytes, next: 0 });
        let refused = joiner.filter(|joiner| !self.give_updates(*joiner, up_to));
        Some(Consequence::Send { refused })
    }

    /// Pieces of the checkpoint to send now, and whose they are: the first ones, or one more
    /// because one of that number was delivered.
    pub(crate) fn checkpoint_pieces(
        &mut self,
        delivered: Option<u64>,
    ) -> Option<(Source, Vec<CheckpointPiece>)> {
        let attempt = self.attempt()?;
        let Sending { number, bytes, next, .. } = self.checkpoints.sending.front_mut()?;
        let is_due = delivered.map_or(*next == 0, |delivered| delivered == *number);
        if !is_due {
            return None;
        }
        let source = Source { leader: self.me, attempt, number: *number };
        Some((source, CheckpointPiece::next(bytes, next, delivered.is_none())))
    }

    /// The last piece was delivered: the next one may go.
    pub(crate) fn checkpoint_sent(&mut self, sent: u64) {
        let is_it = |sending: &mut Sending| sending.number == sent;
        if let Some(sending) = self.checkpoints.sending.pop_front_if(is_it) {
            self.statements.shared(sending.up_to);
        }
    }

    // -- the others -------------------------------------------------------------------------

    /// A piece of the leader's checkpoint was delivered. `odd`: the last request that had no reply
    /// of those behind what it is given to come in with; what the leader did with it, only the
    /// leader's state tells.
    pub(crate) fn take_checkpoint(
        &mut self,
        source: Source,
        piece: &CheckpointPiece,
        odd: Option<u64>,
    ) {
        let takes = match &self.stage {
            Stage::Serving { .. } => !self.duty.executes(),
            // A state is on its way; a second one beside it would be too much.
            Stage::Receiving { buffer, .. } | Stage::Restoring { buffer, .. } => {
                let has = |odd: u64| {
                    let mut states = buffer.iter().filter_map(BufferedDelivery::state_up_to);
                    states.any(|up_to| up_to >= odd)
                };
                odd.is_some_and(|odd| !has(odd))
                    || self.checkpoints.rule.updates && !piece.begins_whole()
            }
            _ => false,
        };
        if !takes {
            return;
        }
        let Some(whole) = self.assembly.add(source, piece) else { return };
        let Ok(checkpoint) = Checkpoint::decode(whole) else { return };
        match &mut self.stage {
            Stage::Receiving { buffer, bytes, .. } | Stage::Restoring { buffer, bytes, .. } => {
                *bytes += checkpoint.state.len();
                buffer.push_back(BufferedDelivery::Checkpoint(checkpoint));
            }
            _ => self.apply_checkpoint(checkpoint),
        }
    }

    /// A checkpoint is there as a whole.
    pub(super) fn apply_checkpoint(&mut self, checkpoint: Checkpoint) {
        if self.duty.executes() {
            return;
        }
        let Checkpoint { from, up_to, replies, state } = checkpoint;
        let mine = self.checkpoint_held();
        let fits = from.is_none_or(|from| from == mine) || canary!(UpdatesAnything);
        if up_to.count < mine.count || !fits {
            return;
        }
        for (key, reply) in replies {
            // The leader has answered those who wait, or whoever follows it is asked again.
            let _ = self.retention.complete(&key, reply);
        }
        self.log.drop_up_to(up_to.count);
        self.statements.shared(up_to.count);
        // A server that is not wanted any more has the state that an update goes on from.
        let by_server = self.duty == Duty::StandBy || from.is_some();
        if self.base.is_none() && by_server {
            let purpose = if from.is_some() { Restore::Update } else { Restore::Base };
            self.seen = up_to;
            if purpose == Restore::Base {
                self.executor.forget_last_requests();
            }
            self.executor.push(Job::Restore { state, purpose });
        } else if from.is_none() {
            self.base = Some(Base { at: up_to, state: Some(state), updates: Vec::new() });
        } else if let Some(base) = &mut self.base {
            base.at = up_to;
            base.updates.push(state);
        }
    }
}
