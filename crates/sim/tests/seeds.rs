//! Seeds that once broke a promise, by name; a fixed budget of others; and the proof that a run
//! is a function of its seed.

use quorba_sim::{Options, ServerBug, run};
use std::fmt::Write as _;

/// Seeds of the budget: some 20 s on one core in the dev profile.
const BUDGET: std::ops::RangeInclusive<u64> = 1..=150;

fn run_all(seeds: impl IntoIterator<Item = u64>) {
    let mut broken = String::new();
    for seed in seeds {
        let report = run(seed, Options::default());
        if !report.is_good() {
            let _ = writeln!(broken, "{report}");
        }
    }
    assert!(broken.is_empty(), "broken promises\n{broken}");
}

#[test]
fn promises_hold_in_a_fixed_budget_of_seeds() {
    run_all(BUDGET);
}

#[test]
fn named_seeds_stay_good() {
    let file = include_str!("regressions.txt");
    let seeds = file.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (seed, name) = line.split_once(' ')?;
        assert!(!name.trim().is_empty(), "seed {seed} needs a name");
        Some(seed.parse().expect("a seed is a number"))
    });
    run_all(seeds);
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    for seed in [3, 8, 40, 41] {
        let plain = run(seed, Options::default());
        let told = Options { transcript: true, ..Options::default() };
        let (first, second) = (run(seed, told), run(seed, told));
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert_eq!(first.transcript, second.transcript, "seed {seed}");
        assert_eq!(first.digest, plain.digest, "writing the transcript changed seed {seed}");
    }
}

#[test]
fn different_seeds_are_different_runs() {
    let digests = [1, 2, 3].map(|seed| run(seed, Options::default()).digest);
    assert!(digests[0] != digests[1] && digests[1] != digests[2]);
}

#[test]
fn planted_bugs_are_found() {
    for bug in ServerBug::ALL {
        let options = Options { server_bug: Some(*bug), ..Options::default() };
        let found = (1..=40).any(|seed| !run(seed, options).is_good());
        assert!(found, "{bug:?} was not found within 40 seeds");
    }
}
