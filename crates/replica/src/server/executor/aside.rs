//! Calls past the order that the leader alone executes, such as pushes of events: they have
//! connections of their own, and wait for nothing else that the server is given to do (Huang05
//! §3.6).
//!
//! A server that reads its connections side by side has another thread for them than for what is
//! ordered, for states that it gives, and for all else; and neither stands in the other's way here.
//!
//! What it is not: a place in the order; what such a call changes is not replicated. Invariants: a
//! call comes behind the requests of its own object that were delivered before it, such as the one
//! that made the object, and two calls of one object keep their order; every call that was taken
//! ends, or is forgotten with an epoch.

use super::channel::Channel;
use super::{CHANNELS_MAX, Call, Executor, Outcome, schedule};
use crate::calls::reads::ReadId;
use crate::calls::refusal;
use crate::output::ServerCommand;
use crate::words::ids::ChannelId;
use crate::words::reply_summary::ReplySummary;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::{Body, FrameError, Message};

/// Calls that may be with the server at the same time, and bytes of them.
const RUNNING_MAX: usize = 64;
const RUNNING_BYTES_MAX: usize = 1 << 20;
/// So many of the requests that wait are looked at for the object of a call; if more wait, the call
/// comes behind all of them.
const LOOKED_AT_MAX: usize = 64;

/// See the module's text. Nothing where no call goes this way: few of many groups have such calls.
#[derive(Default)]
pub(super) struct Aside(Option<Box<Calls>>);

#[derive(Default)]
struct Calls {
    /// Calls go this way; else only those that have begun end.
    is_used: bool,
    waiting: VecDeque<Waiting>,
    running: VecDeque<Running>,
    channels: Vec<Channel>,
}

struct Waiting {
    id: ReadId,
    giop: Bytes,
    code_sets: Option<Bytes>,
    object: Option<Bytes>,
    /// Requests up to this one, counted from the group's first, come before it.
    behind: Option<u64>,
}

/// A call that is with the server. `id`: none if nobody waits for it.
struct Running {
    id: Option<ReadId>,
    giop: Bytes,
    oneway: bool,
    request_id: u32,
    channel: ChannelId,
    since: Instant,
    /// Of the first one on its connection.
    deadline: Option<Instant>,
}

impl Aside {
    pub(super) fn new(is_used: bool) -> Self {
        Self(is_used.then(|| Box::new(Calls { is_used, ..Calls::default() })))
    }

    pub(super) fn use_it(&mut self, is_used: bool) {
        match &mut self.0 {
            Some(calls) => calls.is_used = is_used,
            None => *self = Self::new(is_used),
        }
    }

    fn is_used(&self) -> bool {
        self.0.as_ref().is_some_and(|calls| calls.is_used)
    }

    /// The server is gone, and its connections with it.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.is_used());
    }

    /// Nobody waits for anything that was asked.
    pub(super) fn abandon(&mut self) {
        let Some(calls) = &mut self.0 else { return };
        calls.waiting.clear();
        calls.running.iter_mut().for_each(|call| call.id = None);
    }

    /// Forgets what has not begun; which these were.
    pub(super) fn take_waiting(&mut self) -> impl Iterator<Item = ReadId> + '_ {
        self.0.iter_mut().flat_map(|calls| calls.waiting.drain(..)).map(|call| call.id)
    }

    pub(super) fn channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.0.as_mut()?.channels.iter_mut().find(|channel| channel.id == id)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.as_ref()?.running.iter().filter_map(|call| call.deadline).min()
    }

    /// Calls that the server has or will get.
    pub(super) fn calls(&self) -> usize {
        self.0.as_ref().map_or(0, |calls| calls.waiting.len() + calls.running.len())
    }

    /// Those that the server may be at.
    pub(super) fn begun(&self) -> impl Iterator<Item = ReadId> + '_ {
        self.0.iter().flat_map(|calls| {
            let is_open = |id| calls.channels.iter().any(|it| it.id == id && it.is_open());
            let begun = calls.running.iter().filter(move |call| is_open(call.channel));
            begun.filter_map(|call| call.id)
        })
    }

    /// A connection is of no use any more; what was on it.
    fn leave(&mut self, channel: ChannelId) -> Vec<ReadId> {
        let Some(calls) = &mut self.0 else { return Vec::new() };
        calls.channels.retain(|it| it.id != channel);
        let all = core::mem::take(&mut calls.running).into_iter();
        let (ended, others): (Vec<_>, Vec<_>) = all.partition(|call| call.channel == channel);
        calls.running = others.into();
        ended.into_iter().filter_map(|call| call.id).collect()
    }
}

