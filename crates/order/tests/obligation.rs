//! Amir95, recovery: who has said that it has everything is bound by it, even if the recovery
//! fails for it; others have delivered on the strength of its word.

mod harness;

use harness::{Net, check, ms, node, us};
use quorba_base::NodeSet;
use quorba_order::{Guarantee, StateName};
use std::cell::Cell;
use std::rc::Rc;

/// Data packets; behind the header of 36 bytes, for nothing is encrypted.
const DATA: u8 = 1;

/// Four nodes; a packet of node 3 reaches nobody, one of node 1 is numbered behind it and reaches
/// all; then node 3 dies. What node 1 sent can be delivered only with node 1.
fn behind_a_gap(seed: u64) -> Option<Net> {
    let mut net = Net::new(4, seed);
    assert!(net.run_till(ms(1000), Net::is_whole));
    net.run_for(ms(60));
    let mute = Rc::new(Cell::new(true));
    let flag = Rc::clone(&mute);
    net.filter =
        Some(Box::new(move |_, from, _, datagram| from == 3 && datagram[36] == DATA && flag.get()));
    net.send(3, 100, Guarantee::Agreed);
    net.send(1, 100, Guarantee::Agreed);
    let gap = |net: &Net, index: usize| {
        let [high, aru, ..] = net.snapshot(index).packets;
        high > aru
    };
    if !net.run_till(ms(20), |net| (0..3).all(|index| gap(net, index))) {
        return None;
    }
    net.crash(3);
    net.report_lost(3);
    Some(net)
}

#[test]
fn an_obliged_member_delivers_with_those_who_installed_without_it() {
    let (mut tried, mut obliged) = (0, 0);
    for seed in 0..80 {
        let Some(mut net) = behind_a_gap(seed) else { continue };
        tried += 1;
        let three = NodeSet::first(3);
        // Node 0 or 2 has not installed the ring of three, and another has.
        let late = if seed % 2 == 0 { 0 } else { 2 };
        let ahead = |net: &Net| {
            (0..3).any(|index| net.snapshot(index).members == three)
                && net.snapshot(late).state == StateName::Recovery
        };
        let end = net.now + ms(30);
        while !ahead(&net) && net.now < end {
            net.run_for(us(5));
        }
        if !ahead(&net) {
            continue;
        }
        for other in (0..3).filter(|other| *other != late) {
            (net.cut[late][other], net.cut[other][late]) = (true, true);
        }
        let only = NodeSet::EMPTY.with(node(late));
        assert!(net.run_till(ms(2000), |net| net.snapshot(late).members == only));
        let got = net.delivered(late).iter().any(|delivery| delivery.origin == node(1));
        assert!(got, "seed {seed}: the others have delivered it in the same transitional ring");
        obliged += 1;
        net.heal();
        assert!(net.run_till(ms(3000), |net| net.is_whole() && net.is_drained()));
        check::safety(&net);
    }
    assert!(obliged > 3, "{obliged} of {tried} seeds came to the point");
}
