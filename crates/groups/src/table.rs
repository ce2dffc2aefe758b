//! Who is in which group, on all nodes of the ring.
//!
//! Invariants: a group exists as long as it has a member; of each node the table holds its last
//! announcement and the operations ordered since, each applied once and in their order; members
//! are in ascending order, so those of one node are neighbours.

use crate::ids::{GroupName, GroupNumber, GroupViewId, ProcessId, ProcessNumber};
use crate::wire::{Action, AnnouncedGroup, Announcement, InvalidPayload, Operation};
use crate::{GROUPS_PER_NODE_MAX, MEMBERSHIPS_PER_NODE_MAX};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;
use quorba_base::NodeId;

/// A place in the table, stable while the group exists.
pub(crate) type Slot = usize;

/// One group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: GroupName,
    pub(crate) members: Vec<ProcessId>,
    /// The regular view that local members were given last.
    pub(crate) view: GroupViewId,
    /// What this node calls it, while it has members here.
    pub(crate) number: Option<GroupNumber>,
}

impl Group {
    /// Where the members of `node` are.
    pub(crate) fn members_of(&self, node: NodeId) -> Range<usize> {
        let start = self.members.partition_point(|member| member.node < node);
        start..start + self.members[start..].partition_point(|member| member.node == node)
    }
}

/// What is known of one node.
#[derive(Debug)]
struct Origin {
    incarnation: u64,
    applied: u64,
    numbers: BTreeMap<GroupNumber, Numbered>,
    memberships: BTreeSet<(ProcessNumber, GroupNumber)>,
}

#[derive(Debug)]
struct Numbered {
    slot: Slot,
    members: usize,
}

/// What an operation did.
pub(crate) struct Change {
    pub(crate) slot: Slot,
    pub(crate) process: ProcessId,
    pub(crate) number: GroupNumber,
}

/// All groups of a ring.
#[derive(Debug)]
pub(crate) struct Table {
    me: NodeId,
    slots: Vec<Option<Group>>,
    free: Vec<Slot>,
    names: BTreeMap<GroupName, Slot>,
    origins: BTreeMap<NodeId, Origin>,
    memberships: usize,
}

impl Table {
    pub(crate) fn new(me: NodeId) -> Self {
        Self {
            me,
            slots: Vec::new(),
            free: Vec::new(),
            names: BTreeMap::new(),
            origins: BTreeMap::new(),
            memberships: 0,
        }
    }

    /// Takes over what `node` has announced; each node once.
    pub(crate) fn announce(
        &mut self,
        node: NodeId,
        incarnation: u64,
        announcement: Announcement,
        view: GroupViewId,
    ) {
        let (numbers, memberships) = (BTreeMap::new(), BTreeSet::new());
        let applied = announcement.applied;
        let origin = Origin { incarnation, applied, numbers, memberships };
        self.origins.insert(node, origin);
        for AnnouncedGroup { number, name, members } in announcement.groups {
            for process in members {
                let process = ProcessId { node, incarnation, number: process };
                // Within the limits, for the announcement is; a double is left out.
                let _ = self.insert(process, number, &name, view);
            }
        }
    }

    /// What `me` announces: its members by number of the group, and the last operation in it.
    pub(crate) fn own(&self) -> (u64, Vec<AnnouncedGroup>) {
        let Some(origin) = self.origins.get(&self.me) else { return (0, Vec::new()) };
        let announced = |(number, numbered): (&GroupNumber, &Numbered)| {
            let group = self.group(numbered.slot);
            let members = group.members[group.members_of(self.me)].iter();
            let members = members.map(|member| member.number).collect();
            AnnouncedGroup { number: *number, name: group.name.clone(), members }
        };
        (origin.applied, origin.numbers.iter().map(announced).collect())
    }

    /// Groups with members on this node.
    pub(crate) fn local_slots(&self) -> Vec<Slot> {
        let origin = self.origins.get(&self.me);
        origin.map_or(Vec::new(), |o| o.numbers.values().map(|n| n.slot).collect())
    }

    pub(crate) fn group(&self, slot: Slot) -> &Group {
        self.slots[slot].as_ref().expect("slots are only named while their group exists")
    }

    pub(crate) fn group_mut(&mut self, slot: Slot) -> &mut Group {
        self.slots[slot].as_mut().expect("slots are only named while their group exists")
    }

    pub(crate) fn named(&self, name: &GroupName) -> Option<&Group> {
        self.names.get(name).map(|slot| self.group(*slot))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.names.values().map(|slot| self.group(*slot))
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) const fn memberships(&self) -> usize {
        self.memberships
    }

