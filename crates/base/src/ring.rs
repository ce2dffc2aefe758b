//! The name of a ring, and what a node writes down of what was ordered in it.
//!
//! A ring is one configuration of the membership (Amir95 §3); those above it call it a view, and a
//! primary component goes by the view in which it was established. Invariant: a name is used once.

use crate::{GroupId, NodeId};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// A ring, that is one configuration of the membership, or view. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingId {
    /// Grows with every ring that any of its members has been in.
    pub seq: u64,
    /// The member that minted the id.
    pub representative: NodeId,
}

impl fmt::Debug for RingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.representative)
    }
}

impl fmt::Display for RingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A place in the domain's order: how many messages a primary component had applied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// The component's view.
    pub component: RingId,
    /// Messages applied in it, this one included.
    pub prefix: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RingId { seq, representative } = self.component;
        write!(f, "{seq}{representative}+{}", self.prefix)
    }
}

/// What a node's log holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogRecord {
    /// A message that the node applied in a primary component.
    Message {
        /// The node that sent it.
        origin: NodeId,
        /// That node's boot.
        incarnation: u64,
        /// The sender's count of its messages.
        ticket: u64,
        /// Its place in the domain's order.
        position: Position,
        /// What it says; opaque to whoever stores it.
        payload: Bytes,
    },
    /// A primary component was established with this node in it; or this is what had become of it
    /// later, for a log whose beginning is given up.
    Component {
        /// Its view.
        component: RingId,
        /// What it is; opaque to whoever stores it.
        payload: Bytes,
    },
}

impl LogRecord {
    /// The opaque part.
    #[must_use]
    pub const fn payload(&self) -> &Bytes {
        match self {
            Self::Message { payload, .. } | Self::Component { payload, .. } => payload,
        }
    }
}

/// What a node's disk remembers, if it can be trusted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// All records of the log, in their order.
    pub records: Vec<LogRecord>,
    /// States of groups, as they were saved.
    pub states: Vec<(GroupId, Bytes)>,
    /// Groups of which a newer state was there, and is damaged.
    pub lacking: Vec<GroupId>,
}
