//! How fast a state travels to a member that comes back, and what clients notice of it.
//!
//! Three nodes, one server each with a state that does not get shorter by being compressed, and
//! two clients that call a thousand times a second at most: one at the gateway whose member gives
//! its state, one at the third. The first node's server is killed. Beside it, in the same
//! repetition, a bare copy of as many bytes over the same link.
//!
//! What it is not: a judge. What the project wants stands beside the figures.
//!
//! Invariants: every repetition has a domain of its own; a repetition whose servers differ in the
//! end is an error, not a figure.

mod caller;
mod raw;
mod trial;

use serde::Serialize;

use crate::ballast::BALLAST_BYTES_MAX;
use crate::environment::Environment;
use crate::error::LabError;
use crate::placement::Setting;
use crate::report;
use crate::run::LabOptions;
use crate::stats::Spread;
use trial::Bench;

/// What the plan is called on the command line.
pub const PLAN: &str = "transfer";
const REPETITIONS: u32 = 5;
/// What the project wants of the raw copy's rate, at least.
pub(crate) const SHARE_MIN: f64 = 0.5;
/// And of latencies while a state travels, in those before, at most.
pub(crate) const LATENCIES_MAX: f64 = 2.0;
/// A pace that keeps the first, and leaves the link to others as well.
const PACED_SHARE: f64 = 0.55;

/// A state, and whether its transfer is paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case {
    name: &'static str,
    bytes: u64,
    /// Of the raw copy's rate; none: as fast as it goes.
    share: Option<f64>,
    /// Each node has a cable of 1 Gbit/s of its own; otherwise they share the loopback.
    has_cables: bool,
    is_quick: bool,
}

const CASES: [Case; 14] = [
    Case::new("1mib", 1 << 20, None, true),
    Case::new("1mib-paced", 1 << 20, Some(PACED_SHARE), false),
    Case::new("16mib", 16 << 20, None, true),
    Case::new("16mib-paced", 16 << 20, Some(PACED_SHARE), false),
    Case::new("64mib", 64 << 20, None, true),
    Case::new("64mib-paced", 64 << 20, Some(PACED_SHARE), true),
    Case::new("256mib", 256 << 20, None, false),
    Case::new("256mib-paced", 256 << 20, Some(PACED_SHARE), false),
    Case::new("1gib", BALLAST_BYTES_MAX, None, false),
    Case::new("1gib-paced", BALLAST_BYTES_MAX, Some(PACED_SHARE), false),
    Case::over_cables("64mib-gigabit", 64 << 20, None),
    Case::over_cables("64mib-gigabit-paced", 64 << 20, Some(PACED_SHARE)),
    Case::over_cables("1gib-gigabit", BALLAST_BYTES_MAX, None),
    Case::over_cables("1gib-gigabit-paced", BALLAST_BYTES_MAX, Some(PACED_SHARE)),
];

impl Case {
    const fn new(name: &'static str, bytes: u64, share: Option<f64>, is_quick: bool) -> Self {
        Self { name, bytes, share, has_cables: false, is_quick }
    }

    const fn over_cables(name: &'static str, bytes: u64, share: Option<f64>) -> Self {
        Self { name, bytes, share, has_cables: true, is_quick: false }
    }
}

/// Of the calls of one client in one stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// How many.
    pub calls: u64,
    /// Half of them took at most this, in microseconds.
    pub p50_us: f64,
    /// 99 % of them.
    pub p99_us: f64,
    /// All of them.
    pub max_us: f64,
}

/// One repetition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Its case.
    pub case: &'static str,
    /// Of the state.
    pub bytes: u64,
    /// From 1.
    pub repetition: u32,
    /// `transfer_bytes_per_second`.
    pub pace: Option<u64>,
    /// Of a bare copy over the same link, in bytes per second.
    pub raw_rate: f64,
    /// Of the state from the first to the last look at which some of it had come; none if there
    /// was only one such look.
    pub link_rate: Option<f64>,
    /// From the server's death until its member was in again, in milliseconds.
    pub whole_ms: f64,
    /// At the gateway whose member gives the state, in the two seconds before.
    pub donor_before: Latency,
    /// And while the state was on its way.
    pub donor_during: Latency,
    /// And from the server's death until its member was in again.
    pub donor_whole: Latency,
    /// At the third gateway, before.
    pub other_before: Latency,
    /// And while the state was on its way.
    pub other_during: Latency,
    /// And from the server's death until its member was in again.
    pub other_whole: Latency,
    /// The most memory of each node, in bytes: the joiner's, the donor's, the other's.
    pub peaks: Vec<u64>,
    /// CPU time of each node from the server's death until its member was in again, in
    /// milliseconds.
    pub cpu_ms: Vec<f64>,
}

