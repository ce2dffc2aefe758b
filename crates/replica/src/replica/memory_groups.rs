//! Groups that are not durable, in a component that disks have decided: they wait, or go on from
//! other nodes than the domain does.
//!
//! While they wait they are, on every node, as if that node were in no primary component: nothing
//! that is ordered counts for them, and their tables and members stand where they stood. So does
//! what is known of calls: only groups that live in memory make any.
//!
//! What it is not: the decision, which is `primary::disks`. Invariant: [`Replica::memory_groups`]
//! is there in a primary component if and only if these groups have no part in it.

use super::agreement::{Part, Tables};
use super::groups::Groups;
use super::{Delivered, Replica, target};
use crate::calls::nested::Calls;
use crate::group::Group;
use crate::messages::envelope::Envelope;
use crate::messages::hello::{Former, MemoryPosition, Record, Snapshot};
use crate::messages::log::MemoryGroups;
use crate::primary::Basis;
use crate::table::GroupTable;
use crate::words::group_map::GroupMap;
use crate::words::history::History;
use crate::words::ids::GroupId;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::canary;

/// For which groups something is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All.
    All,
    /// Those that a log keeps, or that have nothing to keep.
    Durable,
    /// Those that live in memory.
    Memory,
}

impl Scope {
    pub(super) fn has(self, group: &Group) -> bool {
        match self {
            Self::All => true,
            Self::Durable => !group.lives_in_memory(),
            Self::Memory => group.lives_in_memory(),
        }
    }
}

impl Replica {
    /// What a node says of memory groups that stand elsewhere.
    pub(super) fn memory_position(&self) -> Option<MemoryPosition> {
        let MemoryGroups { lineage, prefix, history, .. } = self.memory_groups.as_ref()?;
        Some(MemoryPosition { lineage: lineage.clone(), prefix: *prefix, branch: history.digest })
    }

    /// The groups that may have to wait.
    pub(super) fn living_in_memory(&self) -> Vec<GroupId> {
        let groups = self.groups.iter();
        groups.filter(|(_, group)| group.lives_in_memory()).map(|(id, _)| id).collect()
    }

    /// The group has no part in what the domain does now.
    pub(super) fn stands_elsewhere(&self, group: GroupId) -> bool {
        let group = self.groups.get(group);
        self.memory_groups.is_some() && group.is_some_and(Group::lives_in_memory)
    }

    /// In a primary component in which the group takes part.
    pub(super) fn is_active(&self, group: GroupId) -> bool {
        self.is_primary() && !self.stands_elsewhere(group)
    }

    /// From here on the domain goes on without them, if it did not before.
    pub(super) fn set_memory_groups_aside(&mut self) {
        if self.memory_groups.is_some() {
            return;
        }
        let (groups, lineage) = (self.living_in_memory(), self.lineage.clone());
        let (prefix, history) = (self.prefix, self.history);
        self.memory_groups = Some(MemoryGroups { groups, lineage, prefix, history });
    }

    /// In which component these groups took part last, if that is not the one that is about to be
    /// written down.
    pub(super) fn former(&mut self) -> Former {
        let Record { formed, base, former, .. } = core::mem::take(&mut self.record);
        former.unwrap_or(Former { formed, base })
    }

    /// Takes over, for groups of this scope, what the component goes on from: what had been
    /// applied, if this node was told.
    pub(super) fn take_over(&mut self, part: &mut Part, scope: Scope) -> Option<History> {
        let is_current = part.current.contains(self.here.node);
        match core::mem::replace(&mut part.tables, Tables::NotNeeded) {
            Tables::Delivered(snapshot) if !is_current => Some(self.catch_up(snapshot, scope)),
            Tables::NotNeeded if matches!(part.basis, Basis::FirstStart | Basis::ColdStart) => {
                let nothing = GroupMap::of(self.groups.ids(), |_| History::EMPTY);
                self.break_log(&nothing, scope);
                let groups = self.groups.values_mut().filter(|group| scope.has(group));
                groups.for_each(|group| group.begin_anew(&mut self.out));
                self.take_calls(Calls::default(), scope);
                Some(History::EMPTY)
            }
            _ => None,
        }
    }

