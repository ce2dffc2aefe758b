//! What is going to happen, and when: the simulation's only clock.
//!
//! Invariant: events of the same time happen in the order in which they were planned.

use crate::outside::Asked;
use crate::peers::PeerEvent;
use crate::stream::{Segment, Side, StreamId};
use bytes::Bytes;
use quorba_base::{Instant, Position};
use quorba_engine::replica::{DownReason, GroupId, Place, Recovered};
use quorba_journal::Seq;
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
        bytes: Bytes,
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
    /// The next node of a rolling restart.
    Roll {
        node: usize,
        boot: u64,
        left: usize,
    },
    /// A node has come late: some of those who were there end, and the rest are cut off.
    Bereave {
        latecomer: usize,
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
    /// Something about a link between nodes.
    Peer(PeerEvent),
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
        stops: u32,
        down: Option<DownReason>,
    },
    /// A server has executed what it works on.
    ServerDone {
        server: usize,
        serial: u64,
    },
    /// A node's catalog is written down as far as it was asked for.
    CatalogWritten {
        node: usize,
        boot: u64,
    },
    /// It was told so.
    CatalogSaved {
        node: usize,
        boot: u64,
        version: Position,
    },
    /// An operator creates, changes or deletes a group.
    Cataloguer,
    /// A group commit is done.
    Synced {
        node: usize,
        boot: u64,
    },
    /// A state that a node wants kept is written.
    Saved {
        node: usize,
        boot: u64,
        group: GroupId,
        place: Place,
        bytes: Bytes,
    },
    /// A node reads its log, which it wanted to see while it runs, if it has come as far.
    LooksUp {
        node: usize,
        boot: u64,
        look: (GroupId, u64),
        up_to: Seq,
    },
    /// It has read it.
    LookedUp {
        node: usize,
        boot: u64,
        look: (GroupId, u64),
        found: Option<Box<Recovered>>,
    },
    /// A log has become long.
    Compact {
        node: usize,
        boot: u64,
    },
    /// What was wrong with a disk is over.
    DiskRepaired {
        node: usize,
        boot: u64,
    },
    /// A disk is in doubt no more.
    Trusted {
        node: usize,
        boot: u64,
    },
    /// A client has something to do.
    Client {
        client: usize,
        serial: u64,
    },
    /// A server outside fails in some way.
    OutsideFault {
        outsider: usize,
    },
    /// It starts again.
    OutsideStart {
        outsider: usize,
    },
    /// It answers.
    OutsideDone {
        outsider: usize,
        asked: Asked,
    },
    /// An operator takes a backup, or gives one back.
    Operator,
    /// An operator looks for requests that hang.
    Attendant,
    /// All nodes end, now that somebody has been told that something is safe.
    Blackout,
    /// The next fault.
    Nemesis,
    /// Look at all nodes.
    Inspect,
}

/// When something happens, and where it is kept meanwhile: what the heap moves about is small,
/// and compared as one number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Nanoseconds, then the serial number: what is planned first happens first.
    order: u128,
    slot: usize,
}

impl Entry {
    fn at(&self) -> Instant {
        Instant::from_nanos((self.order >> 64) as u64)
    }
}

/// See the module's text.
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry>>,
    serial: u64,
    slots: Vec<Option<E>>,
    free: Vec<usize>,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), serial: 0, slots: Vec::new(), free: Vec::new() }
    }
}

impl<E> Queue<E> {
    pub(crate) fn push(&mut self, at: Instant, event: E) {
        self.serial += 1;
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(event);
        let order = u128::from(at.as_nanos()) << 64 | u128::from(self.serial);
        self.heap.push(Reverse(Entry { order, slot }));
    }

    /// The next event, if it is due by `until`.
    pub(crate) fn pop(&mut self, until: Instant) -> Option<(Instant, E)> {
        if self.heap.peek()?.0.at() > until {
            return None;
        }
        let Reverse(entry) = self.heap.pop()?;
        self.free.push(entry.slot);
        self.slots[entry.slot].take().map(|event| (entry.at(), event))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}
