//! `cargo xtask bench`: figures of ours beside those of others, taken in one run.
//!
//! What it is not: the latency laboratory (`quorba lab`), which measures calls through Quorba.

mod order;

use std::process::ExitCode;

use clap::Subcommand;

use crate::project::{Project, Tool};
pub(crate) use order::JGROUPS;

/// A supplier and consumers of IceStorm, beside which `quorba lab run huang2005` measures.
pub(crate) const ICE_STORM: Project = Project {
    folder: "bench/peers/icestorm",
    tool: Tool::Make,
    programs: &["make", "g++", "slice2cpp"],
    headers: &["IceStorm/IceStorm.h"],
    beside: &[],
    products: &["icestorm_peer"],
};

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
