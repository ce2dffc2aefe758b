//! One attack from its beginning to its end: what it needs, what it does, and what it may cost.
//!
//! What it is not: an attack; those are in the files beside it.
//!
//! Invariants: every figure is taken by the same steps in every case; what is outside of a bracket
//! is told in words, with the figure and the bracket.

use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::honest::{Honest, Part};
use super::machine::Look;
use super::stage::{NODES, Setup, Stage};
use super::watch::{Cost, Watch};

/// Where attackers come from.
pub(super) const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// More resident memory than before, of each node: at the peak, and when memory is given back.
const RSS_MORE_MAX: u64 = 256 << 20;
const RSS_KEPT_MAX: u64 = 48 << 20;
/// In which time it is given back.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(5);
/// How much slower honest calls may be than is normal, and which normal figure counts as one at
/// least, on a machine where nothing else runs. What honest calls take at the same time in a domain
/// that nobody attacks is normal, too: attackers and nodes share the cores of one machine.
const SLOWER_MAX: u32 = 3;
const NORMAL_MIN: Duration = Duration::from_millis(15);
/// Lines that an attack may be worth in all nodes' logs.
const LOG_LINES_MAX: usize = 60;

/// How long the parts of a case take.
#[derive(Clone, Copy)]
pub(super) struct CaseTimes {
    pub(super) calm: Duration,
    pub(super) attack: Duration,
    /// Whether attacks are as large as they are told of, or only so that they show.
    pub(super) is_whole: bool,
}

/// What an attack sees of the stage.
pub(super) struct Field<'a> {
    pub(super) stage: &'a mut Stage,
    pub(super) times: CaseTimes,
    /// The longest call of the attack itself, which others may have to wait for once.
    pub(super) longest: Duration,
    /// What is outside of the attack's own brackets.
    pub(super) faults: Vec<String>,
    /// Figures of the attack itself.
    pub(super) notes: Vec<String>,
}

impl Field<'_> {
    /// When an attack that goes on for a time has to end.
    pub(super) fn until(&self) -> Instant {
        Instant::now() + self.times.attack
    }

    pub(super) fn fault(&mut self, fault: impl Into<String>) {
        self.faults.push(fault.into());
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

pub(super) type Attack = fn(&mut Field<'_>) -> Result<(), String>;

/// An attack, and what it needs.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) attack: Attack,
    pub(super) setup: Setup,
    /// Octets in the arguments of honest calls.
    pub(super) honest_octets: usize,
    /// Nodes are ended and started in it, so that honest calls may fail meanwhile.
    pub(super) is_rough: bool,
}

impl Case {
    pub(super) const fn of(name: &'static str, attack: Attack) -> Self {
        Self { name, attack, setup: Setup::PLAIN, honest_octets: 0, is_rough: false }
    }

    /// Whether another case may follow on the same stage.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_rough && self.setup == Setup::PLAIN
    }
}

/// Before, at the peak, and at the end.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Triple {
    pub(super) before: u64,
    pub(super) peak: u64,
    pub(super) after: u64,
}

/// Before, during and after the attack; times in microseconds.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Latency {
    pub(super) before: u64,
    pub(super) during: u64,
    pub(super) after: u64,
}

/// What came of a case.
#[derive(Clone, Default, Serialize)]
pub(super) struct Row {
    pub(super) attack: &'static str,
    /// Of each node.
    pub(super) rss_bytes: [Triple; NODES],
    pub(super) files: [Triple; NODES],
    pub(super) p50_us: Latency,
    pub(super) p99_us: Latency,
    /// What they take in the domain that nobody attacks.
    pub(super) beside_p99_us: Latency,
    /// Percent of the machine that processes which do not belong to the run left to it.
    pub(super) left_percent: Latency,
    /// What honest calls may take at most.
    pub(super) p99_us_max: Latency,
    pub(super) honest_calls: Latency,
    pub(super) log_lines: usize,
    /// When memory was given back; nothing if it was not.
    pub(super) given_back_ms: Option<u64>,
    /// How long the whole case took, with the start of its stage.
    pub(super) took_ms: u64,
    pub(super) notes: Vec<String>,
    /// What is outside of its bracket.
    pub(super) faults: Vec<String>,
    /// How many of those are about the latency of honest calls.
    #[serde(skip)]
    pub(super) late: usize,
}

