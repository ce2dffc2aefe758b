//! How long a client waits when something dies: each style, each fault, some repetitions.
//!
//! Three nodes, a bank of three members, and one client that calls without a pause. The client is
//! at the third node's gateway and knows the others; it repeats calls of unknown outcome under
//! one FT_REQUEST identity. Styles with a leader are led by the first node.
//!
//! What it is not: a test. Whether medians meet the targets is said; a busy machine misses them.
//!
//! Invariants: every repetition has a domain of its own, so that none meets what another left;
//! what is compared (the gap, the latency, the longest wait before) is of one repetition.

pub(crate) mod caller;
mod case;
mod record;
mod trial;

use std::sync::atomic::Ordering;
use std::time::Duration;

pub use case::{Fault, Sharing, Target};
pub use record::{Case, Failover, Sample};

use crate::error::LabError;
use crate::placement::Setting;
use crate::report;
use crate::run::LabOptions;
use trial::Bench;
pub(crate) use trial::SERVER_REPLY;

/// What the plan is called on the command line.
pub const PLAN: &str = "failover";
/// For so long a fault may be felt by who is not its victim: a view, and the order's next messages.
pub const EFFECT: Duration = Duration::from_millis(100);
/// Repetitions of each case.
const REPETITIONS: u32 = 10;
/// Times that a repetition is tried: a domain on a busy machine may not come up in time.
const TRIES: u32 = 3;

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was found.
    pub run: Failover,
    /// The run's folder: `run.json`, `samples.ndjson`, `report.html`.
    pub folder: std::path::PathBuf,
}

/// Measures every case. What happens is told to `tell`, line by line.
///
/// # Errors
/// [`LabError`]; what was measured before stays in the run's folder.
pub fn run(options: &LabOptions, tell: &mut dyn FnMut(&str)) -> Result<Outcome, LabError> {
    let mut cases = wanted(options)?;
    let skipped = skip_cuts(&mut cases, tell);
    let repetitions = match (options.changes.rounds, options.changes.quick) {
        (Some(rounds), _) => rounds,
        (None, true) => 1,
        (None, false) => REPETITIONS,
    };
    let program = options.program()?;
    let (environment, interrupt, mut record) = options.begin(tell)?;
    let bench = Bench { program, interrupted: &interrupt.flag };
    let mut samples = Vec::new();
    // Repetitions are outermost: whatever drifts touches every case alike.
    for repetition in 1..=repetitions {
        for (style, fault) in &cases {
            let result = attempt(&bench, (*style, *fault), repetition, tell);
            let case = format!("{}, {}", style.as_str(), fault.as_str());
            let of = (&case[..], Setting::Free, repetition);
            let (sample, replies) = record.measured(&interrupt.flag, of, result)?;
            tell(&sample.line(repetitions));
            let line = record::Line { sample: &sample, replies_us: &replies };
            record.line(&line)?;
            samples.push(sample);
        }
    }
    let run = Failover::of(record.began.clone(), repetitions, environment, (samples, skipped));
    let folder = record.finish(&run, &report::failover_page(&run))?;
    Ok(Outcome { run, folder })
}

/// The cases that the options leave: `--only` names styles, faults, or both.
fn wanted(options: &LabOptions) -> Result<Vec<(Sharing, Fault)>, LabError> {
    if options.changes.settings.as_ref().is_some_and(|all| all[..] != [Setting::Free]) {
        return Err(LabError::Plan(format!("plan {PLAN} has the setting free only")));
    }
    if options.changes.calls.is_some() {
        return Err(LabError::Plan(format!("plan {PLAN} counts no calls; --rounds repeats it")));
    }
    let only = options.changes.only.clone().unwrap_or_default();
    let styles: Vec<Sharing> =
        Sharing::ALL.into_iter().filter(|s| named(&only, s.as_str())).collect();
    let faults: Vec<Fault> = Fault::ALL.into_iter().filter(|f| named(&only, f.as_str())).collect();
    let known = |name: &String| {
        Sharing::ALL.iter().any(|style| style.as_str() == name)
            || Fault::ALL.iter().any(|fault| fault.as_str() == name)
    };
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let styles = Sharing::ALL.map(Sharing::as_str).join(", ");
        let faults = Fault::ALL.map(Fault::as_str).join(", ");
        return Err(LabError::Plan(format!(
            "plan {PLAN} has no {unknown:?}; styles: {styles}; faults: {faults}"
        )));
    }
    let styles = if styles.is_empty() { Sharing::ALL.to_vec() } else { styles };
    let faults = if faults.is_empty() { Fault::ALL.to_vec() } else { faults };
    let all = styles.iter().flat_map(|style| faults.iter().map(move |fault| (*style, *fault)));
    Ok(all.filter(|(style, fault)| fault.meets(*style).is_some()).collect())
}

