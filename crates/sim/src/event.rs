//! What is going to happen, and when: the simulation's only clock.
//!
//! Invariant: events of the same time happen in the order in which they were planned.

use crate::stream::{Segment, Side, StreamId};
use bytes::BytesMut;
use quorba_base::Instant;
use quorba_engine::replica::{DownReason, GroupId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One thing that will happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// A node's timer, or the end of its pause or work.
    Wake {
        node: usize,
        boot: u64,
    },
    Datagram {
        to: usize,
        bytes: BytesMut,
    },
    Segment {
        id: StreamId,
        to: Side,
        segment: Segment,
    },
    /// A gateway reads a stream on.
    Resume {
        id: StreamId,
    },
    /// A node process starts.
    Boot {
        node: usize,
        boot: u64,
    },
    /// A node that was asked to stop is looked at.
    Stopping {
        node: usize,
        boot: u64,
        tries: u32,
    },
    /// A peer's kernel said that a process is gone.
    PeerLost {
        node: usize,
        boot: u64,
        lost: usize,
    },
    /// A supervisor starts its server.
    ServerStart {
        node: usize,
        boot: u64,
        group: GroupId,
        serial: u64,
    },
    /// A supervisor has news for its node.
    ServerNews {
        node: usize,
        boot: u64,
        group: GroupId,
        down: Option<DownReason>,
    },
    /// A server has executed what it works on.
    ServerDone {
        server: usize,
        serial: u64,
    },
    /// A client has something to do.
    Client {
        client: usize,
        serial: u64,
    },
    /// The next fault.
    Nemesis,
    /// Whatever the last fault of this kind did is over.
    Calm(Calm),
    /// Look at all nodes.
    Inspect,
}

/// Faults that end by themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Calm {
    LossBurst,
    SlowNode(usize),
    Stall(usize),
}

struct Entry {
    at: Instant,
    serial: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.serial) == (other.at, other.serial)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    serial: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        self.serial += 1;
        self.heap.push(Reverse(Entry { at, serial: self.serial, event }));
    }

    /// The next event, if it is due by `until`.
    pub(crate) fn pop(&mut self, until: Instant) -> Option<(Instant, Event)> {
        if self.heap.peek()?.0.at > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}
