//! The fault detectors of objects (FT-CORBA §23.4), as far as they decide: whom to ask and when,
//! who counts as dead, and what is reported.
//!
//! What it is not: a part of a replica's state, or a clock. The process beside a replica makes the
//! calls and tells what came of them; times are since anything.
//!
//! Invariants: of one object one thing is done at a time; what came of a call about an object that
//! is not the one that is there now changes nothing; an object is reported once, until it answers
//! or is heard again.

mod pull;
mod push;

use alloc::string::String;

pub use pull::{PullDetector, PullErrand};
pub use push::{PushDetector, PushErrand};

/// An object by what it stands for at its location.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Target {
    /// Its node.
    pub location: String,
    /// It stands for objects of this type, or of all.
    pub type_id: Option<String>,
    /// It stands for the member of this group, or of all.
    pub group: Option<u64>,
}

/// Names one question, or one report: what comes of it is told under the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errand {
    /// About whom.
    pub target: Target,
    number: u64,
}

/// Whose objects the process of a replica watches: those at its own node, and, if it is the first
/// replica that is in, those at nodes that have none.
#[derive(Clone, Debug)]
pub struct Charge {
    /// Its node.
    pub node: String,
    /// Nodes whose replica is in, in the order of the domain.
    pub inside: alloc::vec::Vec<String>,
}

impl Charge {
    /// Whether objects at that node are its business.
    #[must_use]
    pub fn has(&self, location: &str) -> bool {
        let is_first = self.inside.first() == Some(&self.node);
        location == self.node || is_first && !self.inside.iter().any(|node| node == location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_at_nodes_without_a_replica_are_the_first_ones_business_and_nobody_elses() {
        let charge = |node: &str, inside: &[&str]| Charge {
            node: node.into(),
            inside: inside.iter().map(|node| String::from(*node)).collect(),
        };
        let of = |charge: &Charge| ["n1", "n2", "n3"].map(|node| charge.has(node));
        assert_eq!(of(&charge("n1", &["n1", "n2"])), [true, false, true]);
        assert_eq!(of(&charge("n2", &["n1", "n2"])), [false, true, false]);
        assert_eq!(of(&charge("n2", &["n2", "n3"])), [true, true, false]);
        // Its own replica is not in, or nobody says who is.
        assert_eq!(of(&charge("n3", &["n1", "n2"])), [false, false, true]);
        assert_eq!(of(&charge("n3", &[])), [false, false, true]);
    }
}
