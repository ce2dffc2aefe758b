//! How one node's probes come here: how many are missed, and how long they take there and back.
//!
//! Invariants: a pause of the sender is no loss, for its probes are numbered; what was measured
//! before a long silence does not count; probes missed in a row are a cut, which is no poor link.

use super::verdict::BAD;
use crate::wire::PROBE_WINDOW;
use quorba_base::{Duration, Instant};

/// Of fewer probes nothing is said.
const SEEN_MIN: u32 = 12;
/// Who misses much misses it here and there: a link that was cut and is whole again is not bad.
const RUNS_MIN: u32 = 3;
/// The quickest round trip is that of the last one or two times so long.
const ROUND_TRIPS: Duration = Duration::from_millis(100);
/// To a node that was near, so long there and back for each probe that counts as missed.
const LATE_UNIT: Duration = Duration::from_millis(8);

/// See the module's text.
#[derive(Debug)]
pub(super) struct Hearing {
    last: u64,
    at: Instant,
    /// A bit for each of the last probes, the last one lowest: it has come.
    came: u32,
    /// How many of the bits mean something.
    seen: u32,
    /// The quickest round trip of this period and of the one before, and when this one began.
    quickest: (Option<Duration>, Option<Duration>),
    period: Instant,
}

impl Hearing {
    pub(super) const fn new() -> Self {
        let at = Instant::ZERO;
        Self { last: 0, at, came: 0, seen: 0, quickest: (None, None), period: at }
    }

    /// Probe `number` has come. Whether it is the newest.
    pub(super) fn hear(&mut self, now: Instant, number: u64, fresh: Duration) -> bool {
        let width = u32::from(PROBE_WINDOW);
        if self.seen == 0 || now.since(self.at) > fresh {
            (self.last, self.at, self.came, self.seen) = (number.max(self.last), now, 1, 1);
            self.quickest = (None, None);
            return true;
        }
        if number <= self.last {
            // It was overtaken.
            let back = self.last - number;
            if back < u64::from(self.seen) {
                self.came |= 1 << back;
            }
            return false;
        }
        let ahead = u32::try_from(number - self.last).unwrap_or(width).min(width);
        self.came = self.came.checked_shl(ahead).unwrap_or(0) | 1;
        self.seen = (self.seen + ahead).min(width);
        (self.last, self.at) = (number, now);
        true
    }

    pub(super) fn note_round_trip(&mut self, now: Instant, took: Duration) {
        if now.since(self.period) > ROUND_TRIPS {
            self.quickest = (None, self.quickest.0);
            self.period = now;
        }
        self.quickest.0 = Some(self.quickest.0.map_or(took, |quickest| quickest.min(took)));
    }

    /// As how many missed probes it counts that the quickest takes so long.
    fn lateness(&self) -> u8 {
        let (Some(now), Some(before)) = self.quickest else { return 0 };
        let units = now.min(before).as_micros() / LATE_UNIT.as_micros();
        u8::try_from(units).map_or(PROBE_WINDOW, |units| units.min(PROBE_WINDOW))
    }

    /// How many of the last 32 probes were missed, if that is known. If the node was near, being
    /// late is as bad.
    pub(super) fn missed(&self, now: Instant, fresh: Duration, was_near: bool) -> Option<u8> {
        if self.seen < SEEN_MIN || now.since(self.at) > fresh {
            return None;
        }
        let missed = !self.came & (u32::MAX >> (u32::BITS - self.seen));
        let runs = (missed & !(missed << 1)).count_ones();
        let count = missed.count_ones() * u32::from(PROBE_WINDOW) / self.seen;
        let count = u8::try_from(count).ok()?;
        let lost = if runs < RUNS_MIN { count.min(BAD - 1) } else { count };
        Some(if was_near { lost.max(self.lateness()) } else { lost })
    }

    /// The newest that has come.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// How long ago that was, in µs.
    pub(super) fn held_us(&self, now: Instant) -> u32 {
        u32::try_from(now.since(self.at).as_micros()).unwrap_or(u32::MAX)
    }
}
