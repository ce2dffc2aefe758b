//! Talks to one member's server: one call at a time, in order, over plain GIOP.
//!
//! What it is not: it does not decide what to execute, nor who answers. Invariants: at most one
//! call is outstanding over all channels, because servers run pipelined requests concurrently;
//! oneways are sent as calls with a reply, so that the next call waits for them too.

use crate::checkpoint;
use crate::config::GroupConfig;
use crate::ids::{ChannelId, RequestKey};
use crate::output::ServerCommand;
use crate::refusal;
use crate::table::DownReason;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId, canary};
use quorba_giop::{Body, FrameError, Framer, FramerLimits, Message, ResponseFlags, Rewrite};

use crate::ids::Attempt;

/// Code-set negotiations that one server's clients may differ in at the same time.
const CHANNELS_MAX: usize = 8;
/// CodeSets service context (GIOP §13.10.2.6).
const CODE_SETS: u32 = 1;

/// Something for the server to do.
pub(crate) enum Job {
    /// A client's request.
    Execute { key: RequestKey, giop: Bytes, code_sets: Option<Bytes> },
    /// `get_state` or `get_update`.
    Capture(Capture),
    /// `set_state` or `set_update`.
    Restore { state: Bytes, purpose: Restore },
}

/// What a state is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capture {
    /// A member that joins.
    Join { joiner: NodeId, attempt: Attempt },
    /// The checkpoint of this number, with so many requests; `update`: only what has changed.
    Checkpoint { number: u64, up_to: u64, update: bool },
}

/// Why a state is given to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Restore {
    /// The member joins.
    Join { attempt: Attempt },
    /// It stands by, or takes over without having had a server.
    Base,
    /// The same, with what has changed.
    Update,
}

/// What came of it.
pub(crate) enum Outcome {
    /// The reply, `None` for a oneway.
    Executed { key: RequestKey, reply: Option<Bytes> },
    /// The state, or `None` if the server raised an exception.
    Captured { purpose: Capture, state: Option<Bytes> },
    /// Whether the server took the state.
    Restored { purpose: Restore, accepted: bool },
}

struct Current {
    job: Job,
    oneway: bool,
    request_id: u32,
    channel: ChannelId,
    deadline: Instant,
    /// The member was detached meanwhile: the reply only says that the server is free again.
    abandoned: bool,
}

struct Channel {
    id: ChannelId,
    code_sets: Option<Bytes>,
    open: bool,
    /// A message with the CodeSets context was sent on it.
    negotiated: bool,
    framer: Framer,
    /// Waits for the connection.
    waiting: Option<Pieces>,
}

/// A message, and maybe what stands behind it, uncopied.
type Pieces = (Bytes, Option<Bytes>);

impl Channel {
    fn send(&self, (begin, rest): Pieces, out: &mut Vec<ServerCommand>) {
        let pieces = core::iter::once(begin).chain(rest);
        out.extend(pieces.map(|bytes| ServerCommand::Send(self.id, bytes)));
    }
}

/// See the module's text.
pub(crate) struct Executor {
    state_object: Option<Bytes>,
    reply_within: Duration,
    /// Larger replies are replaced by an exception.
    reply_bytes_max: usize,
    /// Larger messages are not read to their end.
    message_bytes_max: usize,
    queue: VecDeque<Job>,
    current: Option<Current>,
    channels: Vec<Channel>,
    next_channel: u32,
    next_request_id: u32,
}

impl Executor {
    pub(crate) fn new(config: &GroupConfig) -> Self {
        Self {
            state_object: config.state_object.clone(),
            reply_within: config.server_reply,
            reply_bytes_max: config.reply_bytes_max,
            message_bytes_max: config.reply_bytes_max.max(config.state_bytes_max),
            queue: VecDeque::new(),
            current: None,
            channels: Vec::new(),
            next_channel: 0,
            next_request_id: 0,
        }
    }

