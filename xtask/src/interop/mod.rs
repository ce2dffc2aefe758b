//! `cargo xtask interop`: real ORBs in front of and behind three node processes, and faults.
//!
//! What it is not: a test of parts. Nothing is replaced here: the nodes are `quorba node`
//! processes, the servers and clients are the examples, the faults are real signals.
//!
//! Invariants: every case starts with processes and folders of its own and leaves none; whatever
//! cannot run on this machine is skipped by name; what became of the calls is counted from the
//! servers' own final state, past every gateway.

mod bank;
mod cluster;
mod domain;
mod events;
mod fault;
mod fleet;
mod live;
mod load;
mod names;
mod naming;
mod odd;
mod operations;
mod services;
mod tls;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::RangedI64ValueParser;
use quorba_base::policy::Style;
use quorba_lab::skips::skip;

use crate::examples::{self, Example};
use crate::say::Outcome;
use crate::workspace;
use bank::Setting;
pub(crate) use cluster::has_libraries as has_corosync_libraries;
pub(crate) use domain::more_ports;
use fault::Fault;

/// What `--jobs` may be.
fn jobs() -> RangedI64ValueParser<u8> {
    RangedI64ValueParser::new().range(1..=8)
}

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Only cases whose names contain one of these
    filters: Vec<String>,
    /// Print the names of the cases and run none
    #[arg(long)]
    list: bool,
    /// How long the clients call in each case
    #[arg(long, default_value_t = 6.0, value_name = "SECONDS")]
    seconds: f64,
    /// Calls per second of all clients together
    #[arg(long, default_value_t = 300, value_name = "CALLS")]
    rate: u32,
    /// Time between two deaths, in the cases named `kills`
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    kill_every: f64,
    /// Use this quorba, instead of building one
    #[arg(long, value_name = "FILE")]
    quorba: Option<PathBuf>,
    /// Cases that run at the same time; those with networks of their own run one by one
    #[arg(long, default_value_t = 2, value_name = "CASES", value_parser = jobs())]
    jobs: u8,
    /// Keep the folders of cases that passed, too
    #[arg(long)]
    keep: bool,
}

/// Which ORB a server or a client stands on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Orb {
    Omniorb,
    Jacorb,
}

impl Orb {
    const BOTH: [Self; 2] = [Self::Omniorb, Self::Jacorb];

    const fn name(self) -> &'static str {
        match self {
            Self::Omniorb => "omniorb",
            Self::Jacorb => "jacorb",
        }
    }

    const fn example(self) -> Example {
        match self {
            Self::Omniorb => Example::OmniorbBank,
            Self::Jacorb => Example::JacorbBank,
        }
    }
}

/// Where the nodes of a case live.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Network {
    /// Three nodes beside each other on the loopback interface.
    Loopback,
    /// Each node in a network namespace of its own, joined by a bridge.
    Namespaces,
    /// The same, and a Corosync cluster makes the order.
    Corosync,
}

#[derive(Clone, Copy)]
enum Case {
    Bank(Setting),
    Bridge,
    Events(events::Clients),
    Filters,
    Live(live::Story),
    Names { victim: usize },
    Naming(naming::Story),
    Odd(odd::Setting),
    Operations(operations::Service),
    Services,
    Tls(tls::Setting),
}

/// The styles in which members have a state.
const STYLES: [&str; 5] = [
    Style::Active.as_str(),
    Style::ActiveWithVoting.as_str(),
    Style::SemiActive.as_str(),
    Style::WarmPassive.as_str(),
    Style::ColdPassive.as_str(),
];
/// The style in which they have none that they share.
const STATELESS: &str = Style::Stateless.as_str();
/// Those of them that are tried with servers of a second ORB as well: what differs from style to
/// style is what a server is asked for.
const STYLES_OF_BOTH: [&str; 2] = [Style::WarmPassive.as_str(), Style::ColdPassive.as_str()];

impl Case {
    fn all() -> Vec<Self> {
        let in_namespaces =
            [Fault::KillNode, Fault::CutNode].map(|fault| (fault, Network::Namespaces));
        let over_corosync = [
            Fault::KillServer,
            Fault::KillNode,
            Fault::CutNode,
            Fault::Replace,
            Fault::Restart,
            Fault::KillCorosync,
        ]
        .map(|fault| (fault, Network::Corosync));
        let elsewhere = in_namespaces.into_iter().chain(over_corosync).map(|(fault, network)| {
            Self::Bank(Setting { network, ..Setting::active(Orb::Omniorb, Orb::Omniorb, fault) })
        });
        // Only omniORB minds octets behind the arguments.
        let odd = [("active", false), ("warm-passive", false), ("active", true)];
        let odd = odd.map(|(style, is_durable)| {
            let active = Setting::active(Orb::Omniorb, Orb::Omniorb, Fault::NewerIdl);
            Self::Bank(Setting { clients: Orb::BOTH, style, is_durable, ..active })
        });
        let plain = Setting::active(Orb::Omniorb, Orb::Omniorb, Fault::KillNode);
        let adapted = Self::Bank(Setting { is_adapted: true, ..plain });
        // What the order is made by is nothing to an ORB; one case of the other shows that.
        let other = Setting::active(Orb::Jacorb, Orb::Jacorb, Fault::KillNode);
        Self::of_processes()
            .chain(Self::of_styles())
            .chain((0..domain::NODES).map(|victim| Self::Names { victim }))
            .chain(naming::Story::ALL.map(Self::Naming))
            .chain(operations::Service::ALL.map(Self::Operations))
            .chain([Self::Services])
            .chain(events::Clients::ALL.map(Self::Events))
            .chain([Self::Bridge, Self::Filters])
            .chain(live::Story::ALL.map(Self::Live))
            .chain(odd)
            .chain([adapted])
            .chain(odd::Setting::all().map(Self::Odd))
            .chain(tls::Setting::all().map(Self::Tls))
            .chain(elsewhere)
            .chain([Self::Bank(Setting { network: Network::Corosync, ..other })])
            .collect()
    }

