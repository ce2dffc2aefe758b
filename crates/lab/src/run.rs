//! A run: every configuration, in every setting, round after round, and what is written down.
//!
//! Rounds are outermost: whatever drifts during a run (heat, other tenants of the host) touches
//! every configuration alike, and the range over the rounds shows it.
//!
//! Invariants: a line of `samples.ndjson` is written as soon as its block has ended, so that a
//! run that fails keeps what it has; standard output is not written to.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use crate::block::{Bench, Measured};
use crate::environment::Environment;
use crate::error::LabError;
use crate::irl;
use crate::orb::Orb;
use crate::placement::Setting;
use crate::plan::{Changes, Plan};
use crate::record::{Block, Run};
use crate::report::{self, Plots};
use crate::zhao::Samples;

/// Where the echo programs are below the workspace's folder, once they are built.
const ECHO_BELOW_WORKSPACE: &str = "target/examples/omniorb-echo";

/// What a caller chooses.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// A plan's name, or the path of one.
    pub plan: String,
    /// What is different from the plan.
    pub changes: Changes,
    /// Where the echo programs are; looked for if none.
    pub echo_dir: Option<PathBuf>,
    /// The folder in which the run gets a folder of its own.
    pub out: PathBuf,
    /// Measure even where figures would mislead. They are marked.
    pub anyway: bool,
    /// The `quorba` program; this very one if none.
    pub program: Option<PathBuf>,
}

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was found.
    pub run: Run,
    /// The run's folder: `run.json`, `samples.ndjson`, `report.html`.
    pub folder: PathBuf,
}

/// One line of `samples.ndjson`.
#[derive(Serialize)]
struct SampleLine<'a> {
    #[serde(flatten)]
    block: &'a Block,
    /// Every measured call, in order.
    samples_ns: &'a [u64],
}

/// Another line of `samples.ndjson`: what a node has recorded.
#[derive(Serialize)]
struct TraceLine<'a> {
    configuration: &'a str,
    setting: Setting,
    round: u32,
    /// From 0, the client's node, along the ring.
    node: usize,
    series: &'static str,
    samples_ns: &'a [u64],
}

/// Runs a plan. What happens is told to `tell`, line by line.
///
/// # Errors
/// [`LabError`]; what was measured before stays in the run's folder.
pub fn run(options: &LabOptions, tell: &mut dyn FnMut(&str)) -> Result<Outcome, LabError> {
    let plan = Plan::find(&options.plan)?.with(options.changes.clone())?;
    let program = options.program()?;
    let uses_echo = plan.configurations.iter().any(|one| one.chain.uses_echo());
    let echo_dir = if uses_echo { echo_dir(options, &program)? } else { PathBuf::new() };
    if let Some(orb) = plan.orbs().find(|orb| !orb.is_built(&echo_dir)) {
        let path = orb.client(&echo_dir);
        return Err(LabError::EchoMissing { path });
    }
    let (environment, interrupt, record) = options.begin(tell)?;
    let bench = Bench { program, echo_dir, plan: &plan, interrupted: &interrupt.flag };
    record.measure(&bench, environment, tell)
}

