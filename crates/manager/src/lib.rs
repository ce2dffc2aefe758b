//! The ReplicationManager of FT-CORBA (§23.3) as a servant: properties, object groups, their
//! members, and the minimum of these.
//!
//! [`Manager`] is [`quorba_corba::Objects`]: one per replica, whatever runs it. It makes groups by
//! calling the node's `Quorba::Domain` while it executes a request; that is an ordinary nested
//! call, so it is made once, and all replicas hear the same. Two objects are one manager:
//! [`MANAGER_KEY`] has the standard's form, [`TAO_KEY`] that of clients linked with TAO.
//!
//! What it is not: a starter of servers, which nodes are, or who calls objects to detect faults:
//! that the process beside a replica does, as its detectors decide ([`PullDetector`],
//! [`PushDetector`]). The manager is told of faults at [`FAULTS_KEY`]. Objects say at [`PUSH_KEY`]
//! that they live.
//!
//! Invariants: what is answered is a function of the calls so far and of what the domain answered;
//! the states of replicas that executed the same calls are equal to the octet; what a group is
//! stands in its definition, too, so that a manager without memory finds its groups again; nothing
//! grows beyond [`Limits`].

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::string_slice)
)]

extern crate alloc;

mod create;
mod criteria;
mod detect;
mod domain;
mod fault;
mod faults;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod group;
mod levels;
mod lookout;
mod manager;
mod members;
mod omg;
mod property;
mod pushed;
mod registry;
mod repair;
mod reports;
mod state;
#[cfg(feature = "table")]
pub mod table;
mod tao;
mod trials;
mod views;
mod watched;

pub use detect::{Charge, Errand, PullDetector, PullErrand, PushDetector, PushErrand, Target};
pub use lookout::{Lookout, Tidings};
pub use manager::{
    FAULTS_KEY, Limits, MANAGER_KEY, Manager, PUSH_KEY, STATE_KEY, TAO_KEY, WATCHER_KEY,
};
pub use pushed::Pushing;
pub use reports::Unanswered;
pub use trials::Newcomer;
pub use watched::{INCIDENT, UNANSWERED, Watched, Whom};
