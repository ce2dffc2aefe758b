//! A group whose members' states are the application's, and whose servers here do nothing for them:
//! each has what was executed since it came in, so that of two one has all that the other has, in
//! the same order; nothing twice, and nothing that was acknowledged meanwhile is missing.
//!
//! What it is not: for servers that somebody else runs, which may go on with a gap. Invariant: what
//! was acknowledged was executed by somebody, whoever runs the servers (see `stateless`).

use super::{Serving, acknowledged_calls, at_most_once, exactly_once};
use crate::names::group_id;
use crate::servant::{Reference, Wish};
use crate::world::{World, node_id};
use quorba_base::{Instant, NodeId};
use quorba_engine::NodeSnapshot;
use quorba_engine::replica::{Concurrency, MemberState};
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered of the members of such a group.
#[derive(Clone, Default)]
pub(crate) struct Members {
    /// When each came in, as its own node knows it.
    since: BTreeMap<usize, Instant>,
    /// One came in where nobody else was: what the group remembered of calls may be lost.
    has_begun_anew: bool,
}

impl World {
    /// Node `node` knows that `member` is in.
    pub(super) fn note_member_in(&mut self, node: usize, member: NodeId, group: usize) {
        if member != node_id(node) {
            return;
        }
        let engine = self.hosts[node].node.as_ref();
        let Some(snapshot) = engine.map(|engine| engine.snapshot()) else { return };
        let Some(table) = snapshot.groups.get(group_id(group)) else { return };
        let is_in = |(_, state): &&(NodeId, MemberState)| matches!(state, MemberState::In { .. });
        let is_alone = table.members.iter().filter(is_in).count() == 1;
        let members = &mut self.checks.groups[group].members;
        members.since.insert(node, self.now);
        members.has_begun_anew |= is_alone && table.history.count > 0;
    }
}

pub(super) fn check(
    world: &World,
    snapshots: &[Option<NodeSnapshot>],
    group: usize,
) -> Vec<(&'static str, String)> {
    let plan = &world.plan.groups[group];
    if plan.foreign {
        return Vec::new();
    }
    let serving = world.members_in(snapshots, group);
    let mut found = Vec::new();
    for (index, one) in serving.iter().enumerate() {
        found.extend(exactly_once::check(world, group, one));
        found.extend(missing(world, group, one));
        // Who lived on may have executed what the group then no longer knew, and was asked again.
        let has_begun_anew = world.checks.groups[group].members.has_begun_anew;
        if !has_begun_anew {
            found.extend(at_most_once::check(world, group, one));
        }
        for other in &serving[index + 1..] {
            found.extend(compare_sets(one, other));
            if plan.concurrency != Concurrency::PerObject && !has_begun_anew {
                found.extend(compare_orders(one, other));
            }
        }
    }
    found.truncate(3);
    found
}

/// What was called after it had come in, and acknowledged.
fn missing(world: &World, group: usize, member: &Serving<'_>) -> Option<(&'static str, String)> {
    let since = *world.checks.groups[group].members.since.get(&member.node)?;
    let has: BTreeSet<_> = member.log.references().iter().collect();
    let (reference, call, _) = acknowledged_calls(world, group).find(|(reference, call, _)| {
        call.wish == Wish::Append && call.invoked > since && !has.contains(reference)
    })?;
    let text = format!(
        "{:x} of c{} was acknowledged while n{} was in, which has not executed it",
        reference.0, call.client, member.node
    );
    Some(("acknowledged", text))
}

fn compare_sets(one: &Serving<'_>, other: &Serving<'_>) -> Option<(&'static str, String)> {
    let set = |of: &Serving<'_>| of.log.references().iter().copied().collect::<BTreeSet<_>>();
    let (a, b) = (set(one), set(other));
    if a.is_subset(&b) || b.is_subset(&a) {
        return None;
    }
    let first = |a: &BTreeSet<Reference>, b| a.difference(b).next().map_or(0, |it| it.0);
    let text = format!(
        "n{} has executed {:x} without n{}, and that {:x} without it",
        one.node,
        first(&a, &b),
        other.node,
        first(&b, &a)
    );
    Some(("equality", text))
}

fn compare_orders(one: &Serving<'_>, other: &Serving<'_>) -> Option<(&'static str, String)> {
    let places = |of: &Serving<'_>| {
        let references = of.log.references().iter().copied().enumerate();
        references.map(|(place, reference)| (reference, place)).collect::<BTreeMap<_, _>>()
    };
    let theirs = places(other);
    let common = one.log.references().iter().filter(|reference| theirs.contains_key(reference));
    let common: Vec<_> = common.collect();
    let pair = common.windows(2).find(|pair| theirs[pair[0]] > theirs[pair[1]])?;
    let text = format!(
        "n{} has executed {:x} before {:x}, and n{} the other way round",
        one.node, pair[0].0, pair[1].0, other.node
    );
    Some(("one order", text))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::check::forged::{played, rewrite};
    use crate::names::group_id;
    use crate::plan::Plan;
    use crate::report::Scope;
    use crate::run::{Options, run};
    use crate::world::World;
    use quorba_engine::replica::MemberState;
    use std::collections::BTreeSet;

    fn of_application(plan: &Plan) -> Option<usize> {
        plan.groups.iter().position(|group| group.by_application && !group.foreign)
    }

    fn seeds() -> impl Iterator<Item = (u64, Plan)> {
        let plans = (1..).map(|seed| (seed, Plan::draw_styles(seed)));
        plans.filter(|(_, plan)| of_application(plan).is_some())
    }

    /// What the servers of the group have executed that are in.
    fn lengths(world: &World, group: usize) -> BTreeSet<u64> {
        world.members_in(&world.snapshots(), group).iter().map(|one| one.log.len()).collect()
    }

    #[test]
    fn members_whose_states_are_the_applications_keep_what_can_be_promised() {
        for (seed, _) in seeds().take(6) {
            for scope in [Scope::Styles, Scope::Backups, Scope::Groups] {
                let report = run(seed, Options { scope, ..Options::default() });
                assert!(report.is_good(), "{report}");
            }
        }
    }

    #[test]
    fn who_came_in_late_is_in_and_has_what_came_since_and_a_forgery_is_refused() {
        let worlds = seeds().take(40).map(|(seed, plan)| {
            let group = of_application(&plan).expect("it was looked for");
            (group, played(seed, plan))
        });
        let is_rich = |(group, world): &(usize, World)| {
            let lengths = lengths(world, *group);
            lengths.len() > 1 && lengths.first().is_some_and(|least| *least > 2)
        };
        let (group, mut world) = worlds.into_iter().find(is_rich).expect("some server crashed");
        let snapshots = world.snapshots();
        let node = snapshots.iter().flatten().next().expect("a node runs");
        let table = node.groups.get(group_id(group)).expect("it is there");
        let is_in = |(_, state): &(_, MemberState)| matches!(state, MemberState::In { .. });
        assert!(table.members.iter().all(is_in), "{:?}", table.members);
        assert_eq!(check(&world, &snapshots, group), []);

        let servers: Vec<_> =
            world.members_in(&snapshots, group).iter().map(|one| one.server).collect();
        let longest = |world: &World| {
            servers.iter().copied().max_by_key(|of| world.servers[*of].log.len()).expect("one")
        };
        let server = longest(&world);
        // The last one is not in what the others have, and one that they have is.
        rewrite(&mut world, &[server], |log| log.truncate(log.len() - 1));
        let found = check(&world, &snapshots, group);
        assert!(!found.is_empty(), "what all were given is missing at one");
    }
}