impl LabOptions {
    /// The `quorba` program.
    pub(crate) fn program(&self) -> Result<PathBuf, LabError> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => {
                std::env::current_exe().map_err(LabError::system("find the program's own file"))
            }
        }
    }

    /// Rounds and calls of a plan that leaves nothing else to choose; `usual` and `quick` are what
    /// it has itself.
    pub(crate) fn rounds_and_calls(
        &self,
        plan: &str,
        usual: (u32, u32),
        quick: (u32, u32),
    ) -> Result<(u32, u32), LabError> {
        if self.changes.only.is_some() {
            return Err(LabError::Plan(format!("plan {plan} has nothing to choose from")));
        }
        self.rounds_and_calls_of(plan, usual, quick)
    }

    /// The same of a plan that leaves to choose what is measured.
    pub(crate) fn rounds_and_calls_of(
        &self,
        plan: &str,
        usual: (u32, u32),
        quick: (u32, u32),
    ) -> Result<(u32, u32), LabError> {
        let changes = &self.changes;
        if changes.settings.is_some() {
            return Err(LabError::Plan(format!("plan {plan} has no settings to choose from")));
        }
        let (rounds, calls) = if changes.quick { quick } else { usual };
        Ok((changes.rounds.unwrap_or(rounds), changes.calls.unwrap_or(calls)))
    }

    /// Whether something is to be measured, by its name: everything, if nothing was chosen.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.changes.only.as_ref().is_none_or(|only| only.iter().any(|one| one == name))
    }

    /// Refuses names that are none of `known`.
    pub(crate) fn check_only(&self, plan: &str, known: &[String]) -> Result<(), LabError> {
        let only = self.changes.only.iter().flatten();
        match only.into_iter().find(|one| !known.contains(one)) {
            None => Ok(()),
            Some(unknown) => Err(LabError::Plan(format!(
                "plan {plan} has no {unknown:?}; it has {}",
                known.join(", ")
            ))),
        }
    }

    /// Looks at the machine, listens to who wants the run to end, and makes its folder.
    pub(crate) fn begin(
        &self,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(Environment, Interrupt, Record), LabError> {
        let environment = self.environment(tell)?;
        let interrupt = Interrupt::listen()?;
        let record = Record::open(&self.out)?;
        tell(&format!("writing to {}", record.folder.display()));
        Ok((environment, interrupt, record))
    }

    /// What is known of the machine, if it is one to measure on, or was asked to be anyway.
    fn environment(&self, tell: &mut dyn FnMut(&str)) -> Result<Environment, LabError> {
        let environment = Environment::read();
        let faults = environment.faults();
        if !faults.is_empty() && !self.anyway {
            return Err(LabError::Unfit { reasons: faults });
        }
        for fault in faults {
            tell(&format!("warning: {fault}; the figures will mislead"));
        }
        Ok(environment)
    }
}

/// The run's folder and what is in it.
pub(crate) struct Record {
    pub(crate) folder: PathBuf,
    pub(crate) began: String,
    samples: BufWriter<File>,
}

impl Record {
    fn open(out: &Path) -> Result<Self, LabError> {
        let began = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let folder = out.join(began.replace(':', "-"));
        let doing = format!("make the folder {}", folder.display());
        // Two runs in one second must not write into one folder.
        fs::create_dir_all(out)
            .and_then(|()| fs::create_dir(&folder))
            .map_err(LabError::system(doing))?;
        let samples = folder.join("samples.ndjson");
        let doing = format!("write {}", samples.display());
        let samples = File::create(samples).map_err(LabError::system(doing))?;
        Ok(Self { folder, began, samples: BufWriter::new(samples) })
    }

    fn measure(
        mut self,
        bench: &Bench<'_>,
        environment: Environment,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Outcome, LabError> {
        let plan = bench.plan;
        let (mut blocks, mut plots) = (Vec::new(), Plots::default());
        let mut repeated = Samples::default();
        for round in 1..=plan.rounds {
            for setting in &plan.settings {
                for configuration in &plan.configurations {
                    let result = bench.run(configuration, *setting, round);
                    let of = (&configuration.name[..], *setting, round);
                    let measured = self.measured(bench.interrupted, of, result)?;
                    let block = &measured.block;
                    tell(&block_line(block, plan.rounds));
                    plots.add(block, &measured.samples_ns);
                    self.keep(&measured).map_err(LabError::system("keep the samples"))?;
                    if let (Some(repeats), Some(trace)) = (configuration.repeats, measured.trace) {
                        repeated.add(*setting, repeats, &measured.samples_ns, trace);
                    }
                    blocks.push(measured.block);
                }
            }
        }
        let mut run = Run::of(plan, self.began.clone(), environment, blocks);
        run.zhao2002 = repeated.outcome();
        let folder = self.finish(&run, &page(&run, &plots, &repeated))?;
        Ok(Outcome { run, folder })
    }

    /// What a measurement gave, unless it failed or somebody wants the run to end.
    pub(crate) fn measured<T>(
        &self,
        interrupted: &AtomicBool,
        (configuration, setting, round): (&str, Setting, u32),
        result: Result<T, String>,
    ) -> Result<T, LabError> {
        if interrupted.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted { folder: self.folder.clone() });
        }
        result.map_err(|reason| LabError::Block {
            configuration: configuration.to_owned(),
            setting: setting.as_str(),
            round,
            reason,
        })
    }

    fn keep(&mut self, measured: &Measured) -> io::Result<()> {
        let Measured { block, samples_ns, trace } = measured;
        self.write(&SampleLine { block, samples_ns })?;
        let nodes = trace.iter().flat_map(|trace| &trace.nodes).enumerate();
        for (node, (series, samples_ns)) in
            nodes.flat_map(|(node, one)| one.series().into_iter().map(move |series| (node, series)))
        {
            let Block { configuration, setting, round, .. } = block;
            let line = TraceLine {
                configuration,
                setting: *setting,
                round: *round,
                node,
                series,
                samples_ns,
            };
            self.write(&line)?;
        }
        Ok(())
    }

    /// Adds a line to the samples.
    pub(crate) fn line(&mut self, line: &impl Serialize) -> Result<(), LabError> {
        self.write(line).map_err(LabError::system("keep the samples"))
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.samples, line)?;
        self.samples.write_all(b"\n")?;
        self.samples.flush()
    }

    /// Writes the record of the run, and its page; gives the folder.
    pub(crate) fn finish(self, run: &impl Serialize, page: &str) -> Result<PathBuf, LabError> {
        let doing = format!("write to {}", self.folder.display());
        self.pages(run, page).map_err(LabError::system(doing))?;
        Ok(self.folder)
    }

    fn pages(&self, run: &impl Serialize, page: &str) -> io::Result<()> {
        let mut json = serde_json::to_vec_pretty(run)?;
        json.push(b'\n');
        fs::write(self.folder.join("run.json"), json)?;
        fs::write(self.folder.join("report.html"), page)
    }
}

