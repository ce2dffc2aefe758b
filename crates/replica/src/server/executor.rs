//! Talks to one member's server over plain GIOP, with as many calls outstanding as its group lets
//! it have.
//!
//! What it is not: it does not decide what to execute, nor who answers. Invariants: which calls are
//! outstanding together is the [`schedule`]'s word, and all of them share one channel; oneways are
//! sent as calls with a reply, so that what must wait for them can.

mod aside;
mod calls;
mod channel;
mod deferred;
mod ends;
mod gate;
mod jobs;
mod lateness;
mod pieces;
mod probe;
mod reentrant;
mod returned;
mod schedule;
mod states;
mod witness;

use self::channel::Channel;
pub use self::ends::ServerFigures;
use self::ends::When;
pub(crate) use self::jobs::{Call, Capture, Job, Outcome, Restore, Returning};
pub(crate) use self::lateness::Waiting;
use self::pieces::Pieces;
pub(crate) use self::reentrant::Position;
pub(crate) use self::schedule::CALLS_MAX;
use self::schedule::Schedule;
pub use self::states::{Refusal, StateRefused};
use crate::calls::reads::ReadId;
use crate::calls::refusal;
use crate::output::{Returned, ServerCommand};
use crate::state::checkpoint;
use crate::table::DownReason;
use crate::table::endings::{NoReply, Report};
use crate::table::moment::Moment;
use crate::words::config::GroupConfig;
use crate::words::ids::ChannelId;
use crate::words::reply_summary::ReplySummary;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId, canary};
use quorba_giop::{Body, FrameError, Message, Reply};

/// Code-set negotiations that one server's clients may differ in at the same time.
const CHANNELS_MAX: usize = 8;

/// A job that is with the server.
struct Outstanding {
    job: Job,
    oneway: bool,
    request_id: u32,
    channel: ChannelId,
    /// `None` until the calls before it, which the server executes first, have ended.
    deadline: Option<Instant>,
    /// The member was detached meanwhile: the reply only says that the server is free again.
    abandoned: bool,
    /// It got no reply.
    odd: Option<ends::Odd>,
    late: lateness::Lateness,
}

/// Requests that the server has answered, and how long it worked on them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Served {
    /// How many.
    pub requests: u64,
    /// From when the server got to each until its reply came, together.
    pub time: Duration,
}

/// See the module's text.
pub(crate) struct Executor {
    /// The object key of clients, and what the server has in its place.
    own_key: Option<(Bytes, Bytes)>,
    state_object: Option<Bytes>,
    reply_within: Duration,
    /// Larger replies are replaced by an exception.
    reply_bytes_max: usize,
    /// Larger messages are not read to their end.
    message_bytes_max: usize,
    schedule: Schedule,
    /// Calls that ended together with another one.
    ended: VecDeque<Outcome>,
    returned: returned::Replies,
    channels: Vec<Channel>,
    next_channel: u32,
    next_request_id: u32,
    epoch: u64,
    /// When bytes came last, if that is known.
    heard_at: Option<Instant>,
    served: Served,
    /// The latest time, TimeT, that requests for this and earlier servers of the member had.
    told: u64,
    calls: calls::Calls,
    reentrant: reentrant::Reentrant,
    aside: aside::Aside,
    ends: ends::Ends,
    /// Nobody else executes what this server does.
    alone: bool,
    /// Its member takes no part in the group, and others do.
    apart: bool,
    /// How many times the usual time a call has then that others have answered.
    patience_factor: u32,
    /// What it executes is nobody else's business: a group without a state.
    stateless: bool,
    abandon: Option<Duration>,
    probe: Option<Box<probe::Probe>>,
    witness: witness::Witness,
    gate: gate::Gate,
    calls_others: bool,
    /// The server is still at a request that was given up, on this channel, and may call others in
    /// it. Nothing else starts meanwhile: nobody could tell their calls apart.
    straggler: Option<Box<ends::Straggler>>,
}

