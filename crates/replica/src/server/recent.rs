//! What a group was delivered lately, for operators: a ring of short lines, and whole messages for
//! whoever records.
//!
//! What it is not: a part of the replicated state. Nothing that is decided depends on it, and two
//! members may know different ends of the same requests. Invariants: the ring has its full size
//! from the first request on, so that noting another one allocates nothing; whole messages are kept
//! only while somebody asks for them again and again, and never more than a number of octets.

use crate::calls::arrived::Arrived;
use crate::table::endings::RequestEnd;
use crate::table::moment::Moment;
use crate::words::history::History;
use crate::words::ids::{CallKey, RequestKey};
use crate::words::place::NodeContext;
use crate::words::reply_summary::ReplySummary;
use crate::words::short::Short;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId};
use quorba_giop::cdr::Reader;
use quorba_giop::limits::{OBJECT_KEY_BYTES_MAX, OPERATION_BYTES_MAX};
use quorba_giop::{Body, Endian, Message, ReplyStatus};

/// Requests of a group that a node remembers in short.
pub const RECENT_REQUESTS_MAX: usize = 512;
/// Octets of messages that are kept for a recording; older ones go first.
pub(crate) const RECORDED_BYTES_MAX: usize = 64 << 20;

/// The message type of a request, and where its target stands in GIOP 1.2: behind the header, the
/// request id, and the response flags with three octets for later use (GIOP §15.4.2).
const REQUEST: u8 = 0;
const TARGET_AT: usize = 20;

/// What became of a request at the local member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing yet; or another member executes it.
    Open,
    /// It repeats an earlier one, so it is not executed.
    Repetition,
    /// The server has executed it.
    Executed {
        /// From the delivery to the end of the reply.
        after: Duration,
        /// How it ended; `None` for a oneway.
        status: Option<ReplyStatus>,
        /// The whole reply.
        reply_bytes: u32,
    },
    /// The group has found that no server replies to it.
    Ended(RequestEnd),
}

/// A request in short.
#[derive(Clone, Copy, Debug)]
pub struct RecentRequest {
    /// Requests that the group was delivered, with this one.
    pub index: u64,
    /// The group's ordered clock, in units of 100 ns since the group began.
    pub clock: u64,
    /// The wall clock of its gateway, TimeT.
    pub stamp: u64,
    /// When it was delivered here.
    pub at: Instant,
    /// The node whose gateway took it in, that node's boot, and its number there.
    pub gateway: (NodeId, u64, u64),
    /// The client's id and retention id, if it names its requests (FT_REQUEST).
    pub client: Option<(Short, i32)>,
    /// Its operation.
    pub operation: Short,
    /// The object that it addresses.
    pub object_key: Short,
    /// The whole GIOP message.
    pub request_bytes: u32,
    /// What became of it here.
    pub outcome: Outcome,
}

/// A whole request.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// As in [`RecentRequest`].
    pub index: u64,
    /// The GIOP message.
    pub giop: Bytes,
    /// The code sets of its client's connection.
    pub code_sets: Option<Bytes>,
    /// What the server may know of it.
    pub moment: Moment,
    /// The reply of the local server, if there is one.
    pub reply: Option<Bytes>,
}

/// What was asked for.
#[derive(Clone, Default, Debug)]
pub struct RecentPage {
    /// In their order.
    pub requests: Vec<RecentRequest>,
    /// Whole messages of those of them that are recorded, in their order.
    pub recorded: Vec<RecordedRequest>,
}

/// What somebody wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecentQuery {
    /// Only requests behind the one of this index.
    pub after: u64,
    /// Whole messages are to be kept until then.
    pub record_until: Option<Instant>,
    /// The most octets of messages to give; at least one message is given if there is any.
    pub bytes_max: usize,
}

struct Recording {
    until: Instant,
    requests: VecDeque<RecordedRequest>,
    bytes: usize,
}

/// See the module's text.
pub(crate) struct Recent {
    /// Of the last thing that happened.
    now: Instant,
    ring: Vec<RecentRequest>,
    /// What the group was delivered with each, at the same places: the digests of its history.
    histories: Vec<u64>,
    /// Digests of the identities of requests that are not executed, at the same places; else 0.
    open: Vec<u64>,
    /// How many were ever noted.
    noted: u64,
    /// Where the next one to end is, if they end in their order.
    next_end: usize,
    recording: Option<Recording>,
    here: NodeId,
    size: usize,
}

impl Recent {
    /// `size`: how many it remembers; 0 for a node without a member.
    pub(crate) fn new(here: NodeContext, size: usize) -> Self {
        Self {
            here: here.node,
            size,
            now: Instant::ZERO,
            ring: Vec::new(),
            histories: Vec::new(),
            open: Vec::new(),
            noted: 0,
            next_end: 0,
            recording: None,
        }
    }

