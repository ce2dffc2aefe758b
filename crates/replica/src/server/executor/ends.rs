//! What a server does with a call instead of replying, and connections that are made again.
//!
//! What it is not: a judgement; whether the server or the request is to blame is the group's to say
//! ([`crate::table::endings`]). Invariants: a call that got no reply stays with the server, and
//! nothing that must wait for it starts, until it is said how it has ended; a call is sent a second
//! time only after CloseConnection, if it was never sent, or if a server that works in order ended
//! the connection at a call before it.

use super::channel::Channel;
use super::states::{Refusal, StateRefused, States};
use super::{Call, Executor, Job, Outcome, Outstanding, Waiting};
use crate::calls::reads::ReadId;
use crate::calls::refusal;
use crate::messages::envelope::ProcessEnd;
use crate::output::ServerCommand;
use crate::table::DownReason;
use crate::table::endings::{NoReply, RequestEnd};
use crate::words::history::History;
use crate::words::ids::{ChannelId, RequestKey};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant, canary};
use quorba_giop::{LocateStatus, Message, Request, build};

/// How long the end of a connection may be that of its process, of which the node is about to hear.
const DOUBT: Duration = Duration::from_millis(100);
/// So often a call is sent again after CloseConnection.
const CLOSES_MAX: u32 = 8;
/// The pause before a connection is made again for the third time in a row, and the longest.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A time that is known at the next look at the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    In(Duration),
    At(Instant),
}

impl When {
    pub(super) fn fix(&mut self, now: Instant) {
        if let Self::In(wait) = *self {
            *self = Self::At(now + wait);
        }
    }

    pub(super) fn is_due(self, now: Instant) -> bool {
        matches!(self, Self::At(at) if at <= now)
    }

    pub(super) fn at(self) -> Option<Instant> {
        match self {
            // At once: then it is known.
            Self::In(_) => Some(Instant::ZERO),
            Self::At(at) => Some(at),
        }
    }
}

/// How a connection ended of which it is not known yet what that means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doubt {
    /// Without a word.
    Ended,
    /// With CloseConnection.
    Closed,
}

/// A call got no reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Odd {
    pub(super) how: NoReply,
    /// When it is told; `None`: it was.
    told: Option<When>,
}

impl Odd {
    pub(super) fn tell_anew(&mut self) {
        self.told.get_or_insert(When::In(Duration::ZERO));
    }
}

/// A request that was given up, with which the server is not through; what it calls meanwhile can
/// be told from what the next one calls only by its end.
pub(super) struct Straggler {
    pub(super) channel: Channel,
    pub(super) waiting: Waiting,
    /// It is not waited for beyond that.
    until: Option<Instant>,
}

/// Things that a server did and that cost nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerFigures {
    /// Connections that ended, or could not be made, while its process lived.
    pub reconnects: u64,
    /// Messages that answered nothing, and were dropped.
    pub dropped: u64,
    /// Calls on its node's connection, which were refused.
    pub refused_calls: u64,
    /// How often it answered the call that it has now with CloseConnection.
    pub closes: u32,
}

/// Requests that the server is not given as it is given others.
#[derive(Default)]
struct SetApart {
    /// A server that had them before this one was at fault: they are with the server alone.
    suspects: BTreeSet<RequestKey>,
    /// Not to be started now.
    held: BTreeSet<RequestKey>,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Ends {
    /// Somebody else starts and ends the server: nobody knows who is behind the next connection.
    foreign: bool,
    /// How requests ended that have no reply of a server.
    by_name: BTreeMap<RequestKey, RequestEnd>,
    skipped: BTreeSet<History>,
    /// `None` if there are none, which is usual.
    set_apart: Option<Box<SetApart>>,
    /// Connections that could not be made or ended since the last reply.
    breaks: u32,
    /// It is declared to work in order, and has not: what it has begun, nobody knows.
    pub(super) is_out_of_order: bool,
    /// It has replied to what it executed again, and what had ended without a reply.
    replied_to_ended: bool,
    /// Connections to somebody else's server that have ended, and how; whether the process did is
    /// seen in a moment.
    in_doubt: Vec<(When, ChannelId, Doubt)>,
    /// Channels that are to be opened.
    later: Vec<(When, ChannelId)>,
    figures: ServerFigures,
    pub(super) states: States,
}

impl Ends {
    /// A connection has ended while the server's process lived.
    pub(super) const fn count_reconnect(&mut self) {
        self.figures.reconnects += 1;
    }

