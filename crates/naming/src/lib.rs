//! The naming service (OMG Naming Service 1.3) as a servant: contexts, bindings, names as text.
//!
//! [`NamingService`] is [`quorba_corba::Objects`]: one per replica, whatever runs it. Its root
//! context has the key [`ROOT_KEY`]; [`STATE_KEY`] is an `FT::Checkpointable`, by which replicas
//! hand each other what is bound.
//!
//! What it is not: a client. A name that goes on in another naming service is not followed: the
//! caller gets CannotProceed with that context and the rest of the name, as the standard has it.
//!
//! Invariants: what is answered is a function of the calls so far, and of what the service was told
//! to publish; the states of replicas that executed the same calls are equal to the octet; nothing
//! grows beyond [`Limits`].

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::string_slice)
)]

extern crate alloc;

mod context;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod iterator;
mod name;
mod reference;
mod service;
mod state;
mod tree;

pub use name::{InvalidName, to_name, to_string};
pub use service::{Clock, Limits, NamingService, ROOT_KEY, STATE_KEY};
