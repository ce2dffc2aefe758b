//! The naming service beside omniNames: `resolve` and `bind`, by one client and by many, and what a
//! million bindings cost.
//!
//! omniNames alone, a durable service of three replicas, and one in memory take turns, round after
//! round; the client is the same for all. The durable one is then filled, and one of its processes
//! killed: how long it takes until it is in again.
//!
//! What it is not: a test. Invariant: each figure is of a service that the round has started, with
//! the same names bound.

mod stand;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::Object;
use quorba_idl::cos_naming::{Name, NameComponent, NamingContextStub};
use quorba_orb::{Client, ClientOptions, Reference};
use serde::Serialize;

use crate::environment::Environment;
use crate::error::LabError;
use crate::placement::Setting;
use crate::run::LabOptions;
use crate::stats::{Percentiles, Spread};
use stand::Stand;

/// What the plan is called on the command line.
pub const PLAN: &str = "naming";
const ROUNDS: u32 = 3;
/// Measured calls of one client, and the time for which many call.
const CALLS: u32 = 5_000;
const QUICK_CALLS: u32 = 1_000;
const RUSH: Duration = Duration::from_secs(4);
const QUICK_RUSH: Duration = Duration::from_secs(1);
/// Calls before the first that counts.
const WARM_UP: u32 = 300;
const CLIENTS: usize = 16;
const BINDINGS: u64 = 1_000_000;
const QUICK_BINDINGS: u64 = 50_000;
/// Bindings of one context.
const OF_CONTEXT: u64 = 1_000;
/// Names that are bound before anything is measured.
const NAMES: u32 = 1_000;
const CALL_WITHIN: Duration = Duration::from_secs(60);

/// Which naming service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// omniNames, alone.
    OmniNames,
    /// Ours, three replicas, in memory.
    Memory,
    /// Ours, three replicas, on disk.
    Durable,
}

impl Service {
    const ALL: [Self; 3] = [Self::OmniNames, Self::Memory, Self::Durable];

    const fn name(self) -> &'static str {
        match self {
            Self::OmniNames => "omniNames",
            Self::Memory => "three replicas",
            Self::Durable => "three replicas, durable",
        }
    }
}

/// What was found of one service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// From 1.
    pub round: u32,
    /// Of which.
    pub service: Service,
    /// `resolve` by one client: half of the calls took at most this.
    pub resolve_p50_us: f64,
    /// The same of 99 in 100.
    pub resolve_p99_us: f64,
    /// `resolve` by sixteen clients together.
    pub resolves_per_s: f64,
    /// `bind` by one client.
    pub bind_p50_us: f64,
    /// `bind` by sixteen clients together.
    pub binds_per_s: f64,
}

/// What many bindings cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Filled {
    /// How many.
    pub bindings: u64,
    /// From the first to the last.
    pub fill_s: f64,
    /// Resident memory of the service's process; the most of all replicas.
    pub replica_mib: f64,
    /// The same of the node's.
    pub node_mib: f64,
    /// From the kill of a service's process until its member is in again.
    pub restart_s: f64,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Naming {
    /// The plan's name.
    pub plan: &'static str,
    /// When it began, in UTC.
    pub began: String,
    /// The machine and the build.
    pub environment: Environment,
    /// Why the figures mislead; empty if nothing is known against them.
    pub faults: Vec<String>,
    /// Every service in every round.
    pub trials: Vec<Trial>,
    /// Of the durable one, once.
    pub filled: Option<Filled>,
}

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was found.
    pub run: Naming,
    /// The run's folder: `run.json`, `samples.ndjson`, `report.html`.
    pub folder: PathBuf,
}

