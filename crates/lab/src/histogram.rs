//! How often a call took how long, in bins of equal width on a logarithmic scale.
//!
//! On such a scale a factor looks the same everywhere, so that 10 µs against 12 µs and 100 µs
//! against 120 µs are equally far apart, and one plot holds the halted core's tail as well.
//!
//! Invariants: every sample is in exactly one bin; the shares of all bins add up to 1.

use std::collections::BTreeMap;

/// Bins from one latency to ten times of it: each is 4.9 % wider than the one before.
pub(crate) const BINS_PER_DECADE: i32 = 48;

/// Counts of samples by latency.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: BTreeMap<i32, u64>,
    total: u64,
}

/// A bin, and the share of all samples that it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bin {
    /// Its lower end, in microseconds; it belongs to the bin.
    pub(crate) from_us: f64,
    /// Its upper end, in microseconds; it belongs to the next.
    pub(crate) to_us: f64,
    /// From 0 to 1.
    pub(crate) share: f64,
}

impl Histogram {
    /// Counts samples in nanoseconds. A sample of 0 counts as 1.
    pub(crate) fn add(&mut self, samples_ns: &[u64]) {
        for sample_ns in samples_ns {
            *self.counts.entry(bin_of(*sample_ns)).or_default() += 1;
            self.total += 1;
        }
    }

    /// Every bin from the first to the last that holds a sample, empty ones between included.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 samples")]
    pub(crate) fn bins(&self) -> Vec<Bin> {
        let (Some((first, _)), Some((last, _))) =
            (self.counts.first_key_value(), self.counts.last_key_value())
        else {
            return Vec::new();
        };
        (*first..=*last)
            .map(|bin| {
                let count = self.counts.get(&bin).copied().unwrap_or(0);
                let share = count as f64 / self.total as f64;
                Bin { from_us: lower_us(bin), to_us: lower_us(bin + 1), share }
            })
            .collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the logarithm of a u64 is below 20")]
#[expect(clippy::cast_precision_loss, reason = "a bin is wider than the rounding")]
fn bin_of(sample_ns: u64) -> i32 {
    ((sample_ns.max(1) as f64).log10() * f64::from(BINS_PER_DECADE)).floor() as i32
}

fn lower_us(bin: i32) -> f64 {
    10f64.powf(f64::from(bin) / f64::from(BINS_PER_DECADE)) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_in_the_bin_around_it() {
        for sample_ns in [1, 999, 1_000, 12_345, 70_000, 1_000_000, u64::MAX] {
            let mut one = Histogram::default();
            one.add(&[sample_ns]);
            let bins = one.bins();
            assert_eq!(bins.len(), 1);
            let us = sample_ns as f64 / 1e3;
            // The ends of bins are rounded as every number is.
            assert!(bins[0].from_us <= us * 1.000_001, "{sample_ns}: {bins:?}");
            assert!(us < bins[0].to_us * 1.000_001, "{sample_ns}: {bins:?}");
        }
    }

    #[test]
    fn shares_add_up_and_gaps_are_bins() {
        let mut some = Histogram::default();
        some.add(&[10_000, 10_000, 100_000, 0]);
        let bins = some.bins();
        let total: f64 = bins.iter().map(|bin| bin.share).sum();
        assert!((total - 1.0).abs() < 1e-9);
        assert!(bins.iter().any(|bin| bin.share == 0.0));
        assert!(bins.windows(2).all(|pair| (pair[0].to_us - pair[1].from_us).abs() < 1e-6));
        assert!(Histogram::default().bins().is_empty());
    }
}
