//! Operators who take members out of groups and put them back, and what follows for the faults.
//!
//! What it is not: the groups' own opinion. Invariant: a member counts as one that stays only if no
//! removal of it is on its way, so that no fault hits the last one that has the state.

use crate::host::Input;
use crate::names::{group_id, index_of};
use crate::world::{World, node_id};
use quorba_engine::replica::{Command, GroupId};
use std::collections::{BTreeMap, BTreeSet};

/// See the module's text.
#[derive(Default)]
pub(crate) struct Membership {
    /// Group and node of members that are removed, or may be soon.
    going: BTreeSet<(usize, usize)>,
}

impl Membership {
    /// Whether the member of `group` on `node` is not removed, and nobody removes it.
    pub(crate) fn stays(&self, group: usize, node: usize) -> bool {
        !self.going.contains(&(group, node))
    }

    /// Of the group that has most of them: members that are removed, or may be soon, on disks
    /// that are not damaged.
    pub(crate) fn going_max(&self, is_damaged: impl Fn(usize) -> bool) -> usize {
        let mut counts = BTreeMap::<usize, usize>::new();
        for (group, _) in self.going.iter().filter(|(_, node)| !is_damaged(*node)) {
            *counts.entry(*group).or_default() += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }

    /// A node has carried out an operator's command.
    pub(crate) fn changed(&mut self, node: usize, group: GroupId, command: Command) {
        // Others may still believe that it takes no part; it itself knows.
        if command == Command::Add(node_id(node)) {
            self.going.remove(&(index_of(group), node));
        }
    }

    /// A node says that its own member is removed: the end of all nodes can have undone what its
    /// operator did last.
    pub(crate) fn is_removed(&mut self, node: usize, group: GroupId) {
        self.going.insert((index_of(group), node));
    }
}

impl World {
    /// An operator at `node` adds or removes a member.
    pub(crate) fn change_members(&mut self, node: usize) {
        let group = self.rng.index(self.plan.groups.len());
        let member = self.rng.index(self.plan.nodes);
        let adds = self.rng.per_mille(500);
        let command = if adds {
            Command::Add(node_id(member))
        } else {
            let snapshots = self.snapshots();
            if !self.plan.careless && !self.has_other_member(&snapshots, group, member) {
                return;
            }
            if self.damaged_disks(member) > 1 && !self.few_disks_are_missing(member) {
                return;
            }
            self.membership.going.insert((group, member));
            Command::Remove(node_id(member))
        };
        self.say(|| format!("OPERATOR at n{node}: g{group} {command:?}"));
        self.deliver(node, Input::Command(group_id(group), command));
    }
}
