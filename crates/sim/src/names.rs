//! The ids under which the engine knows the plan's groups and the servers outside.
//!
//! Invariant: an id is no position. The plan counts groups from 0; the engine is told other numbers
//! on purpose, so that whatever takes an id for a position is found.

use crate::plan::Plan;
use quorba_engine::replica::GroupId;

/// The first group's id, and what lies between two.
const FIRST: u64 = 3;
const STEP: u64 = 2;
/// The first id of a server outside.
const OUTSIDE: u64 = 40_000;

/// The id of the plan's group at that position.
pub(crate) fn group_id(index: usize) -> GroupId {
    GroupId(FIRST + STEP * index as u64)
}

/// The position of that group in the plan.
pub(crate) fn index_of(id: GroupId) -> usize {
    ((id.0 - FIRST) / STEP) as usize
}

/// The id of the plan's server outside at that position.
pub(crate) fn outsider_id(index: usize) -> GroupId {
    GroupId(OUTSIDE + index as u64)
}

/// The position of that server outside in the plan.
pub(crate) fn outsider_index(id: GroupId) -> usize {
    (id.0 - OUTSIDE) as usize
}

impl Plan {
    /// The id of what a group calls: positions behind the last group are those of servers outside.
    pub(crate) fn callee_id(&self, index: usize) -> GroupId {
        match index.checked_sub(self.groups.len()) {
            Some(outsider) => outsider_id(outsider),
            None => group_id(index),
        }
    }
}
