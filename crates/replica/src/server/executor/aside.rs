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
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;
use quorba_giop::{Body, FrameError, Message};

/// Calls that may be with the server at the same time, and bytes of them.
const RUNNING_MAX: usize = 64;
const RUNNING_BYTES_MAX: usize = 1 << 20;
/// So many of the requests that wait are looked at for the object of a call; if more wait, the call
/// comes behind all of them.
const LOOKED_AT_MAX: usize = 64;

/// See the module's text.
#[derive(Default)]
pub(super) struct Aside {
    /// Calls go this way.
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
    deadline: Instant,
}

impl Aside {
    pub(super) fn new(is_used: bool) -> Self {
        Self { is_used, ..Self::default() }
    }

    pub(super) fn use_it(&mut self, is_used: bool) {
        self.is_used = is_used;
    }

    /// The server is gone, and its connections with it.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.is_used);
    }

    /// Nobody waits for anything that was asked.
    pub(super) fn abandon(&mut self) {
        self.waiting.clear();
        self.running.iter_mut().for_each(|call| call.id = None);
    }

    /// Forgets what has not begun; which these were.
    pub(super) fn take_waiting(&mut self) -> impl Iterator<Item = ReadId> + '_ {
        self.waiting.drain(..).map(|call| call.id)
    }

    pub(super) fn channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.iter_mut().find(|channel| channel.id == id)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.running.iter().map(|call| call.deadline).min()
    }

    /// Calls that the server has or will get.
    pub(super) fn calls(&self) -> usize {
        self.waiting.len() + self.running.len()
    }

    /// Those that the server may be at.
    pub(super) fn begun(&self) -> impl Iterator<Item = ReadId> + '_ {
        let is_open = |id| self.channels.iter().any(|it| it.id == id && it.is_open());
        self.running.iter().filter(move |call| is_open(call.channel)).filter_map(|call| call.id)
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

    /// A connection is of no use any more; what was on it.
    fn leave(&mut self, channel: ChannelId) -> Vec<ReadId> {
        self.channels.retain(|it| it.id != channel);
        let all = core::mem::take(&mut self.running).into_iter();
        let (ended, others): (Vec<_>, Vec<_>) = all.partition(|call| call.channel == channel);
        self.running = others.into();
        ended.into_iter().filter_map(|call| call.id).collect()
    }
}

impl Executor {
    /// Whether calls past the order have connections of their own.
    pub(crate) fn has_aside(&self) -> bool {
        self.aside.is_used
    }

    /// Connects before there is anything to call.
    pub(super) fn watch_aside(&mut self, out: &mut Vec<ServerCommand>) {
        if self.aside.is_used && self.aside.channels.is_empty() {
            self.connect_aside(None, out);
        }
    }

    fn connect_aside(&mut self, code_sets: Option<Bytes>, out: &mut Vec<ServerCommand>) -> usize {
        let channel = self.open_channel(code_sets, self.message_bytes_max, out);
        self.aside.channels.push(channel);
        self.aside.channels.len() - 1
    }

    /// A call past the order.
    pub(crate) fn push_aside(&mut self, id: ReadId, giop: Bytes, code_sets: Option<Bytes>) {
        let object = schedule::object_key(&giop);
        let own = self.schedule.last_request_of(object.as_ref(), LOOKED_AT_MAX);
        let same = self.aside.waiting.iter().filter(|call| call.object == object);
        let behind = same.filter_map(|call| call.behind).max().max(own);
        self.aside.waiting.push_back(Waiting { id, giop, code_sets, object, behind });
    }

    /// Starts the calls that the server may have now.
    pub(super) fn step_aside(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        if self.aside.waiting.is_empty() {
            return;
        }
        let first = self.schedule.histories().map(|history| history.count).min();
        let may_begin = |call: &Waiting| match (call.behind, first) {
            (Some(behind), Some(first)) => first > behind,
            _ => true,
        };
        let waiting = core::mem::take(&mut self.aside.waiting);
        let mut is_full = false;
        for call in waiting {
            is_full |= !self.aside.has_room(call.giop.len());
            if is_full || !may_begin(&call) {
                self.aside.waiting.push_back(call);
                continue;
            }
            self.start_aside(now, call, out);
        }
    }

    fn start_aside(&mut self, now: Instant, call: Waiting, out: &mut Vec<ServerCommand>) {
        let Waiting { id, giop, code_sets, .. } = call;
        let known = self.aside.channels.iter().position(|it| it.code_sets == code_sets);
        let index = known.unwrap_or_else(|| {
            if self.aside.channels.len() >= CHANNELS_MAX {
                let idle = self.aside.idle();
                self.end_aside(idle, out);
            }
            self.connect_aside(code_sets, out)
        });
        let request_id = self.new_request_id();
        let channel = &mut self.aside.channels[index];
        let (bytes, oneway) = channel.prepare(&giop, request_id);
        channel.send((bytes, None), out);
        let (id, channel, since) = (Some(id), channel.id, now);
        let deadline = now + self.reply_within;
        let call = Running { id, giop, oneway, request_id, channel, since, deadline };
        self.aside.running.push_back(call);
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
            if is_too_long && let Some(first) = self.aside.first_on(channel) {
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
        let index = self.aside.running.iter().position(is_it)?;
        let Running { id, giop, oneway, since, .. } = self.aside.running.remove(index)?;
        if let Some(heard_at) = self.heard_at {
            self.served.requests += 1;
            self.served.time += heard_at.since(since);
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
        let is_over = |call: &&Running| call.deadline <= now;
        while let Some(channel) = self.aside.running.iter().find(is_over).map(|it| it.channel) {
            self.end_aside(channel, out);
        }
    }
}

impl Aside {
    /// The call that was sent first on a connection, taken out.
    fn first_on(&mut self, channel: ChannelId) -> Option<Running> {
        let index = self.running.iter().position(|call| call.channel == channel)?;
        self.running.remove(index)
    }
}
