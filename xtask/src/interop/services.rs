//! The naming service and the replication manager, used by clients in C++, Java and Python at once
//! while every second a process of theirs or a whole node is killed; and the end of all nodes just
//! behind the last acknowledgement.
//!
//! What it is not: a test of each operation; `crates/naming/tests` and `crates/manager/tests` have
//! those. Invariants: what clients were told is what is there afterwards, at every node and every
//! replica: nothing is lost, nothing was done twice; what nobody was told may have been done once.

mod client;
mod judge;
mod work;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::status::MemberState;
use quorba_lab::skips::skip;
use rustix::process::Signal;

use super::domain::{self, DomainFile, NODES};
use super::fleet::{self, Fleet};
use super::live::operator::Operator;
use super::{Context, Verdict};
use crate::{omniorbpy, wait};
use client::{Client, Kind};
use judge::Judge;
use work::Work;

/// Operations of all clients together.
const OPERATIONS: usize = 501;
/// Between two operations of one client.
const PACE: Duration = Duration::from_millis(220);
/// Between two kills.
const KILL_EVERY: Duration = Duration::from_secs(1);
/// How long everybody may take to be in again.
const WHOLE_TIME_MAX: Duration = Duration::from_secs(45);
const NAMING: &str = "naming";
const MANAGER: &str = "replication-manager";
const SERVICES: [&str; 2] = [NAMING, MANAGER];

/// What is killed: a service's process on a node, or a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Process(&'static str, usize),
    Node(usize),
}

/// Each process and each node in turn.
const VICTIMS: [Victim; 9] = [
    Victim::Process(NAMING, 0),
    Victim::Process(MANAGER, 1),
    Victim::Node(2),
    Victim::Process(NAMING, 1),
    Victim::Process(MANAGER, 2),
    Victim::Node(0),
    Victim::Process(NAMING, 2),
    Victim::Process(MANAGER, 0),
    Victim::Node(1),
];

/// How many of each were killed.
#[derive(Default)]
struct Kills {
    processes: usize,
    nodes: usize,
}

struct Life {
    fleet: Fleet,
    operator: Operator,
}

pub(super) fn run(context: &Context) -> Verdict {
    run_in(context).map_or_else(Verdict::Failed, Verdict::Passed)
}

/// The clients that can be had here.
fn kinds() -> Vec<Kind> {
    let is_here = |kind: &Kind| {
        let is_here = *kind != Kind::Omniorbpy || omniorbpy::omniidl().is_some();
        if !is_here {
            let reason = "no omniORBpy here: cargo xtask deps installs it";
            skip("services-kills-omniorbpy", reason);
        }
        is_here
    };
    Kind::ALL.into_iter().filter(is_here).collect()
}

fn run_in(context: &Context) -> Result<String, String> {
    let kinds = kinds();
    let domain = DomainFile::with_naming_and_manager(&context.quorba, &context.folder)?;
    let fleet = Fleet::start(&context.quorba, &context.folder, NAMING, domain)?;
    let operator = Operator::of(context, &fleet);
    operator.wait_healthy()?;
    let mut life = Life { fleet, operator };
    let (naming, manager) = (life.operator.reference(NAMING)?, life.operator.reference(MANAGER)?);
    let nodes: Vec<String> = life.fleet.nodes().iter().map(|node| node.name.clone()).collect();
    let objects = judge::Objects::start(context, 2 * kinds.len())?;
    let mut works = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let client = Client::start(context, *kind, &naming, &manager)?;
        works.push(Work::new(client, &nodes, objects.of(index)));
    }
    let count = OPERATIONS.div_ceil(kinds.len());
    let began = Instant::now();
    let kills = life.kill_while(&mut works, count)?;
    let took = began.elapsed();
    let mut judge = Judge::new(&mut life, works);
    judge.everything()?;
    judge.trees()?;
    judge.last_acknowledgements()?;
    judge.life.end_all_at_once()?;
    judge.everything()?;
    let told = judge.told();
    drop(judge);
    life.fleet.end()?;
    let Kills { processes, nodes } = kills;
    Ok(format!("{told}; {processes} processes and {nodes} nodes killed in {took:.0?}"))
}

impl Life {
    /// Has all clients do their work, and kills one victim after the other meanwhile.
    fn kill_while(&mut self, works: &mut [Work<'_>], count: usize) -> Result<Kills, String> {
        let left = AtomicUsize::new(works.len());
        let mut kills = Kills::default();
        thread::scope(|scope| {
            let threads: Vec<_> = works
                .iter_mut()
                .map(|work| {
                    let left = &left;
                    scope.spawn(move || {
                        let done = work.go(count, PACE);
                        left.fetch_sub(1, Ordering::SeqCst);
                        done
                    })
                })
                .collect();
            let mut next = 0;
            let mut due = Instant::now();
            while left.load(Ordering::SeqCst) > 0 {
                due += KILL_EVERY;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                self.kill_next(&mut next, &mut kills)?;
            }
            threads.into_iter().try_for_each(|one| one.join().map_err(|_| "a client panicked")?)
        })?;
        Ok(kills)
    }

    /// Kills the next victim that can be killed. A node whose end would leave groups without any
    /// member waits until all members are in; what is in memory only outlives no such end.
    fn kill_next(&mut self, next: &mut usize, kills: &mut Kills) -> Result<(), String> {
        for _ in 0..VICTIMS.len() {
            let victim = VICTIMS[*next % VICTIMS.len()];
            *next += 1;
            match victim {
                Victim::Node(index) => {
                    if self.is_everybody_in().is_ok() {
                        self.fleet.kill_node(index);
                        self.fleet.start_node(index)?;
                        kills.nodes += 1;
                        return Ok(());
                    }
                }
                Victim::Process(service, index) => {
                    if let Ok(server) = self.fleet.server_of(index, service) {
                        fleet::signal(server.pid, Signal::KILL);
                        kills.processes += 1;
                        return Ok(());
                    }
                }
            }
        }
        // Nothing runs that could be killed.
        Ok(())
    }

    /// Whether every node has every member of every group in.
    fn is_everybody_in(&self) -> Result<(), String> {
        (0..NODES).try_for_each(|index| {
            let status = self.fleet.status(index)?;
            if !status.ring.primary || Some(status.pid) != self.fleet.node_pid(index) {
                return Err(format!("{} is not in the primary view", status.node));
            }
            let members = status.groups.iter().flat_map(|group| {
                group.members.iter().map(move |member| (group.name.as_str(), member))
            });
            let mut outside = members.filter(|(_, member)| member.state != MemberState::In);
            match outside.next() {
                None => Ok(()),
                Some((group, member)) => {
                    let (node, state) = (&member.node, member.state.as_str());
                    Err(format!("{}: {group} at {node} is {state}", status.node))
                }
            }
        })
    }

    fn wait_whole(&self) -> Result<(), String> {
        wait::until("everybody is in", WHOLE_TIME_MAX, || self.is_everybody_in())
    }

    fn end_all_at_once(&mut self) -> Result<(), String> {
        (0..NODES).for_each(|index| self.fleet.signal_node(index, Signal::KILL));
        (0..NODES).for_each(|index| self.fleet.kill_node(index));
        (0..NODES).try_for_each(|index| self.fleet.start_node(index))
    }
}

/// Free ports beside those of the case.
fn ports(count: usize) -> Result<u16, String> {
    domain::free_ports(u16::try_from(count).unwrap_or(u16::MAX))
}
