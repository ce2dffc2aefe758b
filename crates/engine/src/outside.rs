//! An order that is made outside of this node, by a cluster that the site runs already.
//!
//! The driver takes what is to be ordered from [`crate::Output::Submit`], and gives what was
//! ordered to [`crate::Node::handle_ordered`], in the terms of [`quorba_order::Output`].
//!
//! What it is not: a protocol. It counts tickets and bounds what is under way.
//!
//! Invariant: a message counts as under way from its submission to its delivery here.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, NodeId, NodeSet};
use quorba_order::{
    Counters, Full, GatherReason, Output as Ordered, Progress, Protection, QUEUE_BYTES_MAX,
    QUEUE_MESSAGES_MAX, RingId, Snapshot, StateName, Ticket, ViewKind,
};

pub(crate) struct Outside {
    me: NodeId,
    incarnation: u64,
    payload_bytes_max: usize,
    last_ticket: u64,
    /// What is to be ordered, for the driver.
    submissions: VecDeque<(Ticket, Bytes)>,
    /// What was ordered, for the node.
    ordered: VecDeque<Ordered>,
    /// Tickets and lengths of messages under way, ascending.
    under_way: VecDeque<(Ticket, usize)>,
    under_way_bytes: usize,
    state: StateName,
    reason: GatherReason,
    ring: Option<RingId>,
    members: NodeSet,
    counters: Counters,
}

impl Outside {
    pub(crate) fn new(me: NodeId, incarnation: u64, payload_bytes_max: usize) -> Self {
        Self {
            me,
            incarnation,
            payload_bytes_max,
            last_ticket: 0,
            submissions: VecDeque::new(),
            ordered: VecDeque::new(),
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            state: StateName::Gather,
            reason: GatherReason::Boot,
            ring: None,
            members: NodeSet::EMPTY.with(me),
            counters: Counters::default(),
        }
    }

    pub(crate) const fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    pub(crate) fn submit(&mut self, payload: Bytes) -> Result<Ticket, Full> {
        if payload.len() > self.payload_bytes_max {
            return Err(Full::TooLarge);
        }
        if self.under_way.len() >= QUEUE_MESSAGES_MAX {
            return Err(Full::Messages);
        }
        if self.under_way_bytes + payload.len() > QUEUE_BYTES_MAX {
            return Err(Full::Bytes);
        }
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.under_way.push_back((ticket, payload.len()));
        self.under_way_bytes += payload.len();
        self.submissions.push_back((ticket, payload));
        Ok(ticket)
    }

    pub(crate) fn handle_ordered(&mut self, output: Ordered) {
        match &output {
            Ordered::Deliver(delivery) => {
                self.counters.delivered += 1;
                if (delivery.origin, delivery.incarnation) == (self.me, self.incarnation) {
                    self.arrived(delivery.ticket);
                }
            }
            Ordered::View(view) => {
                self.reason = view.reason;
                if view.kind == ViewKind::Regular {
                    self.counters.rings += 1;
                    self.state = StateName::Operational;
                    (self.ring, self.members) = (Some(view.ring), view.members);
                } else {
                    self.counters.gathers += 1;
                    self.state = StateName::Gather;
                }
            }
            Ordered::Refused { .. } => self.counters.refused += 1,
            Ordered::Transmit { .. }
            | Ordered::Held(_)
            | Ordered::Stable(_)
            | Ordered::Persist { .. } => {}
        }
        self.ordered.push_back(output);
    }

    fn arrived(&mut self, ticket: Ticket) {
        let is_first = |(first, _): &mut (Ticket, usize)| *first <= ticket;
        while let Some((_, bytes)) = self.under_way.pop_front_if(is_first) {
            self.under_way_bytes -= bytes;
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Ordered> {
        self.ordered.pop_front()
    }

    pub(crate) fn poll_submission(&mut self) -> Option<(Ticket, Bytes)> {
        self.submissions.pop_front()
    }

    /// When an outside order numbers a message is not known: it has, once the message is here.
    pub(crate) fn progress(&self) -> Progress {
        let first = self.under_way.front().map_or(self.last_ticket + 1, |(first, _)| first.0);
        Progress {
            submitted: Ticket(self.last_ticket),
            numbered: Ticket(first - 1),
            ..Progress::default()
        }
    }

    /// What is known of an order made elsewhere; the rest is zero.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            left_out: Vec::new(),
            told_out: false,
            state: self.state,
            reason: self.reason,
            protection: Protection::NoneAtAll,
            sealing_key: None,
            newest_key: None,
            ring: self.ring,
            members: self.members,
            has_token: false,
            rest_owner: None,
            rotation: Duration::ZERO,
            exchange: Duration::ZERO,
            token_loss: Duration::ZERO,
            packets: [0; 4],
            log_packets: 0,
            queue_messages: self.under_way.len(),
            queue_bytes: self.under_way_bytes,
            in_flight: self.under_way.len(),
            partial_bytes: 0,
            misfits: 0,
            unheld: None,
            patience: 0,
            counters: self.counters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_order::{Delivery, Position};

    #[test]
    fn what_is_under_way_is_bounded_until_it_arrives() {
        let me = NodeId::new(0).expect("a small number");
        let mut outside = Outside::new(me, 7, 100);
        assert_eq!(outside.submit(Bytes::from(alloc::vec![0; 101])), Err(Full::TooLarge));
        for _ in 0..QUEUE_MESSAGES_MAX {
            outside.submit(Bytes::from_static(b"x")).expect("room");
        }
        assert_eq!(outside.submit(Bytes::from_static(b"x")), Err(Full::Messages));
        let ring = RingId { seq: 1, representative: me };
        let mine = |incarnation, ticket| {
            Ordered::Deliver(Delivery {
                position: Position { ring, seq: ticket },
                origin: me,
                incarnation,
                ticket: Ticket(ticket),
                payload: Bytes::new(),
                behind_gap: false,
            })
        };
        // A message of an earlier boot is not one of these.
        outside.handle_ordered(mine(6, 3));
        assert_eq!(outside.submit(Bytes::from_static(b"x")), Err(Full::Messages));
        outside.handle_ordered(mine(7, 3));
        assert_eq!(outside.snapshot().queue_messages, QUEUE_MESSAGES_MAX - 3);
        assert!(outside.submit(Bytes::from_static(b"x")).is_ok());
        assert_eq!(outside.poll_submission().map(|(ticket, _)| ticket), Some(Ticket(1)));
    }
}
