//! The properties of extended virtual synchrony, one test each, under the name that Moser94
//! (ICDCS 1994) gives them.
//!
//! What it is not: the checkers. `harness/check.rs` judges every run by all properties; here each
//! has one small scenario whose outcome is written out, and which fails if the property is broken.
//! Runs that mix everything are in `seeds.rs`.

mod harness;

use harness::{Faults, Net, Seen, check, ms, node, us};
use quorba_base::{NodeId, NodeSet};
use quorba_order::{Guarantee, Position, StateName, View, ViewKind};

/// The first byte behind the header, for nothing is encrypted.
const DATA: u8 = 1;

fn ring_of(count: usize) -> Net {
    Net::quiet(count, 31)
}

fn set(indices: &[usize]) -> NodeSet {
    indices.iter().map(|index| node(*index)).collect()
}

/// Each of `members` is operational in a ring of just them.
fn is_ring_of(net: &Net, members: &[usize]) -> bool {
    members.iter().all(|index| {
        let snapshot = net.snapshot(*index);
        snapshot.members == set(members) && snapshot.state == StateName::Operational
    })
}

/// Who sent what, in the order of delivery.
fn sequence(net: &Net, index: usize) -> Vec<(NodeId, u64)> {
    net.delivered(index).iter().map(|d| (d.origin, d.ticket.0)).collect()
}

fn heal(net: &mut Net) {
    net.heal();
    net.faults = Faults::default();
    assert!(net.run_till(ms(3000), Net::is_whole));
    assert!(net.run_till(ms(3000), Net::is_drained));
    net.run_for(ms(150));
    check::settled(net);
}

/// Moser94, basic delivery: a message is delivered once, only if it was sent, and only in the
/// configuration in which it was sent, or the transitional one behind that.
#[test]
fn basic_delivery() {
    let mut net = ring_of(5);
    net.faults = Faults { duplicate: 1000, slow: 300, ..Faults::default() };
    for round in 0..40 {
        net.send(round % 5, 100, Guarantee::Agreed);
        net.run_for(us(200));
    }
    assert!(net.run_till(ms(500), |net| (0..5).all(|index| net.delivered(index).len() == 40)));
    net.partition(0b00011);
    assert!(net.run_till(ms(1000), |net| is_ring_of(net, &[0, 1]) && is_ring_of(net, &[2, 3, 4])));
    for index in 0..5 {
        net.send(index, 100, Guarantee::Agreed);
    }
    net.run_for(ms(100));
    heal(&mut net);
    for index in 0..5 {
        let seen = sequence(&net, index);
        // Eight of each from before; the ninth of those alone that were on the same side.
        for origin in 0..5 {
            let same_side = (index < 2) == (origin < 2);
            let expected: Vec<u64> = (1..=8 + u64::from(same_side)).collect();
            let tickets = seen.iter().filter(|(from, _)| *from == node(origin)).map(|(_, t)| *t);
            assert_eq!(tickets.collect::<Vec<_>>(), expected, "{origin} at {index}");
        }
        for delivery in net.delivered(index) {
            let origin = usize::from(delivery.origin.index());
            let own = net.delivered(origin);
            let there =
                own.iter().find(|d| d.origin == delivery.origin && d.ticket == delivery.ticket);
            assert_eq!(there.map(|d| d.position.ring), Some(delivery.position.ring));
        }
    }
}

/// Moser94, configuration changes: members agree on who is in a configuration, and go from one to
/// the next by the same steps.
#[test]
fn configuration_changes() {
    let mut net = ring_of(5);
    let whole = net.views(0).last().expect("a view").ring;
    net.partition(0b00011);
    assert!(net.run_till(ms(1000), |net| is_ring_of(net, &[0, 1]) && is_ring_of(net, &[2, 3, 4])));
    let side = |index: usize| -> &[usize] { if index < 2 { &[0, 1] } else { &[2, 3, 4] } };
    let last_two = |net: &Net, index: usize| -> [View; 2] {
        let views = net.views(index);
        [views[views.len() - 2].clone(), views[views.len() - 1].clone()]
    };
    for index in 0..5 {
        let [transitional, regular] = last_two(&net, index);
        let members = set(side(index));
        assert_eq!((transitional.kind, transitional.members), (ViewKind::Transitional, members));
        assert_eq!((regular.kind, regular.members), (ViewKind::Regular, members));
        assert_eq!((transitional.previous, regular.previous), (Some(whole), Some(whole)));
        let [_, first] = last_two(&net, side(index)[0]);
        assert_eq!((regular.ring, &regular.incarnations), (first.ring, &first.incarnations));
    }
    let halves = [0, 2].map(|index| net.snapshot(index).ring);
    assert_ne!(halves[0], halves[1]);
    heal(&mut net);
    for index in 0..5 {
        let [transitional, regular] = last_two(&net, index);
        assert_eq!(transitional.members, set(side(index)), "who comes along from the same half");
        assert_eq!(regular.members, NodeSet::first(5));
        assert_eq!(regular.previous, halves[usize::from(index >= 2)]);
        assert_eq!(regular.joined, NodeSet::first(5).difference(set(side(index))));
        assert_eq!(regular.incarnations, last_two(&net, 0)[1].incarnations);
    }
}

