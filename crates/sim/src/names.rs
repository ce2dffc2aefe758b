//! The ids under which the engine knows the plan's groups and the servers outside.
//!
//! Invariant: an id is no position. The plan counts groups from 0; the engine is told other numbers
//! on purpose, so that whatever takes an id for a position is found.

use crate::plan::Plan;
use quorba_engine::replica::GroupId;

/// The first group's id, and what lies between two.
const FIRST: u16 = 3;
const STEP: u16 = 2;
/// The first id of a server outside.
const OUTSIDE: u16 = 40_000;

/// The id of the plan's group at that position.
pub(crate) fn group_id(index: usize) -> GroupId {
    GroupId(FIRST + STEP * index as u16)
}

/// The position of that group in the plan.
pub(crate) fn index_of(id: GroupId) -> usize {
    usize::from((id.0 - FIRST) / STEP)
}

/// The id of the plan's server outside at that position.
pub(crate) fn outsider_id(index: usize) -> GroupId {
    GroupId(OUTSIDE + index as u16)
}

/// The position of that server outside in the plan.
pub(crate) fn outsider_index(id: GroupId) -> usize {
    usize::from(id.0 - OUTSIDE)
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
