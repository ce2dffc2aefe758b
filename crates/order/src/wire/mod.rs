//! The packets inside of sealed datagrams: typed values, and their bytes.
//!
//! What it is not: a judge of sense. A packet that parses may still be old, foreign or refused;
//! that is for the states.
//!
//! Invariants: every length and count is checked against a named limit before it is used or
//! added; a decoder returns a whole value or [`InvalidDatagram`]; integers are big-endian, or
//! LEB128 where this page says varint; what is encoded decodes to an equal value.

mod commit;
mod data;
mod join;
mod probe;
mod token;

pub(crate) use commit::{CommitToken, MemberState, OldState};
pub(crate) use data::{
    Chunk, Chunks, DATA_HEADER_BYTES, Data, Inner, RECOVERED_HEADER_BYTES, TICKET_BYTES,
    chunk_overhead, push_chunk, push_padding,
};
pub(crate) use join::{Dead, Greeting, Join};
pub(crate) use probe::{PROBE_WINDOW, Probe, Reception};
pub(crate) use token::{GapRange, RANGE_PACKETS_MAX, REQUESTS_MAX, Token};

use crate::ids::RingId;
use bytes::{BufMut, Bytes, BytesMut};
use quorba_base::fields::{Malformed, RING_BYTES, Reader, put_ring, put_varint};

/// A packet that came through the seal and does not parse. Fault of the sender's program; the
/// same bytes will never parse, so retrying does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidDatagram {
    /// It ends before a field does.
    Short,
    /// It goes on behind its last field.
    Trailing,
    /// No such kind of packet.
    Kind(u8),
    /// A count or length above its limit.
    Count(u64),
    /// A node id or set outside of the domain's range.
    Node,
    /// A field that must be something else, named.
    Field(&'static str),
}

impl From<Malformed> for InvalidDatagram {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Short => Self::Short,
            Malformed::Trailing => Self::Trailing,
            Malformed::Varint => Self::Field("varint"),
            Malformed::Node => Self::Node,
        }
    }
}

const KIND_DATA: u8 = 1;
const KIND_TOKEN: u8 = 2;
const KIND_REQUEST: u8 = 3;
const KIND_ACK: u8 = 4;
const KIND_JOIN: u8 = 5;
const KIND_HELLO: u8 = 6;
const KIND_COMMIT: u8 = 7;
const KIND_SETTLED: u8 = 8;
const KIND_PROBE: u8 = 9;

/// Asks the holder of a resting token to pass it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenRequest {
    pub(crate) ring: RingId,
}

/// Tells a sender up to where its receiver has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) ring: RingId,
    pub(crate) aru: u64,
}

/// Tells all members up to where all of them have everything, so that they can deliver safe
/// messages while the token rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) ring: RingId,
    pub(crate) stable: u64,
}

/// Any packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Data(Data),
    Token(Token),
    Request(TokenRequest),
    Ack(Ack),
    Join(Join),
    Hello(Greeting),
    Commit(CommitToken),
    Settled(Settled),
    Probe(Probe),
}

impl Packet {
    /// Parses the plaintext of a datagram. Payloads are slices of it.
    pub(crate) fn decode(packet: &Bytes) -> Result<Self, InvalidDatagram> {
        let mut reader = Reader::new(packet);
        let decoded = match reader.u8()? {
            KIND_DATA => return Data::decode(packet).map(Self::Data),
            KIND_TOKEN => Self::Token(Token::decode(&mut reader)?),
            KIND_REQUEST => Self::Request(TokenRequest { ring: reader.ring()? }),
            KIND_ACK => Self::Ack(Ack { ring: reader.ring()?, aru: reader.u64()? }),
            KIND_JOIN => Self::Join(Join::decode(&mut reader)?),
            KIND_HELLO => Self::Hello(Greeting::decode(&mut reader)?),
            KIND_COMMIT => Self::Commit(CommitToken::decode(&mut reader)?),
            KIND_SETTLED => Self::Settled(Settled { ring: reader.ring()?, stable: reader.u64()? }),
            KIND_PROBE => Self::Probe(Probe::decode(&mut reader)?),
            kind => return Err(InvalidDatagram::Kind(kind)),
        };
        reader.end()?;
        Ok(decoded)
    }

    /// Appends the packet's bytes.
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Data(data) => data.encode(out),
            Self::Token(token) => {
                out.put_u8(KIND_TOKEN);
                token.encode(out);
            }
            Self::Request(request) => {
                out.put_u8(KIND_REQUEST);
                put_ring(out, request.ring);
            }
            Self::Ack(ack) => {
                out.put_u8(KIND_ACK);
                put_ring(out, ack.ring);
                out.put_u64(ack.aru);
            }
            Self::Join(join) => {
                out.put_u8(KIND_JOIN);
                join.encode(out);
            }
            Self::Hello(greeting) => {
                out.put_u8(KIND_HELLO);
                greeting.encode(out);
            }
            Self::Commit(commit) => {
                out.put_u8(KIND_COMMIT);
                commit.encode(out);
            }
            Self::Settled(settled) => {
                out.put_u8(KIND_SETTLED);
                put_ring(out, settled.ring);
                out.put_u64(settled.stable);
            }
            Self::Probe(probe) => {
                out.put_u8(KIND_PROBE);
                probe.encode(out);
            }
        }
    }
}

/// `distance` below `high`.
fn back_from(high: u64, distance: u64) -> Result<u64, InvalidDatagram> {
    high.checked_sub(distance).ok_or(InvalidDatagram::Count(distance))
}

/// A count of things to come, at most `max`.
fn count(reader: &mut Reader<'_>, max: usize) -> Result<usize, InvalidDatagram> {
    let count = usize::from(reader.u8()?);
    if count > max { Err(InvalidDatagram::Count(count as u64)) } else { Ok(count) }
}

#[cfg(test)]
mod tests;
