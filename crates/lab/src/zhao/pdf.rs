//! Probability densities of samples, at a resolution of 1 µs as in the paper (§2.2), and their
//! peaks.
//!
//! Invariants: the bins' shares add up to the share of the samples within [`Pdf::MOST_US`]; a peak
//! rises clearly out of what lies between it and every higher one.

use serde::Serialize;

use crate::stats::Percentiles;

/// A peak of a density.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// Where it is.
    pub at_us: f64,
    /// Share of all samples per microsecond there, smoothed.
    pub per_us: f64,
}

/// A series in a few figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Samples.
    pub count: usize,
    /// Their mean.
    pub mean_us: f64,
    /// A tenth of them took at most this.
    pub p10_us: f64,
    /// Half of them took at most this.
    pub p50_us: f64,
    /// All but a tenth of them took at most this.
    pub p90_us: f64,
    /// The peaks of their density, the highest first.
    pub peaks: Vec<Peak>,
}

impl Shape {
    /// Of samples in nanoseconds; `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 ns or samples")]
    pub fn of(samples_ns: &[u64]) -> Option<Self> {
        let percentiles = Percentiles::of(samples_ns)?;
        let sum_ns: u64 = samples_ns.iter().sum();
        Some(Self {
            count: samples_ns.len(),
            mean_us: sum_ns as f64 / 1e3 / samples_ns.len() as f64,
            p10_us: percentiles.p10_us,
            p50_us: percentiles.p50_us,
            p90_us: percentiles.p90_us,
            peaks: Pdf::of(samples_ns).peaks(),
        })
    }

    /// Where the highest peak is: the paper's "latency of the highest probability density".
    #[must_use]
    pub fn peak_us(&self) -> f64 {
        self.peaks.first().map_or(self.p50_us, |peak| peak.at_us)
    }

    /// How wide the samples lie about their middle: from the first tenth to the last.
    #[must_use]
    pub fn width_us(&self) -> f64 {
        self.p90_us - self.p10_us
    }
}

/// A density: the share of all samples in each microsecond.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pdf {
    /// The share in microsecond n stands at n.
    pub(crate) per_us: Vec<f64>,
}

/// A peak of less than this part of the highest one is none.
const PEAK_LEAST: f64 = 0.15;
/// Between two peaks the density falls below this part of the lower one.
const VALLEY_MOST: f64 = 0.75;
/// A smoothed value is a mean over this part of where it is, on either side.
const SMOOTH_PART: usize = 40;

impl Pdf {
    /// Samples beyond this do not appear.
    pub(crate) const MOST_US: usize = 20_000;

    /// Of samples in nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 samples")]
    pub(crate) fn of(samples_ns: &[u64]) -> Self {
        let micros = |ns: &u64| usize::try_from(ns / 1_000).unwrap_or(usize::MAX);
        let seen = || samples_ns.iter().map(micros).filter(|us| *us < Self::MOST_US);
        let mut per_us = vec![0.0; seen().max().map_or(0, |most| most + 1)];
        for us in seen() {
            per_us[us] += 1.0 / samples_ns.len() as f64;
        }
        Self { per_us }
    }

    /// The same with each value replaced by a mean of those around it, nearer ones weighing more:
    /// over 1 µs on either side, and more where a microsecond is a small part of the time.
    #[expect(clippy::cast_precision_loss, reason = "there are few bins")]
    pub(crate) fn smooth(&self) -> Self {
        let mean = |us: usize| {
            let reach = 1 + us / SMOOTH_PART;
            let weigh = |at: usize| {
                let weight = reach + 1 - at.abs_diff(us);
                self.per_us.get(at).map_or(0.0, |share| share * weight as f64)
            };
            let sum: f64 = (us.saturating_sub(reach)..=us + reach).map(weigh).sum();
            sum / ((reach + 1) * (reach + 1)) as f64
        };
        // The last values spread beyond the end.
        let end = self.per_us.len() + self.per_us.len() / SMOOTH_PART + 2;
        Self { per_us: (0..end).map(mean).collect() }
    }

