//! Figures 4 and 5: an event's latency when the member that leads dies, between two events and in
//! the middle of a push (Huang05 §4.3), with each of the [`super::measures`] alone, and with all.
//!
//! What it is not: fault detection by the lab; whoever waits is the consumer.
//!
//! Invariant: a sample is of one death, in a domain that was whole before it.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::ends::Ends;
use super::measures::{SETTINGS, SHIPPED, Setting};
use super::stand::Stand;
use crate::stats::{Percentiles, Spread};

/// Backups, as many as a domain of three nodes has.
pub(super) const BACKUPS: usize = 2;
/// Between two events, as in the paper, and between a death and the event behind it.
const PACE: Duration = Duration::from_millis(100);
const BEHIND_DEATH: Duration = Duration::from_millis(50);
/// Events before a death.
const BEFORE: u32 = 10;

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The process of the service that leads.
    Process,
    /// Its node, with it.
    Node,
    /// The process of a member that does not lead: what its end and its new start cost the event.
    Backup,
    /// Nobody: what the event costs after the same silence.
    Nobody,
}

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Between two events, 50 ms before the next.
    Between,
    /// While a push is under way.
    Middle,
}

/// Who, and when.
pub(super) type Case = (Victim, Moment);

/// Every case. The last two are what the first is compared with.
pub(super) const CASES: [Case; 6] = [
    (Victim::Process, Moment::Between),
    (Victim::Process, Moment::Middle),
    (Victim::Node, Moment::Between),
    (Victim::Node, Moment::Middle),
    (Victim::Backup, Moment::Between),
    (Victim::Nobody, Moment::Between),
];

/// What one death cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Death {
    /// With which measures: the name of a setting.
    pub setting: &'static str,
    /// Who.
    pub victim: Victim,
    /// When.
    pub moment: Moment,
    /// From 1.
    pub repetition: u32,
    /// Of the event that was under way, or is the first behind it; none if it was lost.
    pub latency_us: Option<f64>,
    /// Half of the events before took at most this.
    pub normal_us: f64,
    /// Attempts to push that failed before one was taken.
    pub failed: u32,
}

impl Victim {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Node => "node",
            Self::Backup => "backup",
            Self::Nobody => "nobody",
        }
    }
}

impl Moment {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Between => "between events",
            Self::Middle => "in a push",
        }
    }
}

/// One death; then the domain is made whole again.
pub(super) fn death(
    stand: &mut Stand,
    ends: &mut Ends,
    (setting, (victim, moment), repetition): (&'static str, Case, u32),
) -> Result<Death, String> {
    stand.await_whole()?;
    let mut normal: Vec<Duration> = Vec::new();
    for _ in 0..BEFORE {
        normal.push(ends.pass()?);
        thread::sleep(PACE / 10);
    }
    normal.sort_unstable();
    let median = normal[normal.len() / 2];
    thread::sleep(PACE);
    let (node, pid) = match victim {
        Victim::Backup => stand.backup()?,
        _ => stand.leader()?,
    };
    let (latency, failed) = match moment {
        Moment::Between => {
            stand.kill(victim, node, pid)?;
            thread::sleep(BEHIND_DEATH);
            ends.pass_or_lose()?
        }
        Moment::Middle => thread::scope(|scope| {
            let push = scope.spawn(|| ends.pass_or_lose());
            let until = Instant::now() + median / 2;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            stand.kill(victim, node, pid)?;
            push.join().unwrap_or_else(|_| Err("a supplier panicked".to_owned()))
        })?,
    };
    stand.mend(victim, node, pid)?;
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(Death {
        setting,
        victim,
        moment,
        repetition,
        latency_us: latency.map(us),
        normal_us: us(median),
        failed,
    })
}

/// Figures of the deaths of one case in one setting; none if there were none.
struct Found {
    deaths: usize,
    lost: usize,
    /// Of events that were not lost.
    latency: Option<Percentiles>,
    normal: Spread,
}

fn found(deaths: &[Death], setting: &str, (victim, moment): Case) -> Option<Found> {
    let is_mine = |one: &&Death| (one.setting, one.victim, one.moment) == (setting, victim, moment);
    let mine = || deaths.iter().filter(is_mine);
    let came: Vec<u64> = mine().filter_map(|one| one.latency_us).map(whole_ns).collect();
    let (normal, count) = (Spread::of(mine().map(|one| one.normal_us))?, mine().count());
    Some(Found { deaths: count, lost: count - came.len(), latency: Percentiles::of(&came), normal })
}

/// Figure 4: a line for each column that was measured.
pub(super) fn columns(deaths: &[Death]) -> Vec<String> {
    let line = |setting: &Setting| {
        let column = setting.column?;
        let found = found(deaths, setting.name, (Victim::Process, Moment::Between))?;
        let all = found.latency?;
        Some(format!(
            "{column:<28} p10 {:.0} us, p50 {:.0}, p90 {:.0}, p99 {:.0}, max {:.0}; {} deaths, {} \
             events lost",
            all.p10_us, all.p50_us, all.p90_us, all.p99_us, all.max_us, found.deaths, found.lost
        ))
    };
    SETTINGS.iter().filter_map(line).collect()
}

/// Figure 5: a line for each case, with what a domain file that says nothing has.
pub(super) fn lines(deaths: &[Death]) -> Vec<String> {
    let line = |case: Case| {
        let found = found(deaths, SHIPPED, case)?;
        let figures = found.latency.map_or_else(String::new, |all| {
            let (p50, p99, max) = (all.p50_us, all.p99_us, all.max_us);
            format!("p50 {p50:.0} us, p99 {p99:.0}, max {max:.0}; ")
        });
        let (who, when) = (case.0.text(), case.1.text());
        let Found { deaths, lost, normal, .. } = found;
        let before = normal.median;
        Some(format!(
            "{who:<7} {when:<14}  {figures}{deaths} deaths, {lost} events lost, before \
             {before:.0} us"
        ))
    };
    CASES.into_iter().filter_map(line).collect()
}

/// Each measure alone, and all together: a line for each setting, with what each case gains over
/// no measure at all.
pub(super) fn steps(deaths: &[Death]) -> Vec<String> {
    let p50 = |setting: &str, case| Some(found(deaths, setting, case)?.latency?.p50_us);
    let none = SETTINGS[0].name;
    let line = |setting: &Setting| {
        let of_case = |case: &Case| {
            let now = p50(setting.name, *case)?;
            let gain = p50(none, *case).filter(|_| setting.name != none);
            let gain = gain.map_or_else(String::new, |before| format!(" ({:+.0})", now - before));
            Some(format!("{} {} p50 {now:.0} us{gain}", case.0.text(), case.1.text()))
        };
        let cases: Vec<_> = setting.cases().iter().filter_map(of_case).collect();
        (!cases.is_empty()).then(|| format!("{:<31} {}", setting.name, cases.join("; ")))
    };
    SETTINGS.iter().filter_map(line).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a short time")]
fn whole_ns(us: f64) -> u64 {
    (us * 1e3) as u64
}
