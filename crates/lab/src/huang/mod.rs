//! Huang and Gill's measurements of an event channel, repeated (Huang05 §4).
//!
//! Figure 2: the time from a push until the consumer has the event, with 0 to 3 backups, against
//! the same channel without a domain, and against omniEvents and IceStorm if they are there. All
//! take turns, round after round; supplier and consumer are the same for all, in this program, but
//! for IceStorm's. Figure 3: how long a subscription takes, see [`depth`]. What many consumers
//! cost, which the paper does not say: see [`load`] and [`crowd`]. Figures 4 and 5: an event's
//! latency when the leader dies, see [`failover`], also with each of the [`measures`] alone.
//!
//! What it is not: the paper's machines. Invariant: each figure is of a service that the round has
//! started.

mod bench;
pub mod crowd;
pub mod depth;
mod ends;
pub mod failover;
mod ice_storm;
pub mod load;
pub mod measures;
mod stand;

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::environment::Environment;
use crate::error::LabError;
use crate::placement::Setting::Free;

use crate::run::LabOptions;
use crate::stats::{Percentiles, Spread};
use bench::{Bench, LOADS};
use crowd::Crowd;
use depth::Subscriptions;
use ends::Ends;
use failover::Death;
use load::Load;
use measures::SETTINGS;
use stand::Stand;

/// What the plan is called on the command line.
pub const PLAN: &str = "huang2005";
const ROUNDS: u32 = 3;
/// Measured events of each service in a round.
const EVENTS: u32 = 5_000;
const QUICK_EVENTS: u32 = 1_000;
/// Deaths of each case: one for so many events, and at least so many.
const EVENTS_OF_DEATH: u32 = 50;
/// Subscriptions of each depth: one for so many events, and at least ten.
const EVENTS_OF_SUBSCRIPTION: u32 = 10;
/// The paper's latencies at failover (§4.3, figure 5): mean and longest, in a push and between two;
/// and its best between two.
const PAPER_FAILOVER: &str = "in a push mean 5,242 us, max 5,408; between events mean 1,642, max \
                              1,707, at best (warm, no futile reconnect) mean 806, max 927; \
                              without priorities up to 1.95 s";
/// Events before the first that counts.
const WARM_UP: u32 = 300;
const OMNI_EVENTS: &str = "omniEvents";
const ICE_STORM: &str = "IceStorm";
/// What the paper has the 3 backups cost (§4.1): the mean by this, the longest by that.
const PAPER_MEAN_US: f64 = 80.0;
const PAPER_LONGEST_US: f64 = 140.0;
/// What the project wants of 3 backups, in latencies of the channel without a domain, at most.
const WANTED: f64 = 1.1;

/// Which event service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Ours, one process that clients call without a node between.
    Alone,
    /// omniEvents, alone.
    OmniEvents,
    /// IceStorm, alone.
    IceStorm,
    /// Ours, in a domain of one node more than this.
    Domain {
        /// Members beside the one that leads.
        backups: usize,
    },
    /// The largest of these, with supplier and consumer at the gateway of the node that leads.
    AtLeader,
    /// The same at the gateway of another node.
    AtOther,
}

impl Service {
    const BACKUPS_MAX: usize = 3;

    fn all() -> Vec<Self> {
        let domains = (0..=Self::BACKUPS_MAX).map(|backups| Self::Domain { backups });
        let peers = is_here(OMNI_EVENTS).then_some(Self::OmniEvents);
        let peers = peers.into_iter().chain(ice_storm::peer().map(|_| Self::IceStorm));
        let ways = [Self::AtLeader, Self::AtOther];
        [Self::Alone].into_iter().chain(peers).chain(domains).chain(ways).collect()
    }

    fn name(self) -> String {
        match self {
            Self::Alone => "unreplicated".to_owned(),
            Self::OmniEvents => OMNI_EVENTS.to_owned(),
            Self::IceStorm => ICE_STORM.to_owned(),
            Self::Domain { backups } => format!("{backups} backups"),
            Self::AtLeader => format!("{} at leader", Self::BACKUPS_MAX),
            Self::AtOther => format!("{} at another", Self::BACKUPS_MAX),
        }
    }
}

