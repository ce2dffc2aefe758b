//! A running cluster of one peer, and how a task is run on it.
//!
//! Invariants: dropped, none of its processes is left; a task has a result only if every node
//! delivered the same messages in the same order.

use std::path::Path;
use std::time::{Duration, Instant};

use quorba_lab::usage;
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use super::peer::{Peer, Site};
use super::process::Process;
use super::task::{Done, Kind, Task, WorkerReply};

/// How long a daemon, and then its participant, may take until it is part of the whole.
const START_TIME_MAX: Duration = Duration::from_secs(40);
/// How long anything may take that is done at once, and how long a queue may take to drain.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// The slowest message that is waited for in a latency task.
const MESSAGE_TIME_MAX: Duration = Duration::from_millis(20);
/// The node that fails, the coordinator if there is one, and the node that sends meanwhile.
const VICTIM: usize = 1;
const SENDER: usize = 2;
/// Pause between the messages around a failure.
const STEADY_PAUSE_US: u64 = 1_000;
/// How long it is steady before the failure.
const STEADY_TIME: Duration = Duration::from_secs(1);

pub(super) struct Cluster {
    peer: Peer,
    daemons: Vec<Process>,
    participants: Vec<Process>,
    last_id: u32,
}

/// How a task ended.
pub(super) enum Verdict {
    Measured(Measured),
    /// This peer has no such thing.
    Unsupported(String),
}

pub(super) struct Measured {
    /// Of every node that was asked, in the order of their numbers.
    pub(super) done: Vec<Done>,
    /// CPU time of all processes together.
    pub(super) cpu_us: u64,
    /// CPU time of the whole machine.
    pub(super) machine_us: u64,
}

/// What a failure of a node cost the others.
pub(super) struct Failure {
    /// From the signal until the last survivor has a view without the victim.
    pub(super) view: Option<Duration>,
    /// The longest time without a delivery at any survivor.
    pub(super) gap: Duration,
    pub(super) done: Vec<Done>,
}

