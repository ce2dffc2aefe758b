//! Names of things in the order: rings, positions, tickets.
//!
//! Invariant: all of them are totally ordered, and compare the same on every node.

use core::fmt;
pub use quorba_base::RingId;

/// Where a message stands in the order. Equal at every node that delivers the message, and
/// different for different messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The ring that ordered the message.
    pub ring: RingId,
    /// Its place: the sequence number of the packet that completed it, times 65,536, plus its
    /// place in that packet. Ascending, with holes.
    pub seq: u64,
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}.{}", self.ring, self.seq >> 16, self.seq & 0xffff)
    }
}

/// A message that this boot of the origin submitted; counts up by one from 1.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// When a message may be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// As soon as everything before it has been delivered.
    Agreed,
    /// As soon as, besides, every node of the configuration is known to have received it.
    Safe,
}
