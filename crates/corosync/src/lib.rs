//! The order of messages made by a Corosync cluster, through its closed process groups (CPG).
//!
//! [`Group`] is what a node makes of what CPG tells it: the same outputs as those of
//! [`quorba_order::Ring`]. With the feature `libcpg`, `Cpg` is the connection to the daemon of
//! this host.
//!
//! What CPG gives is agreed delivery and membership changes in one stream. What it does not give,
//! [`Group`] adds with messages of its own:
//! - ids of views, and the boots of their members: every member says hello after a change;
//! - what a majority holds: members acknowledge what they have received.
//!
//! What it is not: safe delivery, which CPG does not have, and protection: that is Corosync's own
//! `crypto_cipher`. Messages are at most [`PAYLOAD_BYTES_MAX`] long, which CPG carries whole.
//!
//! Invariant: nothing is said to be held that a majority has not acknowledged itself.

#![forbid(unsafe_code)]

#[cfg(feature = "libcpg")]
mod cpg;
mod group;
mod promise;
mod wire;

#[cfg(feature = "libcpg")]
pub use cpg::{Cpg, CpgError, Event};
pub use group::{Change, Gone, Group, GroupConfig, Output, Process};

/// The longest payload that can be submitted, in bytes. CPG splits messages above 1 MiB, and a
/// receiver may then see a part of one.
pub const PAYLOAD_BYTES_MAX: usize = 1_000_000;