    /// The group that a message of `node` is for, and its sender, if it is a member.
    pub(crate) fn addressed(
        &self,
        node: NodeId,
        incarnation: u64,
        process: ProcessNumber,
        number: GroupNumber,
    ) -> Option<(Slot, ProcessId)> {
        let origin = self.origins.get(&node).filter(|o| o.incarnation == incarnation)?;
        let slot = origin.numbers.get(&number)?.slot;
        let from = ProcessId { node, incarnation, number: process };
        self.group(slot).members.binary_search(&from).is_ok().then_some((slot, from))
    }

    /// Applies `operation` of `node`, if it is the next one; gives what changed.
    pub(crate) fn apply(
        &mut self,
        node: NodeId,
        incarnation: u64,
        operation: &Operation,
        view: GroupViewId,
    ) -> Result<Option<Vec<Change>>, InvalidPayload> {
        let origin = self.origins.get_mut(&node).filter(|o| o.incarnation == incarnation);
        let Some(origin) = origin.filter(|o| operation.id == o.applied + 1) else {
            return Ok(None);
        };
        origin.applied = operation.id;
        let id = |number| ProcessId { node, incarnation, number };
        let mut changes = Vec::new();
        match &operation.action {
            Action::Join { process, group, name } => {
                let process = id(*process);
                if let Some(slot) = self.insert(process, *group, name, view)? {
                    changes.push(Change { slot, process, number: *group });
                }
            }
            Action::Leave { process, group } => changes.extend(self.remove(id(*process), *group)),
            Action::Gone { process } => {
                let all = (*process, GroupNumber(0))..=(*process, GroupNumber(u32::MAX));
                let groups: Vec<_> = origin.memberships.range(all).map(|(_, g)| *g).collect();
                for group in groups {
                    changes.extend(self.remove(id(*process), group));
                }
            }
        }
        Ok(Some(changes))
    }

    fn insert(
        &mut self,
        process: ProcessId,
        number: GroupNumber,
        name: &GroupName,
        view: GroupViewId,
    ) -> Result<Option<Slot>, InvalidPayload> {
        let origin = self.origins.get_mut(&process.node).expect("the caller has found it");
        if origin.memberships.len() >= MEMBERSHIPS_PER_NODE_MAX {
            return Err(InvalidPayload::Count(origin.memberships.len() as u64));
        }
        let known = origin.numbers.get(&number).map(|numbered| numbered.slot);
        if known.is_none() && origin.numbers.len() >= GROUPS_PER_NODE_MAX {
            return Err(InvalidPayload::Count(origin.numbers.len() as u64));
        }
        let slot = self.names.get(name).copied();
        if known.is_some() && known != slot {
            return Err(InvalidPayload::Number);
        }
        let slot = slot.unwrap_or_else(|| {
            let group = Group { name: name.clone(), members: Vec::new(), view, number: None };
            let slot = self.free.pop().unwrap_or(self.slots.len());
            match self.slots.get_mut(slot) {
                Some(vacant) => *vacant = Some(group),
                None => self.slots.push(Some(group)),
            }
            self.names.insert(name.clone(), slot);
            slot
        });
        let group = self.slots[slot].as_mut().expect("a named group exists");
        let Err(place) = group.members.binary_search(&process) else { return Ok(None) };
        group.members.insert(place, process);
        if process.node == self.me {
            group.number = Some(number);
        }
        self.memberships += 1;
        origin.memberships.insert((process.number, number));
        origin.numbers.entry(number).or_insert(Numbered { slot, members: 0 }).members += 1;
        Ok(Some(slot))
    }

    fn remove(&mut self, process: ProcessId, number: GroupNumber) -> Option<Change> {
        let origin = self.origins.get_mut(&process.node)?;
        if !origin.memberships.remove(&(process.number, number)) {
            return None;
        }
        let numbered = origin.numbers.get_mut(&number).expect("has a member");
        let slot = numbered.slot;
        numbered.members -= 1;
        let group = self.slots[slot].as_mut().expect("has a member");
        if numbered.members == 0 {
            origin.numbers.remove(&number);
            if process.node == self.me {
                group.number = None;
            }
        }
        if let Ok(place) = group.members.binary_search(&process) {
            group.members.remove(place);
        }
        self.memberships -= 1;
        Some(Change { slot, process, number })
    }

    /// Forgets the group, if nobody is in it any more.
    pub(crate) fn prune(&mut self, slot: Slot) {
        if let Some(group) = self.slots[slot].take_if(|group| group.members.is_empty()) {
            self.names.remove(&group.name);
            self.free.push(slot);
        }
    }
}
