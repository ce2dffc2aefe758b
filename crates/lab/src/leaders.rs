//! Predicted and measured: a semi-active group whose lead is moved from member to member in one
//! domain, with a client at one gateway.
//!
//! What it is not: the model, which is `quorba-placement`. It is given to the same predictions as
//! `quorba group advise`, from what the nodes' status says.
//!
//! Invariants: all predictions of a round are made from what was measured while its first leader
//! led, as an operator's would be; what is measured is the client's own figure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Instant;

use quorba_config::Domain as DomainFile;
use quorba_node::placement::{Counters, Prediction};
use quorba_node::status::Status;
use serde::Serialize;

use crate::block::read_samples;
use crate::domain::{Domain, Servers};
use crate::environment::Environment;
use crate::error::LabError;
use crate::placement::Setting;
use crate::plan::DomainShape;
use crate::report;
use crate::run::{Interrupt, LabOptions, Record, echo_dir};
use crate::stats::{Percentiles, Spread};
use crate::wire::Wire;

/// What the plan is called on the command line.
pub const PLAN: &str = "placement";
const ROUNDS: u32 = 5;
const CALLS: u32 = 10_000;
const QUICK_CALLS: u32 = 3_000;
/// 1 KiB.
const LONGS: &str = "256";
const NODES: usize = 4;
const MEMBERS: usize = 3;

/// How the ring is set, and where the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RingSetting {
    /// As in Zhao02: the token circulates, replies are ordered, the client's node has no member.
    Paper,
    /// As shipped: the token rests; the client is at the gateway of the last member.
    Shipped,
}

impl RingSetting {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Paper, Self::Shipped];

    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Paper => "the token circulates, client at n4",
            Self::Shipped => "as shipped (the token rests), client at n3",
        }
    }

    const fn client(self) -> usize {
        match self {
            Self::Paper => 4,
            Self::Shipped => 3,
        }
    }

    fn shape(self) -> DomainShape {
        let table = |text: &str| text.parse::<toml::Table>().expect("it is TOML");
        let (ring, group) = match self {
            Self::Paper => (
                "multicast = \"off\"\nencrypt = false\naccelerated = false\ntoken_rests = false",
                "style = \"semi-active\"\nack = \"agreed\"\nreply = \"ordered\"",
            ),
            Self::Shipped => ("multicast = \"off\"", "style = \"semi-active\""),
        };
        DomainShape {
            nodes: NODES,
            members: MEMBERS,
            client: self.client(),
            wire: Some(Wire { hop_us: 30, mbit_s: 100 }),
            ring: table(ring),
            limits: toml::Table::new(),
            group: table(group),
            server_options: Vec::new(),
            server_socket: false,
        }
    }
}

/// One leader in one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// How the ring is set.
    pub ring: RingSetting,
    /// From 1.
    pub round: u32,
    /// The leader's node.
    pub leader: String,
    /// What the model says, in microseconds; sockets and ORBs are not in it.
    pub predicted_us: f64,
    /// Median of the client's calls.
    pub measured_us: f64,
}

/// A leader over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// How the ring is set.
    pub ring: RingSetting,
    /// The leader's node.
    pub leader: String,
    /// [`Trial::predicted_us`] of all rounds.
    pub predicted_us: Spread,
    /// [`Trial::measured_us`] of all rounds.
    pub measured_us: Spread,
    /// Predicted, less that of the round's best by prediction.
    pub predicted_more_us: Spread,
    /// Measured, less that of the round's best by measurement.
    pub measured_more_us: Spread,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leaders {
    /// The plan's name.
    pub plan: &'static str,
    /// When it began, in UTC.
    pub began: String,
    /// Rounds.
    pub rounds: u32,
    /// Measured calls of each leader in each round.
    pub calls: u32,
    /// The machine and the build.
    pub environment: Environment,
    /// Why the figures mislead; empty if nothing is known against them.
    pub faults: Vec<String>,
    /// Every leader on every ring.
    pub candidates: Vec<Candidate>,
    /// Every leader in every round.
    pub trials: Vec<Trial>,
}

