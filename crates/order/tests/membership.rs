//! Failures, one kind at a time, and how fast the survivors go on.

mod harness;

use harness::{Faults, Net, check, ms, node, us};
use quorba_base::{Duration, NodeSet};
use quorba_order::{GatherReason, Guarantee, LeaveReason, StateName, View, ViewKind};
use std::cell::Cell;
use std::rc::Rc;

/// The first byte behind the header of a Join, for nothing is encrypted.
const JOIN: u8 = 5;

fn formed(count: usize) -> Net {
    let mut net = Net::new(count, 11);
    assert!(net.run_till(ms(1000), Net::is_whole));
    net.run_for(ms(60));
    net
}

fn without(count: usize, index: usize) -> NodeSet {
    NodeSet::first(count).difference(NodeSet::EMPTY.with(node(index)))
}

fn last_view(net: &Net, index: usize) -> View {
    net.views(index).pop().cloned().expect("a view")
}

fn all_in(net: &Net, members: NodeSet) -> bool {
    members.iter().all(|node| {
        let snapshot = net.snapshot(usize::from(node.index()));
        snapshot.members == members && snapshot.state == StateName::Operational
    })
}

/// Time until the others are in a ring without `lost`.
fn time_without(net: &mut Net, lost: usize) -> Duration {
    let start = net.now;
    let members = without(net.count, lost);
    assert!(net.run_till(ms(2000), |net| all_in(net, members)), "the others go on");
    net.now.since(start)
}

#[test]
fn boot_of_all_at_once_takes_milliseconds() {
    for count in [2, 3, 5, 8] {
        let mut net = Net::new(count, 5);
        assert!(net.run_till(ms(20), Net::is_whole), "{count} nodes");
        assert!(net.views(0)[0].kind == ViewKind::Regular && net.views(0)[0].previous.is_none());
    }
}

#[test]
fn a_silent_node_is_out_within_200_ms_wherever_the_token_was() {
    for lost in 0..3 {
        for busy in [false, true] {
            let mut net = formed(3);
            if busy {
                net.send((lost + 1) % 3, 100, Guarantee::Agreed);
                net.run_for(us(70));
            }
            net.crash(lost);
            let took = time_without(&mut net, lost);
            assert!(took <= ms(200), "{lost} {busy}: {took:?}");
            let view = last_view(&net, (lost + 1) % 3);
            assert_eq!(view.left, [(node(lost), LeaveReason::Silent)]);
            assert_eq!(view.reason, GatherReason::TokenLoss);
            check::safety(&net);
        }
    }
}

#[test]
fn a_dead_process_is_out_in_milliseconds_once_reported() {
    for lost in 0..4 {
        let mut net = formed(4);
        net.crash(lost);
        net.report_lost(lost);
        let took = time_without(&mut net, lost);
        assert!(took <= ms(5), "{took:?}");
        let view = last_view(&net, (lost + 1) % 4);
        assert_eq!(view.left, [(node(lost), LeaveReason::ProcessLost)]);
        assert!(matches!(view.reason, GatherReason::PeerLost(_) | GatherReason::Join(_)));
    }
}

#[test]
fn a_node_that_says_farewell_is_not_waited_for() {
    let mut net = formed(3);
    let now = net.now;
    net.ring(1).leave(now);
    net.drain(1);
    net.run_for(us(100));
    net.crash(1);
    assert!(time_without(&mut net, 1) <= ms(5));
    assert_eq!(last_view(&net, 0).left, [(node(1), LeaveReason::Departed)]);
    net.boot(1);
    assert!(net.run_till(ms(50), Net::is_whole));
    net.run_for(ms(100));
    check::settled(&net);
}

#[test]
fn one_witness_of_a_death_is_enough() {
    let mut net = formed(4);
    net.crash(2);
    let now = net.now;
    net.ring(0).handle_peer_lost(now, node(2));
    net.drain(0);
    assert!(time_without(&mut net, 2) <= ms(5));
}

