//! Between a ring view and the group views that follow from it: announcements come in, all else
//! waits.
//!
//! Invariant: what waits, waits in its order, and knows whether it came before or behind the end
//! of the ring.

use crate::wire::{Announcement, Payload};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet};
use quorba_order::RingId;

/// A payload that waits.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) origin: NodeId,
    pub(crate) incarnation: u64,
    pub(crate) payload: Payload,
}

/// The announcements of one ring view.
#[derive(Debug)]
pub(crate) struct Settling {
    pub(crate) ring: RingId,
    /// Each node of the ring with its boot.
    pub(crate) members: Vec<(NodeId, u64)>,
    pub(crate) announced: BTreeMap<NodeId, Announcement>,
    pub(crate) held: Vec<Held>,
    pub(crate) held_bytes: usize,
    /// The ring is at its end: what was held before, and who goes on with this node.
    pub(crate) parted: Option<(usize, NodeSet)>,
}

impl Settling {
    pub(crate) fn new(ring: RingId, members: Vec<(NodeId, u64)>) -> Self {
        let (announced, held) = (BTreeMap::new(), Vec::new());
        Self { ring, members, announced, held, held_bytes: 0, parted: None }
    }

    /// Takes an announcement; gives whether it was the last one.
    pub(crate) fn announce(
        &mut self,
        origin: NodeId,
        incarnation: u64,
        said: Announcement,
    ) -> bool {
        if said.ring == self.ring && self.members.contains(&(origin, incarnation)) {
            self.announced.insert(origin, said);
        }
        self.announced.len() == self.members.len()
    }

    pub(crate) fn hold(&mut self, held: Held) {
        if let Payload::Message { bytes, .. } = &held.payload {
            self.held_bytes += bytes.len();
        }
        self.held.push(held);
    }

    pub(crate) fn nodes(&self) -> NodeSet {
        self.members.iter().map(|(node, _)| *node).collect()
    }

    /// Nodes whose announcement is missing.
    pub(crate) fn unannounced(&self) -> NodeSet {
        self.nodes().difference(self.announced.keys().copied().collect())
    }
}
