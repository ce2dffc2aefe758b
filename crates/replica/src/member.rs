//! The local member of a group: its stage, its server, what it has executed.
//!
//! What it is not: how it comes in and is cut off, which is `entry`, what a member does that does
//! not execute, which is `standby`, and how states travel, which is `transfers`. Invariant:
//! requests reach the executor in delivery order, each key once; a member that is not sure of its
//! server's state executes nothing.

mod archive;
mod backup;
mod calls;
mod deferred;
mod endings;
mod entry;
mod giving;
mod log_snapshot;
mod reads;
mod recovery;
mod reentrant;
mod settled;
mod standby;
mod takeover;
mod transfers;
mod updates;
mod voting;

use self::archive::Replays;
use self::backup::Backups;
pub(crate) use self::calls::CallerState;
pub(crate) use self::endings::Word;
use self::entry::Tries;
use self::giving::Giving;
use self::settled::Recipient;
use self::transfers::ReceivedStates;
pub(crate) use self::voting::Comparison;
use self::voting::Voting;
use crate::calls::arrived::Arrived;
use crate::calls::reads::ReadId;
use crate::output::{Returned, ServerCommand};
use crate::server::backup::Captured;
use crate::server::executor::{Call, Executor, Job, Outcome, Restore, Returning, Served};
use crate::server::recent::Recent;
use crate::state::passive::{Assembly, Base, Checkpoint, Checkpointer, Logged, RequestLog};
use crate::state::retention::{Admission, Retention};
use crate::state::transfer::Incoming;
use crate::table::DownReason;
use crate::table::disk_census::DiskState;
use crate::table::moment::Moment;
use crate::words::config::GroupConfig;
use crate::words::history::History;
use crate::words::ids::{Attempt, ChannelId, GatewayKey, RequestKey};
use crate::words::style::Duty;
use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId, canary};
pub(crate) use transfers::Sent;

/// Requests and bytes that may wait for the state; a longer transfer starts over.
const BUFFERED_MAX: usize = 200_000;
const BUFFERED_BYTES_MAX: usize = 512 << 20;
/// How long a member waits before it asks again after its donor could not give its state; twice as
/// long each time, up to the second.
const ASK_AGAIN: Duration = Duration::from_millis(500);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(30);

/// How long is waited after so many failures in a row.
fn ask_again_after(failures: u32) -> Duration {
    ASK_AGAIN.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(ASK_AGAIN_MAX)
}

/// Where the member stands, as seen by its own node.
enum Stage {
    /// No server runs.
    NoServer,
    /// A server runs; the group does not know. `claim`: what the server has surely executed.
    Ready { claim: Option<History>, not_before: Instant },
    /// Join was submitted, and has not been delivered yet.
    Asked { attempt: Attempt, claim: Option<History> },
    /// The group is sending what it lacks; requests are kept meanwhile.
    /// `joined_at`: what the group had been delivered when it asked.
    Receiving {
        attempt: Attempt,
        joined_at: History,
        wanted: Wanted,
        incoming: Box<Incoming>,
        buffer: VecDeque<BufferedDelivery>,
        bytes: usize,
    },
    /// `set_state` runs.
    Restoring {
        attempt: Attempt,
        retention: Retention,
        buffer: VecDeque<BufferedDelivery>,
        bytes: usize,
    },
    /// Executes; in the group, or about to be (it replays).
    Serving { attempt: Attempt },
    /// The server runs, but cannot take part.
    Out { claim: Option<History> },
}

/// What a member that joins is being given.
#[derive(Clone, Copy)]
enum Wanted {
    /// A state. `claim`: see [`Stage::Ready`], if it must be that of a server which has executed
    /// nothing.
    State { claim: Option<History> },
    /// The requests behind those that its server has executed, which is this.
    Requests { behind: History },
    /// The updates behind the checkpoint whose state it has kept. `claim`: see [`Stage::Ready`].
    Updates { claim: Option<History> },
}

/// What was delivered to a member that joins.
enum BufferedDelivery {
    Request(Arrived),
    /// The last piece of a checkpoint.
    Checkpoint(Checkpoint),
}

impl BufferedDelivery {
    /// The requests that are in the state that it is, if it is a whole one.
    fn state_up_to(&self) -> Option<u64> {
        match self {
            Self::Checkpoint(checkpoint) if checkpoint.from.is_none() => {
                Some(checkpoint.up_to.count)
            }
            Self::Checkpoint(_) | Self::Request(_) => None,
        }
    }
}