    pub(super) fn new(foreign: bool) -> Self {
        Self { foreign, ..Self::default() }
    }

    /// The server is another one.
    pub(super) fn begin_anew(&mut self) {
        self.later.clear();
        self.in_doubt.clear();
        self.set_apart(|apart| apart.held.clear());
        (self.breaks, self.figures.closes) = (0, 0);
        (self.is_out_of_order, self.replied_to_ended) = (false, false);
    }

    fn set_apart(&mut self, change: impl FnOnce(&mut SetApart)) {
        let mut apart = self.set_apart.take().unwrap_or_default();
        change(&mut apart);
        let is_any = !apart.suspects.is_empty() || !apart.held.is_empty();
        self.set_apart = is_any.then_some(apart);
    }

    /// How a request has ended to which the server has replied now.
    pub(super) fn of(&self, key: &RequestKey) -> Option<RequestEnd> {
        self.by_name.get(key).copied()
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Whether a connection has ended, and perhaps its server's process with it.
    fn is_in_doubt(&self) -> bool {
        !self.in_doubt.is_empty()
    }

    /// The server has replied.
    pub(super) fn replied(&mut self) {
        (self.breaks, self.figures.closes) = (0, 0);
        self.is_out_of_order = false;
    }

    /// The server has replied to this.
    pub(super) fn note_reply(&mut self, job: &Job) {
        if let Job::Execute { call: Call::Again(key), .. } = job {
            self.replied_to_ended |= self.by_name.contains_key(key);
        }
    }

    pub(super) fn drop_message(&mut self) {
        self.figures.dropped += 1;
    }

    /// Whether a job must not start now.
    pub(super) fn holds(&self, job: &Job) -> bool {
        match job {
            Job::Execute { call: Call::Request(key, _), .. } => {
                self.set_apart.as_ref().is_some_and(|apart| apart.held.contains(key))
            }
            _ => false,
        }
    }

    /// Whether requests are known that are with the server alone.
    pub(super) fn knows_any(&self) -> bool {
        let has_suspects = |apart: &SetApart| !apart.suspects.is_empty();
        !self.by_name.is_empty() || self.set_apart.as_deref().is_some_and(has_suspects)
    }

    /// Whether it is known to end without a reply, or may. What is sent behind it on the same
    /// connection may be lost with that.
    pub(super) fn is_odd(&self, job: &Job) -> bool {
        match job {
            Job::Execute { call: Call::Request(key, _) | Call::Again(key), .. } => {
                let is_suspect = |apart: &SetApart| apart.suspects.contains(key);
                self.by_name.contains_key(key) || self.set_apart.as_deref().is_some_and(is_suspect)
            }
            _ => false,
        }
    }

    /// Whether a request has not ended without a reply, as all that have are known.
    fn would_know_of(&self, key: &RequestKey) -> bool {
        !self.by_name.contains_key(key) && self.by_name.len() < crate::table::endings::ENDED_MAX
    }

    /// How a call has ended that no server may execute any more.
    pub(super) fn forbids(&self, call: &Call) -> Option<RequestEnd> {
        if self.by_name.is_empty() && self.skipped.is_empty() || canary!(ExecutesPoison) {
            return None;
        }
        match call {
            Call::Request(_, history) if self.skipped.contains(history) => {
                Some(RequestEnd::Skipped)
            }
            Call::Request(key, _) | Call::Again(key) => {
                self.by_name.get(key).copied().filter(|end| end.forbids_execution())
            }
            Call::Read(_) => None,
        }
    }
}

/// What a server did instead of giving or taking a state, in words.
const fn instead(how: NoReply) -> &'static str {
    match how {
        NoReply::ConnectionEnded => "it ended the connection",
        NoReply::NotAReply => "it sent something that is no reply, or more than is read",
        NoReply::Rejected => "it sent MessageError",
        NoReply::NeverTaken => "it closed the connection in good order",
    }
}

impl Outstanding {
    /// Whether it has ended without a reply.
    pub(super) fn is_odd(&self) -> bool {
        self.odd.is_some()
    }

