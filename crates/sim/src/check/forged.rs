//! Each checker is shown a history that it must refuse, and the one that was forged from, which it
//! must accept.
//!
//! What it is not: a run with a bug in it; those are the canaries. Invariant: a forgery changes one
//! thing in the world of a run that kept every promise.

use super::endings::LastServer;
use super::{GroupFacts, acknowledged_calls};
use crate::ledger::{Call, Outcome};
use crate::names::group_id;
use crate::plan::Plan;
use crate::run::come_to_peace;
use crate::servant::{Log, Mark, Reference, Wish};
use crate::transcript::Transcript;
use crate::world::{World, node_id};
use quorba_base::{Duration, Instant, NodeSet};
use quorba_engine::replica::primary::Basis;
use quorba_engine::replica::{
    Attempt, Concurrency, Event as ReplicaEvent, MemberState, OutReason, RingId, Style,
};
use quorba_engine::{Event as EngineEvent, NodeSnapshot};
use std::collections::BTreeSet;

/// A run without odd servers, at peace, whose first group has an order and was called.
fn peaceful() -> World {
    let fits = |plan: &Plan| {
        let group = &plan.groups[0];
        group.style == Style::Active
            && group.concurrency == Concurrency::Sequential
            && !group.fresh_after_loss
            && plan.clients.iter().any(|client| client.group == 0)
    };
    let is_rich = |world: &World| {
        let facts = &world.checks.groups[0];
        facts.lost_at.is_none() && facts.is_alive() && written(world).len() >= 5
    };
    let plans = (1..).map(|seed| (seed, Plan::draw(seed)));
    let worlds = plans.filter(|(_, plan)| fits(plan)).map(|(seed, plan)| played(seed, plan));
    worlds.take(200).find(is_rich).expect("some seed gives such a run")
}

pub(crate) fn played(seed: u64, plan: Plan) -> World {
    let mut world = World::new(seed, plan, Transcript::new(false, false));
    let _ = come_to_peace(&mut world);
    world
}

/// Calls of the first group that were acknowledged and wrote.
fn written(world: &World) -> Vec<Reference> {
    let wrote = acknowledged_calls(world, 0).filter(|(_, call, _)| call.wish == Wish::Append);
    wrote.map(|(reference, ..)| reference).collect()
}

/// The servers of the first group that serve.
fn servers(world: &World) -> Vec<usize> {
    world.serving(&world.snapshots(), 0).iter().map(|member| member.server).collect()
}

/// Gives servers another history than they have.
pub(crate) fn rewrite(world: &mut World, servers: &[usize], with: impl Fn(&mut Vec<Reference>)) {
    for server in servers {
        let mut references = world.servers[*server].log.references().to_vec();
        with(&mut references);
        let mut log = Log::default();
        for reference in references {
            let _ = log.append(reference);
        }
        world.servers[*server].log = log;
    }
}

fn names(world: &World) -> BTreeSet<&'static str> {
    world.checks.violations.iter().map(|violation| violation.invariant).collect()
}

/// The run is accepted as it was, and refused by `checker` when it is forged.
fn refuses(checker: &str, forge: impl FnOnce(&mut World)) {
    refused_in(peaceful(), checker, forge);
}

pub(crate) fn refused_in(mut world: World, checker: &str, forge: impl FnOnce(&mut World)) {
    world.inspect();
    world.conclude();
    assert_eq!(names(&world), BTreeSet::new(), "{checker} refuses what happened");
    forge(&mut world);
    world.inspect();
    world.conclude();
    let found = names(&world);
    assert!(found.contains(checker), "{checker} accepts what was forged; found: {found:?}");
}

fn change(world: &mut World, reference: Reference, with: impl Fn(&mut Call)) {
    with(world.ledger.calls.get_mut(&reference).expect("it was made"));
}

// -- histories ------------------------------------------------------------------------------

#[test]
fn what_was_acknowledged_and_is_in_no_history_is_refused() {
    refuses("acknowledged", |world| {
        let (all, lost) = (servers(world), written(world)[2]);
        rewrite(world, &all, |log| log.retain(|reference| *reference != lost));
    });
    refuses("acknowledged", |world| {
        let (all, lost) = (servers(world), *written(world).last().unwrap());
        rewrite(world, &all[..1], |log| log.retain(|reference| *reference != lost));
    });
}

#[test]
fn what_was_executed_twice_is_refused() {
    refuses("exactly once", |world| {
        let (all, twice) = (servers(world), written(world)[1]);
        rewrite(world, &all, |log| log.push(twice));
    });
}

#[test]
fn what_was_refused_and_executed_is_refused() {
    refuses("at most once", |world| {
        let refused = written(world)[1];
        change(world, refused, |call| call.outcome = Outcome::Refused);
    });
}

#[test]
fn what_nobody_sent_and_what_was_for_another_group_is_refused() {
    refuses("at most once", |world| {
        let all = servers(world);
        rewrite(world, &all, |log| log.push(Reference(0x7777_0000_0000)));
    });
    refuses("at most once", |world| {
        let other = written(world)[1];
        change(world, other, |call| call.group = 1);
    });
    refuses("at most once", |world| {
        let read = written(world)[1];
        change(world, read, |call| call.wish = Wish::Peek);
    });
}

