//! The multicast packet that carries messages.
//!
//! Layout: kind, flags, origin, acks wanted (1 byte each), ring (9), seq (8), stable (8), then,
//! if recovered, the inner packet's ring (9), seq (8), origin (1) and flags (1); then the body:
//! the ticket of the first chunk (8) and chunks. A chunk is flags (1) and length (2), if it starts
//! a message that it does not end also the message's length (4), and bytes. Tickets count up by
//! one from message to message, so that only the first needs to be told.
//!
//! Invariant: a body that was decoded splits into chunks without an error.

use super::{InvalidDatagram, KIND_DATA, RING_BYTES, Reader, put_ring};
use crate::ids::{Guarantee, RingId, Ticket};
use crate::limits::PAYLOAD_BYTES_MAX;
use bytes::{BufMut, Bytes, BytesMut};
use core::ops::Range;
use quorba_base::NodeId;

/// Bytes before the body of a packet that is not recovered.
pub(crate) const DATA_HEADER_BYTES: usize = 4 + RING_BYTES + 8 + 8;
/// What a recovered packet has more. Reserved in every packet, so that each fits when recovered.
pub(crate) const RECOVERED_HEADER_BYTES: usize = RING_BYTES + 8 + 2;
/// The first ticket, at the head of a body.
pub(crate) const TICKET_BYTES: usize = 8;

const FLAG_SAFE: u8 = 1;
const FLAG_RECOVERED: u8 = 2;
const FLAG_REPEATED: u8 = 4;

const CHUNK_FIRST: u8 = 1;
const CHUNK_LAST: u8 = 2;
/// The rest of the body is padding.
const CHUNK_PADDING: u8 = 4;

/// A packet of a new ring may carry this: a packet of an old ring (Amir95, recovery).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    pub(crate) ring: RingId,
    pub(crate) seq: u64,
    pub(crate) origin: NodeId,
    pub(crate) guarantee: Guarantee,
}

/// A numbered packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) ring: RingId,
    pub(crate) seq: u64,
    /// Who gave it its number; the sender is another node when it is repeated for one who lost it.
    pub(crate) origin: NodeId,
    pub(crate) guarantee: Guarantee,
    /// Sent again on request: no sign that the origin has the token.
    pub(crate) repeated: bool,
    /// How many successors of the origin shall acknowledge at once.
    pub(crate) acks_wanted: u8,
    /// The sender knows that all members have everything up to here.
    pub(crate) stable: u64,
    pub(crate) inner: Option<Inner>,
    pub(crate) body: Bytes,
}

const fn guarantee_flag(guarantee: Guarantee) -> u8 {
    match guarantee {
        Guarantee::Agreed => 0,
        Guarantee::Safe => FLAG_SAFE,
    }
}

const fn guarantee_of(flags: u8) -> Guarantee {
    if flags & FLAG_SAFE == 0 { Guarantee::Agreed } else { Guarantee::Safe }
}

impl Data {
    pub(super) fn decode(packet: &Bytes) -> Result<Self, InvalidDatagram> {
        let mut reader = Reader::new(packet);
        let _kind = reader.u8()?;
        let flags = reader.u8()?;
        if flags & !(FLAG_SAFE | FLAG_RECOVERED | FLAG_REPEATED) != 0 {
            return Err(InvalidDatagram::Field("data flags"));
        }
        let origin = reader.node()?;
        let acks_wanted = reader.u8()?;
        let (ring, seq, stable) = (reader.ring()?, reader.u64()?, reader.u64()?);
        if seq == 0 {
            return Err(InvalidDatagram::Field("data seq"));
        }
        let inner = if flags & FLAG_RECOVERED == 0 {
            None
        } else {
            let (ring, seq, origin) = (reader.ring()?, reader.u64()?, reader.node()?);
            let flags = reader.u8()?;
            if seq == 0 || flags & !FLAG_SAFE != 0 {
                return Err(InvalidDatagram::Field("recovered packet"));
            }
            Some(Inner { ring, seq, origin, guarantee: guarantee_of(flags) })
        };
        let body = packet.slice(packet.len() - reader.rest().len()..);
        for chunk in Chunks::new(&body)? {
            chunk?;
        }
        let repeated = flags & FLAG_REPEATED != 0;
        let guarantee = guarantee_of(flags);
        Ok(Self { ring, seq, origin, guarantee, repeated, acks_wanted, stable, inner, body })
    }

