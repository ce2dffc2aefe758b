//! One virtual machine of the domain: its disk, its clock, its node process if it runs, and who
//! looks after the servers.
//!
//! Invariant: a node sees its inputs in the order in which they came, also after a pause.

use crate::catalog::CatalogDisk;
use crate::disk::LogDisk;
use crate::machine::Machine;
use crate::stream::StreamId;
use bytes::Bytes;
use quorba_base::{Instant, NodeId, Position};
use quorba_engine::replica::{
    Backup, CatalogChange, ChannelId, Command, DownReason, GroupId, Record, Recovered,
};
use quorba_engine::{ExternalId, Node};
use std::collections::VecDeque;

/// Something that happens to a node process.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Datagram(Bytes),
    PeerLost(NodeId),
    PeerUp(NodeId, u64),
    PeerDown(NodeId),
    PeerMessage(NodeId, u64, Bytes),
    PeerFull(NodeId, Bytes),
    PeerRoom(NodeId),
    ClientOpened(StreamId, GroupId),
    /// A server of the first group calls the second one.
    CallOpened(StreamId, GroupId, GroupId),
    ClientBytes(StreamId, Bytes),
    ClientClosed(StreamId),
    /// With the count of times that no server was wanted when it was sent.
    ServerUp(GroupId, u32),
    ServerDown(GroupId, u32, DownReason),
    ServerConnected(GroupId, ChannelId),
    ServerClosed(GroupId, ChannelId),
    ServerBytes(GroupId, ChannelId, Bytes),
    ExternalConnected(ExternalId),
    ExternalBytes(ExternalId, Bytes),
    ExternalClosed(ExternalId),
    Command(GroupId, Command),
    /// Give up the request with this number.
    Skip(GroupId, u64),
    Backup(GroupId, u64),
    Restore(GroupId, u64, Backup),
    Logged(u64),
    CatalogSaved(Position),
    Define(u64, CatalogChange),
    Saved(GroupId, u64),
    LookedUp((GroupId, u64), Option<Recovered>),
    Trusted,
    Compact,
    Stop,
}

impl Input {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Datagram(_) => "datagram",
            Self::PeerLost(_) => "peer lost",
            Self::PeerUp(..) => "peer up",
            Self::PeerDown(_) => "peer down",
            Self::PeerMessage(..) => "peer message",
            Self::PeerFull(..) => "peer full",
            Self::PeerRoom(_) => "peer room",
            Self::ClientOpened(..) => "client opened",
            Self::CallOpened(..) => "call opened",
            Self::ClientBytes(..) => "client bytes",
            Self::ClientClosed(_) => "client closed",
            Self::ServerUp(..) => "server up",
            Self::ServerDown(..) => "server down",
            Self::ServerConnected(..) => "server connected",
            Self::ServerClosed(..) => "server closed",
            Self::ServerBytes(..) => "server bytes",
            Self::ExternalConnected(_) => "abroad connected",
            Self::ExternalBytes(..) => "abroad bytes",
            Self::ExternalClosed(_) => "abroad closed",
            Self::Command(..) => "command",
            Self::Skip(..) => "skip",
            Self::Backup(..) => "backup",
            Self::Restore(..) => "restore",
            Self::Logged(_) => "logged",
            Self::CatalogSaved(_) => "catalog saved",
            Self::Define(..) => "define",
            Self::Saved(..) => "saved",
            Self::LookedUp(..) => "looked up",
            Self::Trusted => "trusted",
            Self::Compact => "compact",
            Self::Stop => "stop",
        }
    }
}

/// What survives a crash of the host.
#[derive(Clone, Default, Debug)]
pub(crate) struct Disk {
    pub(crate) incarnation: u64,
    pub(crate) ring_seq: u64,
    pub(crate) record: Record,
}

/// Starts a server again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supervisor {
    /// The server that it started last, or found.
    pub(crate) server: Option<usize>,
    pub(crate) backoff_ms: u64,
    /// Counts orders, so that an old one is recognised.
    pub(crate) serial: u64,
    /// A server is to run.
    pub(crate) wanted: bool,
    /// Counts the times that none was wanted any more: news from before are stale.
    pub(crate) stops: u32,
    /// When the last news of it reach the node.
    pub(crate) news_at: Instant,
    pub(crate) started_at: Instant,
}

impl Supervisor {
    pub(crate) fn new(backoff_ms: u64) -> Self {
        Self {
            server: None,
            backoff_ms,
            serial: 0,
            wanted: true,
            stops: 0,
            news_at: Instant::ZERO,
            started_at: Instant::ZERO,
        }
    }
}

/// See the module's text.
pub(crate) struct Host {
    pub(crate) node: Option<Node>,
    /// Counts the starts of the process.
    pub(crate) boot: u64,
    pub(crate) disk: Disk,
    pub(crate) log: LogDisk,
    pub(crate) catalog: CatalogDisk,
    pub(crate) machine: Machine,
    pub(crate) inbox: VecDeque<Input>,
    /// Of these, datagrams.
    pub(crate) datagrams_waiting: usize,
    /// The host has power, so its kernel answers for a dead process.
    pub(crate) powered: bool,
    /// By group; `None` where the group has no member here.
    pub(crate) supervisors: Vec<Option<Supervisor>>,
    /// Counts the supervisors of groups that came while the domain worked.
    pub(crate) lives: u32,
    /// It lost its memory and is not in a primary component again.
    pub(crate) amnesic: bool,
    pub(crate) stopping: bool,
}

impl Host {
    pub(crate) fn new(supervisors: Vec<Option<Supervisor>>) -> Self {
        Self {
            node: None,
            boot: 0,
            disk: Disk::default(),
            log: LogDisk::default(),
            catalog: CatalogDisk::default(),
            machine: Machine::new(Instant::ZERO, 0),
            inbox: VecDeque::new(),
            datagrams_waiting: 0,
            powered: true,
            supervisors,
            lives: 0,
            amnesic: false,
            stopping: false,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.node.is_some()
    }
}