    /// Whoever calls lives in memory (see the rules for domain files).
    fn take_calls(&mut self, calls: Calls, scope: Scope) {
        if scope != Scope::Durable {
            self.calls = calls;
        }
    }

    /// This node is not up to date: its members start over.
    fn catch_up(&mut self, snapshot: Snapshot, scope: Scope) -> History {
        let Snapshot { history, tables, calls, .. } = snapshot;
        // What was said of them before is void.
        let groups = &self.groups;
        let is_of = |id: GroupId| groups.get(id).is_some_and(|g| scope.has(g));
        self.lost.retain(|payload| !concerned(payload).is_some_and(is_of));
        let histories: GroupMap<_> = tables.iter().map(|(id, it)| (id, it.history)).collect();
        self.break_log(&histories, scope);
        let unheard_of: Vec<_> = {
            let groups = self.groups.iter().filter(|(_, group)| scope.has(group));
            let both = groups.filter_map(|(id, group)| Some((group, tables.get(id)?)));
            both.map(|(group, table)| group.ends_unheard_of(table)).collect()
        };
        let former: GroupMap<_> =
            self.groups.iter().map(|(id, group)| (id, group.table().history)).collect();
        self.begin_untold(&tables, scope);
        for (id, table) in tables {
            let Some(group) = self.groups.get_mut(id).filter(|group| scope.has(group)) else {
                continue;
            };
            group.fell_behind();
            group.doubt_what_was_heard(&unheard_of);
            if !canary!(KeepsOwnTables) {
                group.adopt(table, &mut self.out);
            }
            group.bind(|caller| former.get(caller) != histories.get(caller));
        }
        spread_doubt(&mut self.groups);
        self.take_calls(calls, scope);
        for group in self.groups.values_mut() {
            group.mind_refused(|key| self.calls.is_refused(key));
        }
        history
    }

    /// Groups that the nodes which are up to date had not heard of begin.
    fn begin_untold(&mut self, told: &GroupMap<GroupTable>, scope: Scope) {
        let untold =
            self.groups.iter_mut().filter(|(id, group)| scope.has(group) && !told.contains(*id));
        untold.for_each(|(_, group)| group.begin_anew(&mut self.out));
    }

    /// A message that is for a group which stands elsewhere, or from one, does not count.
    pub(super) fn leaves_out(&mut self, delivered: &Delivered) -> bool {
        let Ok(envelope) = Envelope::decode(delivered.payload.clone()) else { return false };
        let caller = match &envelope {
            Envelope::Request(request) => request.nested.map(|call| call.key.caller),
            Envelope::Outside { key, .. } => Some(key.caller),
            _ => None,
        };
        let concerned = [target(&envelope), caller].into_iter().flatten();
        let is_left = concerned.into_iter().any(|group| self.stands_elsewhere(group));
        if is_left {
            self.disregard([delivered.clone()].into());
        }
        is_left
    }
}

/// What a group in doubt has replied to its callers is in doubt, too: whoever was told such a
/// reply, however many calls away, cannot go on from it (seed 200120 of the simulator's `calls`).
fn spread_doubt(groups: &mut Groups) {
    loop {
        let in_doubt: Vec<GroupId> =
            groups.iter().filter(|(_, group)| group.is_in_doubt()).map(|(id, _)| id).collect();
        let mut has_spread = false;
        for group in groups.values_mut() {
            has_spread |= group.doubt_replies_of(&in_doubt);
        }
        if !has_spread {
            return;
        }
    }
}

/// The group that an own message is about.
pub(super) fn concerned(payload: &Bytes) -> Option<GroupId> {
    target(&Envelope::decode(payload.clone()).ok()?)
}
