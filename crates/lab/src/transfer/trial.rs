//! One repetition of a case: a domain, its state, two clients, a server that dies, and its return.
//!
//! Invariants: the raw copy is measured in the same repetition; a transfer counts only if all
//! servers have the same state behind it.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::status::{MemberState, Status};
use rustix::process::{Pid, Signal, kill_process};

use super::caller::{CALL_WITHIN, Caller, Timed, client};
use super::{Case, Latency, Sample, raw};
use crate::domain::{self, Domain, Servers};
use crate::namespaces::Namespaces;
use crate::plan::DomainShape;
use crate::stats::Percentiles;
use crate::usage;

const NODES: usize = 3;
/// What a cable carries.
const CABLE_BITS_PER_SECOND: u64 = 1_000_000_000;
/// Whose server dies; the next one gives its state.
pub(super) const JOINER: usize = 0;
pub(super) const DONOR: usize = 1;
const OTHER: usize = 2;
/// Calls before anything is looked at.
const WARM_UP_CALLS: u64 = 200;
/// How long calls are looked at before.
const WINDOW: Duration = Duration::from_secs(2);
/// How long the member may take to come back.
const BACK_WITHIN: Duration = Duration::from_secs(300);
/// Pause between two looks at the joiner.
const LOOK: Duration = Duration::from_millis(5);

/// What all repetitions share.
pub(super) struct Bench<'a> {
    /// This very program, which is the nodes and the servers.
    pub(super) program: PathBuf,
    /// Set when the user wants it to end.
    pub(super) interrupted: &'a AtomicBool,
}

/// What was seen of the member's return.
#[derive(Default)]
struct Seen {
    /// It was not in.
    was_out: bool,
    /// The first and the last time that some of the state had come, and was not all used.
    link: Option<(Instant, Instant)>,
}

