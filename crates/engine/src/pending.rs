//! Requests that this gateway took in and has not answered: one book per group.
//!
//! Invariant: numbers count up; everything below [`Book::lowest`] is answered for good, and so is
//! what [`Book::released`] names besides; members are told so that they can forget the replies.

use crate::fair::Source;
use crate::output::ConnectionId;
use crate::window::Entered;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;
use quorba_giop::{Endian, Version};
use quorba_order::Ticket;
use quorba_replica::{CallKey, Released, RequestEnd, RequestEnvelope, RequestNumber};

/// So many requests may be answered behind the oldest open one before members are told of each.
const LAG_MAX: u64 = 64;

/// Members are told of each reply that is longer.
const LARGE_BYTES: usize = 16 << 10;

/// Who waits for a reply, and how it wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) connection: ConnectionId,
    pub(crate) request_id: u32,
    pub(crate) version: Version,
    pub(crate) endian: Endian,
}

/// Whether promise 1 holds for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Safety {
    /// It has not been submitted since the last view change.
    Unsubmitted,
    /// Submitted as this message; not safe yet.
    Awaiting(Ticket),
    /// Safe.
    Reached,
}

/// Whether a request has ended without a reply of a server. How was decided behind it in the order,
/// so that this must be safe, too, before anybody is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum End {
    /// It has not, as far as is known.
    #[default]
    Open,
    /// It has, and the reply says how, or this does.
    Known(Option<RequestEnd>),
    /// The same, and what was ordered since is awaited.
    Awaited(Option<RequestEnd>),
}

/// One request.
#[derive(Debug)]
pub(crate) struct Pending {
    /// `None`: a oneway, or the client cancelled it or went away.
    pub(crate) client: Option<Client>,
    /// Whose it is, whatever becomes of its client. Nothing is charged for local servers.
    pub(crate) source: Source,
    /// The connection on which it came.
    pub(crate) connection: ConnectionId,
    /// Bytes that its address is charged for it.
    pub(crate) charged: usize,
    /// It is in the order, or behind it.
    pub(crate) entered: Option<Entered>,
    /// The message for the order, kept so that it can be submitted again.
    pub(crate) payload: Bytes,
    /// A read that has not become a request to be ordered; it has no payload.
    pub(crate) read: Option<RequestEnvelope>,
    /// It is a call of the local server, under this name.
    pub(crate) nested: Option<CallKey>,
    /// It is a call to a server outside, which this node makes as soon as it is safe: so many tries
    /// were in doubt.
    pub(crate) goes_abroad: Option<u32>,
    /// Server processes that have ended while they executed it past the order.
    pub(crate) process_ends: u8,
    /// What becomes of it is safe only on disk.
    pub(crate) durable: bool,
    /// It does not wait any longer for somebody to take it: the order decides what becomes of it.
    pub(crate) insists: bool,
    pub(crate) oneway: bool,
    /// A member of a stateless group has it.
    pub(crate) called: bool,
    /// It was given back, and what did not go one way goes the other: through the order.
    pub(crate) order_next: bool,
    pub(crate) safety: Safety,
    /// A majority has it on disk, or need not.
    pub(crate) logged: bool,
    /// Submissions that may have been executed.
    pub(crate) submissions: u32,
    pub(crate) reply: Option<Bytes>,
    pub(crate) end: End,
    pub(crate) deadline: Instant,
    /// Until when it may wait for somebody to take it.
    pub(crate) wait_until: Instant,
}

impl Pending {
    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        let read = self.read.as_ref().map_or(0, |read| read.giop.len());
        self.payload.len() + read
    }

    /// Whether it is known what its client is told.
    pub(crate) fn has_answer(&self) -> bool {
        self.reply.is_some() || matches!(self.end, End::Known(Some(_)) | End::Awaited(Some(_)))
    }

    /// It waits for no turn, and is ordered in the end even if nobody is there to take it.
    pub(crate) fn goes_with_calls(&self) -> bool {
        self.nested.is_some() || self.end != End::Open
    }

    /// Whether the group may have executed it.
    pub(crate) fn may_be_executed(&self) -> bool {
        self.submissions > 0
    }
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Book {
    /// In boxes: the oldest goes first, and what stands behind it in the tree moves up each time.
    pending: BTreeMap<RequestNumber, Box<Pending>>,
    last: u64,
    /// Answered far behind the oldest open one, or at length, and members were not told.
    answered: BTreeSet<RequestNumber>,
    /// Bytes of replies that members may keep because they were not told.
    unreleased_bytes: usize,
}

