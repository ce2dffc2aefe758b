//! What a person or CI runs: `cargo xtask deps`, `examples`, `interop` and the rest of `--help`.
//!
//! What it is not: part of the product. It may start other programs, and is never shipped.
//!
//! Invariants: every step that cannot be done says so by name (`skipped: NAME: reason`), and
//! nothing is written into the source tree.

#![forbid(unsafe_code)]

mod bench;
mod corosync;
mod deny;
mod deps;
mod docs;
mod examples;
mod files;
mod hostile;
mod idl;
mod interop;
mod metrics;
mod mutants;
mod no_std;
mod omniorbpy;
mod pip;
mod project;
mod say;
mod sim;
mod test;
mod tidy;
mod wait;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use quorba_lab::{namespaces, place};

/// What a person or CI runs on a clone of Quorba.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the examples and the interoperability tests need (Debian 12, as root)
    Deps,
    /// Build the examples into target/examples/
    Examples,
    /// Generate Rust from IDL again and compare it with what is checked in
    Idl(idl::Options),
    /// Run real ORBs against three node processes, under faults
    Interop(interop::Options),
    /// Attack live nodes as greedy and hostile clients do, and judge what that costs
    Hostile(hostile::Options),
    /// The server that `hostile` puts behind its nodes
    #[command(hide = true)]
    HostileServer(hostile::ServerOptions),
    /// Measure ours beside others
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Simulate seeds until the time is over, and list those that break a promise
    Sim(sim::Options),
    /// Change functions that have changed, a little, and list the changes that no test notices
    Mutants(mutants::Options),
    /// Compile the pure rooms for a target that has no standard library
    NoStd,
    /// Judge what Quorba depends on: licences, versions, sources, known holes
    Deny,
    /// Build the documentation of the crates; a broken link in it is an error
    Docs,
    /// Write docs/reference/metrics.md from the code that exports the numbers
    Metrics,
    /// Write docs/internals/files.md: each file with the first sentence of its head
    Files,
    /// Check the rules that the compiler does not: edges, sizes, heads, words, links
    Tidy,
    /// Run everything that must hold before a change lands, as CI does
    Test(test::Options),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Deps => deps::run(),
        Command::Examples => examples::run(),
        Command::Idl(options) => idl::run(&options),
        Command::Interop(options) => interop::run(&options),
        Command::Hostile(options) => hostile::run(&options),
        Command::HostileServer(options) => hostile::run_server(&options),
        Command::Bench(bench) => bench::run(&bench),
        Command::Sim(options) => sim::run(&options),
        Command::Mutants(options) => mutants::run(&options),
        Command::NoStd => no_std::run(),
        Command::Deny => deny::run(),
        Command::Docs => docs::run(),
        Command::Metrics => metrics::run(),
        Command::Files => files::run(),
        Command::Tidy => tidy::run(),
        Command::Test(options) => test::run(&options),
    }
}