    fn ends_oddly(&mut self, how: NoReply, told: When) {
        self.odd.get_or_insert(Odd { how, told: Some(told) });
    }
}

impl Executor {
    /// Why the server has not given its state, and why it has not taken one.
    pub(crate) fn states_refused(&self) -> [Option<&StateRefused>; 2] {
        [self.ends.states.not_given(), self.ends.states.not_taken()]
    }

    /// The server is gone: what it has not given is not said of the next one.
    pub(crate) fn forget_not_given(&mut self) {
        self.ends.states.forget_not_given();
    }

    pub(crate) fn figures(&self) -> ServerFigures {
        self.ends.figures
    }

    /// How requests have ended without a reply, of all that are known.
    pub(crate) fn learn<'a>(
        &mut self,
        ends: impl Iterator<Item = (&'a RequestKey, History, RequestEnd)>,
        skipped: impl Iterator<Item = History>,
    ) {
        self.ends.by_name = ends.map(|(key, _, end)| (key.clone(), end)).collect();
        self.ends.skipped = skipped.collect();
    }

    /// Whether the server, which executes everything again, has replied to what had ended without a
    /// reply: it may have done what the others have not.
    pub(crate) const fn has_replied_to_ended(&self) -> bool {
        self.ends.replied_to_ended
    }

    /// Requests at which another server was at fault: this one has nothing else with them.
    pub(crate) fn suspect<'a>(&mut self, requests: impl Iterator<Item = &'a RequestKey> + Clone) {
        let known = self.ends.set_apart.iter().flat_map(|apart| &apart.suspects);
        if !known.eq(requests.clone()) {
            self.ends.set_apart(|apart| apart.suspects = requests.cloned().collect());
        }
    }

    /// Whether a request is known to have ended without a reply, and may have been executed.
    pub(crate) fn knows_end_of(&self, key: &RequestKey, at: History) -> bool {
        let end = self.ends.of(key);
        end.is_some_and(|end| end != RequestEnd::EndsServers) || self.ends.skipped.contains(&at)
    }

    /// Requests that must not start until more is known of them. By their names: behind another
    /// past they have other places.
    pub(crate) fn hold(&mut self, held: BTreeSet<RequestKey>) {
        if !held.is_empty() || self.ends.set_apart.is_some() {
            self.ends.set_apart(|apart| apart.held = held);
        }
    }

    /// Whether the server has the request, or it waits for it; and whether the server has begun it.
    pub(crate) fn has(&self, key: &RequestKey) -> (bool, bool) {
        let has_begun = self.schedule.outstanding().any(|call| call.job.is_named(key));
        (has_begun || self.schedule.has(key), has_begun)
    }

    /// The request with this number, if the server has it or it waits for it.
    pub(crate) fn find(&self, number: u64) -> Option<History> {
        self.schedule.histories().find(|history| history.count == number)
    }

    /// Whether the server has it and has not replied.
    pub(crate) fn has_begun(&self, history: History) -> bool {
        self.schedule.outstanding().any(|call| is_request(call, history))
    }

    /// The last request that the server has, `at` or one behind it.
    pub(crate) fn begun(&self, at: History) -> History {
        self.schedule.begun(at)
    }

    /// Whether a call waits for a word on how it has ended.
    pub(crate) fn is_stalled(&self) -> bool {
        self.schedule.outstanding().any(Outstanding::is_odd)
    }

    /// What the server was at, now that its process has ended.
    pub(crate) fn process_end(&self, seen: u64) -> (ProcessEnd, Vec<ReadId>) {
        let is_sent = |id| self.channels.iter().any(|c| c.id == id && c.is_open());
        let (mut at, mut reads) = (Vec::new(), Vec::new());
        for call in self.schedule.outstanding().filter(|call| !call.abandoned) {
            if call.odd.is_none() && !is_sent(call.channel) {
                continue;
            }
            match &call.job {
                Job::Execute { call: Call::Request(key, history), .. } => {
                    at.push((key.clone(), *history));
                }
                Job::Execute { call: Call::Read(id), .. } => reads.push(*id),
                _ => {}
            }
        }
        reads.extend(self.aside.begun());
        (ProcessEnd { at, answered: self.done_up_to(seen) }, reads)
    }

