//! Reads: operations that change nothing go to a member past the order, or into it if none can
//! take them.
//!
//! What it is not: why that is right, which is `quorba_replica`'s module of the same name.
//! Invariants: a mark is safe when a request submitted in its place would be; a read is with the
//! replica or in the queue of what is to be ordered, never in both.

use super::poison::is_left;
use super::{Gateway, GroupBook, Submission};
use crate::fair::cost;
use crate::pending::{Kind, Message, Outcome, Stage};
use alloc::collections::VecDeque;
use bytes::Bytes;
use quorba_giop::Request;
use quorba_order::Ticket;
use quorba_replica::{
    Ack, Availability, Backlog, GroupId, RequestEnd, RequestEnvelope, RequestNumber,
};

/// A read for the replica.
pub(crate) struct Read {
    pub(crate) group: GroupId,
    pub(crate) number: RequestNumber,
    pub(crate) giop: Bytes,
    pub(crate) code_sets: Option<Bytes>,
}

/// Marks on their way through the order; a mark's number is its own, not a request's.
#[derive(Default)]
pub(crate) struct Marks {
    to_submit: VecDeque<Submission>,
    awaiting: VecDeque<(Ticket, GroupId, RequestNumber)>,
    safe: VecDeque<(GroupId, u64)>,
}

impl Marks {
    /// How many there are at each step.
    #[cfg(test)]
    pub(super) fn holdings(&self) -> [usize; 3] {
        let Self { to_submit, awaiting, safe } = self;
        [to_submit.len(), awaiting.len(), safe.len()]
    }
}

impl Gateway {
    /// Whether a call of this group is a read. Nobody waits for a oneway's reply.
    pub(super) fn is_read(&self, group: GroupId, request: &Request<'_>) -> bool {
        let rules = &self.groups[group].rules;
        request.response_expected() && rules.reads.has(request.operation(), request.object_key())
    }

    /// The next read that somebody can take; if nobody can, it joins the requests, and so does a
    /// question about a call that was ordered before. Client addresses take turns, as in front of
    /// the order.
    pub(crate) fn next_read(
        &mut self,
        available: impl Fn(GroupId) -> Availability,
        can_read: impl Fn(GroupId) -> bool,
        is_known: impl Fn(&RequestEnvelope) -> bool,
    ) -> Option<Read> {
        let mut next = self.groups.busy().first().copied();
        while let Some(group) = next {
            next = self.groups.busy_behind(group);
            let books = &self.groups[group];
            if books.reads.is_empty() || available(group) != Availability::Ready {
                continue;
            }
            while self.groups[group].read_window.has_room(Backlog::default())
                && let Some(number) = self.next_of_reads(group)
            {
                if self.is_needless(group, number) {
                    continue;
                }
                let books = &mut self.groups[group];
                match books.book.get(number).filter(|pending| pending.is_read()) {
                    Some(pending) if can_read(group) => {
                        let is_named = pending.asks() && pending.request.ft.is_some();
                        let is_again = is_named && is_known(&pending.request);
                        let giop = pending.past_the_order(books.rules.reads.waits());
                        let code_sets = pending.request.code_sets.clone();
                        if let Some(giop) = giop.filter(|_| !is_again) {
                            self.enters(group, number);
                            return Some(Read { group, number, giop, code_sets });
                        }
                        books.order_read(number);
                    }
                    _ => self.order_instead(group, number),
                }
            }
        }
        None
    }

