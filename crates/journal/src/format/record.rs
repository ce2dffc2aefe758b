//! One record: a header of 48 octets, a body, and padding to a multiple of 8.
//!
//! ```text
//!  0 "QRC"  3 kind  4 body octets u32  8 sequence number u64  16 durable watermark u64
//! 24 nonce of the segment u64  32 segment u32  36 CRC of the body u32
//! 40 CRC of octets 0 to 39 u32  44 "QEND"
//! 48 body, then zeros and one 0x5a, 1 to 8 octets
//! ```
//!
//! Invariants: header and padding end with an octet that is not zero, so that a write that was cut
//! anywhere inside leaves a zero there; the header has a checksum of its own, so that a damaged
//! body does not hide where the next record begins.

use super::Seq;
use alloc::vec::Vec;
use bytes::Bytes;
pub use quorba_base::LogRecord as Record;
use quorba_base::fields::{le_u32_at, le_u64_at};
use quorba_base::{NodeId, Position, RingId};

/// Octets of a record's header.
pub const HEADER_BYTES: usize = 48;

/// The longest payload. Above what the order delivers (16 MiB and an envelope).
pub const PAYLOAD_BYTES_MAX: usize = 17 << 20;

/// Octets that a message's body has before its payload.
const MESSAGE_BYTES: usize = 40;

/// Octets that a component's body has before its payload.
const COMPONENT_BYTES: usize = 16;

/// The longest body.
pub(crate) const BODY_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + MESSAGE_BYTES;

const MARK: [u8; 3] = *b"QRC";
const HEADER_END: [u8; 4] = *b"QEND";
/// Not zero, and no flip of one bit away from it.
const END: u8 = 0x5a;

/// A record as a segment has it. The payload is at most [`PAYLOAD_BYTES_MAX`] octets.
pub trait Stored {
    /// Octets that it takes in a segment.
    #[must_use]
    fn bytes(&self) -> usize;

    /// Appends the record as it stands in a segment.
    ///
    /// # Panics
    /// If the payload is longer than [`PAYLOAD_BYTES_MAX`].
    fn encode(&self, stamp: &Stamp, out: &mut Vec<u8>);
}

impl Stored for Record {
    fn bytes(&self) -> usize {
        let fixed = match self {
            Self::Message { .. } => MESSAGE_BYTES,
            Self::Component { .. } => COMPONENT_BYTES,
        };
        HEADER_BYTES + padded(self.payload().len() + fixed)
    }

    fn encode(&self, stamp: &Stamp, out: &mut Vec<u8>) {
        assert!(self.payload().len() <= PAYLOAD_BYTES_MAX, "payload over its limit");
        let start = out.len();
        out.resize(start + HEADER_BYTES, 0);
        encode_body(self, out);
        let body = &out[start + HEADER_BYTES..];
        let header = Header {
            kind: match self {
                Self::Message { .. } => Kind::Message,
                Self::Component { .. } => Kind::Component,
            },
            body_bytes: body.len(),
            stamp: *stamp,
            body_crc: crc32fast::hash(body),
        };
        out[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
        out.resize(start + HEADER_BYTES + padded(header.body_bytes) - 1, 0);
        out.push(END);
    }
}

fn encode_body(record: &Record, out: &mut Vec<u8>) {
    match record {
        Record::Message { origin, incarnation, ticket, position, payload } => {
            let Position { component, prefix } = position;
            out.extend([origin.index(), component.representative.index(), 0, 0, 0, 0, 0, 0]);
            for number in [*incarnation, *ticket, component.seq, *prefix] {
                out.extend(number.to_le_bytes());
            }
            out.extend_from_slice(payload);
        }
        Record::Component { component, payload } => {
            out.extend([component.representative.index(), 0, 0, 0, 0, 0, 0, 0]);
            out.extend(component.seq.to_le_bytes());
            out.extend_from_slice(payload);
        }
    }
}

/// Reads a body whose checksum is right. `None` if it is none of the kind.
pub(crate) fn decode_body(kind: Kind, body: &Bytes) -> Option<Record> {
    let fixed = match kind {
        Kind::Message => MESSAGE_BYTES,
        Kind::Component => COMPONENT_BYTES,
    };
    if body.len() < fixed || body.len() - fixed > PAYLOAD_BYTES_MAX {
        return None;
    }
    let reserved = match kind {
        Kind::Message => &body[2..8],
        Kind::Component => &body[1..8],
    };
    if !super::is_blank(reserved) {
        return None;
    }
    let payload = body.slice(fixed..);
    let component = |seq, node: u8| {
        Some(RingId { seq: le_u64_at(body, seq), representative: NodeId::new(node)? })
    };
    Some(match kind {
        Kind::Message => Record::Message {
            origin: NodeId::new(body[0])?,
            incarnation: le_u64_at(body, 8),
            ticket: le_u64_at(body, 16),
            position: Position { component: component(24, body[1])?, prefix: le_u64_at(body, 32) },
            payload,
        },
        Kind::Component => Record::Component { component: component(8, body[0])?, payload },
    })
}

/// Where and when a record is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The segment's number.
    pub segment: u32,
    /// The segment's nonce.
    pub nonce: u64,
    /// The record's number.
    pub seq: Seq,
    /// All records up to this one were durable when this one was written.
    pub durable: Seq,
}