/// Moser94, total order: any two nodes deliver the messages that both deliver in one order,
/// whatever components they have been in meanwhile.
#[test]
fn total_order() {
    let mut net = ring_of(5);
    net.faults = Faults { loss: 50, slow: 100, ..Faults::default() };
    for side in [0b00011, 0b10101] {
        net.load(30, 400, Guarantee::Agreed);
        net.run_for(us(900));
        net.partition(side);
        for index in 0..5 {
            net.send(index, 400, Guarantee::Agreed);
        }
        net.run_for(ms(400));
        heal(&mut net);
    }
    let place = |net: &Net, index: usize| -> Vec<(Position, (NodeId, u64))> {
        let delivered = net.delivered(index);
        delivered.iter().map(|d| (d.position, (d.origin, d.ticket.0))).collect()
    };
    let mut compared = 0;
    for one in 0..5 {
        for other in 0..one {
            let (a, b) = (place(&net, one), place(&net, other));
            let common_a: Vec<_> = a.iter().filter(|message| b.contains(message)).collect();
            let common_b: Vec<_> = b.iter().filter(|message| a.contains(message)).collect();
            assert_eq!(common_a, common_b, "{one} and {other}");
            compared += common_a.len();
        }
    }
    assert!(compared > 1000, "{compared}");
}

/// Moser94, failure atomicity: who goes from one configuration to the next together has delivered
/// the same in the first. Node 1 alone has received what node 0 said before it died. (Under load
/// and loss: `members_that_move_together_deliver_the_same_messages_of_the_old_ring` in `paper.rs`.)
#[test]
fn failure_atomicity() {
    let mut net = ring_of(4);
    net.filter = Some(Box::new(|_, from, to, bytes| from == 0 && to != 1 && bytes[36] == DATA));
    for _ in 0..5 {
        net.send(0, 100, Guarantee::Agreed);
    }
    net.run_for(us(300));
    assert_eq!([1, 2, 3].map(|index| net.delivered(index).len()), [5, 0, 0]);
    net.crash(0);
    net.report_lost(0);
    net.filter = None;
    assert!(net.run_till(ms(100), |net| is_ring_of(net, &[1, 2, 3])));
    for index in 1..4 {
        assert_eq!(sequence(&net, index), sequence(&net, 1), "node {index}");
        assert_eq!(net.delivered(index).len(), 5);
        let last = net.life(index).seen.last();
        assert!(matches!(last, Some(Seen::View(_))), "before the new configuration, not in it");
    }
    check::safety(&net);
}

/// Moser94, safe delivery: in the configuration in which it was sent a message is delivered as safe
/// only if every member has it; else it comes in the transitional configuration, where its
/// members are all that it is safe for.
#[test]
fn safe_delivery() {
    let mut net = ring_of(3);
    net.send(0, 100, Guarantee::Safe);
    net.run_for(ms(80));
    net.filter = Some(Box::new(|_, _, to, bytes| to == 2 && bytes[36] == DATA));
    net.send(0, 100, Guarantee::Safe);
    net.run_for(ms(80));
    let counts = |net: &Net| [0, 1, 2].map(|index| net.delivered(index).len());
    assert_eq!(counts(&net), [1, 1, 1], "node 2 lacks the second one: nobody delivers it");
    net.partition(0b100);
    net.filter = None;
    assert!(net.run_till(ms(1000), |net| is_ring_of(net, &[0, 1]) && is_ring_of(net, &[2])));
    assert_eq!(counts(&net), [2, 2, 1]);
    for index in 0..2 {
        let tail: Vec<_> = net.life(index).seen.iter().rev().take(3).rev().collect();
        let [Seen::View(transitional), Seen::Deliver(second), Seen::View(regular)] = tail[..]
        else {
            panic!("node {index}: {tail:?}");
        };
        assert_eq!(
            (transitional.kind, transitional.members),
            (ViewKind::Transitional, set(&[0, 1]))
        );
        assert_eq!((second.ticket.0, regular.kind), (2, ViewKind::Regular));
    }
    heal(&mut net);
    assert_eq!(counts(&net), [2, 2, 1], "nobody makes up for what another configuration delivered");
}

/// Moser94, all of it: both sides of a partition go on, and merge.
#[test]
fn holds_on_both_sides_of_partitions() {
    for seed in 0..15 {
        let mut net = Net::new(5, seed);
        assert!(net.run_till(ms(1000), Net::is_whole));
        for side in [0b00011, 0b10101, 0b01000] {
            net.load(5, 300, Guarantee::Safe);
            net.load(5, 300, Guarantee::Agreed);
            let wait = net.rng.below(600);
            net.run_for(us(wait));
            net.partition(side);
            net.load(5, 300, Guarantee::Agreed);
            net.run_for(ms(300));
            net.heal();
            assert!(net.run_till(ms(3000), Net::is_whole), "seed {seed}");
        }
        heal(&mut net);
    }
}

/// Moser94, self-delivery.
#[test]
fn self_delivery_even_alone() {
    let mut net = ring_of(3);
    net.partition(0b001);
    for _ in 0..10 {
        net.send(0, 200, Guarantee::Safe);
    }
    net.run_for(ms(400));
    assert_eq!(net.delivered(0).len(), 10);
    assert_eq!(net.snapshot(0).members, NodeSet::first(1));
    assert_eq!(net.life(0).held, 0, "one of three holds nothing for the majority");
    check::safety(&net);
}

/// Moser94, causal delivery.
#[test]
fn messages_follow_their_causes() {
    let mut net = ring_of(3);
    net.faults = Faults { loss: 100, slow: 100, ..Faults::default() };
    for turn in 0..60 {
        let index = turn % 3;
        let seen = net.delivered(index).len();
        net.send(index, 100, Guarantee::Agreed);
        let answered = net.run_till(ms(500), |net| net.delivered((index + 1) % 3).len() > seen);
        assert!(answered);
    }
    net.faults = Faults::default();
    heal(&mut net);
    let order: Vec<usize> =
        net.delivered(0).iter().map(|d| usize::from(d.origin.index())).collect();
    let turns: Vec<usize> = (0..60).map(|turn| turn % 3).collect();
    assert_eq!(order, turns, "each was sent after the one before was delivered");
}
