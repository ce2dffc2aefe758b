//! The domain as typed values: what the rest of Quorba is configured with.
//!
//! What it is not: the file. Nothing here knows TOML, spans or defaults in text form; a value of
//! these types exists only if the file that it came from was right, so nobody checks again.
//!
//! Invariants: every member of a group is a node of the domain; ports, addresses and state
//! directories of nodes on one host differ; [`NodeId`]s are positions in [`Domain::nodes`].

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorba_base::policy::{OnDoubt, QuorumRule};
use quorba_base::{NodeId, NodeSet};

use crate::definition::Definition;
use crate::key::DomainKey;
use crate::problem::Problem;

mod group;

pub(crate) use group::RETENTION_BYTES_DEFAULT;
pub use group::{
    Backend, ClientRule, Group, Member, ObjectGroup, Placement, RESTART_BACKOFF_MAX, ServerCommand,
    Tls,
};

/// Everything that a domain file says, checked.
#[derive(Clone, Debug)]
pub struct Domain {
    /// What the domain is called; nodes of different ids never talk to each other.
    pub id: String,
    /// The secrets that admit a node to the ring, the oldest first; one, but while it is changed.
    pub keys: Vec<DomainKey>,
    /// Where they were read from, and can be read again.
    pub key_file: PathBuf,
    /// The domain file; relative paths begin at its folder.
    pub file: PathBuf,
    /// Of what a component must have the greater part to go on. Default: of the domain's nodes.
    pub quorum: QuorumRule,
    /// Of two equal halves, the one with this node goes on.
    pub tie_breaker: Option<NodeId>,
    /// How the ring orders and protects messages.
    pub ring: Ring,
    /// What a gateway lets clients use.
    pub limits: Limits,
    /// The port through which groups are reached that have none of their own.
    pub gateway: Option<Gateway>,
    /// The nodes in the order of the file: [`NodeId`] is the index.
    pub nodes: Vec<Node>,
    /// The object groups in the order of the file.
    pub groups: Vec<Group>,
    /// What the file says of each server outside, and of each group, in the order of the file.
    pub(crate) definitions: Vec<Definition>,
    /// Servers that are not replicated, which groups call, in the order of the file; the last one
    /// is the nodes' own object for services.
    pub outside: Vec<Outside>,
    /// Types whose servers this file's node starts for the replication manager.
    pub types: Vec<ServerType>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Problem>,
}

impl Domain {
    /// Where relative paths begin.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// The node called `name`.
    #[must_use]
    pub fn node_id(&self, name: &str) -> Option<NodeId> {
        let index = self.nodes.iter().position(|node| node.name == name)?;
        NodeId::new(u8::try_from(index).ok()?)
    }

    /// The node with `id`; `None` if the domain has fewer nodes.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::from(id.index()))
    }

    /// Every node of the domain.
    #[must_use]
    pub fn node_set(&self) -> NodeSet {
        NodeSet::first(self.nodes.len())
    }

    /// The same without its groups; what the file says of each stays.
    #[must_use]
    pub fn without_groups(&self) -> Self {
        Self {
            id: self.id.clone(),
            keys: self.keys.clone(),
            key_file: self.key_file.clone(),
            file: self.file.clone(),
            ring: self.ring.clone(),
            limits: self.limits.clone(),
            gateway: self.gateway,
            nodes: self.nodes.clone(),
            groups: Vec::new(),
            definitions: self.definitions.clone(),
            outside: self.outside.clone(),
            types: self.types.clone(),
            warnings: self.warnings.clone(),
            ..*self
        }
    }

    /// The same without what it says of groups, for who has them from the catalog.
    #[must_use]
    pub fn forget_groups(self) -> Self {
        Self { groups: Vec::new(), definitions: Vec::new(), ..self }
    }

    /// What the file says of each of its servers outside, and then of each of its groups, in the
    /// order of the file.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The group called `name`.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}

/// `[ring]`: how messages are ordered and protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Who makes the order. Default: our own ring.
    pub engine: Engine,
    /// Whether datagrams are encrypted; they are authenticated always. Default: yes.
    pub encrypt: bool,
    /// Whether the token is passed on before the multicast is finished. Default: yes.
    pub accelerated: bool,
    /// Whether the token rests while nobody needs it. Default: yes; `false` lets it circulate all
    /// the time, as the papers' does, and keeps every node busy: for experiments.
    pub token_rests: bool,
    /// Silence after which the token is lost; `None`: derived from the measured rotation.
    pub token_loss: Option<Duration>,
    /// The largest datagram sent, in bytes of UDP payload. Default: 1400, or 60000 where every
    /// node of the domain is on the loopback interface.
    pub datagram_bytes_max: u16,
    /// How a message reaches all nodes.
    pub multicast: Multicast,
}

/// Who makes the order of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Our own ring, in the node's process.
    Totem,
    /// The Corosync cluster that the hosts run already; the rest of `[ring]` has no meaning then.
    Corosync,
}

impl Engine {
    /// As it stands in the domain file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Totem => "totem",
            Self::Corosync => "corosync",
        }
    }
}

/// How a ring message reaches all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multicast {
    /// IP multicast where a probe at start finds that it works, else one datagram per node.
    Auto,
    /// One datagram per node.
    Off,
    /// IP multicast to this group address, without a probe.
    Group(SocketAddrV4),
}

