//! What a run writes down: `run.json`, and the lines of `samples.ndjson`.
//!
//! Invariants: units stand in the names; fields are only ever added within a [`FORMAT`]; every
//! figure of a [`Row`] can be computed again from the blocks, and those of a block's latency
//! from its samples.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::environment::Environment;
use crate::placement::Setting;
use crate::plan::Plan;
use crate::stats::{Percentiles, Spread};
use crate::zhao::Outcome;

/// Number of the form of these records.
pub const FORMAT: u32 = 1;

/// What one block measured: one configuration, in one setting, in one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// The configuration's name.
    pub configuration: String,
    /// The setting.
    pub setting: Setting,
    /// The round, from 1.
    pub round: u32,
    /// Measured calls.
    pub calls: u64,
    /// How long they took, as the client saw it.
    #[serde(flatten)]
    pub latency: Percentiles,
    /// Calls a second, one after the other.
    pub calls_per_s: f64,
    /// CPU time per call of all processes of the configuration together.
    pub cpu_us: f64,
    /// How often per call a thread of these processes waited for something.
    pub sleeps: f64,
    /// The same by process.
    pub processes: Vec<ProcessShare>,
    /// How long the client ran, with its start and the calls that do not count.
    pub elapsed_ms: f64,
    /// CPU time that processes outside of the run used, as a share of all cores; in percent.
    pub others_percent: f64,
    /// CPU time that the host of a virtual machine gave to others, likewise.
    pub stolen_percent: f64,
    /// The ring, if there was one.
    pub ring: Option<RingShare>,
}

/// What one process of a block used per call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessShare {
    /// `client`, `server`, `n1`, `server of n1` and so on.
    pub name: String,
    /// CPU time in user mode.
    pub user_us: f64,
    /// CPU time in the kernel.
    pub system_us: f64,
    /// How often a thread of it waited for something.
    pub sleeps: f64,
}

/// The ring during a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RingShare {
    /// Median time of a token's round at the client's node; none if it made no round.
    pub rotation_us: Option<f64>,
    /// Messages sent again, by all nodes.
    pub retransmits: u64,
    /// Views installed during the block, by all nodes; 0 unless something went wrong.
    pub view_changes: u64,
    /// Replies through the order per call, of all members: sent.
    pub replies_sent: f64,
    /// Likewise: not sent, because another member's had come.
    pub replies_suppressed: f64,
    /// Replies per call that the client's gateway had no use for.
    pub replies_dropped: f64,
}

/// One configuration in one setting, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The setting.
    pub setting: Setting,
    /// The configuration's name.
    pub configuration: String,
    /// What it is.
    pub title: String,
    /// Whether it is one that a user would compare.
    pub headline: bool,
    /// Median latency of each round, in microseconds.
    pub p50_us: Spread,
    /// 99th percentile of each round, in microseconds.
    pub p99_us: Spread,
    /// Calls a second of each round.
    pub calls_per_s: Spread,
    /// CPU time per call of each round, in microseconds.
    pub cpu_us: Spread,
    /// Waits per call of each round.
    pub sleeps: Spread,
    /// CPU time per call by process, in microseconds.
    pub cpu_us_by_process: BTreeMap<String, Spread>,
    /// Time of a token's round, if there was one, in microseconds.
    pub rotation_us: Option<Spread>,
    /// Replies through the order per call, if there were any: sent, suppressed where they would
    /// have been sent, dropped where they came too late.
    pub replies: Option<[Spread; 3]>,
    /// What the two quotients are with: [`Run::against`], or what the plan says for this row.
    pub against: String,
    /// Median latency of each round, in those of [`Row::against`].
    pub times_against: Spread,
    /// Calls a second of each round, in those of [`Row::against`].
    pub calls_against: Spread,
    /// Clients that called at the same time.
    pub clients: u32,
    /// Longs in a call, and in its answer.
    pub longs: u32,
}

/// A part of a call's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRow {
    /// The setting.
    pub setting: Setting,
    /// The part.
    pub name: String,
    /// The configuration without it, if there is one.
    pub from: Option<String>,
    /// The configuration with it.
    pub to: String,
    /// What happens in it.
    pub text: String,
    /// Difference of the median latencies of each round, in microseconds.
    pub p50_us: Spread,
    /// Difference of the CPU times per call of each round, in microseconds.
    pub cpu_us: Spread,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// [`FORMAT`].
    pub format: u32,
    /// The plan's name.
    pub plan: String,
    /// The plan's title.
    pub title: String,
    /// When it began, in UTC.
    pub began: String,
    /// Measured calls of a block.
    pub calls: u32,
    /// Calls of a block before these.
    pub warm_up: u32,
    /// Rounds.
    pub rounds: u32,
    /// Longs of a call, and of its answer.
    pub longs: u32,
    /// The configuration that the others are compared with.
    pub against: String,
    /// The machine and the build.
    pub environment: Environment,
    /// Why the figures mislead; empty if nothing is known against them.
    pub faults: Vec<String>,
    /// Every configuration in every setting.
    pub rows: Vec<Row>,
    /// The breakdown in every setting.
    pub steps: Vec<StepRow>,
    /// Every block.
    pub blocks: Vec<Block>,
    /// What was found of Zhao02, if the plan repeats it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zhao2002: Option<Outcome>,
}

/// Time that others may use during a block before it is a fault, in percent of all cores.
const OTHERS_PERCENT_MAX: f64 = 5.0;
/// Error of that time: it is counted in clock ticks, by process and by core.
const OTHERS_ERROR_MS: f64 = 20.0;

