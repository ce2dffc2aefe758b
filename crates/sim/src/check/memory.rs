//! Memory is bounded: what is kept follows what is open, not how long the node has run.

use crate::ledger::{Call, Outcome};
use crate::names::index_of;
use crate::world::World;
use quorba_base::{Duration, Instant};
use quorba_engine::NodeSnapshot;
use quorba_engine::order::{Snapshot, StateName, log_packets_max};
use std::collections::BTreeMap;

/// Events that may wait in the simulation itself.
const EVENTS_MAX: usize = 200_000;
/// The most that one request moves the time of a group, and which part of what it remembers.
const STEP_MAX: Duration = Duration::from_secs(10);
const STEP_PART: u32 = 6;

/// The time of a group, as far as replies show how it has passed. It stands still while nobody
/// calls, and one request moves it by a little only (docs/explanation/retention.md), so that what
/// was executed before a pause is remembered for longer (seed 440022 of `domain`).
#[derive(Clone, Default, Debug)]
pub(super) struct Time {
    /// Of each gateway: when its last call was made, and the time that it was then.
    gateways: BTreeMap<usize, (Instant, Duration)>,
    /// When a call was made, and the time that it was then.
    told: BTreeMap<Instant, Duration>,
    now: Duration,
}

impl Time {
    /// A call that was made at `invoked` is answered by the gateway of a node.
    pub(super) fn advance(&mut self, gateway: usize, invoked: Instant, kept: Duration) {
        let step_max = STEP_MAX.min(kept / STEP_PART);
        // A gateway that has just started is taken to be right.
        let (before, time) = self.gateways.get(&gateway).copied().unwrap_or((invoked, self.now));
        let time = time + invoked.max(before).since(before).min(step_max);
        self.gateways.insert(gateway, (invoked.max(before), time));
        self.now = self.now.max(time);
        self.told.insert(invoked, self.now);
    }

    /// A node has ended, and its gateway begins anew.
    pub(super) fn forget(&mut self, gateway: usize) {
        self.gateways.remove(&gateway);
    }

    /// Calls that were made before this are older than `age`, by the group's time.
    fn older_than(&self, age: Duration) -> Option<Instant> {
        let limit = self.now.checked_sub(age)?;
        self.told.iter().find(|(_, time)| **time >= limit).map(|(invoked, _)| *invoked)
    }
}

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
            let facts = &world.checks.groups[group];
            let calls = || world.ledger.calls.values().filter(|call| call.group == group);
            let retention = Duration::from_millis(world.plan.groups[group].retention_ms);
            // What is older was forgotten when the group was called last.
            let oldest = facts.time.older_than(2 * retention);
            let is_forgotten = |call: &Call| oldest.is_some_and(|oldest| call.invoked < oldest);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::ms;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    #[test]
    fn what_was_called_before_a_pause_grows_old_with_what_is_called_behind_it() {
        let mut time = Time::default();
        let kept = ms(600);
        (0..20).for_each(|tenth| time.advance(0, at(tenth * 100), kept));
        assert_eq!(time.older_than(ms(1_200)), Some(at(700)));
        // One call behind a pause moves the time by a sixth of what is kept.
        time.advance(0, at(60_000), kept);
        assert_eq!(time.older_than(ms(1_200)), Some(at(800)));
        // A gateway that starts moves it when it is called again.
        time.forget(0);
        time.advance(0, at(90_000), kept);
        assert_eq!(time.older_than(ms(1_200)), Some(at(800)));
        time.advance(0, at(90_050), kept);
        assert_eq!(time.older_than(ms(1_200)), Some(at(900)));
        assert_eq!(time.older_than(ms(60_000)), None);
    }

    #[test]
    fn the_fastest_gateway_tells_the_time() {
        let mut time = Time::default();
        let kept = ms(600);
        for step in 0..50 {
            time.advance(0, at(step * 50), kept);
            time.advance(1, at(step * 50), kept);
        }
        assert_eq!(time.older_than(ms(1_000)), Some(at(1_450)));
    }
}
