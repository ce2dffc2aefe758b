//! Event channels as servants: the standard's (CosEvent), those of TAO's real-time event service,
//! and the facade of its fault-tolerant one; three ways to one [`Channel`].
//!
//! [`Channel`] is [`quorba_corba::Objects`]: one per replica, whatever runs it. Who drives it tells
//! it the time ([`Channel::tick`]) and what calls come in, takes what is to be called
//! ([`Channel::poll_push`], [`Channel::poll`]), calls it, and says how that ended.
//!
//! Subscriptions are what replicas have alike. Events are not, but in a reliable channel, which
//! keeps them until consumers have acknowledged them.
//!
//! What it is not: a sender. It opens no connection and waits for nobody; it is not the group that
//! it stands behind, so what only the leader knows is proposed ([`Proposal`]), and is so when it is
//! ordered.
//!
//! Invariants: what is answered and what goes out is a function of calls, times and outcomes so
//! far; the states of replicas that were given the same are equal to the octet; one consumer that
//! is slow or dead keeps no other one waiting; nothing grows beyond [`Limits`].

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::string_slice)
)]

extern crate alloc;

mod agenda;
mod channel;
mod cos;
mod decisions;
mod dispatch;
mod ends;
mod event;
mod facade;
pub mod filter;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod held;
mod index;
mod keys;
mod objects;
mod observers;
mod outgoing;
mod pulled;
mod push;
mod qos;
mod queue;
mod registry;
mod replicate;
mod room;
mod rtec;
mod schedule;
mod service;
mod service_objects;
mod settings;
mod shown;
mod state;

pub use channel::{Channel, Totals};
pub use decisions::{Decision, Decisions};
pub use dispatch::ConsumerStatus;
pub use ends::{EndCounts, Ended};
pub use event::as_any;
pub use observers::Update;
pub use outgoing::{Delivery, Goodbye, Outcome, Outgoing, Proposal, Reason, TooLarge};
pub use push::{NO_ROOM, NOTHING_YET, Refused};
pub use queue::{Counters, QueueLimits};
pub use quorba_base::channel::UNORDERED_PREFIX;
pub use quorba_base::policy::{Full, Scheduling};
pub use registry::{ConsumerForm, SupplierForm};
pub use replicate::{UpdateFault, Updates};
pub use schedule::{RtInfo, Schedule};
pub use service::{
    DECISIONS_KEY, EventService, OrderedCaller, OrderedClock, SERVICE_KEY, STATE_KEY, channel_of,
};
pub use settings::{Contradiction, Limits, Settings};