fn page(run: &Run, plots: &Plots, repeated: &Samples) -> String {
    match &run.zhao2002 {
        Some(outcome) => report::zhao_page(run, outcome, repeated),
        None if run.plan == irl::PLAN => report::irl_page(run),
        None => report::html(run, plots),
    }
}

fn block_line(block: &Block, rounds: u32) -> String {
    format!(
        "round {}/{rounds}  {:<6}  {:<16}  p50 {:7.1} us  p99 {:8.1} us  cpu {:7.1} us/call{}",
        block.round,
        block.setting.as_str(),
        block.configuration,
        block.latency.p50_us,
        block.latency.p99_us,
        block.cpu_us,
        if block.others_percent + block.stolen_percent < 1.0 {
            String::new()
        } else {
            format!("  others {:.0} %", block.others_percent + block.stolen_percent)
        },
    )
}

/// The folder of the echo programs that a run uses.
pub(crate) fn echo_dir(options: &LabOptions, program: &Path) -> Result<PathBuf, LabError> {
    match &options.echo_dir {
        Some(folder) => check_echo(folder.clone()),
        None => find_echo(program),
    }
}

/// The folder of the echo programs, below the workspace in which we are or were built.
fn find_echo(program: &Path) -> Result<PathBuf, LabError> {
    let here = std::env::current_dir().unwrap_or_default();
    let candidates: Vec<PathBuf> = (here.ancestors().chain(program.ancestors()))
        .map(|folder| folder.join(ECHO_BELOW_WORKSPACE))
        .collect();
    let found = candidates.iter().find(|folder| has_echo(folder));
    match found {
        Some(folder) => Ok(folder.clone()),
        None => Err(LabError::EchoMissing { path: here.join(ECHO_BELOW_WORKSPACE) }),
    }
}

fn check_echo(folder: PathBuf) -> Result<PathBuf, LabError> {
    if has_echo(&folder) {
        // The nodes start the server, and they have a working directory of their own.
        let doing = format!("find {}", folder.display());
        return folder.canonicalize().map_err(LabError::system(doing));
    }
    Err(LabError::EchoMissing { path: folder })
}

fn has_echo(folder: &Path) -> bool {
    Orb::Omniorb.is_built(folder)
}

/// The wish of a user or the system that the run ends.
pub(crate) struct Interrupt {
    pub(crate) flag: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    pub(crate) fn listen() -> Result<Self, LabError> {
        let mut interrupt = Self { flag: Arc::default(), handlers: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let handler = flag::register(signal, interrupt.flag.clone())
                .map_err(LabError::system("listen to Ctrl-C"))?;
            interrupt.handlers.push(handler);
        }
        Ok(interrupt)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}
