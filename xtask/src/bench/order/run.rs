//! The rounds of a run: who is measured when.
//!
//! Invariants: rounds are outermost, so that whatever drifts touches all peers alike; the order
//! of the peers turns from round to round; a cluster in which something failed is not used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorba_lab::skips::skip;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Plan;
use super::cluster::Cluster;
use super::experiment::{self, Experiment, Outcome};
use super::peer::{Peer, Site, Tools};
use super::record::{Folder, Found, Record};
use crate::namespaces::Namespaces;

/// What all rounds gave.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) records: Vec<Record>,
    pub(super) skipped: Vec<String>,
    pub(super) failed: Vec<String>,
}

/// One turn of one peer.
struct Turn<'a> {
    plan: &'a Plan,
    tools: &'a Tools,
    network: &'a Namespaces,
    nodes: usize,
    round: usize,
    peer: Peer,
}

/// Measures everyone, round after round.
pub(super) fn rounds(plan: &Plan, tools: &Tools, folder: &mut Folder) -> Result<Findings, String> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))
            .map_err(|error| error.to_string())?;
    }
    let mut findings = Findings::default();
    for &nodes in &plan.nodes {
        let network = match Namespaces::make(nodes) {
            Ok(network) => network,
            Err(reason) => {
                skip(&format!("{nodes} nodes"), &reason);
                findings.skipped.push(format!("{nodes} nodes: {reason}"));
                continue;
            }
        };
        for round in 1..=plan.rounds {
            for index in 0..plan.peers.len() {
                if is_interrupted.load(Ordering::Relaxed) {
                    findings.failed.push("interrupted".into());
                    return Ok(findings);
                }
                let peer = plan.peers[(index + round - 1) % plan.peers.len()];
                let turn = Turn { plan, tools, network: &network, nodes, round, peer };
                turn.run(folder, &mut findings)?;
            }
        }
    }
    Ok(findings)
}

impl Turn<'_> {
    fn run(&self, folder: &mut Folder, findings: &mut Findings) -> Result<(), String> {
        let mut cluster = None;
        let suits = |experiment: &&Experiment| experiment.suits(self.peer);
        for experiment in self.plan.experiments.iter().filter(suits) {
            if !experiment.is_failure() && cluster.is_none() {
                match self.start_or_again(folder, &experiment.name()) {
                    Ok(started) => cluster = Some(started),
                    // What does not start for one experiment does not start for the next.
                    Err(reason) => {
                        let Self { nodes, round, peer, .. } = self;
                        let line = format!("{nodes} nodes, round {round}, {}: {reason}", peer.name);
                        eprintln!("FAILED: {line}");
                        findings.failed.push(line);
                        return Ok(());
                    }
                }
            }
            let measured = self.measure(*experiment, &mut cluster, folder);
            let (mut samples_ns, mut notes) = (Vec::new(), Vec::new());
            let result = match measured {
                Ok(Ok(outcome)) => {
                    (samples_ns, notes) = (outcome.samples_ns, outcome.notes);
                    Found::Figures(outcome.figures)
                }
                Ok(Err(reason)) => Found::Unsupported(reason),
                Err(reason) => {
                    cluster = None;
                    Found::Failed(reason)
                }
            };
            let record = Record {
                nodes: self.nodes,
                round: self.round,
                peer: self.peer.name,
                experiment: experiment.name(),
                notes,
                result,
            };
            let line = progress(&record);
            eprintln!("{line}");
            if matches!(record.result, Found::Failed(_)) {
                findings.failed.push(line);
            }
            folder.add(&record, &samples_ns)?;
            findings.records.push(record);
        }
        Ok(())
    }

    /// Measures on the cluster of this turn, or on one that is there to lose a node.
    fn measure(
        &self,
        experiment: Experiment,
        cluster: &mut Option<(tempfile::TempDir, Cluster)>,
        folder: &Folder,
    ) -> Result<Result<Outcome, String>, String> {
        if experiment.is_failure() {
            *cluster = None;
            let (_place, fresh) = self.start(folder, &experiment.name())?;
            return experiment.run_failure(fresh).map(Ok);
        }
        let (_, running) = cluster.as_mut().expect("a cluster was started");
        experiment.run(running, &self.plan.amounts)
    }

    /// A cluster of somebody else's software that does not start is started once more: what it
    /// waits for on a busy machine is not what is measured. Ours must start.
    fn start_or_again(
        &self,
        folder: &Folder,
        first: &str,
    ) -> Result<(tempfile::TempDir, Cluster), String> {
        let Self { nodes, round, peer, .. } = self;
        self.start(folder, first).or_else(|reason| {
            if peer.is_ours() {
                return Err(reason);
            }
            eprintln!("{nodes} nodes, round {round}, {}: started once more: {reason}", peer.name);
            let again = self.start(folder, &format!("{first}-again"));
            again.map_err(|second| format!("{reason}; and once more: {second}"))
        })
    }

    fn start(&self, folder: &Folder, first: &str) -> Result<(tempfile::TempDir, Cluster), String> {
        let Self { nodes, round, peer, .. } = self;
        // Unix sockets have short names.
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        let site =
            Site { network: self.network, nodes: *nodes, folder: place.path(), tools: self.tools };
        let logs = folder.path.join(format!("logs/{nodes}-{round}-{}-{first}", peer.name));
        let mut cluster = Cluster::start(*peer, &site, &logs)?;
        experiment::warm_up(&mut cluster, *peer, &self.plan.amounts)?;
        Ok((place, cluster))
    }
}

fn progress(record: &Record) -> String {
    let Record { nodes, round, peer, experiment, notes, result } = record;
    let what = match result {
        Found::Figures(figures) => {
            let one = |(name, value): (&&str, &f64)| format!("{name} {value:.2}");
            let figures = figures.iter().map(one);
            figures.chain(notes.iter().cloned()).collect::<Vec<_>>().join(", ")
        }
        Found::Unsupported(reason) => format!("unsupported: {reason}"),
        Found::Failed(reason) => format!("FAILED: {reason}"),
    };
    format!("{nodes} nodes, round {round}, {peer}, {experiment}: {what}")
}