impl Row {
    /// Whether only latencies are outside. A 99th percentile of a second stands on a few calls, and
    /// one stall of the machine moves it, which a second measurement tells from an attack.
    pub(super) fn is_late_only(&self) -> bool {
        self.late > 0 && self.late == self.faults.len()
    }
}

/// What cases are played on.
#[derive(Default)]
pub(super) struct Stages {
    /// Kept for the next case if that may be.
    pub(super) attacked: Option<Stage>,
    /// The domain that nobody attacks.
    pub(super) beside: Option<Stage>,
}

/// Plays a case, and once more on another stage if only latencies are outside; what was seen the
/// first time is told.
pub(super) fn play(case: &Case, quorba: &Path, times: CaseTimes, stages: &mut Stages) -> Row {
    let first = play_once(case, quorba, times, stages);
    if !first.is_late_only() {
        return first;
    }
    let mut row = play_once(case, quorba, times, stages);
    row.notes.push(format!("measured twice; the first time {}", first.faults.join("; ")));
    row
}

/// The stage is kept for the next case if there is nothing wrong with it.
fn play_once(case: &Case, quorba: &Path, times: CaseTimes, stages: &mut Stages) -> Row {
    let (name, began) = (case.name, Instant::now());
    let kept = stages.attacked.take().filter(|_| case.is_plain());
    let start = |setup| move || Stage::start(quorba, setup);
    let beside = stages.beside.take().map_or_else(start(Setup::PLAIN), Ok);
    let started = beside.and_then(|beside| Ok((kept.map_or_else(start(case.setup), Ok)?, beside)));
    let (mut on, beside) = match started {
        Ok(stages) => stages,
        Err(fault) => return Row { attack: name, faults: vec![fault], ..Row::default() },
    };
    let mut row = play_on(case, times, &mut on, &beside);
    row.took_ms = began.elapsed().as_millis() as u64;
    stages.beside = Some(beside);
    if row.faults.is_empty() && case.is_plain() {
        stages.attacked = Some(on);
    }
    row
}

fn play_on(case: &Case, times: CaseTimes, stage: &mut Stage, beside: &Stage) -> Row {
    let honest = Honest::start(&stage.gateways(), case.honest_octets);
    let beside = Honest::start(&beside.gateways(), case.honest_octets);
    let enter = |part| [&honest, &beside].into_iter().for_each(|clients| clients.enter(part));
    // First calls make connections and touch memory.
    thread::sleep(times.calm / 3);
    enter(Part::Before);
    let first = Look::now();
    thread::sleep(times.calm);
    let pids = stage.pids();
    let costs = || -> Vec<Cost> { pids.iter().map(|pid| Cost::of(*pid)).collect() };
    let (before, lines) = (costs(), stage.log_lines());
    let watch = Watch::start(pids.clone());
    enter(Part::During);
    let attacked = Look::now();
    let mut field =
        Field { stage, times, longest: Duration::ZERO, faults: Vec::new(), notes: Vec::new() };
    let done = (case.attack)(&mut field);
    let Field { longest, mut faults, notes, .. } = field;
    faults.extend(done.err().map(|fault| format!("the attack cannot be made: {fault}")));
    enter(Part::Between);
    let over = Look::now();
    let given_back = wait_given_back(&before, costs);
    enter(Part::After);
    let calm = Look::now();
    thread::sleep(times.calm);
    enter(Part::Between);
    let percent = |later: Look, before| (100.0 * later.left_since(before)) as u64;
    let left_percent = Latency {
        before: percent(attacked, first),
        during: percent(over, attacked),
        after: percent(Look::now(), calm),
    };
    let after: Vec<Cost> = stage.pids().iter().map(|pid| Cost::of(*pid)).collect();
    let peaks = watch.peaks();
    faults.extend(stage.ended());
    let mut row = Row {
        attack: case.name,
        log_lines: stage.log_lines() - lines,
        given_back_ms: given_back.map(|time| time.as_millis() as u64),
        left_percent,
        notes,
        faults,
        ..Row::default()
    };
    for index in 0..NODES {
        let triple = |of: fn(&Cost) -> u64| Triple {
            before: of(&before[index]),
            peak: of(&peaks[index]),
            after: of(&after[index]),
        };
        row.rss_bytes[index] = triple(|cost| cost.rss_bytes);
        row.files[index] = triple(|cost| cost.files);
    }
    judge(case, &mut row, (&honest, &beside), longest);
    row
}

