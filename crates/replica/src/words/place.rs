//! Where in the log a node is, and who it is: what everything that it does is done with.
//!
//! What it is not: the log. Invariant: places are ordered as records were handed out.

use crate::words::ids::RingId;
use quorba_base::NodeId;

/// A place in the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The record, counted from the first that this boot has handed out.
    pub record: u64,
    /// The component.
    pub view: RingId,
    /// Messages applied in it.
    pub prefix: u64,
}

impl Place {
    /// Before everything.
    pub(crate) fn begin(node: NodeId) -> Self {
        Self { record: 0, view: RingId { seq: 0, representative: node }, prefix: 0 }
    }
}

/// Who "here" is.
#[derive(Clone, Copy)]
pub(crate) struct NodeContext {
    pub(crate) node: NodeId,
    pub(crate) incarnation: u64,
    /// Of what was applied last.
    pub(crate) place: Place,
}