/// What the group must do after something happened at the member.
pub(crate) enum Consequence {
    /// A request was executed: these gateways wait for the reply.
    Answer(Vec<GatewayKey>, Option<Bytes>),
    /// A read was executed.
    Read(ReadId, Option<Bytes>),
    /// A read has ended without a reply of the server; what its client is told, if nobody else is
    /// to execute it.
    ReadEnded(ReadId, Option<Bytes>),
    /// The server has had a request for too long that others have answered.
    Overdue,
    /// `get_state` failed.
    CannotGive { joiner: NodeId, attempt: Attempt },
    /// The updates since the state that it has kept are not to be had.
    CannotUpdate(Returning),
    /// The group has executed more than is kept for a replay.
    CannotReplay { joiner: NodeId, attempt: Attempt },
    /// It succeeded, but the state is larger than any that is passed on.
    TooMuch { joiner: NodeId, attempt: Attempt },
    /// What came is no state to go on with; the server has not seen it.
    Useless(Attempt, DownReason),
    /// The state is in; the rest is being replayed.
    Caught { attempt: Attempt },
    /// Something came of a read beside the request in which the server waits.
    Reentrant(crate::calls::reentrant::Served),
    /// A request was executed, and its reply is not known to be right.
    Held,
    /// What an operator waits for.
    BackedUp(Captured),
    /// A checkpoint is there: send its pieces. `refused`: it was not enough for this one.
    Send { refused: Option<Returning> },
    /// The server is lost.
    Lost(Option<Attempt>, DownReason),
    /// The server is lost, and had nothing that is not kept here.
    Replace(DownReason),
}

/// See the module's text.
pub(crate) struct Member {
    stage: Stage,
    pub(crate) retention: Retention,
    executor: Executor,
    giving: Giving,
    backups: Backups,
    /// This node.
    me: NodeId,
    next_attempt: Attempt,
    server: Server,
    duty: Duty,
    /// What was delivered and is not for the server now.
    log: RequestLog,
    /// What the server lacks that the log goes on from, if it has not seen it.
    base: Option<Base>,
    /// The base that its server is being given, if that has executed nothing behind it yet.
    given: Option<Box<Base>>,
    /// What it executes from, while its server is not through with what it took over.
    takeover: Option<Box<takeover::Takeover>>,
    /// No other member is in, as far as the group knows.
    nobody_else: bool,
    /// The requests that the group has delivered, as far as this member was told of them.
    delivered: History,
    /// Of these, those that the server has seen, or that are queued for it.
    seen: History,
    /// While it is not in: base or server have the state of this checkpoint, and nothing behind it.
    held_checkpoint: Option<History>,
    /// It can come back with that.
    keeps: bool,
    checkpoints: Checkpointer,
    assembly: Assembly,
    /// Base and log are what was found on the disk, and the server has seen none of it.
    recovered: bool,
    /// Of a durable group: what that is.
    disk_state: DiskState,
    /// Members may come in with requests that their disks kept for them.
    durable: bool,
    /// They may also do so where another group of the domain is durable.
    logged: bool,
    states: ReceivedStates,
    /// The log snapshot that is being made.
    snapshot: Option<Box<log_snapshot::PendingSnapshot>>,
    voting: Voting,
    replays: Replays,
    /// Who joins is given what is remembered, and no state.
    by_application: bool,
    /// A server that has executed something is not to be given a state.
    wants_fresh_servers: bool,
    /// Its server calls other groups.
    calls_others: bool,
    statements: endings::Statements,
    /// Somebody else starts and ends its server, which can show whether it is the one that it was.
    is_foreign: bool,
    left: Option<Box<endings::Left>>,
    tries: Tries,
}

/// The member's server process, as far as it is known here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Server {
    Absent,
    /// It was asked for.
    Starting,
    /// So it was, in the place of one whose end is still to be heard of.
    Replacing,
    Up,
}

