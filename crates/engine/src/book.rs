//! Requests that this gateway took in and has not answered: one book per group.
//!
//! Invariant: numbers count up; everything below [`Book::lowest`] is answered for good, and so is
//! what [`Book::released`] names besides; members are told so that they can forget the replies.

use crate::pending::Pending;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_replica::{Released, RequestNumber};

/// So many requests may be answered behind the oldest open one before members are told of each.
const LAG_MAX: u64 = 64;

/// Members are told of each reply that is longer.
const LARGE_BYTES: usize = 16 << 10;

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
        let reply_bytes = pending.outcome.reply().map_or(0, Bytes::len);
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
    pub(crate) fn holdings(&self) -> Vec<RequestNumber> {
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
    use crate::output::ConnectionId;
    use crate::pending::{Depth, Disks, Executed, Kind, Message, Outcome, Stage, Waiter};
    use alloc::vec;
    use quorba_base::Instant;
    use quorba_replica::{GroupId, RequestEnvelope};

    fn pending() -> Pending {
        Pending {
            request: RequestEnvelope {
                group: GroupId(0),
                number: RequestNumber(1),
                released: Released { below: RequestNumber(1), also: vec![] },
                stamp: 0,
                ft: None,
                nested: None,
                ended_process: false,
                code_sets: None,
                giop: Bytes::new(),
            },
            kind: Kind::Request(Message::new(Bytes::new())),
            waiter: Waiter::Nobody,
            source: None,
            connection: ConnectionId(0),
            charged: 0,
            entered: None,
            stage: Stage::Unsubmitted,
            depth: Depth::default(),
            demand: None,
            is_short: false,
            disks: Disks::NotAsked,
            executed: Executed::NotAsked,
            submissions: 0,
            process_ends: 0,
            outcome: Outcome::Open,
            deadline: Instant::ZERO,
            wait_until: Instant::ZERO,
            wait: None,
        }
    }

    /// The first call never ends, and its gateway takes 10,000 more.
    #[test]
    fn a_call_that_takes_long_does_not_keep_what_is_answered_behind_it() {
        let mut book = Book::default();
        book.add(pending());
        let mut holdings: BTreeSet<RequestNumber> = BTreeSet::new();
        for _ in 0..10_000 {
            let released = book.released();
            assert_eq!(released.below, RequestNumber(1));
            assert!(released.also.len() <= Released::ALSO_MAX);
            released.also.iter().for_each(|number| assert!(holdings.remove(number)));
            let number = book.add(pending());
            holdings.insert(number);
            assert!(book.remove(number).is_some());
        }
        assert!(holdings.len() <= LAG_MAX as usize + 1, "{}", holdings.len());
        book.remove(RequestNumber(1));
        let all = Released { below: book.next(), also: vec![] };
        assert_eq!(book.released(), all);
    }
}