    /// Time has passed.
    pub(crate) fn at(&mut self, now: Instant) {
        self.now = now;
    }

    /// Makes room for all that it will remember; most groups of a domain with many rest.
    fn begin(&mut self) {
        let nothing = RecentRequest {
            index: 0,
            clock: 0,
            stamp: 0,
            at: Instant::ZERO,
            gateway: (self.here, 0, 0),
            client: None,
            operation: Short::EMPTY,
            object_key: Short::EMPTY,
            request_bytes: 0,
            outcome: Outcome::Open,
        };
        self.ring = vec![nothing; self.size];
        self.histories = vec![0; self.size];
        self.open = vec![0; self.size];
    }

    /// A request was delivered.
    pub(crate) fn delivered(&mut self, arrived: &Arrived, stamp: u64) {
        if self.size == 0 {
            return;
        }
        if self.ring.is_empty() {
            self.begin();
        }
        let place = (self.noted % self.ring.len() as u64) as usize;
        self.noted += 1;
        let client = match &arrived.key {
            RequestKey::Client { client_id, retention_id, .. } => {
                Some((Short::new(client_id), *retention_id))
            }
            RequestKey::Gateway(_) | RequestKey::Nested(_) => None,
        };
        let (operation, object_key) = names(&arrived.giop);
        let gateway = arrived.gateway;
        self.ring[place] = RecentRequest {
            index: arrived.history.count,
            clock: arrived.clock,
            stamp,
            at: self.now,
            gateway: (gateway.node, gateway.incarnation, gateway.number.0),
            client,
            operation,
            object_key,
            request_bytes: u32::try_from(arrived.giop.len()).unwrap_or(u32::MAX),
            outcome: Outcome::Open,
        };
        self.histories[place] = arrived.history.digest;
        self.open[place] = digest(&arrived.key);
        self.record(arrived);
    }

    fn record(&mut self, arrived: &Arrived) {
        let now = self.now;
        let Some(recording) = self.recording.as_mut().filter(|recording| recording.until > now)
        else {
            self.recording = None;
            return;
        };
        recording.bytes += arrived.giop.len();
        recording.requests.push_back(RecordedRequest {
            index: arrived.history.count,
            giop: arrived.giop.clone(),
            code_sets: arrived.code_sets.clone(),
            moment: arrived.moment,
            reply: None,
        });
        recording.shorten();
    }

    /// The request that was delivered last repeats an earlier one.
    pub(crate) fn repeats(&mut self) {
        if self.ring.is_empty() || self.noted == 0 {
            return;
        }
        let place = ((self.noted - 1) % self.ring.len() as u64) as usize;
        self.ring[place].outcome = Outcome::Repetition;
        self.open[place] = 0;
    }

    /// The local server has executed a request.
    pub(crate) fn executed(
        &mut self,
        key: &RequestKey,
        reply: Option<&Bytes>,
        reply_summary: Option<ReplySummary>,
    ) {
        let digest = digest(key);
        let expected = self.open.get(self.next_end) == Some(&digest);
        let found = if expected {
            Some(self.next_end)
        } else {
            self.open.iter().position(|open| *open == digest)
        };
        let Some(place) = found else { return };
        self.open[place] = 0;
        self.next_end = (place + 1) % self.ring.len();
        let entry = &mut self.ring[place];
        let status = reply_summary.map(|reply_summary| reply_summary.status);
        let reply_bytes = reply.map_or(0, |reply| u32::try_from(reply.len()).unwrap_or(u32::MAX));
        let after = self.now.since(entry.at);
        entry.outcome = Outcome::Executed { after, status, reply_bytes };
        let index = entry.index;
        if let Some(recording) = &mut self.recording {
            let at = recording.requests.binary_search_by_key(&index, |recorded| recorded.index);
            if let (Ok(at), Some(reply)) = (at, reply) {
                recording.requests[at].reply = Some(reply.clone());
                recording.bytes += reply.len();
                recording.shorten();
            }
        }
    }

    /// The request with this number has ended, for all members, without a reply of a server.
    pub(crate) fn ended(&mut self, index: u64, end: RequestEnd) {
        let is_it = |request: &RecentRequest| request.index == index && index > 0;
        let Some(place) = self.ring.iter().position(is_it) else { return };
        self.open[place] = 0;
        self.ring[place].outcome = Outcome::Ended(end);
    }

    /// The request with this number, counted from the group's first, if it is remembered.
    pub(crate) fn find(&self, index: u64) -> Option<RecentRequest> {
        let is_it = |request: &&RecentRequest| request.index == index && index > 0;
        self.ring.iter().find(is_it).copied()
    }

    /// What the group had been delivered with the request of this number, if it is remembered; with
    /// the last one, if the group went on from elsewhere.
    pub(crate) fn history(&self, index: u64) -> Option<History> {
        let size = self.ring.len() as u64;
        let places = (self.noted.saturating_sub(size)..self.noted).rev();
        let mut places = places.map(|noted| (noted % size) as usize);
        let place = places.find(|place| self.ring[*place].index == index && index > 0)?;
        Some(History { count: index, digest: self.histories[place] })
    }