impl Book {
    /// The number that the next request gets.
    pub(crate) fn next(&self) -> RequestNumber {
        RequestNumber(self.last + 1)
    }

    /// Everything below is answered.
    pub(crate) fn lowest(&self) -> RequestNumber {
        self.pending.keys().next().copied().unwrap_or_else(|| self.next())
    }

    /// What the next request tells the members.
    pub(crate) fn released(&mut self) -> Released {
        let below = self.lowest();
        let mut also = Vec::new();
        while let Some(number) = self.answered.first().copied()
            && (number < below || also.len() < Released::ALSO_MAX)
        {
            self.answered.pop_first();
            if number > below {
                also.push(number);
            }
        }
        Released { below, also }
    }

    /// Bytes of replies that members may keep although they are answered.
    pub(crate) const fn unreleased_bytes(&self) -> usize {
        self.unreleased_bytes
    }

    /// What members are told now, without a request. It may take several to tell all.
    pub(crate) fn announce(&mut self) -> Released {
        let released = self.released();
        if self.answered.is_empty() {
            self.unreleased_bytes = 0;
        }
        released
    }

    pub(crate) fn add(&mut self, pending: Pending) -> RequestNumber {
        let number = self.next();
        self.last = number.0;
        self.pending.insert(number, Box::new(pending));
        number
    }

    pub(crate) fn get(&self, number: RequestNumber) -> Option<&Pending> {
        self.pending.get(&number).map(Box::as_ref)
    }

    pub(crate) fn get_mut(&mut self, number: RequestNumber) -> Option<&mut Pending> {
        self.pending.get_mut(&number).map(Box::as_mut)
    }

    pub(crate) fn remove(&mut self, number: RequestNumber) -> Option<Box<Pending>> {
        let pending = self.pending.remove(&number)?;
        let reply_bytes = pending.reply.as_ref().map_or(0, Bytes::len);
        self.unreleased_bytes += reply_bytes;
        let lag = if reply_bytes > LARGE_BYTES { 0 } else { LAG_MAX };
        if number.0 > self.lowest().0.saturating_add(lag) {
            self.answered.insert(number);
        }
        Some(pending)
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Numbers of answered requests that members are to be told of.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<RequestNumber> {
        // What members keep is theirs.
        let Self { pending: _, last: _, answered, unreleased_bytes: _ } = self;
        answered.iter().copied().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestNumber, &Pending)> {
        self.pending.iter().map(|(number, pending)| (*number, &**pending))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (RequestNumber, &mut Pending)> {
        self.pending.iter_mut().map(|(number, pending)| (*number, &mut **pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn pending() -> Pending {
        Pending {
            client: None,
            source: None,
            connection: ConnectionId(0),
            charged: 0,
            entered: None,
            payload: Bytes::new(),
            read: None,
            nested: None,
            insists: false,
            oneway: true,
            called: false,
            order_next: false,
            safety: Safety::Unsubmitted,
            logged: true,
            durable: false,
            goes_abroad: None,
            process_ends: 0,
            submissions: 0,
            reply: None,
            end: End::Open,
            deadline: Instant::ZERO,
            wait_until: Instant::ZERO,
        }
    }

    /// The first call never ends, and its gateway takes 10,000 more.
    #[test]
    fn a_call_that_takes_long_does_not_keep_what_is_answered_behind_it() {
        let mut book = Book::default();
        book.add(pending());
        let mut kept: BTreeSet<RequestNumber> = BTreeSet::new();
        for _ in 0..10_000 {
            let released = book.released();
            assert_eq!(released.below, RequestNumber(1));
            assert!(released.also.len() <= Released::ALSO_MAX);
            released.also.iter().for_each(|number| assert!(kept.remove(number)));
            let number = book.add(pending());
            kept.insert(number);
            assert!(book.remove(number).is_some());
        }
        assert!(kept.len() <= LAG_MAX as usize + 1, "{}", kept.len());
        book.remove(RequestNumber(1));
        let all = Released { below: book.next(), also: vec![] };
        assert_eq!(book.released(), all);
    }
}
