//! Memory is bounded: what is kept follows what is open, not how long the node has run.

use crate::ledger::{Call, Outcome};
use crate::names::index_of;
use crate::world::World;
use quorba_base::Duration;
use quorba_engine::NodeSnapshot;
use quorba_engine::order::{Snapshot, StateName, log_packets_max};

/// Events that may wait in the simulation itself.
const EVENTS_MAX: usize = 200_000;

/// What a ring keeps, if that is more than it may: one log, in recovery two.
pub(crate) fn too_many_packets(ring: &Snapshot, datagram_bytes_max: usize) -> Option<String> {
    let kept = ring.log_packets;
    let logs = if ring.state == StateName::Recovery { 2 } else { 1 };
    let most = logs * usize::try_from(log_packets_max(datagram_bytes_max)).expect("small");
    let bytes = kept * datagram_bytes_max;
    (kept > most).then(|| format!("{kept} packets instead of {most}, up to {bytes} bytes"))
}

pub(super) fn check(
    world: &World,
    snapshots: &[Option<NodeSnapshot>],
) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut say = |text| found.push(("memory", text));
    if world.queue.len() > EVENTS_MAX {
        say(format!("{} events wait: somebody sends without end", world.queue.len()));
    }
    for (node, snapshot) in snapshots.iter().enumerate() {
        let Some(snapshot) = snapshot else { continue };
        if let Some(text) = too_many_packets(&snapshot.order, world.plan.datagram_bytes_max) {
            say(format!("n{node} keeps {text}"));
        }
        if snapshot.order.misfits > 0 {
            say(format!("n{node} saw {} chunks that do not fit", snapshot.order.misfits));
        }
    }
    found
}

/// When nobody waits for anything.
pub(super) fn check_quiet(
    world: &World,
    snapshots: &[Option<NodeSnapshot>],
) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (node, snapshot) in snapshots.iter().enumerate() {
        let Some(snapshot) = snapshot else { continue };
        for (id, counters) in snapshot.gateway.groups.iter() {
            let group = index_of(id);
            let facts = &world.checks.groups[group];
            if counters.pending > 0 && facts.is_alive() {
                let text = format!("n{node} g{group} still keeps {} requests", counters.pending);
                found.push(("memory", text));
            }
        }
        let gateway = &snapshot.gateway;
        let is_idle = gateway.groups.values().all(|counters| counters.pending == 0);
        // Somebody may have stopped in the middle of a message, and keeps the connection.
        let begun = if gateway.connections == 0 { 0 } else { gateway.buffered_bytes };
        if is_idle && (gateway.held_bytes > begun || gateway.buffered_bytes > begun) {
            let (held, buffered) = (gateway.held_bytes, gateway.buffered_bytes);
            let text = format!("n{node} has no call, and holds {held} and {buffered} bytes");
            found.push(("memory", text));
        }
        for (id, table) in snapshot.groups.iter() {
            let group = index_of(id);
            let calls = || world.ledger.calls.values().filter(|call| call.group == group);
            let retention = Duration::from_millis(world.plan.groups[group].retention_ms);
            // What is older was forgotten when the group was called last.
            let last = calls().filter(|call| call.is_acknowledged()).map(|call| call.invoked).max();
            let is_forgotten =
                |call: &Call| last.is_some_and(|last| last.since(call.invoked) > 2 * retention);
            let named = calls().filter(|call| call.named && !is_forgotten(call)).count();
            // A gateway tells what it has answered with its next request. Calls that their clients
            // have given up may all have waited in it when the last one came.
            let given_up = calls().filter(|call| !call.named && call.outcome == Outcome::Unknown);
            let given_up: usize = given_up.map(|call| call.sent as usize).sum();
            let windows: usize = world.clients.iter().map(|client| client.plan.window).sum();
            // Of each gateway, the requests since its oldest open one was taken in.
            let most = named + given_up + 2 * windows * (world.plan.nodes + 1) + 200;
            if table.retained > most {
                let text = format!("n{node} g{group} remembers {} requests", table.retained);
                found.push(("memory", text));
            }
            if table.unreleased > most {
                let text = format!("n{node} g{group} knows {} numbers", table.unreleased);
                found.push(("memory", text));
            }
        }
    }
    found
}
