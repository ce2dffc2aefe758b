//! Who is left out when not everybody hears everybody.
//!
//! Corosync re-forms for ever in this case. The rule: of the nodes whose links are incomplete,
//! drop the one that lacks most, the highest id among equals, until all that remain hear each
//! other. It depends only on the links, so that nodes with the same knowledge agree.
//!
//! Invariant: what remains is fully connected, and has at least one node.

use alloc::vec::Vec;
use quorba_base::{NODES_MAX, NodeId, NodeSet};

/// The nodes to drop from `nodes`; `links[i]` is whom node `i` hears. A link counts if both ends
/// hear each other.
pub(crate) fn to_drop(nodes: NodeSet, links: &[NodeSet; NODES_MAX]) -> Vec<NodeId> {
    let mut left = nodes;
    let mut dropped = Vec::new();
    let hears = |a: NodeId, b: NodeId| links[usize::from(a.index())].contains(b);
    loop {
        let lacks = |node: NodeId| {
            let linked =
                |other: &NodeId| *other == node || hears(node, *other) && hears(*other, node);
            left.len() - left.iter().filter(linked).count()
        };
        let worst = left.iter().map(|node| (lacks(node), node)).max();
        match worst {
            Some((missing, node)) if missing > 0 => {
                left.remove(node);
                dropped.push(node);
            }
            _ => return dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).expect("in range")
    }

    fn all_but(count: usize, cut: &[(u8, u8)]) -> [NodeSet; NODES_MAX] {
        let mut links = [NodeSet::first(count); NODES_MAX];
        for (a, b) in cut {
            links[usize::from(*a)].remove(node(*b));
        }
        links
    }

    #[test]
    fn full_links_drop_nobody() {
        assert!(to_drop(NodeSet::first(5), &all_but(5, &[])).is_empty());
    }

    #[test]
    fn a_chain_of_three_drops_the_higher_end() {
        assert_eq!(to_drop(NodeSet::first(3), &all_but(3, &[(0, 2)])), vec![node(2)]);
    }

    #[test]
    fn the_node_with_most_missing_links_goes_first() {
        let links = all_but(4, &[(1, 0), (1, 2), (3, 1)]);
        assert_eq!(to_drop(NodeSet::first(4), &links), vec![node(1)]);
    }
}
