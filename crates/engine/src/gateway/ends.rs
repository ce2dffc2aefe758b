//! Calls that end without a reply of a server.
//!
//! How such a call has ended is decided behind it in the order, by what members say or by an
//! operator. A node that is cut off may be alone with that, so it is not enough that the request is
//! safe: what is ordered next on its behalf, the request once more, must be as well.
//!
//! What it is not: the decision, which is the replica's. Invariant: nobody is told how a call has
//! ended that may end in another way.

use super::Gateway;
use crate::answers;
use crate::pending::{Ending, Outcome, Pending, Stage};
use alloc::vec::Vec;
use quorba_base::NodeId;
use quorba_replica::{Ack, GroupId, RequestEnd, RequestKey, RequestNumber};

impl Gateway {
    /// A request has ended without a reply of a server, and no member is in to say so: whoever
    /// waits for it here is told. `me`: this node and its boot.
    pub(crate) fn ended(
        &mut self,
        group: GroupId,
        me: (NodeId, u64),
        key: &RequestKey,
        end: RequestEnd,
    ) {
        let numbers: Vec<RequestNumber> = match key {
            RequestKey::Gateway(key) if (key.node, key.incarnation) == me => [key.number].into(),
            RequestKey::Gateway(_) | RequestKey::Nested(_) => return,
            RequestKey::Client { .. } => {
                let is_it = |(_, pending): &(RequestNumber, &Pending)| {
                    let own = pending.request.key(me.0, me.1);
                    !pending.is_read() && own == *key && key.is_repeated_by(&own)
                };
                let found = self.group(group).book.iter().filter(is_it);
                found.map(|(number, _)| number).collect()
            }
        };
        for number in numbers {
            let Some(pending) = self.group(group).book.get_mut(number) else { continue };
            if pending.outcome.awaits_end() {
                continue;
            }
            pending.outcome = Outcome::Ended { how: Ending::Silent(end), awaited: false };
            if pending.stage == Stage::Unsubmitted {
                self.await_end(group, number);
            } else {
                self.release(group, number);
            }
        }
    }

    /// The request is safe. If it has ended: whether its client is told so now, or later; `None`:
    /// the reply that is there goes out.
    pub(super) fn end_is_told(&mut self, group: GroupId, number: RequestNumber) -> Option<bool> {
        let books = self.group(group);
        let at_once = books.rules.ack == Ack::Agreed;
        match books.book.get(number)?.outcome {
            Outcome::Ended { awaited: false, .. } if !at_once => {
                self.await_end(group, number);
                Some(false)
            }
            Outcome::Ended { how: Ending::Silent(end), .. } => {
                self.tell_end(group, number, end);
                Some(true)
            }
            Outcome::Ended { how: Ending::Reply(_), .. } | Outcome::Reply(_) | Outcome::Open => {
                None
            }
        }
    }

    /// The request is ordered once more, behind its end.
    fn await_end(&mut self, group: GroupId, number: RequestNumber) {
        let books = self.group(group);
        let Some(pending) = books.book.get_mut(number) else { return };
        if let Outcome::Ended { awaited, .. } = &mut pending.outcome {
            *awaited = true;
        }
        // It needs no turn, and takes nobody's.
        if let Some(entered) = pending.entered.take() {
            books.window.leave(entered);
        } else if !pending.is_nested() {
            books.parked.remove(pending.source, number);
        }
        pending.begin_again();
        pending.insist(true);
        if !books.calls.contains(&number) {
            books.calls.push_back(number);
        }
    }

    /// Whether a request was to be ordered only for its end to be safe, which it is: in a group
    /// without an order nothing more can be known.
    pub(crate) fn is_over(&mut self, group: GroupId, number: RequestNumber) -> bool {
        let Some(pending) = self.group(group).book.get_mut(number) else { return true };
        if !pending.outcome.awaits_end() {
            return false;
        }
        pending.stage = Stage::Settled;
        self.release(group, number);
        true
    }

    /// Tells a client how its call has ended, and forgets it.
    pub(super) fn tell_end(&mut self, group: GroupId, number: RequestNumber, end: RequestEnd) {
        let Some(pending) = self.forget(group, number) else { return };
        self.name_client(group, number, &pending);
        if let Some(client) = pending.waiter.client() {
            self.send(&client, answers::ended(&client, end));
        }
    }
}
