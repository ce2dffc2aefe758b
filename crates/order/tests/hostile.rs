//! Whoever lacks the domain key can neither join nor read nor disturb; recordings prove nothing.

mod harness;

use bytes::BytesMut;
use harness::{Net, check, ms, node, us};
use quorba_base::NodeSet;
use quorba_order::{Guarantee, RefusedReason};

fn sealed(count: usize) -> Net {
    let mut net = Net::with_config(count, 21, |_, config| config.encrypt = true);
    assert!(net.run_till(ms(1000), Net::is_whole));
    net
}

fn refusals(net: &Net, index: usize, reason: RefusedReason) -> usize {
    net.life(index).refused.iter().filter(|(_, why)| *why == reason).count()
}

#[test]
fn a_node_with_another_key_stays_outside_and_is_reported_once_a_second() {
    let mut net = Net::with_config(3, 4, |index, config| {
        config.encrypt = true;
        if index == 2 {
            config.domain_key = [8; 32].into();
        }
    });
    net.run_for(ms(5000));
    assert_eq!(net.snapshot(0).members, NodeSet::first(2));
    assert_eq!(net.snapshot(2).members, NodeSet::EMPTY.with(node(2)));
    let reports = refusals(&net, 0, RefusedReason::Seal);
    assert!((1..=5).contains(&reports), "{reports} reports in 5 s");
}

#[test]
fn a_node_with_another_domain_file_stays_outside_and_is_reported() {
    let mut net = Net::with_config(3, 4, |index, config| {
        if index == 1 {
            config.domain_digest = 43;
        }
    });
    net.run_for(ms(2000));
    assert_eq!(net.snapshot(0).members, [0, 2].map(node).into_iter().collect());
    assert!(net.life(0).refused.contains(&(node(1), RefusedReason::Digest)));
    assert!(net.life(1).refused.contains(&(node(0), RefusedReason::Digest)));
}

#[test]
fn a_node_that_does_not_protect_stays_outside_and_is_reported() {
    let mut net = Net::with_config(2, 4, |index, config| config.encrypt = index == 0);
    net.run_for(ms(1000));
    assert_eq!(net.snapshot(0).members, NodeSet::first(1));
    assert!(refusals(&net, 0, RefusedReason::Protection) > 0);
    assert!(refusals(&net, 1, RefusedReason::Protection) > 0);
}

#[test]
fn recordings_of_everything_change_nothing() {
    let mut net = Net::unstarted(3, 21, |_, config| config.encrypt = true);
    net.record = true;
    for index in 0..3 {
        net.boot(index);
    }
    assert!(net.run_till(ms(1000), Net::is_whole));
    for round in 0..30 {
        net.send(round % 3, 300, Guarantee::Agreed);
        net.run_for(ms(2));
    }
    net.crash(1);
    net.report_lost(1);
    net.run_for(ms(50));
    net.boot(1);
    assert!(net.run_till(ms(1000), Net::is_whole));
    net.run_for(ms(50));
    net.record = false;
    let recordings = std::mem::take(&mut net.recordings);
    assert!(recordings.len() > 200);
    let views = |net: &Net| [0, 1, 2].map(|index| net.views(index).len());
    let before = views(&net);
    for _ in 0..3 {
        for (to, bytes) in &recordings {
            for target in [*to, 1] {
                net.inject(target, bytes.clone());
            }
            net.run_for(us(20));
        }
    }
    net.send(1, 100, Guarantee::Safe);
    net.run_for(ms(300));
    assert_eq!(views(&net), before, "no recording moves the ring");
    check::settled(&net);
}

/// A node boots while an attacker plays it the life of a peer's former boot.
#[test]
fn a_former_life_played_to_a_fresh_node_proves_nothing() {
    let mut net = Net::unstarted(2, 5, |_, config| config.encrypt = true);
    net.record = true;
    net.boot(0);
    net.boot(1);
    assert!(net.run_till(ms(1000), Net::is_whole));
    net.send(0, 100, Guarantee::Agreed);
    net.run_for(ms(100));
    net.record = false;
    net.crash(0);
    net.crash(1);
    net.boot(1);
    let recordings = std::mem::take(&mut net.recordings);
    for _ in 0..20 {
        for (_, bytes) in recordings.iter().filter(|(to, _)| *to == 1) {
            net.inject(1, bytes.clone());
            net.run_for(us(10));
        }
    }
    net.run_for(ms(200));
    assert_eq!(net.snapshot(1).members, NodeSet::EMPTY.with(node(1)), "alone, not haunted");
    assert!(net.delivered(1).is_empty());
}

#[test]
fn forged_and_mangled_datagrams_disturb_nobody() {
    let mut net = sealed(3);
    net.record = true;
    let mut sent = 0;
    for round in 0..400 {
        for index in 0..3 {
            if net.send(index, 400, Guarantee::Agreed).is_some() {
                sent += 1;
            }
        }
        for _ in 0..50 {
            let Some((to, bytes)) = net.recordings.last().cloned() else { continue };
            let mut bytes: BytesMut = bytes;
            let at = net.rng.below(bytes.len() as u64) as usize;
            match net.rng.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.extend_from_slice(&[0; 16]),
                _ => bytes[at] ^= 1 << net.rng.below(8),
            }
            net.inject(to, bytes);
        }
        net.recordings.clear();
        net.run_for(us(500 + round));
    }
    assert!(net.run_till(ms(1000), Net::is_drained));
    net.run_for(ms(100));
    check::settled(&net);
    for index in 0..3 {
        assert_eq!(net.delivered(index).len(), sent);
        assert_eq!(net.snapshot(index).counters.gathers, 1);
    }
    let refused: u64 = (0..3).map(|index| net.snapshot(index).counters.refused).sum();
    assert!(refused > 15_000, "{refused}");
}

/// CVE-2018-1084: a length below the header's was subtracted from. Every length from nothing up,
/// with and without a plausible header.
#[test]
fn cve_2018_1084_lengths_below_the_header() {
    let mut net = sealed(2);
    let template = {
        net.record = true;
        net.send(0, 10, Guarantee::Agreed);
        net.run_for(ms(1));
        net.recordings[0].1.clone()
    };
    let gathers = [0, 1].map(|index| net.snapshot(index).counters.gathers);
    for len in 0..template.len() {
        net.inject(0, BytesMut::from(&template[..len]));
        net.inject(1, BytesMut::from(&template[..len]));
        net.inject(1, BytesMut::zeroed(len));
    }
    // What a mangled datagram leaves behind shows when the timers have fired.
    net.run_for(ms(500));
    assert!(net.is_whole());
    assert!((0..2).all(|index| net.snapshot(index).counters.gathers == gathers[index]));
    net.send(1, 10, Guarantee::Safe);
    net.run_for(ms(200));
    assert!((0..2).all(|index| net.delivered(index).len() == 2), "the next message arrives");
    check::settled(&net);
}