#[test]
fn a_wrong_report_of_death_heals() {
    let mut net = formed(3);
    let now = net.now;
    net.ring(0).handle_peer_lost(now, node(2));
    net.drain(0);
    net.run_for(ms(5));
    assert!(net.run_till(ms(3000), Net::is_whole));
    net.run_for(ms(100));
    check::settled(&net);
}

#[test]
fn a_restarted_node_replaces_its_old_boot_at_once() {
    let mut net = formed(3);
    net.crash(1);
    net.boot(1);
    let start = net.now;
    assert!(net.run_till(ms(100), Net::is_whole));
    assert!(net.now.since(start) < ms(20), "no timeout is waited for");
    let view = last_view(&net, 0);
    assert_eq!(view.left, [(node(1), LeaveReason::Restarted)]);
    assert!(view.joined.contains(node(1)));
    assert_eq!(view.transitional, without(3, 1));
}

#[test]
fn a_paused_node_is_left_out_and_comes_back_without_breaking_the_others() {
    let mut net = formed(3);
    let until = net.now + ms(2000);
    net.pause(1, until);
    assert!(time_without(&mut net, 1) <= ms(200));
    let views = net.views(0).len();
    for _ in 0..100 {
        net.send(0, 200, Guarantee::Agreed);
        net.run_for(ms(10));
    }
    assert_eq!(net.views(0).len(), views, "the pause disturbs nobody");
    net.run_until(until + us(1));
    assert!(net.run_till(ms(500), Net::is_whole));
    assert_eq!(net.views(0).len(), views + 2, "one change to take it back");
    assert_eq!(net.snapshot(1).counters.pauses, 1);
    // To itself, too, it was the others that left: it did not see what they delivered meanwhile.
    let view = last_view(&net, 1);
    assert_eq!(view.transitional, NodeSet::EMPTY.with(node(1)));
    assert!(view.left.iter().map(|(node, _)| *node).eq([0, 2].map(node)), "{:?}", view.left);
    net.run_for(ms(100));
    check::settled(&net);
}

#[test]
fn descheduled_for_50_ms_is_not_suspected() {
    let mut net = formed(3);
    for round in 0..60 {
        let until = net.now + ms(50);
        net.pause(round % 3, until);
        net.send((round + 1) % 3, 300, Guarantee::Agreed);
        net.run_for(ms(75));
    }
    for index in 0..3 {
        assert_eq!(net.snapshot(index).counters.gathers, 1);
    }
}

/// A host too busy to run its processes: stalls of up to 100 ms, now here, now there.
#[test]
fn a_starved_host_is_not_torn_apart() {
    let mut gathers = 0;
    for seed in 0..10 {
        let mut net = Net::new(3, seed);
        assert!(net.run_till(ms(1000), Net::is_whole));
        let before = net.snapshot(0).counters.gathers;
        for round in 0..200 {
            let index = net.rng.below(3) as usize;
            let until = net.now + ms(20 + net.rng.below(80));
            if !net.is_paused(index) {
                net.pause(index, until);
            }
            net.send(round % 3, 300, Guarantee::Agreed);
            let wait = net.rng.below(40);
            net.run_for(ms(wait));
        }
        net.run_for(ms(300));
        gathers += net.snapshot(0).counters.gathers - before;
        check::settled(&net);
    }
    assert!(gathers <= 10, "{gathers} gathers in 40 s of stalls");
}

/// A virtual machine that its host does not run: nobody has gone on meanwhile.
#[test]
fn a_host_that_stands_still_as_a_whole_changes_no_view() {
    for phase in 0..60 {
        let (busy, still) = (phase % 2 == 0, ms(90 + 7 * phase));
        let mut net = formed(3);
        let send = |net: &mut Net, index: usize| {
            if busy && !net.is_paused(index) {
                net.send(index, 1000, Guarantee::Agreed);
            }
        };
        for round in 0..(100 + phase) {
            send(&mut net, (round % 3) as usize);
            net.run_for(ms(1));
        }
        let until = net.now + still;
        for index in 0..3 {
            // They do not all wake up at once.
            let late = us(net.rng.below(8000));
            net.pause(index, until + late);
        }
        net.run_until(until + ms(9));
        for round in 0..200 {
            send(&mut net, round % 3);
            net.run_for(ms(1));
        }
        for index in 0..3 {
            let snapshot = net.snapshot(index);
            assert_eq!(snapshot.counters.gathers, 1, "{still:?} at node {index}: {snapshot:?}");
        }
        net.run_for(ms(300));
        check::settled(&net);
    }
}