/// Leaves out what takes cables, if this machine has none to cut.
fn skip_cuts(cases: &mut Vec<(Sharing, Fault)>, tell: &mut dyn FnMut(&str)) -> Vec<String> {
    if !cases.iter().any(|(_, fault)| fault.is_cut()) {
        return Vec::new();
    }
    let Err(reason) = trial::Network::make() else { return Vec::new() };
    cases.retain(|(_, fault)| !fault.is_cut());
    let skipped = |fault: Fault| format!("skipped: {}: {reason}", fault.as_str());
    let skipped: Vec<String> =
        Fault::ALL.into_iter().filter(|fault| fault.is_cut()).map(skipped).collect();
    skipped.iter().for_each(|line| tell(line));
    skipped
}

fn named(only: &[String], name: &str) -> bool {
    only.iter().any(|one| one == name)
}

fn attempt(
    bench: &Bench<'_>,
    case: (Sharing, Fault),
    repetition: u32,
    tell: &mut dyn FnMut(&str),
) -> Result<(Sample, Vec<i64>), String> {
    let mut tries = 1;
    loop {
        match bench.run(case, repetition) {
            Err(trial::Failed::Start(reason))
                if tries < TRIES && !bench.interrupted.load(Ordering::Relaxed) =>
            {
                tell(&format!("{}, {}: tried again: {reason}", case.0.as_str(), case.1.as_str()));
                tries += 1;
            }
            Err(trial::Failed::Start(reason) | trial::Failed::Fault(reason)) => {
                return Err(reason);
            }
            Ok(result) => return Ok(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Changes;
    use quorba_base::policy::Style;

    fn options(only: &[&str]) -> LabOptions {
        let only = only.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        LabOptions {
            plan: PLAN.to_owned(),
            changes: Changes { only: (!only.is_empty()).then_some(only), ..Changes::default() },
            echo_dir: None,
            out: "nowhere".into(),
            anyway: false,
            program: None,
        }
    }

    #[test]
    fn every_style_meets_every_fault_that_it_can() {
        let all = wanted(&options(&[])).expect("cases");
        // In a cold-passive group nobody but the leader has a server.
        // In an active group the client is at the replier's node.
        // Only passive groups have something to execute anew.
        assert_eq!(all.len(), Sharing::ALL.len() * Fault::ALL.len() - 5);
        assert!(!all.contains(&(Sharing::Together(Style::SemiActive), Fault::LateServer)));
        assert!(!all.contains(&(Sharing::Together(Style::Active), Fault::ReplierCable)));
        assert!(!all.contains(&(Sharing::Together(Style::ColdPassive), Fault::OtherServer)));
    }

    #[test]
    fn styles_and_faults_can_be_picked() {
        let all = wanted(&options(&["active", "other-cable", "replier-node"])).expect("cases");
        assert_eq!(
            all,
            [
                (Sharing::Together(Style::Active), Fault::ReplierNode),
                (Sharing::Together(Style::Active), Fault::OtherCable)
            ]
        );
        assert_eq!(wanted(&options(&["other-cable"])).expect("cases").len(), Sharing::ALL.len());
        assert!(wanted(&options(&["earthquake"])).is_err());
    }
}
