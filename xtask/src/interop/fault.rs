//! The faults, each from its cause to the moment when the group is whole again.
//!
//! What it is not: gentle. Nothing is told beforehand, except where the fault is a restart.
//!
//! Invariants: a fault begins only when the group is whole (with a member missing, one more could
//! take the majority, which no promise covers); it is over only when there is evidence that it
//! has happened and that the group has come back from it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use quorba_giop::MinorCode;
use rustix::process::Signal;

use super::cluster::Ground;
use super::fleet::{self, Fleet, Server};
use super::load::Load;
use super::odd::client::{self, Arguments, Call};
use crate::wait;

/// How long a process is stopped, or a node cut off.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a killed node stays down.
const DOWN_TIME: Duration = Duration::from_millis(300);
/// No fault begins when less than this is left of the load: it would not be felt.
const LOAD_LEFT_MIN: Duration = Duration::from_secs(1);
/// How long the consequences of a fault may take to be over.
const HEAL_TIME_MAX: Duration = Duration::from_secs(45);
/// How long a call may take that has no reply.
const ODD_CALL_TIME_MAX: Duration = Duration::from_secs(8);
/// The node whose server is told to crash in a call; the first, whose gateway the clients use.
pub(super) const CRASHING_NODE: usize = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL to a server; its node starts another.
    KillServer,
    /// SIGKILL to a node, which is started again.
    KillNode,
    /// SIGSTOP to a node for two seconds.
    StopNode,
    /// SIGSTOP to a server for two seconds.
    StopServer,
    /// A server dies in the middle of a call: executed, and nobody has been told.
    CrashInCall,
    /// A node is ended, loses its disk, and is started again.
    Restart,
    /// A node is killed, loses its disk, and is started again.
    Replace,
    /// A node's plug is pulled for two seconds.
    CutNode,
    /// SIGKILL to a node's Corosync; the node ends with it, and both are started again.
    KillCorosync,
    /// A call of a newer IDL, at which an omniORB server ends the connection on which its node has
    /// everybody else's calls outstanding.
    NewerIdl,
    /// SIGKILL to all nodes at once; they are started again. Only for durable groups.
    KillDomain,
    /// One kind of death after the other: of a server, a node and, if `domain`, of all nodes.
    Kills { domain: bool },
}

impl Fault {
    /// The faults that need nothing but processes.
    pub(super) const PROCESSES: [Self; 7] = [
        Self::KillServer,
        Self::KillNode,
        Self::StopNode,
        Self::StopServer,
        Self::CrashInCall,
        Self::Restart,
        Self::Replace,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KillServer => "kill-server",
            Self::KillNode => "kill-node",
            Self::StopNode => "stop-node",
            Self::StopServer => "stop-server",
            Self::CrashInCall => "crash-in-call",
            Self::Restart => "restart",
            Self::Replace => "replace",
            Self::CutNode => "cut-node",
            Self::KillCorosync => "kill-corosync",
            Self::NewerIdl => "newer-idl",
            Self::KillDomain => "kill-domain",
            Self::Kills { .. } => "kills",
        }
    }

    /// The kind of the fault with this number, and its victim. Of several kinds each meets each
    /// node in turn.
    fn turn(self, number: usize, nodes: usize) -> (Self, usize) {
        let kinds: &[Self] = match self {
            Self::Kills { domain: true } => &[Self::KillServer, Self::KillNode, Self::KillDomain],
            Self::Kills { domain: false } => &[Self::KillServer, Self::KillNode],
            one => return (one, number % nodes),
        };
        (kinds[number % kinds.len()], number / kinds.len() % nodes)
    }
}

/// Applies the fault to one node after the other while the load lasts. The number of faults.
///
/// One fault begins `every` after the one before at the earliest; only the mixture of kills has
/// such a pause. None begins when there is less of the load than is needed.
pub(super) fn disturb(
    fault: Fault,
    every: Duration,
    fleet: &mut Fleet,
    load: &Load,
    ground: &mut Ground<'_>,
) -> Result<usize, String> {
    load.wait_under_way()?;
    let mut faults = 0;
    while faults == 0 || load.time_left() > LOAD_LEFT_MIN + pause_of(fault) {
        let began = Instant::now();
        let (kind, victim) = fault.turn(faults, fleet.nodes().len());
        apply(kind, fleet, victim, ground)
            .map_err(|reason| format!("{} {}: {reason}", kind.name(), victim + 1))?;
        faults += 1;
        if matches!(fault, Fault::Kills { .. }) {
            thread::sleep(every.saturating_sub(began.elapsed()).min(load.time_left()));
        }
    }
    Ok(faults)
}

const fn pause_of(fault: Fault) -> Duration {
    match fault {
        Fault::StopNode | Fault::StopServer | Fault::CutNode => PAUSE,
        Fault::KillServer | Fault::KillNode | Fault::CrashInCall => Duration::ZERO,
        Fault::Restart | Fault::Replace | Fault::KillCorosync | Fault::NewerIdl => Duration::ZERO,
        Fault::KillDomain | Fault::Kills { .. } => Duration::ZERO,
    }
}

