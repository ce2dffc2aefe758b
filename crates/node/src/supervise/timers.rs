//! When something is due next, for each of many.
//!
//! Invariant: of each there is one time at most, the one that was set last.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Instant;

/// See the module's text.
pub(super) struct Timers<K> {
    by_time: BTreeSet<(Instant, K)>,
    of: HashMap<K, Instant>,
}

impl<K: Copy + Ord + Hash> Timers<K> {
    pub(super) fn new() -> Self {
        Self { by_time: BTreeSet::new(), of: HashMap::new() }
    }

    /// `None`: never.
    pub(super) fn set(&mut self, of: K, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.of.insert(of, at),
            None => self.of.remove(&of),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, of));
        }
        self.by_time.extend(at.map(|at| (at, of)));
    }

    /// When the first is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// One that is due; it is not any more.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<K> {
        let (at, of) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.by_time.pop_first();
        self.of.remove(&of);
        Some(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn of_each_the_time_that_was_set_last_counts() {
        let (mut timers, start) = (Timers::new(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        timers.set('a', Some(at(5)));
        timers.set('b', Some(at(3)));
        timers.set('c', Some(at(4)));
        timers.set('a', Some(at(1)));
        timers.set('c', None);
        assert_eq!(timers.next(), Some(at(1)));
        assert_eq!(timers.pop_due(start), None);
        let due: Vec<char> = std::iter::from_fn(|| timers.pop_due(at(9))).collect();
        assert_eq!(due, ['a', 'b']);
        assert_eq!(timers.next(), None);
    }
}