impl Cluster {
    /// Starts all processes, and waits until they are one view. Logs go to the folder `logs`.
    pub(super) fn start(peer: Peer, site: &Site<'_>, logs: &Path) -> Result<Self, String> {
        for folder in (1..=site.nodes).map(|node| site.node_folder(node)).chain([logs.to_owned()]) {
            std::fs::create_dir_all(&folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        peer.prepare(site)?;
        let mut cluster = Self { peer, daemons: Vec::new(), participants: Vec::new(), last_id: 0 };
        let deadline = Instant::now() + START_TIME_MAX;
        for node in 1..=site.nodes {
            let Some(command) = peer.daemon(site, node) else { break };
            let log = logs.join(format!("daemon-{node}.log"));
            let daemon = Process::start(format!("{}'s daemon {node}", peer.name), command, &log)?;
            cluster.daemons.push(daemon);
        }
        for daemon in cluster.daemons.iter().filter(|_| peer.daemon_says_so()) {
            daemon.hear("listening", deadline, |said| {
                matches!(said, WorkerReply::Listening).then_some(())
            })?;
        }
        for node in 1..=site.nodes {
            let log = logs.join(format!("participant-{node}.log"));
            let name = format!("{}'s participant {node}", peer.name);
            let participant = Process::start(name, peer.participant(site, node), &log)?;
            if node == VICTIM && peer.has_coordinator() {
                // The first one becomes it.
                participant.hear("joined", deadline, |said| {
                    matches!(said, WorkerReply::Joined).then_some(())
                })?;
            }
            cluster.participants.push(participant);
        }
        for participant in &cluster.participants {
            participant
                .hear("ready", deadline, |said| matches!(said, WorkerReply::Ready).then_some(()))?;
        }
        Ok(cluster)
    }

    pub(super) fn nodes(&self) -> usize {
        self.participants.len()
    }

    /// CPU time of all processes so far, in microseconds.
    pub(super) fn cpu_us(&self) -> Result<u64, String> {
        self.daemons.iter().chain(&self.participants).try_fold(0, |sum, process| {
            let used = usage::of_process(process.id()).map_err(|error| error.to_string())?;
            Ok(sum + used.user_us + used.system_us)
        })
    }

    /// CPU time of all processes so far, to the nanosecond, of threads that still run.
    pub(super) fn run_time(&self) -> Result<Duration, String> {
        self.daemons.iter().chain(&self.participants).try_fold(Duration::ZERO, |sum, process| {
            let ran =
                usage::run_time_of_process(process.id()).map_err(|error| error.to_string())?;
            Ok(sum + ran)
        })
    }

    /// Why there were views, as far as the logs of the nodes say so: of every node, in order. Only
    /// ours do.
    pub(super) fn reasons(&self) -> Result<Vec<Vec<String>>, String> {
        let nodes = if self.daemons.is_empty() { &self.participants } else { &self.daemons };
        let reasons = |process: &Process| {
            let log = process.log()?;
            let told = log.lines().filter_map(|line| line.split_once(", because of "));
            Ok(told.map(|(_, reason)| reason.to_owned()).collect())
        };
        nodes.iter().map(reasons).collect()
    }

    /// Runs a task of which every node knows the end.
    pub(super) fn run(&mut self, task: &Task) -> Result<Verdict, String> {
        if let Some(reason) = self.prepare(task)? {
            return Ok(Verdict::Unsupported(reason));
        }
        let machine = || usage::of_machine().map_err(|error| error.to_string());
        let (cpu_before_us, machine_before) = (self.cpu_us()?, machine()?);
        self.tell_all("go")?;
        let task_time = match task.kind {
            Kind::Stream => Duration::from_millis(task.amount),
            Kind::Latency | Kind::Steady => {
                let one = Duration::from_micros(task.pause_us) + MESSAGE_TIME_MAX;
                one.saturating_mul(u32::try_from(task.amount).unwrap_or(u32::MAX))
            }
        };
        let deadline = Instant::now() + task_time + ANSWER_TIME_MAX;
        let done = self
            .participants
            .iter()
            .map(|participant| self.done(participant, deadline))
            .collect::<Result<Vec<_>, _>>()?;
        let cpu_us = self.cpu_us()? - cpu_before_us;
        let machine_us = machine()?.busy_us - machine_before.busy_us;
        check_order(&done)?;
        Ok(Verdict::Measured(Measured { done, cpu_us, machine_us }))
    }

    /// Sends steadily from one node, and lets another fail by `signal`.
    pub(super) fn fail(mut self, signal: Signal) -> Result<Failure, String> {
        if let Some(reason) = self.prepare(&Task::steady(SENDER, STEADY_PAUSE_US))? {
            return Err(reason);
        }
        self.tell_all("go")?;
        std::thread::sleep(STEADY_TIME);
        let victims = if self.daemons.is_empty() { &self.participants } else { &self.daemons };
        let at_ns = monotonic_ns();
        victims[VICTIM - 1].signal(signal);
        std::thread::sleep(self.peer.failure_wait(signal == Signal::STOP));
        self.participants[SENDER - 1].tell("stop")?;
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        let mut done = vec![self.done(&self.participants[SENDER - 1], deadline)?];
        for node in (1..=self.nodes()).filter(|node| ![VICTIM, SENDER].contains(node)) {
            // One that has not seen the sender's end is told so.
            self.participants[node - 1].tell("stop")?;
            done.push(self.done(&self.participants[node - 1], deadline)?);
        }
        Ok(Failure { view: view_after(&done, at_ns), gap: longest_gap(&done), done })
    }

    /// Makes all nodes ready for a task; the reason, if there is no such thing.
    fn prepare(&mut self, task: &Task) -> Result<Option<String>, String> {
        self.last_id += 1;
        let id = self.last_id;
        self.tell_all(&task.line(id).to_string())?;
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        let mut missing = None;
        for participant in &self.participants {
            let answer = participant.hear("prepared", deadline, |said| match said {
                WorkerReply::Prepared { id: of } if of == id => Some(None),
                WorkerReply::Unsupported { id: of, reason } if of == id => Some(Some(reason)),
                _ => None,
            })?;
            missing = missing.or(answer);
        }
        Ok(missing)
    }

    fn tell_all(&mut self, line: &str) -> Result<(), String> {
        self.participants.iter_mut().try_for_each(|participant| participant.tell(line))
    }

    fn done(&self, participant: &Process, deadline: Instant) -> Result<Done, String> {
        participant.hear("done", deadline, |said| match said {
            WorkerReply::Done(done) if done.id == self.last_id => Some(done),
            _ => None,
        })
    }
}

/// Every node must have delivered the same, in the same order.
fn check_order(done: &[Done]) -> Result<(), String> {
    let mut orders = done.iter().map(|one| (one.delivered, &one.hash));
    let first = orders.next();
    match orders.position(|order| Some(order) != first) {
        None => Ok(()),
        Some(index) => {
            let of = |at: usize| (done[at].delivered, &done[at].hash);
            let node = index + 2;
            Err(format!("THE ORDER DIFFERS: node 1 {:?}, node {node} {:?}", of(0), of(node - 1)))
        }
    }
}

/// When the last survivor had a view without the victim, since `at_ns`.
fn view_after(done: &[Done], at_ns: u64) -> Option<Duration> {
    done.iter()
        .map(|one| {
            let mut after = one.views.iter().filter(|view| view.at_ns > at_ns);
            let view = after.find(|view| !view.members.contains(&VICTIM))?;
            Some(Duration::from_nanos(view.at_ns - at_ns))
        })
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .max()
}

pub(super) fn longest_gap(done: &[Done]) -> Duration {
    let gaps = done.iter().map(|one| one.gap_end_ns.saturating_sub(one.gap_begin_ns));
    Duration::from_nanos(gaps.max().unwrap_or(0))
}

/// The clock of the participants' answers.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::super::task::View;
    use super::*;

    fn done(delivered: u64, hash: &str) -> Done {
        Done {
            id: 1,
            go_ns: 0,
            end_ns: 0,
            delivered,
            hash: hash.to_owned(),
            samples_ns: Vec::new(),
            rotation_us: None,
            gap_begin_ns: 0,
            gap_end_ns: 0,
            views: Vec::new(),
        }
    }

    #[test]
    fn another_order_or_another_number_is_found() {
        assert_eq!(check_order(&[done(5, "aa"), done(5, "aa")]), Ok(()));
        assert!(check_order(&[done(5, "aa"), done(5, "aa"), done(5, "ab")]).is_err());
        assert!(check_order(&[done(5, "aa"), done(4, "aa")]).is_err());
    }

    #[test]
    fn the_view_counts_when_the_last_survivor_has_it() {
        let survivor = |views: &[(u64, &[usize])]| {
            let view = |(at_ns, members): &(u64, &[usize])| View {
                at_ns: *at_ns,
                members: members.to_vec(),
            };
            Done { views: views.iter().map(view).collect(), ..done(1, "aa") }
        };
        let early = survivor(&[(50, &[1, 2, 3]), (120, &[2, 3])]);
        let late = survivor(&[(130, &[1, 2, 3]), (140, &[3]), (150, &[2, 3])]);
        let blind = survivor(&[(90, &[2, 3])]);
        let both = [early.clone(), late];
        assert_eq!(view_after(&both, 100), Some(Duration::from_nanos(40)));
        assert_eq!(view_after(&[early, blind], 100), None);
    }
}
