//! The domain as typed values: what the rest of Quorba is configured with.
//!
//! What it is not: the file. Nothing here knows TOML, spans or defaults in text form; a value of
//! these types exists only if the file that it came from was right, so nobody checks again.
//!
//! Invariants: every member of a group is a node of the domain; ports, addresses and state
//! directories of nodes on one host differ; [`NodeId`]s are positions in [`Domain::nodes`].

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use quorba_base::{NodeId, NodeSet};

use crate::key::DomainKey;
use crate::problem::Problem;
use crate::template::{Placeholder, Template};

/// Everything that a domain file says, checked.
#[derive(Clone, Debug)]
pub struct Domain {
    /// What the domain is called; nodes of different ids never talk to each other.
    pub id: String,
    /// The secrets that admit a node to the ring, the oldest first; one, but while it is changed.
    pub keys: Vec<DomainKey>,
    /// Where they were read from, and can be read again.
    pub key_file: PathBuf,
    /// Of what a component must have the greater part to go on. Default: of the domain's nodes.
    pub quorum: QuorumRule,
    /// Of two equal halves, the one with this node goes on.
    pub tie_breaker: Option<NodeId>,
    /// How the ring orders and protects messages.
    pub ring: Ring,
    /// What a gateway lets clients use.
    pub limits: Limits,
    /// The nodes in the order of the file: [`NodeId`] is the index.
    pub nodes: Vec<Node>,
    /// The object groups in the order of the file.
    pub groups: Vec<Group>,
    /// Servers that are not replicated, which groups call, in the order of the file.
    pub outside: Vec<Outside>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Problem>,
}

impl Domain {
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

    /// The group called `name`.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}

/// `quorum`: what makes a primary component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuorumRule {
    /// A majority of the domain's nodes.
    Majority,
    /// A majority of the last primary component.
    DynamicLinear,
}

impl fmt::Display for QuorumRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Majority => "majority",
            Self::DynamicLinear => "dynamic-linear",
        })
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

/// How a member that missed something is brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// It is given the state of another.
    Checkpoint,
    /// It executes all requests again, as long as they are no more than so many bytes.
    Replay(usize),
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
    /// Added to each group's `listen` on this node, so that several nodes fit on one host.
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
    pub checkpoint: Checkpoint,
    /// How replies of members that all execute are compared.
    pub comparison: Comparison,
    /// The gateway's port on every node, before the node's offset.
    pub listen: u16,
    /// The nodes that carry a replica.
    pub members: NodeSet,
    /// The servers behind the members.
    pub backend: Backend,
    /// Object key of the server's FT::Checkpointable; `None`: members are not brought back.
    pub state_object: Option<Vec<u8>>,
    /// Object key of the reference that `quorba ior make` prints.
    pub object_key: Option<Vec<u8>>,
    /// Repository id of that reference.
    pub type_id: Option<String>,
    /// When a reply may be released.
    pub ack: Ack,
    /// How a reply comes to the gateway of its client.
    pub reply: Reply,
    /// Of replies through the order one is enough: a member that hears another's before it has sent
    /// its own does not send it.
    pub suppress_duplicates: bool,
    /// The member that replies while it is in, and in whose absence the next one in ring order
    /// does. `None`: whom [`Group::reply`] says.
    pub replier: Option<NodeId>,
    /// What its servers do with several calls on one connection.
    pub concurrency: Concurrency,
    /// Replies leave only when a majority of the nodes has the request on disk: what is
    /// acknowledged survives the end of all nodes at once. Default: no.
    pub durable: bool,
    /// Groups that its servers call while they execute a request, by their positions in
    /// [`Domain::groups`].
    pub calls: Vec<usize>,
    /// Servers outside that they call in the same way, by their positions in [`Domain::outside`].
    pub outside: Vec<usize>,
    /// Operations that change nothing; `*` stands for any part of a name.
    pub readonly: Vec<String>,
    /// What those may miss.
    pub readonly_consistency: ReadonlyConsistency,
    /// Of get_state, set_state, get_update and set_update, those that clients may call, by whatever
    /// object key.
    pub state_operations: Vec<String>,
    /// Who may call, and what. `None`: everybody, everything.
    pub clients: Option<Vec<ClientRule>>,
    /// IIOP over TLS at the gateways. `None`: plain IIOP only.
    pub tls: Option<Tls>,
    /// How long a reply is kept for repeated requests: 5 min.
    pub reply_retention: Duration,
    /// How a member that missed something is brought up to date.
    pub recovery: Recovery,
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
        Endpoint { host: node.host.clone(), port: self.listen + node.gateway_port_offset }
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

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// One of them.
    pub address: IpAddr,
    /// So many leading bits are those of all.
    pub prefix_bits: u8,
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