    fn of_processes() -> impl Iterator<Item = Self> {
        let pairs = Orb::BOTH
            .into_iter()
            .flat_map(|server| Orb::BOTH.into_iter().map(move |client| (client, server)));
        pairs.flat_map(|(client, server)| {
            // Where an operator's restart shows nothing but JacORB's fault, a replaced node
            // shows the state transfer; elsewhere it would show nothing new.
            let is_new = move |fault: &Fault| *fault != Fault::Replace || client == Orb::Jacorb;
            let faults = Fault::PROCESSES.into_iter().filter(is_new);
            faults.map(move |fault| Self::Bank(Setting::active(client, server, fault)))
        })
    }

    /// Clients of both ORBs, and deaths of every kind.
    fn of_styles() -> impl Iterator<Item = Self> {
        let of = |server, styles: &'static [&'static str], is_durable| {
            styles.iter().map(move |style| {
                Self::Bank(Setting {
                    clients: Orb::BOTH,
                    server,
                    style,
                    is_durable,
                    fault: Fault::Kills { domain: is_durable },
                    network: Network::Loopback,
                    is_adapted: false,
                })
            })
        };
        of(Orb::Omniorb, &STYLES, false)
            .chain(of(Orb::Omniorb, &[STATELESS], false))
            .chain(of(Orb::Jacorb, &STYLES_OF_BOTH, false))
            .chain(of(Orb::Omniorb, &STYLES, true))
    }

    fn name(self) -> String {
        match self {
            Self::Bank(Setting {
                style,
                server,
                is_durable,
                fault: fault @ (Fault::Kills { .. } | Fault::NewerIdl),
                ..
            }) => {
                let durable = if is_durable { "durable-" } else { "" };
                format!("{durable}{style}-{}-{}", server.name(), fault.name())
            }
            Self::Bank(Setting {
                clients: [client, _],
                server,
                fault,
                network,
                is_adapted,
                ..
            }) => {
                let place = match network {
                    Network::Loopback => "",
                    Network::Namespaces => "-in-namespaces",
                    Network::Corosync => "-over-corosync",
                };
                let client = if is_adapted { "adapter" } else { client.name() };
                format!("{client}-to-{}-{}{place}", server.name(), fault.name())
            }
            Self::Live(story) => story.name().into(),
            Self::Bridge => "events-bridge-omnievents".into(),
            Self::Filters => "events-filters".into(),
            Self::Events(clients) => clients.name(),
            Self::Naming(story) => story.name().into(),
            Self::Odd(setting) => setting.name(),
            Self::Operations(service) => service.name().into(),
            Self::Services => "services-kills".into(),
            Self::Tls(setting) => setting.name(),
            Self::Names { victim } => format!("nameclt-to-omninames-kill-{}", victim + 1),
        }
    }

    fn has_own_network(self) -> bool {
        matches!(self, Self::Bank(Setting { network, .. }) if network != Network::Loopback)
    }

    fn examples(self) -> Vec<Example> {
        match self {
            Self::Bank(Setting { clients, server, is_adapted, .. }) => {
                let adapter = is_adapted.then_some(Example::OmniorbAdapter);
                clients.into_iter().chain([server]).map(Orb::example).chain(adapter).collect()
            }
            Self::Live(story) => vec![story.orb().example()],
            Self::Odd(setting) => vec![setting.server.example()],
            Self::Tls(setting) => vec![setting.client.example()],
            Self::Bridge => vec![Example::OmniorbEvents],
            Self::Filters => vec![Example::OmniorbAdapter],
            Self::Events(clients) => clients.example().into_iter().collect(),
            Self::Names { .. } => Vec::new(),
            Self::Naming(_) => vec![Example::JacorbBank],
            Self::Operations(service) => service.examples(),
            Self::Services => vec![Example::OmniorbManager, Example::JacorbBank],
        }
    }
}

/// How a case ended.
enum Verdict {
    /// With figures.
    Passed(String),
    Failed(String),
    Skipped(String),
}