    /// The last request of this name at its gateway, if it is remembered.
    pub(crate) fn find_of(&self, gateway: (NodeId, u64, u64)) -> Option<RecentRequest> {
        let of_it = self.ring.iter().filter(|request| request.gateway == gateway);
        of_it.filter(|request| request.index > 0).max_by_key(|request| request.index).copied()
    }

    /// Answers a question, and begins or goes on with a recording if it asks for that.
    pub(crate) fn page(&mut self, now: Instant, query: &RecentQuery) -> RecentPage {
        self.now = now;
        match (&mut self.recording, query.record_until) {
            (Some(recording), Some(until)) => recording.until = recording.until.max(until),
            (Some(recording), None) if recording.until <= now => self.recording = None,
            (None, Some(until)) => {
                self.recording = Some(Recording { until, requests: VecDeque::new(), bytes: 0 });
            }
            _ => {}
        }
        let size = self.ring.len() as u64;
        let first = self.noted.saturating_sub(size);
        let places = (first..self.noted).map(|noted| (noted % size) as usize);
        let requests = places.filter_map(|place| self.ring.get(place).copied());
        let requests = requests.filter(|request| request.index > query.after).collect();
        let mut page = RecentPage { requests, recorded: Vec::new() };
        if query.record_until.is_some()
            && let Some(recording) = &mut self.recording
        {
            recording.forget_up_to(query.after);
            let mut bytes = 0;
            for recorded in &recording.requests {
                bytes += recorded.bytes();
                if bytes > query.bytes_max && !page.recorded.is_empty() {
                    break;
                }
                page.recorded.push(recorded.clone());
            }
        }
        page
    }
}

impl Recording {
    /// Whoever records has those up to `index`.
    fn forget_up_to(&mut self, index: u64) {
        while self.requests.front().is_some_and(|first| first.index <= index) {
            self.pop();
        }
    }

    fn shorten(&mut self) {
        while self.bytes > RECORDED_BYTES_MAX && !self.requests.is_empty() {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let first = self.requests.pop_front();
        self.bytes -= first.map_or(0, |first| first.bytes());
    }
}

impl RecordedRequest {
    fn bytes(&self) -> usize {
        self.giop.len() + self.reply.as_ref().map_or(0, Bytes::len)
    }
}

/// The operation and the object key of a request.
#[must_use]
pub fn names(giop: &Bytes) -> (Short, Short) {
    if let Some((operation, key)) = names_by_key(giop) {
        return (Short::new(operation), Short::new(key));
    }
    let message = Message::from_bytes(giop.clone());
    match message.as_ref().map(Message::parse) {
        Ok(Ok(Body::Request(request))) => {
            let key = request.object_key().unwrap_or_default();
            (Short::new(request.operation()), Short::new(key))
        }
        // The gateway lets nothing else in.
        _ => (Short::EMPTY, Short::EMPTY),
    }
}

/// The same of a request of GIOP 1.2 that addresses by object key, as nearly all do: both stand at
/// its beginning, and the rest need not be read once more.
fn names_by_key(giop: &[u8]) -> Option<(&[u8], &[u8])> {
    let [b'G', b'I', b'O', b'P', 1, 2, flags, REQUEST, ..] = *giop else { return None };
    let mut reader = Reader::at(giop, TARGET_AT, Endian::from_bit(flags));
    if reader.read_u16("target address kind").ok()? != 0 {
        return None;
    }
    let key = reader.read_octets(OBJECT_KEY_BYTES_MAX, "object key").ok()?;
    let operation = reader.read_string(OPERATION_BYTES_MAX, "operation").ok()?;
    Some((operation, key))
}

/// Names a request well enough to find it among a few hundred; never 0.
fn digest(key: &RequestKey) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let fold = |hash: u64, word: u64| (hash ^ word).wrapping_mul(PRIME);
    let hash = match key {
        RequestKey::Gateway(key) => {
            let node = fold(0xcbf2_9ce4_8422_2325, u64::from(key.node.index()));
            fold(fold(node, key.incarnation), key.number.0)
        }
        RequestKey::Nested(CallKey { caller, during, number }) => {
            let caller = fold(fold(0x27d4_eb2f_1656_67c5, caller.0), during.digest);
            fold(fold(caller, during.count), u64::from(*number))
        }
        RequestKey::Client { client_id, retention_id, .. } => {
            let begin = fold(0x9e37_79b9_7f4a_7c15, u64::from(retention_id.cast_unsigned()));
            client_id.iter().fold(begin, |hash, octet| fold(hash, u64::from(*octet)))
        }
    };
    hash.max(1)
}

#[cfg(test)]
mod tests;