/// Measures all services. What happens is told to `tell`, line by line.
///
/// # Errors
/// [`LabError`]; what was measured before stays in the run's folder.
pub fn run(options: &LabOptions, tell: &mut dyn FnMut(&str)) -> Result<Outcome, LabError> {
    let (rounds, calls) = options.rounds_and_calls(PLAN, (ROUNDS, CALLS), (1, QUICK_CALLS))?;
    let quick = options.changes.quick;
    let (rush, bindings) = if quick { (QUICK_RUSH, QUICK_BINDINGS) } else { (RUSH, BINDINGS) };
    let program = options.program()?;
    let (environment, interrupt, mut record) = options.begin(tell)?;
    let (mut trials, mut filled) = (Vec::new(), None);
    for round in 1..=rounds {
        for service in Service::ALL {
            let of = (service.name(), Setting::Free, round);
            let result = Stand::start(&program, service).and_then(|stand| {
                let trial = trial(&stand, (round, service), (calls, rush))?;
                let is_last = round == rounds && service == Service::Durable;
                let filled = is_last.then(|| fill(&stand, bindings)).transpose()?;
                Ok((trial, filled))
            });
            let (trial, found) = record.measured(&interrupt.flag, of, result)?;
            tell(&line(&trial));
            record.line(&trial)?;
            trials.push(trial);
            filled = found.or(filled);
        }
    }
    let (began, faults) = (record.began.clone(), environment.faults());
    let run = Naming { plan: PLAN, began, environment, faults, trials, filled };
    let page = format!("<!doctype html><title>{PLAN}</title><pre>{}</pre>\n", table(&run));
    let folder = record.finish(&run, &page)?;
    Ok(Outcome { run, folder })
}

fn line(trial: &Trial) -> String {
    format!(
        "round {}  {:<24}  resolve p50 {:5.1} us, p99 {:5.0} us, 16 clients {:6.0}/s  \
         bind p50 {:6.1} us, 16 clients {:6.0}/s",
        trial.round,
        trial.service.name(),
        trial.resolve_p50_us,
        trial.resolve_p99_us,
        trial.resolves_per_s,
        trial.bind_p50_us,
        trial.binds_per_s,
    )
}

