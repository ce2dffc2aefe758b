//! journal
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "std")]
mod checkpoint;
#[cfg(feature = "std")]
mod committer;
#[cfg(feature = "std")]
mod damage;
#[cfg(feature = "std")]
pub mod disk;
pub mod format;
#[cfg(feature = "std")]
mod inspect;
#[cfg(feature = "std")]
mod journal;
#[cfg(feature = "std")]
mod meta;
#[cfg(feature = "std")]
mod nonce;

#[cfg(feature = "std")]
pub use checkpoint::{Checkpoint, Checkpoints, Reader, Sealed, Writer};
#[cfg(feature = "std")]
pub use committer::{Committer, Notice, Refused};
#[cfg(feature = "std")]
pub use damage::{Cause, Damage};
pub use format::record::Record;
pub use format::scan::Entry;
pub use format::{ComponentId, Owner, Position, Seq};
#[cfg(feature = "std")]
pub use inspect::inspect;
#[cfg(feature = "std")]
pub use journal::{
    AdoptError, CommitError, Failures, Journal, Memory, OpenError, Opened, Options, Records,
    Recovered, TooLong,
};