    /// When something of this room must be looked at.
    pub(super) fn ends_deadline(&self) -> Option<Instant> {
        let later = self.ends.later.iter().filter_map(|(when, _)| when.at());
        let told = self.schedule.outstanding().filter_map(|call| call.odd?.told?.at());
        let doubt = self.ends.in_doubt.iter().filter_map(|(when, _, _)| when.at());
        later.chain(told).chain(doubt).chain(self.witness.at()).min()
    }

    /// Connections that are due are made.
    pub(super) fn connect_due(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        self.tend_witness(now, out);
        self.ends.later.iter_mut().for_each(|(when, _)| when.fix(now));
        self.ends.in_doubt.iter_mut().for_each(|(when, _, _)| when.fix(now));
        for call in self.schedule.outstanding_mut() {
            if let Some(Odd { told: Some(when), .. }) = &mut call.odd {
                when.fix(now);
            }
        }
        let channels = &self.channels;
        self.ends.later.retain(|(when, id)| {
            let is_due = when.is_due(now);
            if is_due && channels.iter().any(|channel| channel.id == *id) {
                out.push(ServerCommand::Connect(*id));
            }
            !is_due
        });
    }

    /// A connection ended, or could not be made.
    pub(crate) fn disconnected(
        &mut self,
        channel: ChannelId,
        out: &mut Vec<ServerCommand>,
    ) -> Result<(), DownReason> {
        if self.probe_lost(channel) || self.witness.lost(channel) || self.lost_aside(channel) {
            return Ok(());
        }
        if self.straggler.take_if(|straggler| straggler.channel.id == channel).is_some() {
            return Ok(());
        }
        let Some(index) = self.channels.iter().position(|c| c.id == channel) else { return Ok(()) };
        if self.ends.foreign {
            return self.doubts(index, Doubt::Ended);
        }
        self.break_off(index, NoReply::ConnectionEnded, When::In(DOUBT), out);
        Ok(())
    }

    /// A connection is of no use any more. What was sent on it and has no reply is in doubt: of a
    /// server that works in order, and whose last words cannot be lost on the way, the oldest call,
    /// for it has begun no other. What was not sent goes out on the next one.
    pub(super) fn break_off(
        &mut self,
        index: usize,
        how: NoReply,
        told: When,
        out: &mut Vec<ServerCommand>,
    ) {
        let (old, index) = self.connect_again(index, out);
        let of_it = |call: &&mut Outstanding| call.channel == old.id;
        if old.is_open() {
            // Only who has ended the connection itself executes nothing more of what it has read.
            let reads_ahead = how != NoReply::ConnectionEnded;
            let is_unsure = self.ends.is_out_of_order || self.ends.foreign || reads_ahead;
            if !self.schedule.runs_side_by_side() && !is_unsure {
                self.schedule.put_back_behind_oldest();
            }
            let calls = self.schedule.outstanding_mut().filter(of_it);
            calls.for_each(|call| call.ends_oddly(how, told));
            self.calls.begin_anew();
            self.reentrant.abandon();
        } else {
            self.send_again(old.id, index, out);
        }
    }

    /// Closes a channel and asks for another one with the same code sets, after a pause if that was
    /// done before and no reply has come since.
    pub(super) fn connect_again(
        &mut self,
        index: usize,
        out: &mut Vec<ServerCommand>,
    ) -> (Channel, usize) {
        out.push(ServerCommand::Close(self.channels[index].id));
        self.replace(index, out)
    }

    /// The same, where the server has not ended the connection: what is not waited for any more
    /// leaves it busy.
    pub(super) fn leave_behind(&mut self, index: usize, out: &mut Vec<ServerCommand>) {
        let breaks = self.ends.breaks;
        self.connect_again(index, out);
        self.ends.breaks = breaks;
    }