fn apply(
    fault: Fault,
    fleet: &mut Fleet,
    victim: usize,
    ground: &mut Ground<'_>,
) -> Result<(), String> {
    fleet.wait_whole()?;
    match fault {
        Fault::KillServer => {
            // In the style `cold-passive` only one node has a server.
            let victim = if fleet.server(victim).is_ok() { victim } else { fleet.leader()? };
            let killed = fleet.server(victim)?;
            fleet::signal(killed.pid, Signal::KILL);
            return wait_for_another_server(fleet, victim, killed);
        }
        Fault::KillNode => {
            fleet.kill_node(victim);
            thread::sleep(DOWN_TIME);
            fleet.start_node(victim)?;
        }
        Fault::StopNode => {
            fleet.signal_node(victim, Signal::STOP);
            thread::sleep(PAUSE);
            fleet.signal_node(victim, Signal::CONT);
        }
        Fault::StopServer => {
            let stopped = fleet.server(victim)?;
            fleet::signal(stopped.pid, Signal::STOP);
            thread::sleep(PAUSE);
            fleet::signal(stopped.pid, Signal::CONT);
        }
        Fault::CrashInCall => {
            // It crashes by itself, again and again.
            let doomed = fleet.server(CRASHING_NODE)?;
            return wait_for_another_server(fleet, CRASHING_NODE, doomed);
        }
        Fault::Restart => {
            fleet.end_node(victim)?;
            start_empty(fleet, victim)?;
        }
        Fault::Replace => {
            fleet.kill_node(victim);
            start_empty(fleet, victim)?;
        }
        Fault::CutNode => cut(fleet, victim, ground)?,
        Fault::KillCorosync => {
            let (Some(namespaces), Some(corosync)) = (ground.namespaces, &mut ground.corosync)
            else {
                return Err("this case has no Corosync".into());
            };
            corosync.replace_daemon(victim, namespaces)?;
            fleet.wait_node_ended(victim)?;
            fleet.start_node(victim)?;
        }
        Fault::NewerIdl => return call_by_newer_idl(fleet, victim),
        Fault::KillDomain => {
            (0..fleet.nodes().len()).for_each(|node| fleet.kill_node(node));
            (0..fleet.nodes().len()).try_for_each(|node| fleet.start_node(node))?;
        }
        Fault::Kills { .. } => return Err("a mixture of faults is none of them".into()),
    }
    wait::until("the group is whole again", HEAL_TIME_MAX, || fleet.is_whole())
}

/// Its caller is told that nobody replied, and no server is another one afterwards.
fn call_by_newer_idl(fleet: &Fleet, victim: usize) -> Result<(), String> {
    let servers = || -> Result<Vec<Server>, String> {
        (0..fleet.nodes().len()).map(|index| fleet.server(index)).collect()
    };
    let before = servers()?;
    let arguments = Arguments::TextAndMore("of a newer IDL");
    let call = Call { operation: "increment", contexts: &[], arguments };
    let answer = client::call(&fleet.nodes()[victim].gateway, &call, ODD_CALL_TIME_MAX);
    if answer.ours() != Some(MinorCode::NoReply) {
        return Err(format!("the caller got {answer}"));
    }
    fleet.is_whole()?;
    let after = servers()?;
    if after == before { Ok(()) } else { Err(format!("restarted: {before:?}, now {after:?}")) }
}

/// Pulls the victim's cable for a while, and looks whether the others' status tells of it.
fn cut(fleet: &Fleet, victim: usize, ground: &Ground<'_>) -> Result<(), String> {
    let namespaces = ground.namespaces.expect("only cases in namespaces cut nodes off");
    let is_own_ring = ground.corosync.is_none();
    if is_own_ring {
        let is_by_multicast = || all_use_multicast(fleet);
        wait::until("the ring uses multicast", HEAL_TIME_MAX, is_by_multicast)?;
    }
    namespaces.set_plugged(victim, false)?;
    thread::sleep(PAUSE);
    if is_own_ring {
        let is_known = || is_known_to_be_silent(fleet, victim);
        wait::until("status says why the victim is out", HEAL_TIME_MAX, is_known)?;
    }
    namespaces.set_plugged(victim, true)
}

/// A bridge carries multicast, so the nodes' probes find out that it does.
fn all_use_multicast(fleet: &Fleet) -> Result<(), String> {
    for index in 0..fleet.nodes().len() {
        let fanout = fleet.status(index)?.ring.fanout;
        if !fanout.starts_with("multicast") {
            return Err(format!("{} says {fanout}", fleet.nodes()[index].name));
        }
    }
    Ok(())
}

fn is_known_to_be_silent(fleet: &Fleet, victim: usize) -> Result<(), String> {
    let status = fleet.status((victim + 1) % fleet.nodes().len())?;
    let node = &status.nodes[victim];
    let is_known = !node.in_view && node.standing.contains("nothing was heard of it");
    if is_known { Ok(()) } else { Err(format!("{} {}", node.name, node.standing)) }
}

fn wait_for_another_server(fleet: &Fleet, node: usize, dead: Server) -> Result<(), String> {
    wait::until("the server is gone, and another is in", HEAL_TIME_MAX, || {
        if fleet.server(node).is_ok_and(|server| server.pid == dead.pid) {
            return Err("its node still names it".into());
        }
        fleet.is_whole()
    })
}

/// Starts a node that has lost its disk.
fn start_empty(fleet: &mut Fleet, victim: usize) -> Result<(), String> {
    let state = &fleet.nodes()[victim].state_dir;
    fs::remove_dir_all(state).map_err(|error| format!("{}: {error}", state.display()))?;
    fleet.start_node(victim)
}
