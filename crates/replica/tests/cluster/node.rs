//! A node of the stage: its replica, its server and its disk, and what its gateway and its operator
//! were told.

use super::plan::{Definitions, group_config};
use super::{GROUP, Plan, Server, id};
use bytes::Bytes;
use quorba_base::NodeSet;
use quorba_replica::{
    Backup, BackupRefused, Catalog, CatalogChanged, CatalogRecord, CatalogRefused, CommandRefused,
    DefinitionNews, DownReason, Event, GatewayKey, GroupConfig, GroupId, GroupMap, LogRecord,
    MemberState, Record, Recovered, Replica, ReplicaConfig,
};
use std::collections::VecDeque;
use std::sync::Arc;

pub struct Node {
    pub replica: Replica,
    /// What the disk knows.
    pub record: Record,
    pub server: Option<Server>,
    pub replies: Vec<(u64, String)>,
    pub dropped: Vec<u64>,
    pub ended: Vec<quorba_replica::RequestEnd>,
    /// What came of reads.
    pub reads: Vec<(u64, String)>,
    /// Those of them that ended the process of a server.
    pub ended_reads: Vec<u64>,
    /// Marks that it had ordered.
    pub marks: Vec<u64>,
    pub resubmits: usize,
    pub events: Vec<Event>,
    pub restarts: Vec<DownReason>,
    /// So often its servers end the connection when they are given a state.
    pub refuses: usize,
    /// Texts at which its next server ends the connection.
    pub next_odd: Vec<String>,
    /// Commands of its operator and what became of them.
    pub commanded: Vec<Result<(), CommandRefused>>,
    /// What became of changes of the catalog, and of definitions.
    pub defined: Vec<Result<CatalogChanged, CatalogRefused>>,
    pub news: Vec<(GroupId, DefinitionNews)>,
    pub backups: Vec<Result<Backup, BackupRefused>>,
    pub restored: Vec<Result<(), BackupRefused>>,
    pub(super) awaits_held: bool,
    pub alive: bool,
    pub disk: Disk,
    /// It takes long to look at the disk while the node runs, and what was seen there.
    pub looks_long: bool,
    pub(super) looks: VecDeque<((GroupId, u64), Recovered)>,
    /// It takes long to write a state, and those that are being written.
    pub saves_long: bool,
    pub(super) saves: VecDeque<(GroupId, u64, Bytes)>,
    /// Requests that a majority has on disk.
    pub logged: Vec<u64>,
    pub(super) incarnation: u64,
    pub(super) ticket: u64,
    /// Replies that it had ordered, with their tickets.
    pub(super) ordered: Vec<(GatewayKey, u64)>,
    pub(super) released_below: u64,
}

/// What survives a crash, as far as it is synced.
#[derive(Clone, Default)]
pub struct Disk {
    pub records: Vec<LogRecord>,
    pub states: Vec<(GroupId, Bytes)>,
    /// Records that a crash does not take.
    pub synced: usize,
    /// Records that were given up at the beginning.
    pub given_up: usize,
    /// Records of earlier boots.
    pub(super) begin: usize,
    /// Nothing is synced until the scenario says so.
    pub slow: bool,
    /// Records of the catalog.
    pub catalog: Vec<Bytes>,
    /// Catalogs are not synced until the scenario says so: those that are not, and their place.
    pub catalog_is_slow: bool,
    pub unsynced: Vec<CatalogRecord>,
}

impl Disk {
    fn catalog(&self, definitions: &Definitions) -> Catalog {
        let found = Catalog::recover(self.catalog.clone()).expect("nothing is damaged");
        found.unwrap_or_else(|| definitions.fixed.catalog())
    }

    pub(super) fn put(&mut self, record: &CatalogRecord) {
        if record.is_whole {
            self.catalog.clear();
        }
        self.catalog.push(record.bytes.clone());
    }
}

impl Node {
    /// Why members went down, as far as this node was told.
    pub fn downs(&self) -> Vec<DownReason> {
        let down = |event: &Event| match event {
            Event::Member { state: MemberState::Down(reason), .. } => Some(*reason),
            _ => None,
        };
        self.events.iter().filter_map(down).collect()
    }

    pub(super) fn new(
        index: usize,
        count: usize,
        incarnation: u64,
        plan: Plan,
        record: Record,
        disk: Disk,
    ) -> Self {
        let nodes = NodeSet::first(count);
        let group = group_config(plan, nodes);
        let me = id(index);
        let other = GroupConfig { durable: true, ..group.clone() };
        let other = (GroupId(GROUP.0 + 4), other);
        let groups = [(GROUP, group)].into_iter().chain(plan.beside_durable.then_some(other));
        let definitions = Definitions::new(groups.collect());
        let config = ReplicaConfig {
            me,
            incarnation,
            nodes,
            quorum: plan.quorum,
            record: record.clone(),
            outside: GroupMap::new(),
            catalog: disk.catalog(&definitions),
            gateways: plan.gateways,
            definitions: Arc::new(definitions),
            serves_reentrant_reads: true,
            in_doubt: false,
            recovered: (!disk.records.is_empty()).then(|| Recovered {
                records: disk.records.clone(),
                states: disk.states.clone(),
                ..Recovered::default()
            }),
        };
        Self {
            replica: Replica::new(config),
            record,
            server: None,
            replies: Vec::new(),
            dropped: Vec::new(),
            ended: Vec::new(),
            ordered: Vec::new(),
            reads: Vec::new(),
            ended_reads: Vec::new(),
            marks: Vec::new(),
            resubmits: 0,
            events: Vec::new(),
            restarts: Vec::new(),
            refuses: 0,
            next_odd: Vec::new(),
            commanded: Vec::new(),
            defined: Vec::new(),
            news: Vec::new(),
            backups: Vec::new(),
            restored: Vec::new(),
            awaits_held: false,
            alive: true,
            disk,
            looks_long: false,
            looks: VecDeque::new(),
            saves_long: false,
            saves: VecDeque::new(),
            logged: Vec::new(),
            incarnation,
            ticket: 0,
            released_below: 1,
        }
    }
}