fn is_here(program: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// What was found of one service in one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// From 1.
    pub round: u32,
    /// Of which.
    pub service: Service,
    /// Events.
    pub events: u32,
    /// From before the push until the consumer has it.
    pub mean_us: f64,
    /// The same.
    pub latency: Percentiles,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Huang {
    /// The plan's name.
    pub plan: &'static str,
    /// When it began, in UTC.
    pub began: String,
    /// The machine and the build.
    pub environment: Environment,
    /// Why the figures mislead; empty if nothing is known against them.
    pub faults: Vec<String>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
    /// Figure 2: every service in every round.
    pub trials: Vec<Trial>,
    /// Events a second to many consumers.
    pub loads: Vec<Load>,
    /// Many subscriptions.
    pub crowd: Option<Crowd>,
    /// Figure 3: subscriptions by depth.
    pub subscriptions: Vec<Subscriptions>,
    /// Figures 4 and 5, and the measures one by one: every death.
    pub deaths: Vec<Death>,
}

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was found.
    pub run: Huang,
    /// The run's folder: `run.json`, `samples.ndjson`, `report.html`.
    pub folder: PathBuf,
}

/// Measures all services. What happens is told to `tell`, line by line.
///
/// # Errors
/// [`LabError`]; what was measured before stays in the run's folder.
pub fn run(options: &LabOptions, tell: &mut dyn FnMut(&str)) -> Result<Outcome, LabError> {
    let usual = ((ROUNDS, EVENTS), (1, QUICK_EVENTS));
    let (rounds, events) = options.rounds_and_calls_of(PLAN, usual.0, usual.1)?;
    let services = Service::all();
    let settings = SETTINGS.iter().map(|setting| setting.name.to_owned());
    let known = services.iter().map(|one| one.name()).chain(LOADS.map(str::to_owned));
    let ways = depth::WAYS.map(|(_, name)| name.to_owned());
    let known: Vec<_> = known.chain(ways).chain(settings).collect();
    options.check_only(PLAN, &known)?;
    let program = options.program()?;
    let (environment, interrupt, mut record) = options.begin(tell)?;
    let mut skipped = Vec::new();
    if !is_here(OMNI_EVENTS) {
        skipped.push(format!("skipped: {OMNI_EVENTS}: it is not installed"));
    }
    if ice_storm::peer().is_none() {
        let peer = "bench/peers/icestorm is not built (cargo xtask deps does it)";
        skipped.push(format!("skipped: {ICE_STORM}: it is not installed, or {peer}"));
    }
    skipped.iter().for_each(|line| tell(line));
    let mut trials = Vec::new();
    for round in 1..=rounds {
        for service in services.iter().copied().filter(|one| options.wants(&one.name())) {
            let result = Stand::start(&program, service)
                .and_then(|stand| trial(&stand, (round, service, events)));
            let of = (&*service.name(), Free, round);
            let trial = record.measured(&interrupt.flag, of, result)?;
            tell(&line(&trial));
            record.line(&trial)?;
            trials.push(trial);
        }
    }
    let count = (events / EVENTS_OF_DEATH).max(1);
    let (program, flag, record_of) = (&*program, &interrupt.flag, &mut record);
    let mut bench = Bench { options, program, flag, record: record_of, tell };
    let loads = bench.loads(rounds, events)?;
    let crowd = bench.crowd(events)?;
    let subscriptions = bench.depths((events / EVENTS_OF_SUBSCRIPTION).max(10))?;
    let deaths = bench.failover(count, &mut skipped)?;
    let (began, faults) = (record.began.clone(), environment.faults());
    let plan = PLAN;
    let run = Huang {
        plan,
        began,
        environment,
        faults,
        skipped,
        trials,
        loads,
        crowd,
        subscriptions,
        deaths,
    };
    let page = format!("<!doctype html><title>{PLAN}</title><pre>{}</pre>\n", table(&run));
    let folder = record.finish(&run, &page)?;
    Ok(Outcome { run, folder })
}

fn trial(stand: &Stand, (round, service, events): (u32, Service, u32)) -> Result<Trial, String> {
    let samples = match service {
        Service::IceStorm => ice_storm::latency(stand, events)?,
        _ => passed(&mut Ends::connect(stand, false)?, events)?,
    };
    let latency = Percentiles::of(&samples).ok_or("no events")?;
    let events = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    Ok(Trial { round, service, events, mean_us: mean_us(&samples), latency })
}

