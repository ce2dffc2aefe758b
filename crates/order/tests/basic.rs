//! The ring at peace: forms, orders, rests.

mod harness;

use harness::{Net, check, ms, node};
use quorba_base::NodeSet;
use quorba_order::{Guarantee, ViewKind};

#[test]
fn three_nodes_form_one_ring_and_deliver_in_one_order() {
    let mut net = Net::new(3, 1);
    assert!(net.run_till(ms(500), Net::is_whole));
    for round in 0..50 {
        for index in 0..3 {
            net.send(index, 10 + round, Guarantee::Agreed);
        }
        net.run_for(ms(1));
    }
    assert!(net.run_till(ms(500), Net::is_drained));
    net.run_for(ms(100));
    check::settled(&net);
    for index in 0..3 {
        assert_eq!(net.delivered(index).len(), 150);
        assert_eq!(net.life(index).held, 50);
        assert_eq!(net.life(index).stable, 50);
        let last = net.views(index).pop().cloned().expect("a view");
        assert_eq!((last.kind, last.members), (ViewKind::Regular, NodeSet::first(3)));
    }
}

#[test]
fn a_node_alone_runs_a_ring_of_one() {
    let mut net = Net::new(1, 1);
    net.send(0, 100, Guarantee::Safe);
    assert!(net.run_till(ms(500), Net::is_drained));
    assert_eq!(net.delivered(0)[0].origin, node(0));
    assert_eq!((net.life(0).held, net.life(0).stable), (1, 1));
    check::settled(&net);
}
