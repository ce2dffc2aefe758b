//! What the gateway has of each group, and which of them want something.
//!
//! What it is not: what a group has. Invariants: whoever asks for a group that is no more, or never
//! was, gets a book in which nothing is; what is gone through at each event are the groups that
//! have calls, and not all that there are.

use super::GroupBook;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use core::ops::{Index, IndexMut};
use quorba_replica::{GroupId, GroupMap};

/// The port through which all groups without one of their own are reached, in the place of a group.
pub const SHARED_PORT: GroupId = GroupId(u64::MAX);

/// See the module's text.
pub(crate) struct Books {
    /// Each on its own: they are large, and a tree leaves much of its room free.
    map: GroupMap<Box<GroupBook>>,
    nowhere: GroupBook,
    /// Groups with calls that are not over.
    busy: BTreeSet<GroupId>,
    /// Groups that had some since they were looked at last.
    used: BTreeSet<GroupId>,
    /// Groups whose members are to be told which replies they need not keep.
    announcing: BTreeSet<GroupId>,
}

impl Books {
    pub(super) fn new(nowhere: GroupBook) -> Self {
        let (busy, used) = (BTreeSet::new(), BTreeSet::new());
        Self { map: GroupMap::new(), nowhere, busy, used, announcing: BTreeSet::new() }
    }

    pub(crate) fn get(&self, id: GroupId) -> Option<&GroupBook> {
        self.map.get(id).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut GroupBook> {
        self.map.get_mut(id).map(Box::as_mut)
    }

    pub(super) fn insert(&mut self, id: GroupId, book: GroupBook) {
        self.map.insert(id, Box::new(book));
    }

    pub(super) fn remove(&mut self, id: GroupId) {
        self.map.remove(id);
        for set in [&mut self.busy, &mut self.used, &mut self.announcing] {
            set.remove(&id);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (GroupId, &GroupBook)> {
        self.map.iter().map(|(id, book)| (id, book.as_ref()))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (GroupId, &mut GroupBook)> {
        self.map.iter_mut().map(|(id, book)| (id, book.as_mut()))
    }

    /// The book of the port that groups share.
    pub(super) const fn shared(&self) -> &GroupBook {
        &self.nowhere
    }

    // -- who has calls ----------------------------------------------------------------------

    /// A call of this group is in its book.
    pub(super) fn begins(&mut self, id: GroupId) {
        if self.busy.insert(id) {
            self.used.insert(id);
        }
    }

    /// One is no more.
    pub(super) fn ended(&mut self, id: GroupId) {
        if self[id].book.len() == 0 {
            self.busy.remove(&id);
        }
    }

    pub(super) fn busy(&self) -> &BTreeSet<GroupId> {
        &self.busy
    }

    /// The next group with calls behind that one.
    pub(super) fn busy_behind(&self, behind: GroupId) -> Option<GroupId> {
        use core::ops::Bound::{Excluded, Unbounded};
        self.busy.range((Excluded(behind), Unbounded)).next().copied()
    }

    /// The next group with calls behind that one, or, behind the last, the first.
    pub(super) fn next_busy(&self, behind: GroupId) -> Option<GroupId> {
        self.busy_behind(behind).or_else(|| self.busy.first().copied())
    }

    /// Changes each group that had calls; who gives false has nothing left.
    pub(super) fn look_at_used(&mut self, mut look: impl FnMut(GroupId, &mut GroupBook) -> bool) {
        let (map, busy) = (&mut self.map, &self.busy);
        self.used.retain(|id| {
            let has_something = map.get_mut(*id).is_some_and(|book| look(*id, book));
            has_something || busy.contains(id)
        });
    }

    /// The members of this group are to be told.
    pub(super) fn announces(&mut self, id: GroupId, does: bool) {
        if does {
            self.announcing.insert(id);
        } else {
            self.announcing.remove(&id);
        }
    }

    pub(super) fn announcing(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.announcing.iter().copied()
    }
}

impl Index<GroupId> for Books {
    type Output = GroupBook;

    fn index(&self, id: GroupId) -> &GroupBook {
        self.get(id).unwrap_or(&self.nowhere)
    }
}

impl IndexMut<GroupId> for Books {
    fn index_mut(&mut self, id: GroupId) -> &mut GroupBook {
        self.map.get_mut(id).map_or(&mut self.nowhere, Box::as_mut)
    }
}
