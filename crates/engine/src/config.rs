//! What a node is told: the domain's shared settings and this node's own.

use crate::access::Access;
use crate::definitions::SettingsOf;
use crate::external::OutsideSettings;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use quorba_base::{Duration, NodeId, NodeSet};
use quorba_giop::ior::Ior;
use quorba_order::{Boot, Config, DomainKey, Hold, PAYLOAD_BYTES_MAX, Timing};
use quorba_replica::{
    Catalog, ENVELOPE_BYTES_MAX, GroupConfig, GroupMap, Quorum, Record, Recovered,
};

/// The largest GIOP message that the ring carries, with all that it may be wrapped in, in bytes.
pub const MESSAGE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - ENVELOPE_BYTES_MAX;

/// One group as the engine sees it.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// What the replica needs to know. Whatever it says, replies are no larger than what the
    /// order carries.
    pub replica: GroupConfig,
    /// How many members must have a call before its caller goes on, where the caller does not say
    /// so (Huang05 §3.4); 0 and 1: the member that replies.
    pub depth: u32,
    /// How long a request waits for a primary component or for a member before it is refused.
    pub unavailable_wait: Duration,
    /// Who may call what.
    pub access: Access,
    /// What clients that know FT-CORBA are told if theirs is older; none: they are told nothing.
    pub references: Option<Arc<dyn References>>,
    /// The keys of objects by which clients begin (`NameService`): at the ports of all groups that
    /// have some, these objects are found, and what is below them (`NameService/7`).
    pub initial_keys: Vec<Bytes>,
}

/// The references to a group's object (FT-CORBA §23.2.7). Each is made when a client needs it:
/// there may be thousands of groups. `counted`: how often the domain has counted that they became
/// others ([`Catalog::reference_version`]).
pub trait References: fmt::Debug + Send + Sync {
    /// The key under which servers know the object; others of theirs have other references.
    fn object_key(&self) -> &[u8];

    /// The version of the reference as it is now.
    fn version(&self, counted: u32) -> u32;

    /// The reference as it is now.
    fn reference(&self, counted: u32) -> Ior;
}

/// What untrusted clients may cost, per gateway node.
#[derive(Clone, Copy, Debug)]
pub struct GatewayLimits {
    /// Client connections to all groups together.
    pub connections: usize,
    /// Client connections from one address.
    pub connections_per_peer: usize,
    /// Connections over these limits that wait to be told so; more are closed without a word.
    pub turned_away: usize,
    /// The largest GIOP message that is taken in, in bytes. One that is no larger than
    /// [`MESSAGE_BYTES_MAX`] can be ordered; a request that cannot is refused (IMP_LIMIT).
    pub message_bytes: usize,
    /// Bytes that are held for all clients: unfinished messages, requests until they are executed,
    /// replies until they are sent. Beyond half of it only those are read that hold less than their
    /// equal share; when it is full, whoever holds the most loses something.
    pub buffered_bytes: usize,
    /// The same for one address, which is not read beyond; at twice as much it loses a connection.
    pub buffered_bytes_per_peer: usize,
    /// The same for requests to one group.
    pub buffered_bytes_per_group: usize,
    /// Unsent bytes of one connection; a client that leaves more is not read, and what it has asked
    /// is not ordered.
    pub unsent_bytes: usize,
    /// Requests per second from one address; 0 is no limit.
    pub requests_per_second_per_peer: u32,
    /// A connection that says nothing for so long is closed.
    pub idle: Duration,
    /// A started message must be complete, or grow by [`Self::body_bytes_per_second_min`].
    pub header: Duration,
    /// A client that sends a body slower than this is cut off: over any time as long as
    /// [`Self::header`].
    pub body_bytes_per_second_min: u64,
    /// A request that has no reply after this is answered with TIMEOUT.
    pub request: Duration,
    /// Unanswered requests of one connection; more are left unread.
    pub pending_per_connection: usize,
    /// Unanswered requests of all connections; more are left unread.
    pub pending: usize,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            connections: 1000,
            connections_per_peer: 100,
            turned_away: 64,
            message_bytes: MESSAGE_BYTES_MAX,
            buffered_bytes: 128 << 20,
            buffered_bytes_per_peer: 32 << 20,
            buffered_bytes_per_group: 64 << 20,
            unsent_bytes: 1 << 20,
            requests_per_second_per_peer: 0,
            idle: Duration::from_secs(3600),
            header: Duration::from_secs(5),
            body_bytes_per_second_min: 1024,
            request: Duration::from_secs(60),
            pending_per_connection: 64,
            pending: 4096,
        }
    }
}