    /// The peaks of the smoothed density, the highest first.
    #[expect(clippy::cast_precision_loss, reason = "there are few bins")]
    pub(crate) fn peaks(&self) -> Vec<Peak> {
        let smooth = self.smooth().per_us;
        let at = |us: usize| smooth.get(us).copied().unwrap_or(0.0);
        let mut tops: Vec<usize> = (0..smooth.len())
            .filter(|us| at(*us) > us.checked_sub(1).map_or(0.0, at) && at(*us) >= at(us + 1))
            .collect();
        tops.sort_by(|a, b| at(*b).total_cmp(&at(*a)));
        let highest = tops.first().map_or(0.0, |top| at(*top));
        let mut found: Vec<usize> = Vec::new();
        for top in tops.into_iter().take_while(|top| at(*top) >= highest * PEAK_LEAST) {
            let stands_out = |other: &usize| {
                let between = top.min(*other)..=top.max(*other);
                between.map(at).fold(f64::MAX, f64::min) <= at(top) * VALLEY_MOST
            };
            if found.iter().all(stands_out) {
                found.push(top);
            }
        }
        // A bin's samples lie between its beginning and its end.
        found.into_iter().map(|us| Peak { at_us: us as f64 + 0.5, per_us: at(us) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many samples around each of the given microseconds, in the shape of a roof.
    fn roofs(around: &[(u64, u64)]) -> Vec<u64> {
        let mut samples = Vec::new();
        for (middle_us, count) in around {
            for step in 0..=10u64 {
                let height = 6 - step.abs_diff(5);
                let us = middle_us + step - 5;
                samples.extend((0..count * height).map(|n| us * 1_000 + n % 1_000));
            }
        }
        samples
    }

    fn peaks_us(samples_ns: &[u64]) -> Vec<f64> {
        Pdf::of(samples_ns).peaks().iter().map(|peak| peak.at_us).collect()
    }

    #[test]
    fn shares_are_those_of_all_samples() {
        let pdf = Pdf::of(&[1_000, 1_999, 2_000, 90_000_000]);
        assert_eq!(pdf.per_us, [0.0, 0.5, 0.25], "one of four is too far away to be shown");
        let total = |pdf: &Pdf| pdf.per_us.iter().sum::<f64>();
        let many = Pdf::of(&roofs(&[(50, 10), (200, 20)]));
        assert!((total(&many) - 1.0).abs() < 1e-9);
        assert!((total(&many.smooth()) - 1.0).abs() < 0.02, "{}", total(&many.smooth()));
        assert!(Pdf::of(&[]).per_us.is_empty() && Pdf::of(&[]).peaks().is_empty());
    }

    #[test]
    fn peaks_are_found_the_highest_first() {
        assert_eq!(peaks_us(&roofs(&[(50, 10)])), [50.5]);
        assert_eq!(peaks_us(&roofs(&[(50, 10), (90, 20)])), [90.5, 50.5]);
        assert_eq!(peaks_us(&roofs(&[(50, 10), (90, 200)])), [90.5], "a twentieth is none");
        assert_eq!(peaks_us(&[0, 0, 0]), [0.5]);
    }

    #[test]
    fn what_runs_together_is_one_peak() {
        let peaks = peaks_us(&roofs(&[(50, 10), (54, 10), (58, 10)]));
        assert_eq!(peaks.len(), 1, "{peaks:?}");
        assert!((48.0..60.0).contains(&peaks[0]));
        // The noise of few samples makes no peaks.
        let few: Vec<u64> = (0..300).map(|n| 100_000 + (n * 7919 % 40) * 1_000).collect();
        assert_eq!(peaks_us(&few).len(), 1);
    }

    #[test]
    fn a_shape_says_where_most_samples_are() {
        let shape = Shape::of(&roofs(&[(50, 10), (90, 20)])).expect("samples");
        assert_eq!((shape.count, shape.peak_us()), (36 * 30, 90.5));
        assert!((shape.mean_us - 76.67).abs() < 0.05, "{}", shape.mean_us);
        assert!(shape.p10_us < shape.p50_us && shape.p50_us < shape.p90_us);
        assert!(shape.width_us() < 50.0);
        assert_eq!(Shape::of(&[]), None);
    }
}
