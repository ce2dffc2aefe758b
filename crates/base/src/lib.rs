//! The few types that every room of Quorba shares: time as a number, node ids and node sets.
//!
//! What it is not: a place for helpers. A type belongs here only if two rooms that must not name
//! each other (`order` and `replica`) both speak it.
//!
//! Invariants: no clock is read and no randomness is drawn here or in any crate that builds on
//! it, because [`Instant`] can be made from a number only; iteration is always in node order.

#![no_std]
#![forbid(unsafe_code)]

mod node;
mod time;

pub use core::time::Duration;
pub use node::{NODES_MAX, NodeId, NodeSet, NodeSetIter};
pub use time::Instant;
