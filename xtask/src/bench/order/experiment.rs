//! What is measured, and which figures follow from what the participants say.
//!
//! Invariant: a figure's name says its unit.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use quorba_lab::Percentiles;
use rustix::process::Signal;

use super::cluster::{Cluster, Failure, Measured, Verdict, longest_gap};
use super::peer::Peer;
use super::task::Task;

/// Silence before each message of [`Experiment::Silence`].
const SILENCE_US: u64 = 50_000;
/// [`Experiment::Soak`] is told, and its order compared, so often.
const MINUTE_MS: u64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Experiment {
    /// One message after the other.
    Latency,
    /// The same, from another node than the coordinator.
    LatencyOther,
    /// The same, delivered when all nodes hold the message.
    LatencySafe,
    /// One message after a silence.
    Silence,
    /// All nodes send messages of this size with a window.
    Stream { size_bytes: usize, window: u64 },
    /// Nobody sends.
    Idle,
    /// All nodes send messages of this size as fast as they can offer them.
    Flood { size_bytes: usize },
    /// All nodes send with a window for minutes, and no node may be suspected.
    Soak,
    /// A node is killed.
    Kill,
    /// A node falls silent.
    Freeze,
}

/// The figures of one experiment, by name.
pub(super) type Figures = BTreeMap<&'static str, f64>;

/// What an experiment gave.
pub(super) struct Outcome {
    pub(super) figures: Figures,
    pub(super) samples_ns: Vec<u64>,
    /// What no figure says.
    pub(super) notes: Vec<String>,
}

impl Outcome {
    const fn of(figures: Figures) -> Self {
        Self { figures, samples_ns: Vec::new(), notes: Vec::new() }
    }
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    pub(super) latency: u64,
    pub(super) silence: u64,
    pub(super) stream_ms: u64,
    pub(super) idle: Duration,
    pub(super) soak_minutes: u64,
    /// Whether what is not warm is warmed up first.
    pub(super) warms_up: bool,
}

impl Experiment {
    /// In this order. Floods are last: they may leave a peer in a bad state.
    pub(super) const ALL: [Self; 14] = [
        Self::Latency,
        Self::LatencyOther,
        Self::LatencySafe,
        Self::Silence,
        Self::Stream { size_bytes: 64, window: 200 },
        Self::Stream { size_bytes: 1024, window: 200 },
        Self::Stream { size_bytes: 8192, window: 50 },
        Self::Idle,
        Self::Flood { size_bytes: 8192 },
        Self::Flood { size_bytes: 1024 },
        Self::Flood { size_bytes: 64 },
        Self::Soak,
        Self::Kill,
        Self::Freeze,
    ];

    pub(super) fn name(self) -> String {
        match self {
            Self::Latency => "latency".into(),
            Self::LatencyOther => "latency-other".into(),
            Self::LatencySafe => "latency-safe".into(),
            Self::Silence => "silence".into(),
            Self::Stream { size_bytes, .. } => format!("stream-{size_bytes}"),
            Self::Idle => "idle".into(),
            Self::Flood { size_bytes } => format!("flood-{size_bytes}"),
            Self::Soak => "soak".into(),
            Self::Kill => "kill".into(),
            Self::Freeze => "freeze".into(),
        }
    }

    /// Whether a node fails in it, so that its cluster serves for nothing else.
    pub(super) const fn is_failure(self) -> bool {
        matches!(self, Self::Kill | Self::Freeze)
    }

    /// Whether it shows the order of deliveries, and is soon over.
    pub(super) const fn is_in_smoke(self) -> bool {
        !matches!(self, Self::Idle | Self::Silence | Self::Soak | Self::Kill | Self::Freeze)
    }

    /// Whether it is run only if it is named.
    pub(super) const fn is_only_if_named(self) -> bool {
        matches!(self, Self::Soak)
    }

    /// Whether it says anything about this peer.
    pub(super) fn suits(self, peer: Peer) -> bool {
        match self {
            Self::LatencyOther => peer.has_coordinator(),
            Self::Kill | Self::Freeze => true,
            _ => !peer.is_for_failures_only(),
        }
    }

    /// Runs it on a cluster that stays usable; the reason, if this peer has no such thing.
    pub(super) fn run(
        self,
        cluster: &mut Cluster,
        amounts: &Amounts,
    ) -> Result<Result<Outcome, String>, String> {
        if self == Self::Idle {
            return idle(cluster, amounts.idle).map(Ok);
        }
        if self == Self::Soak {
            return soak(cluster, amounts.soak_minutes);
        }
        let task = match self {
            Self::LatencyOther => Task::latency(2, amounts.latency),
            Self::LatencySafe => Task { is_safe: true, ..Task::latency(1, amounts.latency) },
            Self::Silence => Task { pause_us: SILENCE_US, ..Task::latency(1, amounts.silence) },
            Self::Stream { size_bytes, window } => {
                Task::stream(size_bytes, amounts.stream_ms, window)
            }
            Self::Flood { size_bytes } => Task::stream(size_bytes, amounts.stream_ms, 0),
            _ => Task::latency(1, amounts.latency),
        };
        let measured = match cluster.run(&task)? {
            Verdict::Unsupported(reason) => return Ok(Err(reason)),
            Verdict::Measured(measured) => measured,
        };
        let is_rate = matches!(self, Self::Stream { .. } | Self::Flood { .. });
        Ok(Ok(if is_rate { rate(measured) } else { latency(measured) }))
    }

