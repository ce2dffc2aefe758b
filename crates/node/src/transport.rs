//! What carries the order (the sockets of this node's own ring, or an outside cluster), and the
//! links that carry messages from node to node.
//!
//! Invariant: exactly one order, as the domain file says. With an outside one the end of a link
//! says nothing of a node: who is there is decided where the order is made.

use crate::NodeError;
use crate::boot::BootFile;
use crate::corosync::Corosync;
use crate::ring;
use bytes::{Bytes, BytesMut};
use quorba_base::NodeId;
use quorba_config::{Domain, Engine};
use quorba_engine::order::{Destination, Output as Ordered, Ticket};
use quorba_engine::replica::Lane;
use quorba_net::{Fanout, Interest, LinkEvent, Links, Poller, Ready, RingSocket, Sent};
use std::time::Instant as Clock;

/// What [`Transport::open`] registers with the poller.
pub(crate) struct Tokens {
    /// The socket that brings the order on.
    pub(crate) order: u64,
    /// The first of the links to other nodes.
    pub(crate) links: u64,
}

#[allow(clippy::large_enum_variant, reason = "there is one in a process")]
enum Carrier {
    Ring(RingSocket),
    Corosync(Corosync),
}

pub(crate) struct Transport {
    carrier: Carrier,
    links: Links,
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
        let life = (me, boot.incarnation());
        let links = |ring| ring::open_links(domain, life, ring, tokens.links, poller);
        match domain.ring.engine {
            Engine::Totem => {
                let socket = ring::open(domain, me)?;
                let read = Interest::READ;
                for socket in socket.sockets() {
                    poller.add(socket, tokens.order, read).map_err(NodeError::Resources)?;
                }
                let links = links(Some(&socket))?;
                Ok(Self { carrier: Carrier::Ring(socket), links })
            }
            Engine::Corosync => {
                let links = links(None)?;
                let cluster = Corosync::join(domain, me, boot, tokens.order, poller)?;
                Ok(Self { carrier: Carrier::Corosync(cluster), links })
            }
        }
    }

    /// Reads what has come: datagrams of the ring, into `datagrams`, or news of the cluster,
    /// which [`Self::next_ordered`] gives.
    pub(crate) fn receive(&mut self, datagrams: &mut Vec<BytesMut>) -> Result<(), NodeError> {
        match &mut self.carrier {
            Carrier::Ring(socket) => socket.receive(datagrams),
            Carrier::Corosync(corosync) => corosync.dispatch()?,
        }
        Ok(())
    }

    /// What an outside order has for the node; `None` if it has nothing, or is the node's own.
    pub(crate) fn next_ordered(&mut self) -> Result<Option<Ordered>, NodeError> {
        match &mut self.carrier {
            Carrier::Ring(_) => Ok(None),
            Carrier::Corosync(corosync) => corosync.next(),
        }
    }

    pub(crate) fn send(&mut self, to: Destination, datagram: BytesMut) {
        match &mut self.carrier {
            Carrier::Ring(socket) => socket.send(to, datagram),
            Carrier::Corosync(_) => unreachable!("an outside order sends its own datagrams"),
        }
    }

    /// Lets an outside order have a message.
    pub(crate) fn submit(&mut self, ticket: Ticket, payload: Bytes) {
        match &mut self.carrier {
            Carrier::Ring(_) => unreachable!("the node's own ring takes its messages itself"),
            Carrier::Corosync(corosync) => corosync.submit(ticket, payload),
        }
    }

    /// Datagrams leave no later than this.
    pub(crate) fn flush(&mut self) {
        match &mut self.carrier {
            Carrier::Ring(socket) => socket.flush(),
            Carrier::Corosync(_) => {}
        }
    }

    /// Puts a message for a node into its link's queue, to leave with the next
    /// [`Self::flush_links`].
    pub(crate) fn send_peer(&mut self, to: NodeId, lane: Lane, message: Bytes) -> Sent {
        self.links.send(to, lane, message)
    }

    /// Lets go what was sent to single nodes.
    pub(crate) fn flush_links(&mut self, poller: &Poller) {
        self.links.flush(poller);
    }

    /// The next news of the links. With an outside order nobody's end is among them.
    pub(crate) fn next_link_event(&mut self) -> Option<LinkEvent> {
        let is_inside = matches!(self.carrier, Carrier::Ring(_));
        loop {
            match self.links.poll()? {
                LinkEvent::Ended { .. } if !is_inside => {}
                event => return Some(event),
            }
        }
    }

    /// Boots that messages pass to and from, and what waits to be sent to each, in bytes.
    pub(crate) fn linked(&self) -> impl Iterator<Item = (NodeId, usize)> + '_ {
        self.links.up().map(|(node, _)| (node, self.links.queued_bytes(node)))
    }

    /// When [`Self::retry`] is wanted.
    pub(crate) fn retry_at(&self) -> Option<Clock> {
        let carrier = match &self.carrier {
            Carrier::Ring(socket) => socket.probe_at(),
            Carrier::Corosync(corosync) => corosync.retry_at(),
        };
        [carrier, self.links.retry_at()].into_iter().flatten().min()
    }

    /// Tries again what did not work.
    pub(crate) fn retry(&mut self, poller: &Poller) -> Result<(), NodeError> {
        let now = Clock::now();
        match &mut self.carrier {
            Carrier::Ring(socket) => socket.probe(now),
            Carrier::Corosync(corosync) => {
                if corosync.retry_at().is_some_and(|at| at <= now) {
                    corosync.offer()?;
                }
            }
        }
        if self.links.retry_at().is_some_and(|at| at <= now) {
            self.links.retry(poller);
        }
        Ok(())
    }

    /// No more connections of other hosts may be here that have not proven yet that they are nodes.
    pub(crate) fn bound_unproven(&mut self, most: usize) {
        self.links.bound_unproven(most);
    }

    /// The domain keys have changed.
    pub(crate) fn set_keys<'a>(&mut self, keys: impl Iterator<Item = &'a [u8; 32]> + Clone) {
        if let Carrier::Ring(socket) = &mut self.carrier {
            socket.set_keys(keys.clone());
        }
        self.links.set_keys(keys);
    }

    /// How messages to all nodes are sent.
    pub(crate) fn fanout(&self) -> Fanout {
        match &self.carrier {
            Carrier::Ring(socket) => socket.fanout(),
            Carrier::Corosync(_) => Fanout::Unicast("the cluster sends by its own means"),
        }
    }

    /// One of the links has news; see [`Self::next_link_event`].
    pub(crate) fn link_ready(&mut self, event: Ready, poller: &Poller) {
        self.links.handle(event, poller);
    }

    /// The node goes now, and has said so in its own order if that is inside.
    pub(crate) fn leave(&mut self) {
        match &mut self.carrier {
            Carrier::Ring(_) => {}
            Carrier::Corosync(corosync) => corosync.leave(),
        }
    }
}
