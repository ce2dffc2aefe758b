//! Totally ordered delivery of opaque payloads and agreed membership: the Totem ring.
//!
//! One [`Ring`] per node. It follows the Totem single-ring protocol (Amir et al., TOCS 13(4),
//! 1995: "Amir95") with extended virtual synchrony (Moser et al., ICDCS 1994: "Moser94") and the
//! accelerated ring (Babay and Amir, ICDCS 2016: "Babay16"); `docs/internals/totem.md` tells it
//! in prose, and where and why it deviates.
//!
//! What it is not: it never looks inside a payload and knows no groups; it has no sockets, no
//! clock, no randomness, no threads. Time and random salt come in as arguments.
//!
//! Invariants: the same inputs give the same outputs, to the byte; no input makes it panic or
//! grow without bound; datagrams are authenticated, then decrypted, then parsed.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// The README, so that its program is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod circuit;
mod commit;
mod config;
mod connectivity;
mod deliver;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod gather;
mod ids;
mod install;
mod keys;
mod limits;
mod links;
mod log;
mod operational;
mod output;
mod partial;
mod promise;
mod queue;
mod recovery;
mod ring;
mod seal;
mod shared;
mod snapshot;
mod typical;
mod wire;

pub use config::{Boot, Config, DATAGRAM_BYTES_LIMIT, DATAGRAM_BYTES_MIN, DomainKey, Hold, Timing};
pub use ids::{Guarantee, Position, RingId, Ticket};
pub use limits::{PAYLOAD_BYTES_MAX, QUEUE_BYTES_MAX, QUEUE_MESSAGES_MAX, log_packets_max};
pub use output::{
    Delivery, Destination, Full, GatherReason, LeaveReason, Output, RefusedReason, TimerKind, View,
    ViewKind,
};
pub use ring::Ring;
pub use seal::{InvalidKeys, KEYS_MAX, KeyId, SEAL_BYTES};
pub use snapshot::{Counters, LeftOut, Progress, Protection, Snapshot, StateName};
pub use wire::InvalidDatagram;
