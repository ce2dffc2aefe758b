//! What a replica is told about its node and the domain.
//!
//! What it is not: what a group is; that is `GroupConfig`.

use crate::calls::outside::OutsideConfig;
use crate::messages::catalog::{Catalog, Definitions};
use crate::messages::hello::Record;
use crate::messages::log::Recovered;
use crate::primary::Quorum;
use crate::words::group_map::GroupMap;
use alloc::sync::Arc;
use quorba_base::{NodeId, NodeSet};

/// The domain as the replica sees it.
#[derive(Clone)]
pub struct ReplicaConfig {
    /// This node.
    pub me: NodeId,
    /// This boot of this node; larger than at any earlier boot.
    pub incarnation: u64,
    /// Every node of the domain.
    pub nodes: NodeSet,
    /// What makes a primary component.
    pub quorum: Quorum,
    /// Primary components that this node was part of, in any boot, as its disk says.
    pub record: Record,
    /// Servers outside that every domain has, by ids that nothing in a catalog has.
    pub outside: GroupMap<OutsideConfig>,
    /// The groups: what the disk has, or else what the domain file says.
    pub catalog: Catalog,
    /// A digest of the addresses of all gateways, which references tell: if it is another one, the
    /// versions of all references rise.
    pub gateways: u64,
    /// What the definitions in it mean.
    pub definitions: Arc<dyn Definitions>,
    /// What the disk remembers of all that was applied; none without a log, or if it is in doubt.
    pub recovered: Option<Recovered>,
    /// Reads that close a cycle are served: what is then remembered fits into one message.
    pub serves_reentrant_reads: bool,
    /// The disk is in doubt: should this boot end before [`crate::Replica::handle_log_rebuilt`],
    /// the next one finds nothing.
    pub in_doubt: bool,
}
