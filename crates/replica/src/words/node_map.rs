//! What there is of each of a few nodes: one piece of memory that is as large as it has to be,
//! because every group has several of them, and there may be many groups.
//!
//! Invariant: ascending by nodes, each once.

use alloc::vec::{self, Vec};
use quorba_base::NodeId;

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NodeMap<T>(Vec<(NodeId, T)>);

impl<T> NodeMap<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    fn place(&self, node: NodeId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&node, |(of, _)| *of)
    }

    pub(crate) fn get(&self, node: NodeId) -> Option<&T> {
        self.place(node).ok().map(|at| &self.0[at].1)
    }

    /// What there is of the node, or what `new` gives from now on.
    pub(crate) fn get_or_insert_with(&mut self, node: NodeId, new: impl FnOnce() -> T) -> &mut T {
        let at = match self.place(node) {
            Ok(at) => at,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (node, new()));
                at
            }
        };
        &mut self.0[at].1
    }

    pub(crate) fn insert(&mut self, node: NodeId, of: T) {
        match self.place(node) {
            Ok(at) => self.0[at].1 = of,
            Err(_) => drop(self.get_or_insert_with(node, || of)),
        }
    }

    pub(crate) fn remove(&mut self, node: NodeId) {
        if let Ok(at) = self.place(node) {
            self.0.remove(at);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(NodeId, &mut T) -> bool) {
        self.0.retain_mut(|(node, of)| is_kept(*node, of));
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, &T)> {
        self.0.iter().map(|(node, of)| (*node, of))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut T)> {
        self.0.iter_mut().map(|(node, of)| (*node, of))
    }
}

impl<T> Default for NodeMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FromIterator<(NodeId, T)> for NodeMap<T> {
    fn from_iter<I: IntoIterator<Item = (NodeId, T)>>(all: I) -> Self {
        let mut map = Self::new();
        all.into_iter().for_each(|(node, of)| map.insert(node, of));
        map
    }
}

impl<T> IntoIterator for NodeMap<T> {
    type Item = (NodeId, T);
    type IntoIter = vec::IntoIter<(NodeId, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_in_their_order_whatever_came_first() {
        let node = |index| NodeId::new(index).unwrap();
        let mut map: NodeMap<u8> =
            [(node(2), 20), (node(0), 0), (node(2), 21)].into_iter().collect();
        map.insert(node(1), 10);
        *map.get_or_insert_with(node(1), || 99) += 1;
        let all =
            |map: &NodeMap<u8>| map.iter().map(|(n, of)| (n.index(), *of)).collect::<Vec<_>>();
        assert_eq!(all(&map), [(0, 0), (1, 11), (2, 21)]);
        map.remove(node(0));
        map.retain(|_, of| *of != 11);
        assert_eq!((all(&map), map.len(), map.get(node(0))), ([(2, 21)].into(), 1, None));
    }
}