/// One line of `samples.ndjson`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    trial: &'a Trial,
    samples_ns: &'a [u64],
}

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was found.
    pub run: Leaders,
    /// The run's folder: `run.json`, `samples.ndjson`, `report.html`.
    pub folder: PathBuf,
}

/// Measures every leader. What happens is told to `tell`, line by line.
///
/// # Errors
/// [`LabError`]; what was measured before stays in the run's folder.
pub fn run(options: &LabOptions, tell: &mut dyn FnMut(&str)) -> Result<Outcome, LabError> {
    let changes = &options.changes;
    if changes.only.is_some() || changes.settings.is_some() {
        return Err(LabError::Plan(format!("plan {PLAN} has nothing to choose from")));
    }
    let quick = changes.quick;
    let rounds = changes.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
    let calls = changes.calls.unwrap_or(if quick { QUICK_CALLS } else { CALLS });
    let program = options.program()?;
    let echo = echo_dir(options, &program)?;
    let environment = options.environment(tell)?;
    let interrupt = Interrupt::listen()?;
    let mut record = Record::open(&options.out)?;
    tell(&format!("writing to {}", record.folder.display()));
    let bench = Bench { program, echo, calls };
    let mut trials = Vec::new();
    for round in 1..=rounds {
        for ring in RingSetting::ALL {
            let result = bench.run(ring, round);
            if interrupt.flag.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted { folder: record.folder });
            }
            let found = result.map_err(|reason| LabError::Block {
                configuration: ring.text().to_owned(),
                setting: Setting::Free.as_str(),
                round,
                reason,
            })?;
            for (trial, samples_ns) in found {
                tell(&format!(
                    "round {round}/{rounds}  {}  leader {}  predicted {:6.0} us  \
                     measured {:6.0} us",
                    ring.text(),
                    trial.leader,
                    trial.predicted_us,
                    trial.measured_us
                ));
                let line = Line { trial: &trial, samples_ns: &samples_ns };
                record.line(&line).map_err(LabError::system("keep the samples"))?;
                trials.push(trial);
            }
        }
    }
    let run = Leaders {
        plan: PLAN,
        began: record.began.clone(),
        rounds,
        calls,
        faults: environment.faults(),
        environment,
        candidates: candidates(&trials),
        trials,
    };
    let doing = format!("write to {}", record.folder.display());
    record.pages(&run, &report::leaders_page(&run)).map_err(LabError::system(doing))?;
    Ok(Outcome { run, folder: record.folder })
}

struct Bench {
    program: PathBuf,
    echo: PathBuf,
    calls: u32,
}

impl Bench {
    /// One domain: each member leads in turn.
    fn run(&self, ring: RingSetting, round: u32) -> Result<Vec<(Trial, Vec<u64>)>, String> {
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let server = self.echo.join("echo_server");
        let servers = Servers::Echo(&server);
        let domain = Domain::start(&ring.shape(), &self.program, servers, folder.path(), false)?;
        let file = DomainFile::load(&folder.path().join("quorba.toml"))
            .map_err(|report| report.render(false))?;
        let mut predictions: Vec<Prediction> = Vec::new();
        let mut found = Vec::new();
        for index in 0..MEMBERS {
            domain.promote(index)?;
            let before = domain.statuses()?;
            let began = Instant::now();
            let samples_ns = self.call(domain.gateway(), folder.path())?;
            let after = domain.statuses()?;
            if predictions.is_empty() {
                let looks = (&before[index], &after[index]);
                predictions = predicted(&file, looks, began)?;
            }
            let measured = Percentiles::of(&samples_ns).ok_or("the client wrote no samples")?;
            let leader = after[index].node.clone();
            let of_leader = |one: &&Prediction| Some(one.leader) == file.node_id(&leader);
            let prediction = predictions.iter().find(of_leader).ok_or("it is no candidate")?;
            let predicted_us = prediction.latency.as_secs_f64() * 1e6;
            let trial = Trial { ring, round, leader, predicted_us, measured_us: measured.p50_us };
            found.push((trial, samples_ns));
        }
        Ok(found)
    }

