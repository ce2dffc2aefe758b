//! Which of my messages a majority, or every member of the view, has received.
//!
//! Invariant: it rests on what members have said of themselves in the same view; a message that
//! was delivered before the view is not among them, and is reported as unheld instead.

use quorba_base::NodeId;
use quorba_order::Ticket;
use std::collections::BTreeMap;

/// What members have acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// Per member of the view, me included: my last message that it has received in this view.
    received: BTreeMap<NodeId, Ticket>,
    members: usize,
    /// The number of my last message that was delivered here, in any view; 0 if none was.
    delivered: u64,
    /// The numbers of those last reported, or settled by a view.
    held: u64,
    stable: u64,
}

impl Promises {
    /// My message was delivered here, in the view.
    pub(crate) fn delivered(&mut self, me: NodeId, ticket: Ticket) {
        self.delivered = ticket.0;
        self.received.insert(me, ticket);
    }

    /// My message was delivered here, between two views.
    pub(crate) fn delivered_between(&mut self, ticket: Ticket) {
        self.delivered = ticket.0;
    }

    /// A member has received my messages up to `ticket`.
    pub(crate) fn acknowledged(&mut self, by: NodeId, ticket: Ticket) {
        let known = self.received.entry(by).or_insert(ticket);
        *known = (*known).max(ticket);
    }

    /// The last message that `majority` nodes have received, if that is news.
    pub(crate) fn take_held(&mut self, majority: usize) -> Option<Ticket> {
        let mut tickets: Vec<u64> = self.received.values().map(|ticket| ticket.0).collect();
        tickets.sort_unstable_by(|one, other| other.cmp(one));
        let held = *tickets.get(majority.checked_sub(1)?)?;
        news(&mut self.held, held)
    }

    /// The last message that every member has received, if that is news.
    pub(crate) fn take_stable(&mut self) -> Option<Ticket> {
        if self.received.len() < self.members {
            return None;
        }
        let stable = self.received.values().map(|ticket| ticket.0).min()?;
        news(&mut self.stable, stable)
    }

    /// A view of so many members begins; gives the first and the last of my messages that were
    /// delivered and will never be known to be held.
    pub(crate) fn begin_view(&mut self, members: usize) -> Option<(Ticket, Ticket)> {
        let unheld =
            (self.held < self.delivered).then_some((Ticket(self.held + 1), Ticket(self.delivered)));
        self.received.clear();
        self.members = members;
        self.held = self.delivered;
        self.stable = self.delivered;
        unheld
    }
}

fn news(known: &mut u64, now: u64) -> Option<Ticket> {
    if now <= *known {
        return None;
    }
    *known = now;
    Some(Ticket(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).expect("a small number")
    }

    #[test]
    fn two_of_three_hold_and_three_of_three_are_stable() {
        let mut promises = Promises::default();
        assert_eq!(promises.begin_view(3), None);
        promises.delivered(node(0), Ticket(1));
        promises.delivered(node(0), Ticket(2));
        assert_eq!(promises.take_held(2), None);
        promises.acknowledged(node(1), Ticket(1));
        assert_eq!(promises.take_held(2), Some(Ticket(1)));
        assert_eq!(promises.take_held(2), None);
        assert_eq!(promises.take_stable(), None);
        promises.acknowledged(node(2), Ticket(2));
        assert_eq!(promises.take_held(2), Some(Ticket(2)));
        assert_eq!(promises.take_stable(), Some(Ticket(1)));
    }

    #[test]
    fn what_was_not_acknowledged_in_its_view_is_unheld() {
        let mut promises = Promises::default();
        promises.begin_view(3);
        for ticket in 1..=4 {
            promises.delivered(node(0), Ticket(ticket));
        }
        promises.acknowledged(node(1), Ticket(2));
        assert_eq!(promises.take_held(2), Some(Ticket(2)));
        promises.delivered_between(Ticket(5));
        assert_eq!(promises.begin_view(2), Some((Ticket(3), Ticket(5))));
        assert_eq!(promises.take_held(2), None);
        promises.delivered(node(0), Ticket(6));
        promises.acknowledged(node(1), Ticket(6));
        assert_eq!(promises.take_held(2), Some(Ticket(6)));
    }
}
