//! The domain key changes while the ring works: no view changes, nothing is lost, nobody is
//! locked out, and nothing that was recorded counts again.

mod harness;

use harness::{Faults, KEY, Net, check, ms, node, us};
use quorba_base::NodeSet;
use quorba_order::{DomainKey, Guarantee, InvalidKeys, KEYS_MAX, KeyId, RefusedReason};

const NEXT: [u8; 32] = [8; 32];

fn give(net: &mut Net, index: usize, keys: &[[u8; 32]]) {
    let keys = keys.iter().map(|key| DomainKey::from(*key)).collect();
    let now = net.now;
    net.ring(index).set_domain_keys(now, keys).expect("good keys");
    net.drain(index);
}

fn sealing(net: &Net, index: usize) -> KeyId {
    net.snapshot(index).sealing_key.expect("everything is sealed")
}

fn sealed(count: usize) -> Net {
    let mut net = Net::with_config(count, 21, |_, config| config.encrypt = true);
    assert!(net.run_till(ms(1000), Net::is_whole));
    net
}

fn views(net: &Net) -> Vec<usize> {
    (0..net.count).map(|index| net.views(index).len()).collect()
}

/// Keeps everyone busy, and under loss.
fn work(net: &mut Net, rounds: usize) {
    for round in 0..rounds {
        net.send(round % net.count, 300, Guarantee::Agreed);
        net.run_for(us(700));
    }
}

#[test]
fn the_key_changes_under_load_and_loss_without_a_view_change() {
    let mut net = sealed(4);
    net.faults = Faults { loss: 20, duplicate: 20, ..Faults::default() };
    let (before, old) = (views(&net), sealing(&net, 0));
    work(&mut net, 40);
    for index in 0..4 {
        assert_eq!(sealing(&net, index), old, "not before all have the new key");
        give(&mut net, index, &[KEY, NEXT]);
        work(&mut net, 60);
    }
    net.run_for(ms(200));
    let new = sealing(&net, 0);
    assert_ne!(new, old);
    assert!((0..4).all(|index| sealing(&net, index) == new));
    for index in 0..4 {
        give(&mut net, index, &[NEXT]);
        work(&mut net, 60);
    }
    net.faults = Faults::default();
    assert!(net.run_till(ms(2000), Net::is_drained));
    net.run_for(ms(300));
    assert_eq!(views(&net), before, "no view changes");
    assert!((0..4).all(|index| net.life(index).refused.is_empty()), "nothing was refused");
    check::settled(&net);
}

#[test]
fn a_node_that_is_away_stops_the_switch_and_is_not_locked_out() {
    let mut net = sealed(3);
    let old = sealing(&net, 0);
    net.crash(2);
    net.report_lost(2);
    net.run_for(ms(50));
    give(&mut net, 0, &[KEY, NEXT]);
    give(&mut net, 1, &[KEY, NEXT]);
    net.run_for(ms(500));
    assert_eq!((sealing(&net, 0), sealing(&net, 1)), (old, old));
    let (_, keyed) = net.snapshot(0).newest_key.unwrap();
    assert_eq!(keyed, NodeSet::first(2), "one can see who lacks it");
    net.boot(2);
    assert!(net.run_till(ms(1000), Net::is_whole), "with the old key it is in");
    let before = views(&net);
    give(&mut net, 2, &[KEY, NEXT]);
    net.run_for(ms(200));
    assert!((0..3).all(|index| sealing(&net, index) != old));
    assert_eq!(views(&net), before);
}

#[test]
fn a_node_that_slept_through_the_switch_follows() {
    let mut net = sealed(3);
    for index in 0..3 {
        give(&mut net, index, &[KEY, NEXT]);
    }
    net.run_for(ms(200));
    net.crash(2);
    net.report_lost(2);
    net.run_for(ms(50));
    give(&mut net, 0, &[NEXT]);
    give(&mut net, 1, &[NEXT]);
    net.boot(2);
    give(&mut net, 2, &[KEY, NEXT]);
    assert!(net.run_till(ms(2000), Net::is_whole));
    assert_eq!(sealing(&net, 2), sealing(&net, 0));
}

#[test]
fn who_has_only_the_old_key_is_outside_afterwards_and_is_reported() {
    let mut net = sealed(3);
    for index in 0..3 {
        give(&mut net, index, &[KEY, NEXT]);
    }
    net.run_for(ms(200));
    for index in 0..3 {
        give(&mut net, index, &[NEXT]);
    }
    net.crash(2);
    net.report_lost(2);
    net.boot(2);
    net.run_for(ms(1000));
    assert_eq!(net.snapshot(0).members, NodeSet::first(2));
    assert_eq!(net.snapshot(2).members, NodeSet::EMPTY.with(node(2)));
    assert!(net.life(0).refused.contains(&(node(2), RefusedReason::Seal)));
    assert!(net.life(2).refused.contains(&(node(0), RefusedReason::Seal)));
}

#[test]
fn recordings_from_before_the_switch_change_nothing_behind_it() {
    let mut net = sealed(3);
    net.record = true;
    work(&mut net, 50);
    for index in 0..3 {
        give(&mut net, index, &[KEY, NEXT]);
        work(&mut net, 20);
    }
    net.run_for(ms(200));
    work(&mut net, 50);
    net.record = false;
    let recordings = std::mem::take(&mut net.recordings);
    let (before, key) = (views(&net), sealing(&net, 0));
    for (to, bytes) in &recordings {
        net.inject(*to, bytes.clone());
    }
    net.run_for(ms(300));
    assert_eq!(views(&net), before);
    assert_eq!(sealing(&net, 0), key, "nor does an old key come back");
    check::settled(&net);
}

#[test]
fn keys_that_make_no_sense_are_refused_and_the_old_ones_stay() {
    let mut net = sealed(1);
    let now = net.now;
    let key = |byte| DomainKey::from([byte; 32]);
    let none = net.ring(0).set_domain_keys(now, Vec::new());
    assert_eq!(none, Err(InvalidKeys::Count(0)));
    let many = (0..=KEYS_MAX as u8).map(key).collect();
    assert_eq!(net.ring(0).set_domain_keys(now, many), Err(InvalidKeys::Count(KEYS_MAX + 1)));
    let old = sealing(&net, 0);
    let twice = net.ring(0).set_domain_keys(now, vec![key(7), key(7)]);
    assert_eq!(twice, Err(InvalidKeys::SameId(old)));
    assert_eq!(sealing(&net, 0), old);
    give(&mut net, 0, &[KEY, NEXT]);
    assert_ne!(sealing(&net, 0), old, "a domain of one asks nobody");
}
