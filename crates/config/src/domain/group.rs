//! An object group as typed values: one replicated server, and how it is reached.
//!
//! What it is not: a group that runs. Style, leader and members are what it begins with.
//!
//! Invariants: those of the domain's values (`domain.rs`); a group that calls names groups that the
//! domain has, or servers outside that it has.

use std::path::PathBuf;
use std::time::Duration;

use quorba_base::policy::{
    Ack, CheckpointRule, ComparisonRule, Concurrency, OnTotalLoss, ReadConsistency, Replication,
    ReplyPath, Style,
};
use quorba_base::{Network, NodeId, NodeSet};

use crate::domain::{Endpoint, Node};
use crate::service::Service;
use crate::template::{Placeholder, Template};

/// What a group's references say of it: `ft_group` and `ft_version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectGroup {
    /// Its number, unique among those that the replication manager has created.
    pub id: u64,
    /// How often its membership has changed.
    pub version: u32,
}

/// `[group.NAME]`: one object group, that is, one replicated server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name, unique in the domain.
    pub name: String,
    /// How its members share the work.
    pub style: Style,
    /// Who leads first, if the style has a leader: the member on this node, or on the first one.
    pub leader: Option<NodeId>,
    /// Who decides where the leader is: `"manual"`, the default, or `"auto"`.
    pub placement: Placement,
    /// When the leader of a passive group sends its state to the others.
    pub checkpoint: CheckpointRule,
    /// How replies of members that all execute are compared.
    pub comparison: ComparisonRule,
    /// The gateway's port on every node, before the node's offset. `None`: clients reach the group
    /// through the domain's [`Gateway`](crate::Gateway), by object keys that have its name.
    pub listen: Option<u16>,
    /// The port on which they reach it, before the node's offset: `listen`, or the domain's.
    pub port: u16,
    /// The nodes that carry a replica.
    pub members: NodeSet,
    /// The servers behind the members.
    pub backend: Backend,
    /// What a service has written into its definition.
    pub note: Option<String>,
    /// Which object group it is for clients that know FT-CORBA; none: itself.
    pub object_group: Option<ObjectGroup>,
    /// Faults of its members are reported.
    pub monitored: bool,
    /// Its object can be asked `is_alive`.
    pub pull_monitorable: bool,
    /// The service that it is; its servers are Quorba's own.
    pub service: Option<Service>,
    /// Object key of the server's FT::Checkpointable; `None`: members are not brought back.
    pub state_object: Option<Vec<u8>>,
    /// Object key of the reference that `quorba ior make` prints.
    pub object_key: Option<Vec<u8>>,
    /// Repository id of that reference.
    pub type_id: Option<String>,
    /// When a reply may be released.
    pub ack: Ack,
    /// How a reply comes to the gateway of its client: `reply` and `suppress_duplicates`.
    pub reply: ReplyPath,
    /// The member that replies while it is in, and in whose absence the next one in ring order
    /// does. `None`: whom [`Group::reply`] says.
    pub replier: Option<NodeId>,
    /// What its servers do with several calls on one connection.
    pub concurrency: Concurrency,
    /// Replies leave only when a majority of the nodes has the request on disk: what is
    /// acknowledged survives the end of all nodes at once. Default: no.
    pub durable: bool,
    /// Groups, and servers outside of the domain, that its servers call while they execute a
    /// request.
    pub calls: Vec<String>,
    /// Operations that change nothing; `*` stands for any part of a name.
    pub readonly: Vec<String>,
    /// What those may miss.
    pub readonly_consistency: ReadConsistency,
    /// Of get_state, set_state, get_update and set_update, those that clients may call, by whatever
    /// object key.
    pub state_operations: Vec<String>,
    /// Who may call, and what. `None`: everybody, everything.
    pub clients: Option<Vec<ClientRule>>,
    /// IIOP over TLS at the gateways. `None`: plain IIOP only.
    pub tls: Option<Tls>,
    /// How long a reply is kept for repeated requests: 5 min.
    pub reply_retention: Duration,
    /// A member that missed something executes all requests again, as long as they are no more than
    /// so many bytes. `None`: it is given the state of another.
    pub replay_bytes_max: Option<usize>,
    /// The application keeps the members' states consistent: who joins is given what the group
    /// remembers of calls, and no state.
    pub by_application: bool,
    /// Bytes of replies that a member remembers before new calls under FT_REQUEST are refused.
    pub reply_retention_bytes: usize,
    /// How long a request waits for a primary view or a member before TRANSIENT: 3 s.
    pub unavailable_wait: Duration,
    /// Silence after which a server is started anew that owes a reply which another member's server
    /// has given: 30 s. One that is late alone, or with all others, is not.
    pub server_reply: Duration,
    /// How long a server may be at one request before status calls that stuck: 30 s.
    pub stuck: Duration,
    /// How long all servers may be at one request before the group gives it up; `None`: for ever.
    pub abandon: Option<Duration>,
    /// One member executes each request first, and the others when it is through (`execution`).
    pub staggered: bool,
    /// Which members have a call, for callers that want so many to have it (`replication`).
    pub replication: Replication,
    /// How many must have a call whose client does not say so; 0: as many as `ack` says.
    pub depth: u32,
    /// Time in which a started server must accept connections: 15 s.
    pub start_timeout: Duration,
    /// What a member sends to one that joins at most, in bytes per second; none: what the link
    /// takes.
    pub transfer_rate: Option<u64>,
    /// The first pause before a dead server is started again; doubles up to
    /// [`RESTART_BACKOFF_MAX`]: 100 ms.
    pub restart_backoff: Duration,
    /// A server is in quarantine after so many failures in a row, none of which was in use; 0:
    /// never: 5.
    pub quarantine_after: u32,
    /// How long the first quarantine is; each further one is twice as long, up to 16 times: 60 s.
    pub quarantine: Duration,
    /// What to do when every member's state is lost.
    pub on_total_loss: OnTotalLoss,
}