/// How long each event took, in nanoseconds.
fn passed(ends: &mut Ends, events: u32) -> Result<Vec<u64>, String> {
    let mut samples = Vec::new();
    for number in 0..WARM_UP + events {
        let took: Duration = ends.pass()?;
        if number >= WARM_UP {
            samples.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }
    Ok(samples)
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 nanoseconds")]
fn mean_us(samples_ns: &[u64]) -> f64 {
    samples_ns.iter().sum::<u64>() as f64 / 1e3 / samples_ns.len() as f64
}

fn line(trial: &Trial) -> String {
    let Percentiles { p50_us, p99_us, max_us, .. } = trial.latency;
    format!(
        "round {}  {:<13} push to consumer: mean {:6.1} us, p50 {p50_us:6.1}, p99 {p99_us:6.0}, \
         max {max_us:6.0}",
        trial.round,
        trial.service.name(),
        trial.mean_us
    )
}

/// The summary of a run.
#[must_use]
pub fn table(run: &Huang) -> String {
    let mut lines: Vec<String> =
        run.faults.iter().map(|fault| format!("NOT TO BE RELIED ON: {fault}")).collect();
    lines.extend(run.skipped.iter().cloned());
    lines.push(
        "Figure 2: latency of an event of 1,000 octets, against the channel alone".to_owned(),
    );
    lines.extend(run.trials.iter().map(line));
    for service in Service::all().into_iter().filter(|service| *service != Service::Alone) {
        let over = |of: Figure| Spread::of(pairs(run, service, of).map(|(one, alone)| one - alone));
        let ratio = Spread::of(pairs(run, service, MEDIAN).map(|(one, alone)| one / alone));
        if let (Some(ratio), Some(mean), Some(max)) = (ratio, over(MEAN), over(LONGEST)) {
            lines.push(format!(
                "{}: {:.2} of the unreplicated channel's p50 ({:.2}\u{2013}{:.2}), mean {:+.0} us, \
                 longest {:+.0} us",
                service.name(),
                ratio.median,
                ratio.min,
                ratio.max,
                mean.median,
                max.median
            ));
        }
    }
    lines.extend(beside_peers(run));
    lines.push(format!(
        "The paper: with 3 backups mean {PAPER_MEAN_US:+.0} us, longest {PAPER_LONGEST_US:+.0} us \
         over the plain service; two hosts at 2.8 GHz. Here all is on one host, and a domain's \
         clients call through its node. Wanted: {WANTED} with 3 backups at most."
    ));
    lines.push("Many consumers, as fast as one supplier is answered".to_owned());
    lines.extend(load::lines(&run.loads));
    lines.extend(crowd::lines(run.crowd.as_ref()));
    lines.push("Figure 3: a subscription by one call, by how many members must have it".to_owned());
    lines.extend(depth::lines(&run.subscriptions));
    lines.push(
        "Figure 4: latency of the event behind the death of the leader's process, between events"
            .to_owned(),
    );
    lines.extend(failover::columns(&run.deaths));
    lines.push("Figure 5: latency of the event that meets the leader's death".to_owned());
    lines.extend(failover::lines(&run.deaths));
    lines.push("Measure by measure, and against none of them".to_owned());
    lines.extend(failover::steps(&run.deaths));
    lines.push(format!("The paper: {PAPER_FAILOVER}."));
    lines.push(String::new());
    lines.join("\n")
}

/// What our ways to a channel take beside other event services.
fn beside_peers(run: &Huang) -> Vec<String> {
    let ways =
        [(Service::Alone, None), (Service::AtLeader, Some(1.0)), (Service::AtOther, Some(1.8))];
    let mut lines = Vec::new();
    for peer in [Service::OmniEvents, Service::IceStorm] {
        for (service, wanted) in ways {
            let both = pairs_with(run, service, peer, MEDIAN);
            let Some(ratio) = Spread::of(both.map(|(one, peer)| one / peer)) else { continue };
            let wanted = wanted.filter(|_| peer == Service::OmniEvents);
            let wanted = wanted.map_or_else(String::new, |it| format!("; wanted: {it} at most"));
            lines.push(format!(
                "{}: {:.2} of {}'s p50 ({:.2}\u{2013}{:.2}){wanted}",
                service.name(),
                ratio.median,
                peer.name(),
                ratio.min,
                ratio.max
            ));
        }
    }
    lines
}

type Figure = fn(&Trial) -> f64;
const MEDIAN: Figure = |trial| trial.latency.p50_us;
const MEAN: Figure = |trial| trial.mean_us;
const LONGEST: Figure = |trial| trial.latency.max_us;

/// The figure of a service, and of the channel alone, in each round.
fn pairs(run: &Huang, service: Service, of: Figure) -> impl Iterator<Item = (f64, f64)> {
    pairs_with(run, service, Service::Alone, of)
}

fn pairs_with(
    run: &Huang,
    service: Service,
    other: Service,
    of: Figure,
) -> impl Iterator<Item = (f64, f64)> {
    let of_service = move |round, service| {
        let mut found = run.trials.iter();
        found.find(|trial| trial.round == round && trial.service == service).map(of)
    };
    let rounds = run.trials.iter().map(|trial| trial.round).max().unwrap_or_default();
    (1..=rounds)
        .filter_map(move |round| Some((of_service(round, service)?, of_service(round, other)?)))
}
