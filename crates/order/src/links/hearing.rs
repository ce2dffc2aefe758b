//! How one node's probes come here: how many are missed, and how long they take there and back.
//!
//! Invariants: a pause of the sender is no loss, for its probes are numbered; what was measured
//! before a long silence does not count; probes missed in a row may be a cut, which is no poor
//! link.

use super::verdict::BAD;
use crate::wire::PROBE_WINDOW;
use quorba_base::{Duration, Instant};

/// Of fewer probes nothing is said.
const SEEN_MIN: u32 = 12;
/// Who misses much misses it here and there: of a link that was cut and is whole again nothing is
/// known yet ...
const RUNS_MIN: u32 = 3;
/// ... even if a few are missed besides. So many in a row may be a cut.
const CUT_MIN: u32 = 6;
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

    /// As how many missed probes it counts that the quickest takes so long, once that is known: as
    /// none if the link is not bad for that, for it stays as it is, and whoever has it would be
    /// kept out for ever.
    fn lateness(&self) -> Option<u8> {
        let (now, before) = (self.quickest.0?, self.quickest.1?);
        let units = now.min(before).as_micros() / LATE_UNIT.as_micros();
        let units = u8::try_from(units).map_or(PROBE_WINDOW, |units| units.min(PROBE_WINDOW));
        Some(if units < BAD { 0 } else { units })
    }

    /// Whether its probes come at present.
    pub(super) fn is_fresh(&self, now: Instant, fresh: Duration) -> bool {
        self.seen > 0 && now.since(self.at) <= fresh
    }

    /// How many of the last 32 probes were missed, if that is known. If the node was near, being
    /// late is as bad.
    pub(super) fn missed(&self, now: Instant, fresh: Duration, was_near: bool) -> Option<u8> {
        if self.seen < SEEN_MIN || !self.is_fresh(now, fresh) {
            return None;
        }
        let missed = !self.came & (u32::MAX >> (u32::BITS - self.seen));
        let runs = (missed & !(missed << 1)).count_ones();
        let of_window = |count: u32| u8::try_from(count * u32::from(PROBE_WINDOW) / self.seen);
        let count = of_window(missed.count_ones()).ok()?;
        let cut = Some(longest_run(missed)).filter(|run| *run >= CUT_MIN).unwrap_or(0);
        let besides = of_window(missed.count_ones() - cut).ok()?;
        if count >= BAD && (runs < RUNS_MIN || besides < BAD) {
            return None;
        }
        if !was_near || count >= BAD {
            return Some(count);
        }
        self.lateness().map(|late| count.max(late))
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

/// The longest row of bits.
const fn longest_run(mut bits: u32) -> u32 {
    let mut longest = 0;
    while bits != 0 {
        bits &= bits << 1;
        longest += 1;
    }
    longest
}