impl Bench<'_> {
    pub(super) fn run(&self, case: Case, repetition: u32) -> Result<Sample, String> {
        if !case.has_cables {
            return self.run_within(None, case, repetition);
        }
        let cables = cables()?;
        // What it starts, the clients included, stays where the clients are.
        cables.clients().run(|| self.run_within(Some(&cables), case, repetition))
    }

    fn run_within(
        &self,
        cables: Option<&Namespaces>,
        case: Case,
        repetition: u32,
    ) -> Result<Sample, String> {
        let raw_rate = raw::rate(case.bytes, cables)?;
        let pace = case.share.map(|share| (raw_rate * share) as u64);
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let servers = Servers::Ballast(&self.program);
        let shape = shape(pace);
        let what = (&shape, &*self.program, servers);
        let domain = Domain::start_within(cables, what, folder.path(), false)?;
        let gateways: Vec<SocketAddr> = domain.gateways().collect();
        let mut filler = client(gateways[OTHER])?;
        let filled = filler.call("fill", |out| out.write_u64(case.bytes));
        filled.map_err(|error| format!("the servers take no state: {error}"))?;
        let callers = [Caller::start(gateways[DONOR])?, Caller::start(gateways[OTHER])?];
        self.wait(CALL_WITHIN, &callers, || {
            Ok(callers.iter().all(|caller| caller.answered() >= WARM_UP_CALLS))
        })?;
        let before = Instant::now();
        thread::sleep(WINDOW);
        let busy_before = busy(&domain)?;
        let began = Instant::now();
        end_server(&domain)?;
        let mut seen = Seen::default();
        self.wait(BACK_WITHIN, &callers, || {
            let status = domain.status(JOINER)?;
            seen.look(&status);
            Ok(seen.was_out && is_back(&status))
        })?;
        let whole = began.elapsed();
        let busy_after = busy(&domain)?;
        let peaks = (0..NODES).map(|index| domain.pid(index)).map(peak_bytes).collect();
        let calls: Vec<_> = callers.into_iter().map(Caller::stop).collect::<Result<_, _>>()?;
        let link = seen.link.filter(|(from, to)| from < to);
        let (from, to) = link.unwrap_or((began, began + whole));
        let latency = |calls: &Vec<Timed>| {
            let of = |from, to| latency(calls, from, to).ok_or("a client was not answered");
            Ok::<_, String>([of(before, began)?, of(from, to)?, of(began, began + whole)?])
        };
        let [donor_before, donor_during, donor_whole] = latency(&calls[0])?;
        let [other_before, other_during, other_whole] = latency(&calls[1])?;
        same_everywhere(&gateways)?;
        Ok(Sample {
            case: case.name,
            bytes: case.bytes,
            repetition,
            pace,
            raw_rate,
            link_rate: link.map(|(from, to)| case.bytes as f64 / (to - from).as_secs_f64()),
            whole_ms: whole.as_secs_f64() * 1e3,
            donor_before,
            donor_during,
            donor_whole,
            other_before,
            other_during,
            other_whole,
            peaks,
            cpu_ms: std::iter::zip(busy_before, busy_after).map(|(from, to)| to - from).collect(),
        })
    }

    fn wait(
        &self,
        within: Duration,
        callers: &[Caller],
        mut done: impl FnMut() -> Result<bool, String>,
    ) -> Result<(), String> {
        let deadline = Instant::now() + within;
        while !done()? {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            if callers.iter().any(Caller::has_ended) {
                return Err("a client got an exception".to_owned());
            }
            if Instant::now() >= deadline {
                return Err(format!("nothing within {} s", within.as_secs()));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// A network in which each node has a cable of its own.
pub(super) fn cables() -> Result<Namespaces, String> {
    let cables = Namespaces::make(NODES)?;
    cables.limit(CABLE_BITS_PER_SECOND)?;
    Ok(cables)
}

impl Seen {
    fn look(&mut self, status: &Status) {
        let now = Instant::now();
        self.was_out |= !is_back(status);
        let transfers = status.groups.iter().flat_map(|group| &group.transfers);
        if transfers.clone().any(|one| one.to == status.node && one.done_bytes > 0) {
            self.link.get_or_insert((now, now)).1 = now;
        }
    }
}

pub(super) fn shape(pace: Option<u64>) -> DomainShape {
    let table = |text: &str| text.parse::<toml::Table>().expect("it is TOML");
    let mut group = table("style = \"active\"\nstate_object = \"ballast\"");
    if let Some(pace) = pace {
        let pace = i64::try_from(pace.max(1_024)).unwrap_or(i64::MAX);
        group.insert("transfer_bytes_per_second".to_owned(), pace.into());
    }
    DomainShape {
        nodes: NODES,
        members: NODES,
        client: 1,
        wire: None,
        ring: toml::Table::new(),
        limits: table("state_bytes = 1073741824"),
        group,
        server_options: Vec::new(),
        server_socket: true,
    }
}

fn end_server(domain: &Domain) -> Result<(), String> {
    let servers = domain::servers(&domain.statuses()?);
    let name = format!("server of n{}", JOINER + 1);
    let server = servers.iter().find(|server| server.name == name);
    let pid = server.and_then(|server| i32::try_from(server.pid).ok()).and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| format!("there is no {name}"))?;
    kill_process(pid, Signal::KILL).map_err(|error| format!("{name} cannot be killed: {error}"))
}

fn is_back(status: &Status) -> bool {
    let members = status.groups.iter().flat_map(|group| &group.members);
    members.clone().count() == NODES
        && members.into_iter().all(|member| member.state == MemberState::In)
}

/// What each node has used of the cores, in milliseconds.
fn busy(domain: &Domain) -> Result<Vec<f64>, String> {
    let of = |index| usage::run_time_of_process(domain.pid(index)).map(|time| time.as_secs_f64());
    let times = (0..NODES).map(|index| of(index).map(|seconds| seconds * 1e3));
    times.collect::<Result<_, _>>().map_err(|error| format!("a node's CPU time: {error}"))
}

fn latency(calls: &[Timed], from: Instant, to: Instant) -> Option<Latency> {
    let among = calls.iter().filter(|(began, took)| *began + *took >= from && *began <= to);
    let samples: Vec<u64> =
        among.map(|(_, took)| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)).collect();
    let all = Percentiles::of(&samples)?;
    let calls = samples.len() as u64;
    Some(Latency { calls, p50_us: all.p50_us, p99_us: all.p99_us, max_us: all.max_us })
}

/// The most memory that a process had at once, as the kernel says.
fn peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// At each gateway its own member answers.
fn same_everywhere(gateways: &[SocketAddr]) -> Result<(), String> {
    let mut digests = Vec::new();
    for gateway in gateways {
        let answer = client(*gateway)?.call("digest", |_| {}).map_err(|error| error.to_string())?;
        digests.push(answer.results().read_u64("digest").map_err(|error| error.to_string())?);
    }
    let same = digests.windows(2).all(|pair| pair[0] == pair[1]);
    if same { Ok(()) } else { Err(format!("the servers' states differ: {digests:x?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_domain_is_accepted() {
        for pace in [None, Some(0), Some(1 << 30)] {
            assert_eq!(domain::refusal(&shape(pace)), None);
        }
    }
}
