//! Groups of real ORBs that an operator makes, changes and deletes at a command line, while the
//! domain runs, and that clients reach over the port that such groups share.
//!
//! What it is not: a test of each command; `crates/cli/tests/groups` has those, with our own
//! servant. Invariant: no domain file that a node reads ever has the group.

mod members;
pub(in crate::interop) mod operator;
mod outside;
mod references;
mod started;

use super::{Context, Orb, Verdict};

/// What the group is called.
const GROUP: &str = "bank";

/// A life of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Story {
    /// Its servers are started by nodes, and it is durable.
    Started,
    /// Its servers are given by references, and somebody else starts them.
    References,
    /// Its members are reached directly.
    Members,
}

impl Story {
    pub(super) const ALL: [Self; 3] = [Self::Started, Self::References, Self::Members];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Started => "made-at-run-time-omniorb",
            Self::References => "made-of-references-jacorb",
            Self::Members => "stateless-members-omniorb",
        }
    }

    /// That of its servers and clients.
    pub(super) const fn orb(self) -> Orb {
        match self {
            Self::Started | Self::Members => Orb::Omniorb,
            Self::References => Orb::Jacorb,
        }
    }
}

pub(super) fn run(context: &Context, story: Story) -> Verdict {
    let told = match story {
        Story::Started => started::run(context),
        Story::References => references::run(context),
        Story::Members => members::run(context),
    };
    told.map_or_else(Verdict::Failed, Verdict::Passed)
}
