//! Figures of a node, for status and dashboards.

use core::net::IpAddr;
use quorba_replica::{GroupMap, GroupSnapshot, PrimaryStatus};

/// What one group's gateway did and has to do.
#[derive(Clone, Copy, Default, Debug)]
pub struct GatewayCounters {
    /// Client connections now.
    pub connections: usize,
    /// Requests without a reply now.
    pub pending: usize,
    /// Requests taken in.
    pub requests: u64,
    /// Of these, reads that were answered past the order.
    pub reads: u64,
    /// Replies released.
    pub replies: u64,
    /// Replies that came when their call was answered already.
    pub replies_dropped: u64,
    /// Connections and requests refused.
    pub refused: u64,
    /// Connections ended because of what they sent.
    pub malformed: u64,
    /// The version of the group's references.
    pub reference_version: u32,
}

/// All groups' gateways.
#[derive(Clone, Debug)]
pub struct GatewaySnapshot {
    /// Of each group.
    pub groups: GroupMap<GatewayCounters>,
    /// Of the port that groups share: what is said there of no group that there is.
    pub shared: GatewayCounters,
    /// Client connections in all.
    pub connections: usize,
    /// Bytes of unfinished messages.
    pub buffered_bytes: usize,
    /// Bytes that are held for clients, of all kinds.
    pub held_bytes: usize,
    /// The address of which most connections were refused lately: how many it has, and how many
    /// were refused.
    pub most_refused: Option<(IpAddr, usize, u64)>,
}

/// The whole node.
#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    /// The ring.
    pub order: quorba_order::Snapshot,
    /// Where the node stands.
    pub primary: PrimaryStatus,
    /// The groups as this node knows them.
    pub groups: GroupMap<GroupSnapshot>,
    /// Clients.
    pub gateway: GatewaySnapshot,
}
