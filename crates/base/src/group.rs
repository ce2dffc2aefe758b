//! The name of an object group.

/// An object group, or a server outside that groups call: a name, and no position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u64);
