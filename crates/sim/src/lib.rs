//! Deterministic simulator of many Quorba nodes, clients and servers.
//!
//! Around the very engine that ships: virtual time, network, disks, server processes and client
//! ORBs, with faults that a seed draws; then judgement by checkers, one promise per file. A seed
//! and a commit replay a run to the byte.
//!
//! What it is not: a model of the protocol. Nothing in here knows how order or membership are
//! reached; it only sees what leaves a node and what clients are told.
//!
//! Invariants: no real clock, thread, socket or hash order decides anything in a run.

mod ambush;
mod attendant;
mod backups;
mod calls;
#[cfg(feature = "canaries")]
pub mod canaries;
mod catalog;
mod channels;
mod check;
mod client;
mod disk;
mod event;
mod fault;
mod host;
mod latecomer;
mod ledger;
mod machine;
pub mod measure;
mod membership;
mod names;
mod nemesis;
mod network;
mod nodes;
mod object_groups;
mod odd;
mod ordered;
mod outside;
mod peers;
mod plan;
mod profile;
mod registry;
mod report;
mod reports;
mod ring;
mod rng;
mod run;
mod servant;
mod server;
mod servers;
mod stream;
mod sweep;
mod tcp;
mod transcript;
mod world;

pub use report::{INVARIANTS, Report, Scope, Violation};
pub use run::{Options, ServerBug, run};
pub use sweep::{Summary, Sweep, sweep};

// Without the feature no bug can be planted in anything that this crate is built from.
#[cfg(not(feature = "canaries"))]
const _: () = assert!(!quorba_base::canary!(SafeIsOnlyAgreed));