    /// Nothing is queued and nothing runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.current.is_none()
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// When the server must have answered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.current.as_ref().map(|current| current.deadline)
    }

    pub(crate) fn push(&mut self, job: Job) {
        if canary!(CaptureOvertakes) && matches!(job, Job::Capture(_)) {
            return self.queue.push_front(job);
        }
        self.queue.push_back(job);
    }

    pub(crate) fn extend(&mut self, jobs: impl IntoIterator<Item = Job>) {
        jobs.into_iter().for_each(|job| self.push(job));
    }

    /// Opens the default channel, so that the death of an idle server is seen.
    pub(crate) fn watch(&mut self, out: &mut Vec<ServerCommand>) {
        if self.channels.is_empty() {
            self.connect(None, out);
        }
    }

    /// Forgets everything: the server is gone.
    pub(crate) fn reset(&mut self) {
        self.queue.clear();
        self.current = None;
        self.channels.clear();
    }

    /// Forgets the queue; a call that runs is waited for, but its result counts for nothing.
    pub(crate) fn abandon(&mut self) {
        self.queue.clear();
        if let Some(current) = &mut self.current {
            current.abandoned = true;
        }
    }

    /// Starts the next job if the server is free.
    pub(crate) fn step(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        while self.current.is_none() {
            let Some(job) = self.queue.pop_front() else { return };
            self.start(now, job, out);
        }
    }

    fn start(&mut self, now: Instant, job: Job, out: &mut Vec<ServerCommand>) {
        assert!(!self.channels.is_empty(), "jobs come to a server that is up, see `watch`");
        self.next_request_id = self.next_request_id.wrapping_add(1);
        let request_id = self.next_request_id;
        let wanted = match &job {
            Job::Execute { code_sets, .. } => code_sets.clone(),
            Job::Capture(_) | Job::Restore { .. } => None,
        };
        let channel = self.channel_for(wanted, out);
        let index = self.channels.iter().position(|c| c.id == channel).expect("just found");
        let (pieces, oneway) = self.message_for(&job, index, request_id);
        let deadline = now + self.reply_within;
        self.current =
            Some(Current { job, oneway, request_id, channel, deadline, abandoned: false });
        self.send(index, pieces, out);
    }

    /// What the server is sent for a job on a channel, and whether its client wants no reply.
    fn message_for(&mut self, job: &Job, index: usize, request_id: u32) -> (Pieces, bool) {
        match job {
            Job::Execute { giop, .. } => {
                let (bytes, oneway) = prepare(&mut self.channels[index], giop, request_id);
                ((bytes, None), oneway)
            }
            Job::Capture(purpose) => {
                let update = matches!(purpose, Capture::Checkpoint { update: true, .. });
                ((checkpoint::get(request_id, self.state_key(), update), None), false)
            }
            Job::Restore { state, purpose } => {
                let update = *purpose == Restore::Update;
                (checkpoint::set(request_id, self.state_key(), update, state), false)
            }
        }
    }

    fn state_key(&self) -> &[u8] {
        self.state_object.as_ref().expect("joiners need a state object")
    }

    fn send(&mut self, index: usize, pieces: Pieces, out: &mut Vec<ServerCommand>) {
        let channel = &mut self.channels[index];
        if channel.open {
            channel.send(pieces, out);
        } else {
            channel.waiting = Some(pieces);
        }
    }

    fn channel_for(&mut self, code_sets: Option<Bytes>, out: &mut Vec<ServerCommand>) -> ChannelId {
        if let Some(channel) = self.channels.iter().find(|c| c.code_sets == code_sets) {
            return channel.id;
        }
        if self.channels.len() >= CHANNELS_MAX {
            // The oldest one beside the default: nothing is outstanding on it now.
            let oldest = self.channels.remove(1);
            out.push(ServerCommand::Close(oldest.id));
        }
        self.connect(code_sets, out)
    }

    fn connect(&mut self, code_sets: Option<Bytes>, out: &mut Vec<ServerCommand>) -> ChannelId {
        self.next_channel += 1;
        let id = ChannelId(self.next_channel);
        let framer = Framer::new(FramerLimits {
            message_bytes_max: self.message_bytes_max,
            fragmented_requests_max: 1,
            buffered_bytes_max: self.message_bytes_max + self.message_bytes_max / 4,
        });
        self.channels.push(Channel {
            id,
            code_sets,
            open: false,
            negotiated: false,
            framer,
            waiting: None,
        });
        out.push(ServerCommand::Connect(id));
        id
    }

    /// A connection that was asked for is there.
    pub(crate) fn connected(&mut self, channel: ChannelId, out: &mut Vec<ServerCommand>) {
        if let Some(channel) = self.channels.iter_mut().find(|c| c.id == channel) {
            channel.open = true;
            if let Some(pieces) = channel.waiting.take() {
                channel.send(pieces, out);
            }
        }
    }

    /// Whether `channel` is one that this executor still counts on.
    pub(crate) fn knows(&self, channel: ChannelId) -> bool {
        self.channels.iter().any(|c| c.id == channel)
    }

    /// Bytes from the server: at most one call can end with them.
    pub(crate) fn received(
        &mut self,
        channel: ChannelId,
        bytes: &[u8],
        out: &mut Vec<ServerCommand>,
    ) -> Result<Option<Outcome>, DownReason> {
        let Some(index) = self.channels.iter().position(|c| c.id == channel) else {
            return Ok(None);
        };
        self.channels[index].framer.push(bytes);
        let mut outcome = None;
        loop {
            let message = match self.channels[index].framer.next() {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(outcome),
                Err(FrameError::TooLarge { .. } | FrameError::TooMuchBuffered { .. })
                    if self.is_awaited(channel) =>
                {
                    return Ok(self.fail(index, refusal::reply_too_large, out).or(outcome));
                }
                Err(_) => return Err(DownReason::ServerProtocol),
            };
            match message.parse().map_err(|_| DownReason::ServerProtocol)? {
                Body::Reply(reply) => {
                    if outcome.is_none() {
                        outcome = self.finish(channel, reply.request_id(), &message)?;
                    }
                }
                Body::CloseConnection => {
                    self.closed_gracefully(index, out);
                    return Ok(outcome);
                }
                // The server cannot read what it was sent.
                Body::MessageError => {
                    return Ok(self.fail(index, refusal::rejected, out).or(outcome));
                }
                // A server may only reply; a LocateReply answers nothing that we sent.
                _ => return Err(DownReason::ServerProtocol),
            }
        }
    }

    fn is_awaited(&self, channel: ChannelId) -> bool {
        self.current.as_ref().is_some_and(|current| current.channel == channel)
    }

    fn finish(
        &mut self,
        channel: ChannelId,
        request_id: u32,
        message: &Message,
    ) -> Result<Option<Outcome>, DownReason> {
        let expected = self
            .current
            .as_ref()
            .is_some_and(|c| c.request_id == request_id && c.channel == channel);
        if !expected {
            return Err(DownReason::ServerProtocol);
        }
        let current = self.current.take().expect("just looked");
        if current.abandoned && !canary!(AbandonedCallCounts) {
            return Ok(None);
        }
        let bytes = message.bytes().clone();
        Ok(Some(match current.job {
            Job::Execute { key, .. } if current.oneway => Outcome::Executed { key, reply: None },
            Job::Execute { key, giop, .. } => {
                let fits = bytes.len() <= self.reply_bytes_max;
                let reply = if fits { Some(bytes) } else { refusal::reply_too_large(&giop) };
                Outcome::Executed { key, reply }
            }
            Job::Capture(purpose) => {
                Outcome::Captured { purpose, state: checkpoint::state_of(message) }
            }
            Job::Restore { purpose, .. } => {
                Outcome::Restored { purpose, accepted: checkpoint::accepted(message) }
            }
        }))
    }

    /// The call has no reply that can be used: the server sent MessageError, or more than is read.
    /// It lives on. All replicas see the same, so to count this as a crash would let one client
    /// take down the whole group. `refusal` is what the client is told.
    fn fail(
        &mut self,
        index: usize,
        refusal: impl Fn(&Bytes) -> Option<Bytes>,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Outcome> {
        let old = self.channels.remove(index);
        out.push(ServerCommand::Close(old.id));
        self.connect(old.code_sets, out);
        let current = self.current.take_if(|current| current.channel == old.id)?;
        if current.abandoned {
            return None;
        }
        Some(match current.job {
            Job::Execute { key, giop, .. } => {
                let reply = if current.oneway { None } else { refusal(&giop) };
                Outcome::Executed { key, reply }
            }
            Job::Capture(purpose) => Outcome::Captured { purpose, state: None },
            Job::Restore { purpose, .. } => Outcome::Restored { purpose, accepted: false },
        })
    }

    /// CloseConnection: what was outstanding was not executed and goes out again (GIOP §15.5.1.1).
    fn closed_gracefully(&mut self, index: usize, out: &mut Vec<ServerCommand>) {
        let old = self.channels.remove(index);
        out.push(ServerCommand::Close(old.id));
        let id = self.connect(old.code_sets, out);
        let Some(current) = self.current.take_if(|current| current.channel == old.id) else {
            return;
        };
        let index = self.channels.iter().position(|c| c.id == id).expect("just made");
        let (pieces, _) = self.message_for(&current.job, index, current.request_id);
        self.current = Some(Current { channel: id, ..current });
        self.send(index, pieces, out);
    }
}