    fn call(&self, gateway: u16, folder: &Path) -> Result<Vec<u64>, String> {
        let samples = folder.join("samples");
        let mut command = Command::new(self.echo.join("echo_client"));
        command.arg("--ref").arg(format!("corbaloc:iiop:1.2@127.0.0.1:{gateway}/echo"));
        command.args(["--longs", LONGS, "--calls", &self.calls.to_string()]);
        command.args(["--warm-up", &(self.calls / 10).to_string()]);
        command.arg("--samples").arg(&samples).stdin(Stdio::null());
        let ended = command.output().map_err(|error| format!("the client: {error}"))?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
            return Err(format!("the client ended with {}: {said}", ended.status));
        }
        read_samples(&samples)
    }
}

/// What an operator would be told who asked meanwhile.
fn predicted(
    file: &DomainFile,
    (before, after): (&Status, &Status),
    began: Instant,
) -> Result<Vec<Prediction>, String> {
    let group = file.groups.first().ok_or("the domain has no group")?;
    let counters = |status: &Status| {
        Counters::of_status(file, status, &group.name).ok_or("the group is not known")
    };
    let ring = after.ring.members.iter().filter_map(|name| file.node_id(name)).collect();
    let rotation_us = after.ring.rotation_us.unwrap_or(0.0).max(0.0);
    let rotation = std::time::Duration::from_secs_f64(rotation_us / 1e6);
    let load = counters(after)?.since(&counters(before)?, began.elapsed(), rotation, ring);
    Ok(load.predict(file, group))
}

fn candidates(trials: &[Trial]) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for one in trials {
        if all.iter().any(|known| (known.ring, &known.leader) == (one.ring, &one.leader)) {
            continue;
        }
        let mine = || trials.iter().filter(|t| t.ring == one.ring && t.leader == one.leader);
        let spread = |figure: &dyn Fn(&Trial) -> f64| Spread::of(mine().map(figure));
        let more = |figure: fn(&Trial) -> f64| {
            spread(&|trial| {
                let round =
                    trials.iter().filter(|t| (t.ring, t.round) == (trial.ring, trial.round));
                figure(trial) - round.map(figure).fold(f64::INFINITY, f64::min)
            })
        };
        let every = "there is a trial";
        all.push(Candidate {
            ring: one.ring,
            leader: one.leader.clone(),
            predicted_us: spread(&|trial| trial.predicted_us).expect(every),
            measured_us: spread(&|trial| trial.measured_us).expect(every),
            predicted_more_us: more(|trial| trial.predicted_us).expect(every),
            measured_more_us: more(|trial| trial.measured_us).expect(every),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_domain_is_accepted() {
        for ring in RingSetting::ALL {
            assert_eq!(crate::domain::refusal(&ring.shape()), None);
        }
    }

    #[test]
    fn what_a_leader_costs_more_is_counted_from_the_best_of_its_round() {
        let trial = |round, leader: &str, predicted_us, measured_us| Trial {
            ring: RingSetting::Shipped,
            round,
            leader: leader.to_owned(),
            predicted_us,
            measured_us,
        };
        let trials = [
            trial(1, "n1", 300.0, 500.0),
            trial(1, "n2", 100.0, 310.0),
            trial(2, "n1", 310.0, 700.0),
            trial(2, "n2", 100.0, 500.0),
        ];
        let found = candidates(&trials);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].predicted_more_us.max, 210.0);
        assert_eq!((found[0].measured_more_us.min, found[0].measured_more_us.max), (190.0, 200.0));
        assert_eq!(found[1].measured_more_us.max, 0.0);
    }
}