impl Executor {
    pub(crate) fn new(config: &GroupConfig, me: NodeId) -> Self {
        Self {
            own_key: config.own_key(me),
            state_object: config.state_object.clone(),
            reply_within: config.server_reply,
            reply_bytes_max: config.reply_bytes_max,
            message_bytes_max: config.reply_bytes_max.max(config.state_bytes_max),
            schedule: Schedule::new(config.concurrency),
            ended: VecDeque::new(),
            returned: returned::Replies::default(),
            channels: Vec::new(),
            next_channel: 0,
            next_request_id: 0,
            epoch: 0,
            heard_at: None,
            served: Served::default(),
            told: 0,
            calls: calls::Calls::default(),
            reentrant: reentrant::Reentrant::default(),
            aside: aside::Aside::new(config.reads.is_aside()),
            ends: ends::Ends::new(config.foreign),
            alone: false,
            apart: false,
            patience_factor: 1,
            stateless: false,
            abandon: config.abandon,
            probe: None,
            witness: witness::Witness::default(),
            gate: gate::Gate::default(),
            calls_others: !config.calls.is_empty(),
            straggler: None,
        }
    }

    /// Its group is this from here on.
    pub(crate) fn reconfigure(&mut self, config: &GroupConfig, me: NodeId) {
        self.own_key = config.own_key(me);
        self.reply_within = config.server_reply;
        self.abandon = config.abandon;
        self.aside.use_it(config.reads.is_aside());
    }