impl Member {
    pub(crate) fn new(config: &GroupConfig, me: NodeId, incarnation: u64) -> Self {
        let duty = Duty::of(config.style, false);
        Self {
            stage: Stage::NoServer,
            retention: Retention::default(),
            executor: Executor::new(config, me),
            giving: Giving::new(config.transfer),
            backups: Backups::default(),
            me,
            next_attempt: Attempt(incarnation),
            // Unless none is wanted from the beginning, the driver starts one by itself.
            server: if duty.needs_server() { Server::Starting } else { Server::Absent },
            duty,
            log: RequestLog::default(),
            base: None,
            given: None,
            takeover: None,
            nobody_else: false,
            delivered: History::EMPTY,
            seen: History::EMPTY,
            held_checkpoint: None,
            keeps: config.checkpoint.updates && !config.logged && config.calls.is_empty(),
            // A boot that goes on from a log leads under the same attempt as the one before.
            checkpoints: Checkpointer::new(config.checkpoint, incarnation),
            assembly: Assembly::default(),
            recovered: false,
            disk_state: DiskState::NotLooked,
            durable: config.durable,
            logged: config.logged,
            states: ReceivedStates::default(),
            snapshot: None,
            voting: Voting::default(),
            replays: Replays::new(config.replay_bytes_max),
            by_application: config.by_application,
            wants_fresh_servers: config.wants_fresh_servers(),
            calls_others: !config.calls.is_empty(),
            statements: endings::Statements::default(),
            is_foreign: config.foreign && config.state_object.is_some(),
            left: None,
            tries: Tries::default(),
        }
    }

    /// Its group is this from here on.
    pub(crate) fn reconfigure(&mut self, config: &GroupConfig) {
        self.giving.set_rule(config.transfer);
        self.checkpoints.rule = config.checkpoint;
        self.logged = config.logged;
        self.keeps = config.checkpoint.updates && !config.logged && config.calls.is_empty();
        self.executor.reconfigure(config, self.me);
    }

    /// The last try that it made.
    pub(crate) const fn last_attempt(&self) -> Attempt {
        self.next_attempt
    }

    pub(crate) fn stage_text(&self) -> &'static str {
        match self.stage {
            Stage::NoServer => "no server",
            Stage::Ready { .. } => "ready",
            Stage::Asked { .. } => "asked to join",
            Stage::Receiving { .. } => "receiving state",
            Stage::Restoring { .. } => "restoring state",
            Stage::Serving { .. }
                if self.duty.needs_server() && self.server != Server::Up
                    || self.duty.executes() && self.base.is_some() =>
            {
                "starting its server"
            }
            Stage::Serving { .. } if !self.duty.executes() => "standing by",
            Stage::Serving { .. } => "serving",
            Stage::Out { .. } => "out",
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.executor.queued()
    }

    /// When something must be looked at: a hung server, a checkpoint that is due, or a time to ask
    /// again.
    pub(crate) fn deadline(&self, in_primary: bool) -> Option<Instant> {
        let ask = match self.stage {
            Stage::Ready { .. } if self.needs_its_server() || self.backups.is_restoring() => None,
            Stage::Ready { .. } if self.waits_for_proof() => None,
            // What its server still finishes, its own deadline watches over.
            Stage::Ready { claim, not_before }
                if (claim.is_some() || self.held_checkpoint.is_some()) && !self.may_ask() =>
            {
                self.is_slow_at().map(|at| at.max(not_before)).filter(|_| in_primary)
            }
            Stage::Ready { not_before, .. } if in_primary => Some(not_before),
            _ => None,
        };
        let checkpoint = self.checkpoint_at().filter(|_| in_primary);
        let reentrant = self.executor.reentrant_deadline();
        let others = [self.transfer_at(), self.executor.deadline(), reentrant];
        [ask, checkpoint].into_iter().chain(others).flatten().min()
    }

