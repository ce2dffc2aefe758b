//! One UDP socket: batches of datagrams out and in.
//!
//! Invariant: nothing here waits; what the kernel does not take is lost.

use crate::outbox::Batch;
use bytes::BytesMut;
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use socket2::{Domain as Family, Protocol, Socket, Type};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

/// Room for a burst of all nodes while this one is not scheduled.
const BUFFER_BYTES: usize = 4 << 20;
/// What one received buffer can hold: a datagram, or many of one sender in a row.
pub(crate) const CHUNK_BYTES: usize = 1 << 16;
/// Buffers that one system call fills.
pub(crate) const CHUNKS: usize = 4;

/// See the module's text.
pub(crate) struct Udp {
    pub(crate) socket: UdpSocket,
    offload: UdpSocketState,
}

impl Udp {
    /// Binds to `address`; `shared`: other sockets may be bound to it, too.
    pub(crate) fn bind(address: SocketAddr, shared: bool) -> io::Result<Self> {
        let socket = Socket::new(Family::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(shared)?;
        // The kernel gives what its limits allow; less only means more repetitions under load.
        let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
        let _ = socket.set_send_buffer_size(BUFFER_BYTES);
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        let offload = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // Few datagrams are longer than a packet of the network, and those may travel in pieces.
        if address.is_ipv4() {
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DONT)?;
        }
        Ok(Self { socket, offload })
    }

    /// The most datagrams that one system call takes.
    pub(crate) fn batch_max(&self) -> usize {
        self.offload.max_gso_segments()
    }

    /// Appends datagrams that are there to `into`; whether there may be more. `chunks` has
    /// [`CHUNKS`] times [`CHUNK_BYTES`].
    pub(crate) fn receive(&self, chunks: &mut [u8], into: &mut Vec<BytesMut>) -> bool {
        let mut metas = [RecvMeta::default(); CHUNKS];
        let mut chunks = chunks.chunks_exact_mut(CHUNK_BYTES).map(IoSliceMut::new);
        let mut buffers: [IoSliceMut<'_>; CHUNKS] =
            std::array::from_fn(|_| chunks.next().expect("as many as there are buffers"));
        let socket = UdpSockRef::from(&self.socket);
        let Ok(filled) = self.offload.recv(socket, &mut buffers, &mut metas) else { return false };
        for (meta, buffer) in metas.iter().zip(&buffers).take(filled) {
            // Of its own buffer each, for some are kept long after their neighbours are done with.
            let datagrams = buffer[..meta.len].chunks(meta.stride.max(1));
            into.extend(datagrams.map(BytesMut::from));
        }
        filled == CHUNKS
    }

    pub(crate) fn send(&self, to: SocketAddr, batch: &Batch<'_>) {
        if batch.bytes.len() <= batch.segment_bytes {
            let _ = self.socket.send_to(batch.bytes, to);
            return;
        }
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: batch.bytes,
            segment_size: Some(batch.segment_bytes),
            src_ip: None,
        };
        let sent = self.offload.try_send(UdpSockRef::from(&self.socket), &transmit);
        if sent.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            // This interface takes no batches.
            for datagram in batch.bytes.chunks(batch.segment_bytes) {
                let _ = self.socket.send_to(datagram, to);
            }
        }
    }
}
