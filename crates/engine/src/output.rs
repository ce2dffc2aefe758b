//! What a node asks of its driver: a closed set of effects.

use crate::external::{ExternalCommand, ExternalId};
use bytes::{Bytes, BytesMut};
use core::net::IpAddr;
use quorba_base::NodeId;
use quorba_order::{Destination, Ticket, View};
use quorba_replica::{DriverOutput, GroupId};

/// The longest message from node to node; drivers carry such.
pub const PEER_MESSAGE_BYTES_MAX: usize = quorba_replica::PEER_MESSAGE_BYTES_MAX;

/// A client's connection to the gateway; the driver counts them up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// Why the gateway ends a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CloseReason {
    /// The client said so.
    ByClient,
    /// What came is not GIOP, or breaks its rules.
    Malformed,
    /// A message is larger than allowed, or too much is unfinished.
    TooLarge,
    /// A started message did not go on.
    TooSlow,
    /// Nothing came for long.
    Idle,
    /// Too many connections, in all or from one address.
    TooMany,
    /// Its address holds more of the node's memory than it may, and the most of all.
    OverBudget,
    /// The node stops.
    Stopping,
    /// The group was deleted.
    Deleted,
}

impl CloseReason {
    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::ByClient => "the client closed it",
            Self::Malformed => "what came is not valid GIOP",
            Self::TooLarge => "a message is too large",
            Self::TooSlow => "a message did not go on in time",
            Self::Idle => "nothing came for a long time",
            Self::TooMany => "too many connections",
            Self::OverBudget => "its address holds more of the gateway's memory than it may",
            Self::Stopping => "the node stops",
            Self::Deleted => "the group was deleted",
        }
    }
}

/// One effect; they are to be carried out in the order in which they are polled.
#[derive(Debug)]
pub enum Output {
    /// Send a datagram to one node or to all others.
    Datagram {
        /// To whom.
        to: Destination,
        /// Sealed.
        datagram: BytesMut,
    },
    /// Let a message be ordered outside; only if the order is made there.
    Submit {
        /// This node's name for it; they count up by one.
        ticket: Ticket,
        /// What is to be delivered to every node.
        payload: Bytes,
    },
    /// Send bytes to a client.
    ClientSend {
        /// On this connection.
        connection: ConnectionId,
        /// Whole GIOP messages or fragments.
        bytes: Bytes,
    },
    /// Stop reading from the client until [`Output::ClientResume`].
    ClientPause {
        /// This connection.
        connection: ConnectionId,
    },
    /// Read on.
    ClientResume {
        /// This connection.
        connection: ConnectionId,
    },
    /// Close after everything sent is out; the node will not hear of it again.
    ClientClose {
        /// This connection.
        connection: ConnectionId,
        /// Why.
        reason: CloseReason,
        /// Read on until the client has closed too, so that the last words reach it; otherwise
        /// whatever it still writes meets a reset.
        linger: bool,
    },
    /// Something for a connection to a server outside of the domain.
    ExternalCalls {
        /// Which connection.
        connection: ExternalId,
        /// What.
        command: ExternalCommand,
    },
    /// Store it before any datagram that follows leaves.
    PersistRing {
        /// The highest ring sequence number used.
        ring_seq: u64,
    },
    /// What the replica asks of the driver, as it is: what it wants to be told of goes to the
    /// function of [`crate::Node`] that has the name of the one of [`quorba_replica::Replica`].
    Replica(DriverOutput),
    /// Something that people want to know.
    Event(Event),
}

/// What happened, for logs and pictures.
#[derive(Debug)]
pub enum Event {
    /// From the replica.
    Replica(quorba_replica::Event),
    /// A view of the ring.
    View(View),
    /// A request that a server may have has ended without a reply, or its client waits for it no
    /// more; only this node knows whose it was.
    Unanswered {
        /// Which group's.
        group: GroupId,
        /// Its number at this node's gateway in this boot, as in
        /// [`quorba_replica::RecentRequest::gateway`].
        number: u64,
        /// The client's address.
        peer: IpAddr,
    },
    /// Connections of a client address are turned away, because it has all that it may have, or all
    /// together have. Said once a minute.
    TurnedAway {
        /// The address.
        peer: IpAddr,
        /// How many it has.
        connections: usize,
        /// How many were turned away so far.
        refused: u64,
    },
    /// A node was refused by the ring.
    Refused {
        /// Which one claims to be it.
        node: NodeId,
        /// Why.
        reason: quorba_order::RefusedReason,
    },
}
