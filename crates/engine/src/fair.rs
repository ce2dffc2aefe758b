//! The queue in front of the order: client addresses take turns in it (deficit round robin).
//!
//! What it is not: bounded; what may wait here is the business of the budgets. Invariants: the
//! requests of one address keep their order; an address with something that may go waits for no
//! more than one turn of each other address.

use crate::window::CallCost;
#[cfg(test)]
use alloc::collections::BTreeSet;
use alloc::collections::{BTreeMap, VecDeque};
#[cfg(test)]
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use quorba_replica::RequestNumber;

/// Payload that costs as much as a call at all does.
const UNIT_BYTES: usize = 16 << 10;
/// What one request costs at most: turns that its address waits for.
const COST_MAX: u32 = 64;

/// Whose requests they are: a client address, or the local servers.
pub(crate) type Source = Option<IpAddr>;

/// What a request of so many bytes costs its address.
pub(crate) fn cost(payload_bytes: usize) -> u32 {
    u32::try_from(1 + payload_bytes / UNIT_BYTES).map_or(COST_MAX, |cost| cost.min(COST_MAX))
}

/// The requests of one address, each with its cost.
#[derive(Default)]
struct Queue {
    waiting: BTreeMap<RequestNumber, u32>,
    credit: u32,
    call_cost: CallCost,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Fair {
    /// Those of addresses that were served lately are kept when they are empty.
    queues: BTreeMap<Source, Queue>,
    /// Addresses with requests that wait; the first has its turn next.
    round: VecDeque<Source>,
    len: usize,
}

impl Fair {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What waits, by address, and the addresses that are remembered.
    #[cfg(test)]
    pub(crate) fn holdings(&self) -> (BTreeMap<Source, Vec<RequestNumber>>, BTreeSet<Source>) {
        let Self { queues, round, len } = self;
        let mut holdings = BTreeMap::new();
        for (source, Queue { waiting, credit, call_cost: _ }) in queues {
            if waiting.is_empty() {
                assert_eq!(*credit, 0, "{source:?} waits for nothing and has saved something up");
            } else {
                holdings.insert(*source, waiting.keys().copied().collect());
            }
        }
        assert_eq!(holdings.values().map(Vec::len).sum::<usize>(), *len);
        let turns: BTreeSet<Source> = round.iter().copied().collect();
        assert!(
            turns.len() == round.len() && turns.iter().eq(holdings.keys()),
            "each has one turn"
        );
        // Local servers are no address that comes and goes.
        (holdings, queues.keys().copied().filter(Option::is_some).collect())
    }

    /// Takes a request in at the place that its number has; once, however often.
    pub(crate) fn push(&mut self, source: Source, number: RequestNumber, cost: u32) {
        let queue = self.queues.entry(source).or_default();
        if queue.waiting.is_empty() {
            self.round.push_back(source);
        }
        self.len += usize::from(queue.waiting.insert(number, cost).is_none());
    }

    /// The request whose turn it is, of those addresses that may have one now, given what their
    /// calls take.
    pub(crate) fn pop(
        &mut self,
        may: impl Fn(Source, CallCost) -> bool,
    ) -> Option<(Source, RequestNumber)> {
        let mut passed_over = 0;
        while passed_over < self.round.len() {
            let source = self.round.pop_front()?;
            if !may(source, self.call_cost(source)) {
                self.round.push_back(source);
                passed_over += 1;
                continue;
            }
            passed_over = 0;
            let is_alone = self.round.is_empty();
            let queue = self.queues.get_mut(&source)?;
            let (number, cost) = queue.waiting.first_key_value().map(|(n, c)| (*n, *c))?;
            queue.credit = if is_alone { cost } else { queue.credit + 1 };
            if queue.credit < cost {
                self.round.push_back(source);
                continue;
            }
            queue.waiting.pop_first();
            // Who waits for nothing saves nothing up.
            queue.credit = 0;
            if !queue.waiting.is_empty() {
                self.round.push_back(source);
            }
            self.len -= 1;
            return Some((source, number));
        }
        None
    }

    /// Puts a request back that had its turn in vain: it is the first again.
    pub(crate) fn put_back(&mut self, source: Source, number: RequestNumber, cost: u32) {
        let queue = self.queues.entry(source).or_default();
        if queue.waiting.is_empty() {
            self.round.push_front(source);
        } else if let Some(at) = self.round.iter().position(|other| *other == source) {
            self.round.remove(at);
            self.round.push_front(source);
        }
        queue.credit = cost;
        self.len += usize::from(queue.waiting.insert(number, cost).is_none());
    }

    /// What the calls of an address take.
    pub(crate) fn call_cost(&self, source: Source) -> CallCost {
        self.queues.get(&source).map(|queue| queue.call_cost).unwrap_or_default()
    }

    /// A call of it took so long, and its reply has so many bytes.
    pub(crate) fn took(&mut self, source: Source, took: Duration, reply_bytes: usize) {
        if let Some(queue) = self.queues.get_mut(&source) {
            queue.call_cost.learn(took, reply_bytes);
        }
    }

