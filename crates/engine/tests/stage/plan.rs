//! What a stage is to be: how many nodes and groups, and the settings that tests vary.

use super::{STATE_OBJECT, UNAVAILABLE_WAIT, id};
use bytes::Bytes;
use quorba_base::{Duration, NodeSet};
use quorba_engine::order::{Boot, Config, DomainKey, Hold, Timing};
use quorba_engine::replica::{
    Ack, CheckpointRule, ComparisonRule, Concurrency, GroupConfig, GroupId, GroupMap, OnTotalLoss,
    Quorum, ReadRule, Record, Replication, ReplyPath, Style,
};
use quorba_engine::{Access, FixedSettings, GatewayLimits, GroupSettings, NodeConfig, References};
use std::sync::Arc;

#[derive(Clone, Copy)]
pub struct Plan {
    pub nodes: usize,
    /// Nodes with a member of each group, the first ones; `None`: all.
    pub members: Option<usize>,
    pub groups: usize,
    pub limits: GatewayLimits,
    pub reply: ReplyPath,
    pub quorum: Quorum,
    /// How members are counted that have a call, and how many must have it.
    pub replication: Replication,
    pub depth: u32,
    pub unavailable_wait: Duration,
    pub datagram_bytes_max: usize,
    pub state_bytes_max: usize,
    pub concurrency: Concurrency,
    pub style: Style,
    /// Who may call what; `None`: the rules that a group has by itself.
    pub access: Option<fn() -> Access>,
    /// What clients with older references are told.
    pub references: Option<fn() -> Arc<dyn References>>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            nodes: 1,
            members: None,
            groups: 1,
            limits: GatewayLimits::default(),
            reply: ReplyPath::Direct,
            quorum: Quorum::default(),
            replication: Replication::Ordered,
            depth: 0,
            unavailable_wait: UNAVAILABLE_WAIT,
            datagram_bytes_max: 1400,
            state_bytes_max: 64 << 20,
            concurrency: Concurrency::Sequential,
            style: Style::Active,
            access: None,
            references: None,
        }
    }
}

impl Plan {
    pub fn config(self, index: usize) -> NodeConfig {
        let group = GroupConfig {
            members: NodeSet::first(self.members.unwrap_or(self.nodes)),
            state_object: Some(Bytes::from_static(STATE_OBJECT)),
            object_key: None,
            member_keys: Vec::new(),
            foreign: false,
            ack: Ack::Majority,
            reply: self.reply,
            replier: None,
            style: self.style,
            leader: None,
            comparison: ComparisonRule { requests: 0, expel: false, ignore_padding: false },
            checkpoint: CheckpointRule {
                requests: 100,
                after: Duration::from_secs(1),
                updates: false,
            },
            reads: ReadRule::default(),
            concurrency: self.concurrency,
            transfer: quorba_engine::replica::TransferRule::default(),
            on_total_loss: OnTotalLoss::Stop,
            durable: false,
            logged: false,
            open_after: Duration::from_secs(15),
            server_reply: Duration::from_secs(300),
            abandon: None,
            staggered: false,
            replication: self.replication,
            retention: Duration::from_secs(60),
            retention_bytes_max: 64 << 20,
            replay_bytes_max: None,
            by_application: false,
            reply_bytes_max: usize::MAX,
            state_bytes_max: self.state_bytes_max,
            calls: Vec::new(),
            is_called: false,
        };
        let access = self.access.map_or_else(Access::default, |access| access());
        let settings = GroupSettings {
            replica: group,
            depth: self.depth,
            unavailable_wait: self.unavailable_wait,
            access,
            references: self.references.map(|references| references()),
            initial_keys: Vec::new(),
        };
        let groups = GroupMap::of((0..self.groups as u64).map(GroupId), |_| settings.clone());
        let fixed = FixedSettings { groups, ..FixedSettings::default() };
        NodeConfig {
            order: self.order(index),
            boot: Boot { incarnation: 1, salt: [index as u8; 16], ring_seq_min: 0 },
            quorum: self.quorum,
            record: Record::default(),
            recovered: None,
            in_doubt: false,
            domain: Bytes::from_static(b"stage"),
            outside: GroupMap::new(),
            catalog: fixed.catalog(),
            gateways: 0,
            settings: Arc::new(fixed),
            limits: self.limits,
            wall_clock_origin: 0,
        }
    }

    fn order(self, index: usize) -> Config {
        Config {
            me: id(index),
            nodes: NodeSet::first(self.nodes),
            domain_key: DomainKey::new([7; 32]),
            domain_digest: 1,
            datagram_bytes_max: self.datagram_bytes_max,
            encrypt: true,
            accelerated: true,
            hold: Hold::default(),
            timing: Timing::default(),
        }
    }
}
