//! Looks for every planted bug, or those that are named:
//! `cargo run --release -p quorba-sim --features canaries --example canaries -- [NAME ...]`
//! prints the lines of `tests/canaries.txt`. With `SEEDS="17 42"` only in those seeds, with
//! `SCOPE=backups` in that scope.

use quorba_sim::Scope;
use quorba_sim::canaries::{Canary, hunt};
use std::panic;
use std::process::ExitCode;

/// The simulator must find each within so many seeds.
const SEEDS: u64 = 2_500;

fn main() -> ExitCode {
    let seeds = std::env::var("SEEDS").unwrap_or_default();
    let mut seeds: Vec<u64> = seeds.split(' ').filter_map(|seed| seed.parse().ok()).collect();
    if seeds.is_empty() {
        seeds = (1..=SEEDS).collect();
    }
    let named = std::env::var("SCOPE").unwrap_or_default();
    let named = Scope::ALL.iter().copied().find(|scope| scope.name() == named);
    let names: Vec<String> = std::env::args().skip(1).collect();
    // A room that panics is a finding, not an accident.
    panic::set_hook(Box::new(|_| {}));
    let mut result = ExitCode::SUCCESS;
    for canary in Canary::ALL {
        let name = format!("{canary:?}");
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        // Rings are quicker than domains, and know nothing of replicas.
        let of_ring = *canary < Canary::RetentionStaysHome;
        let of_styles = (Canary::AnswersBeforeVote..Canary::RepliesBeforeHeld).contains(canary);
        let of_calls = *canary >= Canary::CallsHaveNoName;
        let of_groups = *canary >= Canary::CreatesBeforeSaved;
        let of_backups = *canary >= Canary::BackupSplitsUpdates;
        let of_manager = *canary >= Canary::AcknowledgesUnsaved;
        let of_notifier = *canary >= Canary::BelievesBookOfOtherState;
        let of_events = *canary >= Canary::PushesUnheldNumbers;
        let scope = match (of_ring, of_styles) {
            _ if *canary == Canary::RepliesBeforeDepth => Scope::Depths,
            _ if of_manager => Scope::Manager,
            _ if of_notifier => Scope::Notifier,
            _ if of_events => Scope::Events,
            _ if of_groups => Scope::Groups,
            _ if of_backups => Scope::Backups,
            _ if of_calls => Scope::Calls,
            (true, _) => Scope::Ring,
            (_, true) => Scope::Styles,
            _ => Scope::Domain,
        };
        let scope = named.unwrap_or(scope);
        let found = hunt(*canary, scope, seeds.iter().copied());
        match found {
            Some(report) => println!(
                "{name} {} {} {}",
                report.scope.name(),
                report.seed,
                report.violations[0].invariant
            ),
            None => {
                println!("# {name} was not found in {} seeds", seeds.len());
                result = ExitCode::FAILURE;
            }
        }
    }
    result
}
