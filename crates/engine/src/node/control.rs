//! The replica's own messages on their way to the order, and replies that may be taken back.
//!
//! Invariants: they are submitted in the order in which the replica gave them; a reply can be named
//! from then until it is delivered here.

use alloc::collections::VecDeque;
use bytes::Bytes;
use quorba_order::Ticket;
use quorba_replica::{GatewayKey, GroupId};

/// Which reply it is.
pub(super) type Name = (GroupId, GatewayKey);

/// What became of a reply that is not wanted any more.
pub(super) enum Found {
    /// It had not been submitted, and is gone.
    Here,
    /// It has this ticket.
    Submitted(Ticket),
    /// It was delivered, or never given.
    Nowhere,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Control {
    /// No room for them yet.
    waiting: VecDeque<(Option<Name>, Bytes)>,
    /// Replies that the order has, ascending.
    submitted: VecDeque<(Ticket, Name)>,
    /// Messages of which the replica wants to know when a majority holds them, by their places
    /// among all that were ever given.
    to_hold: VecDeque<(u64, GroupId)>,
    /// The same, when the order has them.
    unheld: VecDeque<(Ticket, GroupId)>,
    given: u64,
    taken: u64,
}

impl Control {
    pub(super) fn push(&mut self, name: Option<Name>, payload: Bytes) {
        self.given += 1;
        self.waiting.push_back((name, payload));
    }

    /// The same, and [`Self::held`] tells when a majority holds it.
    pub(super) fn push_to_hold(&mut self, group: GroupId, payload: Bytes) {
        self.to_hold.push_back((self.given, group));
        self.push(None, payload);
    }

    /// A majority holds this node's messages up to this one: the next group that waited for that.
    pub(super) fn held(&mut self, ticket: Ticket) -> Option<GroupId> {
        self.unheld.pop_front_if(|(one, _)| *one <= ticket).map(|(_, group)| group)
    }

    /// The view is over: nobody waits any more.
    pub(super) fn view_changed(&mut self) {
        self.to_hold.clear();
        self.unheld.clear();
    }

    pub(super) fn front(&self) -> Option<&Bytes> {
        self.waiting.front().map(|(_, payload)| payload)
    }

    /// The order has taken the first one.
    pub(super) fn taken(&mut self, ticket: Ticket) {
        let waiting = self.waiting.pop_front();
        if let Some((_, group)) = self.to_hold.pop_front_if(|(place, _)| *place == self.taken) {
            self.unheld.push_back((ticket, group));
        }
        self.taken += 1;
        if let Some((Some(name), _)) = waiting {
            self.submitted.push_back((ticket, name));
        }
    }

    /// A message of this node was delivered: those before it were, too, or were withdrawn.
    pub(super) fn delivered(&mut self, ticket: Ticket) {
        while self.submitted.pop_front_if(|(first, _)| *first <= ticket).is_some() {}
    }

    /// Whether a reply may still be taken back.
    pub(super) fn has_replies(&self) -> bool {
        !self.submitted.is_empty()
    }

    /// Looks for the reply of this name that came last, and forgets it.
    pub(super) fn withdraw(&mut self, name: Name) -> Found {
        if let Some(at) = self.waiting.iter().rposition(|(one, _)| *one == Some(name)) {
            self.waiting.remove(at);
            self.given -= 1;
            for (place, _) in &mut self.to_hold {
                *place -= u64::from(*place > self.taken + at as u64);
            }
            return Found::Here;
        }
        match self.submitted.iter().rposition(|(_, one)| *one == name) {
            Some(at) => {
                let (ticket, _) = self.submitted.remove(at).expect("it was found there");
                Found::Submitted(ticket)
            }
            None => Found::Nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_base::NodeId;
    use quorba_replica::RequestNumber;

    fn name(number: u64) -> Name {
        let node = NodeId::new(0).expect("a small number");
        (GroupId(0), GatewayKey { node, incarnation: 1, number: RequestNumber(number) })
    }

    #[test]
    fn a_reply_can_be_named_until_it_is_delivered() {
        let mut control = Control::default();
        for number in 1..=3 {
            control.push(Some(name(number)), Bytes::new());
        }
        control.push(None, Bytes::from_static(b"of the group"));
        control.taken(Ticket(7));
        control.taken(Ticket(8));
        assert!(matches!(control.withdraw(name(3)), Found::Here));
        assert!(matches!(control.withdraw(name(2)), Found::Submitted(Ticket(8))));
        assert!(matches!(control.withdraw(name(2)), Found::Nowhere));
        assert_eq!(control.front().map(|bytes| &bytes[..]), Some(&b"of the group"[..]));
        control.delivered(Ticket(7));
        assert!(matches!(control.withdraw(name(1)), Found::Nowhere) && !control.has_replies());
    }

    #[test]
    fn who_waits_for_a_majority_is_told_of_its_own_message_whatever_is_taken_back_before_it() {
        let mut control = Control::default();
        control.push(Some(name(1)), Bytes::new());
        control.taken(Ticket(1));
        control.push(Some(name(2)), Bytes::new());
        control.push(None, Bytes::new());
        control.push_to_hold(GroupId(4), Bytes::new());
        control.push_to_hold(GroupId(5), Bytes::new());
        assert!(matches!(control.withdraw(name(2)), Found::Here));
        (2..=4).for_each(|ticket| control.taken(Ticket(ticket)));
        assert_eq!(control.held(Ticket(2)), None);
        assert_eq!(control.held(Ticket(4)), Some(GroupId(4)));
        assert_eq!(control.held(Ticket(4)), Some(GroupId(5)));
        assert_eq!(control.held(Ticket(9)), None);
        control.push_to_hold(GroupId(6), Bytes::new());
        control.view_changed();
        control.taken(Ticket(5));
        assert_eq!(control.held(Ticket(9)), None);
    }
}
