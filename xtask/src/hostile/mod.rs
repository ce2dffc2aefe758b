//! `cargo xtask hostile`: greedy and hostile clients against three live nodes with default limits,
//! and what that costs the nodes and the honest clients beside them.
//!
//! What it is not: malformed messages (`crates/cli/tests/hostile.rs`, `fuzz/`), or faults of nodes
//! and networks (`quorba sim`). Attackers here speak GIOP as it is written.
//!
//! Invariants: attacks come from other addresses than honest calls; what is outside of a bracket is
//! a line that names the attack, the figure and the bracket, and makes the exit code differ.

mod case;
mod honest;
mod identity;
mod local;
mod machine;
mod memory;
mod refusals;
mod report;
mod server;
mod shares;
mod sockets;
mod stage;
mod state;
mod watch;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::interop;
use case::{Case, CaseTimes, Stages};

pub(crate) use server::{ServerOptions, run as run_server};

/// Which attacks, and for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// Only attacks whose name contains one of these
    filter: Vec<String>,
    /// Less than a minute: attacks that are only so long that they show
    #[arg(long)]
    short: bool,
    /// Name the attacks and stop
    #[arg(long)]
    list: bool,
    /// Attack nodes of this program, instead of building one
    #[arg(long, value_name = "FILE")]
    quorba: Option<PathBuf>,
    /// Where all figures go, as JSON [default: hostile.json in the build folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What is printed at the end
    #[arg(short, long, value_enum, default_value_t = report::Output::Text)]
    output: report::Output,
}

const SHORT: CaseTimes = CaseTimes {
    calm: Duration::from_millis(600),
    attack: Duration::from_millis(1200),
    is_whole: false,
};
const WHOLE: CaseTimes =
    CaseTimes { calm: Duration::from_secs(3), attack: Duration::from_secs(10), is_whole: true };

fn cases() -> impl Iterator<Item = &'static Case> {
    let families: [&[Case]; 7] = [
        memory::CASES,
        shares::CASES,
        refusals::CASES,
        identity::CASES,
        state::CASES,
        local::CASES,
        sockets::CASES,
    ];
    // Those that can share a stage come first: a start takes seconds.
    let all = || families.into_iter().flatten();
    all().filter(|case| case.is_plain()).chain(all().filter(|case| !case.is_plain()))
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let is_wanted = |case: &&Case| {
        let filter = &options.filter;
        filter.is_empty() || filter.iter().any(|part| case.name.contains(part.as_str()))
    };
    if options.list {
        cases().filter(is_wanted).for_each(|case| println!("{}", case.name));
        return ExitCode::SUCCESS;
    }
    let quorba = match options.quorba.clone().map_or_else(interop::build_quorba, Ok) {
        Ok(quorba) => quorba,
        Err(reason) => {
            eprintln!("failed: {reason}");
            return ExitCode::FAILURE;
        }
    };
    let quorba = std::path::absolute(&quorba).unwrap_or(quorba);
    let times = if options.short { SHORT } else { WHOLE };
    let (mut rows, mut stages) = (Vec::new(), Stages::default());
    for case in cases().filter(is_wanted) {
        // Whoever waits sees how far it is.
        eprintln!("{} ...", case.name);
        let row = case::play(case, &quorba, times, &mut stages);
        row.faults.iter().for_each(|fault| eprintln!("  {fault}"));
        rows.push(row);
        if !options.short {
            // Every attack meets nodes as they are at first.
            stages.attacked = None;
        }
    }
    report::finish(&rows, options.output, options.out.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn attacks_have_names_of_their_own() {
        let names: BTreeSet<_> = cases().map(|case| case.name).collect();
        assert_eq!(names.len(), cases().count());
    }
}
