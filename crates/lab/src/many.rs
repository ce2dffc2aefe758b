//! What groups cost that rest: a domain with one group that serves, alone and beside thousands
//! whose servers are away.
//!
//! Both domains take turns, round after round: how long they take to be whole, how much memory,
//! threads and processor time a node has while nobody calls, how long its status takes, the
//! latency of the group that serves, and how long a group takes to be created, and to be deleted.
//!
//! What it is not: a test. Invariants: nothing is called while what idle nodes use is measured; a
//! figure per group is the difference of the two domains of one round.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::status::{MemberState, Status};
use quorba_admin::{CatalogChange, Client};
use quorba_config::Definition;
use quorba_net::free_ports;
use serde::Serialize;

use crate::environment::Environment;
use crate::error::LabError;
use crate::failover::caller::Caller;
use crate::nodes::{self, Ports};
use crate::peer::Peer;
use crate::placement::Setting;
use crate::run::LabOptions;
use crate::stats::{Percentiles, Spread};
use crate::usage::run_time_of_process;

/// What the plan is called on the command line.
pub const PLAN: &str = "many-groups";
const ROUNDS: u32 = 3;
const GROUPS: usize = 10_000;
const QUICK_GROUPS: usize = 1_000;
const CALLS: u32 = 5_000;
const QUICK_CALLS: u32 = 1_000;
const NODES: usize = 3;
/// How long nodes have to be whole, and to come to rest, and how long they are watched then.
const WHOLE_WITHIN: Duration = Duration::from_secs(300);
const REST: Duration = Duration::from_secs(10);
const WATCH: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// Groups that are created and deleted, one after the other.
const CHANGES: u32 = 5;

/// What was found of one domain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// From 1.
    pub round: u32,
    /// Of the domain, with the one that serves.
    pub groups: usize,
    /// From the first process until the group serves everywhere and the last node has a status.
    pub start_s: f64,
    /// Anonymous memory of a node; the mean of all.
    pub memory_kib: f64,
    /// Threads of a node; the most of all.
    pub threads: usize,
    /// Of one core, by a node while nobody calls; the mean of all.
    pub idle_percent: f64,
    /// The status of a node.
    pub status_ms: f64,
    /// Half of the calls of one client that calls without a pause took at most this.
    pub p50_us: f64,
    /// To create a group, and to delete it; the median.
    pub create_ms: f64,
    /// The same.
    pub delete_ms: f64,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Many {
    /// The plan's name.
    pub plan: &'static str,
    /// When it began, in UTC.
    pub began: String,
    /// Measured calls in each domain.
    pub calls: u32,
    /// The machine and the build.
    pub environment: Environment,
    /// Why the figures mislead; empty if nothing is known against them.
    pub faults: Vec<String>,
    /// Every domain in every round.
    pub trials: Vec<Trial>,
}

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was found.
    pub run: Many,
    /// The run's folder: `run.json`, `samples.ndjson`, `report.html`.
    pub folder: PathBuf,
}

/// Measures both domains. What happens is told to `tell`, line by line.
///
/// # Errors
/// [`LabError`]; what was measured before stays in the run's folder.
pub fn run(options: &LabOptions, tell: &mut dyn FnMut(&str)) -> Result<Outcome, LabError> {
    let (rounds, calls) = options.rounds_and_calls(PLAN, (ROUNDS, CALLS), (1, QUICK_CALLS))?;
    let groups = if options.changes.quick { QUICK_GROUPS } else { GROUPS };
    let program = options.program()?;
    let (environment, interrupt, mut record) = options.begin(tell)?;
    let mut trials = Vec::new();
    for round in 1..=rounds {
        for groups in [1, groups] {
            let result = trial(&program, (round, groups, calls));
            let of = (&format!("{groups} groups")[..], Setting::Free, round);
            let trial = record.measured(&interrupt.flag, of, result)?;
            tell(&line(&trial));
            record.line(&trial)?;
            trials.push(trial);
        }
    }
    let (began, faults) = (record.began.clone(), environment.faults());
    let run = Many { plan: PLAN, began, calls, faults, environment, trials };
    let page = format!("<!doctype html><title>{PLAN}</title><pre>{}</pre>\n", table(&run));
    let folder = record.finish(&run, &page)?;
    Ok(Outcome { run, folder })
}