    /// The server accepts connections.
    /// `fresh`: it has surely executed nothing yet.
    pub(crate) fn server_up(
        &mut self,
        fresh: bool,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Consequence> {
        let is_awaited = matches!(self.server, Server::Starting | Server::Replacing);
        if is_awaited && !matches!(self.stage, Stage::NoServer) {
            self.server = Server::Up;
            self.executor.watch(out);
            self.go_on();
            return None;
        }
        // It may have replaced one whose end was not noticed.
        let consequence = self.server_lost(DownReason::ServerExited);
        self.executor.reset();
        self.retention.replace_by(Retention::default());
        self.forget();
        self.server = Server::Up;
        self.replays.begin_anew();
        let claim = fresh.then_some(History::EMPTY);
        self.stage = Stage::Ready { claim, not_before: Instant::ZERO };
        self.executor.watch(out);
        consequence
    }

    /// The server is gone.
    pub(crate) fn server_lost(&mut self, reason: DownReason) -> Option<Consequence> {
        if self.server == Server::Absent {
            return None;
        }
        let attempt = self.attempt();
        if reason == DownReason::ServerHung && self.is_joining() {
            self.was_too_slow();
        }
        self.leaves(reason);
        // The driver starts it again, unless it is told that none is wanted.
        self.server = Server::Starting;
        self.executor.reset();
        self.executor.forget_not_given();
        self.forget();
        if matches!(self.stage, Stage::NoServer) {
            return None;
        }
        self.stage = Stage::NoServer;
        Some(Consequence::Lost(attempt, reason))
    }

    /// Its state, or what it is to execute for that, is on its way.
    fn is_joining(&self) -> bool {
        matches!(self.stage, Stage::Receiving { .. } | Stage::Restoring { .. })
    }

    /// What was kept for others, and what the group has delivered since some state, is void.
    fn forget(&mut self) {
        self.giving.forget();
        self.backups.forget();
        self.log = RequestLog::default();
        (self.base, self.given, self.held_checkpoint) = (None, None, None);
        self.takeover = None;
        self.recovered = false;
        self.states.keep(None);
        self.snapshot = None;
        self.disk_state = DiskState::NotLooked;
        self.assembly = Assembly::default();
        self.checkpoints.begin_anew();
        self.voting.begin_anew(self.delivered.count);
        self.statements.begin_anew();
        self.executor.hold(BTreeSet::new());
        if self.server != Server::Up {
            // Whichever server it will have has executed nothing.
            self.retention.replace_by(Retention::default());
        }
    }

    /// The try that the group knows, or is about to know, of this member.
    fn attempt(&self) -> Option<Attempt> {
        match self.stage {
            Stage::Asked { attempt, .. }
            | Stage::Receiving { attempt, .. }
            | Stage::Restoring { attempt, .. }
            | Stage::Serving { attempt } => Some(attempt),
            Stage::NoServer | Stage::Ready { .. } | Stage::Out { .. } => None,
        }
    }

    /// The latest time that its server can have been told, TimeT.
    pub(crate) fn told(&self) -> u64 {
        self.executor.told()
    }

    /// A delivered request. `Some` if its logged reply should be sent again.
    pub(crate) fn accept(&mut self, arrived: Arrived) -> Accepted {
        match &mut self.stage {
            Stage::Receiving { buffer, bytes, attempt, .. }
            | Stage::Restoring { buffer, bytes, attempt, .. } => {
                *bytes += arrived.giop.len();
                buffer.push_back(BufferedDelivery::Request(arrived));
                if buffer.len() > BUFFERED_MAX || *bytes > BUFFERED_BYTES_MAX {
                    return Accepted::Overflow(*attempt, DownReason::StateUnavailable);
                }
                Accepted::Nothing
            }
            Stage::Serving { attempt } => {
                let attempt = *attempt;
                let accepted = self.admit(arrived);
                if self.log.is_overfull() {
                    return Accepted::Overflow(attempt, DownReason::LogOverflow);
                }
                accepted
            }
            _ => Accepted::Nothing,
        }
    }

    fn admit(&mut self, arrived: Arrived) -> Accepted {
        let Arrived { key, gateway, history, moment, giop, code_sets, awaited, .. } = arrived;
        let index = history.count;
        let (expiry, clock, full) = (arrived.expiry, arrived.clock, arrived.full);
        self.retention.release(gateway.node, gateway.incarnation, &arrived.released);
        self.retention.expire(clock);
        if let Some((caller, below)) = arrived.calls_below {
            let early = if canary!(ForgetsCallsEarly) { 64 } else { 0 };
            self.retention.release_calls(caller, below + early);
        }
        self.delivered = history;
        if self.executes_now() {
            self.seen = history;
        }
        if let Some(archive) = self.replays.archive() {
            archive.delivered(index);
        }
        match self.retention.admit(&key, gateway, expiry, full) {
            Admission::Execute => {
                self.voting.admitted(index);
                if let Some(archive) = self.replays.archive() {
                    archive.add(&key, moment, &giop, code_sets.as_ref());
                }
                if self.executes_now() {
                    // Nobody is answered before all have voted.
                    let awaited = awaited || self.voting.is_before();
                    if let Some(takeover) = &mut self.takeover {
                        let (key, giop) = (key.clone(), giop.clone());
                        let code_sets = code_sets.clone();
                        takeover.add(Logged::Request { history, moment, key, giop, code_sets });
                    }
                    let (call, moment) = (Call::Request(key, history), Some(moment));
                    self.executor.push(Job::Execute { call, moment, giop, code_sets, awaited });
                } else {
                    self.log.push(Logged::Request { history, moment, key, giop, code_sets });
                }
                self.checkpoints.since += u32::from(self.duty == Duty::Lead);
                Accepted::Nothing
            }
            Admission::Wait => Accepted::Waits,
            Admission::Answer(_) if self.voting.wait(&key, gateway) => Accepted::Waits,
            Admission::Answer(_) if self.statements.wait(&key, gateway) => Accepted::Waits,
            Admission::Answer(reply) => Accepted::Answer(gateway, reply),
            Admission::Refuse => Accepted::Refuse(gateway, key, giop),
            Admission::Taken => Accepted::Taken(gateway, key, giop),
            Admission::Forgotten => Accepted::Forgotten(gateway, giop),
        }
    }

    /// What the server may know of the request that it executes.
    pub(crate) fn moment(&self) -> Option<Moment> {
        self.executor.moment()
    }

    /// Whether the request is remembered.
    pub(crate) fn knows(&self, key: &RequestKey) -> bool {
        self.retention.knows(key)
    }

    /// Whose request that is.
    pub(crate) fn caller(&self) -> Option<u64> {
        self.executor.caller()
    }

    /// What the server has done since this node started.
    pub(crate) fn served(&self) -> Served {
        self.executor.served()
    }

    /// Starts what can be started.
    pub(crate) fn step(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        self.retention.free_some();
        self.voting.close(self.delivered.count);
        if self.base.is_some() {
            self.go_on();
        }
        self.mind_server(out);
        self.begin_checkpoint(now);
        let serves = matches!(self.stage, Stage::Serving { .. });
        self.executor.stand_by(serves && !self.duty.executes());
        self.executor.step(now, out);
    }

    pub(crate) fn connected(&mut self, channel: ChannelId, out: &mut Vec<ServerCommand>) {
        self.executor.connected(channel, out);
    }

    /// A connection to the server ended, or could not be made.
    pub(crate) fn disconnected(
        &mut self,
        channel: ChannelId,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Consequence> {
        let ended = self.executor.disconnected(channel, out);
        ended.err().and_then(|reason| self.server_failed(reason))
    }

    /// Whether something ended without bytes of the server, and what the group must do because of
    /// that.
    pub(crate) fn next_end(
        &mut self,
        now: Instant,
        out: &mut Vec<ServerCommand>,
        recent: &mut Recent,
    ) -> (bool, Option<Consequence>) {
        let mut any = false;
        loop {
            let outcome = match self.executor.next_end(now, out) {
                Err(reason) => return (true, self.server_failed(reason)),
                Ok(None) => return (any, None),
                Ok(Some(outcome)) => outcome,
            };
            any = true;
            if let Some(consequence) = self.note_outcome(outcome, recent) {
                return (true, Some(consequence));
            }
        }
    }

    /// Bytes from the server; [`Self::next_consequence`] says what comes of them.
    pub(crate) fn received(&mut self, came: Option<Instant>, channel: ChannelId, bytes: &[u8]) {
        self.executor.received(came, channel, bytes);
    }

    /// Whether a reply of the server was seen whose padding is not cleared, since the last look.
    pub(crate) fn was_uncleared(&mut self) -> bool {
        self.executor.was_uncleared()
    }

    /// Replies of the server with references in them that came since the last look.
    pub(crate) fn returned(&mut self) -> Vec<Returned> {
        self.executor.returned()
    }

    /// What the group must do after something came on `channel`, one thing after the other.
    pub(crate) fn next_consequence(
        &mut self,
        channel: ChannelId,
        out: &mut Vec<ServerCommand>,
        recent: &mut Recent,
    ) -> Option<Consequence> {
        loop {
            match self.executor.next_outcome(channel, out) {
                Err(reason) => return self.server_failed(reason),
                Ok(outcome) => {
                    if let Some(consequence) = self.note_outcome(outcome?, recent) {
                        return Some(consequence);
                    }
                }
            }
        }
    }

    fn note_outcome(&mut self, outcome: Outcome, recent: &mut Recent) -> Option<Consequence> {
        if let Outcome::Executed { call: Call::Request(key, _), reply, reply_summary } = &outcome {
            recent.executed(key, reply.as_ref(), *reply_summary);
        }
        self.completed(outcome)
    }

    fn completed(&mut self, outcome: Outcome) -> Option<Consequence> {
        match outcome {
            Outcome::Executed { call: Call::Read(id), reply, .. } => {
                matches!(self.stage, Stage::Serving { .. }).then_some(Consequence::Read(id, reply))
            }
            Outcome::Executed { call: Call::Again(key), reply, .. } => {
                self.replayed(&key, reply);
                self.all_replayed()
            }
            Outcome::Executed { call: Call::Request(key, history), reply, reply_summary } => {
                self.takeover.take_if(|takeover| takeover.is_over_with(history));
                let waiters = self.retention.complete(&key, reply.clone());
                let said = (reply.as_ref(), reply_summary);
                let is_held = self.voting.executed((history.count, &key), said, &waiters);
                if !is_held && self.withholds(history.count) {
                    self.statements.withhold(key.clone(), waiters, reply);
                    self.checkpoints.completed.push(key);
                    return Some(Consequence::Held);
                }
                if self.duty == Duty::Lead && self.checkpoints.audience {
                    self.checkpoints.completed.push(key);
                }
                Some(if is_held { Consequence::Held } else { Consequence::Answer(waiters, reply) })
            }
            Outcome::Captured { purpose, state } => self.captured(purpose, state),
            Outcome::Restored { purpose: Restore::Join { attempt }, accepted } => {
                self.restored(attempt, accepted)
            }
            Outcome::NoReply { key, at, how } => self.has_no_reply((key, at), how),
            Outcome::Late { key, at, report } => {
                self.has_told_late((key, at), report);
                None
            }
            Outcome::ReadEnded { id, reply } => {
                let serves = matches!(self.stage, Stage::Serving { .. });
                serves.then_some(Consequence::ReadEnded(id, reply))
            }
            Outcome::Overdue => Some(Consequence::Overdue),
            Outcome::Reentrant(served) => Some(Consequence::Reentrant(served)),
            Outcome::Restored { accepted: true, .. } => {
                self.has_taken();
                None
            }
            Outcome::Restored { accepted: false, .. } => {
                self.server_failed(DownReason::StateRefused)
            }
        }
    }

    fn restored(&mut self, attempt: Attempt, accepted: bool) -> Option<Consequence> {
        if !matches!(self.stage, Stage::Restoring { attempt: a, .. } if a == attempt) {
            return None;
        }
        if !accepted {
            return self.server_lost(DownReason::StateRefused);
        }
        let stage = core::mem::replace(&mut self.stage, Stage::Serving { attempt });
        let Stage::Restoring { retention, buffer, .. } = stage else {
            unreachable!("just matched");
        };
        Some(self.catch_up(attempt, retention, buffer))
    }

    /// The state is where it belongs: on to what was delivered since.
    fn catch_up(
        &mut self,
        attempt: Attempt,
        retention: Retention,
        buffer: VecDeque<BufferedDelivery>,
    ) -> Consequence {
        self.stage = Stage::Serving { attempt };
        self.retention.replace_by(retention);
        self.go_on_with(attempt, buffer)
    }

    /// On to what was delivered since the join.
    fn go_on_with(&mut self, attempt: Attempt, buffer: VecDeque<BufferedDelivery>) -> Consequence {
        self.has_come_in();
        for behind in buffer.into_iter().skip(usize::from(canary!(ReplaysOffByOne))) {
            match behind {
                // Not in yet, so another member answers: a logged reply has nowhere to go from
                // here.
                BufferedDelivery::Request(arrived) => drop(self.admit(arrived)),
                BufferedDelivery::Checkpoint(checkpoint) => self.apply_checkpoint(checkpoint),
            }
        }
        Consequence::Caught { attempt }
    }
}

/// What a member says when it asks to join.
pub(crate) struct Asks {
    pub(crate) attempt: Attempt,
    /// What its server has surely executed.
    pub(crate) claim: Option<History>,
    /// So many ends of requests its server has heard of.
    pub(crate) ends: u64,
    /// It waits for no end of any of it.
    pub(crate) is_through: bool,
    /// The checkpoint whose state it has kept.
    pub(crate) held_checkpoint: Option<History>,
    pub(crate) disk_state: DiskState,
}

/// What became of a delivered request at the local member.
pub(crate) enum Accepted {
    /// It is queued, buffered, or none of this member's business.
    Nothing,
    /// It repeats one whose reply is not known yet.
    Waits,
    /// It was executed before: this is the reply.
    Answer(GatewayKey, Option<Bytes>),
    /// There is no room to remember it; the GIOP request is given back.
    Refuse(GatewayKey, RequestKey, Bytes),
    /// It has the name of another request; the same.
    Taken(GatewayKey, RequestKey, Bytes),
    /// It came before, and what became of it is forgotten; the same.
    Forgotten(GatewayKey, Bytes),
    /// Too much came while the state, or a checkpoint, was on its way.
    Overflow(Attempt, DownReason),
}