    fn next_of_reads(&mut self, group: GroupId) -> Option<RequestNumber> {
        loop {
            let (books, peers) = (&mut self.groups[group], &self.peers);
            let window = &books.read_window;
            let (_, number) =
                books.reads.pop(|source, taken| peers.let_in(window, source, taken))?;
            let Some(pending) = books.book.get(number) else { continue };
            let (id, left) = (pending.connection, pending.deadline.since(self.now));
            if !books.read_window.answers_within(left) {
                // Its client would be told so before the reply came, and others would wait for it.
                continue;
            }
            if !self.leaves_replies(id) {
                return Some(number);
            }
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.aside.push((group, number));
            }
        }
    }

    /// What came of a read, or of a call to a stateless group; `None`: nothing, and if it `ended`
    /// the process of the server that had it, it is tried once more. What nobody waits for any more
    /// is not: nobody was promised that it would be executed, and it would keep servers from calls
    /// that somebody waits for.
    pub(crate) fn read(
        &mut self,
        group: GroupId,
        number: RequestNumber,
        giop: Option<Bytes>,
        ended: bool,
    ) {
        if giop.is_some() || !self.is_given_back(group, number) {
            self.ends(group, number, giop.as_ref().map_or(0, Bytes::len));
        }
        if giop.as_ref().is_some_and(|reply| self.keeps(group, number, reply)) {
            return;
        }
        let books = self.group(group);
        let Some(pending) = books.book.get_mut(number) else { return };
        if pending.is_oneway() {
            // Its client waits for nothing, and nobody knows whether it was executed.
            self.forget(group, number);
            return;
        }
        if ended && self.process_ended(group, number) && giop.is_none() {
            return self.tell_end(group, number, RequestEnd::EndsServers);
        }
        let books = self.group(group);
        let Some(pending) = books.book.get_mut(number) else { return };
        let Some(giop) = giop else {
            if is_left(pending) {
                self.forget(group, number);
                return;
            }
            match pending.message_mut() {
                None => self.order_instead(group, number),
                Some(message) => {
                    message.order_next = !message.order_next;
                    pending.stage = Stage::Unsubmitted;
                    self.park(group, number);
                }
            }
            return;
        };
        let is_read = pending.is_read();
        if is_read || pending.stage == Stage::Called {
            // The replica waits for what the group asks, disks and all.
            pending.stage = Stage::Settled;
        }
        if !matches!(pending.outcome, Outcome::Ended { .. }) {
            pending.outcome = Outcome::Reply(giop);
        }
        books.counters.reads += u64::from(is_read);
        self.release(group, number);
    }

    /// Nobody has executed it, so nothing is learnt. Whether it is a read.
    fn is_given_back(&mut self, group: GroupId, number: RequestNumber) -> bool {
        let GroupBook { book, read_window, given_up, .. } = self.group(group);
        let pending = book.get_mut(number).filter(|pending| pending.is_read());
        let is_read = pending.is_some() || given_up.contains_key(&number);
        let entered = pending.and_then(|pending| pending.entered.take());
        let entered = entered.or_else(|| given_up.remove(&number).map(|(_, entered)| entered));
        if let Some(entered) = entered.filter(|_| is_read) {
            read_window.leave(entered);
        }
        is_read
    }

    /// A server's process had ended at it; it is with another one already.
    pub(crate) fn read_ended(&mut self, group: GroupId, number: RequestNumber) {
        if self.process_ended(group, number) {
            self.tell_end(group, number, RequestEnd::EndsServers);
        }
    }

    /// Whether it goes through the order even if it could be handed to a member.
    pub(crate) fn is_to_be_ordered(&mut self, submission: &Submission) -> bool {
        let pending = self.group(submission.group).book.get_mut(submission.number);
        pending.and_then(|pending| pending.message()).is_some_and(|message| message.order_next)
    }

    /// Whether nobody waits for what becomes of it.
    pub(crate) fn is_oneway(&mut self, submission: &Submission) -> bool {
        let pending = self.group(submission.group).book.get_mut(submission.number);
        pending.is_none_or(|pending| pending.is_oneway())
    }

    /// What it asks.
    pub(crate) fn asked(&self, submission: &Submission) -> Option<&RequestEnvelope> {
        let pending = self.groups[submission.group].book.get(submission.number)?;
        Some(&pending.request)
    }

    /// The replica has handed the request to a member of a stateless group.
    pub(crate) fn called(&mut self, submission: &Submission) {
        let Submission { group, number, .. } = *submission;
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        pending.submissions += 1;
        pending.stage = Stage::Called;
        self.enters(group, number);
    }

    // -- marks ------------------------------------------------------------------------------

    /// The replica wants a mark.
    pub(crate) fn mark(&mut self, group: GroupId, number: u64, payload: Bytes) {
        let number = RequestNumber(number);
        self.marks.to_submit.push_back(Submission { group, number, payload });
    }

    /// The next mark to submit; [`Self::mark_submitted`] follows if the order takes it.
    pub(crate) fn next_mark(&self) -> Option<&Submission> {
        self.marks.to_submit.front()
    }

    pub(crate) fn mark_submitted(&mut self, ticket: Ticket) {
        let Some(Submission { group, number, .. }) = self.marks.to_submit.pop_front() else {
            return;
        };
        self.marks.awaiting.push_back((ticket, group, number));
        self.judge_marks();
    }

    /// What is known to be held has changed.
    pub(super) fn judge_marks(&mut self) {
        let (held, all) = (self.held, self.held.min(self.stable));
        let Marks { awaiting, safe, .. } = &mut self.marks;
        awaiting.retain(|(ticket, group, number)| {
            let is_safe = match self.groups[*group].rules.ack {
                Ack::Majority => held >= Some(*ticket),
                Ack::Safe => all >= Some(*ticket),
                Ack::Agreed => true,
            };
            if is_safe {
                safe.push_back((*group, number.0));
            }
            !is_safe
        });
    }

    /// A mark that is as safe as its group asks.
    pub(crate) fn next_safe_mark(&mut self) -> Option<(GroupId, u64)> {
        self.marks.safe.pop_front()
    }

    /// A view is over: its marks count for nothing.
    pub(super) fn forget_marks_of(&mut self, group: GroupId) {
        let Marks { to_submit, awaiting, safe } = &mut self.marks;
        to_submit.retain(|mark| mark.group != group);
        awaiting.retain(|(_, of, _)| *of != group);
        safe.retain(|(of, _)| *of != group);
    }

    pub(super) fn forget_marks(&mut self) {
        self.marks = Marks::default();
    }
}

impl GroupBook {
    /// A read becomes a request like any other.
    pub(super) fn order_read(&mut self, number: RequestNumber) {
        let released = self.book.released();
        let Some(pending) = self.book.get_mut(number) else { return };
        if !pending.is_read() {
            return;
        }
        pending.request.released = released;
        pending.request.ended_process = pending.process_ends > 0;
        pending.kind = Kind::Request(Message::new(pending.request.payload()));
        let (source, cost) = (pending.source, cost(pending.bytes()));
        self.parked.push(source, number, cost);
    }
}