/// All repetitions of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The case.
    pub case: &'static str,
    /// Of the state, in MB per second; as all that follow, over the repetitions.
    pub link_mb_s: Option<Spread>,
    /// Of the bare copy.
    pub raw_mb_s: Spread,
    /// The one by the other.
    pub share: Option<Spread>,
    /// [`Sample::whole_ms`].
    pub whole_ms: Spread,
    /// Median latency at the donor's gateway while the state was on its way, in those before.
    pub donor_p50: Spread,
    /// The same of the 99th percentile.
    pub donor_p99: Spread,
    /// And at the other gateway.
    pub other_p50: Spread,
    /// And at the other gateway.
    pub other_p99: Spread,
    /// The longest call at the donor's gateway until the member was in, in milliseconds.
    pub donor_max_ms: Spread,
    /// The most memory of the joiner's node, in sizes of the state.
    pub joiner_copies: Spread,
    /// And of the donor's.
    pub donor_copies: Spread,
    /// CPU time of the joiner's node meanwhile, in milliseconds.
    pub joiner_cpu_ms: Spread,
    /// And of the donor's.
    pub donor_cpu_ms: Spread,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transfers {
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
    /// Every case.
    pub summaries: Vec<Summary>,
    /// Every repetition.
    pub samples: Vec<Sample>,
}

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was found.
    pub run: Transfers,
    /// The run's folder: `run.json`, `samples.ndjson`, `report.html`.
    pub folder: std::path::PathBuf,
}

/// Measures every case. What happens is told to `tell`, line by line.
///
/// # Errors
/// [`LabError`]; what was measured before stays in the run's folder.
pub fn run(options: &LabOptions, tell: &mut dyn FnMut(&str)) -> Result<Outcome, LabError> {
    let mut cases = wanted(options)?;
    let one = if options.changes.quick { 1 } else { REPETITIONS };
    let repetitions = options.changes.rounds.unwrap_or(one);
    let program = options.program()?;
    let (environment, interrupt, mut record) = options.begin(tell)?;
    let skipped = skip_cables(&mut cases, tell);
    let bench = Bench { program, interrupted: &interrupt.flag };
    let mut samples = Vec::new();
    // Repetitions are outermost: whatever drifts touches every case alike.
    for repetition in 1..=repetitions {
        for case in &cases {
            let result = bench.run(*case, repetition);
            let of = (case.name, Setting::Free, repetition);
            let sample = record.measured(&interrupt.flag, of, result)?;
            tell(&sample.line(repetitions));
            record.line(&sample)?;
            samples.push(sample);
        }
    }
    let run = Transfers {
        plan: PLAN,
        began: record.began.clone(),
        repetitions,
        faults: environment.faults(),
        skipped,
        environment,
        summaries: CASES.iter().filter_map(|case| Summary::of(case.name, &samples)).collect(),
        samples,
    };
    let folder = record.finish(&run, &report::transfer_page(&run))?;
    Ok(Outcome { run, folder })
}

/// Leaves out what takes cables, if this machine lets us have none.
fn skip_cables(cases: &mut Vec<Case>, tell: &mut dyn FnMut(&str)) -> Vec<String> {
    if !cases.iter().any(|case| case.has_cables) {
        return Vec::new();
    }
    let Err(reason) = trial::cables() else { return Vec::new() };
    let (left, kept): (Vec<Case>, Vec<Case>) = cases.iter().partition(|case| case.has_cables);
    *cases = kept;
    let skipped = |case: &Case| format!("skipped: {}: {reason}", case.name);
    let skipped: Vec<String> = left.iter().map(skipped).collect();
    skipped.iter().for_each(|line| tell(line));
    skipped
}

