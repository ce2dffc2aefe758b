//! `cargo xtask bench order`: ordered multicast of ours, Corosync's and JGroups', side by side.
//!
//! Each peer is a cluster of processes, one node per network namespace on this machine; see
//! `bench/peers/README.md` for what a participant does.
//!
//! What it is not: a test of speed. It asserts that all nodes deliver the same messages in the
//! same order, and reports the rest.
//!
//! Invariants: peers take turns within every round, and are compared only within a run; raw
//! samples are kept; who cannot be measured here is skipped by name.

mod cluster;
mod corosync;
mod experiment;
mod jgroups;
mod peer;
mod plot;
mod process;
mod quorba;
mod record;
mod report;
mod run;
mod task;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use quorba_lab::Environment;
use quorba_lab::skips::skip;

use crate::say::Outcome;
use crate::workspace;
use experiment::{Amounts, Experiment};
pub(crate) use jgroups::PROJECT as JGROUPS;
use peer::{Peer, Tools};
use record::Folder;

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Only peers whose names contain one of these
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<String>,
    /// Only experiments whose names contain one of these
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    experiments: Vec<String>,
    /// Sizes of clusters
    #[arg(long, default_value = "3,4", value_name = "NODES", value_delimiter = ',')]
    nodes: Vec<usize>,
    /// How often all peers take their turn [default: 5, quick: 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// How long the soak takes, which is run only if it is named, with each peer in each round
    #[arg(long, value_name = "MINUTES", default_value_t = 10)]
    soak_minutes: u64,
    /// Less of everything: for a first look
    #[arg(long)]
    quick: bool,
    /// Next to nothing, of three nodes that do not fail: only whether all deliver the same order
    #[arg(long, conflicts_with = "quick")]
    smoke: bool,
    /// Measure even while others use the cores; the figures are marked
    #[arg(long)]
    anyway: bool,
    /// Name peers and experiments, and stop
    #[arg(long)]
    list: bool,
    /// Where the run gets its folder [default: bench/order in the build folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Use this ring daemon, instead of building one
    #[arg(long, value_name = "FILE")]
    ringd: Option<PathBuf>,
    /// What is printed at the end
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Tables
    Text,
    /// All figures as one JSON object
    Json,
}

/// What was chosen, after all defaults.
struct Plan {
    peers: Vec<Peer>,
    experiments: Vec<Experiment>,
    nodes: Vec<usize>,
    rounds: usize,
    amounts: Amounts,
}

impl Options {
    fn plan(&self) -> Result<Plan, String> {
        let wanted = |parts: &[String], name: &str| {
            parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
        };
        let is_peer =
            |peer: &Peer| wanted(&self.only, peer.name) && (!self.smoke || peer.is_in_smoke());
        let peers: Vec<Peer> = Peer::ALL.iter().copied().filter(is_peer).collect();
        let is_wanted = |experiment: &Experiment| {
            wanted(&self.experiments, &experiment.name())
                && (!self.smoke || experiment.is_in_smoke())
                && (!self.experiments.is_empty() || !experiment.is_only_if_named())
        };
        let experiments: Vec<_> = Experiment::ALL.into_iter().filter(is_wanted).collect();
        if peers.is_empty() || experiments.is_empty() {
            return Err("nothing has such a name; --list shows the names".into());
        }
        if self.nodes.iter().any(|nodes| !(2..=16).contains(nodes)) {
            return Err("--nodes: from 2 to 16".into());
        }
        let rounds = self.rounds.unwrap_or(if self.smoke {
            1
        } else if self.quick {
            3
        } else {
            5
        });
        if rounds == 0 {
            return Err("--rounds: at least 1".into());
        }
        let nodes = if self.smoke { vec![3] } else { self.nodes.clone() };
        Ok(Plan { peers, experiments, nodes, rounds, amounts: self.amounts() })
    }

    const fn amounts(&self) -> Amounts {
        let (latency, silence, stream_ms, idle_s) = if self.smoke {
            (200, 0, 100, 0)
        } else if self.quick {
            (2_000, 20, 700, 5)
        } else {
            (20_000, 100, 2_000, 20)
        };
        let idle = Duration::from_secs(idle_s);
        let soak_minutes = self.soak_minutes;
        Amounts { latency, silence, stream_ms, idle, soak_minutes, warms_up: !self.smoke }
    }
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if options.list {
        Peer::ALL.iter().for_each(|peer| println!("{}: {}", peer.name, peer.text));
        Experiment::ALL.iter().for_each(|experiment| println!("{}", experiment.name()));
        return ExitCode::SUCCESS;
    }
    match try_run(options) {
        Ok(run) => {
            match options.output {
                Output::Text => print!("{}", report::markdown(&run)),
                Output::Json => println!("{}", json(&run)),
            }
            for what in &run.failed {
                eprintln!("failed: {what}");
            }
            if options.smoke {
                run.failed.iter().for_each(|what| println!("failed: {what}"));
                let measured: BTreeSet<_> = run.rows.iter().map(|row| &row.peer).collect();
                let measured = measured.len();
                let [failed, skipped] = [&run.failed, &run.skipped].map(Vec::len);
                println!("order: {measured} passed, {failed} failed, {skipped} skipped");
            }
            if run.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(reason) => {
            eprintln!("bench order: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(options: &Options) -> Result<record::Run, String> {
    let mut plan = options.plan()?;
    let environment = Environment::read();
    let faults: Vec<String> = environment.busy().into_iter().collect();
    if let (Some(fault), false) = (faults.first(), options.anyway || options.smoke) {
        return Err(format!("{fault}; wait, or add --anyway"));
    }
    let ringd = match &options.ringd {
        Some(path) => Ok(path.clone()),
        None if plan.peers.iter().any(|peer| peer.is_ours()) => quorba::build(!options.smoke),
        None => Err("not asked for".into()),
    };
    let tools = Tools { ringd };
    let (mut skipped, mut failed) = (Vec::new(), Vec::new());
    plan.peers.retain(|peer| match peer.build(&tools) {
        Outcome::Present | Outcome::Done => true,
        Outcome::Skipped(reason) => {
            skip(peer.name, &reason);
            skipped.push(format!("{}: {reason}", peer.name));
            false
        }
        Outcome::Failed(reason) => {
            failed.push(format!("{}: {reason}", peer.name));
            false
        }
    });
    let began = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let out = options.out.clone().unwrap_or_else(|| workspace::target().join("bench/order"));
    let mut folder = Folder::make(&out, &began.replace(':', "-"))?;
    eprintln!("writing to {}", folder.path.display());
    let found = run::rounds(&plan, &tools, &mut folder)?;
    skipped.extend(found.skipped);
    failed.extend(found.failed);
    let run = record::Run {
        began,
        environment,
        faults,
        rounds: plan.rounds,
        peers: plan.peers.iter().map(|peer| (peer.name, peer.text)).collect(),
        skipped,
        failed,
        rows: record::rows(&found.records),
    };
    folder.write("run.json", &json(&run))?;
    folder.write("tables.md", &report::markdown(&run))?;
    for (name, svg) in report::plots(&run) {
        folder.write(&name, &svg)?;
    }
    Ok(run)
}

fn json(run: &record::Run) -> String {
    serde_json::to_string_pretty(run).expect("plain data")
}