    /// Nothing is queued and nothing runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.schedule.is_idle()
    }

    pub(crate) fn served(&self) -> Served {
        self.served
    }

    /// The moment of the request that the server executes, if that is known: with several calls
    /// at a time only the server knows which of them it is at. One that it executes beside the
    /// request in which it waits has none.
    pub(crate) fn moment(&self) -> Option<Moment> {
        if !self.schedule.is_sequential() || self.reentrant.is_running() {
            return None;
        }
        match &self.schedule.oldest()?.job {
            Job::Execute { moment, .. } => *moment,
            Job::Capture(_) | Job::Restore { .. } => None,
        }
    }

    /// Whose request it is, if its moment is known: see `RequestKey::caller`.
    pub(crate) fn caller(&self) -> Option<u64> {
        self.moment()?;
        match &self.schedule.oldest()?.job {
            Job::Execute { call: Call::Request(key, _) | Call::Again(key), .. } => {
                Some(key.caller())
            }
            _ => None,
        }
    }

    /// The latest time that a server of the member can have been told, TimeT.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    pub(crate) fn queued(&self) -> usize {
        self.schedule.queued()
    }

    /// When something must be said of the call that the server has had for longest, or a connection
    /// is to be made.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let straggler = self.straggler_until();
        let rooms = [self.late_at(), self.ends_deadline(), self.probe_at(), self.gate_at()];
        let rooms = rooms.into_iter().chain([straggler, self.aside.deadline()]);
        rooms.into_iter().flatten().min()
    }

    pub(crate) fn push(&mut self, job: Job) {
        if let Job::Execute { moment: Some(moment), .. } = &job {
            self.told = self.told.max(moment.time);
        }
        self.schedule.push(job);
    }

    /// In front of all that has not begun.
    pub(crate) fn push_first(&mut self, job: Job) {
        self.schedule.push_first(job);
    }

    pub(crate) fn extend(&mut self, jobs: impl IntoIterator<Item = Job>) {
        jobs.into_iter().for_each(|job| self.push(job));
    }

    /// Opens the default channel, so that the death of an idle server is seen.
    pub(crate) fn watch(&mut self, out: &mut Vec<ServerCommand>) {
        if self.channels.is_empty() {
            self.connect(None, out);
        }
        self.watch_aside(out);
    }

    /// It changes when jobs are forgotten.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether a state is to be taken that `is_such`.
    pub(crate) fn is_to(&self, is_such: impl Fn(&Capture) -> bool) -> bool {
        self.schedule.has_job(|job| matches!(job, Job::Capture(capture) if is_such(capture)))
    }

    /// What the server was to do, in its order, with what it is at.
    pub(crate) fn take_back(&mut self) -> Vec<Job> {
        self.schedule.drain()
    }

    /// Forgets everything: the server is gone.
    pub(crate) fn reset(&mut self) {
        self.epoch += 1;
        self.schedule.clear();
        self.ended.clear();
        self.channels.clear();
        self.calls.begin_anew();
        self.reentrant.reset();
        self.aside.reset();
        self.ends.begin_anew();
        self.probe = None;
        self.witness = witness::Witness::default();
        self.gate = gate::Gate::default();
        self.straggler = None;
    }

    /// Forgets the queue; calls that run are waited for, but their results count for nothing.
    pub(crate) fn abandon(&mut self) {
        self.epoch += 1;
        self.schedule.clear_queue();
        self.ended.clear();
        self.reentrant.abandon();
        self.aside.abandon();
        for call in self.schedule.outstanding_mut() {
            call.abandoned = true;
        }
    }

    /// Forgets what is for others, states and reads; what the group was delivered goes on.
    pub(crate) fn finish_requests(&mut self) {
        self.epoch += 1;
        self.reentrant.abandon();
        self.aside.abandon();
        self.schedule.retain_queue(|job| !job.is_for_others());
        for call in self.schedule.outstanding_mut() {
            call.abandoned |= call.job.is_for_others();
        }
    }

    /// Whether another member executes what this server was to: requests wait, if nothing waits for
    /// them, and the server comes to an end with what it is at. It is given a state in their place,
    /// or goes on when the member executes again.
    pub(crate) fn stand_by(&mut self, stands_by: bool) {
        self.schedule.stand_by(stands_by);
    }

    /// The member leads no more: nobody wants its checkpoints.
    pub(crate) fn forget_checkpoints(&mut self) {
        let is_own =
            |job: &Job| matches!(job, Job::Capture(Capture::Checkpoint { joiner: None, .. }));
        self.schedule.retain_queue(|job| !is_own(job));
    }

    /// The server is given a state that has these.
    pub(crate) fn forget_last_requests(&mut self) {
        self.schedule.drop_last_requests();
    }

    /// Forgets reads that have not begun; which these were.
    pub(crate) fn take_reads(&mut self) -> Vec<ReadId> {
        let mut taken: Vec<ReadId> = self.aside.take_waiting().collect();
        self.schedule.retain_queue(|job| match job {
            Job::Execute { call: Call::Read(id), .. } => {
                taken.push(*id);
                false
            }
            _ => true,
        });
        taken
    }

    /// Whether what the server does is of no account any more, and yet not over, and may change
    /// its state: what is for others does not.
    pub(crate) fn has_abandoned(&mut self) -> bool {
        let may_change = |call: &Outstanding| call.abandoned && !call.job.is_for_others();
        self.schedule.outstanding_mut().any(|call| may_change(call))
    }

    /// Starts the jobs that the server may have now.
    pub(crate) fn step(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        self.reentrant.close_stale(out);
        self.connect_due(now, out);
        self.step_aside(now, out);
        let deadline = now + self.reply_within;
        if let Some(oldest) = self.schedule.oldest_mut() {
            oldest.deadline.get_or_insert(deadline);
        }
        if self.starts_nothing() {
            return;
        }
        self.mind_gate(now);
        let is_spared = self.schedule.spares_requests();
        loop {
            let (ends, gate) = (&self.ends, &self.gate);
            let (is_busy, is_at_odd) = match ends.knows_any() {
                true => self.schedule.is_at(|job| ends.is_odd(job)),
                false => (false, false),
            };
            let waits = |job: &Job| {
                let waits = is_at_odd || is_busy && ends.is_odd(job);
                is_spared && job.request().is_some() || waits || ends.holds(job) || gate.holds(job)
            };
            let Some(job) = self.schedule.take(waits) else { break };
            match self.left_out(&job).or_else(|| self.without_state(&job)) {
                Some(skipped) => {
                    self.schedule.leave_out(&job);
                    self.ended.push_back(skipped);
                }
                None => self.start(deadline, job, out),
            }
        }
        self.note_waiting(now);
    }

    /// What comes of a call that no server may execute.
    fn left_out(&self, job: &Job) -> Option<Outcome> {
        let Job::Execute { call, giop, .. } = job else { return None };
        let end = self.ends.forbids(call)?;
        Some(self.not_executed(call.clone(), giop, is_oneway(giop), end))
    }

    /// What comes of it that the server's state is wanted where it has none to give: a joiner is
    /// given what is remembered of the calls until then, and that is all it takes.
    fn without_state(&self, job: &Job) -> Option<Outcome> {
        let Job::Capture(purpose) = job else { return None };
        let state = matches!(purpose, Capture::Join { .. }).then(Bytes::new);
        self.state_object.is_none().then_some(Outcome::Captured { purpose: *purpose, state })
    }

    fn start(&mut self, deadline: Instant, job: Job, out: &mut Vec<ServerCommand>) {
        assert!(!self.channels.is_empty(), "jobs come to a server that is up, see `watch`");
        let request_id = self.new_request_id();
        let index = self.channel_for(job.code_sets(), out);
        let channel = &mut self.channels[index];
        let state_object = self.state_object.as_ref();
        let (pieces, oneway) = message_for(&job, channel, state_object, request_id);
        let at_once = self.schedule.runs_side_by_side() || self.schedule.oldest().is_none();
        let deadline = at_once.then_some(deadline);
        channel.send(pieces, out);
        let channel = channel.id;
        self.calls.begin_anew();
        let (abandoned, odd, late) = (false, None, lateness::Lateness::default());
        let call = Outstanding { job, oneway, request_id, channel, deadline, abandoned, odd, late };
        self.schedule.started(call);
    }

    /// The place of the channel with these code sets. What is outstanding is on the same one, or
    /// there is nothing.
    fn channel_for(&mut self, code_sets: Option<&Bytes>, out: &mut Vec<ServerCommand>) -> usize {
        let found = self.channels.iter().position(|c| c.code_sets.as_ref() == code_sets);
        if let Some(index) = found {
            return index;
        }
        if self.channels.len() >= CHANNELS_MAX {
            // The oldest one beside the default: nothing is outstanding on it now.
            let oldest = self.channels.remove(1);
            out.push(ServerCommand::Close(oldest.id));
        }
        self.connect(code_sets.cloned(), out)
    }

    /// Asks for a channel, and says where it stands.
    fn connect(&mut self, code_sets: Option<Bytes>, out: &mut Vec<ServerCommand>) -> usize {
        let channel = self.open_channel(code_sets, self.message_bytes_max, out);
        // Most servers never have more than the first one.
        self.channels.reserve_exact(1);
        self.channels.push(channel);
        self.channels.len() - 1
    }

    /// Asks for a connection, for whatever it is.
    fn open_channel(
        &mut self,
        code_sets: Option<Bytes>,
        message_bytes_max: usize,
        out: &mut Vec<ServerCommand>,
    ) -> Channel {
        self.next_channel += 1;
        let id = ChannelId(self.next_channel);
        out.push(ServerCommand::Connect(id));
        Channel::new(id, code_sets, message_bytes_max, self.own_key.clone())
    }

    fn new_request_id(&mut self) -> u32 {
        self.next_request_id = self.next_request_id.wrapping_add(1);
        self.next_request_id
    }

    /// A connection that was asked for is there.
    pub(crate) fn connected(&mut self, channel: ChannelId, out: &mut Vec<ServerCommand>) {
        if let Some(channel) = self.channel(channel) {
            channel.opened(out);
        }
    }

    /// The channel of this name, whatever it is for.
    fn channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        if self.probe_channel(id).is_some() {
            return self.probe_channel(id);
        }
        let straggler = self.straggler.as_mut().map(|straggler| &mut straggler.channel);
        let straggler = straggler.filter(|channel| channel.id == id);
        let known = self.witness.channel(id).or(straggler).or(self.reentrant.channel(id));
        let known = known.or(self.aside.channel(id));
        known.or(self.channels.iter_mut().find(|c| c.id == id))
    }

    /// The next replies are looked at for padding that is not cleared.
    pub(crate) fn look_for_padding(&mut self) {
        self.returned.look_for_padding();
    }

    /// Whether such padding was seen since the last look.
    pub(crate) fn was_uncleared(&mut self) -> bool {
        self.returned.was_uncleared()
    }

    /// Replies with references in them that came since the last look.
    pub(crate) fn returned(&mut self) -> Vec<Returned> {
        self.returned.take()
    }

    /// Bytes from the server, which came at `came` if that is known; [`Self::next_outcome`] says
    /// what they end.
    pub(crate) fn received(&mut self, came: Option<Instant>, channel: ChannelId, bytes: &[u8]) {
        self.heard_at = came;
        if let Some(channel) = self.channel(channel) {
            channel.framer.push(bytes);
        }
    }

    /// What has ended with the bytes of `channel`, one after the other.
    pub(crate) fn next_outcome(
        &mut self,
        channel: ChannelId,
        out: &mut Vec<ServerCommand>,
    ) -> Result<Option<Outcome>, DownReason> {
        loop {
            if let Some(outcome) = self.ended.pop_front() {
                return Ok(Some(outcome));
            }
            if self.probe_heard(channel, out) {
                return Ok(None);
            }
            if self.straggler_heard(channel, out) {
                return Ok(None);
            }
            if let Some(is_over) = self.witness.heard(channel) {
                if is_over && self.witness.lost(channel) {
                    out.push(ServerCommand::Close(channel));
                }
                return Ok(None);
            }
            if let Some(served) = self.answered_reentrant(channel, out) {
                return Ok(Some(Outcome::Reentrant(served)));
            }
            if let Some(outcome) = self.heard_aside(channel, out) {
                return Ok(outcome);
            }
            let Some(index) = self.channels.iter().position(|c| c.id == channel) else {
                return Ok(None);
            };
            let message = match self.channels[index].framer.next() {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(None),
                Err(FrameError::TooLarge { .. } | FrameError::TooMuchBuffered { .. })
                    if self.owes_one_reply(channel) =>
                {
                    self.fail(index, refusal::reply_too_large, out);
                    continue;
                }
                Err(FrameError::UnexpectedFragment | FrameError::FragmentedTwice(_)) => {
                    // The next message begins where it should.
                    self.ends.drop_message();
                    continue;
                }
                Err(_) => {
                    self.break_off(index, NoReply::NotAReply, When::In(Duration::ZERO), out);
                    continue;
                }
            };
            self.take_message(index, &message, out)?;
        }
    }

    /// A whole message of the server.
    fn take_message(
        &mut self,
        index: usize,
        message: &Message,
        out: &mut Vec<ServerCommand>,
    ) -> Result<(), DownReason> {
        let channel = self.channels[index].id;
        match message.parse() {
            Ok(Body::Reply(reply)) => match self.finish(channel, &reply, message) {
                Finished::Outcome(outcome) => self.ended.extend(outcome),
                Finished::Nothing => self.ends.drop_message(),
                Finished::NotIt { out_of_order } => {
                    self.ends.is_out_of_order |= out_of_order;
                    self.break_off(index, NoReply::NotAReply, When::In(Duration::ZERO), out);
                }
            },
            Ok(Body::CloseConnection) => self.closed_gracefully(index, out)?,
            // The server cannot read what it was sent.
            Ok(Body::MessageError) => {
                self.break_off(index, NoReply::Rejected, When::In(Duration::ZERO), out);
            }
            Err(_) => self.break_off(index, NoReply::NotAReply, When::In(Duration::ZERO), out),
            Ok(Body::Request(request)) => self.refuse(channel, message, &request, out),
            Ok(Body::LocateRequest(request)) => {
                self.refuse_location(channel, message, request.request_id(), out);
            }
            // It answers nothing that was sent.
            Ok(_) => self.ends.drop_message(),
        }
        Ok(())
    }

    /// Whether exactly one call is with the server, on that channel: then it is the one that is
    /// meant by what names none.
    fn owes_one_reply(&self, channel: ChannelId) -> bool {
        self.schedule.outstanding_count() == 1
            && self.schedule.oldest().is_some_and(|oldest| oldest.channel == channel)
    }

    /// A reply to a call that others stand before is an error of the server: one that is declared
    /// to work in order and does not has perhaps done so in another order elsewhere.
    fn finish(&mut self, channel: ChannelId, reply: &Reply<'_>, message: &Message) -> Finished {
        let request_id = reply.request_id();
        let is_it = |c: &Outstanding| c.request_id == request_id && c.channel == channel;
        let Some(call) = self.schedule.end(is_it) else {
            // A second reply to what has ended answers nothing. An id that was never given out is
            // meant for what is with the server.
            let age = self.next_request_id.wrapping_sub(request_id);
            let out_of_order = self.schedule.outstanding().any(is_it);
            let has_ended = age < u32::MAX / 2 && !out_of_order;
            return if has_ended { Finished::Nothing } else { Finished::NotIt { out_of_order } };
        };
        self.ends.replied();
        self.calls.begin_anew();
        self.reentrant.abandon();
        if call.abandoned && !canary!(AbandonedCallCounts) {
            return Finished::Outcome(None);
        }
        self.note(&call);
        self.ends.note_reply(&call.job);
        let (bytes, oneway) = (message.bytes().clone(), call.oneway);
        Finished::Outcome(Some(match call.job {
            // What its caller was told stays; that this server does something else is said.
            Job::Execute { call: Call::Request(key, at), giop, .. }
                if let Some(end) = self.ends.of(&key) =>
            {
                let report = Report::Replied;
                self.ended.push_back(Outcome::Late { key: key.clone(), at, report });
                self.not_executed(Call::Request(key, at), &giop, oneway, end)
            }
            Job::Execute { call, .. } if oneway => Outcome::executed(call, None),
            Job::Execute { call, giop, .. } if bytes.len() <= self.reply_bytes_max => {
                let reply_summary = ReplySummary::read(reply);
                self.returned.look((&call, &giop), (&bytes, reply_summary), message.endian());
                Outcome::Executed { call, reply: Some(bytes), reply_summary: Some(reply_summary) }
            }
            Job::Execute { call, giop, .. } => {
                Outcome::executed(call, refusal::reply_too_large(&giop))
            }
            Job::Capture(purpose) => {
                let state = checkpoint::state_of(message);
                match &state {
                    Some(state) => self.ends.states.gave(state.len()),
                    None => self.ends.states.did_not_give(Refusal::read(message)),
                }
                Outcome::Captured { purpose, state }
            }
            Job::Restore { state, purpose } => {
                let accepted = checkpoint::accepted(message);
                match accepted {
                    true => self.ends.states.took(),
                    false => self.ends.states.did_not_take(state.len(), Refusal::read(message)),
                }
                Outcome::Restored { purpose, accepted }
            }
        }))
    }

    /// Counts a request that has ended. Its time runs to a deadline, so it began that much before.
    fn note(&mut self, call: &Outstanding) {
        if let (Job::Execute { .. }, Some(deadline), Some(heard_at)) =
            (&call.job, call.deadline, self.heard_at)
        {
            let left = deadline.since(heard_at);
            self.served.requests += 1;
            self.served.time += self.reply_within.saturating_sub(left);
        }
    }

    /// The one call has no reply that can be used: the server sent MessageError, or more than is
    /// read. It lives on, and all replicas come to the same `refusal`.
    fn fail(
        &mut self,
        index: usize,
        refusal: impl Fn(&Bytes) -> Option<Bytes>,
        out: &mut Vec<ServerCommand>,
    ) {
        self.connect_again(index, out);
        self.ends.replied();
        self.calls.begin_anew();
        let Some(ended) = self.schedule.oldest().map(|oldest| oldest.request_id) else { return };
        let Some(ended) = self.schedule.take_out(ended).filter(|call| !call.abandoned) else {
            return;
        };
        self.ended.push_back(match ended.job {
            Job::Execute { call, giop, .. } => {
                Outcome::executed(call, if ended.oneway { None } else { refusal(&giop) })
            }
            Job::Capture(purpose) => {
                self.ends.states.did_not_give(Refusal::of(NOT_READ));
                Outcome::Captured { purpose, state: None }
            }
            Job::Restore { state, purpose } => {
                self.ends.states.did_not_take(state.len(), Refusal::of(NOT_READ));
                Outcome::Restored { purpose, accepted: false }
            }
        });
    }
}