/// The request as this channel's server gets it: under our request id, with a reply even if the
/// client wants none, and with the code sets that its connection negotiated.
fn prepare(channel: &mut Channel, giop: &Bytes, request_id: u32) -> (Bytes, bool) {
    let message = Message::from_bytes(giop.clone()).expect("the gateway parsed it");
    let Ok(Body::Request(request)) = message.parse() else {
        unreachable!("the gateway submits requests only");
    };
    let oneway = !request.response_expected();
    let introduce = !channel.negotiated
        && channel.code_sets.is_some()
        && request.contexts().all(|(id, _)| id != CODE_SETS);
    channel.negotiated = true;
    let code_sets = channel.code_sets.clone();
    let context = code_sets.as_ref().map(|data| (CODE_SETS, data.as_ref()));
    let add: &[(u32, &[u8])] = match &context {
        Some(context) if introduce => core::slice::from_ref(context),
        _ => &[],
    };
    let rewritten = request.rewrite(&Rewrite {
        request_id: Some(request_id),
        // Always: a reply before the execution, or none, would let the next call overtake it.
        response_flags: Some(ResponseFlags::WithTarget),
        object_key: None,
        drop_contexts: &[],
        add_contexts: add,
    });
    (rewritten.bytes().clone(), oneway)
}