impl fmt::Display for Multicast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::Group(address) => write!(f, "{address}"),
        }
    }
}

/// `[gateway]`: one port for all groups that have no `listen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The port on every node, before the node's offset.
    pub listen: u16,
}

/// `[limits]`: what one node's gateways let clients use. The field's default is in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Client connections over all groups: 1000. A node that may not have descriptors for so many
    /// takes in fewer, and says so.
    pub connections: u32,
    /// Client connections from one address: 100.
    pub connections_per_peer: u32,
    /// One GIOP message of a client, reassembled: as much as the order carries, which is 2 KiB less
    /// than 16 MiB, or 900,000 bytes with Corosync.
    pub message_bytes: u32,
    /// The state of a group, as a server gives it: 256 MiB. It travels in pieces.
    pub state_bytes: u32,
    /// All that is held for clients: unfinished messages, requests that are not executed, replies
    /// that are not sent: 128 MiB.
    pub buffered_bytes: u64,
    /// The same for one client address: a quarter of it.
    pub buffered_bytes_per_peer: u64,
    /// The same for the requests to one group: half of it.
    pub buffered_bytes_per_group: u64,
    /// Replies that a client may leave before it is not read any more: 1 MiB.
    pub unsent_bytes_per_connection: u32,
    /// Requests a second from one address; 0, the default, is no limit.
    pub requests_per_second_per_peer: u32,
    /// Silence after which a connection without pending requests is closed: 1 h; `None`: never.
    pub idle: Option<Duration>,
    /// Time in which a message that has begun must be complete: 5 s.
    pub header: Duration,
    /// Time after which a client is told TRANSIENT or NO_RESPONSE instead of waiting on: 60 s.
    pub request: Duration,
    /// Requests pending on one connection: 64.
    pub requests_pending_per_connection: u32,
    /// Requests pending at one node: 4096.
    pub requests_pending: u32,
    /// The durable log is made shorter whenever it has grown by so many bytes; `None`: never.
    /// Default: 256 MiB.
    pub log_bytes: Option<u64>,
}

/// `[node.NAME]`: one process that takes part in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique in the domain.
    pub name: String,
    /// The address that the other nodes and the clients use.
    pub host: Host,
    /// The ring's UDP port: 4700 by default.
    pub ring_port: u16,
    /// The local address to bind to. `None`: the address that `host` resolves to.
    pub bind: Option<IpAddr>,
    /// The admin API, always on loopback: port 4780, and upwards for further nodes of one host.
    pub admin: SocketAddr,
    /// Where the node keeps its token, its logs and what its server processes write.
    pub state_dir: PathBuf,
    /// Added to the gateways' `listen` on this node, so that several nodes fit on one host.
    pub gateway_port_offset: u16,
}

impl Node {
    /// The local address to bind to, where that is known without asking the resolver.
    #[must_use]
    pub fn bind_address(&self) -> Option<IpAddr> {
        self.bind.or(match &self.host {
            Host::Address(address) => Some(*address),
            Host::Name(_) => None,
        })
    }

    /// The machine it runs on, as far as the file tells: all loopback addresses are one.
    pub(crate) fn machine(&self) -> String {
        if self.host.is_loopback() { String::new() } else { self.host.to_string() }
    }

    /// The file in which a running node keeps the token of its admin API.
    #[must_use]
    pub fn admin_token_file(&self) -> PathBuf {
        self.state_dir.join("admin.token")
    }
}

/// A host, by address or by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// An IP address.
    Address(IpAddr),
    /// A name that the resolver is asked for when a connection is made.
    Name(String),
}

impl Host {
    /// Whether only this machine can reach it (`localhost` counts).
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback(),
            Self::Name(name) => name == "localhost",
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A host and a TCP port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Where.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// What services call to have groups made: the node's own object, as a server outside. No group
/// and no server can be called so.
pub const DOMAIN_OBJECT: &str = "-domain";
/// Its object key.
pub const DOMAIN_OBJECT_KEY: &[u8] = b"QuorbaDomain";

/// `[type."IDL:..."]`: what a group of objects of that type is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerType {
    /// Its repository id.
    pub id: String,
    /// The keys of its group, as TOML.
    pub keys: String,
}

/// `[outside.NAME]`: a server that is not in the domain.
#[derive(Clone, Debug)]
pub struct Outside {
    /// Its name, unique among these and the groups.
    pub name: String,
    /// Where it is, in the order in which addresses are tried; one object, one server.
    pub endpoints: Vec<quorba_giop::ior::Endpoint>,
    /// How long it may take until it accepts a connection: 2 s.
    pub connect: Duration,
    /// How long it may take to reply: 30 s.
    pub reply: Duration,
    /// The largest reply, in bytes of its GIOP message: 65,536.
    pub reply_bytes: usize,
    /// What its callers hear when nobody knows whether it has executed a call.
    pub on_doubt: OnDoubt,
}

/// Where the admin API listens unless the file says otherwise.
pub(crate) const ADMIN_PORT_DEFAULT: u16 = 4780;

/// The default admin address of the `nth` node of a host, counted from 0.
pub(crate) fn admin_default(nth: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, ADMIN_PORT_DEFAULT.saturating_add(nth)))
}
