//! Under which ids the engine knows the groups of the domain file, and the servers outside.
//!
//! What it is not: the engine's business, to which an id is a name. Invariant: nothing else in this
//! crate makes an id of a position, or a position of an id.

use quorba_config::Domain;
use quorba_engine::replica::GroupId;

/// The first id of a server outside. Groups have smaller ones.
const OUTSIDE: u64 = 1 << 15;

/// The id of the domain file's group at that position.
pub(crate) fn group_id(index: usize) -> GroupId {
    GroupId(u64::try_from(index).expect("a domain file has fewer groups"))
}

/// The position of that group in the domain file.
pub(crate) fn index_of(id: GroupId) -> usize {
    usize::try_from(id.0).expect("a position")
}

/// The id of the domain file's server outside at that position.
pub(crate) fn outside_id(index: usize) -> GroupId {
    GroupId(OUTSIDE + u64::try_from(index).expect("a domain file has fewer servers outside"))
}

/// The position of that server outside in the domain file; `None`: it is a group.
pub(crate) fn outside_index(id: GroupId) -> Option<usize> {
    id.0.checked_sub(OUTSIDE).map(|index| usize::try_from(index).expect("a position"))
}

/// The id of the domain file's group of that name.
pub(crate) fn group_named(domain: &Domain, name: &str) -> Option<GroupId> {
    domain.groups.iter().position(|group| group.name == name).map(group_id)
}

/// The id of the domain file's server outside of that name.
pub(crate) fn outside_named(domain: &Domain, name: &str) -> Option<GroupId> {
    domain.outside.iter().position(|server| server.name == name).map(outside_id)
}
