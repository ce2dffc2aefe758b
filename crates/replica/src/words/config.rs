//! What a replica is told about the domain and its groups; equal on every node.

use crate::words::ids::GroupId;
use crate::words::rules::{ReadRule, TransferRule};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::policy::{
    Ack, CheckpointRule, ComparisonRule, Concurrency, OnTotalLoss, Replication, ReplyPath, Style,
};
use quorba_base::{Duration, NodeId, NodeSet};

/// One object group.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// Nodes that run a member.
    pub members: NodeSet,
    /// Object key of the server's FT::Checkpointable, if it has one (FT-CORBA §23.5).
    pub state_object: Option<Bytes>,
    /// The object key under which clients call what members know under keys of their own.
    pub object_key: Option<Bytes>,
    /// Those keys, of members that have another one.
    pub member_keys: Vec<(NodeId, Bytes)>,
    /// Somebody else starts and ends the servers (`connect =`), so they may outlive their node.
    pub foreign: bool,
    /// When replies are released.
    pub ack: Ack,
    /// The way of replies.
    pub reply: ReplyPath,
    /// The member that replies while it is in; else the next one in ring order does. Only for
    /// styles without a leader.
    pub replier: Option<NodeId>,
    /// How the members share the work, until somebody changes it.
    pub style: Style,
    /// The member that leads first, if the style has a leader.
    pub leader: Option<NodeId>,
    /// When a passive group's leader sends its state to the others.
    pub checkpoint: CheckpointRule,
    /// How the replies of members that all execute are compared.
    pub comparison: ComparisonRule,
    /// Operations that one member executes without ordering them.
    pub reads: ReadRule,
    /// How many calls a server has at a time.
    pub concurrency: Concurrency,
    /// What happens when all members' state is lost.
    pub on_total_loss: OnTotalLoss,
    /// A reply leaves only when a majority has its request on disk, too. Not with a dynamic quorum,
    /// nor with servers that somebody else starts, nor with [`OnTotalLoss::Fresh`].
    pub durable: bool,
    /// Everything that is applied is written down, because some group of the domain is durable; the
    /// replica sees to it.
    pub logged: bool,
    /// How long the group waits for its configured members before it opens without them.
    pub open_after: Duration,
    /// One member executes a request first, and the others when it is through. Not with
    /// [`Concurrency::PerObject`].
    pub staggered: bool,
    /// Which members have a call, for callers that want so many to have it. Not
    /// [`Replication::Ordered`] only where calls keep their order, in styles in which all members
    /// execute.
    pub replication: Replication,
    /// How long a server may take for one request before it counts as late: where others have
    /// answered, it is restarted then. If all are late with the same one, they live on.
    pub server_reply: Duration,
    /// After so long with the servers of all members a request is given up; `None`: never.
    pub abandon: Option<Duration>,
    /// How long replies to FT_REQUESTs are kept at least, on the group's ordered clock.
    pub retention: Duration,
    /// Bytes of replies that a member remembers before the group takes no new FT_REQUESTs until
    /// some are forgotten; those that are known are answered.
    pub retention_bytes_max: usize,
    /// The servers have no state to give and are deterministic: who joins executes all requests
    /// again, as long as they are not more than so many bytes. Only for styles in which all
    /// members execute.
    pub replay_bytes_max: Option<usize>,
    /// The application keeps the members' states consistent (CONS_APP_CTRL of FT-CORBA §23.3.2):
    /// who joins is given what the group remembers of calls, and no state. Without a state object
    /// and a replay, not durable, not voting, in no passive style, and without calls of its own.
    pub by_application: bool,
    /// The largest reply that is passed on to clients, in bytes: what the order carries, and so the
    /// same on every node.
    pub reply_bytes_max: usize,
    /// The largest state that is taken from a server, in bytes of its GIOP message.
    pub state_bytes_max: usize,
    /// How states go from member to member.
    pub transfer: TransferRule,
    /// Groups, and servers outside, that its servers call. Only with
    /// [`Concurrency::Sequential`], not from or to a stateless group, and not from a durable one.
    pub calls: Vec<GroupId>,
    /// Servers of some group call it; the replica sees to it.
    pub is_called: bool,
}

impl GroupConfig {
    /// Whether a member that missed something can be brought up to date, as far as that is the
    /// group's business.
    #[must_use]
    pub fn can_recover(&self) -> bool {
        self.state_object.is_some() || self.replay_bytes_max.is_some() || self.by_application
    }

    /// Whether a member that is given a state must not have executed anything: nothing takes the
    /// place of what its server has. Nodes can start another one, unless somebody else does.
    pub(crate) fn wants_fresh_servers(&self) -> bool {
        self.replay_bytes_max.is_some() || self.by_application && !self.foreign
    }

    /// The object key of clients, and the one that the server of `node`'s member has in its place.
    pub(crate) fn own_key(&self, node: NodeId) -> Option<(Bytes, Bytes)> {
        let (_, own) = self.member_keys.iter().find(|(member, _)| *member == node)?;
        Some((self.object_key.clone()?, own.clone()))
    }

    /// The keys of the domain file that cannot become something else while the group lives:
    /// `members` only if it is durable, `connect` only whether somebody else starts its servers.
    pub const FIXED: [&'static str; 12] = [
        "durable",
        "members",
        "state_object",
        "connect",
        "ack",
        "reply",
        "concurrency",
        "on_total_loss",
        "execution",
        "recovery",
        "calls",
        "checkpoint_updates",
    ];

    /// Which of [`Self::FIXED`] becomes something else.
    pub(crate) fn fixed_difference(&self, next: &Self) -> Option<&'static str> {
        let is_same = [
            self.durable == next.durable,
            !self.durable || self.members == next.members,
            self.state_object == next.state_object,
            self.foreign == next.foreign,
            self.ack == next.ack,
            self.reply == next.reply,
            self.concurrency == next.concurrency,
            self.on_total_loss == next.on_total_loss,
            self.staggered == next.staggered,
            (self.replay_bytes_max, self.by_application)
                == (next.replay_bytes_max, next.by_application),
            self.calls == next.calls,
            self.checkpoint.updates == next.checkpoint.updates,
        ];
        Self::FIXED.into_iter().zip(is_same).find_map(|(key, same)| (!same).then_some(key))
    }
}

#[cfg(test)]
impl GroupConfig {
    /// A group of three, for tests; all its times are `within`.
    pub(crate) fn plain(within: Duration) -> Self {
        Self {
            object_key: None,
            member_keys: Vec::new(),
            members: NodeSet::first(3),
            state_object: Some(Bytes::from_static(b"state")),
            foreign: false,
            ack: Ack::Majority,
            reply: ReplyPath::Direct,
            replier: None,
            style: Style::Active,
            leader: None,
            checkpoint: CheckpointRule { requests: 100, after: within, updates: false },
            comparison: ComparisonRule { requests: 0, expel: false, ignore_padding: false },
            transfer: TransferRule::default(),
            reads: ReadRule::default(),
            concurrency: Concurrency::Sequential,
            on_total_loss: OnTotalLoss::Stop,
            durable: false,
            logged: false,
            open_after: within,
            server_reply: within,
            abandon: None,
            staggered: false,
            replication: Replication::Ordered,
            retention: within,
            retention_bytes_max: 64 << 20,
            replay_bytes_max: None,
            by_application: false,
            reply_bytes_max: 1 << 20,
            state_bytes_max: 1 << 20,
            calls: Vec::new(),
            is_called: false,
        }
    }
}
