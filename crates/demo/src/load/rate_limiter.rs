//! When a client makes its next call.
//!
//! What it is not: a queue of calls that are late. A client that could not call for a while goes
//! on at its pace; a burst afterwards would hide the gap behind a false mean.
//!
//! Invariant: all clients together make no more calls per second than were asked for.

use std::time::Duration;

/// The pace of one client.
pub(super) enum RateLimiter {
    /// As fast as answers come.
    Unlimited,
    /// One call each `interval`, the next at `due` (since the load began).
    Every { interval: Duration, due: Duration },
}

impl RateLimiter {
    /// The pace of client `index` of `clients`, which together make `calls_per_s`; 0: no limit.
    pub(super) fn new(calls_per_s: u32, clients: usize, index: usize) -> Self {
        if calls_per_s == 0 {
            return Self::Unlimited;
        }
        let interval = Duration::from_secs(1).mul_f64(clients as f64 / f64::from(calls_per_s));
        // Spread, so that the clients do not call all at once.
        Self::Every { interval, due: interval.mul_f64(index as f64 / clients as f64) }
    }

    /// How long to wait at `now` for the next call, which counts as made then.
    pub(super) fn wait(&mut self, now: Duration) -> Duration {
        match self {
            Self::Unlimited => Duration::ZERO,
            Self::Every { interval, due } => {
                let wait = due.saturating_sub(now);
                // One interval may be caught up on, so that the pace is kept on a busy machine.
                *due = (*due + *interval).max(now);
                wait
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn clients_take_turns_at_the_common_rate() {
        let mut paces: Vec<RateLimiter> =
            (0..4).map(|index| RateLimiter::new(400, 4, index)).collect();
        let waits: Vec<Duration> =
            paces.iter_mut().map(|rate_limiter| rate_limiter.wait(ms(0))).collect();
        assert_eq!(waits, [ms(0), Duration::from_micros(2500), ms(5), Duration::from_micros(7500)]);
        assert_eq!(paces[0].wait(ms(1)), ms(9));
    }

    #[test]
    fn after_a_gap_there_is_no_burst() {
        let mut rate_limiter = RateLimiter::new(100, 1, 0);
        assert_eq!(rate_limiter.wait(ms(0)), ms(0));
        assert_eq!(rate_limiter.wait(ms(5000)), ms(0));
        assert_eq!(rate_limiter.wait(ms(5001)), ms(0));
        assert_eq!(rate_limiter.wait(ms(5002)), ms(8));
    }
}