impl Run {
    /// Puts together what the blocks of `plan` say.
    #[must_use]
    pub fn of(plan: &Plan, began: String, environment: Environment, blocks: Vec<Block>) -> Self {
        let mut faults = environment.faults();
        faults.extend(faults_of(&blocks));
        Self {
            format: FORMAT,
            plan: plan.name.clone(),
            title: plan.title.clone(),
            began,
            calls: plan.calls,
            warm_up: plan.warm_up,
            rounds: plan.rounds,
            longs: plan.longs,
            against: plan.against.clone(),
            environment,
            faults,
            rows: rows(plan, &blocks),
            steps: steps(plan, &blocks),
            blocks,
            zhao2002: None,
        }
    }
}

fn faults_of(blocks: &[Block]) -> Vec<String> {
    let count = |is_bad: fn(&Block) -> bool| blocks.iter().filter(|block| is_bad(block)).count();
    let disturbed = count(|block| {
        let percent_max = OTHERS_PERCENT_MAX + OTHERS_ERROR_MS / block.elapsed_ms * 100.0;
        block.others_percent + block.stolen_percent > percent_max
    });
    let broken = count(|block| block.ring.is_some_and(|ring| ring.view_changes > 0));
    let all = blocks.len();
    let mut faults = Vec::new();
    if disturbed > 0 {
        faults.push(format!(
            "others used more than {OTHERS_PERCENT_MAX} % of the cores in {disturbed} of {all} \
             blocks"
        ));
    }
    if broken > 0 {
        faults.push(format!("the ring changed its members in {broken} of {all} blocks"));
    }
    faults
}

fn rows(plan: &Plan, blocks: &[Block]) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in &plan.settings {
        for one in &plan.configurations {
            let mine = of_rounds(blocks, *setting, &one.name);
            let spread = |figure: fn(&Block) -> f64| Spread::of(mine.iter().map(|b| figure(b)));
            let against = plan.against_of(one);
            let times = |figure: fn(&Block) -> f64| {
                Spread::of(
                    pairs(blocks, *setting, against, &one.name)
                        .map(|(against, block)| figure(block) / figure(against)),
                )
            };
            let (Some(p50_us), Some(times_against), Some(calls_against)) = (
                spread(|block| block.latency.p50_us),
                times(|block| block.latency.p50_us),
                times(|block| block.calls_per_s),
            ) else {
                continue;
            };
            let every = "a row has blocks";
            rows.push(Row {
                setting: *setting,
                configuration: one.name.clone(),
                title: one.title.clone(),
                headline: one.headline,
                p50_us,
                p99_us: spread(|block| block.latency.p99_us).expect(every),
                calls_per_s: spread(|block| block.calls_per_s).expect(every),
                cpu_us: spread(|block| block.cpu_us).expect(every),
                sleeps: spread(|block| block.sleeps).expect(every),
                cpu_us_by_process: by_process(&mine),
                rotation_us: Spread::of(mine.iter().filter_map(|block| block.ring?.rotation_us)),
                replies: replies_of(&mine),
                against: against.to_owned(),
                times_against,
                calls_against,
                clients: one.clients,
                longs: one.longs.unwrap_or(plan.longs),
            });
        }
    }
    rows
}

fn replies_of(blocks: &[&Block]) -> Option<[Spread; 3]> {
    let spread = |figure: fn(&RingShare) -> f64| {
        Spread::of(blocks.iter().filter_map(|block| block.ring.as_ref().map(figure)))
    };
    let sent = spread(|ring| ring.replies_sent).filter(|sent| sent.median > 0.0)?;
    let suppressed = spread(|ring| ring.replies_suppressed)?;
    Some([sent, suppressed, spread(|ring| ring.replies_dropped)?])
}

fn by_process(blocks: &[&Block]) -> BTreeMap<String, Spread> {
    let mut figures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for process in blocks.iter().flat_map(|block| &block.processes) {
        figures.entry(&process.name).or_default().push(process.user_us + process.system_us);
    }
    let spread = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), Spread::of(values)?));
    figures.into_iter().filter_map(spread).collect()
}

fn steps(plan: &Plan, blocks: &[Block]) -> Vec<StepRow> {
    let mut rows = Vec::new();
    for setting in &plan.settings {
        for step in &plan.steps {
            let difference = |figure: fn(&Block) -> f64| match &step.from {
                Some(from) => Spread::of(
                    pairs(blocks, *setting, from, &step.to)
                        .map(|(from, to)| figure(to) - figure(from)),
                ),
                None => Spread::of(
                    of_rounds(blocks, *setting, &step.to).iter().map(|block| figure(block)),
                ),
            };
            let p50_us = difference(|block| block.latency.p50_us);
            let cpu_us = difference(|block| block.cpu_us);
            let (Some(p50_us), Some(cpu_us)) = (p50_us, cpu_us) else { continue };
            rows.push(StepRow {
                setting: *setting,
                name: step.name.clone(),
                from: step.from.clone(),
                to: step.to.clone(),
                text: step.text.clone(),
                p50_us,
                cpu_us,
            });
        }
    }
    rows
}

fn of_rounds<'a>(blocks: &'a [Block], setting: Setting, name: &str) -> Vec<&'a Block> {
    let mine = |block: &&Block| block.setting == setting && block.configuration == name;
    blocks.iter().filter(mine).collect()
}

/// The blocks of two configurations that ran in the same round, one after the other.
fn pairs<'a>(
    blocks: &'a [Block],
    setting: Setting,
    from: &str,
    to: &str,
) -> impl Iterator<Item = (&'a Block, &'a Block)> {
    let from = of_rounds(blocks, setting, from);
    of_rounds(blocks, setting, to).into_iter().filter_map(move |to| {
        let same = from.iter().find(|from| from.round == to.round)?;
        Some((*same, to))
    })
}

#[cfg(test)]
pub(crate) mod tests;