    /// Runs an experiment that costs the cluster a node.
    pub(super) fn run_failure(self, cluster: Cluster) -> Result<Outcome, String> {
        let signal = if self == Self::Kill { Signal::KILL } else { Signal::STOP };
        let Failure { view, gap, done } = cluster.fail(signal)?;
        let delivered = done.iter().map(|one| one.delivered).min().unwrap_or(0);
        let Some(view) = view else {
            return Err(format!("no view without the victim; {delivered} messages delivered"));
        };
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let figures = [("view_ms", milliseconds(view)), ("gap_ms", milliseconds(gap))].into();
        Ok(Outcome::of(figures))
    }
}

/// Makes a cluster warm: a virtual machine compiles, caches and windows fill.
pub(super) fn warm_up(cluster: &mut Cluster, peer: Peer, amounts: &Amounts) -> Result<(), String> {
    if !amounts.warms_up {
        return Ok(());
    }
    let (stream_ms, latency) = if peer.is_jit() { (4_000, 5_000) } else { (300, 500) };
    let mut tasks = vec![Task::stream(1024, stream_ms, 200), Task::latency(1, latency)];
    if peer.is_jit() {
        tasks.extend([
            Task::stream(64, stream_ms, 200),
            Task::stream(8192, stream_ms, 50),
            Task::latency(2, latency),
        ]);
    }
    tasks.iter().try_for_each(|task| cluster.run(task).map(|_| ()))
}

fn idle(cluster: &Cluster, time: Duration) -> Result<Outcome, String> {
    let (began, before) = (Instant::now(), cluster.run_time()?);
    thread::sleep(time);
    let used = cluster.run_time()?.saturating_sub(before);
    let nodes = began.elapsed().as_secs_f64() * number(cluster.nodes() as u64);
    Ok(Outcome::of([("cpu_percent_per_node", used.as_secs_f64() / nodes * 100.0)].into()))
}

/// Full load, minute by minute; every view is one too many.
fn soak(cluster: &mut Cluster, minutes: u64) -> Result<Result<Outcome, String>, String> {
    let task = Task::stream(1024, MINUTE_MS, 200);
    let before = cluster.reasons()?;
    let (mut delivered, mut took_s, mut cpu_us) = (0, 0.0, 0);
    let (mut gap, mut views) = (Duration::ZERO, 0);
    for minute in 1..=minutes {
        let measured = match cluster.run(&task)? {
            Verdict::Unsupported(reason) => return Ok(Err(reason)),
            Verdict::Measured(measured) => measured,
        };
        delivered += measured.done[0].delivered;
        took_s += seconds(&measured);
        cpu_us += measured.cpu_us;
        gap = gap.max(longest_gap(&measured.done));
        views += measured.done.iter().map(|done| done.views.len()).max().unwrap_or(0);
        let rate = number(measured.done[0].delivered) / seconds(&measured);
        eprintln!("soak, minute {minute} of {minutes}: {rate:.0} messages/s, {views} views so far");
    }
    let mut reasons = BTreeMap::new();
    for (node, (all, before)) in (1..).zip(cluster.reasons()?.iter().zip(&before)) {
        for reason in &all[before.len()..] {
            *reasons.entry(format!("node {node}: view because of {reason}")).or_insert(0_u64) += 1;
        }
    }
    let figures = [
        ("messages_per_s", number(delivered) / took_s),
        ("cpu_us_per_message", number(cpu_us) / number(delivered.max(1))),
        ("gap_ms", gap.as_secs_f64() * 1e3),
        ("views", number(views as u64)),
    ];
    let notes = reasons.iter().map(|(reason, times)| format!("{reason}, {times} times")).collect();
    Ok(Ok(Outcome { notes, ..Outcome::of(figures.into()) }))
}

fn latency(measured: Measured) -> Outcome {
    let mut figures = common(&measured);
    let samples_ns = measured.done.into_iter().flat_map(|done| done.samples_ns).collect::<Vec<_>>();
    if let Some(percentiles) = Percentiles::of(&samples_ns) {
        figures.insert("p50_us", percentiles.p50_us);
        figures.insert("p99_us", percentiles.p99_us);
    }
    Outcome { samples_ns, ..Outcome::of(figures) }
}

/// From the first start to the last delivery.
fn seconds(measured: &Measured) -> f64 {
    let began_ns = measured.done.iter().map(|done| done.go_ns).min().unwrap_or(0);
    let ended_ns = measured.done.iter().map(|done| done.end_ns).max().unwrap_or(0);
    number(ended_ns.saturating_sub(began_ns)) / 1e9
}

fn rate(measured: Measured) -> Outcome {
    let mut figures = common(&measured);
    let seconds = seconds(&measured);
    figures.insert("messages_per_s", number(measured.done[0].delivered) / seconds);
    Outcome::of(figures)
}

/// What every task has.
fn common(measured: &Measured) -> Figures {
    let messages = number(measured.done[0].delivered.max(1));
    let mut figures = Figures::from([
        ("cpu_us_per_message", number(measured.cpu_us) / messages),
        ("machine_us_per_message", number(measured.machine_us) / messages),
    ]);
    if let Some(rotation) = measured.done.iter().find_map(|done| done.rotation_us) {
        figures.insert("rotation_p50_us", rotation.p50);
        figures.insert("rotation_p99_us", rotation.p99);
    }
    figures
}

#[expect(clippy::cast_precision_loss, reason = "no figure here has 52 bits")]
pub(super) fn number(value: u64) -> f64 {
    value as f64
}