    /// The same, but that the channel stays open, and is the caller's.
    fn replace(&mut self, index: usize, out: &mut Vec<ServerCommand>) -> (Channel, usize) {
        let old = self.channels.remove(index);
        if let Some(at) = self.ends.later.iter().position(|(_, id)| *id == old.id) {
            // It is still to be made; that time does not begin anew.
            let index = self.connect(old.code_sets.clone(), &mut Vec::new());
            self.ends.later[at].1 = self.channels[index].id;
            return (old, index);
        }
        let breaks = self.ends.breaks.max(self.ends.figures.closes.saturating_sub(1));
        self.ends.breaks = self.ends.breaks.saturating_add(1);
        self.ends.figures.reconnects += 1;
        if breaks == 0 || canary!(NoPauses) {
            let index = self.connect(old.code_sets.clone(), out);
            return (old, index);
        }
        let pause = PAUSE.saturating_mul(1 << (breaks - 1).min(16)).min(PAUSE_MAX);
        // The command is given when it is due.
        let index = self.connect(old.code_sets.clone(), &mut Vec::new());
        self.ends.later.push((When::In(pause), self.channels[index].id));
        (old, index)
    }

    /// Calls that were to go out on a channel go out on another one, in their order.
    fn send_again(&mut self, old: ChannelId, index: usize, out: &mut Vec<ServerCommand>) {
        let channel = &mut self.channels[index];
        let of_it = |call: &&mut Outstanding| call.channel == old && call.odd.is_none();
        for call in self.schedule.outstanding_mut().filter(of_it) {
            let state_object = self.state_object.as_ref();
            let (pieces, _) = super::message_for(&call.job, channel, state_object, call.request_id);
            call.channel = channel.id;
            channel.send(pieces, out);
        }
    }

    /// CloseConnection: what was outstanding was not executed and goes out again, in its order
    /// (GIOP §15.5.1.1); but not for ever.
    pub(super) fn closed_gracefully(
        &mut self,
        index: usize,
        out: &mut Vec<ServerCommand>,
    ) -> Result<(), DownReason> {
        if self.ends.foreign {
            return self.doubts(index, Doubt::Closed);
        }
        self.goes_on_elsewhere(index, out);
        Ok(())
    }

    /// A connection to somebody else's server has ended. It may be a server that ends, and the next
    /// one has nothing of what it had; unless something shows that it lives, the member is out.
    fn doubts(&mut self, index: usize, how: Doubt) -> Result<(), DownReason> {
        if !self.witness.is_proven() {
            return Err(DownReason::ConnectionLost);
        }
        let id = self.channels[index].id;
        if !self.ends.in_doubt.iter().any(|(_, of, _)| *of == id) {
            self.ends.in_doubt.push((When::In(DOUBT), id, how));
        }
        Ok(())
    }

    /// What has become of such doubts.
    fn end_doubts(&mut self, now: Instant, out: &mut Vec<ServerCommand>) -> Result<(), DownReason> {
        while let Some(at) = self.ends.in_doubt.iter().position(|(when, _, _)| when.is_due(now)) {
            if !self.witness.is_proven() {
                return Err(DownReason::ConnectionLost);
            }
            let (_, id, how) = self.ends.in_doubt.swap_remove(at);
            let Some(index) = self.channels.iter().position(|c| c.id == id) else { continue };
            match how {
                Doubt::Closed => self.goes_on_elsewhere(index, out),
                Doubt::Ended => {
                    self.break_off(index, NoReply::ConnectionEnded, When::At(now), out);
                }
            }
        }
        Ok(())
    }

    /// After CloseConnection of a server that lives.
    fn goes_on_elsewhere(&mut self, index: usize, out: &mut Vec<ServerCommand>) {
        let old = self.channels[index].id;
        if !self.schedule.outstanding().any(|call| call.channel == old) {
            self.connect_again(index, out);
            return;
        }
        self.ends.figures.closes += 1;
        // Calls are closed on in good order: that is no break.
        let breaks = self.ends.breaks;
        let (_, index) = self.connect_again(index, out);
        self.ends.breaks = breaks;
        if self.ends.figures.closes > CLOSES_MAX {
            self.ends.figures.closes = 0;
            if !self.schedule.runs_side_by_side() {
                self.schedule.put_back_behind_oldest();
            }
            if let Some(oldest) = self.schedule.oldest_mut() {
                oldest.ends_oddly(NoReply::NeverTaken, When::In(Duration::ZERO));
            }
        }
        self.send_again(old, index, out);
    }

    /// The server calls on the connection on which it is called. Such calls are not carried.
    pub(super) fn refuse(
        &mut self,
        channel: ChannelId,
        message: &Message,
        request: &Request<'_>,
        out: &mut Vec<ServerCommand>,
    ) {
        self.ends.figures.refused_calls += 1;
        if request.response_expected()
            && let Some(bytes) = refusal::not_carried(message.bytes())
        {
            out.push(ServerCommand::Send(channel, bytes));
        }
    }

