//! The ids under which the engine knows the plan's groups and the servers outside.
//!
//! Invariant: an id is no position. The plan counts groups from 0; the engine is told other numbers
//! on purpose, so that whatever takes an id for a position is found. Ids of groups that come while
//! the domain works are given out by its order; those of the run that this thread does are
//! remembered here.

use crate::plan::Plan;
use quorba_engine::replica::GroupId;
use std::cell::RefCell;

/// The first group's id, and what lies between two.
const FIRST: u64 = 3;
const STEP: u64 = 2;
/// The first id of a server outside.
const OUTSIDE: u64 = 40_000;

thread_local! {
    /// By position and id.
    static LATE: RefCell<Vec<(usize, GroupId)>> = const { RefCell::new(Vec::new()) };
}

/// Another run begins.
pub(crate) fn forget_late() {
    LATE.with_borrow_mut(Vec::clear);
}

/// A node has the plan's group at that position under this id. The last that is said counts: a node
/// that was cut off may give out an id of its own, and hears the right one when it is back.
pub(crate) fn learn(id: GroupId, index: usize) {
    LATE.with_borrow_mut(|late| {
        late.retain(|known| *known != (index, id));
        late.push((index, id));
    });
}

/// The position of a group that came while the domain worked.
pub(crate) fn late_index(id: GroupId) -> Option<usize> {
    LATE.with_borrow(|late| late.iter().find(|(_, of)| *of == id).map(|(index, _)| *index))
}

/// The id of the plan's group at that position; if it is to come, one that nobody has.
pub(crate) fn group_id(index: usize) -> GroupId {
    let known = LATE.with_borrow(|late| late.iter().rfind(|(of, _)| *of == index).map(|it| it.1));
    known.unwrap_or(GroupId(FIRST + STEP * index as u64))
}

/// The position of that group in the plan.
pub(crate) fn index_of(id: GroupId) -> usize {
    late_index(id).unwrap_or_else(|| ((id.0 - FIRST) / STEP) as usize)
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

#[cfg(test)]
mod tests {
    use super::*;

    // Clients went on to look for a group that only a node which had been cut off had ever had.
    #[test]
    fn the_id_that_a_node_heard_last_counts() {
        forget_late();
        let (real, phantom) = (GroupId(1 << 40), GroupId(2 << 40));
        learn(real, 1);
        learn(phantom, 1);
        assert_eq!(group_id(1), phantom);
        learn(real, 1);
        assert_eq!(group_id(1), real);
        assert_eq!((index_of(real), index_of(phantom)), (1, 1));
        forget_late();
    }
}
