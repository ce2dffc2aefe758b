//! What stands in the files of a log, as pure data: segments, records, checkpoints, and the rule
//! that tells a torn tail from damage.
//!
//! What it is not: I/O. It is compiled without the standard library when the feature `std` is off.
//!
//! Invariants: no length, number or kind is believed before it was compared with what is there;
//! no input panics; numbers are little-endian; a record's place (segment, sequence number) is in
//! the record, under its checksum, so that right bytes at a wrong place are found.

pub mod checkpoint;
pub mod record;
pub mod scan;
pub mod segment;
pub mod tail;

use core::fmt;
use quorba_base::NodeId;
pub use quorba_base::{Position, RingId};

/// The version of the format; a log of another one is not read.
pub const VERSION: u16 = 12;

/// What a disk writes as a whole or not at all, at the least.
pub const SECTOR_BYTES: usize = 512;

/// A record's number in the log of one node: from 1, without gaps but for those after damage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// No record.
    pub const NONE: Self = Self(0);

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number before this one; [`Seq::NONE`] has none and stays.
    #[must_use]
    pub const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Whose log it is. Files of another owner are never read as ours, and never removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Names the domain for the life of the log. Make it from the domain's id, which does not
    /// change, rather than from its whole file, which does.
    pub domain_digest: u64,
    /// The node.
    pub node: NodeId,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of domain {:016x}", self.node, self.domain_digest)
    }
}

/// Whether all octets are zero: a place that was never written reads so.
pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    let mut words = bytes.chunks_exact(8);
    words.all(|word| word == [0; 8]) && words.remainder().iter().all(|octet| *octet == 0)
}
