//! Every planted bug is found by the seed that is known to find it, by the checker that should.
//!
//! `examples/canaries.rs` finds the seeds anew when plans change.

use quorba_sim::canaries::{Canary, run_with};
use quorba_sim::{INVARIANTS, Scope};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The name of the bug, the scope, the first seed that finds it, and the checker that does.
const KNOWN: &str = include_str!("canaries.txt");
/// Each must be found within so many seeds, counted from 1.
const SEEDS_MAX: u64 = 2_500;

/// Found by no planted bug, but in forged histories (`check/forged.rs`, `ring/check/forged.rs`,
/// `reports/model.rs`, `backups.rs`) or by what servers do wrong (`seeds.rs`).
const FORGED: [&str; 13] = [
    "at least once",
    "at most once",
    "backup",
    "basic delivery",
    "divergence",
    "equality",
    "last server",
    "linearizability",
    "replies",
    "reports answered",
    "restore",
    "self-delivery",
    "session",
];

// No checker can be switched off unseen.
#[test]
fn every_checker_has_something_that_it_must_find() {
    let lines = KNOWN.lines().filter(|line| !line.starts_with(['#', '?']));
    let found: BTreeSet<&str> = lines.filter_map(|line| line.splitn(4, ' ').nth(3)).collect();
    let missing = INVARIANTS.iter().filter(|name| !found.contains(*name));
    let missing: Vec<&str> = missing.copied().filter(|name| !FORGED.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let unknown: Vec<_> = found.iter().filter(|name| !INVARIANTS.contains(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

// One test: only one bug can be planted at a time.
#[test]
fn every_planted_bug_is_found_by_its_seed() {
    let mut missed = String::new();
    let mut names = BTreeSet::new();
    for line in KNOWN.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("? ") {
            println!("{name} is planted, and no seed is known that finds it");
            names.insert(name);
            continue;
        }
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().expect("NAME SCOPE SEED CHECKER");
        let (name, scope, seed, checker) = (word(), word(), word(), word());
        names.insert(name);
        let canary = Canary::ALL.iter().find(|canary| format!("{canary:?}") == name);
        let scope = Scope::ALL.iter().find(|known| known.name() == scope);
        let (canary, scope) = (canary.expect("a known name"), scope.expect("a known scope"));
        let seed: u64 = seed.parse().expect("a seed is a number");
        assert!(seed <= SEEDS_MAX, "{name} is found too late");
        let report = run_with(*canary, *scope, seed);
        let by = report.violations.first().map(|violation| violation.invariant);
        if by != Some(checker) {
            let _ = writeln!(missed, "{name}: {by:?} instead of {checker}: {report}");
        }
    }
    assert!(missed.is_empty(), "{missed}");
    let all: BTreeSet<String> = Canary::ALL.iter().map(|canary| format!("{canary:?}")).collect();
    assert!(all.iter().map(String::as_str).eq(names), "every bug is found");
}