/// The summary of a run.
#[must_use]
pub fn table(run: &Naming) -> String {
    let mut lines: Vec<String> =
        run.faults.iter().map(|fault| format!("NOT TO BE RELIED ON: {fault}")).collect();
    lines.extend(run.trials.iter().map(line));
    for service in [Service::Memory, Service::Durable] {
        let name = service.name();
        for (what, of) in RATIOS {
            let ratios = run.trials.chunks_exact(Service::ALL.len()).filter_map(|round| {
                let of_service = |service| round.iter().find(|trial| trial.service == service);
                Some(of(of_service(service)?) / of(of_service(Service::OmniNames)?))
            });
            if let Some(Spread { median, min, max }) = Spread::of(ratios.collect::<Vec<_>>()) {
                lines.push(format!(
                    "{name}, {what}: {median:.2} of omniNames' ({min:.2}\u{2013}{max:.2})"
                ));
            }
        }
    }
    if let Some(filled) = &run.filled {
        lines.push(format!(
            "{} bindings in {:.0} s: {:.0} MiB a replica, {:.0} MiB a node; a killed replica is in \
             again in {:.1} s",
            filled.bindings, filled.fill_s, filled.replica_mib, filled.node_mib, filled.restart_s
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// A figure of a trial.
type Figure = fn(&Trial) -> f64;

/// What is compared.
const RATIOS: [(&str, Figure); 4] = [
    ("resolve, one client", |trial| trial.resolve_p50_us),
    ("resolves a second, 16 clients", |trial| trial.resolves_per_s),
    ("bind, one client", |trial| trial.bind_p50_us),
    ("binds a second, 16 clients", |trial| trial.binds_per_s),
];

/// Something to bind.
fn object(number: u64) -> Object {
    let text = format!("corbaloc:iiop:1.2@10.0.0.1:5000/object-{number}");
    Object(
        quorba_orb::giop::corbaloc::parse(&text)
            .map_or_else(|_| quorba_orb::giop::ior::Ior::nil(), |corbaloc| corbaloc.to_ior()),
    )
}

fn name(parts: &[String]) -> Name {
    parts.iter().map(|id| NameComponent { id: id.clone(), kind: String::new() }).collect()
}

/// A client whose first gateway is that of the node `first`. It names no calls, as those of other
/// ORBs do not: for as long as replies are kept for repetitions, one address may name 150,000.
fn client(stand: &Stand, first: usize) -> Result<Client, String> {
    let reference = Reference::parse(&stand.root).map_err(|error| error.to_string())?;
    let options = ClientOptions {
        call_timeout: Some(CALL_WITHIN),
        first_address: first,
        ..ClientOptions::default()
    };
    Ok(Client::new(&reference, options))
}

fn told(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

fn trial(
    stand: &Stand,
    (round, service): (u32, Service),
    (calls, rush): (u32, Duration),
) -> Result<Trial, String> {
    let mut one = client(stand, 0)?;
    for number in 0..NAMES {
        let name = name(&[format!("name-{number}")]);
        let object = object(number.into());
        NamingContextStub(&mut one).bind(&name, &object).map_err(told)?;
    }
    let resolve = |client: &mut Client, number: u64| {
        let name = name(&[format!("name-{}", number % u64::from(NAMES))]);
        NamingContextStub(client).resolve(&name).map(drop).map_err(told)
    };
    let resolves = latency(&mut one, calls, resolve)?;
    let resolves_per_s = rate(stand, rush, resolve)?;
    let bind = |client: &mut Client, number: u64| {
        let name = name(&[format!("more-{number}")]);
        NamingContextStub(client).bind(&name, &object(number)).map_err(told)
    };
    let binds = latency(&mut one, calls, bind)?;
    let rush_bind = |client: &mut Client, number: u64| {
        let name = name(&[format!("rush-{number}")]);
        NamingContextStub(client).bind(&name, &object(number)).map_err(told)
    };
    let binds_per_s = rate(stand, rush, rush_bind)?;
    Ok(Trial {
        round,
        service,
        resolve_p50_us: resolves.p50_us,
        resolve_p99_us: resolves.p99_us,
        resolves_per_s,
        bind_p50_us: binds.p50_us,
        binds_per_s,
    })
}

/// One client that calls without a pause.
fn latency(
    client: &mut Client,
    calls: u32,
    call: impl Fn(&mut Client, u64) -> Result<(), String>,
) -> Result<Percentiles, String> {
    let mut samples = Vec::new();
    for number in 0..u64::from(WARM_UP + calls) {
        let began = Instant::now();
        call(client, number)?;
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if number >= u64::from(WARM_UP) {
            samples.push(took);
        }
    }
    Percentiles::of(&samples).ok_or_else(|| "no calls".to_owned())
}

/// Calls a second of all clients together, each at the next node.
#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 calls")]
fn rate(
    stand: &Stand,
    time: Duration,
    call: impl Fn(&mut Client, u64) -> Result<(), String> + Sync,
) -> Result<f64, String> {
    let stop = Arc::new(AtomicBool::new(false));
    let next = AtomicU64::new(0);
    let began = Instant::now();
    thread::scope(|scope| {
        let (call, next, stop) = (&call, &next, &stop);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|index| {
                scope.spawn(move || {
                    let mut client = client(stand, index)?;
                    while !stop.load(Ordering::Relaxed) {
                        call(&mut client, next.fetch_add(1, Ordering::Relaxed))?;
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|_| Err("a client panicked".into())))
    })?;
    Ok(next.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

/// Binds many names in contexts of their own, and kills one replica.
fn fill(stand: &Stand, bindings: u64) -> Result<Filled, String> {
    let began = Instant::now();
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let next = &next;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|index| scope.spawn(move || fill_on(stand, index, next, bindings)))
            .collect();
        clients
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|_| Err("a client panicked".into())))
    })?;
    let fill_s = began.elapsed().as_secs_f64();
    let (replica_mib, node_mib) = stand.memory_mib()?;
    let restart_s = stand.kill_and_wait()?.as_secs_f64();
    Ok(Filled { bindings, fill_s, replica_mib, node_mib, restart_s })
}

/// One client's part of it: context after context.
fn fill_on(stand: &Stand, index: usize, next: &AtomicU64, bindings: u64) -> Result<(), String> {
    let mut client = client(stand, index)?;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number * OF_CONTEXT >= bindings {
            return Ok(());
        }
        let context = format!("context-{number}");
        let made = name(std::slice::from_ref(&context));
        NamingContextStub(&mut client).bind_new_context(&made).map_err(told)?;
        for binding in 0..OF_CONTEXT {
            let name = name(&[context.clone(), format!("binding-{binding}")]);
            let object = object(number * OF_CONTEXT + binding);
            NamingContextStub(&mut client).bind(&name, &object).map_err(told)?;
        }
    }
}