/// What a server said that answered so, in words.
const NOT_READ: &str = "it sent more than is read";

/// What a reply of the server ends.
enum Finished {
    /// A call; none if it counts for nothing.
    Outcome(Option<Outcome>),
    /// No call that was made, or one that has ended.
    Nothing,
    /// One that others stand before, or that was never made.
    NotIt { out_of_order: bool },
}

/// Whether the client of a request wants no reply.
fn is_oneway(giop: &Bytes) -> bool {
    let message = Message::from_bytes(giop.clone());
    let Ok(Ok(Body::Request(request))) = message.as_ref().map(Message::parse) else { return false };
    !request.response_expected()
}

/// What the server is sent for a job on a channel, and whether its client wants no reply.
fn message_for(
    job: &Job,
    channel: &mut Channel,
    state_object: Option<&Bytes>,
    request_id: u32,
) -> (Pieces, bool) {
    let state_key = || state_object.expect("joiners need a state object");
    match job {
        Job::Execute { giop, .. } => {
            let (bytes, oneway) = channel.prepare(giop, request_id);
            ((bytes, None), oneway)
        }
        Job::Capture(purpose) => {
            let update = matches!(purpose, Capture::Checkpoint { update: true, .. });
            ((checkpoint::get(request_id, state_key(), update), None), false)
        }
        Job::Restore { state, purpose } => {
            let update = *purpose == Restore::Update;
            (checkpoint::set(request_id, state_key(), update, state), false)
        }
    }
}

#[cfg(test)]
mod tests;
