//! What the ring asks of its driver, as one closed enum, and the types inside of it.
//!
//! Invariants: outputs take effect in the order of [`crate::Ring::poll`]; deliveries and views
//! come in one stream, so their relative order is the order of extended virtual synchrony.

use crate::ids::{Position, RingId, Ticket};
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorba_base::{NodeId, NodeSet};

/// One thing for the driver to do or to know.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send `datagram`; datagrams to the same destination come in a row where possible.
    Transmit {
        /// Who gets it.
        to: Destination,
        /// Sealed; at most `datagram_bytes_max` long.
        datagram: BytesMut,
    },
    /// The configuration changed, here in the stream of deliveries.
    View(View),
    /// The next message of the order.
    Deliver(Delivery),
    /// Cumulative: a majority of the domain's nodes (or what [`crate::Hold`] says) has received
    /// every message of mine up to this one; except for those that a view named in
    /// [`View::unheld`].
    Held(Ticket),
    /// Cumulative: every node of the configuration in which my messages up to this one were
    /// delivered has received them.
    Stable(Ticket),
    /// Store the number before any later [`Output::Transmit`] takes effect;
    /// give it back as [`crate::Boot::ring_seq_min`] at the next boot. Written ahead in blocks, so
    /// it is rare.
    Persist {
        /// No ring of this node has had a higher sequence number than this.
        ring_seq: u64,
    },
    /// Datagrams in the name of `node` are not accepted; at most once per cause and second.
    Refused {
        /// The sender as the datagram claims; proven only for some reasons.
        node: NodeId,
        /// Why.
        reason: RefusedReason,
    },
}

/// Who gets a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One node.
    Node(NodeId),
    /// Every node of the domain but this one, by multicast or one by one.
    Others,
    /// Every node of the domain but this one, one by one: what was missed once, or must not
    /// depend on what a network does with multicast.
    Each,
}

/// A message in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Where it stands.
    pub position: Position,
    /// Who submitted it.
    pub origin: NodeId,
    /// Which boot of the origin.
    pub incarnation: u64,
    /// The origin's name for it.
    pub ticket: Ticket,
    /// What was submitted; usually a slice of a received datagram.
    pub payload: Bytes,
    /// The ring ended, and a packet before this one was received by none of those who moved
    /// together; so nothing from here on is a beginning of the ring's order.
    pub behind_gap: bool,
}

/// A configuration change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Transitional or regular.
    pub kind: ViewKind,
    /// The new ring; for a transitional view the ring that is about to be installed.
    pub ring: RingId,
    /// Who is in it. For a transitional view the members that come along from `previous`.
    pub members: NodeSet,
    /// The ring that this node comes from; `None` at its first view.
    pub previous: Option<RingId>,
    /// Members that came with me from `previous`, me included.
    pub transitional: NodeSet,
    /// Members of `previous` that did not come along, and why; ascending.
    pub left: Vec<(NodeId, LeaveReason)>,
    /// Members of the new ring that were not in `previous`, or were in an earlier boot of theirs.
    pub joined: NodeSet,
    /// Why the membership was gathered anew.
    pub reason: GatherReason,
    /// The boot of each member of the new ring, in ascending order of members.
    pub incarnations: Vec<(NodeId, u64)>,
    /// First and last of my messages that `previous` ordered but that no majority can be said to
    /// have: for these [`Output::Held`] will not come, even if it comes for later ones. Set in the
    /// regular view only.
    pub unheld: Option<(Ticket, Ticket)>,
}

/// Which half of a configuration change (Moser94).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// What is left of the old ring: its last messages are delivered to those who move together.
    Transitional,
    /// The new ring.
    Regular,
}

/// Why a node is no longer in the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// Nothing was heard of it.
    Silent,
    /// Its process ended: its link to a member was closed.
    ProcessLost,
    /// It said that it leaves.
    Departed,
    /// It came back as a new boot.
    Restarted,
    /// It did not receive messages for too long, though it was reached by the token.
    FailedToReceive,
    /// Much of what goes to it or comes from it is lost or late, and the others' links are good:
    /// see `docs/internals/totem.md`.
    PoorLinks,
    /// Another member does not hear it; links decide, see `docs/internals/totem.md`.
    Unreachable,
    /// It formed another ring, or another member reported it without saying why.
    Parted,
}

/// Why a node left the operational state, or started to gather again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatherReason {
    /// The node started.
    Boot,
    /// No sign of the token for the token loss time.
    TokenLoss,
    /// A datagram of another ring came from this node.
    ForeignMessage(NodeId),
    /// This node sent a Join.
    Join(NodeId),
    /// This node's process is dead.
    PeerLost(NodeId),
    /// This node said that it leaves.
    Departed(NodeId),
    /// The commit token did not come round.
    CommitTimeout,
    /// The new ring's token got lost before recovery was done.
    RecoveryTimeout,
    /// This node does not receive what the others have.
    FailToReceive(NodeId),
    /// The links of this node, perhaps of others too, are much worse than those of a majority.
    PoorLinks(NodeId),
    /// This very process stood still for longer than the others wait.
    Paused,
}

/// Why a node's datagrams are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedReason {
    /// Another domain key, or forged: the seal does not open. The sender is not proven.
    Seal,
    /// The sender seals and I do not, or the other way round.
    Protection,
    /// Another version of the protocol. The sender is not proven.
    Version,
    /// The sender id is not in the domain, or is mine. The sender is not proven.
    UnknownNode,
    /// An older boot of the node, or a second process with the node's name.
    Incarnation,
    /// The node works by another domain file.
    Digest,
    /// A sealed datagram does not parse: the sender is broken.
    Malformed,
}

/// Why a submission was not taken; try again when deliveries have drained the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Too many messages wait.
    Messages,
    /// Too many bytes wait.
    Bytes,
    /// The payload is longer than [`crate::PAYLOAD_BYTES_MAX`]; retrying does not help.
    TooLarge,
}

/// What the next timeout is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKind {
    /// The token may be lost.
    TokenLoss,
    /// The token was passed and nothing shows that it arrived.
    TokenResend,
    /// The token has rested long enough.
    Rest,
    /// Acknowledgements are late.
    AckWait,
    /// The others are told what is stable.
    Settled,
    /// Ask for the token, again.
    TokenRequest,
    /// Send the Join again.
    Join,
    /// Stop waiting for silent nodes.
    Consensus,
    /// Send the commit token again.
    CommitResend,
    /// The commit token is lost.
    CommitLoss,
    /// Look for nodes outside of the view.
    Presence,
    /// The flush after a pause is over.
    Flush,
    /// Measure the links.
    Probe,
}