fn line(trial: &Trial) -> String {
    format!(
        "round {}  {:>6} groups  start {:5.1} s  memory {:7.0} KiB  threads {}  idle {:4.2} %  \
         status {:6.1} ms  p50 {:5.0} us  create {:5.1} ms  delete {:5.1} ms",
        trial.round,
        trial.groups,
        trial.start_s,
        trial.memory_kib,
        trial.threads,
        trial.idle_percent,
        trial.status_ms,
        trial.p50_us,
        trial.create_ms,
        trial.delete_ms,
    )
}

/// The summary of a run.
#[must_use]
pub fn table(run: &Many) -> String {
    let mut lines: Vec<String> =
        run.faults.iter().map(|fault| format!("NOT TO BE RELIED ON: {fault}")).collect();
    lines.extend(run.trials.iter().map(line));
    let (of_group, slower): (Vec<f64>, Vec<f64>) = run.trials.chunks_exact(2).map(compared).unzip();
    for (what, figures) in
        [("bytes per group and node", of_group), ("latency, in percent of alone", slower)]
    {
        if let Some(Spread { median, min, max }) = Spread::of(figures) {
            lines.push(format!("{what}: {median:.0} ({min:.0}\u{2013}{max:.0})"));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Of one round: bytes per group and node, and the latency beside many in percent of that alone.
#[expect(clippy::cast_precision_loss, reason = "there are few groups")]
fn compared(round: &[Trial]) -> (f64, f64) {
    let (alone, many) = (&round[0], &round[1]);
    let more = (many.groups - alone.groups).max(1) as f64;
    let bytes = (many.memory_kib - alone.memory_kib) * 1024.0 / more;
    (bytes, many.p50_us / alone.p50_us * 100.0)
}

/// A domain on the loopback interface.
struct Stand {
    processes: Vec<Peer>,
    admins: Vec<Client>,
    ports: Ports,
    /// Where no server is.
    away: u16,
}

fn trial(program: &Path, (round, groups, calls): (u32, usize, u32)) -> Result<Trial, String> {
    let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
    let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
    let (mut stand, file) = Stand::prepare(folder.path(), (program, groups))?;
    let began = Instant::now();
    stand.start(program, &file)?;
    stand.await_whole(groups)?;
    let start_s = began.elapsed().as_secs_f64();
    thread::sleep(REST);
    let idle_percent = stand.idle_percent()?;
    let (memory_kib, threads) = stand.sizes()?;
    let asked = Instant::now();
    stand.status(0)?;
    let status_ms = asked.elapsed().as_secs_f64() * 1e3;
    let p50_us = stand.latency(calls)?;
    let (create_ms, delete_ms) = stand.changes()?;
    Ok(Trial {
        round,
        groups,
        start_s,
        memory_kib,
        threads,
        idle_percent,
        status_ms,
        p50_us,
        create_ms,
        delete_ms,
    })
}

/// A group whose servers are away, each at an address of its own.
fn absent(name: &str, index: usize, port: u16) -> String {
    let at = |node| Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + (index * 4 + node) as u32);
    let server = |node| format!("n{node} = \"{}:{port}\"", at(node));
    let servers: Vec<String> = (1..=NODES).map(server).collect();
    format!(
        "[group.{name}]\nstyle = \"active\"\nobject_key = \"bank\"\n\
         members = [\"n1\", \"n2\", \"n3\"]\nconnect = {{ {} }}\n",
        servers.join(", ")
    )
}

impl Stand {
    fn prepare(
        folder: &Path,
        (program, groups): (&Path, usize),
    ) -> Result<(Self, PathBuf), String> {
        let failed = |error: io::Error| format!("cannot prepare the domain: {error}");
        let mut ports = free_ports(NODES * 3 + 1).map_err(failed)?;
        let away = ports.split_off(NODES * 3)[0];
        let ports = Ports::of(ports);
        let mut text = format!(
            "[domain]\nid = \"many\"\nkey_file = \"domain.key\"\n[gateway]\nlisten = {}\n",
            ports.listen()
        );
        text.push_str(&ports.tables());
        let server = serde_json::Value::from(program.to_string_lossy().as_ref());
        text.push_str(&format!(
            "[group.bank]\nstyle = \"active\"\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
             server = [{server}, \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n"
        ));
        (1..groups).for_each(|index| text.push_str(&absent(&format!("g{index}"), index, away)));
        let file = nodes::write_files(folder, &text).map_err(failed)?;
        let admins = ports.admin_clients(folder);
        Ok((Self { processes: Vec::new(), admins, ports, away }, file))
    }

    fn start(&mut self, program: &Path, file: &Path) -> Result<(), String> {
        for index in 0..NODES {
            self.processes.push(nodes::start(program, file, index)?);
        }
        Ok(())
    }

    fn status(&self, index: usize) -> Result<Status, String> {
        self.admins[index].status(ANSWER_WITHIN).map_err(|error| error.to_string())
    }

    /// Waits until the group that serves is whole, as every node sees it.
    fn await_whole(&mut self, groups: usize) -> Result<(), String> {
        let deadline = Instant::now() + WHOLE_WITHIN;
        for index in 0..NODES {
            loop {
                if let Some(death) = self.processes.iter_mut().find_map(Peer::death) {
                    return Err(format!("{death}\n{}", self.processes[index].log_tail()));
                }
                let seen = self.status(index);
                if seen.as_ref().is_ok_and(|status| is_whole(status, groups)) {
                    break;
                }
                if Instant::now() >= deadline {
                    return Err(format!("not whole: {}", self.processes[index].log_tail()));
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "there are few nodes")]
    fn idle_percent(&self) -> Result<f64, String> {
        let ran = || {
            let all = self.processes.iter().map(|peer| run_time_of_process(peer.pid()));
            all.sum::<io::Result<Duration>>().map_err(|error| error.to_string())
        };
        let (before, began) = (ran()?, Instant::now());
        thread::sleep(WATCH);
        let used = ran()?.saturating_sub(before).as_secs_f64();
        Ok(used / began.elapsed().as_secs_f64() / NODES as f64 * 100.0)
    }

    /// KiB of memory of a node, in the middle, and threads of the one that has most.
    #[expect(clippy::cast_precision_loss, reason = "less than 52 bits of memory")]
    fn sizes(&self) -> Result<(f64, usize), String> {
        let (mut memory, mut threads) = (0, 0);
        for peer in &self.processes {
            let text = fs::read_to_string(format!("/proc/{}/status", peer.pid()))
                .map_err(|error| error.to_string())?;
            let field = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                let word = line.and_then(|line| line.split_whitespace().next());
                word.and_then(|word| word.parse::<usize>().ok()).ok_or("/proc has another form")
            };
            memory += field("RssAnon:")?;
            threads = threads.max(field("Threads:")?);
        }
        Ok((memory as f64 / NODES as f64, threads))
    }

    /// Half of the calls of one client took at most this, in microseconds.
    fn latency(&self, calls: u32) -> Result<f64, String> {
        let caller = Caller::start(&self.ports.corbaloc("QRB/bank/bank"))?;
        let deadline = Instant::now() + WHOLE_WITHIN;
        while caller.answered() <= u64::from(calls) {
            if Instant::now() >= deadline {
                return Err("the client is not answered".to_owned());
            }
            thread::sleep(LOOK);
        }
        let replies = caller.stop().replies;
        let took = |pair: &[Instant]| {
            u64::try_from(pair[1].duration_since(pair[0]).as_nanos()).unwrap_or(u64::MAX)
        };
        let samples: Vec<u64> = replies.windows(2).map(took).collect();
        Percentiles::of(&samples).map(|all| all.p50_us).ok_or_else(|| "no calls".to_owned())
    }

    /// Creates and deletes groups: the median milliseconds of each.
    fn changes(&self) -> Result<(f64, f64), String> {
        let (mut created, mut deleted) = (Vec::new(), Vec::new());
        for number in 0..CHANGES {
            let name = format!("late{number}");
            let text = absent(&name, GROUPS + number as usize, self.away);
            let create = CatalogChange::Create(Definition { name: name.clone(), text });
            for (change, took) in
                [(create, &mut created), (CatalogChange::Delete(name), &mut deleted)]
            {
                let began = Instant::now();
                let is_delete = matches!(change, CatalogChange::Delete(_));
                let operation = format!("{number}{}", if is_delete { "d" } else { "c" });
                self.admins[0]
                    .define(&operation, &change, ANSWER_WITHIN)
                    .map_err(|error| error.to_string())?;
                took.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        let median = |all| Spread::of(all).map_or(0.0, |spread: Spread| spread.median);
        Ok((median(created), median(deleted)))
    }
}

fn is_whole(status: &Status, groups: usize) -> bool {
    let bank = status.groups.iter().find(|group| group.name == "bank");
    let is_in = |bank: &quorba_admin::status::GroupStatus| {
        bank.members.iter().filter(|member| member.state == MemberState::In).count() == NODES
    };
    status.groups.len() == groups && bank.is_some_and(is_in)
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(Peer::ask_to_end);
    }
}
