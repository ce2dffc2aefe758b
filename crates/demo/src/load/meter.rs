//! What the clients see, as numbers: counts, latencies, and gaps without any answer.
//!
//! What it is not: the accounting. The meter says how it felt; the histories say what happened.
//!
//! Invariants: a gap is the time between two answers to *any* client, so one client that waits
//! makes none; the gap that is still open counts; times are durations since the load began, so
//! nothing here reads a clock.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::record::{CallRecord, Verdict};

/// Latencies up to this are told apart; longer ones count as this.
const LATENCY_US_MAX: u64 = 120_000_000;
/// Decimal digits to which latencies are told apart.
const LATENCY_DIGITS: u8 = 3;

/// Counts and latencies of a load.
pub struct Meter {
    counts: Counts,
    whole: Histogram<u64>,
    slot: Histogram<u64>,
    slot_began: Duration,
    last_answer: Option<Duration>,
    longest_gap: Duration,
    gap_since_mark: Duration,
}

/// How many calls ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls whose outcome is known.
    pub requests: u64,
    /// Answered: results and user exceptions.
    pub acknowledged: u64,
    /// Of unknown outcome.
    pub maybe: u64,
    /// Refused, nothing having happened.
    pub refused: u64,
}

/// Latencies of answered calls, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// The median.
    pub p50_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The longest.
    pub longest_us: u64,
}

/// What happened since the last slot was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slot {
    /// Answers per second.
    pub answers_per_s: f64,
    /// Their latencies.
    pub latency: Latency,
}

impl Default for Meter {
    fn default() -> Self {
        let histogram = || {
            Histogram::new_with_max(LATENCY_US_MAX, LATENCY_DIGITS)
                .expect("the bounds are constants that the histogram takes")
        };
        Self {
            counts: Counts::default(),
            whole: histogram(),
            slot: histogram(),
            slot_began: Duration::ZERO,
            last_answer: None,
            longest_gap: Duration::ZERO,
            gap_since_mark: Duration::ZERO,
        }
    }
}

impl Meter {
    /// Notes the outcome of a call.
    pub fn note(&mut self, record: &CallRecord) {
        self.counts.requests += 1;
        match record.verdict() {
            Verdict::Acknowledged | Verdict::Raised => {
                self.counts.acknowledged += 1;
                let latency_us = record.end_us.saturating_sub(record.start_us);
                self.whole.saturating_record(latency_us);
                self.slot.saturating_record(latency_us);
                self.answered(Duration::from_micros(record.end_us));
            }
            Verdict::Maybe => self.counts.maybe += 1,
            Verdict::Refused => self.counts.refused += 1,
            Verdict::Sent => {}
        }
    }

    /// Lets gaps be counted from `now` on: the clients have begun, or have been asked to stop
    /// and the time until their last answers is nobody's gap.
    pub fn begin(&mut self, now: Duration) {
        self.last_answer = Some(now);
        self.slot_began = now;
    }

    /// Ends the counting of gaps, the open one included.
    pub fn end(&mut self, now: Duration) {
        self.answered(now);
        self.last_answer = None;
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Latencies since the beginning.
    #[must_use]
    pub fn latency(&self) -> Latency {
        latency(&self.whole)
    }

    /// The longest gap since the beginning, the open one included.
    #[must_use]
    pub fn longest_gap(&self, now: Duration) -> Duration {
        self.longest_gap.max(self.open_gap(now))
    }

    /// Begins to look for the longest gap anew.
    pub fn mark(&mut self) {
        self.gap_since_mark = Duration::ZERO;
    }

    /// The longest gap since the last mark, the open one included.
    #[must_use]
    pub fn gap_since_mark(&self, now: Duration) -> Duration {
        self.gap_since_mark.max(self.open_gap(now))
    }

    /// What happened since this was called last.
    pub fn take_slot(&mut self, now: Duration) -> Slot {
        let seconds = now.saturating_sub(self.slot_began).as_secs_f64();
        let answers = self.slot.len();
        let answers_per_s = if seconds > 0.0 { answers as f64 / seconds } else { 0.0 };
        let slot = Slot { answers_per_s, latency: latency(&self.slot) };
        self.slot.reset();
        self.slot_began = now;
        slot
    }

    fn answered(&mut self, now: Duration) {
        let gap = self.open_gap(now);
        self.longest_gap = self.longest_gap.max(gap);
        self.gap_since_mark = self.gap_since_mark.max(gap);
        // Clients note their answers after they got them, so two may come in the other order.
        self.last_answer = self.last_answer.map(|last| last.max(now));
    }

    fn open_gap(&self, now: Duration) -> Duration {
        self.last_answer.map_or(Duration::ZERO, |last| now.saturating_sub(last))
    }
}

fn latency(histogram: &Histogram<u64>) -> Latency {
    Latency {
        p50_us: histogram.value_at_quantile(0.50),
        p99_us: histogram.value_at_quantile(0.99),
        longest_us: histogram.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Completed, Outcome};

    fn call(start_ms: u64, end_ms: u64, completed: Option<Completed>) -> CallRecord {
        CallRecord {
            reference: "c0-0".to_owned(),
            operation: "deposit".to_owned(),
            start_us: start_ms * 1000,
            end_us: end_ms * 1000,
            outcome: if completed.is_some() { Outcome::Exception } else { Outcome::Ok },
            exception: None,
            completed,
            minor: None,
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_gap_is_closed_by_an_answer_to_anybody_and_by_nothing_else() {
        let mut meter = Meter::default();
        meter.begin(ms(100));
        meter.note(&call(100, 103, None));
        meter.note(&call(90, 105, None));
        meter.note(&call(105, 125, Some(Completed::Maybe)));
        meter.note(&call(105, 130, Some(Completed::No)));
        assert_eq!(meter.longest_gap(ms(130)), ms(25));
        meter.note(&call(130, 135, None));
        assert_eq!(meter.longest_gap(ms(140)), ms(30));
        assert_eq!(meter.counts(), Counts { requests: 5, acknowledged: 3, maybe: 1, refused: 1 });
    }

    #[test]
    fn a_mark_begins_anew_with_the_open_gap() {
        let mut meter = Meter::default();
        meter.begin(ms(0));
        meter.note(&call(0, 50, None));
        meter.mark();
        assert_eq!(meter.gap_since_mark(ms(57)), ms(7));
        meter.note(&call(50, 60, None));
        meter.note(&call(60, 61, None));
        assert_eq!(meter.gap_since_mark(ms(62)), ms(10));
        assert_eq!(meter.longest_gap(ms(62)), ms(50));
    }

    #[test]
    fn before_and_after_the_load_there_is_no_gap() {
        let mut meter = Meter::default();
        meter.note(&call(0, 5, None));
        assert_eq!(meter.longest_gap(ms(1000)), ms(0));
        meter.begin(ms(1000));
        meter.end(ms(1004));
        meter.note(&call(1000, 2000, None));
        assert_eq!(meter.longest_gap(ms(5000)), ms(4));
    }

    #[test]
    fn a_slot_has_its_own_latencies_and_rate() {
        let mut meter = Meter::default();
        meter.begin(ms(0));
        meter.note(&call(0, 1, None));
        meter.take_slot(ms(1));
        for start in 0..100 {
            meter.note(&call(start, start + 4, None));
        }
        let slot = meter.take_slot(ms(501));
        assert!((slot.answers_per_s - 200.0).abs() < 0.1, "{slot:?}");
        assert!(slot.latency.p50_us.abs_diff(4000) <= 4, "{slot:?}");
        assert_eq!(meter.take_slot(ms(502)), Slot::default());
    }
}
