//! The ring's UDP socket: datagrams to one node or to all others.
//!
//! Invariant: a datagram that the kernel does not take is lost, as on any network; the ring
//! repeats what matters. Nothing here waits.

use crate::NodeError;
use crate::supervise::{bind_address, resolve_host};
use bytes::BytesMut;
use quorba_base::NodeId;
use quorba_config::{Domain, Host};
use quorba_engine::order::Destination;
use socket2::{Domain as Family, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Room for a burst of all nodes while this one is not scheduled.
const BUFFER_BYTES: usize = 4 << 20;

/// See the module's text.
pub(crate) struct RingSocket {
    socket: UdpSocket,
    address: SocketAddr,
    me: usize,
    peers: Vec<SocketAddr>,
    scratch: Vec<u8>,
}

impl RingSocket {
    pub(crate) fn open(domain: &Domain, me: NodeId) -> Result<Self, NodeError> {
        let node = domain.node(me).ok_or(NodeError::NoSuchNode)?;
        let resolve = |node: &quorba_config::Node| match &node.host {
            Host::Address(address) => Ok(SocketAddr::new(*address, node.ring_port)),
            Host::Name(name) => resolve_host(name, node.ring_port).map_err(|source| {
                NodeError::Resolve { node: node.name.clone(), host: name.clone(), source }
            }),
        };
        let peers = domain.nodes.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
        let bind = bind_address(node).map_err(|source| NodeError::Resolve {
            node: node.name.clone(),
            host: node.host.to_string(),
            source,
        })?;
        let address = SocketAddr::new(bind, node.ring_port);
        let socket = bound(address).map_err(|source| NodeError::Listen {
            what: "the ring".into(),
            address,
            source,
        })?;
        let me = usize::from(me.index());
        Ok(Self { socket, address, me, peers, scratch: vec![0; 1 << 16] })
    }

    /// Where it is bound.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every node's address, `None` for this one.
    pub(crate) fn others(&self) -> Vec<Option<SocketAddr>> {
        let other = |(index, peer): (usize, &SocketAddr)| (index != self.me).then_some(*peer);
        self.peers.iter().enumerate().map(other).collect()
    }

    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The next datagram, if one is there.
    pub(crate) fn receive(&mut self) -> Option<BytesMut> {
        match self.socket.recv_from(&mut self.scratch) {
            Ok((count, _)) => Some(BytesMut::from(&self.scratch[..count])),
            Err(_) => None,
        }
    }

    pub(crate) fn send(&self, to: Destination, datagram: &[u8]) {
        match to {
            Destination::Node(node) => self.send_to(usize::from(node.index()), datagram),
            Destination::Others => {
                for index in (0..self.peers.len()).filter(|index| *index != self.me) {
                    self.send_to(index, datagram);
                }
            }
        }
    }

    fn send_to(&self, index: usize, datagram: &[u8]) {
        if let Some(peer) = self.peers.get(index) {
            let _ = self.socket.send_to(datagram, peer);
        }
    }
}

fn bound(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Family::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // The kernel gives what its limits allow; less only means more repetitions under load.
    let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(BUFFER_BYTES);
    socket.bind(&address.into())?;
    Ok(socket.into())
}
