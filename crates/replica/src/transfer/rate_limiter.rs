//! When a donor that keeps to a rate may send again.
//!
//! A donor is often looked at late, because its node has other work or waits for a core. What it
//! did not send meanwhile it sends later, else it would fall short of its rate by every such delay;
//! but not all at once, because the ring's datagrams wait in the same queue of the link.
//!
//! Invariants: what is sent within any time is at most what comes at the rate in that time and
//! [`LACKED_MAX`]; and at most what comes at [`quick`] in that time and [`AT_ONCE`]; a piece begun
//! counts as a whole one.

use quorba_base::{Duration, Instant};

/// What comes in so long may be sent at once.
const AT_ONCE: Duration = Duration::from_millis(1);
/// What was lacking for longer is not made up for.
const LACKED_MAX: Duration = Duration::from_millis(100);

/// The rate while something is made up for.
const fn quick(bytes_per_second: u64) -> u64 {
    bytes_per_second.saturating_add(bytes_per_second / 4)
}

/// See the module's text.
pub(super) struct RateLimiter {
    bytes_per_second: u64,
    /// By the rate; nothing is lacking before something was sent.
    usual: Option<Instant>,
    /// By that while something is made up for.
    quick: Instant,
}

impl RateLimiter {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, usual: None, quick: Instant::ZERO }
    }

    /// Nothing is sent before that.
    pub(super) fn not_before(&self) -> Instant {
        self.usual.map_or(self.quick, |usual| usual.max(self.quick))
    }

    /// So much is sent now.
    pub(super) fn sent(&mut self, now: Instant, bytes: u64) {
        let rate = self.bytes_per_second;
        let usual = self.usual.unwrap_or(now);
        self.usual = Some(after(usual, back(now, LACKED_MAX), bytes, rate));
        self.quick = after(self.quick, back(now, AT_ONCE), bytes, quick(rate));
    }
}

/// So many bytes later at that rate than the later of both.
fn after(free: Instant, least: Instant, bytes: u64, rate: u64) -> Instant {
    free.max(least) + Duration::from_nanos(bytes * 1_000_000_000 / rate.max(1))
}

fn back(now: Instant, by: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(by.as_nanos() as u64))
}
