//! What scenarios choose of the group's configuration.

use super::{GROUP, id};
use bytes::Bytes;
use quorba_base::{Duration, NodeSet};
use quorba_replica::{
    Ack, CheckpointRule, ComparisonRule, Concurrency, Defined, Definition, FixedDefinitions,
    GroupConfig, GroupId, GroupMap, LeaderRule, OnDoubt, OnTotalLoss, OutsideConfig, Quorum,
    ReadConsistency, ReadRule, Replication, ReplyPath, Style, TransferRule,
};

/// What the scenarios choose of the group's configuration.
#[derive(Clone, Copy)]
pub struct Plan {
    pub state_object: bool,
    pub reply: ReplyPath,
    pub replier: Option<usize>,
    pub quorum: Quorum,
    pub style: Style,
    pub checkpoint: CheckpointRule,
    pub comparison: ComparisonRule,
    pub concurrency: Concurrency,
    pub durable: bool,
    /// Another group of the domain is durable, so that all that is delivered is written down.
    pub beside_durable: bool,
    pub on_total_loss: OnTotalLoss,
    pub retention_bytes_max: usize,
    pub replay_bytes_max: Option<usize>,
    /// The application keeps the members' states.
    pub by_application: bool,
    pub abandon: Option<Duration>,
    pub staggered: bool,
    pub replication: Replication,
    /// Somebody else starts and ends the servers.
    pub foreign: bool,
    /// Its servers call another group.
    pub calls: bool,
    /// `tell*` changes nothing.
    pub reads: Option<ReadConsistency>,
    /// Only objects whose keys begin so, and by the leader.
    pub reads_of_leader: Option<&'static [u8]>,
    /// A digest of the domain's gateways.
    pub gateways: u64,
}

impl Plan {
    pub fn plain(state_object: bool) -> Self {
        let quorum = Quorum::default();
        let (reply, concurrency) = (ReplyPath::Direct, Concurrency::Sequential);
        let style = Style::Active;
        let after = Duration::from_secs(1);
        let checkpoint = CheckpointRule { requests: 3, after, updates: false };
        let comparison = ComparisonRule { requests: 0, expel: false, ignore_padding: false };
        let (replier, durable) = (None, false);
        Self {
            state_object,
            reply,
            replier,
            quorum,
            style,
            checkpoint,
            comparison,
            concurrency,
            durable,
            beside_durable: false,
            on_total_loss: OnTotalLoss::Stop,
            retention_bytes_max: 64 << 20,
            replay_bytes_max: None,
            by_application: false,
            abandon: None,
            staggered: false,
            replication: Replication::Ordered,
            foreign: false,
            calls: false,
            reads: None,
            reads_of_leader: None,
            gateways: 0,
        }
    }

    pub fn style(style: Style) -> Self {
        Self { style, ..Self::plain(true) }
    }
}

/// The groups of the plan by their ids, and others, whose texts are words: `durable`, `members=01`,
/// `reply=SECONDS`, `calls=NAME`, `stateless`; or `outside=BYTES`, a server outside and the largest
/// reply that it may give.
pub struct Definitions {
    pub fixed: FixedDefinitions,
}

impl Definitions {
    pub fn new(groups: GroupMap<GroupConfig>) -> Self {
        Self { fixed: FixedDefinitions { groups, ..FixedDefinitions::default() } }
    }
}

impl quorba_replica::Definitions for Definitions {
    fn define(
        &self,
        definition: &Definition,
        id_of: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<Defined, String> {
        if definition.text.is_empty() {
            return self.fixed.define(definition, id_of);
        }
        if let Some(bytes) = definition.text.strip_prefix(b"outside=") {
            let bytes = str::from_utf8(bytes).expect("it is text").parse().expect("a number");
            let server = OutsideConfig { on_doubt: OnDoubt::Fail, reply_bytes_max: bytes };
            return Ok(Defined::Outside(server));
        }
        let mut config = self.fixed.groups.values().next().expect("there is one").clone();
        config.durable = false;
        for word in str::from_utf8(&definition.text).expect("it is text").split(' ') {
            match word.split_once('=').unwrap_or((word, "")) {
                ("durable", _) => config.durable = true,
                ("stateless", _) => config.style = Style::Stateless,
                ("plain", _) => {}
                ("members", nodes) => {
                    config.members = nodes.bytes().map(|node| id((node - b'0').into())).collect();
                }
                ("reply", seconds) => {
                    config.server_reply = Duration::from_secs(seconds.parse().expect("a number"));
                }
                ("calls", name) => {
                    let callee = id_of(name).ok_or_else(|| format!("calls {name}, unknown"))?;
                    config.calls = vec![callee];
                }
                _ => return Err(format!("no word: {word}")),
            }
        }
        Ok(Defined::Group(Box::new(config)))
    }
}

pub(super) fn group_config(plan: Plan, nodes: NodeSet) -> GroupConfig {
    GroupConfig {
        object_key: None,
        member_keys: Vec::new(),
        members: nodes,
        concurrency: plan.concurrency,
        reads: plan.reads.map_or_else(ReadRule::default, |consistency| ReadRule {
            operations: [Bytes::from_static(b"tell*")].into(),
            consistency,
            aside: plan.reads_of_leader.is_some(),
            of_leader: plan
                .reads_of_leader
                .map(|keys| Box::new(LeaderRule { keys: Bytes::from_static(keys), waits: None })),
        }),
        state_object: plan.state_object.then(|| Bytes::from_static(b"log")),
        foreign: plan.foreign,
        ack: Ack::Majority,
        reply: plan.reply,
        replier: plan.replier.map(id),
        style: plan.style,
        leader: None,
        checkpoint: plan.checkpoint,
        comparison: plan.comparison,
        on_total_loss: plan.on_total_loss,
        durable: plan.durable,
        logged: false,
        open_after: Duration::from_secs(15),
        server_reply: Duration::from_secs(30),
        abandon: plan.abandon,
        staggered: plan.staggered,
        replication: plan.replication,
        retention: Duration::from_secs(60),
        retention_bytes_max: plan.retention_bytes_max,
        replay_bytes_max: plan.replay_bytes_max,
        by_application: plan.by_application,
        reply_bytes_max: 1 << 20,
        state_bytes_max: 4 << 20,
        transfer: TransferRule { chunk_bytes: 50, bytes_per_second: None },
        calls: plan.calls.then_some(GroupId(GROUP.0 + 8)).into_iter().collect(),
        is_called: false,
    }
}
