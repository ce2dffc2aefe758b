//! The few types that every room of Quorba shares: time as a number, node ids and node sets, the
//! names of rings and what is written down of their order, and the policies of the domain file.
//!
//! What it is not: a place for helpers. A type belongs here only if two rooms that must not name
//! each other (`order` and `replica`, `config` and `replica`) both speak it.
//!
//! Invariants: no clock is read and no randomness is drawn here or in any crate that builds on
//! it, because [`Instant`] can be made from a number only; iteration is always in node order.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "canaries")]
pub mod canary;
pub mod channel;
pub mod fields;
mod fnv;
mod group;
mod lane;
mod network;
mod node;
pub mod policy;
mod ring;
mod time;

pub use core::time::Duration;
pub use fnv::{FNV_OFFSET, fnv1a};
pub use group::GroupId;
pub use lane::Lane;
pub use network::Network;
pub use node::{NODES_MAX, NodeId, NodeSet, NodeSetIter};
pub use ring::{LogRecord, Position, Recovered, RingId};
pub use time::Instant;

/// Whether the bug of this name is planted: the constant `false` without the feature `canaries`.
#[cfg(not(feature = "canaries"))]
#[macro_export]
macro_rules! canary {
    ($bug:ident) => {
        false
    };
}

/// Whether the bug of this name is planted.
#[cfg(feature = "canaries")]
#[macro_export]
macro_rules! canary {
    ($bug:ident) => {
        $crate::canary::is_planted($crate::canary::Canary::$bug)
    };
}
