//! Messages of this node that are not delivered yet: those that wait, and those in flight.
//!
//! Invariants: messages leave in the order of their tickets; what waits is bounded in messages
//! and bytes; a message is either wholly numbered by one ring or starts afresh in the next.

use crate::ids::{Guarantee, Ticket};
use crate::limits::{PAYLOAD_BYTES_MAX, QUEUE_BYTES_MAX, QUEUE_MESSAGES_MAX};
use crate::output::Full;
use crate::wire::{TICKET_BYTES, chunk_overhead, push_chunk, push_padding};
use alloc::collections::VecDeque;
use bytes::{BufMut, Bytes, BytesMut};

/// A tail of a packet shorter than this is padded, not filled with the head of a message.
const SPLIT_BYTES_MIN: usize = 64;

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    payload: Bytes,
    guarantee: Guarantee,
}

/// The body of a packet to be numbered.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) body: Bytes,
    pub(crate) guarantee: Guarantee,
    /// First and last message that end in this packet.
    pub(crate) ends: Option<(Ticket, Ticket)>,
}

/// The submission queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Bytes of the first waiting message that are already in packets of this ring.
    offset: usize,
    last_ticket: u64,
    /// Wholly in packets, not yet delivered here.
    in_flight: VecDeque<(Ticket, Bytes)>,
}

impl Queue {
    pub(crate) fn submit(&mut self, payload: Bytes, guarantee: Guarantee) -> Result<Ticket, Full> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Full::TooLarge);
        }
        if self.waiting.len() >= QUEUE_MESSAGES_MAX {
            return Err(Full::Messages);
        }
        if self.waiting_bytes + payload.len() > QUEUE_BYTES_MAX {
            return Err(Full::Bytes);
        }
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.waiting_bytes += payload.len();
        self.waiting.push_back(Waiting { ticket, payload, guarantee });
        Ok(ticket)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn messages(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The last message that was taken in.
    pub(crate) const fn submitted(&self) -> Ticket {
        Ticket(self.last_ticket)
    }

    /// The last message that is wholly in packets.
    pub(crate) fn numbered(&self) -> Ticket {
        self.waiting.front().map_or(self.submitted(), |front| Ticket(front.ticket.0 - 1))
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// About how many packets the waiting messages will take.
    pub(crate) fn packets(&self, body_bytes: usize) -> u32 {
        let bytes = self.waiting_bytes - self.offset + chunk_overhead(true, true) * self.messages();
        u32::try_from(bytes.div_ceil(body_bytes)).unwrap_or(u32::MAX)
    }

    /// Fills one packet; `None` if nothing waits.
    pub(crate) fn pack(&mut self, body_bytes: usize) -> Option<Packed> {
        let front = self.waiting.front()?;
        let guarantee = front.guarantee;
        let need = self.waiting_bytes - self.offset + 8 * self.waiting.len();
        let mut body = BytesMut::with_capacity(TICKET_BYTES + need.min(body_bytes));
        body.put_u64(front.ticket.0);
        let mut ends: Option<(Ticket, Ticket)> = None;
        let end = TICKET_BYTES + body_bytes;
        while let Some(front) = self.waiting.front() {
            if front.guarantee != guarantee {
                break;
            }
            let (first, rest) = (self.offset == 0, front.payload.len() - self.offset);
            let room = end - body.len();
            if chunk_overhead(first, true) + rest <= room {
                push_chunk(&mut body, first, true, rest, &front.payload[self.offset..]);
                ends = Some((ends.map_or(front.ticket, |(first, _)| first), front.ticket));
                self.finish_front();
                continue;
            }
            let overhead = chunk_overhead(first, false);
            if room < overhead + SPLIT_BYTES_MIN {
                push_padding(&mut body, room);
                break;
            }
            let piece = &front.payload[self.offset..self.offset + room - overhead];
            push_chunk(&mut body, first, false, front.payload.len(), piece);
            self.offset += piece.len();
            break;
        }
        Some(Packed { body: body.freeze(), guarantee, ends })
    }

    fn finish_front(&mut self) {
        let done = self.waiting.pop_front().expect("the caller has looked at it");
        self.waiting_bytes -= done.payload.len();
        self.offset = 0;
        self.in_flight.push_back((done.ticket, done.payload));
    }

    /// The payload of my own message `ticket`, whose turn to be delivered has come.
    pub(crate) fn deliver(&mut self, ticket: Ticket) -> Bytes {
        let (first, payload) = self.in_flight.pop_front().expect("own messages are in flight");
        assert_eq!(first, ticket, "own messages are delivered in the order of submission");
        payload
    }

    /// A new ring begins: what the old one did not number wholly starts afresh.
    pub(crate) fn restart(&mut self) {
        assert!(self.in_flight.is_empty(), "a ring delivers all that its origin has numbered");
        self.offset = 0;
    }
}
