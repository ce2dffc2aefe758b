//! The end of the old ring and the beginning of the new one, in the order that extended virtual
//! synchrony asks for (Amir95, recovery; Moser94).
//!
//! Invariants: at members that move together the old ring's deliveries before and behind the
//! transitional view are the same; every message that this node had numbered is delivered before
//! the regular view.

use crate::circuit::Circuit;
use crate::gather::Attempt;
use crate::ids::{RingId, Ticket};
use crate::operational::Operational;
use crate::output::{LeaveReason, Output, View, ViewKind};
use crate::recovery::Recovery;
use crate::shared::Core;
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet, canary};

/// Installs the ring that `recovery` has prepared.
pub(crate) fn install(core: &mut Core, recovery: Recovery) -> Operational {
    let Recovery { old, attempt, circuit, plan, .. } = recovery;
    let previous = old.as_ref().map(|old| old.ring);
    let me = NodeSet::EMPTY.with(core.me());
    let transitional = plan.map_or(me, |plan| plan.transitional);
    let mut view = view_of(&circuit, &attempt, previous, transitional);
    if let (Some(mut old), Some(plan)) = (old, plan) {
        view.left = left(&old, &circuit, &attempt, transitional);
        old.deliver_regular_rest(core, plan.delivered);
        let half = View { kind: ViewKind::Transitional, members: transitional, ..view.clone() };
        core.outputs.push_back(Output::View(half));
        if !canary!(DropsRestOfOldRing) {
            old.deliver_transitional(core, plan.senders);
        }
        view.unheld = settle_promises(core, &mut old, transitional);
    }
    if !canary!(ResumesPartialMessage) {
        core.queue.restart();
    }
    if canary!(ReusesRingNumbers) {
        core.ring_seq = circuit.ring.seq;
    }
    core.outputs.push_back(Output::View(view));
    core.counters.rings += 1;
    remember(core, &circuit, &attempt, transitional);
    Operational::new(core, circuit)
}

fn view_of(
    circuit: &Circuit,
    attempt: &Attempt,
    previous: Option<RingId>,
    transitional: NodeSet,
) -> View {
    let members = circuit.members;
    View {
        kind: ViewKind::Regular,
        ring: circuit.ring,
        members,
        previous,
        transitional,
        left: Vec::new(),
        joined: if previous.is_some() { members.difference(transitional) } else { members },
        reason: attempt.reason,
        incarnations: members.iter().map(|node| (node, circuit.incarnation(node))).collect(),
        unheld: None,
    }
}

/// Who did not come along, and why.
fn left(
    old: &Circuit,
    new: &Circuit,
    attempt: &Attempt,
    transitional: NodeSet,
) -> Vec<(NodeId, LeaveReason)> {
    let reason = |node: NodeId| {
        if new.members.contains(node) && new.incarnation(node) != old.incarnation(node) {
            return LeaveReason::Restarted;
        }
        attempt.cause(node).unwrap_or(LeaveReason::Parted)
    };
    old.members.difference(transitional).iter().map(|node| (node, reason(node))).collect()
}

/// What can be promised of the old ring's messages: all who moved together have them. Only up to
/// the first gap is that the same beginning of the order for all, which is what `Held` speaks of.
fn settle_promises(
    core: &mut Core,
    old: &mut Box<Circuit>,
    transitional: NodeSet,
) -> Option<(Ticket, Ticket)> {
    if transitional.len() >= core.holders_min(old.members)
        && let Some(ticket) = old.promises.majority_has(old.log.aru())
    {
        core.outputs.push_back(Output::Held(ticket));
    }
    if let Some(ticket) = old.promises.all_have(u64::MAX) {
        core.stable_awaited = core.stable_awaited.filter(|awaited| *awaited > ticket);
        core.outputs.push_back(Output::Stable(ticket));
    }
    old.promises.unheld()
}

fn remember(core: &mut Core, circuit: &Circuit, attempt: &Attempt, transitional: NodeSet) {
    if circuit.members.len() > 1 {
        core.told_out = false;
    }
    let poor = |node| attempt.cause(node) == Some(LeaveReason::PoorLinks);
    if attempt.fail.iter().any(poor) {
        // What made the timeouts long is not in this ring.
        core.patience = 0;
    }
    for node in attempt.fail {
        core.hold_off(node, attempt.cause(node).unwrap_or(LeaveReason::Parted));
    }
    for node in circuit.members.difference(transitional) {
        let now = core.now;
        let memory = core.memory(node);
        (memory.joined_at, memory.left_out) = (now, None);
    }
}
