//! How many nodes make a primary component, and how many must hold what it acknowledges.
//!
//! Invariants: two parts of one whole never both have a quorum of it, unless they share a node;
//! a quorum of a component always has one of those who hold what it acknowledged.

use quorba_base::policy::QuorumRule;
use quorba_base::{NodeId, NodeSet};

/// The rule with its tie-breaker; equal on all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quorum {
    /// See there.
    pub rule: QuorumRule,
    /// Of two equal halves, the one with this node has the quorum. Without it: neither, or with
    /// the dynamic rule, the half with the lowest node.
    pub tie_breaker: Option<NodeId>,
}

impl Quorum {
    /// Whether those of `whole` who are in `part` are a quorum of it.
    #[must_use]
    pub fn of(self, whole: NodeSet, part: NodeSet) -> bool {
        let (here, all) = (part.intersection(whole), whole.len());
        let named = self.tie_breaker.filter(|node| whole.contains(*node));
        let tie = match self.rule {
            QuorumRule::Majority => named,
            QuorumRule::DynamicLinear => named.or_else(|| whole.lowest()),
        };
        2 * here.len() > all || 2 * here.len() == all && tie.is_some_and(|node| here.contains(node))
    }

    /// How many nodes of a component of `component` nodes hold what is acknowledged in it; `domain`
    /// nodes are there at all.
    ///
    /// Any quorum of the next component's base has one of them: with the static rule, since a
    /// majority of the domain, or all of a component that is no larger than half of it, shares a
    /// node with every quorum; with the dynamic rule, since a majority of the component shares
    /// one even with half of it.
    #[must_use]
    pub fn holders_min(self, domain: usize, component: usize) -> usize {
        match self.rule {
            QuorumRule::Majority => (domain / 2 + 1).min(component),
            QuorumRule::DynamicLinear => component / 2 + 1,
        }
    }

    /// Whether every node must know of an attempt before any acts on it.
    #[must_use]
    pub fn is_dynamic(self) -> bool {
        self.rule == QuorumRule::DynamicLinear
    }
}
