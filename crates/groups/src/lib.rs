//! Process groups over the ring: thousands of named groups share one order of messages.
//!
//! One [`Groups`] per node, between the node's [`quorba_order::Ring`] and the processes that it
//! serves. Joins and leaves are ordered messages; the views of a group follow from them and from
//! the views of the ring. After a change of the ring every node announces the memberships of its
//! own processes; when the announcements of all nodes of the ring view are in, each group whose
//! membership changed gets one view, and no message overtakes it.
//!
//! What a process may rely on (Moser94, one level up):
//! - views and messages of a group come to all its members in one order; processes that go
//!   together from one view of a group to its next have got the same messages between them;
//! - a regular view has the same members wherever it is given, under the same [`GroupViewId`];
//! - before members on other nodes are lost, those who remain together get a transitional view;
//! - a process gets its own messages;
//! - only members send to a group, and a message goes to those who are members at its place.
//!
//! One exception: if the ring breaks again before all announcements are in, what was ordered
//! meanwhile is delivered behind the transitional view that began before it, and only from those
//! who were together with this node until then.
//!
//! What it is not: it has no sockets and no clock, it repeats no message of an application, it
//! keeps no state of applications.
//!
//! Invariants: the same inputs give the same outputs; what a node knows of another node's
//! memberships is that node's last announcement and its ordered messages since, so nothing can
//! remain of a node that is gone; no payload makes it panic or grow beyond its limits.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod groups;
mod ids;
mod local;
mod output;
mod settle;
mod table;
mod wire;

pub use groups::Groups;
pub use ids::{GroupName, GroupNumber, GroupViewId, ProcessId, ProcessNumber};
pub use output::{Gone, GroupView, JoinReason, Output, Refused, Snapshot};
pub use wire::{InvalidPayload, MESSAGE_HEADER_BYTES};

/// The longest name of a group, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// The most groups that processes of one node are in, all together.
pub const GROUPS_PER_NODE_MAX: usize = 16_384;
/// The most memberships that processes of one node have, all together.
pub const MEMBERSHIPS_PER_NODE_MAX: usize = 65_536;
/// The most processes of one node.
pub const PROCESSES_PER_NODE_MAX: usize = 65_536;
