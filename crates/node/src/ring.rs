//! The ring's sockets and the links between nodes, as the domain file wants them.
//!
//! What it is not: the sockets themselves; those are `quorba-net`'s.

use crate::NodeError;
use crate::resolve::{bind_address, resolve_host};
use quorba_base::NodeId;
use quorba_config::{Domain, DomainKey, Host, Multicast as Choice, Node};
use quorba_net::{Links, Multicast, Poller, RingSocket};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Where the nodes of a domain speak to each other.
struct Addresses {
    /// Of this node, to bind to.
    own: SocketAddr,
    /// As others see them, in the order of the domain file.
    nodes: Vec<SocketAddr>,
}

fn resolve(domain: &Domain, me: NodeId) -> Result<Addresses, NodeError> {
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
    let nodes = domain.nodes.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
    let bind = bind_address(node).map_err(|e| unresolved(node, node.host.to_string(), e))?;
    Ok(Addresses { own: SocketAddr::new(bind, node.ring_port), nodes })
}

/// Opens the socket of node `me`.
pub(crate) fn open(domain: &Domain, me: NodeId) -> Result<RingSocket, NodeError> {
    let Addresses { own: address, nodes: peers } = resolve(domain, me)?;
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

/// Opens the links of this boot of node `me`, beside the ring's socket if there is one, with
/// tokens from `base` on.
pub(crate) fn open_links(
    domain: &Domain,
    (me, incarnation): (NodeId, u64),
    ring: Option<&RingSocket>,
    base: u64,
    poller: &Poller,
) -> Result<Links, NodeError> {
    let (address, others) = match ring {
        Some(ring) => (ring.address(), ring.others()),
        None => {
            let Addresses { own, nodes } = resolve(domain, me)?;
            let mut others: Vec<_> = nodes.into_iter().map(Some).collect();
            others[usize::from(me.index())] = None;
            (own, others)
        }
    };
    let keys = domain.keys.iter().map(DomainKey::as_bytes);
    Links::open((me, incarnation), address, others, keys, base, poller)
        .map_err(|source| NodeError::Listen { what: "links of nodes".into(), address, source })
}

/// A multicast address of the organisation's own (RFC 2365 §6.2), by the domain's digest: two
/// domains that share one lose nothing but time.
fn group_of(domain: &Domain) -> SocketAddrV4 {
    let [.., high, low] = domain.digest().to_be_bytes();
    let port = domain.nodes.first().map_or(0, |node| node.ring_port);
    SocketAddrV4::new(Ipv4Addr::new(239, 192, high, low), port)
}