/// What a case needs to know of the run.
struct Context {
    quorba: PathBuf,
    /// The case's own folder. Its path stands in the command line of all its processes.
    folder: PathBuf,
    seconds: f64,
    rate: u32,
    kill_every: Duration,
}

impl Context {
    /// The same for a load that goes on for so long.
    fn for_seconds(&self, seconds: f64) -> Self {
        let (quorba, folder) = (self.quorba.clone(), self.folder.clone());
        Self { quorba, folder, seconds, ..*self }
    }
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let chosen = |case: &Case| {
        let name = case.name();
        options.filters.is_empty() || options.filters.iter().any(|part| name.contains(part))
    };
    let cases: Vec<Case> = Case::all().into_iter().filter(chosen).collect();
    if options.list {
        cases.iter().for_each(|case| println!("{}", case.name()));
        return ExitCode::SUCCESS;
    }
    let quorba = match options.quorba.clone().map_or_else(build_quorba, Ok) {
        Ok(quorba) => quorba,
        Err(reason) => {
            eprintln!("interop: {reason}");
            return ExitCode::FAILURE;
        }
    };
    let left = Mutex::new(cases.into_iter());
    let tally = Mutex::new(Tally::default());
    let turn = Mutex::new(());
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(case) = next(&left) {
                    // Their networks have the same names and addresses.
                    let _turn = case.has_own_network().then(|| turn.lock());
                    let began = Instant::now();
                    let verdict = run_one(case, options, &quorba);
                    let took = began.elapsed().as_secs_f64();
                    tally.lock().expect("nobody panics with it").add(&case.name(), verdict, took);
                }
            });
        }
    });
    let Tally { passed, failed, skipped } = tally.into_inner().expect("nobody panics with it");
    println!("interop: {passed} passed, {failed} failed, {skipped} skipped");
    // A filter that matches nothing is a mistake, and not a success.
    let ran = passed + failed + skipped > 0;
    if ran && failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn next(left: &Mutex<std::vec::IntoIter<Case>>) -> Option<Case> {
    left.lock().expect("nobody panics with it").next()
}

/// How the cases ended that are over.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    fn add(&mut self, name: &str, verdict: Verdict, took_s: f64) {
        match verdict {
            Verdict::Passed(figures) => {
                self.passed += 1;
                println!("ok       {name}: {figures}, {took_s:.1} s");
            }
            Verdict::Failed(reason) => {
                self.failed += 1;
                println!("FAILED   {name}: {reason}");
            }
            Verdict::Skipped(reason) => {
                self.skipped += 1;
                skip(name, &reason);
            }
        }
    }
}

/// Whether the examples of a case are there; they are built by one case at a time.
fn build_examples(case: Case) -> Result<(), Verdict> {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock();
    for example in case.examples() {
        match examples::build(example) {
            Outcome::Present | Outcome::Done => {}
            Outcome::Skipped(reason) => return Err(Verdict::Skipped(reason)),
            Outcome::Failed(reason) => {
                let what = format!("{} does not build: {reason}", example.folder());
                return Err(Verdict::Failed(what));
            }
        }
    }
    Ok(())
}

fn run_one(case: Case, options: &Options, quorba: &Path) -> Verdict {
    if let Err(verdict) = build_examples(case) {
        return verdict;
    }
    let run = format!("{}-{}", case.name(), std::process::id());
    let context = Context {
        quorba: quorba.to_owned(),
        folder: workspace::target().join("interop").join(run),
        seconds: options.seconds,
        rate: options.rate,
        kill_every: Duration::from_secs_f64(options.kill_every),
    };
    if let Err(error) = fs::create_dir_all(&context.folder) {
        return Verdict::Failed(format!("{}: {error}", context.folder.display()));
    }
    let verdict = match case {
        Case::Bank(setting) => bank::run(&context, &setting),
        Case::Live(story) => live::run(&context, story),
        Case::Names { victim } => names::run(&context, victim),
        Case::Naming(story) => naming::run(&context, story),
        Case::Bridge => events::bridge::run(&context),
        Case::Filters => events::filters::run(&context),
        Case::Events(clients) => events::run(&context, clients),
        Case::Odd(setting) => odd::run(&context, setting),
        Case::Operations(service) => operations::run(&context, service),
        Case::Services => services::run(&context),
        Case::Tls(setting) => tls::run(&context, setting),
    };
    if let Verdict::Failed(reason) = verdict {
        return Verdict::Failed(format!("{reason}\n         see {}", context.folder.display()));
    }
    if !options.keep {
        // Logs of what went well. If they cannot be removed, they are only in the way.
        let _removed = fs::remove_dir_all(&context.folder);
    }
    verdict
}

/// Builds the `quorba` command, in the profile of ordinary development.
pub(crate) fn build_quorba() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "quorba-cli"])
        .args(if cluster::has_libraries() { &["--features", "corosync"][..] } else { &[] })
        .current_dir(workspace::root())
        .env("CARGO_TARGET_DIR", workspace::target())
        .status()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !built.success() {
        return Err("quorba does not build".into());
    }
    Ok(workspace::target().join("debug/quorba"))
}

/// Milliseconds, for people.
fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}