    /// The last request of an address that waits.
    pub(crate) fn last_of(&self, source: Source) -> Option<RequestNumber> {
        self.queues.get(&source)?.waiting.last_key_value().map(|(number, _)| *number)
    }

    pub(crate) fn remove(&mut self, source: Source, number: RequestNumber) {
        let Some(queue) = self.queues.get_mut(&source) else { return };
        if queue.waiting.remove(&number).is_none() {
            return;
        }
        self.len -= 1;
        if queue.waiting.is_empty() {
            queue.credit = 0;
            self.round.retain(|other| *other != source);
        }
    }

    /// Nothing waits any more.
    pub(crate) fn clear(&mut self) {
        for queue in self.queues.values_mut() {
            queue.waiting.clear();
            queue.credit = 0;
        }
        self.round.clear();
        self.len = 0;
    }

    /// Addresses of which nothing is known any more are forgotten here, too.
    pub(crate) fn forget_strangers(&mut self, is_known: impl Fn(Source) -> bool) {
        self.queues.retain(|source, queue| !queue.waiting.is_empty() || is_known(*source));
    }

    /// Whether an address is remembered.
    pub(crate) fn remembers_somebody(&self) -> bool {
        !self.queues.is_empty()
    }

    /// The address has no connection any more.
    pub(crate) fn forget(&mut self, source: Source) {
        if self.queues.get(&source).is_some_and(|queue| queue.waiting.is_empty()) {
            self.queues.remove(&source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn address(last: u8) -> Source {
        Some(Ipv4Addr::new(10, 0, 0, last).into())
    }

    fn drain(fair: &mut Fair, count: usize) -> Vec<(Source, u64)> {
        (0..count).map_while(|_| fair.pop(|_, _| true).map(|(s, n)| (s, n.0))).collect()
    }

    #[test]
    fn an_address_with_one_request_waits_for_one_of_each_other_address() {
        let mut fair = Fair::default();
        (0..1000).for_each(|number| fair.push(address(1), RequestNumber(number), 1));
        (1000..2000).for_each(|number| fair.push(address(2), RequestNumber(number), 1));
        drain(&mut fair, 11);
        fair.push(address(3), RequestNumber(5000), 1);
        let next = drain(&mut fair, 3);
        assert!(next.contains(&(address(3), 5000)), "{next:?}");
        assert_eq!(fair.len(), 2001 - 14);
    }

    #[test]
    fn long_requests_count_as_much_as_many_short_ones() {
        let mut fair = Fair::default();
        (0..10).for_each(|number| fair.push(address(1), RequestNumber(number), cost(160 << 10)));
        (10..1000).for_each(|number| fair.push(address(2), RequestNumber(number), cost(100)));
        let served = drain(&mut fair, 66);
        let long = served.iter().filter(|(source, _)| *source == address(1)).count();
        assert!((5..=6).contains(&long), "{long}");
    }

    #[test]
    fn who_may_not_go_holds_nobody_up_and_keeps_its_place() {
        let mut fair = Fair::default();
        fair.push(address(1), RequestNumber(1), 1);
        fair.push(address(2), RequestNumber(2), 1);
        let not_first = |source, _| source != address(1);
        assert_eq!(fair.pop(not_first), Some((address(2), RequestNumber(2))));
        assert_eq!(fair.pop(not_first), None);
        assert_eq!(fair.pop(|_, _| true), Some((address(1), RequestNumber(1))));
        assert!(fair.is_empty());
    }

    #[test]
    fn what_is_put_back_or_comes_again_keeps_its_order() {
        let mut fair = Fair::default();
        (1..=3).for_each(|number| fair.push(address(1), RequestNumber(number), cost(1 << 20)));
        fair.push(address(2), RequestNumber(9), 1);
        let (source, number) = fair.pop(|source, _| source == address(1)).expect("three wait");
        assert_eq!(number, RequestNumber(1));
        fair.put_back(source, number, cost(1 << 20));
        fair.push(source, RequestNumber(1), cost(1 << 20));
        let served = drain(&mut fair, 9);
        assert_eq!(served[0], (address(1), 1));
        assert_eq!(served.len(), 4);
    }

    #[test]
    fn what_is_removed_has_no_turn() {
        let mut fair = Fair::default();
        (1..=2).for_each(|number| fair.push(address(1), RequestNumber(number), 1));
        assert_eq!(fair.last_of(address(1)), Some(RequestNumber(2)));
        fair.remove(address(1), RequestNumber(2));
        fair.remove(address(1), RequestNumber(1));
        assert!(fair.is_empty());
        assert_eq!(fair.pop(|_, _| true), None);
        fair.forget(address(1));
        fair.push(address(1), RequestNumber(3), 1);
        assert_eq!(drain(&mut fair, 2).len(), 1);
    }
}
