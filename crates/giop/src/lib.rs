//! CDR, GIOP 1.0 to 1.2, IOR and service contexts, as pure data.
//!
//! [`Framer`] cuts whole messages out of a byte stream, [`Message`] is one of them, and
//! [`Message::parse`] gives checked views of its header that forward bytes untouched. The GIOP
//! version is a value in one codec, not a copy of the codec.
//!
//! What it is not: it knows no groups, no time and no sockets, and needs no IDL.
//!
//! Invariants: no input makes it panic; no length or count is believed before it was compared
//! with what is there; what it does not understand it keeps byte for byte and in order.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::string_slice)
)]

extern crate alloc;

/// The README, so that its program is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod build;
pub mod cdr;
pub mod context;
pub mod corbaloc;
pub mod describe;
mod error;
mod exception;
mod fragment;
mod frame;
#[cfg(feature = "hostile")]
pub mod hostile;
pub mod ior;
pub mod limits;
mod locate;
mod message;
pub mod padding;
pub mod references;
mod reply;
mod request;
mod service;
mod shared_key;
mod target;
mod version;

pub use context::{CodeSets, FtRequest, GroupVersion, TransactionDepth};
pub use error::{Fault, FrameError, MessageError};
pub use exception::{Completion, ExceptionKind, MinorCode, QUORBA_VMCID, SystemException};
pub use fragment::{fragment, fragment_uncopied};
pub use frame::{Framer, FramerLimits, PassedOver};
pub use ior::Ior;
pub use locate::{LocateReply, LocateRequest, LocateStatus};
pub use message::{Body, Message, MessageType, Unaddressed, renumbered};
pub use reply::{Reply, ReplyStatus};
pub use request::{Request, ResponseFlags, Rewrite};
pub use service::Contexts;
pub use shared_key::{SHARED_KEY_PREFIX, shared_key, split_shared_key};
pub use target::Target;
pub use version::{Endian, Version};