/// A cluster that is shut down: nobody's silence is waited for (corosync 69ff7705).
#[test]
fn many_that_leave_at_once_are_not_waited_for() {
    for apart in [us(0), us(30), us(700)] {
        let mut net = formed(8);
        for index in 3..8 {
            let now = net.now;
            net.ring(index).leave(now);
            net.drain(index);
            net.run_for(apart);
        }
        for index in 3..8 {
            net.crash(index);
        }
        let start = net.now;
        assert!(net.run_till(ms(1000), |net| all_in(net, NodeSet::first(3))));
        let took = net.now.since(start);
        assert!(took <= ms(10), "{took:?}, leaves {apart:?} apart");
        let left = net.views(0).into_iter().flat_map(|view| &view.left);
        assert!(left.clone().all(|(_, why)| *why == LeaveReason::Departed));
        net.send(1, 100, Guarantee::Safe);
        net.run_for(ms(100));
        assert_eq!(net.delivered(2).len(), 1);
        check::safety(&net);
    }
}

/// Whatever the token is doing just then, and though an idle one rests for long.
#[test]
fn a_node_that_falls_silent_in_an_idle_ring_is_left_out_within_200_ms() {
    for phase in 0..35 {
        let mut net = formed(3);
        net.run_for(ms(100 + 2 * phase));
        let victim = (phase % 3) as usize;
        net.pause(victim, net.now + ms(5000));
        let took = time_without(&mut net, victim);
        assert!(took <= ms(200), "{took:?} at phase {phase}");
    }
}

#[test]
fn parted_halves_both_go_on_and_merge() {
    let mut net = formed(5);
    net.partition(0b00011);
    net.run_for(ms(300));
    assert!(all_in(&net, NodeSet::first(2)));
    assert!(all_in(&net, NodeSet::first(5).difference(NodeSet::first(2))));
    for index in 0..5 {
        net.send(index, 100, Guarantee::Safe);
    }
    net.run_for(ms(100));
    assert_eq!(net.life(0).held, 0, "two of five are no majority");
    assert_eq!(net.life(4).held, 1);
    net.heal();
    assert!(net.run_till(ms(2500), Net::is_whole));
    net.run_for(ms(100));
    check::settled(&net);
    assert_eq!(net.life(0).unheld, [(1, 1)], "what no majority can be said to have is named");
}

#[test]
fn halves_merge_though_traffic_never_stops() {
    let mut net = formed(4);
    net.partition(0b0011);
    net.run_for(ms(300));
    net.heal();
    let mut whole = false;
    for _ in 0..3000 {
        for index in 0..4 {
            net.send(index, 100, Guarantee::Agreed);
        }
        net.run_for(ms(1));
        whole = net.is_whole();
        if whole {
            break;
        }
    }
    assert!(whole);
    assert!(net.run_till(ms(1000), Net::is_drained));
}

#[test]
fn when_two_cannot_hear_each_other_a_steady_majority_remains() {
    let mut net = formed(3);
    net.cut[0][2] = true;
    net.cut[2][0] = true;
    let steady = |net: &Net| all_in(net, NodeSet::first(2));
    assert!(net.run_till(ms(1000), steady), "the higher end of the broken link is dropped");
    let before = net.snapshot(0).counters.rings;
    net.run_for(ms(10_000));
    let changes = net.snapshot(0).counters.rings - before;
    assert!(changes <= 12, "{changes} changes in 10 s");
    net.heal();
    assert!(net.run_till(ms(12_000), Net::is_whole));
    net.run_for(ms(200));
    check::settled(&net);
}

