//! Predicted and measured: a semi-active group whose lead is moved from member to member in one
//! domain, with a client at one gateway.
//!
//! What it is not: the model, which is `quorba-placement`. It is given to the same predictions as
//! `quorba group advise`, from what the nodes' status says.
//!
//! Invariants: every prediction is made from what was measured while one leader led, as an
//! operator's would be; those that are compared with all leaders, while the first one did. What is
//! measured is the client's own figure. Looks are kept: predictions can be made from them again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use quorba_admin::status::Status;
use quorba_config::Domain as DomainFile;
use quorba_node::placement::{Load, Prediction};
use serde::{Deserialize, Serialize};

use crate::block::read_samples;
use crate::domain::{Domain, Servers};
use crate::environment::Environment;
use crate::error::LabError;
use crate::orb::Orb;
use crate::placement::Setting;
use crate::plan::DomainShape;
use crate::report;
use crate::run::{LabOptions, echo_dir};
use crate::stats::Spread;
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
    /// What the model says of it, in microseconds, by what was measured while the first leader led.
    pub predicted_us: f64,
    /// Mean of the middle half of the client's calls: a client that is sometimes late for the token
    /// has two latencies, and a median would be one of them.
    pub measured_us: f64,
    /// What the model says of every leader by what was measured while this one led.
    pub asked: Vec<Asked>,
}

/// A prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// The leader's node.
    pub leader: String,
    /// In microseconds.
    pub predicted_us: f64,
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
    /// Predicted, less what was measured in the same round, in percent of that.
    pub error_percent: Spread,
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

/// What the nodes said of themselves before calls and behind them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Looks {
    seconds: f64,
    before: Vec<Status>,
    after: Vec<Status>,
}

/// One line of `samples.ndjson`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    trial: &'a Trial,
    looks: &'a Looks,
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
    let (rounds, calls) = options.rounds_and_calls(PLAN, (ROUNDS, CALLS), (1, QUICK_CALLS))?;
    let program = options.program()?;
    let echo = echo_dir(options, &program)?;
    let (environment, interrupt, mut record) = options.begin(tell)?;
    let bench = Bench { program, echo, calls };
    let mut trials = Vec::new();
    for round in 1..=rounds {
        for ring in RingSetting::ALL {
            let result = bench.run(ring, round);
            let of = (ring.text(), Setting::Free, round);
            let found = record.measured(&interrupt.flag, of, result)?;
            for (trial, looks, samples_ns) in found {
                tell(&format!(
                    "round {round}/{rounds}  {}  leader {}  predicted {:6.0} us  \
                     measured {:6.0} us",
                    ring.text(),
                    trial.leader,
                    trial.predicted_us,
                    trial.measured_us
                ));
                let line = Line { trial: &trial, looks: &looks, samples_ns: &samples_ns };
                record.line(&line)?;
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
    let folder = record.finish(&run, &report::leaders_page(&run))?;
    Ok(Outcome { run, folder })
}

struct Bench {
    program: PathBuf,
    echo: PathBuf,
    calls: u32,
}

impl Bench {
    /// One domain: each member leads in turn.
    fn run(&self, ring: RingSetting, round: u32) -> Result<Vec<(Trial, Looks, Vec<u64>)>, String> {
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let server = Orb::Omniorb.server(&self.echo);
        let servers = Servers::Echo(Orb::Omniorb, &server);
        let domain = Domain::start(&ring.shape(), &self.program, servers, folder.path(), false)?;
        let file = DomainFile::load(&folder.path().join("quorba.toml"))
            .map_err(|report| report.render(false))?;
        let mut first: Option<Vec<Asked>> = None;
        let mut found = Vec::new();
        for index in 0..MEMBERS {
            domain.promote(index)?;
            let before = domain.statuses()?;
            let began = Instant::now();
            let samples_ns = self.call(domain.gateway(), folder.path())?;
            let seconds = began.elapsed().as_secs_f64();
            let looks = Looks { seconds, before, after: domain.statuses()? };
            let asked = asked(&file, &looks)?;
            let first = first.get_or_insert_with(|| asked.clone());
            let measured_us = usual_us(&samples_ns).ok_or("the client wrote no samples")?;
            let leader = looks.after[index].node.clone();
            let prediction = first.iter().find(|one| one.leader == leader);
            let predicted_us = prediction.ok_or("it is no candidate")?.predicted_us;
            let trial = Trial { ring, round, leader, predicted_us, measured_us, asked };
            found.push((trial, looks, samples_ns));
        }
        Ok(found)
    }

    fn call(&self, gateway: u16, folder: &Path) -> Result<Vec<u64>, String> {
        let samples = folder.join("samples");
        let mut command = Command::new(Orb::Omniorb.client(&self.echo));
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

/// The mean of the middle half, in microseconds.
#[expect(clippy::cast_precision_loss, reason = "calls take far less than 2^52 ns together")]
fn usual_us(samples_ns: &[u64]) -> Option<f64> {
    let mut sorted = samples_ns.to_vec();
    sorted.sort_unstable();
    let middle = &sorted[sorted.len() / 4..(sorted.len() * 3).div_ceil(4)];
    let sum: u64 = middle.iter().sum();
    (!middle.is_empty()).then(|| sum as f64 / middle.len() as f64 / 1e3)
}

/// What an operator would be told who asked meanwhile. This client does nothing between two calls:
/// what its gateway takes for a pause of it is part of the call, as it sees it.
fn asked(file: &DomainFile, looks: &Looks) -> Result<Vec<Asked>, String> {
    let group = file.groups.first().ok_or("the domain has no group")?;
    let over = std::time::Duration::try_from_secs_f64(looks.seconds).map_err(|e| e.to_string())?;
    let both = (&looks.before[..], &looks.after[..]);
    let (load, _) = Load::between(file, &group.name, both, over).ok_or("the group is not known")?;
    let pauses = load.call_timings.iter().flat_map(|call_timings| call_timings.clients.values());
    let pause_us = pauses.map(|times| times[times.len() / 2].as_secs_f64() * 1e6).next();
    let name = |one: &Prediction| file.node(one.leader).map(|node| node.name.clone());
    let asked = |one: &Prediction| {
        let predicted_us = one.latency.as_secs_f64() * 1e6 + pause_us.unwrap_or(0.0);
        Some(Asked { leader: name(one)?, predicted_us })
    };
    Ok(load.predict(file, group).iter().filter_map(asked).collect())
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
            error_percent: spread(&|trial| 100.0 * (trial.predicted_us / trial.measured_us - 1.0))
                .expect(every),
            predicted_more_us: more(|trial| trial.predicted_us).expect(every),
            measured_more_us: more(|trial| trial.measured_us).expect(every),
        });
    }
    all
}

#[cfg(test)]
mod tests;
