//! Names of processes, groups and views.
//!
//! Invariant: all of them are totally ordered, and compare the same on every node; those that say
//! so mean something on one node only.

use crate::NAME_BYTES_MAX;
use alloc::sync::Arc;
use core::fmt;
use quorba_base::NodeId;
use quorba_order::RingId;

/// A process of this node; never given out twice in one boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessNumber(pub u32);

/// A group, as this node numbers it in this boot. Messages carry it instead of the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupNumber(pub u32);

/// A process, the same on every node and never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// The node that serves it.
    pub node: NodeId,
    /// Which boot of the node.
    pub incarnation: u64,
    /// The node's number for it.
    pub number: ProcessNumber,
}

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}/{}", self.node, self.number.0, self.incarnation)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.number.0)
    }
}

/// The name of a group: 1 to [`NAME_BYTES_MAX`] bytes of any kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName(Arc<[u8]>);

impl GroupName {
    /// `None` if the name is empty or too long.
    #[must_use]
    pub fn new(name: &[u8]) -> Option<Self> {
        (1..=NAME_BYTES_MAX).contains(&name.len()).then(|| Self(name.into()))
    }

    /// The name's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

/// A regular view of a group. With the group's name it is unique; views of one group ascend at
/// every process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupViewId {
    /// The ring in which it was installed.
    pub ring: RingId,
    /// Joins and leaves of any group ordered in that ring before it, its own included; 0 if the
    /// ring's own beginning caused it.
    pub change: u64,
}

impl fmt::Debug for GroupViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.ring, self.change)
    }
}
