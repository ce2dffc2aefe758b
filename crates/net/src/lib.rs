//! A node's sockets: epoll, byte streams, the ring's datagrams, and the links between nodes.
//!
//! What it is not: a protocol. It carries what the pure rooms hand out and brings what comes in.
//!
//! Invariants: nothing here waits but [`Poller::wait`]; nothing here starts a thread; what the
//! kernel does not take of a datagram is lost, as on any network.

#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod keys;
mod links;
mod multicast;
mod outbox;
mod poller;
mod ports;
mod ring_socket;
mod stream;
mod tls;
mod udp;

pub use links::{Lane, LinkEvent, Links, MESSAGE_BYTES_MAX, Sent};
pub use poller::{Interest, Poller, Ready, timespec};
pub use ports::free_ports;
pub use ring_socket::{Fanout, Multicast, RingSocket};
pub use stream::{ReadOutcome, Stream};
pub use tls::{PeerCertificate, TlsAcceptor, TlsError, TlsFiles};
