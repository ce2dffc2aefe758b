//! A small blocking Rust ORB for servants, clients and tests.
//!
//! [`Server`] listens and dispatches requests by object key: to [`Servant`]s, which read their own
//! arguments, or to [`corba::Objects`] behind skeletons that were generated from IDL. [`Client`]
//! calls an object through a [`Reference`] with all of its addresses, by hand or by a stub. Both
//! speak GIOP 1.0 to 1.2 over TCP, IPv4 and IPv6.
//!
//! What it is not: a full ORB. There are no DII, no POA hierarchy, no interceptors, no
//! bidirectional connections; and it knows nothing of groups or replication, so that what is built
//! on it is as ordinary a client or server as any.
//!
//! Invariants: servants of one server execute one request at a time, in the order in which
//! requests arrived over all connections; a client never repeats a call that may have been
//! executed, unless it was given an identity to repeat it under; no message from a peer, however
//! malformed, makes either side panic, hang or grow beyond its limits.

#![forbid(unsafe_code)]

mod client;
mod servant;
mod server;
mod stream;

pub use client::{
    Answer, CallError, Client, ClientOptions, HeartbeatPolicy, Reference, ReferenceError, Repeat,
    ResolveError, UserException, resolve, time_t,
};
/// What generated code is made of.
pub use quorba_corba as corba;
/// The wire format that this ORB speaks.
pub use quorba_giop as giop;
pub use servant::{Reply, Servant, marshal_fault, unknown_operation};
pub use server::{RunningServer, SECRET_BYTES, Server, ServerOptions, Takes, same_secret};
