//! A run for people: a table for the terminal, and a page that holds everything.
//!
//! What it is not: where figures are computed; that is [`mod@crate::record`].
//!
//! Invariants: no figure without its range over the rounds; what is known against the figures
//! stands before them.

mod density;
mod failover;
mod html;
mod irl;
mod leaders;
mod lines;
mod strips;
mod svg;
mod table;
mod transfer;
mod zhao;

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::placement::Setting;
use crate::record::Block;
use crate::stats::Spread;

pub(crate) use failover::failover_page;
pub use failover::failover_table;
pub(crate) use html::html;
pub(crate) use irl::irl_page;
pub(crate) use leaders::leaders_page;
pub use leaders::leaders_table;
pub use table::table;
pub(crate) use transfer::transfer_page;
pub use transfer::transfer_table;
pub(crate) use zhao::page as zhao_page;

/// The latencies of all rounds, for the plots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plots {
    histograms: BTreeMap<(Setting, String), Histogram>,
}

impl Plots {
    /// Adds the samples of a block, in nanoseconds.
    pub(crate) fn add(&mut self, block: &Block, samples_ns: &[u64]) {
        let key = (block.setting, block.configuration.clone());
        self.histograms.entry(key).or_default().add(samples_ns);
    }

    fn of(&self, setting: Setting, configuration: &str) -> Option<&Histogram> {
        self.histograms.get(&(setting, configuration.to_owned()))
    }
}

/// `98.1 (97.0–99.3)`: the median of the rounds, and their range.
fn with_range(spread: Spread) -> String {
    let Spread { median, min, max } = spread;
    format!("{} ({}–{})", figure(median), figure(min), figure(max))
}

/// Three digits that count, and no more than one behind the point.
fn figure(value: f64) -> String {
    if value.abs() < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A quotient such as `2.4`.
fn times(spread: Spread) -> String {
    format!("{:.2}", spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(figure(7.04), "7.0");
        assert_eq!(figure(123.4), "123");
        assert_eq!(figure(-0.26), "-0.3");
        let spread = Spread { median: 98.1, min: 97.0, max: 101.6 };
        assert_eq!(with_range(spread), "98.1 (97.0–102)");
        assert_eq!(times(spread), "98.10");
    }
}
