//! What an ordered request means for an object group: who executes it, who answers, what is kept.
//!
//! One [`Replica`] per node is fed with views and with messages in their agreed order, and with
//! what the local servers say; it answers with a closed set of [`Output`]s. Because every node
//! feeds its `Replica` the same messages in the same order, the group tables agree everywhere.
//!
//! What it is not: it does not know how the order was reached, never opens a connection, waits
//! or sleeps, and reads no clock (an [`quorba_base::Instant`] comes with every call).
//!
//! Invariants:
//! - a request is executed by a member at most once, whatever arrives (promise 2);
//! - a member executes requests in the agreed order, as many at a time as the group's
//!   `concurrency` allows (promise 3);
//! - nothing is executed outside of a primary component (promise 4), see [`primary`];
//! - tables change only where an ordered message or a decided view says so.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod archive;
mod backup;
mod binding;
mod catalog;
mod catch_up_log;
mod chain;
mod checkpoint;
mod clock;
mod command;
mod config;
mod disk_census;
mod duplicates;
mod endings;
mod envelope;
mod executor;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod group;
mod group_map;
mod hello;
mod history;
mod holders;
mod ids;
mod log;
mod log_snapshot;
mod member;
mod members;
mod membership;
mod moment;
mod nested;
mod node_map;
mod offer;
mod output;
mod outside;
mod passive;
mod peer;
pub mod primary;
mod reads;
mod recent;
mod reentrant;
mod refusal;
mod released;
mod replica;
mod reply_summary;
mod retention;
mod stateless;
mod style;
mod submitted;
mod table;
mod transfer;
mod votes;
mod wire;

pub use backup::{Backup, BackupRefused};
pub use binding::{Binding, Bound};
pub use catalog::{
    Catalog, CatalogChange, CatalogChanged, CatalogDamaged, CatalogMark, CatalogRecord,
    CatalogRefused, DEFINITION_BYTES_MAX, DEFINITIONS_MAX, Definition, Definitions,
    FixedDefinitions, NAME_BYTES_MAX,
};
pub use command::{Command, CommandRefused};
pub use config::{GroupConfig, ReplicaConfig};
pub use duplicates::OrderedReplies;
pub use endings::{NoReply, RequestEnd};
pub use envelope::{
    CODE_SETS_BYTES_MAX, ENVELOPE_BYTES_MAX, FtRequest, RequestEnvelope, released_payload,
};
pub use executor::{Refusal, Returned, Served, ServerFigures, StateRefused};
pub use group::{Backlog, EndingsSnapshot, GroupSnapshot, IdentityFault, IdentityFigures, LogHold};
pub use group_map::GroupMap;
pub use hello::{Former, Hello, Lineage, Record};
pub use history::History;
pub use ids::{
    Attempt, CallKey, ChannelId, GatewayKey, GroupId, RequestKey, RequestNumber, RingId,
};
pub use log::{LogRecord, Place, Recovered};
pub use moment::Moment;
pub use nested::{CallFigures, CallRefusal, NestedCall};
pub use output::{
    Availability, DefinitionNews, DriverOutput, Event, GatewayOutput, LogOutput, OrderOutput,
    Output, ServerCommand,
};
pub use outside::{OUTSIDE_BYTES_MAX, OutsideConfig, OutsideFailure, OutsideReport};
pub use peer::{Lane, PEER_MESSAGE_BYTES_MAX};
pub use primary::Quorum;
pub use quorba_base::policy::{
    Ack, CheckpointRule, ComparisonRule, Concurrency, OnDoubt, OnTotalLoss, QuorumRule,
    ReadConsistency, ReplyPath, Style,
};
pub use reads::{ReadRule, name_fits};
pub use recent::{
    Outcome as RecentOutcome, RECENT_REQUESTS_MAX, RecentPage, RecentQuery, RecentRequest,
    RecordedRequest, Short, names as request_names,
};
pub use reentrant::REENTRANT_REPLY_BYTES_MAX;
pub use refusal::{exception_of, outside_failed};
pub use released::Released;
pub use replica::{Delivered, PrimaryStatus, Replica, ReplicaView};
pub use style::lives_in_memory;
pub use table::{DownReason, Lacks, MemberState, OutReason};
pub use transfer::{TransferProgress, TransferRule};
pub use wire::InvalidEnvelope;
