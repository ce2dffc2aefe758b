//! What there is of each group, by its id.
//!
//! An id is a name that a group keeps for its life, not a position: groups come and go, and an id
//! is not given out twice. Invariant: gone through in the order of the ids, alike at all nodes.

use crate::words::ids::GroupId;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map;
use core::ops::{Index, IndexMut};

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMap<T>(BTreeMap<GroupId, T>);

impl<T> GroupMap<T> {
    /// Nothing of no group.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// What `of` gives for each of these groups.
    pub fn of(ids: impl IntoIterator<Item = GroupId>, mut of: impl FnMut(GroupId) -> T) -> Self {
        Self(ids.into_iter().map(|id| (id, of(id))).collect())
    }

    /// What there is of a group.
    #[must_use]
    pub fn get(&self, id: GroupId) -> Option<&T> {
        self.0.get(&id)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, id: GroupId) -> Option<&mut T> {
        self.0.get_mut(&id)
    }

    /// Whether there is such a group.
    #[must_use]
    pub fn contains(&self, id: GroupId) -> bool {
        self.0.contains_key(&id)
    }

    /// How many groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The groups' ids, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = GroupId> + Clone + '_ {
        self.0.keys().copied()
    }

    /// The first group's id behind that one, or of all; so that something can be done for each
    /// while the map is not borrowed.
    #[must_use]
    pub fn next_id(&self, behind: Option<GroupId>) -> Option<GroupId> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = behind.map_or(Unbounded, Excluded);
        self.0.range((from, Unbounded)).next().map(|(id, _)| *id)
    }

    /// All, with their ids, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (GroupId, &T)> + Clone {
        self.0.iter().map(|(id, of)| (*id, of))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (GroupId, &mut T)> {
        self.0.iter_mut().map(|(id, of)| (*id, of))
    }

    /// All, in the order of their ids.
    pub fn values(&self) -> btree_map::Values<'_, GroupId, T> {
        self.0.values()
    }

    /// The same, to be changed.
    pub fn values_mut(&mut self) -> btree_map::ValuesMut<'_, GroupId, T> {
        self.0.values_mut()
    }

    /// There is a group, or another thing of it; what there was of it.
    pub fn insert(&mut self, id: GroupId, of: T) -> Option<T> {
        self.0.insert(id, of)
    }

    /// There is no such group any more; what there was of it.
    pub fn remove(&mut self, id: GroupId) -> Option<T> {
        self.0.remove(&id)
    }
}

impl<T> Default for GroupMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FromIterator<(GroupId, T)> for GroupMap<T> {
    fn from_iter<I: IntoIterator<Item = (GroupId, T)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl<T> IntoIterator for GroupMap<T> {
    type Item = (GroupId, T);
    type IntoIter = btree_map::IntoIter<GroupId, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> Index<GroupId> for GroupMap<T> {
    type Output = T;

    /// # Panics
    /// If there is no such group: who has the id of one from outside asks with [`GroupMap::get`].
    fn index(&self, id: GroupId) -> &T {
        self.0.get(&id).expect("the group is known")
    }
}

impl<T> IndexMut<GroupId> for GroupMap<T> {
    fn index_mut(&mut self, id: GroupId) -> &mut T {
        self.0.get_mut(&id).expect("the group is known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn groups_are_gone_through_by_their_ids_whatever_came_first() {
        let mut map = GroupMap::of([GroupId(7), GroupId(2)], |id| id.0 * 10);
        assert_eq!(map.insert(GroupId(4), 40), None);
        assert_eq!(
            map.iter().map(|(id, of)| (id.0, *of)).collect::<Vec<_>>(),
            [(2, 20), (4, 40), (7, 70)]
        );
        let next = |behind| map.next_id(behind).map(|id| id.0);
        assert_eq!(
            [None, Some(2), Some(3), Some(7)].map(|it| next(it.map(GroupId))),
            [Some(2), Some(4), Some(4), None]
        );
        assert_eq!((map.remove(GroupId(2)), map.remove(GroupId(2))), (Some(20), None));
        assert!(!map.contains(GroupId(2)) && map.len() == 2 && !map.is_empty());
        map[GroupId(7)] += 1;
        assert_eq!(map[GroupId(7)], 71);
    }
}