fn wanted(options: &LabOptions) -> Result<Vec<Case>, LabError> {
    let changes = &options.changes;
    if changes.calls.is_some() || changes.settings.is_some() {
        return Err(LabError::Plan(format!("plan {PLAN} has neither calls nor settings")));
    }
    let Some(only) = &changes.only else {
        return Ok(CASES.into_iter().filter(|case| case.is_quick || !changes.quick).collect());
    };
    if let Some(unknown) = only.iter().find(|name| CASES.iter().all(|case| case.name != **name)) {
        let names = CASES.map(|case| case.name).join(", ");
        return Err(LabError::Plan(format!("plan {PLAN} has no {unknown:?}; cases: {names}")));
    }
    Ok(CASES.into_iter().filter(|case| only.iter().any(|name| name == case.name)).collect())
}

impl Sample {
    fn line(&self, repetitions: u32) -> String {
        let ratio = |during: Latency, before: Latency, whole: Latency| {
            let (p50, p99) = (during.p50_us / before.p50_us, during.p99_us / before.p99_us);
            format!("{p50:.2} and {p99:.2} (longest {:.1} ms)", whole.max_us / 1e3)
        };
        let link = self.link_rate.map_or("-".to_owned(), |rate| format!("{:.0}", rate / 1e6));
        let peaks: Vec<String> =
            self.peaks.iter().map(|bytes| format!("{}", bytes >> 20)).collect();
        format!(
            "repetition {}/{repetitions}  {:<12}  {link} MB/s, raw {:.0}  whole {:.0} ms  p50 and \
             p99 in those before: donor's gateway {}, other {}  nodes {} MiB, CPU {} ms",
            self.repetition,
            self.case,
            self.raw_rate / 1e6,
            self.whole_ms,
            ratio(self.donor_during, self.donor_before, self.donor_whole),
            ratio(self.other_during, self.other_before, self.other_whole),
            peaks.join(", "),
            self.cpu_ms.iter().map(|ms| format!("{ms:.0}")).collect::<Vec<_>>().join(", "),
        )
    }
}

impl Summary {
    fn of(case: &'static str, samples: &[Sample]) -> Option<Self> {
        let mine = || samples.iter().filter(|one| one.case == case);
        let spread = |figure: &dyn Fn(&Sample) -> f64| Spread::of(mine().map(figure));
        let copies = |node: usize| spread(&|one| one.peaks[node] as f64 / one.bytes as f64);
        Some(Self {
            case,
            link_mb_s: Spread::of(mine().filter_map(|one| one.link_rate).map(|rate| rate / 1e6)),
            raw_mb_s: spread(&|one| one.raw_rate / 1e6)?,
            share: Spread::of(
                mine().filter_map(|one| one.link_rate.map(|rate| rate / one.raw_rate)),
            ),
            whole_ms: spread(&|one| one.whole_ms)?,
            donor_p50: spread(&|one| one.donor_during.p50_us / one.donor_before.p50_us)?,
            donor_p99: spread(&|one| one.donor_during.p99_us / one.donor_before.p99_us)?,
            other_p50: spread(&|one| one.other_during.p50_us / one.other_before.p50_us)?,
            other_p99: spread(&|one| one.other_during.p99_us / one.other_before.p99_us)?,
            donor_max_ms: spread(&|one| one.donor_whole.max_us / 1e3)?,
            joiner_copies: copies(0)?,
            donor_copies: copies(1)?,
            joiner_cpu_ms: spread(&|one| one.cpu_ms[0])?,
            donor_cpu_ms: spread(&|one| one.cpu_ms[1])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Changes;

    #[test]
    fn cases_can_be_picked() {
        let options = |only: &[&str], quick| LabOptions {
            plan: PLAN.to_owned(),
            changes: Changes {
                only: (!only.is_empty()).then(|| only.iter().map(|&name| name.into()).collect()),
                quick,
                ..Changes::default()
            },
            echo_dir: None,
            out: "nowhere".into(),
            anyway: false,
            program: None,
        };
        assert_eq!(wanted(&options(&[], false)).expect("cases").len(), CASES.len());
        assert!(wanted(&options(&[], true)).expect("cases").len() < CASES.len());
        let picked = wanted(&options(&["1gib"], true)).expect("cases");
        assert_eq!(picked.iter().map(|case| case.name).collect::<Vec<_>>(), ["1gib"]);
        assert!(wanted(&options(&["2gib"], false)).is_err());
    }
}
