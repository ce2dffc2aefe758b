//! One pure Quorba node: the gateway, what requests mean, and their order, joined.
//!
//! [`Node`] is driven by `node` with real sockets and by `sim` with virtual ones; it is the same
//! code. Feed it with the `handle_*` functions, then drain [`Node::poll`] until it is empty, then
//! come back at [`Node::poll_timeout`] at the latest.
//!
//! What it is not: it opens nothing, reads no clock and draws no random number. It holds routing
//! and the gateway's book-keeping; protocol is in `order` and `replica`.
//!
//! Invariants: a reply leaves only when promise 1 holds for its request; a request that was taken
//! in is answered, one way or another, within its time.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod answers;
mod book;
mod config;
mod connection;
mod definitions;
mod external;
mod fair;
mod gateway;
mod limits;
mod node;
mod ordering;
mod output;
mod outside;
mod pending;
mod snapshot;
mod window;

pub use access::{Access, Certificate, ClientPeer, ClientRule, STATE_OPERATIONS};
pub use config::{
    BootState, DomainSettings, GatewayLimits, GroupSettings, MESSAGE_BYTES_MAX, NodeConfig,
    References,
};
pub use definitions::{FixedSettings, Settings, SettingsOf};
pub use external::{ExternalCommand, ExternalId, OutsideSettings};
pub use gateway::SHARED_PORT;
pub use node::Node;
pub use output::{CloseReason, ConnectionId, Event, Output, PEER_MESSAGE_BYTES_MAX};
pub use quorba_order as order;
pub use quorba_replica as replica;
pub use snapshot::{GatewayCounters, GatewaySnapshot, NodeSnapshot};
