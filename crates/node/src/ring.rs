//! The ring's sockets, as the domain file wants them.
//!
//! What it is not: the sockets themselves; those are `quorba-net`'s.

use crate::NodeError;
use crate::supervise::{bind_address, resolve_host};
use quorba_base::NodeId;
use quorba_config::{Domain, DomainKey, Host, Multicast as Choice, Node};
use quorba_net::{Links, Multicast, Poller, RingSocket};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Opens the socket of node `me`.
pub(crate) fn open(domain: &Domain, me: NodeId) -> Result<RingSocket, NodeError> {
    let node = domain.node(me).ok_or(NodeError::NoSuchNode)?;
    let unresolved = |node: &Node, host: String, source| NodeError::Resolve {
        node: node.name.clone(),
        host,
        source,
    };
    let resolve = |node: &Node| match &node.host {
        Host::Address(address) => Ok(SocketAddr::new(*address, node.ring_port)),
        Host::Name(name) => resolve_host(name, node.ring_port)
            .map_err(|source| unresolved(node, name.clone(), source)),
    };
    let peers = domain.nodes.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
    let bind = bind_address(node).map_err(|e| unresolved(node, node.host.to_string(), e))?;
    let address = SocketAddr::new(bind, node.ring_port);
    let multicast = match domain.ring.multicast {
        Choice::Off => Multicast::Off,
        Choice::Auto => Multicast::Probed(group_of(domain)),
        Choice::Group(group) => Multicast::Always(group),
    };
    let keys = domain.keys.iter().map(DomainKey::as_bytes);
    RingSocket::open(address, me, peers, multicast, keys).map_err(|source| NodeError::Listen {
        what: "the ring".into(),
        address,
        source,
    })
}

/// Opens the links to the other nodes, with tokens from `base` on.
pub(crate) fn open_links(
    domain: &Domain,
    me: NodeId,
    ring: &RingSocket,
    base: u64,
    poller: &Poller,
) -> Result<Links, NodeError> {
    let address = ring.address();
    let keys = domain.keys.iter().map(DomainKey::as_bytes);
    Links::open(me, address, ring.others(), keys, base, poller)
        .map_err(|source| NodeError::Listen { what: "links of nodes".into(), address, source })
}

/// A multicast address of the organisation's own (RFC 2365 §6.2), by the domain's digest: two
/// domains that share one lose nothing but time.
fn group_of(domain: &Domain) -> SocketAddrV4 {
    let [.., high, low] = domain.digest().to_be_bytes();
    let port = domain.nodes.first().map_or(0, |node| node.ring_port);
    SocketAddrV4::new(Ipv4Addr::new(239, 192, high, low), port)
}
