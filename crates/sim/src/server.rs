//! A virtual server process: the log servant behind plain GIOP, one call after the other, one of
//! each connection, or all at once.
//!
//! What it is not: it knows nothing of Quorba. Invariant: a dead server does nothing.

use crate::calls::Calling;
use crate::odd::Reaction;
use crate::servant::{Log, Operation};
use crate::stream::StreamId;
use quorba_base::{Duration, Instant};
use quorba_engine::replica::{Concurrency, GroupId};
use quorba_giop::{Framer, FramerLimits, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A call that a server got.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) stream: StreamId,
    pub(crate) message: Message,
    pub(crate) request_id: u32,
    pub(crate) operation: Operation,
    pub(crate) wants_reply: bool,
    /// When it was read.
    pub(crate) came: Instant,
}

/// What a server does wrong next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Misdeed {
    /// It answers with noise.
    Garbage,
    /// It answers another call than the one that was made.
    WrongId,
    /// It raises an exception at `get_state` and `set_state`.
    NoState,
    /// It does what it is asked, and says something else.
    Lie,
    /// It reacts to its next call in another way than by a reply.
    React(Reaction),
}

/// See the module's text.
pub(crate) struct Server {
    pub(crate) node: usize,
    pub(crate) group: GroupId,
    pub(crate) alive: bool,
    /// It accepts connections.
    pub(crate) listening: bool,
    pub(crate) log: Log,
    pub(crate) links: BTreeMap<StreamId, Framer>,
    pub(crate) queue: VecDeque<Work>,
    /// By the count of calls started.
    pub(crate) running: BTreeMap<u64, Work>,
    /// Counts calls started.
    pub(crate) serial: u64,
    /// It answers nothing until then.
    pub(crate) hangs: bool,
    pub(crate) slow_until: Instant,
    /// How much longer its next call takes.
    pub(crate) lingers: Option<Duration>,
    pub(crate) misdeed: Option<Misdeed>,
    /// How many calls it had begun when it was first seen to do nothing, and when that was.
    pub(crate) silent_since: Option<(u64, Instant)>,
    /// It has reacted to a call in another way than its peers.
    pub(crate) was_strange: bool,
    /// Connections on which it has begun something and not answered.
    pub(crate) owes: BTreeSet<StreamId>,
    /// It waits for another group.
    pub(crate) calling: Option<Calling>,
    /// It takes calls of other connections meanwhile.
    pub(crate) has_threads: bool,
}

impl Server {
    pub(crate) fn new(node: usize, group: GroupId, has_threads: bool, log: Log) -> Self {
        Self {
            node,
            group,
            alive: true,
            listening: false,
            log,
            links: BTreeMap::new(),
            queue: VecDeque::new(),
            running: BTreeMap::new(),
            serial: 0,
            hangs: false,
            slow_until: Instant::ZERO,
            lingers: None,
            misdeed: None,
            silent_since: None,
            was_strange: false,
            owes: BTreeSet::new(),
            calling: None,
            has_threads,
        }
    }

    /// It has reacted to a call in its own way, or is about to.
    pub(crate) fn is_strange(&self) -> bool {
        self.was_strange || matches!(self.misdeed, Some(Misdeed::React(_)))
    }

    /// Whether it has begun something and never answers it.
    pub(crate) fn owes_some(&self) -> bool {
        self.links.keys().any(|link| self.owes.contains(link))
    }

    /// The next call that it may begin.
    pub(crate) fn next_work(&mut self, concurrency: Concurrency) -> Option<Work> {
        let is_free = |work: &Work| match concurrency {
            Concurrency::Sequential => {
                let waits = self.calling.is_some() && self.has_threads;
                self.running.is_empty()
                    || waits && self.running.values().all(|r| r.stream != work.stream)
            }
            Concurrency::Pipelined => self.running.values().all(|r| r.stream != work.stream),
            Concurrency::PerObject => true,
        };
        let index = self.queue.iter().position(is_free)?;
        self.queue.remove(index)
    }

    pub(crate) fn framer() -> Framer {
        Framer::new(FramerLimits {
            message_bytes_max: 16 << 20,
            fragmented_requests_max: 4,
            buffered_bytes_max: 20 << 20,
        })
    }
}
