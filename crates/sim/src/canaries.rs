//! Plants one bug after the other and counts the seeds until it is found.
//!
//! What it is not: part of any build but that of the feature `canaries`. Invariant: no bug is
//! planted when a function of this module returns.

use crate::report::{Report, Scope};
use crate::run::{Options, run};
pub use quorba_base::canary::Canary;
use quorba_base::canary::plant;

/// Runs a seed with a bug planted in every node. One thread at a time.
#[must_use]
pub fn run_with(canary: Canary, scope: Scope, seed: u64) -> Report {
    plant(Some(canary));
    let report = run(seed, Options { scope, ..Options::default() });
    plant(None);
    report
}

/// The first of the seeds among `seeds` that finds the bug, with what it saw. A seed that
/// breaks a promise without any bug finds nothing.
#[must_use]
pub fn hunt(canary: Canary, scope: Scope, seeds: impl IntoIterator<Item = u64>) -> Option<Report> {
    let is_good = |seed| run(seed, Options { scope, ..Options::default() }).is_good();
    seeds
        .into_iter()
        .map(|seed| run_with(canary, scope, seed))
        .find(|report| !report.is_good() && is_good(report.seed))
}