#[test]
fn several_failures_during_recovery() {
    let mut net = formed(6);
    for index in 0..6 {
        for _ in 0..30 {
            net.submit(index, 700, Guarantee::Agreed);
        }
        net.drain(index);
    }
    // Of the ring that is being formed: a state of its own for each failure.
    let recovering = |net: &Net, of: &[usize]| {
        of.iter().filter(|index| net.snapshot(**index).state == StateName::Recovery).count()
    };
    net.crash(5);
    net.report_lost(5);
    assert!(net.run_till(ms(10), |net| recovering(net, &[0, 1, 2, 3, 4]) >= 3));
    net.crash(0);
    net.report_lost(0);
    assert!(net.run_till(ms(10), |net| recovering(net, &[1, 2, 3, 4]) == 0), "a new attempt");
    assert!(net.run_till(ms(10), |net| recovering(net, &[1, 2, 3, 4]) >= 3));
    net.crash(3);
    let left = [1, 2, 4].map(node).into_iter().collect();
    assert!(net.run_till(ms(1000), |net| all_in(net, left)));
    assert!(net.run_till(ms(500), Net::is_drained));
    net.run_for(ms(100));
    check::safety(&net);
}

#[test]
fn a_join_storm_settles() {
    let mut net = Net::new(20, 8);
    net.faults = Faults { loss: 50, ..Faults::default() };
    let joins = count_joins(&mut net);
    assert!(net.run_till(ms(3000), Net::is_whole));
    let booting = joins.take() / 19;
    assert!(booting <= 20 * 10, "{booting} Joins of 20 nodes");
    for index in 0..20 {
        if index % 3 == 0 {
            net.crash(index);
            net.boot(index);
        }
    }
    assert!(net.run_till(ms(3000), Net::is_whole));
    let restarting = joins.take() / 19;
    assert!(restarting <= 20 * 20, "{restarting} Joins of 20 nodes");
    net.faults = Faults::default();
    net.run_for(ms(300));
    assert!(net.is_whole());
    check::safety(&net);
}

/// Counts Joins, once for each node that they go to.
fn count_joins(net: &mut Net) -> Rc<Cell<usize>> {
    let count = Rc::new(Cell::new(0));
    let joins = Rc::clone(&count);
    net.filter = Some(Box::new(move |_, _, _, bytes| {
        joins.set(joins.get() + usize::from(bytes[36] == JOIN));
        false
    }));
    count
}

#[test]
fn a_ring_on_a_slow_network_finds_its_own_timeouts() {
    let mut net = Net::new(3, 2);
    net.faults = Faults { delay_us: (60_000, 70_000), ..Faults::default() };
    assert!(net.run_till(ms(60_000), Net::is_whole));
    net.run_for(ms(20_000));
    let gathers = net.snapshot(0).counters.gathers;
    for _ in 0..20 {
        net.send(1, 100, Guarantee::Agreed);
        net.run_for(ms(1000));
    }
    assert_eq!(net.snapshot(0).counters.gathers, gathers, "steady at 65 ms per hop");
    check::safety(&net);
}

#[test]
fn a_member_that_receives_no_messages_is_excluded() {
    let mut net = formed(3);
    // Node 2 gets tokens and greetings, but no data: longer datagrams do not get through.
    net.filter = Some(Box::new(|_, _, to, bytes| to == 2 && bytes.len() > 400));
    for _ in 0..200 {
        net.send(0, 1000, Guarantee::Agreed);
        net.run_for(ms(20));
    }
    let view = net.views(0).iter().find(|view| !view.left.is_empty()).copied().cloned();
    let view = view.expect("the ring changes");
    assert_eq!(view.left, [(node(2), LeaveReason::FailedToReceive)]);
    net.filter = None;
    assert!(net.run_till(ms(15_000), |net| net.is_whole() && net.is_drained()));
    net.run_for(ms(200));
    check::settled(&net);
}
