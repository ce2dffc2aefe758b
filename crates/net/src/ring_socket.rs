//! The ring's UDP socket: datagrams to one node or to all others.
//!
//! Invariants: a datagram that the kernel does not take is lost, as on any network; the ring
//! repeats what matters. Nothing here waits. What was put in leaves at [`RingSocket::flush`] at
//! the latest, in its order.

use crate::outbox::{Batch, Outbox};
use bytes::BytesMut;
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use quorba_base::{NodeId, NodeSet};
use quorba_order::Destination;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use socket2::{Domain as Family, Protocol, Socket, Type};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

/// Room for a burst of all nodes while this one is not scheduled.
const BUFFER_BYTES: usize = 4 << 20;
/// What one received buffer can hold: a datagram, or many of one sender in a row.
const CHUNK_BYTES: usize = 1 << 16;
/// Buffers that one system call fills.
const CHUNKS: usize = 4;

/// See the module's text.
pub struct RingSocket {
    socket: UdpSocket,
    offload: UdpSocketState,
    address: SocketAddr,
    me: usize,
    peers: Vec<SocketAddr>,
    outbox: Outbox,
    chunks: Vec<u8>,
}

impl RingSocket {
    /// Binds to `bind`; `peers` are the ring addresses of all nodes, this one's included.
    ///
    /// # Errors
    /// What the system says; a retry helps if the address was in use.
    pub fn open(bind: SocketAddr, me: NodeId, peers: Vec<SocketAddr>) -> io::Result<Self> {
        let socket = bound(bind)?;
        let offload = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // Few datagrams are longer than a packet of the network, and those may travel in pieces.
        if bind.is_ipv4() {
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DONT)?;
        }
        let me = usize::from(me.index());
        let chunks = vec![0; CHUNKS * CHUNK_BYTES];
        Ok(Self { socket, offload, address: bind, me, peers, outbox: Outbox::default(), chunks })
    }

    /// Where it is bound.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every node's address, `None` for this one.
    #[must_use]
    pub fn others(&self) -> Vec<Option<SocketAddr>> {
        let other = |(index, peer): (usize, &SocketAddr)| (index != self.me).then_some(*peer);
        self.peers.iter().enumerate().map(other).collect()
    }

    /// What to wait for.
    #[must_use]
    pub const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Appends datagrams that are there to `into`. Not necessarily all: the poller says whether
    /// there are more.
    pub fn receive(&mut self, into: &mut Vec<BytesMut>) {
        let mut metas = [RecvMeta::default(); CHUNKS];
        let mut chunks = self.chunks.chunks_exact_mut(CHUNK_BYTES).map(IoSliceMut::new);
        let mut buffers: [IoSliceMut<'_>; CHUNKS] =
            std::array::from_fn(|_| chunks.next().expect("as many as there are buffers"));
        let socket = UdpSockRef::from(&self.socket);
        let Ok(filled) = self.offload.recv(socket, &mut buffers, &mut metas) else { return };
        for (meta, buffer) in metas.iter().zip(&buffers).take(filled) {
            // Of its own buffer each, for some are kept long after their neighbours are done with.
            let datagrams = buffer[..meta.len].chunks(meta.stride.max(1));
            into.extend(datagrams.map(BytesMut::from));
        }
    }

    /// Sends, at the latest at the next [`Self::flush`].
    pub fn send(&mut self, to: Destination, datagram: BytesMut) {
        if !self.outbox.takes(to, &datagram, self.offload.max_gso_segments()) {
            self.flush();
        }
        self.outbox.push(to, datagram);
    }

    /// Sends all that waits.
    pub fn flush(&mut self) {
        match self.outbox.to() {
            None => return,
            Some(Destination::Node(node)) => {
                self.send_to(usize::from(node.index()), &self.outbox.common());
            }
            Some(Destination::Others) => {
                for node in NodeSet::first(self.peers.len()) {
                    let index = usize::from(node.index());
                    if index != self.me {
                        self.send_to(index, &self.outbox.for_node(Destination::Node(node)));
                    }
                }
            }
        }
        self.outbox.clear();
    }

    fn send_to(&self, index: usize, batch: &Batch<'_>) {
        let Some(peer) = self.peers.get(index) else { return };
        if batch.bytes.len() <= batch.segment_bytes {
            let _ = self.socket.send_to(batch.bytes, peer);
            return;
        }
        let transmit = Transmit {
            destination: *peer,
            ecn: None,
            contents: batch.bytes,
            segment_size: Some(batch.segment_bytes),
            src_ip: None,
        };
        let sent = self.offload.try_send(UdpSockRef::from(&self.socket), &transmit);
        if sent.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            // This interface takes no batches.
            for datagram in batch.bytes.chunks(batch.segment_bytes) {
                let _ = self.socket.send_to(datagram, peer);
            }
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
