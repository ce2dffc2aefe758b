//! What a consumer that pulls was given last, in a reliable channel.
//!
//! The standard has no acknowledgement for a pull. Who pulls through a gateway may never see the
//! reply if the gateway ends, and then pulls through another one. So the last event of each caller
//! is kept until that caller pulls again, and is given again to another caller that pulls.
//!
//! Two consumers that share one proxy, and pull through two gateways, look the same at first. So a
//! caller that comes back after its event was given to another one is not taken for gone again
//! while others pull, unless it stays away for [`AWAY`], or has pulled [`ALONE`] times with nobody
//! between.
//!
//! Invariants: a function of the ordered calls and their times; it keeps one event of a caller, and
//! of [`CALLERS_MAX`] callers.

use alloc::vec::Vec;

use crate::queue::Item;

/// Callers of one proxy that are remembered.
const CALLERS_MAX: usize = 8;
/// Who shares a proxy with others and has not pulled for so long may be gone: 10 s, in 100 ns.
const AWAY: u64 = 100_000_000;

/// Who has pulled so often while nobody else did does not share its proxy.
const ALONE: u32 = 4;

/// Whose call it is, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Puller {
    /// As the order tells it.
    pub(crate) caller: u64,
    pub(crate) now: u64,
}

/// One that has pulled.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Given {
    pub(crate) to: Puller,
    /// What it was given last, if that has not been given to another one since.
    pub(crate) item: Option<Item>,
    /// It has come back after that.
    pub(crate) shares: bool,
    /// Its last pulls between which nobody else pulled; [`ALONE`] at most.
    pub(crate) run: u32,
}

/// See the module's text. The oldest comes first.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Pulled(Vec<Given>);

impl Pulled {
    /// What one that pulls is given: what another one may not have seen, or else what is next.
    pub(crate) fn pull(&mut self, to: Puller, next: impl FnOnce() -> Option<Item>) -> Option<Item> {
        let own = self.0.iter().position(|given| given.to.caller == to.caller);
        let was_last = own.is_some_and(|at| at + 1 == self.0.len());
        let own = own.map(|at| self.0.remove(at));
        let was_passed_on = own.as_ref().is_some_and(|own| own.item.is_none());
        let is_away = |given: &Given| to.now.saturating_sub(given.to.now) >= AWAY;
        let has_others = !self.0.iter().all(is_away);
        let before = own.as_ref().filter(|_| was_last).map_or(0, |own| own.run);
        let run = ALONE.min(before + 1);
        let did_share = was_passed_on || own.is_some_and(|own| own.shares);
        let shares = has_others && did_share && run < ALONE;
        let is_missed = |given: &Given| given.item.is_some() && (!given.shares || is_away(given));
        let missed = self.0.iter_mut().find(|given| is_missed(given));
        let item = match missed {
            Some(given) => given.item.take(),
            None => next(),
        };
        if let Some(item) = &item {
            self.remember(Given { to, item: Some(item.clone()), shares, run });
        } else if shares {
            self.remember(Given { to, item: None, shares, run });
        }
        item
    }

    fn remember(&mut self, given: Given) {
        if self.0.len() >= CALLERS_MAX {
            let empty = self.0.iter().position(|given| given.item.is_none());
            self.0.remove(empty.unwrap_or(0));
        }
        self.0.push(given);
    }

    /// Octets of what is kept.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().filter_map(|given| given.item.as_ref()).map(|item| item.set.bytes()).sum()
    }

    /// What is there, for a state.
    pub(crate) fn given(&self) -> &[Given] {
        &self.0
    }

    /// Puts in what a state says; false if it is more than can be.
    pub(crate) fn restore(&mut self, given: Given) -> bool {
        let is_new = self.0.iter().all(|other| other.to.caller != given.to.caller);
        let fits = is_new && self.0.len() < CALLERS_MAX && given.run <= ALONE;
        if fits {
            self.0.push(given);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Set, plain, shared};
    use crate::filter::Header;
    use crate::schedule::Key;
    use alloc::vec;

    /// Pulls with the events 1, 2, 3 and so on.
    struct Stage {
        pulled: Pulled,
        next: u64,
        now: u64,
    }

    impl Stage {
        fn new() -> Self {
            Self { pulled: Pulled::default(), next: 1, now: 0 }
        }

        fn pull(&mut self, caller: u64) -> u64 {
            let number = self.next;
            let next = &mut self.next;
            let item = self.pulled.pull(Puller { caller, now: self.now }, || {
                *next += 1;
                let event = shared(plain(Header { event_type: 1, source: 1 }, 1, 0));
                Some(Item { key: Key::default(), number, set: Set::One(event) })
            });
            item.expect("there is always one more").number
        }
    }

    #[test]
    fn what_the_last_gateway_may_have_lost_is_given_again_once() {
        let mut stage = Stage::new();
        assert_eq!([7, 7, 7].map(|caller| stage.pull(caller)), [1, 2, 3]);
        assert_eq!([8, 8, 8].map(|caller| stage.pull(caller)), [3, 4, 5], "3 comes again");
        // Both gateways end.
        assert_eq!([9, 9].map(|caller| stage.pull(caller)), [5, 6]);
    }

    #[test]
    fn what_is_given_again_and_lost_again_is_given_once_more() {
        let mut stage = Stage::new();
        assert_eq!([1, 2, 3, 3].map(|caller| stage.pull(caller)), [1, 1, 1, 2]);
    }

    #[test]
    fn two_that_share_a_proxy_are_given_each_event_once_behind_the_first() {
        let mut stage = Stage::new();
        let mut told = vec![0; 40];
        for turn in 0..30 {
            let number = stage.pull(1 + turn % 2);
            told[number as usize] += 1;
        }
        assert!(told[1..27].iter().all(|times| *times >= 1), "nothing is left out: {told:?}");
        assert!(told[4..].iter().all(|times| *times <= 1), "{told:?}");
        // One of the two ends. Its last event is given again when it has been away for long.
        let last = stage.pull(1);
        assert_eq!(stage.pull(2), last + 1);
        stage.now += AWAY;
        assert_eq!(stage.pull(2), last);
    }

    #[test]
    fn who_goes_to_and_fro_and_stays_for_a_while_is_alone() {
        let mut stage = Stage::new();
        // One consumer, whose gateway ends again and again: each time its last event was lost.
        let mut last = stage.pull(1);
        for caller in [2, 1, 2, 1, 3, 1] {
            assert_eq!(stage.pull(caller), last, "at {caller}");
            last = (0..ALONE).map(|_| stage.pull(caller)).last().expect("some");
        }
    }

    #[test]
    fn who_went_to_and_fro_once_is_given_its_last_event_again_later() {
        let mut stage = Stage::new();
        assert_eq!([1, 2, 1, 1].map(|caller| stage.pull(caller)), [1, 1, 1, 2]);
        stage.now += AWAY;
        assert_eq!([1, 1].map(|caller| stage.pull(caller)), [3, 4]);
        // Now the first gateway ends.
        assert_eq!([3, 3].map(|caller| stage.pull(caller)), [4, 5]);
    }

    #[test]
    fn of_many_callers_the_oldest_are_forgotten() {
        let mut stage = Stage::new();
        for caller in 1..100 {
            assert_eq!(stage.pull(caller), 1);
        }
        assert_eq!(stage.pulled.given().len(), CALLERS_MAX);
    }
}