    /// The same, for the question where an object is.
    pub(super) fn refuse_location(
        &mut self,
        channel: ChannelId,
        message: &Message,
        request_id: u32,
        out: &mut Vec<ServerCommand>,
    ) {
        self.ends.figures.refused_calls += 1;
        let nowhere = LocateStatus::UnknownObject;
        let (version, endian) = (message.version(), message.endian());
        let reply = build::locate_reply(version, endian, request_id, nowhere);
        out.push(ServerCommand::Send(channel, reply.bytes().clone()));
    }

    /// The next thing that ended, or must be told, without bytes of the server.
    pub(crate) fn next_end(
        &mut self,
        now: Instant,
        out: &mut Vec<ServerCommand>,
    ) -> Result<Option<Outcome>, DownReason> {
        self.aside_overdue(now, out);
        if let Some(outcome) = self.ended.pop_front() {
            return Ok(Some(outcome));
        }
        let waited = self.starts_nothing();
        self.end_doubts(now, out)?;
        self.mind_straggler(now, out);
        if waited && !self.starts_nothing() {
            // Nobody else may look at it for long.
            self.step(now, out);
        }
        if let Some(outcome) = self.probe_over(now, out) {
            return Ok(Some(outcome));
        }
        if self.schedule.oldest().is_none() {
            return Ok(None);
        }
        if self.has_begun_poison() {
            return Err(DownReason::MayDiffer);
        }
        if let Some(outcome) = self.give_up_skipped(out) {
            return Ok(Some(outcome));
        }
        if let Some(outcome) = self.next_odd(now)? {
            return Ok(Some(outcome));
        }
        self.next_late(now, out)
    }

    /// A call without a reply that is over, or is to be told.
    fn next_odd(&mut self, now: Instant) -> Result<Option<Outcome>, DownReason> {
        let ends = &self.ends;
        let is_due = |odd: Odd| odd.told.is_some_and(|when| when.is_due(now));
        let is_known = |call: &Outstanding| match &call.job {
            Job::Execute { call: Call::Request(key, _), .. } => ends.by_name.contains_key(key),
            _ => false,
        };
        let matters = |call: &&mut Outstanding| {
            call.odd.is_some_and(|odd| {
                call.abandoned || is_due(odd) || odd.told.is_none() && is_known(call)
            })
        };
        let Some(call) = self.schedule.outstanding_mut().find(matters) else { return Ok(None) };
        if call.abandoned && !call.job.is_for_others() {
            // It may still be at it, and nobody knows what of it will have been done.
            return Err(DownReason::ConnectionLost);
        }
        let Some(odd) = call.odd else { return Ok(None) };
        if let Job::Execute { call: Call::Request(key, history), .. } = &call.job
            && !self.ends.by_name.contains_key(key)
        {
            let (key, at, how) = (key.clone(), *history, odd.how);
            call.odd = Some(Odd { told: None, ..odd });
            return Ok(Some(Outcome::NoReply { key, at, how }));
        }
        if let Job::Execute { call: Call::Again(key), .. } = &call.job
            && self.ends.would_know_of(key)
        {
            // Others have answered what it executes again (seed 9300434 of the simulator's
            // `styles`).
            return Err(odd.how.fault());
        }
        let request_id = call.request_id;
        let Some(call) = self.schedule.take_out(request_id) else { return Ok(None) };
        self.calls.begin_anew();
        Ok(Some(self.ended_oddly(call, odd.how)))
    }

    /// What comes of a call that has ended without a reply.
    fn ended_oddly(&mut self, ended: Outstanding, how: NoReply) -> Outcome {
        let oneway = ended.oneway;
        match ended.job {
            Job::Execute { call: Call::Read(id), giop, .. } => {
                Outcome::ReadEnded { id, reply: refusal::ended(&giop, RequestEnd::NoReply(how)) }
            }
            Job::Execute { call, giop, .. } => {
                let known = match &call {
                    Call::Request(key, _) | Call::Again(key) => self.ends.by_name.get(key),
                    Call::Read(_) => None,
                };
                let end = known.copied().unwrap_or(RequestEnd::NoReply(how));
                self.not_executed(call, &giop, oneway, end)
            }
            Job::Capture(purpose) => {
                self.ends.states.did_not_give(Refusal::of(instead(how)));
                Outcome::Captured { purpose, state: None }
            }
            Job::Restore { state, purpose } => {
                self.ends.states.did_not_take(state.len(), Refusal::of(instead(how)));
                Outcome::Restored { purpose, accepted: false }
            }
        }
    }

