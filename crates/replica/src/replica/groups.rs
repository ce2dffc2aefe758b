//! The groups of a node, and when each wants to be looked at.
//!
//! What it is not: what is done then. Invariants: whoever gets a group to change it leaves a mark
//! at it, so what the groups wait for is known without asking those to which nothing happened;
//! time goes by only for groups whose own time has come, and for those that were marked and not
//! settled since.

use crate::group::Group;
use crate::group_map::GroupMap;
use crate::ids::GroupId;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::{Bound, Index, IndexMut};
use quorba_base::Instant;

/// What the time of a group depends on besides itself.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mode {
    pub(super) is_primary: bool,
    /// Groups that live in memory have no part in the component.
    pub(super) memory_groups_wait: bool,
}

impl Mode {
    /// In a primary component in which the group takes part.
    pub(super) fn is_active(self, group: &Group) -> bool {
        self.is_primary && !(self.memory_groups_wait && group.lives_in_memory())
    }
}

struct Place {
    group: Group,
    /// As [`Groups::times`] and [`Groups::calls`] have it.
    at: Option<Instant>,
    calls: usize,
    /// Something may have happened to it since; then it stands in [`Groups::changed`].
    is_changed: bool,
    /// It was not settled since.
    is_unsettled: bool,
}

impl Place {
    fn wants(&self, mode: Mode) -> Option<Instant> {
        self.group.deadline(mode.is_active(&self.group))
    }
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Groups {
    /// Each on its own: they are large, and a tree leaves much of its room free.
    map: GroupMap<Box<Place>>,
    /// To which something may have happened since the last [`Self::look`]; kept for its room.
    changed: Vec<GroupId>,
    /// Those of the others that were not settled since.
    unsettled: BTreeSet<GroupId>,
    /// When the others want to be looked at, as long as the mode is this.
    times: BTreeSet<(Instant, GroupId)>,
    mode: Mode,
    /// Calls that servers here are to execute.
    calls: usize,
}

impl Groups {
    pub(super) fn get(&self, id: GroupId) -> Option<&Group> {
        self.map.get(id).map(|place| &place.group)
    }

    pub(super) fn contains(&self, id: GroupId) -> bool {
        self.map.contains(id)
    }

    /// Their ids, ascending.
    pub(super) fn ids(&self) -> impl DoubleEndedIterator<Item = GroupId> + Clone + '_ {
        self.map.ids()
    }

    /// See [`GroupMap::next_id`].
    pub(super) fn next_id(&self, behind: Option<GroupId>) -> Option<GroupId> {
        self.map.next_id(behind)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (GroupId, &Group)> + Clone {
        self.map.iter().map(|(id, place)| (id, &place.group))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Group> {
        self.map.values().map(|place| &place.group)
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        let place = self.map.get_mut(id)?;
        if !place.is_changed {
            self.changed.push(id);
        }
        (place.is_changed, place.is_unsettled) = (true, true);
        Some(&mut place.group)
    }

    /// All, to be changed; for what happens seldom.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (GroupId, &mut Group)> {
        self.changed.clear();
        self.changed.extend(self.map.ids());
        self.map.iter_mut().map(|(id, place)| {
            (place.is_changed, place.is_unsettled) = (true, true);
            (id, &mut place.group)
        })
    }

    /// The same without their ids.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.iter_mut().map(|(_, group)| group)
    }

    pub(super) fn insert(&mut self, id: GroupId, group: Group) {
        self.remove(id);
        let (at, calls) = (None, 0);
        let place = Place { group, at, calls, is_changed: true, is_unsettled: true };
        self.map.insert(id, Box::new(place));
        self.changed.push(id);
    }

    pub(super) fn remove(&mut self, id: GroupId) -> Option<Group> {
        let place = self.map.remove(id)?;
        self.changed.retain(|changed| *changed != id);
        self.unsettled.remove(&id);
        if let Some(at) = place.at {
            self.times.remove(&(at, id));
        }
        self.calls -= place.calls;
        Some(place.group)
    }

    // -- time -------------------------------------------------------------------------------

    /// What happened to the group has been followed up.
    pub(super) fn is_settled(&mut self, id: GroupId) {
        if let Some(place) = self.map.get_mut(id) {
            place.is_unsettled = false;
        }
    }

    /// Whether [`Self::look`] has anything to do.
    pub(super) fn is_quiet(&self, mode: Mode) -> bool {
        self.changed.is_empty() && mode == self.mode
    }

    /// Notes what groups want to which something happened, or all in another mode.
    pub(super) fn look(&mut self, mode: Mode) {
        if core::mem::replace(&mut self.mode, mode) != mode {
            self.changed.clear();
            for (id, place) in self.map.iter_mut() {
                place.is_changed = true;
                self.changed.push(id);
            }
        }
        let Self { map, changed, unsettled, times, calls, .. } = self;
        for id in changed.drain(..) {
            let Some(place) = map.get_mut(id) else { continue };
            place.is_changed = false;
            let (wants, under_way) = (place.wants(mode), place.group.calls_under_way());
            if let Some(before) = place.at.filter(|_| place.at != wants) {
                times.remove(&(before, id));
            }
            if let Some(at) = wants.filter(|_| place.at != wants) {
                times.insert((at, id));
            }
            *calls = *calls + under_way - place.calls;
            (place.at, place.calls) = (wants, under_way);
            if !place.is_unsettled {
                unsettled.remove(&id);
            } else {
                unsettled.insert(id);
            }
        }
    }

    /// When the first of them wants to be looked at, with or without [`Self::look`].
    pub(super) fn deadline(&self, mode: Mode) -> Option<Instant> {
        if mode != self.mode {
            return self.map.values().filter_map(|place| place.wants(mode)).min();
        }
        let is_known = |id: GroupId| self.map.get(id).is_some_and(|place| !place.is_changed);
        let known = self.times.iter().find(|(_, id)| is_known(*id)).map(|(at, _)| *at);
        let changed = self.changed.iter().filter_map(|id| self.map.get(*id));
        changed.filter_map(|place| place.wants(mode)).chain(known).min()
    }

    /// Those whose time has come, and those that were not settled since something happened to
    /// them, ascending; after [`Self::look`].
    pub(super) fn due(&self, now: Instant) -> BTreeSet<GroupId> {
        let last = Bound::Included((now, GroupId(u64::MAX)));
        let due = self.times.range((Bound::Unbounded, last)).map(|(_, id)| *id);
        due.chain(self.unsettled.iter().copied()).collect()
    }

    /// Calls that servers here are to execute, as of the last [`Self::look`].
    pub(super) const fn calls(&self) -> usize {
        self.calls
    }
}

impl Index<GroupId> for Groups {
    type Output = Group;

    fn index(&self, id: GroupId) -> &Group {
        &self.map[id].group
    }
}

impl IndexMut<GroupId> for Groups {
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        self.get_mut(id).expect("the group is known")
    }
}
