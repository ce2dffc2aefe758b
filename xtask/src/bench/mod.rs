//! `cargo xtask bench`: figures of ours beside those of others, taken in one run.
//!
//! What it is not: the latency laboratory (`quorba lab`), which measures calls through Quorba.

mod order;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use order::JGROUPS;

/// What is measured.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Ordered multicast: ours, Corosync's and JGroups', in network namespaces
    Order(order::Options),
}

pub(crate) fn run(bench: &Bench) -> ExitCode {
    match bench {
        Bench::Order(options) => order::run(options),
    }
}
