//! What carries the order: the sockets of this node's own ring, or an outside cluster.
//!
//! Invariant: exactly one of them, as the domain file says.

use crate::NodeError;
use crate::boot::BootFile;
use crate::corosync::Corosync;
use crate::ring;
use bytes::{Bytes, BytesMut};
use quorba_base::NodeId;
use quorba_config::{Domain, Engine};
use quorba_engine::order::{Destination, Output as Ordered, Ticket};
use quorba_net::{Fanout, Interest, Links, Poller, Ready, RingSocket};
use std::time::Instant as Clock;

/// What [`Transport::open`] registers with the poller.
pub(crate) struct Tokens {
    /// The socket that brings the order on.
    pub(crate) order: u64,
    /// The first of the links to other nodes.
    pub(crate) links: u64,
}

#[allow(clippy::large_enum_variant, reason = "there is one in a process")]
pub(crate) enum Transport {
    Ring { socket: RingSocket, links: Links },
    Corosync(Corosync),
}

impl Transport {
    /// Opens what the domain file asks for.
    pub(crate) fn open(
        domain: &Domain,
        me: NodeId,
        boot: &BootFile,
        tokens: &Tokens,
        poller: &Poller,
    ) -> Result<Self, NodeError> {
        match domain.ring.engine {
            Engine::Totem => {
                let socket = ring::open(domain, me)?;
                let read = Interest::READ;
                for socket in socket.sockets() {
                    poller.add(socket, tokens.order, read).map_err(NodeError::Resources)?;
                }
                let links = ring::open_links(domain, me, &socket, tokens.links, poller)?;
                Ok(Self::Ring { socket, links })
            }
            Engine::Corosync => {
                Corosync::join(domain, me, boot, tokens.order, poller).map(Self::Corosync)
            }
        }
    }

    /// Reads what has come: datagrams of the ring, into `datagrams`, or news of the cluster,
    /// which [`Self::next_ordered`] gives.
    pub(crate) fn receive(&mut self, datagrams: &mut Vec<BytesMut>) -> Result<(), NodeError> {
        match self {
            Self::Ring { socket, .. } => socket.receive(datagrams),
            Self::Corosync(corosync) => corosync.dispatch()?,
        }
        Ok(())
    }

    /// What an outside order has for the node; `None` if it has nothing, or is the node's own.
    pub(crate) fn next_ordered(&mut self) -> Result<Option<Ordered>, NodeError> {
        match self {
            Self::Ring { .. } => Ok(None),
            Self::Corosync(corosync) => corosync.next(),
        }
    }

    pub(crate) fn send(&mut self, to: Destination, datagram: BytesMut) {
        match self {
            Self::Ring { socket, .. } => socket.send(to, datagram),
            Self::Corosync(_) => unreachable!("an outside order sends its own datagrams"),
        }
    }

    /// Lets an outside order have a message.
    pub(crate) fn submit(&mut self, ticket: Ticket, payload: Bytes) {
        match self {
            Self::Ring { .. } => unreachable!("the node's own ring takes its messages itself"),
            Self::Corosync(corosync) => corosync.submit(ticket, payload),
        }
    }

    /// Datagrams leave no later than this.
    pub(crate) fn flush(&mut self) {
        match self {
            Self::Ring { socket, .. } => socket.flush(),
            Self::Corosync(_) => {}
        }
    }

    /// When [`Self::retry`] is wanted.
    pub(crate) fn retry_at(&self) -> Option<Clock> {
        match self {
            Self::Ring { socket, links } => {
                [socket.probe_at(), links.retry_at()].into_iter().flatten().min()
            }
            Self::Corosync(corosync) => corosync.retry_at(),
        }
    }

    /// Tries again what did not work.
    pub(crate) fn retry(&mut self, poller: &Poller) -> Result<(), NodeError> {
        match self {
            Self::Ring { socket, links } => {
                let now = Clock::now();
                socket.probe(now);
                if links.retry_at().is_some_and(|at| at <= now) {
                    links.retry(poller);
                }
            }
            Self::Corosync(corosync) => corosync.offer()?,
        }
        Ok(())
    }

    /// The domain keys have changed.
    pub(crate) fn set_keys<'a>(&mut self, keys: impl Iterator<Item = &'a [u8; 32]> + Clone) {
        match self {
            Self::Ring { socket, links } => {
                socket.set_keys(keys.clone());
                links.set_keys(keys);
            }
            Self::Corosync(_) => {}
        }
    }

    /// How messages to all nodes are sent.
    pub(crate) fn fanout(&self) -> Fanout {
        match self {
            Self::Ring { socket, .. } => socket.fanout(),
            Self::Corosync(_) => Fanout::Unicast("the cluster sends by its own means"),
        }
    }

    /// One of the links has news; the node whose process has ended, if so.
    pub(crate) fn link_ready(&mut self, event: Ready, poller: &Poller) -> Option<NodeId> {
        match self {
            Self::Ring { links, .. } => links.handle(event, poller),
            Self::Corosync(_) => None,
        }
    }

    /// The node goes now, and has said so in its own order if that is inside.
    pub(crate) fn leave(&mut self) {
        match self {
            Self::Ring { .. } => {}
            Self::Corosync(corosync) => corosync.leave(),
        }
    }
}
