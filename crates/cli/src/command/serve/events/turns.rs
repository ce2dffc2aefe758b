//! So few pushes are under way at a time that the strategies of the channels say who is next: what
//! was handed out goes as it comes, and nothing overtakes it any more.
//!
//! A push counts until it has ended, but not for longer than [`GRACE`]; to a consumer that took
//! longer last time, or did not take it, a push does not count at all. So who is slow or dead keeps
//! others waiting once, for a moment.
//!
//! What it is not: a bound on threads; that is the pool's. Invariant: a push that has begun is
//! never stopped.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorba_base::channel::PUSHES_AT_ONCE_USUAL;
use quorba_events::{EventService, Outcome};

use super::warm::Proxy;

/// How long a push counts at most.
const GRACE: Duration = Duration::from_millis(20);

/// A push under way.
struct Begun {
    proxy: Proxy,
    ticket: u64,
    at: Instant,
}

#[derive(Default)]
struct State {
    /// Those that count, in the order in which they began.
    begun: VecDeque<Begun>,
    /// Who was late last time.
    late: HashSet<Proxy>,
}

/// See the module's text.
pub(super) struct Turns {
    most: usize,
    grace: Duration,
    state: Mutex<State>,
}

impl Default for Turns {
    fn default() -> Self {
        Self::new(PUSHES_AT_ONCE_USUAL)
    }
}

impl Turns {
    /// So many pushes at a time.
    pub(super) fn new(most: u32) -> Self {
        Self { most: most.max(1) as usize, grace: GRACE, state: Mutex::default() }
    }

    /// The same, where a push counts for so long.
    #[cfg(test)]
    pub(super) fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long no other push may begin, if none ends before; none: one may begin now.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let left = |one: &Begun| (one.at + self.grace).checked_duration_since(now);
        while state.begun.front().is_some_and(|one| left(one).is_none_or(|left| left.is_zero())) {
            state.begun.pop_front();
        }
        if state.begun.len() < self.most { None } else { state.begun.front().and_then(left) }
    }

    /// A push is handed out.
    pub(super) fn begin(&self, proxy: Proxy, ticket: u64, at: Instant) {
        let mut state = self.lock();
        if !state.late.contains(&proxy) {
            state.begun.push_back(Begun { proxy, ticket, at });
        }
    }

    /// It has ended, so long after it was called.
    pub(super) fn end(&self, proxy: &Proxy, ticket: u64, took: Duration, outcome: Outcome) {
        let mut state = self.lock();
        state.begun.retain(|one| one.ticket != ticket || one.proxy != *proxy);
        let is_reached = matches!(outcome, Outcome::Taken | Outcome::Raised { .. } | Outcome::Gone);
        if !is_reached || took >= self.grace {
            state.late.insert(proxy.clone());
        } else {
            state.late.remove(proxy);
        }
    }

    /// Forgets those whose proxies have ended.
    pub(super) fn sweep(&self, service: &EventService) {
        self.lock().late.retain(|(channel, proxy)| service.has_proxy(channel, *proxy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(number: u64) -> Proxy {
        ("a".to_owned(), number)
    }

    const QUICK: Duration = Duration::from_millis(1);

    #[test]
    fn a_push_counts_until_it_has_ended_but_not_for_long() {
        let (turns, now) = (Turns::new(2), Instant::now());
        turns.begin(proxy(1), 1, now);
        assert_eq!(turns.wait(now), None);
        turns.begin(proxy(2), 2, now + QUICK);
        assert_eq!(turns.wait(now + QUICK), Some(GRACE - QUICK));
        turns.end(&proxy(2), 2, QUICK, Outcome::Taken);
        assert_eq!(turns.wait(now + QUICK), None);
        turns.begin(proxy(2), 3, now + QUICK);
        assert_eq!(turns.wait(now + GRACE), None, "the first one takes too long");
    }

    #[test]
    fn who_was_late_or_failed_keeps_nobody_waiting_until_it_is_quick_again() {
        let (turns, now) = (Turns::new(1), Instant::now());
        for (took, outcome) in [(GRACE, Outcome::Taken), (QUICK, Outcome::Failed)] {
            turns.begin(proxy(1), 1, now);
            assert!(turns.wait(now).is_some());
            turns.end(&proxy(1), 1, took, outcome);
            turns.begin(proxy(1), 2, now);
            assert_eq!(turns.wait(now), None);
            turns.end(&proxy(1), 2, QUICK, Outcome::Taken);
        }
        turns.begin(proxy(1), 3, now);
        assert!(turns.wait(now).is_some(), "it counts again");
    }
}
