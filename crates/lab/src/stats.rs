//! Percentiles of samples, and medians of rounds.
//!
//! Invariant: a figure is always one that was measured, by the nearest rank; nothing is
//! interpolated, smoothed or left out.

use serde::Serialize;

/// Percentiles of the calls of one block, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// The fastest call.
    pub min_us: f64,
    /// A tenth of the calls took at most this.
    pub p10_us: f64,
    /// Half of the calls took at most this.
    pub p50_us: f64,
    /// 90 % took at most this.
    pub p90_us: f64,
    /// 99 % took at most this.
    pub p99_us: f64,
    /// 99.9 % took at most this.
    pub p999_us: f64,
    /// The slowest call.
    pub max_us: f64,
}

impl Percentiles {
    /// Of samples in nanoseconds, in any order; `None` if there are none.
    #[must_use]
    pub fn of(samples_ns: &[u64]) -> Option<Self> {
        let mut sorted = samples_ns.to_vec();
        sorted.sort_unstable();
        let last = *sorted.last()?;
        let at = |per_mille| micros(nearest_rank(&sorted, per_mille));
        Some(Self {
            min_us: micros(sorted[0]),
            p10_us: at(100),
            p50_us: at(500),
            p90_us: at(900),
            p99_us: at(990),
            p999_us: at(999),
            max_us: micros(last),
        })
    }
}

/// The smallest sample that at least `per_mille` thousandths of all do not exceed.
fn nearest_rank(sorted: &[u64], per_mille: usize) -> u64 {
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    sorted[rank.max(1) - 1]
}

#[expect(clippy::cast_precision_loss, reason = "a latency has far fewer than 52 bits")]
fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// One figure over the rounds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle round's; of an even number of rounds, the lower of the two middle ones.
    pub median: f64,
    /// The lowest round's.
    pub min: f64,
    /// The highest round's.
    pub max: f64,
}

impl Spread {
    /// Of one figure per round; `None` if there was no round.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let median = sorted[(sorted.len() - 1) / 2];
        Some(Self { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<u64> = (1..=1000).rev().map(|n| n * 1000).collect();
        let all = Percentiles::of(&samples).expect("samples");
        assert_eq!((all.min_us, all.max_us), (1.0, 1000.0));
        assert_eq!((all.p10_us, all.p50_us, all.p90_us), (100.0, 500.0, 900.0));
        assert_eq!((all.p99_us, all.p999_us), (990.0, 999.0));
    }

    #[test]
    fn few_samples_have_percentiles_too() {
        let one = Percentiles::of(&[7_000]).expect("a sample");
        assert_eq!((one.min_us, one.p50_us, one.p999_us, one.max_us), (7.0, 7.0, 7.0, 7.0));
        let two = Percentiles::of(&[2_000, 1_000]).expect("samples");
        assert_eq!((two.p50_us, two.p90_us), (1.0, 2.0));
        assert_eq!(Percentiles::of(&[]), None);
    }

    #[test]
    fn the_median_of_rounds_is_a_round() {
        let spread = Spread::of([3.0, 1.0, 2.0]).expect("rounds");
        assert_eq!(spread, Spread { median: 2.0, min: 1.0, max: 3.0 });
        let even = Spread::of([4.0, 1.0, 3.0, 2.0]).expect("rounds");
        assert_eq!(even.median, 2.0);
        assert_eq!(Spread::of([]), None);
    }
}