    /// Bytes that [`Self::encode`] will append.
    pub(crate) fn encoded_bytes(&self) -> usize {
        let inner = if self.inner.is_some() { RECOVERED_HEADER_BYTES } else { 0 };
        DATA_HEADER_BYTES + inner + self.body.len()
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let mut flags = guarantee_flag(self.guarantee);
        if self.inner.is_some() {
            flags |= FLAG_RECOVERED;
        }
        if self.repeated {
            flags |= FLAG_REPEATED;
        }
        out.put_u8(KIND_DATA);
        out.put_u8(flags);
        out.put_u8(self.origin.index());
        out.put_u8(self.acks_wanted);
        put_ring(out, self.ring);
        out.put_u64(self.seq);
        out.put_u64(self.stable);
        if let Some(inner) = &self.inner {
            put_ring(out, inner.ring);
            out.put_u64(inner.seq);
            out.put_u8(inner.origin.index());
            out.put_u8(guarantee_flag(inner.guarantee));
        }
        out.put_slice(&self.body);
    }
}

/// A piece of a message, or a whole one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) ticket: Ticket,
    pub(crate) first: bool,
    pub(crate) last: bool,
    /// Length of the whole message; of the piece, unless `first` and not `last`.
    pub(crate) message_bytes: usize,
    /// Where in the body its bytes are.
    pub(crate) range: Range<usize>,
}

/// Bytes that a chunk takes besides its message's.
pub(crate) const fn chunk_overhead(first: bool, last: bool) -> usize {
    if first && !last { 7 } else { 3 }
}

/// Appends a chunk to a body. `message_bytes` is the length of the whole message.
pub(crate) fn push_chunk(
    body: &mut BytesMut,
    first: bool,
    last: bool,
    message_bytes: usize,
    bytes: &[u8],
) {
    let len = u16::try_from(bytes.len()).expect("a chunk is smaller than a datagram");
    let first_flag = if first { CHUNK_FIRST } else { 0 };
    let last_flag = if last { CHUNK_LAST } else { 0 };
    body.put_u8(first_flag | last_flag);
    body.put_u16(len);
    if first && !last {
        body.put_u32(u32::try_from(message_bytes).expect("payloads are capped at submission"));
    }
    body.put_slice(bytes);
}

/// Fills a body up, so that the datagrams of one visit are all of one size.
pub(crate) fn push_padding(body: &mut BytesMut, bytes: usize) {
    if bytes > 0 {
        body.put_u8(CHUNK_PADDING);
        body.put_bytes(0, bytes - 1);
    }
}

/// The chunks of a body.
pub(crate) struct Chunks<'a> {
    body: &'a [u8],
    at: usize,
    ticket: u64,
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Result<Self, InvalidDatagram> {
        if body.is_empty() {
            return Ok(Self { body, at: 0, ticket: 0 });
        }
        let ticket = Reader::new(body).u64()?;
        Ok(Self { body, at: TICKET_BYTES, ticket })
    }

    fn split(&mut self) -> Result<Option<Chunk>, InvalidDatagram> {
        let mut reader = Reader::new(&self.body[self.at..]);
        let flags = reader.u8()?;
        if flags == CHUNK_PADDING {
            return Ok(None);
        }
        if flags & !(CHUNK_FIRST | CHUNK_LAST) != 0 {
            return Err(InvalidDatagram::Field("chunk flags"));
        }
        let (first, last) = (flags & CHUNK_FIRST != 0, flags & CHUNK_LAST != 0);
        let len = usize::from(reader.u16()?);
        let message_bytes = if first && !last { reader.u32()? as usize } else { len };
        if message_bytes > PAYLOAD_BYTES_MAX || message_bytes < len {
            return Err(InvalidDatagram::Count(message_bytes as u64));
        }
        if reader.rest().len() < len {
            return Err(InvalidDatagram::Short);
        }
        let ticket = Ticket(self.ticket);
        if last {
            self.ticket = self.ticket.checked_add(1).ok_or(InvalidDatagram::Field("ticket"))?;
        }
        let start = self.at + chunk_overhead(first, last);
        self.at = start + len;
        Ok(Some(Chunk { ticket, first, last, message_bytes, range: start..self.at }))
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<Chunk, InvalidDatagram>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.body.len() {
            return None;
        }
        let chunk = self.split().transpose();
        if !matches!(chunk, Some(Ok(_))) {
            self.at = self.body.len();
        }
        chunk
    }
}
