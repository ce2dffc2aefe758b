//! Which of my messages a majority, or everyone, has received.
//!
//! Invariants: `Held` and `Stable` only grow; they rest on what nodes have said about themselves
//! (acknowledgements and the token's numbers), never on guesses.

use crate::ids::Ticket;
use alloc::collections::VecDeque;

/// My messages of one ring that are not known to be stable.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// (packet, last message that ends in it), ascending.
    sent: VecDeque<(u64, Ticket)>,
    /// How many of `sent`, from the front, are known to be held.
    held: usize,
    /// First message of the ring that is not known to be held.
    unheld_first: Option<Ticket>,
    last: Option<Ticket>,
}

impl Promises {
    /// Messages `first` to `through` end in packet `seq`.
    pub(crate) fn note_sent(&mut self, seq: u64, first: Ticket, through: Ticket) {
        self.sent.push_back((seq, through));
        self.unheld_first = self.unheld_first.or(Some(first));
        self.last = Some(through);
    }

    /// A majority has everything up to `seq`; gives the last message newly held.
    pub(crate) fn majority_has(&mut self, seq: u64) -> Option<Ticket> {
        let before = self.held;
        while self.sent.get(self.held).is_some_and(|(packet, _)| *packet <= seq) {
            self.held += 1;
        }
        if self.held == before {
            return None;
        }
        let held = self.sent[self.held - 1].1;
        self.unheld_first = (Some(held) < self.last).then_some(Ticket(held.0 + 1));
        Some(held)
    }

    /// Everyone has everything up to `seq`; gives the last message newly stable.
    pub(crate) fn all_have(&mut self, seq: u64) -> Option<Ticket> {
        let mut stable = None;
        while self.sent.front().is_some_and(|(packet, _)| *packet <= seq) {
            stable = self.sent.pop_front().map(|(_, ticket)| ticket);
            self.held = self.held.saturating_sub(1);
        }
        stable
    }

    /// Whether nothing waits to be stable.
    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether something waits to be held.
    pub(crate) fn has_unheld(&self) -> bool {
        self.held < self.sent.len()
    }

    /// First and last message of the ring that are not known to be held.
    pub(crate) fn unheld(&self) -> Option<(Ticket, Ticket)> {
        Some((self.unheld_first?, self.last?))
    }
}
