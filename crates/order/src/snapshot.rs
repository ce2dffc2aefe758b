//! The ring's state for people: plain values, no effect.
//!
//! Invariant: taking a snapshot changes nothing.

use crate::ids::{RingId, Ticket};
use crate::output::{GatherReason, LeaveReason};
use crate::seal::KeyId;
use alloc::vec::Vec;
use quorba_base::{Duration, NodeId, NodeSet};

/// What has been counted since the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams handed to the driver.
    pub datagrams_sent: u64,
    /// Datagrams that came through the seal.
    pub datagrams_received: u64,
    /// Datagrams that were not accepted.
    pub refused: u64,
    /// Packets numbered by this node.
    pub packets_sent: u64,
    /// Messages delivered here.
    pub delivered: u64,
    /// Packets sent again because somebody lacked them.
    pub repeated: u64,
    /// Packets received more than once.
    pub duplicates: u64,
    /// Packets dropped because they lie beyond what the log can hold.
    pub beyond: u64,
    /// Visits of the token.
    pub token_visits: u64,
    /// Rotations of the token that began here, and were timed.
    pub rotations: u64,
    /// Tokens sent again.
    pub token_resent: u64,
    /// Requests for the token sent.
    pub token_requests: u64,
    /// Rings installed.
    pub rings: u64,
    /// Times that the membership was gathered anew.
    pub gathers: u64,
    /// Times that this process was found to have stood still.
    pub pauses: u64,
    /// Datagrams dropped because they queued up during a pause.
    pub flushed: u64,
}

/// The states of the ring (Amir95, membership).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateName {
    /// Agreeing on a membership.
    Gather,
    /// Confirming it.
    Commit,
    /// Exchanging what members of the same old ring lack.
    Recovery,
    /// Ordering messages.
    Operational,
}

/// Whether datagrams are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Every datagram is authenticated and encrypted.
    Sealed,
    /// NOT AUTHENTICATED, NOT ENCRYPTED: anyone on the network can forge, read and break it.
    NoneAtAll,
}

/// How far the ring has come: what a measurement of its delays is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Visits of the token since the boot.
    pub token_visits: u64,
    /// Packets that the ring had numbered when the token last came here.
    pub visit_packets: u64,
    /// Rotations that began here and were timed, since the boot.
    pub rotations: u64,
    /// How long the last of them took.
    pub rotation_last: Duration,
    /// The last message that was submitted here.
    pub submitted: Ticket,
    /// The last message of this node that is wholly in packets, which leave at once.
    pub numbered: Ticket,
    /// The token rests here: nobody else has something to send.
    pub rests_here: bool,
}

/// A node that was left out of the ring and is not taken in again yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which.
    pub node: NodeId,
    /// Why.
    pub cause: LeaveReason,
    /// It is tried again after this time; sooner if the others are no majority any more.
    pub again_in: Duration,
}

/// A look at the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where in the protocol.
    pub state: StateName,
    /// Why the membership was last gathered.
    pub reason: GatherReason,
    /// Whether datagrams are protected.
    pub protection: Protection,
    /// The domain key that this node seals with; nothing if nothing is protected.
    pub sealing_key: Option<KeyId>,
    /// Its newest domain key, and the nodes that are known to have it as their newest. It is used
    /// when all nodes of the domain have it.
    pub newest_key: Option<(KeyId, NodeSet)>,
    /// The ring installed last.
    pub ring: Option<RingId>,
    /// Its members.
    pub members: NodeSet,
    /// Whether the token is here.
    pub has_token: bool,
    /// Who keeps the token while nobody wants it, as far as known.
    pub rest_owner: Option<NodeId>,
    /// Smoothed time of a token rotation; zero if not measured.
    pub rotation: Duration,
    /// From a packet of this node to the first acknowledgement, usually: there and back. Measured
    /// where the token rests; zero if not measured.
    pub exchange: Duration,
    /// The running token loss time.
    pub token_loss: Duration,
    /// Highest packet known, received without a gap, delivered, and received by all.
    pub packets: [u64; 4],
    /// Packets kept: of the ring installed last, and in recovery of the new one, too.
    pub log_packets: usize,
    /// Messages that wait to be numbered.
    pub queue_messages: usize,
    /// Their bytes.
    pub queue_bytes: usize,
    /// Messages numbered and not yet delivered here.
    pub in_flight: usize,
    /// Bytes of unfinished messages of all origins.
    pub partial_bytes: usize,
    /// Chunks that did not fit: a sender is broken if not 0.
    pub misfits: u64,
    /// The ticket of the last held message of the present ring, if any is not yet stable.
    pub unheld: Option<(Ticket, Ticket)>,
    /// Nodes that were left out and are not taken in again before some time; ascending.
    pub left_out: Vec<LeftOut>,
    /// The others have said that this node's own links are too poor, and have not taken it in
    /// again.
    pub told_out: bool,
    /// Timeouts are stretched by two to this power, because rings kept failing.
    pub patience: u32,
    /// What has been counted.
    pub counters: Counters,
}
