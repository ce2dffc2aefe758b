//! Many seeds, one after the other, and what came of all of them.
//!
//! What it is not: part of a run; the only clock here says when to stop and to speak. Invariant:
//! which seeds are run depends on the limits alone; what they give never does.

use crate::report::{Report, Scope};
use crate::run::{Options, run};
use quorba_base::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Which seeds to run, and for how long.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What is simulated, for each seed in this order.
    pub scopes: Vec<Scope>,
    /// The first seed.
    pub from: u64,
    /// How many seeds.
    pub seeds: u64,
    /// When to stop, whatever is left.
    pub until: Option<Instant>,
    /// Go on after a seed that broke a promise.
    pub keep_going: bool,
}

/// What came of it, in the end or so far.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Seeds that were run in every scope.
    pub seeds: u64,
    /// The seed that would be next.
    pub next: u64,
    /// Runs that broke a promise.
    pub broken: Vec<Report>,
    /// Virtual time of all runs.
    pub simulated: Duration,
    /// Real time of all runs.
    pub took: Duration,
    /// What happened, by scope and name, added up.
    pub figures: BTreeMap<(Scope, &'static str), u64>,
    /// The run that took longest until all was well, by scope: how long, and its seed.
    pub slowest: BTreeMap<Scope, (Duration, u64)>,
}

impl Summary {
    fn add(&mut self, report: Report) {
        self.simulated += report.simulated;
        for (name, count) in &report.figures {
            *self.figures.entry((report.scope, name)).or_default() += count;
        }
        let slowest = self.slowest.entry(report.scope).or_default();
        *slowest = (*slowest).max((report.settled_after, report.seed));
        if !report.is_good() {
            self.broken.push(report);
        }
    }

    /// One line for people.
    #[must_use]
    pub fn line(&self) -> String {
        let (simulated, took) = (self.simulated.as_secs_f64(), self.took.as_secs_f64());
        format!(
            "{} seeds in {took:.0} s, {} broken; {simulated:.0} s simulated, {:.0} per second",
            self.seeds,
            self.broken.len(),
            simulated / took.max(0.001),
        )
    }
}

/// Runs seeds; `tell` hears of progress, and of every run that broke a promise.
pub fn sweep(sweep: &Sweep, mut tell: impl FnMut(&Summary, Option<&Report>)) -> Summary {
    let began = Instant::now();
    let mut told = began;
    let mut summary = Summary {
        seeds: 0,
        next: sweep.from,
        broken: Vec::new(),
        simulated: Duration::ZERO,
        took: Duration::ZERO,
        figures: BTreeMap::new(),
        slowest: BTreeMap::new(),
    };
    for seed in sweep.from..sweep.from.saturating_add(sweep.seeds) {
        if sweep.until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        for scope in &sweep.scopes {
            let report = run(seed, Options { scope: *scope, ..Options::default() });
            let broken = (!report.is_good()).then(|| report.clone());
            summary.add(report);
            if broken.is_some() {
                summary.took = began.elapsed();
                tell(&summary, broken.as_ref());
            }
        }
        summary.seeds += 1;
        summary.next = seed + 1;
        summary.took = began.elapsed();
        if !summary.broken.is_empty() && !sweep.keep_going {
            break;
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            tell(&summary, None);
        }
    }
    summary.took = began.elapsed();
    summary
}
