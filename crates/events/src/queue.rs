//! What waits for one consumer.
//!
//! A queue has three parts: what the consumer has been given and what must yet be acknowledged (in
//! reliable channels only), what is under way to it, and what waits. What one that pulls was given
//! last is kept beside it ([`Pulled`]).
//!
//! Invariants: it holds no more than its bounds, but for one event of each supplier that was pulled
//! when there was room; what is under way is not dropped; in a reliable channel nothing is, and its
//! order is that of its numbers.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use quorba_base::canary;

use crate::event::{Set, Shared};
use crate::pulled::{Given, Pulled, Puller};
use crate::schedule::Key;

/// How much may wait for one consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLimits {
    /// Sets of events.
    pub sets_max: usize,
    /// Octets. One set may be there in any case.
    pub bytes_max: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        crate::settings::Settings::default().queue
    }
}

/// What has become of the events of one consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Events that it was given.
    pub delivered: u64,
    /// Events that were dropped.
    pub dropped: u64,
    /// Attempts that failed.
    pub failed: u64,
}

/// Octets of events that go together; one event goes in any case. More than that many ORBs refuse
/// unless they are told otherwise (omniORB's `giopMaxMsgSize` is 2 MiB), and who refuses a message
/// for its size would refuse it each time.
const TOGETHER_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Item {
    pub(crate) key: Key,
    pub(crate) number: u64,
    pub(crate) set: Set,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Queue {
    items: VecDeque<Item>,
    /// At the beginning: given, and not acknowledged.
    given: usize,
    /// Behind these: under way.
    flying: usize,
    bytes: usize,
    pulled: Pulled,
    pub(crate) next_number: u64,
    /// The name of the attempt that is under way.
    ticket: Option<u64>,
    /// Until then nothing is tried.
    pub(crate) retry_at: Option<u64>,
    /// Since when every attempt failed.
    pub(crate) failing_since: Option<u64>,
    /// Since when suppliers are told to come again because of it, and it has not pulled.
    pub(crate) holding_since: Option<u64>,
    pub(crate) counters: Counters,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            given: 0,
            flying: 0,
            bytes: 0,
            pulled: Pulled::default(),
            next_number: 1,
            ticket: None,
            retry_at: None,
            failing_since: None,
            holding_since: None,
            counters: Counters::default(),
        }
    }
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Octets of all that is kept for the consumer.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.pulled.bytes()
    }

    /// Octets of what it has not been given.
    pub(crate) const fn waiting_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is room for sets of so many octets together.
    pub(crate) fn has_room(&self, sets: usize, bytes: usize, limits: QueueLimits) -> bool {
        let fits = self.items.len() + sets <= limits.sets_max;
        fits && (self.items.is_empty() || self.bytes.saturating_add(bytes) <= limits.bytes_max)
    }

    /// Puts a set in. `in_order` keeps the order of coming, else the key's counts.
    pub(crate) fn put(&mut self, key: Key, set: Set, in_order: bool) {
        self.bytes = self.bytes.saturating_add(set.bytes());
        let item = Item { key, number: self.next_number, set };
        self.next_number += 1;
        let mut at = self.items.len();
        let first = self.given + self.flying;
        while !in_order
            && at > first
            && self.items.get(at - 1).is_some_and(|before| before.key > key)
        {
            at -= 1;
        }
        self.items.insert(at, item);
        if canary!(PutsNewFirst) && at > first {
            self.swap_last();
        }
    }

    /// A bug that can be planted: the last two sets change places.
    fn swap_last(&mut self) {
        let (Some(mut last), Some(mut before)) = (self.items.pop_back(), self.items.pop_back())
        else {
            return;
        };
        core::mem::swap(&mut last.set, &mut before.set);
        self.items.extend([before, last]);
    }

    fn counted(&mut self, item: &Item) {
        self.bytes = self.bytes.saturating_sub(item.set.bytes());
    }

    /// Drops what has waited longest; false if all that is there is under way.
    pub(crate) fn drop_oldest(&mut self) -> bool {
        let oldest = self.waiting().min_by_key(|(_, item)| item.key.arrival);
        let at = oldest.map(|(at, _)| at);
        self.drop_at(at)
    }

    /// Drops what came last; false if all that is there is under way.
    pub(crate) fn drop_newest(&mut self) -> bool {
        let newest = self.waiting().max_by_key(|(_, item)| item.key.arrival);
        let at = newest.map(|(at, _)| at);
        self.drop_at(at)
    }

    /// What is neither given nor under way, and where it stands.
    fn waiting(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.items.iter().enumerate().skip(self.given + self.flying)
    }

    fn drop_at(&mut self, at: Option<usize>) -> bool {
        let Some(item) = at.and_then(|at| self.items.remove(at)) else { return false };
        self.counted(&item);
        self.counters.dropped += item.set.events().len() as u64;
        true
    }

    /// The place of what would be given next; none if nothing is, or something is under way.
    pub(crate) fn ready(&self) -> Option<Key> {
        if self.flying > 0 || self.retry_at.is_some() {
            return None;
        }
        self.items.get(self.given).map(|item| item.key)
    }

    /// Begins an attempt with what is next: single events together up to a number, and
    /// [`TOGETHER_BYTES_MAX`], what belongs together alone. The number of its first set, and its
    /// events.
    pub(crate) fn take(&mut self, ticket: u64, events_max: usize) -> Option<(u64, Vec<Shared>)> {
        self.ready()?;
        let mut waiting = self.items.range(self.given..);
        let first = waiting.next()?;
        let number = first.number;
        let mut events = Vec::from(first.set.events());
        let mut bytes = first.set.bytes();
        self.flying = 1;
        if matches!(first.set, Set::One(_)) {
            for item in waiting {
                let Set::One(event) = &item.set else { break };
                bytes = bytes.saturating_add(event.bytes);
                if events.len() >= events_max || bytes > TOGETHER_BYTES_MAX {
                    break;
                }
                events.push(event.clone());
                self.flying += 1;
            }
        }
        self.ticket = Some(ticket);
        Some((number, events))
    }

    /// Whether that attempt is under way.
    pub(crate) fn is_under_way(&self, ticket: u64) -> bool {
        self.ticket == Some(ticket)
    }

    /// Ends the attempt of that name: whether it was under way.
    fn ends(&mut self, ticket: u64) -> bool {
        let is_it = self.ticket == Some(ticket);
        if is_it {
            self.ticket = None;
        }
        is_it
    }

    /// The consumer has it. What it has is kept until it is acknowledged if `keeps`; the last
    /// number that it has, and when that came.
    pub(crate) fn taken(&mut self, ticket: u64, keeps: bool) -> Option<(u64, u64)> {
        if !self.ends(ticket) || self.flying == 0 {
            return None;
        }
        let end = self.given + core::mem::take(&mut self.flying);
        self.failing_since = None;
        let given = self.items.range(self.given..end);
        self.counters.delivered += given.map(|item| item.set.events().len() as u64).sum::<u64>();
        let last = self.items.get(end - 1).map(|item| (item.number, item.set.came()));
        if keeps {
            self.given = if canary!(PushesTwice) { self.given } else { end };
        } else {
            for _ in 0..end {
                if let Some(item) = self.items.pop_front() {
                    self.counted(&item);
                }
            }
        }
        last
    }

    /// The attempt failed: what was under way waits again.
    pub(crate) fn failed(&mut self, ticket: u64) -> bool {
        let is_it = self.ends(ticket);
        if is_it {
            self.flying = 0;
            self.counters.failed += 1;
        }
        is_it
    }

    /// The attempt failed, and what was under way is not tried again: the consumer may have it.
    pub(crate) fn left_off(&mut self, ticket: u64) -> bool {
        let is_it = self.ends(ticket);
        if is_it {
            self.counters.failed += 1;
            self.leave_off();
        }
        is_it
    }

    /// The consumer is connected anew, and is called at once; `is_other`: it is somewhere else.
    /// What is under way to where it was waits again if `keeps`; else it may have that, and is not
    /// given it twice.
    pub(crate) fn connect_again(&mut self, is_other: bool, keeps: bool) {
        (self.retry_at, self.failing_since, self.holding_since) = (None, None, None);
        if is_other && self.ticket.take().is_some() {
            self.counters.failed += 1;
            if keeps {
                self.flying = 0;
            } else {
                self.leave_off();
            }
        }
    }

    fn leave_off(&mut self) {
        for _ in 0..core::mem::take(&mut self.flying) {
            if let Some(item) = self.items.remove(self.given) {
                self.counted(&item);
            }
        }
    }

    /// Everything up to a number is there.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        while self.items.front().is_some_and(|item| item.number <= number) {
            let Some(item) = self.items.pop_front() else { return };
            self.counted(&item);
            if self.given > 0 {
                self.given -= 1;
            } else if self.flying > 0 {
                self.flying -= 1;
                if self.flying == 0 {
                    self.ticket = None;
                }
            }
        }
    }

    /// The same of a set that was given to the consumer, and came then: if that number is another
    /// one's here, the member that gave it was cut off with what nobody else has.
    pub(crate) fn acknowledge_taken(&mut self, number: u64, came: u64) {
        let at = self.items.binary_search_by_key(&number, |item| item.number);
        let item = at.ok().and_then(|at| self.items.get(at));
        if item.is_some_and(|item| item.set.came() == came) {
            self.acknowledge(number);
        }
    }

    /// Takes out what is next at once, for a consumer that pulls. `to`, in a reliable channel: who
    /// may have to be given again what another one has not seen.
    pub(crate) fn pull(&mut self, to: Option<Puller>) -> Option<Item> {
        self.holding_since = None;
        if to.is_none() && canary!(LeavesWhatIsPulled) {
            return self.items.front().cloned();
        }
        let Some(to) = to else { return self.pull_next() };
        let mut pulled = core::mem::take(&mut self.pulled);
        let item = pulled.pull(to, || self.pull_next());
        self.pulled = pulled;
        item
    }

    fn pull_next(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.counted(&item);
        self.counters.delivered += item.set.events().len() as u64;
        Some(item)
    }

    /// Nothing is under way from here any more, and nothing was given: somebody else was the
    /// leader.
    pub(crate) fn start_over(&mut self) {
        (self.given, self.flying, self.ticket, self.retry_at) = (0, 0, None, None);
        self.failing_since = None;
    }

    /// What is there, for a state.
    pub(crate) fn items(&self) -> impl ExactSizeIterator<Item = &Item> {
        self.items.iter()
    }

    /// What those were given that pull, for a state.
    pub(crate) fn pulled(&self) -> &[Given] {
        self.pulled.given()
    }

    /// Puts in what a state says of them.
    pub(crate) fn restore_pulled(&mut self, pulled: Pulled) {
        self.pulled = pulled;
    }

    /// Puts in what a state says.
    pub(crate) fn restore(&mut self, item: Item) {
        self.bytes = self.bytes.saturating_add(item.set.bytes());
        self.items.push_back(item);
    }
}
