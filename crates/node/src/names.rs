//! Under which ids the engine knows the groups and the servers outside that the domain file has.
//!
//! What it is not: known to anybody but the registry of groups, which is filled with it at the
//! start. Invariant: nothing else in this crate makes an id of a position, and nothing makes a
//! position of an id.

use quorba_engine::replica::GroupId;

/// The first id of a server outside. Groups of the file have smaller ones.
const OUTSIDE: u16 = 1 << 15;

/// The id of the domain file's group at that position.
pub(crate) fn group_id(index: usize) -> GroupId {
    GroupId(u16::try_from(index).expect("a domain file has fewer groups"))
}

/// The id of the domain file's server outside at that position.
pub(crate) fn outside_id(index: usize) -> GroupId {
    GroupId(OUTSIDE + u16::try_from(index).expect("a domain file has fewer servers outside"))
}
