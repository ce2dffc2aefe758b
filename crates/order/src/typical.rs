//! The time that something usually takes.
//!
//! What it is not: a bound; the timers have their own estimates, which follow the slow ones.
//! Invariant: one time moves it by no more than a sixteenth, however long it took.

use quorba_base::Duration;

/// Of its own length, so much it moves with each time seen.
const STEP: u64 = 16;

/// A running estimate of the median: about there, as it goes on moving.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Typical {
    nanos: u64,
}

impl Typical {
    /// It took this long once more.
    pub(crate) fn see(&mut self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let step = self.nanos / STEP + 1;
        self.nanos = match self.nanos {
            0 => took,
            known if took > known => known.saturating_add(step).min(took),
            known => (known - step.min(known)).max(took),
        };
    }

    /// Zero if it was never seen.
    pub(crate) const fn time(self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times_us: impl Iterator<Item = u64>) -> u128 {
        let mut typical = Typical::default();
        times_us.for_each(|us| typical.see(Duration::from_micros(us)));
        typical.time().as_micros()
    }

    #[test]
    fn it_comes_to_the_median_whatever_the_longest_are() {
        // A fifth of the time the host had something else to do.
        let busy = |n: u64| if n % 5 == 4 { 50_000 } else { 90 + n % 5 * 10 };
        let found = after((0..1_000).map(busy));
        assert!((100..=128).contains(&found), "{found}");
    }

    #[test]
    fn it_forgets_a_slow_beginning_and_follows_what_has_become_slower() {
        let begin = core::iter::once(30_000);
        assert_eq!(after(begin.clone().chain([100; 150])), 100);
        assert_eq!(after(begin.chain([100; 150]).chain([400; 50])), 400);
    }

    #[test]
    fn nothing_seen_is_no_time() {
        assert_eq!(after(core::iter::empty()), 0);
    }
}
