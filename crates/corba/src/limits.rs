//! Every limit on what is believed of values from a peer.

/// Octets of one TypeCode.
pub const TYPE_CODE_BYTES_MAX: usize = 64 << 10;
/// How deep types, and values of an `any`, may be nested.
pub const DEPTH_MAX: u32 = 64;
/// Steps that reading an `any` may take per octet of its value. More than one, because structs in
/// structs take steps without octets.
pub const STEPS_PER_OCTET: usize = 8;
/// Steps that it may take anyway.
pub const STEPS_MIN: usize = 1024;
/// Items for which a sequence reserves memory before they are there.
pub const RESERVED_ITEMS_MAX: usize = 1024;
/// Octets that the tree of a value may take. Names stand once in a type, and in each value's tree.
pub const TREE_BYTES_MAX: usize = 64 << 20;
