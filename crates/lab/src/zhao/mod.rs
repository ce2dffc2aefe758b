//! Zhao, Moser, Melliar-Smith 2002, repeated: five scenarios, four measures, and what their paper
//! says of them beside what is found here.
//!
//! What it is not: a way to measure; that is the same as for every plan. Here is only what comes
//! of the time stamps.
//!
//! Invariants: nodes are numbered as in the paper, from the client's node along the ring; every
//! sentence of the outcome is computed from samples.

mod claims;
mod figures;
pub(crate) mod paper;
mod pdf;
mod trace;

use serde::{Deserialize, Serialize};

pub use claims::Claim;
pub(crate) use claims::{claims, list_of};
pub use figures::{Figures, NodeFigures};
pub(crate) use figures::{Repetition, Samples};
pub(crate) use pdf::Pdf;
pub use pdf::{Peak, Shape};
#[cfg(test)]
pub(crate) use trace::NodeTrace;
pub(crate) use trace::Trace;

/// Nodes of the ring; the client is at the first, a replica at each of the others.
pub(crate) const NODES: usize = 4;

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

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::A, Self::B, Self::C, Self::D, Self::E];

    /// The paper's letter, and what it stands for.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::A => "(a) semi-active, primary at node 1",
            Self::B => "(b) semi-active, primary at node 2",
            Self::C => "(c) semi-active, primary at node 3",
            Self::D => "(d) active, no think time",
            Self::E => "(e) active, random think time",
        }
    }

    /// The primary's node, if there is one.
    #[must_use]
    pub const fn primary(self) -> Option<usize> {
        match self {
            Self::A => Some(1),
            Self::B => Some(2),
            Self::C => Some(3),
            Self::D | Self::E => None,
        }
    }
}

/// What a run found of the paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Every scenario.
    pub figures: Vec<Figures>,
    /// What the paper says, and what is so here.
    pub claims: Vec<Claim>,
}

impl Samples {
    /// The outcome; `None` if the run repeated nothing.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let figures = self.figures();
        let claims = claims(&figures);
        (!figures.is_empty()).then_some(Outcome { figures, claims })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few nodes")]
pub(crate) fn count(nodes: usize) -> f64 {
    nodes as f64
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

impl RingKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Paper, Self::Shipped];

    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Paper => "as in the paper",
            Self::Shipped => "as shipped",
        }
    }
}