/// `on_doubt`: what to do about a call of unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDoubt {
    /// Say so to the caller.
    Fail,
    /// Make the call again.
    Repeat,
}

/// How the members of a group share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Every member executes every request; the one nearest to the client answers.
    Active,
    /// Every member executes every request; what more than half of them reply is the answer.
    ActiveWithVoting,
    /// Every member executes every request; the leader answers.
    SemiActive,
    /// The leader executes; the others stand by with its last checkpoint and the requests since.
    WarmPassive,
    /// The leader executes; the others run no server until one of them has to take over.
    ColdPassive,
    /// Any member executes, without order; no member has a state that counts.
    Stateless,
}

/// How replies are compared behind the clients' backs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// In windows of so many requests: 64; 0 is not at all.
    pub requests: u32,
    /// A member that differs is expelled and rebuilt. Default: it is reported.
    pub expel: bool,
    /// What looks like padding behind texts does not count: `compare_replies = "ignore-padding"`.
    pub ignore_padding: bool,
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

/// When the leader of a passive group sends its state to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// After so many requests: 100.
    pub requests: u32,
    /// So long after the first request that the last one does not cover: 1 s.
    pub after: Duration,
    /// The state object is an FT::Updateable, which tells what has changed. Default: no.
    pub updates: bool,
}

impl Style {
    /// The word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::ActiveWithVoting => "active-with-voting",
            Self::SemiActive => "semi-active",
            Self::WarmPassive => "warm-passive",
            Self::ColdPassive => "cold-passive",
            Self::Stateless => "stateless",
        }
    }

    /// Whether only the leader executes.
    #[must_use]
    pub const fn is_passive(self) -> bool {
        matches!(self, Self::WarmPassive | Self::ColdPassive)
    }
}

/// When a reply may be released to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// When a majority of the domain's nodes holds the request.
    Majority,
    /// When every node of the view holds the request.
    Safe,
    /// When the request is ordered; a crash may lose it. For experiments.
    Agreed,
}

impl Ack {
    /// The word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Majority => "majority",
            Self::Safe => "safe",
            Self::Agreed => "agreed",
        }
    }
}

/// How a reply comes to the gateway of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The member nearest to the gateway replies: at once if it is on the gateway's node.
    Direct,
    /// Through the total order, whoever replies. Every member does, unless one is named as
    /// [`Group::replier`]; the gateway takes the first (Zhao02). For experiments.
    Ordered,
}

/// What a group's servers do with several calls that are sent on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Nobody says: a server gets one call at a time.
    Sequential,
    /// They execute them one after the other, in order; a server gets several.
    Pipelined,
    /// They execute them side by side, and objects share no state: a server gets calls of different
    /// objects at the same time.
    PerObject,
}

/// What an operation that changes nothing may miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadonlyConsistency {
    /// Nothing that was answered before it was called.
    Linearizable,
    /// Nothing that its own gateway has answered before.
    Sequential,
}

impl ReadonlyConsistency {
    /// The word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linearizable => "linearizable",
            Self::Sequential => "sequential",
        }
    }
}

impl Concurrency {
    /// The word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Pipelined => "pipelined",
            Self::PerObject => "per-object",
        }
    }
}

impl Reply {
    /// The word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Ordered => "ordered",
        }
    }
}

/// What to do when every member's state is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTotalLoss {
    /// Answer TRANSIENT until an operator decides.
    Stop,
    /// Go on with the state that a fresh server starts with.
    Fresh,
}

impl OnTotalLoss {
    /// The word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Fresh => "fresh",
        }
    }
}

/// The servers behind a group's members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Each member's node starts a process and keeps it running.
    Start(ServerCommand),
    /// Somebody else runs the servers: one address per member, in the order of ids.
    Connect(Vec<(NodeId, Endpoint)>),
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

/// Where the admin API listens unless the file says otherwise.
pub(crate) const ADMIN_PORT_DEFAULT: u16 = 4780;

/// The default admin address of the `nth` node of a host, counted from 0.
pub(crate) fn admin_default(nth: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, ADMIN_PORT_DEFAULT.saturating_add(nth)))
}