/// What a domain's file says of its nodes. But for the limits, it is the same at all of them.
#[derive(Clone)]
pub struct DomainSettings {
    /// The domain's name, by which servers outside know its calls.
    pub id: Bytes,
    /// Its nodes.
    pub nodes: NodeSet,
    /// The key of all that the ring sends.
    pub key: DomainKey,
    /// Of what all nodes must have alike.
    pub digest: u64,
    /// See [`Config::datagram_bytes_max`].
    pub datagram_bytes_max: usize,
    /// See [`Config::encrypt`].
    pub encrypt: bool,
    /// See [`Config::accelerated`].
    pub accelerated: bool,
    /// Whether the token rests while nobody has anything to send.
    pub token_rests: bool,
    /// After so long at least without a token it counts as lost, if that is not the usual time.
    pub token_loss: Option<Duration>,
    /// What makes a primary component.
    pub quorum: Quorum,
    /// Servers outside that every domain has, by ids that nothing in a catalog has.
    pub outside: GroupMap<OutsideSettings>,
    /// See [`NodeConfig::gateways`].
    pub gateways: u64,
    /// What clients may cost.
    pub limits: GatewayLimits,
}

/// What a node finds when it boots.
#[derive(Clone)]
pub struct BootState {
    /// Which node it is.
    pub me: NodeId,
    /// This boot.
    pub boot: Boot,
    /// See [`NodeConfig::record`].
    pub record: Record,
    /// See [`NodeConfig::catalog`].
    pub catalog: Catalog,
    /// See [`NodeConfig::recovered`].
    pub recovered: Option<Recovered>,
    /// See [`NodeConfig::in_doubt`].
    pub in_doubt: bool,
    /// See [`NodeConfig::wall_clock_origin`].
    pub wall_clock_origin: u64,
}

/// Everything that a [`crate::Node`] is made from.
#[derive(Clone)]
pub struct NodeConfig {
    /// The ring.
    pub order: Config,
    /// This boot.
    pub boot: Boot,
    /// What makes a primary component.
    pub quorum: Quorum,
    /// What the disk says of primary components that this node was part of.
    pub record: Record,
    /// What the log of a domain with durable groups remembers; none if it is new or in doubt.
    pub recovered: Option<Recovered>,
    /// The log is in doubt until [`crate::Node::handle_log_rebuilt`].
    pub in_doubt: bool,
    /// Servers outside that every domain has, by ids that nothing in a catalog has.
    pub outside: GroupMap<OutsideSettings>,
    /// The groups and servers outside: what the disk has, or else what the domain file says.
    pub catalog: Catalog,
    /// A digest of the addresses of all gateways, which references tell.
    pub gateways: u64,
    /// What the definitions in it mean.
    pub settings: Arc<dyn SettingsOf>,
    /// The domain's name, by which servers outside know its calls.
    pub domain: Bytes,
    /// What clients may cost.
    pub limits: GatewayLimits,
    /// Wall clock at [`quorba_base::Instant::ZERO`] in TimeT (100 ns since 1582-10-15).
    pub wall_clock_origin: u64,
}

impl NodeConfig {
    /// The configuration of a node of this domain, whoever drives it; `settings`: what definitions
    /// mean.
    #[must_use]
    pub fn new(domain: DomainSettings, found: BootState, settings: Arc<dyn SettingsOf>) -> Self {
        Self {
            order: domain.order(found.me),
            boot: found.boot,
            quorum: domain.quorum,
            record: found.record,
            recovered: found.recovered,
            in_doubt: found.in_doubt,
            outside: domain.outside,
            catalog: found.catalog,
            gateways: domain.gateways,
            settings,
            domain: domain.id,
            limits: domain.limits,
            wall_clock_origin: found.wall_clock_origin,
        }
    }
}

impl DomainSettings {
    fn order(&self, me: NodeId) -> Config {
        let mut timing = Timing::default();
        if !self.token_rests {
            timing.rest_max = Duration::ZERO;
        }
        if let Some(token_loss) = self.token_loss {
            timing.token_loss_min = token_loss;
            timing.token_loss_max = timing.token_loss_max.max(token_loss);
        }
        Config {
            me,
            nodes: self.nodes,
            domain_key: self.key.clone(),
            domain_digest: self.digest,
            datagram_bytes_max: self.datagram_bytes_max,
            encrypt: self.encrypt,
            accelerated: self.accelerated,
            // The node sets it by what makes a primary component.
            hold: Hold::default(),
            timing,
        }
    }
}
