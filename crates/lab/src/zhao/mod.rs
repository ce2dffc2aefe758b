//! Zhao, Moser, Melliar-Smith 2002, repeated: five scenarios, four measures, and what their paper
//! says of them beside what is found here.
//!
//! What it is not: a way to measure; that is the same as for every plan. Here is only what comes
//! of the time stamps.
//!
//! Invariants: nodes are numbered as in the paper, from the client's node along the ring; every
//! sentence of the outcome is computed from samples.

mod pdf;
mod trace;

use serde::{Deserialize, Serialize};

pub use pdf::{Peak, Shape};
pub(crate) use trace::Trace;

/// Nodes of the ring; the client is at the first, a replica at each of the others.
pub const NODES: usize = 4;

/// What a configuration repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    /// Of the paper.
    pub scenario: Scenario,
    /// How the ring and the group are set.
    pub ring: RingKind,
}

/// The scenarios of §2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// Semi-active replication, the primary at node 1.
    A,
    /// The primary at node 2.
    B,
    /// The primary at node 3.
    C,
    /// Active replication, no think time.
    D,
    /// Active replication, random think time.
    E,
}

/// How the ring and the group are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingKind {
    /// As in the paper: the token circulates always, nothing is sealed, replies wait for nothing
    /// but their turn.
    Paper,
    /// As a user gets it.
    Shipped,
}
