//! The latency laboratory: what a call costs, directly and through Quorba, and why.
//!
//! A [`Plan`] lists configurations: chains of processes between a caller and the answer. [`run()`]
//! measures them side by side in one go, round after round, in several [`Setting`]s, with an
//! ordinary omniORB client and server; [`table`] and the run's page show the outcome. [`failover`]
//! measures how long a client waits when something dies, [`transfer`] how fast a state travels
//! while clients call. See `docs/performance.md` for how to read and repeat it.
//!
//! What it is not: a part of what is measured. Nodes are started as a user starts them, and
//! watched through the admin API and `/proc`; what a plan wants recorded, any node can record.
//!
//! Invariants: figures are compared only within a round; raw samples are kept; what is known
//! against the figures is said wherever they are shown.

#![forbid(unsafe_code)]

mod ballast;
mod bare;
mod bare_group;
mod block;
mod domain;
mod environment;
mod error;
pub mod failover;
mod histogram;
pub mod huang;
mod irl;
pub mod leaders;
pub mod manager;
pub mod many;
pub mod namespaces;
pub mod naming;
mod nodes;
mod orb;
mod peer;
pub mod place;
mod placement;
mod plan;
mod record;
mod report;
mod ring_share;
mod run;
mod serve;
mod service;
pub mod skips;
mod stats;
pub mod transfer;
pub mod usage;
mod wire;
mod zhao;

pub use bare::peer_main;
pub use environment::Environment;
pub use error::LabError;
pub use orb::Orb;
pub use placement::Setting;
pub use plan::{CALLS_MAX, Chain, Changes, Configuration, DomainShape, Plan, ROUNDS_MAX, Step};
pub use record::{Block, FORMAT, ProcessShare, RingShare, Row, Run, StepRow};
pub use report::{failover_table, leaders_table, table, transfer_table};
pub use run::{LabOptions, Outcome, run};
pub use stats::{Percentiles, Spread};
pub use wire::Wire;
pub use zhao::{
    Claim, Figures, NodeFigures, Outcome as ZhaoOutcome, Peak, Repeats, RingKind, Scenario, Shape,
};