#[test]
fn replicas_of_one_length_with_different_histories_are_refused() {
    refuses("equality", |world| {
        let all = servers(world);
        rewrite(world, &all[..1], |log| {
            let last = log.len() - 1;
            log.swap(last, last - 1);
        });
    });
    refuses("equality", |world| {
        let all = servers(world);
        rewrite(world, &all[..1], |log| log.truncate(log.len() - 1));
    });
}

#[test]
fn members_of_one_view_that_executed_in_another_order_are_refused() {
    refuses("one order", |world| {
        let all = servers(world);
        rewrite(world, &all[..1], |log| log.swap(0, 1));
    });
}

#[test]
fn a_reply_of_another_history_or_place_is_refused() {
    for forge in [(|mark| Mark { digest: !mark.digest, ..mark }) as fn(Mark) -> Mark, |mark| Mark {
        length: mark.length + 1_000_000,
        ..mark
    }] {
        refuses("replies", |world| {
            let reference = written(world)[1];
            change(world, reference, |call| {
                let Outcome::Acknowledged { mark, at } = call.outcome else { return };
                call.outcome = Outcome::Acknowledged { mark: forge(mark), at };
            });
        });
    }
}

#[test]
fn a_call_that_nobody_of_a_stateless_group_executed_is_refused() {
    let stateless = |plan: &Plan| {
        plan.groups[0].style == Style::Stateless && plan.groups.len() == 1 && plan.disk.is_none()
    };
    let plans = (1..).map(|seed| (seed, Plan::draw_styles(seed)));
    let (seed, plan) = plans.filter(|(_, plan)| stateless(plan)).nth(3).expect("there are more");
    let world = played(seed, plan);
    let wrote = written(&world);
    refused_in(world, "at least once", |world| {
        assert!(world.checks.groups[0].executed.remove(&wrote[0]));
    });
}

// -- time -----------------------------------------------------------------------------------

#[test]
fn a_call_before_what_was_acknowledged_when_it_began_is_refused() {
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    let call = |wish, invoked| Call {
        client: 0,
        group: 0,
        wish,
        named: true,
        invoked,
        outcome: Outcome::Open,
        sent: 1,
    };
    let mark = |length| Mark { length, digest: length };
    for (weaker, checker) in [(None, "real time"), (Some(0), "session")] {
        for (length, is_refused) in [(7, true), (8, false)] {
            let mut world = peaceful();
            world.checks.groups[0] = GroupFacts::default();
            let checks = &mut world.checks;
            let write = call(Wish::Append, ms(1));
            checks.acknowledged(ms(20), Reference(1), &write, mark(8), weaker);
            // It began while the other one was open, so it may be before it.
            let beside = call(Wish::Peek, ms(19));
            checks.acknowledged(ms(25), Reference(2), &beside, mark(7), weaker);
            assert_eq!(names(&world), BTreeSet::new());
            let read = call(Wish::Peek, ms(21));
            world.checks.acknowledged(ms(30), Reference(3), &read, mark(length), weaker);
            assert_eq!(names(&world).contains(checker), is_refused, "{checker} {length}");
        }
    }
}

#[test]
fn a_value_that_was_overwritten_before_the_read_began_is_refused() {
    refuses("linearizability", |world| {
        let wrote = written(world);
        let of_one = |object| wrote.iter().filter(move |r| r.object() == object);
        let object = (0..crate::servant::OBJECTS).find(|object| of_one(*object).count() >= 2);
        let values: Vec<Reference> =
            of_one(object.expect("one was written twice")).copied().collect();
        // A read of the first value that begins long behind the last write of its object.
        let reader = Reference(
            0x6666_0000_0000 / crate::servant::OBJECTS * crate::servant::OBJECTS
                + values[0].object(),
        );
        let (invoked, at) = (world.now, world.now + Duration::from_millis(1));
        let call = Call {
            client: 0,
            group: 0,
            wish: Wish::Last,
            named: true,
            invoked,
            outcome: Outcome::Read { value: values[0].0, at },
            sent: 1,
        };
        world.ledger.open(reader, call);
    });
}

#[test]
fn two_histories_that_were_acknowledged_are_refused() {
    refuses("one primary", |world| {
        let (reference, call, mark) = {
            let mut all = acknowledged_calls(world, 0);
            let (reference, call, mark) = all.next().unwrap();
            (reference, call.clone(), mark)
        };
        let other = Mark { digest: !mark.digest, ..mark };
        let now = world.now;
        world.checks.acknowledged(now, reference, &call, other, None);
    });
}

// -- what nodes say -------------------------------------------------------------------------

fn says(world: &mut World, event: ReplicaEvent) {
    world.note_event(0, &EngineEvent::Replica(event));
}

