//! What a run found.
//!
//! Invariant: a case's figures are medians over its repetitions, each with its range; every
//! repetition is kept.

use serde::Serialize;

use super::case::{Fault, Sharing, Target};
use crate::environment::Environment;
use crate::stats::Spread;

/// One repetition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// How the members share the work.
    pub style: Sharing,
    /// What happened.
    pub fault: Fault,
    /// From 1.
    pub repetition: u32,
    /// The longest time without an answer that ended behind the fault and began before a second
    /// after it, in microseconds.
    pub gap_us: f64,
    /// The wait in which the fault came, in microseconds: that of the call under way.
    pub around_us: f64,
    /// The longest time without an answer that the first [`super::EFFECT`] behind the fault touch,
    /// in microseconds.
    pub window_us: f64,
    /// The same of as long a while without a fault: the median of those in the second before.
    pub control_us: f64,
    /// Median time between two answers in the second before, which is the latency of a call.
    pub normal_us: f64,
    /// The longest such time: what the machine does without any fault.
    pub longest_before_us: f64,
    /// Requests that the next leader had to execute anew, at the least; 0 if that was not asked.
    pub replayed: u64,
    /// What these took the former leader's server, in microseconds.
    pub replay_us: f64,
    /// Exceptions that the client got.
    pub exceptions: u64,
    /// Calls answered.
    pub answered: u64,
}

/// One line of `samples.ndjson`.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    #[serde(flatten)]
    pub(super) sample: &'a Sample,
    /// When each answer came, in microseconds since the fault.
    pub(super) replies_us: &'a [i64],
}

/// All repetitions of a style and a fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// How the members share the work.
    pub style: Sharing,
    /// What happened.
    pub fault: Fault,
    /// [`Sample::gap_us`] of all repetitions.
    pub gap_us: Spread,
    /// [`Sample::around_us`] of all repetitions.
    pub around_us: Spread,
    /// [`Sample::window_us`] of all repetitions.
    pub window_us: Spread,
    /// [`Sample::control_us`] of all repetitions.
    pub control_us: Spread,
    /// The first in the second, of the same repetition.
    pub controls: Spread,
    /// [`Sample::normal_us`] of all repetitions.
    pub normal_us: Spread,
    /// [`Sample::longest_before_us`] of all repetitions.
    pub longest_before_us: Spread,
    /// The gap in latencies of the same repetition.
    pub latencies: Spread,
    /// [`Sample::replay_us`] of all repetitions.
    pub replay_us: Spread,
    /// The gap without that, of the same repetition.
    pub beside_replay_us: Spread,
    /// Exceptions of all repetitions.
    pub exceptions: u64,
    /// What the gap should not exceed, if anybody has said.
    pub target: Option<Target>,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failover {
    /// The plan's name.
    pub plan: &'static str,
    /// When it began, in UTC.
    pub began: String,
    /// Repetitions of each case.
    pub repetitions: u32,
    /// The machine and the build.
    pub environment: Environment,
    /// Why the figures mislead; empty if nothing is known against them.
    pub faults: Vec<String>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
    /// Every style with every fault.
    pub cases: Vec<Case>,
    /// Every repetition.
    pub samples: Vec<Sample>,
}

impl Sample {
    pub(super) fn line(&self, repetitions: u32) -> String {
        format!(
            "repetition {}/{repetitions}  {:<12}  {:<14}  gap {:8.1} ms  around {:8.1} ms  \
             window {:8.1} ms  control {:6.1} ms  latency {:6.3} ms  longest before {:6.1} ms",
            self.repetition,
            self.style.as_str(),
            self.fault.as_str(),
            self.gap_us / 1e3,
            self.around_us / 1e3,
            self.window_us / 1e3,
            self.control_us / 1e3,
            self.normal_us / 1e3,
            self.longest_before_us / 1e3,
        )
    }
}

impl Failover {
    pub(super) fn of(
        began: String,
        repetitions: u32,
        environment: Environment,
        (samples, skipped): (Vec<Sample>, Vec<String>),
    ) -> Self {
        let all = Sharing::ALL.into_iter().flat_map(|style| Fault::ALL.map(|fault| (style, fault)));
        let cases = all.filter_map(|(style, fault)| Case::of(style, fault, &samples)).collect();
        let faults = environment.faults();
        Self { plan: super::PLAN, began, repetitions, environment, faults, skipped, cases, samples }
    }
}

impl Case {
    fn of(style: Sharing, fault: Fault, samples: &[Sample]) -> Option<Self> {
        let mine = || samples.iter().filter(|one| (one.style, one.fault) == (style, fault));
        Some(Self {
            style,
            fault,
            gap_us: Spread::of(mine().map(|one| one.gap_us))?,
            around_us: Spread::of(mine().map(|one| one.around_us))?,
            window_us: Spread::of(mine().map(|one| one.window_us))?,
            control_us: Spread::of(mine().map(|one| one.control_us))?,
            controls: Spread::of(mine().map(|one| one.window_us / one.control_us))?,
            normal_us: Spread::of(mine().map(|one| one.normal_us))?,
            longest_before_us: Spread::of(mine().map(|one| one.longest_before_us))?,
            latencies: Spread::of(mine().map(|one| one.gap_us / one.normal_us))?,
            replay_us: Spread::of(mine().map(|one| one.replay_us))?,
            beside_replay_us: Spread::of(mine().map(|one| one.gap_us - one.replay_us))?,
            exceptions: mine().map(|one| one.exceptions).sum(),
            target: fault.target(style),
        })
    }

    /// The target in words, and whether the median met it.
    pub(crate) fn target_text(&self) -> String {
        let (target, met) = match self.target {
            Some(Target::Ms(ms)) => (format!("{ms} ms"), self.gap_us.median <= ms * 1e3),
            Some(Target::BesideReplay(ms)) => {
                let replay = self.replay_us.median / 1e3;
                (format!("{ms} + {replay:.1} ms"), self.beside_replay_us.median <= ms * 1e3)
            }
            Some(Target::Control(times)) => {
                (format!("{times} controls"), self.controls.median <= times)
            }
            None => return "–".to_owned(),
        };
        format!("{target}: {}", if met { "met" } else { "missed" })
    }

    /// The target in microseconds, for plots.
    pub(crate) fn target_us(&self) -> Option<f64> {
        match self.target? {
            Target::Ms(ms) => Some(ms * 1e3),
            Target::BesideReplay(ms) => Some(self.replay_us.median + ms * 1e3),
            Target::Control(times) => Some(times * self.control_us.median),
        }
    }
}
