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
use crate::pending::{End, Pending, Safety};
use alloc::vec::Vec;
use quorba_base::NodeId;
use quorba_replica::{Ack, GroupId, RequestEnd, RequestEnvelope, RequestKey, RequestNumber};

impl Gateway {
    /// The reply that comes now says how the call has ended.
    pub(crate) fn reply_tells_end(&mut self, group: GroupId, number: RequestNumber) {
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        if pending.end == End::Open {
            pending.end = End::Known(None);
        }
    }

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
                    let request = RequestEnvelope::from_payload(pending.payload.clone());
                    let own = request.map(|request| request.key(me.0, me.1));
                    own.is_some_and(|own| own == *key && key.is_repeated_by(&own))
                };
                let found = self.group(group).book.iter().filter(is_it);
                found.map(|(number, _)| number).collect()
            }
        };
        for number in numbers {
            let Some(pending) = self.group(group).book.get_mut(number) else { continue };
            if matches!(pending.end, End::Awaited(_)) {
                continue;
            }
            pending.end = End::Known(Some(end));
            if pending.safety == Safety::Unsubmitted {
                self.await_end(group, number, Some(end));
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
        match books.book.get(number)?.end {
            End::Known(end) if !at_once => {
                self.await_end(group, number, end);
                Some(false)
            }
            End::Known(Some(end)) | End::Awaited(Some(end)) => {
                self.tell_end(group, number, end);
                Some(true)
            }
            End::Open | End::Known(None) | End::Awaited(None) => None,
        }
    }

    /// The request is ordered once more, behind its end.
    fn await_end(&mut self, group: GroupId, number: RequestNumber, end: Option<RequestEnd>) {
        let books = self.group(group);
        let Some(pending) = books.book.get_mut(number) else { return };
        pending.end = End::Awaited(end);
        // It needs no turn, and takes nobody's.
        if let Some(entered) = pending.entered.take() {
            books.window.leave(entered);
        } else if pending.nested.is_none() {
            books.parked.remove(pending.source, number);
        }
        pending.safety = Safety::Unsubmitted;
        pending.logged = !pending.durable;
        pending.insists = true;
        if !books.calls.contains(&number) {
            books.calls.push_back(number);
        }
    }

    /// Whether a request was to be ordered only for its end to be safe, which it is: in a group
    /// without an order nothing more can be known.
    pub(crate) fn is_over(&mut self, group: GroupId, number: RequestNumber) -> bool {
        let Some(pending) = self.group(group).book.get_mut(number) else { return true };
        if !matches!(pending.end, End::Awaited(_)) {
            return false;
        }
        (pending.safety, pending.logged) = (Safety::Reached, true);
        self.release(group, number);
        true
    }

    /// Tells a client how its call has ended, and forgets it.
    pub(super) fn tell_end(&mut self, group: GroupId, number: RequestNumber, end: RequestEnd) {
        let Some(pending) = self.forget(group, number) else { return };
        self.name_client(group, number, &pending);
        if let Some(client) = pending.client {
            self.send(&client, answers::ended(&client, end));
        }
    }
}