impl Calls {
    /// The server is at the first call of each connection, and has read the others. The time of
    /// one that becomes the first runs from `now`.
    fn time_first_on(&mut self, channel: ChannelId, now: Instant, within: Duration) {
        let first = self.running.iter_mut().find(|call| call.channel == channel);
        if let Some(first) = first.filter(|call| call.deadline.is_none()) {
            (first.since, first.deadline) = (now, Some(now + within));
        }
    }

    /// A connection with nothing under way on it; if there is none, one that was made early.
    fn idle(&self) -> ChannelId {
        let is_idle = |it: &&Channel| self.running.iter().all(|call| call.channel != it.id);
        self.channels.iter().find(is_idle).unwrap_or(&self.channels[0]).id
    }

    fn has_room(&self, bytes: usize) -> bool {
        let running: usize = self.running.iter().map(|call| call.giop.len()).sum();
        self.running.is_empty()
            || self.running.len() < RUNNING_MAX && running + bytes <= RUNNING_BYTES_MAX
    }
}

impl Executor {
    /// Whether calls past the order have connections of their own.
    pub(crate) fn has_aside(&self) -> bool {
        self.aside.is_used()
    }

    /// Connects before there is anything to call.
    pub(super) fn watch_aside(&mut self, out: &mut Vec<ServerCommand>) {
        if self.aside.0.as_ref().is_some_and(|it| it.is_used && it.channels.is_empty()) {
            self.connect_aside(None, out);
        }
    }

    fn connect_aside(&mut self, code_sets: Option<Bytes>, out: &mut Vec<ServerCommand>) {
        let channel = self.open_channel(code_sets, self.message_bytes_max, out);
        self.aside.0.get_or_insert_default().channels.push(channel);
    }

    /// A call past the order.
    pub(crate) fn push_aside(&mut self, id: ReadId, giop: Bytes, code_sets: Option<Bytes>) {
        let object = schedule::object_key(&giop);
        let own = self.schedule.last_request_of(object.as_ref(), LOOKED_AT_MAX);
        let waiting = &mut self.aside.0.get_or_insert_default().waiting;
        let same = waiting.iter().filter(|call| call.object == object);
        let behind = same.filter_map(|call| call.behind).max().max(own);
        waiting.push_back(Waiting { id, giop, code_sets, object, behind });
    }

    /// Starts the calls that the server may have now.
    pub(super) fn step_aside(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        // What a server is given its state for comes behind that.
        let Some(calls) = &mut self.aside.0 else { return };
        if calls.waiting.is_empty() || self.schedule.is_restoring() {
            return;
        }
        let first = self.schedule.histories().map(|history| history.count).min();
        let may_begin = |call: &Waiting| match (call.behind, first) {
            (Some(behind), Some(first)) => first > behind,
            _ => true,
        };
        let waiting = core::mem::take(&mut calls.waiting);
        let mut is_full = false;
        for call in waiting {
            let Some(calls) = &mut self.aside.0 else { return };
            is_full |= !calls.has_room(call.giop.len());
            if is_full || !may_begin(&call) {
                calls.waiting.push_back(call);
                continue;
            }
            self.start_aside(now, call, out);
        }
    }

    fn start_aside(&mut self, now: Instant, call: Waiting, out: &mut Vec<ServerCommand>) {
        let Waiting { id, giop, code_sets, .. } = call;
        let of_these = |it: &Channel| it.code_sets == code_sets;
        let is_known = |calls: &Calls| calls.channels.iter().any(of_these);
        if let Some(calls) = self.aside.0.as_deref_mut()
            && !is_known(calls)
            && let Some(unused) = calls.channels.iter_mut().find(|it| it.is_unused())
        {
            // What was connected early, before anybody knew what clients would send.
            unused.code_sets.clone_from(&code_sets);
        }
        if !self.aside.0.as_deref().is_some_and(is_known) {
            let full = |calls: &&Calls| calls.channels.len() >= CHANNELS_MAX;
            if let Some(idle) = self.aside.0.as_deref().filter(full).map(Calls::idle) {
                self.end_aside(idle, out);
            }
            self.connect_aside(code_sets.clone(), out);
        }
        let (request_id, within) = (self.new_request_id(), self.reply_within);
        let Some(calls) = &mut self.aside.0 else { return };
        let Some(channel) = calls.channels.iter_mut().find(|it| of_these(it)) else { return };
        let (bytes, oneway) = channel.prepare(&giop, request_id);
        channel.send((bytes, None), out);
        let (id, channel, since) = (Some(id), channel.id, now);
        let call = Running { id, giop, oneway, request_id, channel, since, deadline: None };
        calls.running.push_back(call);
        calls.time_first_on(channel, now, within);
    }

