//! The FaultNotifier of FT-CORBA (§23.4) as a servant: reports of faults, who wants which of them,
//! and an analyzer that tells of a dead node once.
//!
//! [`Notifier`] is [`quorba_corba::Objects`]: one per replica, whatever runs it. [`NOTIFIER_KEY`]
//! has the standard's form, [`TAO_KEY`] that of clients linked with TAO. Reports wait in the state
//! until somebody has said at [`DELIVERY_KEY`] that a consumer has them.
//!
//! [`Courier`] decides what the replica that leads does next for each consumer.
//!
//! What it is not: a detector, and it calls no consumer: whoever runs the replicas does both.
//!
//! Invariants: the states of replicas that executed the same calls are equal to the octet; a report
//! that was taken in stays until each consumer that wants it has it or was cut off; nothing grows
//! beyond [`Limits`].

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::string_slice)
)]

extern crate alloc;

mod analyzer;
mod constraint;
mod courier;
mod delivery;
mod evaluate;
pub mod event;
mod filter;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod news;
mod notifier;
mod omg;
mod state;
mod tao;

pub use courier::{Courier, Errand, NotTaken, PATIENCE};
pub use delivery::MANAGER;
pub use news::News;
pub use notifier::{DELIVERY_KEY, Limits, NOTIFIER_KEY, Notifier, STATE_KEY, TAO_KEY};
