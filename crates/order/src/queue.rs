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

    /// Takes back a message no part of which is in a packet. Whether it was one: what has begun to
    /// leave, or has left, cannot be taken back.
    pub(crate) fn withdraw(&mut self, ticket: Ticket) -> bool {
        let Ok(at) = self.waiting.binary_search_by_key(&ticket, |waiting| waiting.ticket) else {
            return false;
        };
        if at == 0 && self.offset > 0 {
            return false;
        }
        let waiting = self.waiting.remove(at).expect("it was found there");
        self.waiting_bytes -= waiting.payload.len();
        true
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

    /// The last message that is wholly in packets, or one behind it that was withdrawn.
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
        let mut next = front.ticket;
        while let Some(front) = self.waiting.front() {
            // Within a packet tickets are counted, not written; one was withdrawn here.
            if front.guarantee != guarantee || front.ticket != next {
                break;
            }
            let (first, rest) = (self.offset == 0, front.payload.len() - self.offset);
            let room = end - body.len();
            if chunk_overhead(first, true) + rest <= room {
                push_chunk(&mut body, first, true, rest, &front.payload[self.offset..]);
                ends = Some((ends.map_or(front.ticket, |(first, _)| first), front.ticket));
                next = Ticket(next.0 + 1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunks;
    use alloc::vec;
    use alloc::vec::Vec;

    fn queue(lengths: &[usize]) -> Queue {
        let mut queue = Queue::default();
        for length in lengths {
            let payload = Bytes::from(vec![*length as u8; *length]);
            queue.submit(payload, Guarantee::Agreed).expect("room");
        }
        queue
    }

    /// The messages of each packet: their tickets and lengths, as a receiver reads them.
    fn packets(queue: &mut Queue, body_bytes: usize) -> Vec<Vec<(u64, usize)>> {
        core::iter::from_fn(|| queue.pack(body_bytes))
            .map(|packed| {
                let chunks = Chunks::new(&packed.body).expect("a body").map(|c| c.expect("sound"));
                chunks.map(|chunk| (chunk.ticket.0, chunk.range.len())).collect()
            })
            .collect()
    }

    #[test]
    fn what_is_withdrawn_is_not_sent_and_the_others_keep_their_tickets() {
        let mut queue = queue(&[10, 20, 30, 40, 50]);
        for (ticket, withdrawn) in [(2, true), (4, true), (2, false), (9, false)] {
            assert_eq!(queue.withdraw(Ticket(ticket)), withdrawn, "{ticket}");
        }
        assert_eq!(queue.bytes(), 90);
        assert_eq!(packets(&mut queue, 1000), [vec![(1, 10)], vec![(3, 30)], vec![(5, 50)]]);
        for (ticket, bytes) in [(1, 10), (3, 30), (5, 50)] {
            assert_eq!(queue.deliver(Ticket(ticket)).len(), bytes);
        }
        assert_eq!((queue.bytes(), queue.submitted()), (0, Ticket(5)));
    }

    #[test]
    fn what_has_begun_to_leave_is_not_taken_back() {
        let mut queue = queue(&[10, 5_000, 20]);
        let first = queue.pack(1_000).expect("something waits");
        assert_eq!(first.ends, Some((Ticket(1), Ticket(1))), "and a part of the second");
        assert!(!queue.withdraw(Ticket(1)), "it is sent");
        assert!(!queue.withdraw(Ticket(2)), "its beginning is sent");
        assert!(queue.withdraw(Ticket(3)));
        let rest = packets(&mut queue, 1_000);
        assert!(rest.iter().flatten().all(|(ticket, _)| *ticket == 2), "{rest:?}");
        queue.restart_is_sound();
    }

    impl Queue {
        fn restart_is_sound(&mut self) {
            self.deliver(Ticket(1));
            self.deliver(Ticket(2));
            self.restart();
            assert!(self.is_empty());
        }
    }
}
