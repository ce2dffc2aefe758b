//! Promise 3: members that serve in the same view execute the same requests in the same order,
//! and nodes of the same view agree on what was delivered.

use super::Serving;
use crate::names::group_id;
use crate::servant::OBJECTS;
use crate::world::World;
use quorba_engine::NodeSnapshot;
use quorba_engine::replica::{Concurrency, PrimaryStatus};

pub(super) fn check(
    world: &World,
    snapshots: &[Option<NodeSnapshot>],
) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for group in 0..world.plan.groups.len() {
        let serving = world.serving(snapshots, group);
        let in_parts = world.plan.groups[group].concurrency == Concurrency::PerObject;
        for (index, one) in serving.iter().enumerate() {
            for other in &serving[index + 1..] {
                let nodes = (one.node, other.node);
                // Whoever was odd alone is about to be compared with the others.
                let is_strange = |of: &Serving<'_>| world.servers[of.server].was_strange;
                let is_odd = is_strange(one) || is_strange(other);
                let in_doubt = [one, other].iter().any(|of| in_doubt(snapshots, of, group));
                // What came behind on the same connection one may have begun, and the other not.
                let has_several = world.plan.groups[group].concurrency != Concurrency::Sequential;
                // One may have executed what was given up, and who joins has the state of one.
                let is_split = [one, other].iter().any(|of| {
                    let snapshot = primary(snapshots, of.node);
                    snapshot.is_some_and(|node| world.is_split(node, group))
                });
                let is_compared =
                    is_odd && !world.is_quiet() || in_doubt && (is_odd || has_several) || is_split;
                if !is_compared
                    && same_view(snapshots, one.node, other.node)
                    && same_life(world, snapshots, nodes, group)
                {
                    if in_parts {
                        found.extend((0..OBJECTS).find_map(|o| compare_parts(one, other, o)));
                    } else {
                        found.extend(compare_logs(world, one, other));
                    }
                }
            }
        }
        for one in 0..snapshots.len() {
            for other in one + 1..snapshots.len() {
                let plan = &world.plan.groups[group];
                let may_turn = plan.fresh_after_loss || plan.durable || world.plan.backups;
                found.extend(compare_tables(snapshots, (one, other), group, may_turn));
            }
        }
    }
    found
}

fn primary(snapshots: &[Option<NodeSnapshot>], node: usize) -> Option<&NodeSnapshot> {
    snapshots[node].as_ref().filter(|snapshot| snapshot.primary == PrimaryStatus::Primary)
}

/// The group knows that its members may differ, and says so; or who stands by is still to be given
/// the leader's state.
fn in_doubt(snapshots: &[Option<NodeSnapshot>], one: &Serving<'_>, group: usize) -> bool {
    primary(snapshots, one.node).is_some_and(|snapshot| {
        snapshot.groups.get(group_id(group)).is_some_and(|table| {
            table.endings.doubt.is_some() || table.style.is_passive() && table.logged > 0
        })
    })
}

fn same_view(snapshots: &[Option<NodeSnapshot>], one: usize, other: usize) -> bool {
    match (primary(snapshots, one), primary(snapshots, other)) {
        (Some(one), Some(other)) => one.order.ring.is_some() && one.order.ring == other.order.ring,
        _ => false,
    }
}

/// One of them may not have heard yet that the group has been restored.
fn same_life(
    world: &World,
    snapshots: &[Option<NodeSnapshot>],
    (one, other): (usize, usize),
    group: usize,
) -> bool {
    let members = |node| Some(&primary(snapshots, node)?.groups.get(group_id(group))?.members);
    !world.plan.backups || members(one) == members(other)
}

fn compare_logs(
    world: &World,
    one: &Serving<'_>,
    other: &Serving<'_>,
) -> Option<(&'static str, String)> {
    let common = one.log.len().min(other.log.len());
    if one.log.mark(common) == other.log.mark(common) {
        return None;
    }
    let (a, b) = (one.log.references(), other.log.references());
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    // What it heard of a group that forgot a request nobody hears again (seed 60002 of `calls`).
    if [a[same], b[same]].iter().all(|heard| world.was_heard_of_one_that_skipped(*heard)) {
        return None;
    }
    if world.were_heard_in_doubt([a[same], b[same]]) {
        return None;
    }
    let text = format!(
        "n{} and n{} serve in one view, but executed different requests at {}: {:x} and {:x}",
        one.node,
        other.node,
        same + 1,
        a[same].0,
        b[same].0
    );
    Some(("one order", text))
}

/// Where objects share no order, each has its own.
fn compare_parts(
    one: &Serving<'_>,
    other: &Serving<'_>,
    object: u64,
) -> Option<(&'static str, String)> {
    let pairs = one.log.part(object).zip(other.log.part(object));
    let (place, (a, b)) = pairs.enumerate().find(|(_, (a, b))| a != b)?;
    let text = format!(
        "n{} and n{} serve in one view, but executed different requests at {} of object {object}: \
         {:x} and {:x}",
        one.node,
        other.node,
        place + 1,
        a.0,
        b.0
    );
    Some(("one order", text))
}

fn compare_tables(
    snapshots: &[Option<NodeSnapshot>],
    (one, other): (usize, usize),
    group: usize,
    may_turn: bool,
) -> Option<(&'static str, String)> {
    if !same_view(snapshots, one, other) {
        return None;
    }
    let a = primary(snapshots, one)?.groups.get(group_id(group))?;
    let b = primary(snapshots, other)?.groups.get(group_id(group))?;
    if a.waits_for_memory || b.waits_for_memory {
        // Each stands where it stood.
        return None;
    }
    // One of them may not have heard yet that the group has begun anew, or goes on from a disk, and
    // counts from before.
    if may_turn && a.members != b.members {
        return None;
    }
    let (a, b) = (a.history, b.history);
    if a.count != b.count || a.digest == b.digest {
        return None;
    }
    let count = a.count;
    let text = format!("n{one} and n{other} were delivered {count} requests, not the same ones");
    Some(("one order", text))
}
