//! Stateless groups: which member gets a call.
//!
//! The members of a stateless group remember nothing that a client could notice, so a call needs
//! neither a place in the order nor a retention table: the gateway hands it to the member with the
//! fewest calls of its own outstanding. When the server, its node or the link to it goes before the
//! reply, another member gets the call: a call that was handed out is executed at least once, and
//! perhaps twice; at a view change all that are open are handed out again.
//!
//! Some calls go through the order all the same, and are executed by one member where they are
//! delivered, with a reply that is ordered as well: those that a member gave back, those too long
//! for a message between nodes, and those submitted before the group became stateless.
//!
//! What it is not: who is in, or what becomes of a call. Invariant: a node that has refused a call
//! is left alone for a while, so that no call goes back and forth without end.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorba_base::{Duration, Instant, NodeId, NodeSet};

/// How long a node that has refused a call is left alone.
const AVOIDED_FOR: Duration = Duration::from_millis(100);

/// What the members have to do for this gateway.
#[derive(Default)]
pub(crate) struct Load {
    outstanding: BTreeMap<NodeId, u32>,
    avoided: Vec<(NodeId, Instant)>,
}

impl Load {
    /// A node got a call.
    pub(crate) fn add(&mut self, node: NodeId) {
        *self.outstanding.entry(node).or_default() += 1;
    }

    /// A call at a node has ended, one way or the other.
    pub(crate) fn end(&mut self, node: NodeId) {
        if let Some(count) = self.outstanding.get_mut(&node) {
            *count = count.saturating_sub(1);
        }
    }

    /// Of `nodes` the one with the least to do; this one before others.
    pub(crate) fn least(&self, nodes: NodeSet, here: NodeId) -> Option<NodeId> {
        let is_avoided = |node: NodeId| self.avoided.iter().any(|(avoided, _)| *avoided == node);
        let load = |node: NodeId| self.outstanding.get(&node).copied().unwrap_or(0);
        nodes
            .iter()
            .filter(|node| !is_avoided(*node))
            .min_by_key(|node| (load(*node), *node != here, *node))
    }

    /// A node has refused a call.
    pub(crate) fn avoid(&mut self, now: Instant, node: NodeId) {
        self.avoided.retain(|(avoided, _)| *avoided != node);
        self.avoided.push((node, now + AVOIDED_FOR));
    }

    /// Time passed.
    pub(crate) fn forgive(&mut self, now: Instant) {
        self.avoided.retain(|(_, until)| *until > now);
    }

    /// Whether no node has refused a call lately.
    pub(crate) fn avoids_nobody(&self) -> bool {
        self.avoided.is_empty()
    }

    /// When a node is to be tried again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.avoided.iter().map(|(_, until)| *until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_member_with_the_least_to_do_gets_the_next_call_and_this_node_breaks_ties() {
        let node = |index| NodeId::new(index).unwrap();
        let (all, here) = (NodeSet::first(3), node(1));
        let mut load = Load::default();
        let mut chosen = Vec::new();
        for _ in 0..6 {
            let next = load.least(all, here).unwrap();
            load.add(next);
            chosen.push(next.index());
        }
        assert_eq!(chosen, [1, 0, 2, 1, 0, 2]);
        load.end(node(2));
        assert_eq!(load.least(all, here), Some(node(2)));
        load.avoid(Instant::ZERO, node(2));
        assert_eq!(load.least(all, here), Some(here));
        let later = load.deadline().unwrap();
        load.forgive(later);
        assert_eq!(load.least(all, here), Some(node(2)));
        assert_eq!(load.least(NodeSet::EMPTY, here), None);
    }
}