/// Bytes of replies that a member remembers, unless the file says something else.
pub(crate) const RETENTION_BYTES_DEFAULT: usize = 256 << 20;

/// The longest pause between two starts of a server that keeps dying.
pub const RESTART_BACKOFF_MAX: Duration = Duration::from_secs(10);

impl Group {
    /// The gateway of this group at `node`, as clients see it.
    #[must_use]
    pub fn gateway(&self, node: &Node) -> Endpoint {
        Endpoint { host: node.host.clone(), port: self.port + node.gateway_port_offset }
    }

    /// The key under which the server of the member on that node has the group's object, if it is
    /// known.
    #[must_use]
    pub fn object_key_at(&self, node: NodeId) -> Option<&[u8]> {
        let own = match &self.backend {
            Backend::Start(_) => None,
            Backend::Connect(servers) => servers.iter().find(|(member, _)| *member == node),
        };
        let own = own.and_then(|(_, member)| member.object_key.as_deref());
        own.or(self.object_key.as_deref())
    }

    /// The object key with which clients ask for what its servers have under `key`.
    #[must_use]
    pub fn client_key(&self, key: &[u8]) -> Vec<u8> {
        match self.listen {
            Some(_) => key.to_vec(),
            None => quorba_giop::shared_key(&self.name, key),
        }
    }

    /// The port at `node` for IIOP over TLS, if the group has it.
    #[must_use]
    pub fn tls_port(&self, node: &Node) -> Option<u16> {
        Some(self.tls.as_ref()?.listen + node.gateway_port_offset)
    }

    /// Whether clients may come without TLS.
    #[must_use]
    pub fn takes_plain(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.plain)
    }
}

/// IIOP over TLS at a group's gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The port for it on every node, before the node's offset.
    pub listen: u16,
    /// The gateways' certificate, and those that lead to its root, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
    /// Certificates of who signs those of clients, as PEM. `None`: clients are not asked for one.
    pub client_ca: Option<PathBuf>,
    /// Whoever shows none is not let in.
    pub client_certificates_required: bool,
    /// The port without TLS stays open: yes.
    pub plain: bool,
}

/// Some clients of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRule {
    /// From one of these; empty: from anywhere.
    pub networks: Vec<Network>,
    /// With a certificate of one of these names, in which `*` stands for any part; empty: with any
    /// or none.
    pub certificates: Vec<String>,
    /// What they may call, with `*` likewise. `None`: everything.
    pub operations: Option<Vec<String>>,
}

/// Who decides where the leader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Operators; and failures.
    Manual,
    /// The leader's node, by what a call costs with each leader. What another one saves must have
    /// been there for so long; a leader stays five times as long. 1 min.
    Auto(Duration),
}

/// The servers behind a group's members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Each member's node starts a process and keeps it running.
    Start(ServerCommand),
    /// Somebody else runs the servers: one per member, in the order of ids.
    Connect(Vec<(NodeId, Member)>),
}

/// A server that somebody else runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// The key under which it has the object that others have under the group's `object_key`.
    /// `None`: the same.
    pub object_key: Option<Vec<u8>>,
}

/// How a node starts its member's server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// The program and its arguments.
    pub command: Vec<Template>,
    /// Variables added to the node's environment.
    pub env: Vec<(String, Template)>,
    /// Working directory; `None`: the node's state directory.
    pub cwd: Option<Template>,
}

impl ServerCommand {
    /// Whether the placeholder stands anywhere in it.
    #[must_use]
    pub fn uses(&self, placeholder: Placeholder) -> bool {
        let env = self.env.iter().map(|(_, value)| value);
        let mut templates = self.command.iter().chain(env).chain(&self.cwd);
        templates.any(|template| template.uses(placeholder))
    }
}
