//! The first 64 octets of a segment file: whose it is, and where in the log it stands.
//!
//! ```text
//!  0 "QBJOURNL"  8 version u16  10 node u8  11 zeros  16 domain digest u64
//! 24 segment u32  28 zeros  32 nonce u64  40 first sequence number u64
//! 48 zeros  56 CRC of octets 0 to 55 u32  60 "QEND"
//! ```
//!
//! Invariant: a segment's header is durable before its first record is written, and all records
//! before its first one are durable before the header is written.

use super::{Owner, Seq, VERSION, is_blank};
use alloc::format;
use alloc::string::String;
use core::fmt;
use quorba_base::NodeId;
use quorba_base::fields::{le_u32_at, le_u64_at};

/// Octets of a segment's header.
pub const HEADER_BYTES: usize = 64;

const MAGIC: [u8; 8] = *b"QBJOURNL";
const END: [u8; 4] = *b"QEND";

/// The header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// Whose log it belongs to.
    pub owner: Owner,
    /// Its number; the file is named by it.
    pub segment: u32,
    /// Drawn anew for each segment, so that no record of another one, or of an earlier use of
    /// the same blocks, is taken for one of this, and no client can forge a record in a payload.
    pub nonce: u64,
    /// The number of its first record. What an earlier segment has from this number on counts
    /// nowhere: it was never durable.
    pub first: Seq,
}

/// What is wrong with the first octets of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentFault {
    /// It was never written to its end, and nothing is behind it.
    Torn,
    /// It was written, and is not what was written.
    Checksum,
    /// Another version of the format.
    Version(u16),
    /// Of another domain or node.
    Owner(Owner),
    /// The header of another segment.
    Number(u32),
}

impl fmt::Display for SegmentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn => f.write_str("header never written to its end"),
            Self::Checksum => f.write_str("header changed since it was written (checksum)"),
            Self::Version(version) => write!(f, "format version {version}, not {VERSION}"),
            Self::Owner(owner) => write!(f, "belongs to {owner}"),
            Self::Number(found) => write!(f, "has the header of segment {found}"),
        }
    }
}

impl SegmentHeader {
    /// The header as it stands in the file.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..10].copy_from_slice(&VERSION.to_le_bytes());
        header[10] = self.owner.node.index();
        header[16..24].copy_from_slice(&self.owner.domain_digest.to_le_bytes());
        header[24..28].copy_from_slice(&self.segment.to_le_bytes());
        header[32..40].copy_from_slice(&self.nonce.to_le_bytes());
        header[40..48].copy_from_slice(&self.first.0.to_le_bytes());
        let crc = crc32fast::hash(&header[..56]);
        header[56..60].copy_from_slice(&crc.to_le_bytes());
        header[60..].copy_from_slice(&END);
        header
    }

    /// Reads the header of the segment that has `bytes`, which should be `segment` of `owner`.
    ///
    /// # Errors
    /// [`SegmentFault`]: what it is instead.
    pub fn decode(bytes: &[u8], owner: Owner, segment: u32) -> Result<Self, SegmentFault> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(SegmentFault::Torn);
        };
        let sealed = header[60..] == END && crc32fast::hash(&header[..56]) == le_u32_at(header, 56);
        if header[..8] != MAGIC || !sealed {
            // Records follow only after the header is durable.
            let torn = header[HEADER_BYTES - 1] == 0 && is_blank(&bytes[HEADER_BYTES..]);
            return Err(if torn { SegmentFault::Torn } else { SegmentFault::Checksum });
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version != VERSION {
            return Err(SegmentFault::Version(version));
        }
        let node = NodeId::new(header[10]).ok_or(SegmentFault::Checksum)?;
        let found = Owner { domain_digest: le_u64_at(header, 16), node };
        if found != owner {
            return Err(SegmentFault::Owner(found));
        }
        let number = le_u32_at(header, 24);
        if number != segment {
            return Err(SegmentFault::Number(number));
        }
        let (nonce, first) = (le_u64_at(header, 32), Seq(le_u64_at(header, 40)));
        Ok(Self { owner, segment, nonce, first })
    }
}

/// The name of a segment's file.
#[must_use]
pub fn file_name(segment: u32) -> String {
    format!("log-{segment:010}.seg")
}

/// The number of the segment that a file of this name holds.
#[must_use]
pub fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("log-")?.strip_suffix(".seg")?;
    let number = digits.parse().ok()?;
    (name == file_name(number)).then_some(number)
}