/// How long it took until all nodes were about as large as before.
fn wait_given_back(before: &[Cost], costs: impl Fn() -> Vec<Cost>) -> Option<Duration> {
    let began = Instant::now();
    loop {
        let now = costs();
        let is_back =
            |(now, before): (&Cost, &Cost)| now.rss_bytes <= before.rss_bytes + RSS_KEPT_MAX;
        if now.iter().zip(before).all(is_back) {
            return Some(began.elapsed());
        }
        if began.elapsed() > GIVEN_BACK_WITHIN {
            return None;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn judge(case: &Case, row: &mut Row, (honest, beside): (&Honest, &Honest), longest: Duration) {
    let micros = |time: Duration| time.as_micros() as u64;
    const PARTS: [Part; 3] = [Part::Before, Part::During, Part::After];
    let latency = |of: &dyn Fn(Part) -> u64| {
        let [before, during, after] = PARTS.map(of);
        Latency { before, during, after }
    };
    row.p50_us = latency(&|part| micros(honest.times(part).p50));
    row.p99_us = latency(&|part| micros(honest.times(part).p99));
    row.beside_p99_us = latency(&|part| micros(beside.times(part).p99));
    row.honest_calls = latency(&|part| honest.times(part).calls as u64);
    let left = row.left_percent;
    let most = |part: Part| {
        let left = if part == Part::After { left.after } else { left.during };
        let alone = NORMAL_MIN * 100 / (left as u32).max(1);
        let normal = honest.times(Part::Before).p99.max(beside.times(part).p99).max(alone);
        micros(normal * SLOWER_MAX + longest)
    };
    row.p99_us_max = latency(&most);
    let late = |what: &str, p99: u64, most: u64| {
        let (p99, most) = (p99 / 1000, most / 1000);
        format!("{what}: p99 of honest calls is {p99} ms, at most {most} ms is right")
    };
    let (p99, most) = (row.p99_us, row.p99_us_max);
    if !case.is_rough {
        row.faults.extend(honest.faults(Part::During));
        if p99.during > most.during {
            row.late += 1;
            row.faults.push(late("during the attack", p99.during, most.during));
        }
    }
    row.faults.extend(honest.faults(Part::After));
    if p99.after > most.after {
        row.late += 1;
        row.faults.push(late("after the attack", p99.after, most.after));
    }
    if row.honest_calls.after == 0 {
        row.faults.push("no honest call was answered after the attack".to_owned());
    }
    judge_memory(row);
    if row.log_lines > LOG_LINES_MAX {
        let lines = row.log_lines;
        row.faults.push(format!("{lines} lines in the logs, at most {LOG_LINES_MAX} are right"));
    }
}

fn judge_memory(row: &mut Row) {
    for (index, triple) in row.rss_bytes.iter().enumerate() {
        let more = triple.peak.saturating_sub(triple.before);
        if more > RSS_MORE_MAX {
            row.faults.push(format!(
                "n{} takes {} MiB more at the peak, at most {} MiB is right",
                index + 1,
                more >> 20,
                RSS_MORE_MAX >> 20
            ));
        }
    }
    if row.given_back_ms.is_none() {
        let kept = row.rss_bytes.iter().map(|one| one.after.saturating_sub(one.before) >> 20);
        row.faults.push(format!(
            "memory is not given back within {} s: {:?} MiB more than before",
            GIVEN_BACK_WITHIN.as_secs(),
            kept.collect::<Vec<_>>()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_latencies_are_measured_again() {
        let row = |late, faults: &[&str]| {
            let faults = faults.iter().map(|&fault| fault.to_owned()).collect();
            Row { late, faults, ..Row::default() }.is_late_only()
        };
        assert!(row(1, &["p99"]));
        assert!(row(2, &["p99", "p99"]));
        assert!(!row(1, &["p99", "an answer is wrong"]));
        assert!(!row(0, &["an answer is wrong"]));
        assert!(!row(0, &[]));
    }
}
