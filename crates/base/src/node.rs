//! Nodes of a domain: ids and sets of ids.
//!
//! Invariant: a [`NodeSet`] iterates in ascending id order on every node, so that choices made
//! by "the first of" agree everywhere.

use core::fmt;

/// The most nodes that a domain can have; node ids are below it.
pub const NODES_MAX: usize = 64;

/// A node of the domain: its position in the domain file, from 0, below [`NODES_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u8);

impl NodeId {
    /// The node at `index` in the domain file; `None` if the index is not below [`NODES_MAX`].
    #[must_use]
    pub const fn new(index: u8) -> Option<Self> {
        if (index as usize) < NODES_MAX { Some(Self(index)) } else { None }
    }

    /// The position in the domain file.
    #[must_use]
    pub const fn index(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A set of nodes, as one machine word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeSet(u64);

impl NodeSet {
    /// No node.
    pub const EMPTY: Self = Self(0);

    /// The first `count` nodes of the domain file (all [`NODES_MAX`] if `count` is larger).
    #[must_use]
    pub const fn first(count: usize) -> Self {
        if count >= NODES_MAX { Self(u64::MAX) } else { Self((1 << count) - 1) }
    }

    /// The set whose members are the one-bits of `bits`: bit `i` is node `i`.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Bit `i` is node `i`.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether `node` is in the set.
    #[must_use]
    pub const fn contains(self, node: NodeId) -> bool {
        self.0 & (1 << node.0) != 0
    }

    /// Adds `node`.
    pub const fn insert(&mut self, node: NodeId) {
        self.0 |= 1 << node.0;
    }

    /// Takes `node` out.
    pub const fn remove(&mut self, node: NodeId) {
        self.0 &= !(1 << node.0);
    }

    /// This set and `node`.
    #[must_use]
    pub const fn with(self, node: NodeId) -> Self {
        Self(self.0 | 1 << node.0)
    }

    /// Nodes in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Nodes in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Nodes of this set that are not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether every node of this set is in `other`.
    #[must_use]
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// How many nodes the set has.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set has no node.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The node with the lowest id.
    #[must_use]
    pub fn lowest(self) -> Option<NodeId> {
        self.iter().next()
    }

    /// The first node of the set that comes after `node` in ring order (ascending ids, then round
    /// to the lowest); `node` itself if it is the only one, `None` if the set is empty.
    #[must_use]
    pub fn successor(self, node: NodeId) -> Option<NodeId> {
        let above = if node.0 as usize + 1 >= NODES_MAX { 0 } else { u64::MAX << (node.0 + 1) };
        Self(self.0 & above).lowest().or_else(|| self.lowest())
    }

    /// The nodes in ascending order of their ids.
    #[must_use]
    pub const fn iter(self) -> NodeSetIter {
        NodeSetIter(self.0)
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        nodes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl IntoIterator for NodeSet {
    type Item = NodeId;
    type IntoIter = NodeSetIter;

    fn into_iter(self) -> NodeSetIter {
        self.iter()
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Iterates a [`NodeSet`] in ascending order of ids.
#[derive(Clone, Copy, Debug)]
pub struct NodeSetIter(u64);

impl Iterator for NodeSetIter {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros() as u8;
        self.0 &= self.0 - 1;
        Some(NodeId(index))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).expect("below NODES_MAX")
    }

    #[test]
    fn ring_order_goes_up_and_round() {
        let set = NodeSet::EMPTY.with(node(1)).with(node(4)).with(node(63));
        assert_eq!(set.successor(node(1)), Some(node(4)));
        assert_eq!(set.successor(node(4)), Some(node(63)));
        assert_eq!(set.successor(node(63)), Some(node(1)));
        assert_eq!(NodeSet::EMPTY.successor(node(3)), None);
        assert_eq!(NodeSet::EMPTY.with(node(2)).successor(node(2)), Some(node(2)));
    }

    #[test]
    fn iterates_in_ascending_order_whatever_the_insertion_order() {
        let set: NodeSet = [node(9), node(0), node(33)].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [node(0), node(9), node(33)]);
        assert_eq!(set.len(), 3);
    }

    #[test]
    fn ids_beyond_the_limit_do_not_exist() {
        assert!(NodeId::new(64).is_none());
        assert_eq!(NodeSet::first(64).len(), 64);
        assert_eq!(NodeSet::first(3).bits(), 0b111);
    }
}
