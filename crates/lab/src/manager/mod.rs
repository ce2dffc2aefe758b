//! The ReplicationManager and the FaultNotifier: how long a group takes to be made, and how soon
//! faults are known and mended.
//!
//! Three nodes with both services. A group of three members is made by factories that run already;
//! a member's process, a node, and a node that falls silent are reported to a consumer; a member
//! that died is replaced at another node. What a server takes to start by itself is measured
//! beside it.
//!
//! What it is not: a test. Invariant: each fault meets a domain that was whole before it.

mod factory;
mod stand;

use std::path::PathBuf;
use std::time::Duration;

use quorba_orb::Client;
use serde::Serialize;

use crate::environment::Environment;
use crate::error::LabError;
use crate::placement::Setting;
use crate::run::LabOptions;
use crate::stats::Percentiles;
use stand::{Fault, Stand};

/// What the plan is called on the command line.
pub const PLAN: &str = "manager";
/// Rounds: each has a domain for each node that dies.
const ROUNDS: u32 = 10;
const QUICK_ROUNDS: u32 = 2;
/// Groups that are made in a round; a tenth as many members die.
const GROUPS: u32 = 100;
const QUICK_GROUPS: u32 = 20;
const GROUPS_OF_DEATH: u32 = 20;

/// What is measured, and what is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// `create_object` of three members, by factories that run.
    Create,
    /// From the SIGKILL of a member's process to the report at a consumer.
    Member,
    /// From the SIGKILL of a node.
    Node,
    /// From the SIGSTOP of a node.
    Silent,
    /// From the SIGKILL of a member's process until another one is in, without what a server takes
    /// to start by itself.
    Restored,
}

impl What {
    const ALL: [Self; 5] = [Self::Create, Self::Member, Self::Node, Self::Silent, Self::Restored];

    const fn text(self) -> &'static str {
        match self {
            Self::Create => "create_object, three members, factories that run",
            Self::Member => "a member is killed: at the consumer",
            Self::Node => "a node is killed: at the consumer",
            Self::Silent => "a node is silent: at the consumer",
            Self::Restored => "the minimum is restored, besides the server's start",
        }
    }

    /// The median that the project wants, in milliseconds.
    const fn wanted_ms(self) -> u32 {
        match self {
            Self::Create | Self::Member => 10,
            Self::Node => 30,
            Self::Silent => 250,
            Self::Restored => 100,
        }
    }
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// From 1.
    pub round: u32,
    /// Of what.
    pub what: What,
    /// How long it took.
    pub took_us: f64,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Managed {
    /// The plan's name.
    pub plan: &'static str,
    /// When it began, in UTC.
    pub began: String,
    /// The machine and the build.
    pub environment: Environment,
    /// Why the figures mislead; empty if nothing is known against them.
    pub faults: Vec<String>,
    /// What a server takes from its start until it accepts a connection, in microseconds: the
    /// median of each round.
    pub server_start_us: Vec<f64>,
    /// All of them.
    pub samples: Vec<Sample>,
}

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was found.
    pub run: Managed,
    /// The run's folder: `run.json`, `samples.ndjson`, `report.html`.
    pub folder: PathBuf,
}

