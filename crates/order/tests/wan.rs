//! A ring across a continent: 65 ms per hop, give or take 20, and one datagram in a hundred lost.
//!
//! What it is not: a measure of time on real networks. Here is counted what the ring's pauses
//! cost where they do not fit the distance.

mod harness;

use harness::{Faults, Net, check, ms, node};
use quorba_base::{Duration, NodeSet};
use quorba_order::{Counters, Guarantee, StateName};

const NODES: usize = 5;
/// What the token takes to go round once.
const ROTATION: Duration = Duration::from_millis(65 * NODES as u64);

fn far() -> Faults {
    Faults { loss: 10, delay_us: (45_000, 85_000), ..Faults::default() }
}

/// As `Net::run_till`, but looks every 10 ms: time passes slowly here.
fn run_till(net: &mut Net, limit: Duration, done: impl Fn(&Net) -> bool) -> Option<Duration> {
    let start = net.now;
    while !done(net) {
        if net.now.since(start) >= limit {
            return None;
        }
        net.run_for(ms(10));
    }
    Some(net.now.since(start))
}

/// A ring that has been there for 20 s.
fn formed(seed: u64) -> Net {
    let mut net = Net::unstarted(NODES, seed, |_, _| {});
    net.faults = far();
    for index in 0..NODES {
        net.boot(index);
    }
    run_till(&mut net, ms(60_000), Net::is_whole).expect("they find each other");
    net.run_for(ms(20_000));
    net
}

fn sum(net: &Net, count: impl Fn(&Counters) -> u64) -> u64 {
    (0..NODES).map(|index| count(&net.snapshot(index).counters)).sum()
}

/// Of the 16 datagrams per message, four are the message and seven the rotations meanwhile. With
/// pauses made for a LAN there were 95, half of them tokens sent again.
#[test]
fn a_minute_of_traffic_costs_few_datagrams_and_nobody_is_suspected() {
    for seed in 0..20 {
        let mut net = formed(seed);
        let counters = |net: &Net| {
            [sum(net, |c| c.gathers), sum(net, |c| c.token_resent), sum(net, |c| c.token_requests)]
        };
        let (before, transmitted) = (counters(&net), net.transmitted);
        for _ in 0..120 {
            let index = net.rng.below(NODES as u64) as usize;
            net.send(index, 200, Guarantee::Agreed);
            net.run_for(ms(500));
        }
        let after = counters(&net);
        let [gathers, resent, requests] = [0, 1, 2].map(|at| after[at] - before[at]);
        assert_eq!(gathers, 0, "seed {seed}: nobody is suspected in a minute");
        // 850 hops, one in a hundred lost.
        assert!(resent <= 80, "seed {seed}: {resent} tokens sent again");
        assert!(requests <= 150, "seed {seed}: {requests} requests for 120 messages");
        let datagrams = net.transmitted - transmitted;
        assert!(datagrams <= 120 * 20, "seed {seed}: {datagrams} datagrams for 120 messages");
        net.run_for(ms(10_000));
        check::settled(&net);
        assert!((0..NODES).all(|index| net.delivered(index).len() == 120));
    }
}

#[test]
fn a_node_that_falls_silent_is_left_out_and_comes_back() {
    for seed in 0..20 {
        let mut net = formed(seed);
        net.crash(2);
        let transmitted = net.transmitted;
        let left = NodeSet::first(NODES).difference(NodeSet::EMPTY.with(node(2)));
        let gone = |net: &Net| {
            left.iter().all(|node| {
                let snapshot = net.snapshot(usize::from(node.index()));
                snapshot.members == left && snapshot.state == StateName::Operational
            })
        };
        let out = run_till(&mut net, ROTATION * 40, gone);
        assert!(out.is_some(), "seed {seed}: the others do not go on");
        let datagrams = net.transmitted - transmitted;
        assert!(datagrams <= 400, "seed {seed}: {datagrams} datagrams to leave one out");
        net.boot(2);
        let back = run_till(&mut net, ROTATION * 60, Net::is_whole);
        assert!(back.is_some(), "seed {seed}: it does not come back");
        for index in 0..NODES {
            net.send(index, 200, Guarantee::Safe);
        }
        assert!(run_till(&mut net, ROTATION * 60, Net::is_drained).is_some(), "seed {seed}");
        net.run_for(ROTATION * 30);
        check::settled(&net);
    }
}