#[test]
fn two_decisions_for_one_view_and_a_minority_are_refused() {
    let view = RingId { seq: 1 << 40, representative: node_id(0) };
    let of = |count: usize| NodeSet::first(count);
    refuses("one primary", |world| {
        let all = of(world.plan.nodes);
        for current in [all, of(1)] {
            let basis = Basis::Continues;
            says(world, ReplicaEvent::Primary { view, members: all, current, basis });
        }
    });
    refuses("one primary", |world| {
        let few = of(1);
        let basis = Basis::Continues;
        says(world, ReplicaEvent::Primary { view, members: few, current: few, basis });
    });
}

#[test]
fn a_member_that_is_said_to_differ_and_does_not_is_refused() {
    refuses("divergence", |world| {
        let (group, node) = (group_id(0), node_id(1));
        says(world, ReplicaEvent::Diverged { group, node, first: 3, request: 3, expelled: true });
    });
    refuses("divergence", |world| {
        says(world, ReplicaEvent::Disagreement { group: group_id(0), first: 3, request: 3 });
    });
}

#[test]
fn a_group_that_is_lost_with_the_server_that_a_node_ended_is_refused() {
    refuses("last server", |world| {
        let server = world.hosts[1].supervisors[0].as_ref().and_then(|s| s.server).unwrap();
        let ended = LastServer { node: 1, server, at: world.now };
        world.checks.endings.last_servers.insert(0, ended);
        let (reason, attempt) = (OutReason::TotalLoss, Attempt(1));
        let state = MemberState::Out { attempt, reason };
        let (group, node) = (group_id(0), node_id(1));
        says(world, ReplicaEvent::Member { group, node, state, ended: None });
    });
}

/// A run in which a member of the first group is in, and keeps all that its next server is to be
/// given; the node that it is of.
fn replacing() -> (World, usize) {
    let fits = |plan: &Plan| plan.groups[0].style == Style::ColdPassive;
    let plans = (1..).map(|seed| (seed, Plan::draw_styles(seed)));
    let found = plans.filter(|(_, plan)| fits(plan)).take(200).find_map(|(seed, plan)| {
        let mut world = World::new(seed, plan, Transcript::new(false, false));
        while world.now < Instant::ZERO + Duration::from_secs(3) {
            world.run_until(world.now + Duration::from_millis(1));
            let of = |node: &NodeSnapshot| node.groups.get(group_id(0)).and_then(|of| of.local);
            let snapshots = world.snapshots();
            let waits = |node: &Option<NodeSnapshot>| {
                node.as_ref().and_then(of) == Some("starting its server")
            };
            if let Some(node) = snapshots.iter().position(waits) {
                return Some((world, node));
            }
        }
        None
    });
    found.expect("some server ends, or a leader")
}

#[test]
fn what_a_node_kept_for_its_next_server_is_lost_with_the_node() {
    for (keeps, ends) in [(true, true), (false, true), (true, false)] {
        let (mut world, node) = replacing();
        let other = (0..world.plan.nodes).find(|other| *other != node).unwrap();
        let before = world.checks.violations.len();
        let of = if keeps { node } else { other };
        let server = usize::MAX;
        let ended = LastServer { node: of, server, at: world.now };
        world.checks.endings.last_servers.insert(0, ended);
        if ends {
            world.crash(of, false);
        }
        world.note_lost(0);
        let is_refused = world.checks.violations.len() > before;
        assert_eq!(is_refused, !keeps, "keeps it: {keeps}, ends: {ends}");
    }
}

// -- what is kept ---------------------------------------------------------------------------

fn kept(world: &World, with: impl Fn(&mut NodeSnapshot)) -> Vec<&'static str> {
    let mut snapshots = world.snapshots();
    snapshots.iter_mut().flatten().for_each(with);
    let found = super::memory::check_quiet(world, &snapshots);
    let found = found.into_iter().chain(super::memory::check(world, &snapshots));
    found.map(|(invariant, _)| invariant).collect()
}

#[test]
fn what_is_kept_for_longer_than_somebody_may_ask_for_it_is_refused() {
    let world = peaceful();
    assert_eq!(kept(&world, |_| {}), Vec::<&str>::new());
    let nodes = world.snapshots().iter().flatten().count();
    let calls = world.ledger.calls.values().filter(|call| call.group == 0);
    let sent: usize = calls.map(|call| call.sent as usize).sum();
    let windows: usize = world.clients.iter().map(|client| client.plan.window).sum();
    // All that was ever sent, and what may be open beside: nobody needs more.
    let most = sent + 2 * windows * (world.plan.nodes + 1) + 200;
    let too_many = kept(&world, |node| node.groups[group_id(0)].retained = most + 1);
    assert_eq!(too_many.len(), nodes, "{too_many:?}");
    let pending = kept(&world, |node| node.gateway.groups[group_id(0)].pending = 1);
    assert_eq!(pending.len(), nodes);
    let misfits = kept(&world, |node| node.order.misfits = 1);
    assert_eq!(misfits.len(), nodes);
    let packets = kept(&world, |node| node.order.log_packets = usize::MAX >> 20);
    assert_eq!(packets.len(), nodes);
}

// -- liveness -------------------------------------------------------------------------------

#[test]
fn a_node_that_does_not_come_back_is_not_well() {
    let mut world = peaceful();
    assert_eq!(world.unsettled(), None);
    world.hosts[0].node = None;
    assert!(world.unsettled().is_some());
}