/// Measures all. What happens is told to `tell`, line by line.
///
/// # Errors
/// [`LabError`]; what was measured before stays in the run's folder.
pub fn run(options: &LabOptions, tell: &mut dyn FnMut(&str)) -> Result<Outcome, LabError> {
    let (usual, quick) = ((ROUNDS, GROUPS), (QUICK_ROUNDS, QUICK_GROUPS));
    let (rounds, groups) = options.rounds_and_calls(PLAN, usual, quick)?;
    let program = options.program()?;
    let (environment, interrupt, mut record) = options.begin(tell)?;
    let (mut samples, mut server_start_us) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let of = |name| (name, Setting::Free, round);
        let result = Stand::start(&program).and_then(|mut stand| {
            let start = stand.server_start(&program)?;
            let mut found = created(&mut stand, round, groups)?;
            found.extend(members(&mut stand, (round, start), groups)?);
            // The domain is whole; one of its nodes ends last.
            found.push(node(&mut stand, round, Fault::Killed)?);
            Ok((us(start), found))
        });
        let (start, found) = record.measured(&interrupt.flag, of("killed"), result)?;
        let result =
            Stand::start(&program).and_then(|mut stand| node(&mut stand, round, Fault::Stopped));
        let silent = record.measured(&interrupt.flag, of("silent"), result)?;
        server_start_us.push(start);
        for sample in found.into_iter().chain([silent]) {
            record.line(&sample)?;
            samples.push(sample);
        }
        tell(&format!("round {round} of {rounds}: measured"));
    }
    let (began, faults, plan) = (record.began.clone(), environment.faults(), PLAN);
    let run = Managed { plan, began, environment, faults, server_start_us, samples };
    let page = format!("<!doctype html><title>{PLAN}</title><pre>{}</pre>\n", table(&run));
    let folder = record.finish(&run, &page)?;
    Ok(Outcome { run, folder })
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn created(stand: &mut Stand, round: u32, groups: u32) -> Result<Vec<Sample>, String> {
    let made = |_| {
        let took_us = us(stand.create_by_factories()?);
        Ok(Sample { round, what: What::Create, took_us })
    };
    (0..groups).map(made).collect()
}

fn members(
    stand: &mut Stand,
    (round, start): (u32, Duration),
    groups: u32,
) -> Result<Vec<Sample>, String> {
    let mut samples = Vec::new();
    for _ in 0..(groups / GROUPS_OF_DEATH).max(1) {
        let (reported, restored) = stand.kill_member()?;
        let besides = restored.saturating_sub(start);
        samples.push(Sample { round, what: What::Member, took_us: us(reported) });
        samples.push(Sample { round, what: What::Restored, took_us: us(besides) });
    }
    Ok(samples)
}

fn node(stand: &mut Stand, round: u32, fault: Fault) -> Result<Sample, String> {
    let what = match fault {
        Fault::Killed => What::Node,
        Fault::Stopped => What::Silent,
    };
    // Each of those that are not called meets it in turn.
    let took = stand.end_node(1 + round as usize % 2, fault)?;
    Ok(Sample { round, what, took_us: us(took) })
}

/// The summary of a run.
#[must_use]
pub fn table(run: &Managed) -> String {
    let mut lines: Vec<String> =
        run.faults.iter().map(|fault| format!("NOT TO BE RELIED ON: {fault}")).collect();
    for what in What::ALL {
        let of_it = run.samples.iter().filter(|sample| sample.what == what);
        let samples_ns: Vec<u64> = of_it.map(|sample| whole_ns(sample.took_us)).collect();
        let Some(found) = Percentiles::of(&samples_ns) else { continue };
        lines.push(format!(
            "{:<51} p50 {:7.2} ms, p90 {:7.2}, max {:7.2}  ({} times; wanted {} ms)",
            what.text(),
            found.p50_us / 1e3,
            found.p90_us / 1e3,
            found.max_us / 1e3,
            samples_ns.len(),
            what.wanted_ms()
        ));
    }
    if let Some(all) = crate::stats::Spread::of(run.server_start_us.iter().copied()) {
        lines.push(format!("a server takes {:.2} ms to start by itself", all.median / 1e3));
    }
    lines.push(String::new());
    lines.join("\n")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a short time")]
fn whole_ns(us: f64) -> u64 {
    (us * 1e3) as u64
}

/// What a call of the lab's own clients is refused with.
fn told(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

/// A client of the object at that corbaloc.
fn client(corbaloc: &str) -> Result<Client, String> {
    use quorba_orb::{ClientOptions, Reference};
    let reference = Reference::parse(corbaloc).map_err(|error| error.to_string())?;
    let call_timeout = Some(Duration::from_secs(60));
    Ok(Client::new(&reference, ClientOptions { call_timeout, ..ClientOptions::default() }))
}
