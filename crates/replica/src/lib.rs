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

mod calls;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod group;
mod member;
mod messages;
mod output;
pub mod primary;
mod replica;
mod server;
mod state;
mod table;
mod words;

pub use calls::duplicates::OrderedReplies;
pub use calls::nested::{CallFigures, CallRefusal, NestedCall};
pub use calls::outside::{OUTSIDE_BYTES_MAX, OutsideConfig, OutsideFailure, OutsideReport};
pub use calls::reentrant::REENTRANT_REPLY_BYTES_MAX;
pub use calls::refusal::{exception_of, outside_failed};
pub use group::{Backlog, EndingsSnapshot, GroupSnapshot, IdentityFigures, LogHold};
pub use messages::backed_up::{Backup, BackupRefused};
pub use messages::catalog::{
    Catalog, CatalogChange, CatalogChanged, CatalogDamaged, CatalogMark, CatalogRecord,
    CatalogRefused, DEFINITION_BYTES_MAX, DEFINITIONS_MAX, Defined, Definition, Definitions,
    FixedDefinitions, NAME_BYTES_MAX,
};
pub use messages::command::{Command, CommandRefused};
pub use messages::envelope::{
    CODE_SETS_BYTES_MAX, ENVELOPE_BYTES_MAX, FtRequest, RequestEnvelope, released_payload,
};
pub use messages::hello::{Former, Hello, Lineage, Record};
pub use messages::log::{LogRecord, Recovered};
pub use messages::peer::{Lane, PEER_MESSAGE_BYTES_MAX};
pub use output::{
    Availability, DefinitionNews, DriverOutput, Event, GatewayOutput, IdentityFault, LogOutput,
    OrderOutput, Output, Returned, ServerCommand,
};
pub use primary::Quorum;
pub use quorba_base::policy::{
    Ack, CheckpointRule, ComparisonRule, Concurrency, OnDoubt, OnTotalLoss, QuorumRule,
    ReadConsistency, Replication, ReplyPath, Style,
};
pub use replica::config::ReplicaConfig;
pub use replica::{Delivered, PrimaryStatus, Reach, Replica, ReplicaView};
pub use server::executor::{Refusal, Served, ServerFigures, StateRefused};
pub use server::recent::{
    Outcome as RecentOutcome, RECENT_REQUESTS_MAX, RecentPage, RecentQuery, RecentRequest,
    RecordedRequest, names as request_names,
};
pub use state::transfer::TransferProgress;
pub use table::endings::{NoReply, RequestEnd};
pub use table::moment::Moment;
pub use table::{DownReason, Lacks, MemberState, OutReason};
pub use words::binding::{Binding, Bound};
pub use words::config::GroupConfig;
pub use words::group_map::GroupMap;
pub use words::history::History;
pub use words::ids::{
    Attempt, CallKey, ChannelId, GatewayKey, GroupId, RequestKey, RequestNumber, RingId,
};
pub use words::place::Place;
pub use words::released::Released;
pub use words::rules::{LeaderRule, ReadRule, TransferRule, WaitRule, name_fits};
pub use words::short::Short;
pub use words::style::lives_in_memory;
pub use words::wire::InvalidEnvelope;