    /// What came on a connection of such calls, if it ends one; none: it is no such connection.
    pub(super) fn heard_aside(
        &mut self,
        channel: ChannelId,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Option<Outcome>> {
        loop {
            let message = match self.aside.channel(channel)?.framer.next() {
                Ok(None) => return Some(None),
                Ok(Some(message)) => Ok(message),
                Err(error) => Err(error),
            };
            let is_too_long = matches!(
                message,
                Err(FrameError::TooLarge { .. } | FrameError::TooMuchBuffered { .. })
            );
            if let Ok(message) = &message
                && let Ok(Body::Reply(reply)) = message.parse()
            {
                if let Some(outcome) = self.answered_aside(channel, reply.request_id(), message) {
                    return Some(Some(outcome));
                }
                continue;
            }
            let calls = self.aside.0.as_mut().filter(|_| is_too_long);
            if let Some(first) = calls.and_then(|calls| calls.first_on(channel)) {
                let reply = if first.oneway { None } else { refusal::reply_too_large(&first.giop) };
                let id = first.id;
                self.ended.extend(id.map(|id| Outcome::executed(Call::Read(id), reply)));
            }
            // Nothing else is said to who calls: what was called is called elsewhere.
            self.end_aside(channel, out);
            return Some(self.ended.pop_front());
        }
    }

    fn answered_aside(
        &mut self,
        channel: ChannelId,
        request_id: u32,
        message: &Message,
    ) -> Option<Outcome> {
        let is_it = |call: &Running| call.channel == channel && call.request_id == request_id;
        let calls = self.aside.0.as_mut()?;
        let index = calls.running.iter().position(is_it)?;
        let Running { id, giop, oneway, since, .. } = calls.running.remove(index)?;
        if let Some(heard_at) = self.heard_at {
            self.served.requests += 1;
            self.served.time += heard_at.since(since);
            calls.time_first_on(channel, heard_at, self.reply_within);
        }
        let call = Call::Read(id?);
        if oneway {
            return Some(Outcome::executed(call, None));
        }
        let bytes = message.bytes().clone();
        if bytes.len() > self.reply_bytes_max {
            return Some(Outcome::executed(call, refusal::reply_too_large(&giop)));
        }
        let reply_summary = ReplySummary::of(&bytes);
        Some(Outcome::Executed { call, reply: Some(bytes), reply_summary })
    }

    /// A connection of such calls has ended, if it is one.
    pub(super) fn lost_aside(&mut self, channel: ChannelId) -> bool {
        let is_one = self.aside.channel(channel).is_some();
        if is_one {
            self.ends.count_reconnect();
        }
        let ended = self.aside.leave(channel);
        self.note_ended_aside(ended);
        is_one
    }

    fn end_aside(&mut self, channel: ChannelId, out: &mut Vec<ServerCommand>) {
        out.push(ServerCommand::Close(channel));
        let ended = self.aside.leave(channel);
        self.note_ended_aside(ended);
    }

    fn note_ended_aside(&mut self, ended: Vec<ReadId>) {
        self.ended.extend(ended.into_iter().map(|id| Outcome::ReadEnded { id, reply: None }));
    }

    /// Calls that the server has had for longer than it may are called elsewhere.
    pub(super) fn aside_overdue(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        let is_over = |call: &&Running| call.deadline.is_some_and(|deadline| deadline <= now);
        let first_over = |calls: &Calls| Some(calls.running.iter().find(is_over)?.channel);
        while let Some(channel) = self.aside.0.as_deref().and_then(first_over) {
            self.end_aside(channel, out);
        }
    }
}

impl Calls {
    /// The call that was sent first on a connection, taken out.
    fn first_on(&mut self, channel: ChannelId) -> Option<Running> {
        let index = self.running.iter().position(|call| call.channel == channel)?;
        self.running.remove(index)
    }
}