    /// A call has the reply that says how it ended.
    pub(super) fn not_executed(
        &self,
        call: Call,
        giop: &Bytes,
        oneway: bool,
        end: RequestEnd,
    ) -> Outcome {
        Outcome::executed(call, if oneway { None } else { refusal::ended(giop, end) })
    }

    /// Whether the server is at a request that ends servers, and that nobody executes any more. So
    /// a leader that was cut off in the middle of it has come back (seed 9100059 of the
    /// simulator's `calls`).
    fn has_begun_poison(&self) -> bool {
        let ends = &self.ends;
        self.schedule.outstanding().any(|call| match &call.job {
            Job::Execute { call, .. } => ends.forbids(call) == Some(RequestEnd::EndsServers),
            _ => false,
        })
    }

    /// The server has a request that was given up: it may go on with it, but not for us.
    fn give_up_skipped(&mut self, out: &mut Vec<ServerCommand>) -> Option<Outcome> {
        if self.ends.skipped.is_empty() && self.ends.by_name.is_empty() {
            return None;
        }
        let ends = &self.ends;
        let is_over = |call: &&Outstanding| match &call.job {
            Job::Execute { call, .. } => ends.forbids(call).is_some(),
            _ => false,
        };
        let call = self.schedule.outstanding().find(is_over)?;
        let (request_id, channel) = (call.request_id, call.channel);
        let waiting = self.waiting();
        let call = self.schedule.take_out(request_id)?;
        self.calls.begin_anew();
        let shares = self.schedule.outstanding().any(|other| other.channel == channel);
        let index = self.channels.iter().position(|c| c.id == channel).filter(|_| !shares);
        if let Some(index) = index {
            // Who executes one call of each connection at a time is busy with this one.
            if let Some(waiting) = waiting.filter(|_| self.calls_others) {
                // What it calls in it can be told from what the next one calls only by its end.
                let (channel, _) = self.replace(index, out);
                self.straggler = Some(Box::new(Straggler { channel, waiting, until: None }));
            } else {
                self.leave_behind(index, out);
            }
        }
        let Job::Execute { call: name, giop, .. } = call.job else { return None };
        let end = self.ends.forbids(&name)?;
        Some(self.not_executed(name, &giop, call.oneway, end))
    }
}

impl Executor {
    /// Whether nothing may start until it is known what became of a connection, or the server is
    /// through with what was given up.
    pub(super) fn starts_nothing(&self) -> bool {
        self.ends.is_in_doubt() || self.straggler.is_some()
    }

    /// When what waits behind a request that was given up goes on.
    pub(super) fn straggler_until(&self) -> Option<Instant> {
        self.straggler.as_ref().and_then(|straggler| straggler.until)
    }

    /// A server that is not through with what was given up, after as long again as a server may
    /// take: what waits goes on beside it.
    fn mind_straggler(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        let Some(straggler) = &mut self.straggler else { return };
        let until = *straggler.until.get_or_insert(now + self.reply_within);
        if until <= now {
            out.push(ServerCommand::Close(straggler.channel.id));
            self.straggler = None;
        }
    }

    /// Bytes have come on the channel of a request that was given up. Whether it was that.
    pub(super) fn straggler_heard(&mut self, id: ChannelId, out: &mut Vec<ServerCommand>) -> bool {
        let straggler = self.straggler.as_mut().map(|straggler| &mut straggler.channel);
        let Some(channel) = straggler.filter(|channel| channel.id == id) else { return false };
        if !matches!(channel.framer.next(), Ok(None)) {
            // Whatever it says, it is through with it.
            self.straggler = None;
            out.push(ServerCommand::Close(id));
        }
        true
    }
}

pub(super) fn is_request(call: &Outstanding, history: History) -> bool {
    call.job.is_request(history)
}