/// Which body a record has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Message,
    Component,
}

/// A record's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) body_bytes: usize,
    pub(crate) stamp: Stamp,
    pub(crate) body_crc: u32,
}

/// What is wrong with 48 octets that should be a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderFault {
    Checksum,
    Kind(u8),
    Length(u32),
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..3].copy_from_slice(&MARK);
        header[3] = match self.kind {
            Kind::Message => 1,
            Kind::Component => 2,
        };
        let body_bytes = u32::try_from(self.body_bytes).expect("bounded by the payload's limit");
        header[4..8].copy_from_slice(&body_bytes.to_le_bytes());
        header[8..16].copy_from_slice(&self.stamp.seq.0.to_le_bytes());
        header[16..24].copy_from_slice(&self.stamp.durable.0.to_le_bytes());
        header[24..32].copy_from_slice(&self.stamp.nonce.to_le_bytes());
        header[32..36].copy_from_slice(&self.stamp.segment.to_le_bytes());
        header[36..40].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = crc32fast::hash(&header[..40]);
        header[40..44].copy_from_slice(&crc.to_le_bytes());
        header[44..].copy_from_slice(&HEADER_END);
        header
    }

    /// Reads the header that `bytes` is.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let whole = bytes[..3] == MARK && bytes[44..] == HEADER_END;
        if !whole || crc32fast::hash(&bytes[..40]) != le_u32_at(bytes, 40) {
            return Err(HeaderFault::Checksum);
        }
        let kind = match bytes[3] {
            1 => Kind::Message,
            2 => Kind::Component,
            other => return Err(HeaderFault::Kind(other)),
        };
        let body_bytes = le_u32_at(bytes, 4);
        if body_bytes as usize > BODY_BYTES_MAX {
            return Err(HeaderFault::Length(body_bytes));
        }
        let stamp = Stamp {
            segment: le_u32_at(bytes, 32),
            nonce: le_u64_at(bytes, 24),
            seq: Seq(le_u64_at(bytes, 8)),
            durable: Seq(le_u64_at(bytes, 16)),
        };
        let body_crc = le_u32_at(bytes, 36);
        Ok(Self { kind, body_bytes: body_bytes as usize, stamp, body_crc })
    }

    /// Octets of body and padding.
    pub(crate) const fn padded_bytes(&self) -> usize {
        padded(self.body_bytes)
    }
}

/// Whether the padding after a body is as it was written.
pub(crate) fn is_padding(bytes: &[u8]) -> bool {
    bytes.split_last().is_some_and(|(last, zeros)| *last == END && super::is_blank(zeros))
}

/// A body with its padding of 1 to 8 octets.
const fn padded(body_bytes: usize) -> usize {
    (body_bytes / 8 + 1) * 8
}
