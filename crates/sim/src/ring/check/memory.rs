//! Memory is bounded at all times, and given back when all is quiet.

use super::super::world::RingWorld;
use crate::check::memory::too_many_packets;

/// Events that may wait in the simulation itself.
const EVENTS_MAX: usize = 200_000;

/// In the middle of a run.
pub(in super::super) fn inspect(world: &mut RingWorld) {
    let mut found = None;
    if world.backlog() > EVENTS_MAX {
        found = Some(format!("{} events wait: somebody sends without end", world.backlog()));
    }
    for node in 0..world.plan.nodes {
        let Some(snapshot) = world.snapshot(node) else { continue };
        if let Some(text) = too_many_packets(&snapshot, world.plan.datagram_bytes_max) {
            found = Some(format!("n{node} keeps {text}"));
        }
        if snapshot.misfits > 0 {
            found = Some(format!("n{node} saw {} chunks that do not fit", snapshot.misfits));
        }
    }
    if let Some(text) = found {
        world.violate("memory", text);
    }
}

/// When all are in one ring and have everything.
pub(super) fn check_quiet(world: &RingWorld) -> Result<(), String> {
    for node in 0..world.plan.nodes {
        let Some(snapshot) = world.snapshot(node) else { continue };
        let kept = [
            ("packets", snapshot.log_packets),
            ("messages to be sent", snapshot.queue_messages),
            ("messages under way", snapshot.in_flight),
            ("bytes of unfinished messages", snapshot.partial_bytes),
        ];
        if let Some((what, count)) = kept.into_iter().find(|(_, count)| *count > 0) {
            return Err(format!("n{node} still keeps {count} {what}"));
        }
    }
    Ok(())
}
