//! The largest: rings of as many nodes as a domain can have form under loss, carry messages,
//! survive failures, and every datagram of the protocol fits one Ethernet frame; the longest
//! message arrives.

mod harness;

use harness::{Faults, Net, check, ms};
use quorba_base::NodeSet;
use quorba_order::{DATAGRAM_BYTES_MIN, Full, Guarantee, PAYLOAD_BYTES_MAX};

/// Kinds of packets whose size depends on the number of members.
const NAMES: [(u8, &str); 4] = [(2, "token"), (5, "join"), (6, "hello"), (7, "commit")];

fn large(count: usize, loss: u64) {
    let mut net = Net::unstarted(count, count as u64, |_, config| config.accelerated = true);
    net.faults = Faults { loss, ..Faults::default() };
    let sizes = std::rc::Rc::new(std::cell::RefCell::new([0_usize; 256]));
    let seen = std::rc::Rc::clone(&sizes);
    net.filter = Some(Box::new(move |_, _, _, datagram| {
        // The kind is the first byte behind the header, for nothing is encrypted.
        let largest = &mut seen.borrow_mut()[usize::from(datagram[36])];
        *largest = (*largest).max(datagram.len());
        false
    }));
    for index in 0..count {
        net.boot(index);
    }
    let start = net.now;
    assert!(net.run_till(ms(10_000), Net::is_whole), "{count} nodes form a ring");
    let formed = net.now.since(start);
    for round in 0..5 {
        for index in 0..count {
            let guarantee = if round == 3 { Guarantee::Safe } else { Guarantee::Agreed };
            net.send(index, 200 + 300 * round, guarantee);
        }
        net.run_for(ms(5));
    }
    // Ten nodes die at once, in the middle of traffic; what they leave behind is recovered.
    for index in count - 10..count {
        net.crash(index);
        net.report_lost(index);
    }
    let start = net.now;
    let rest = NodeSet::first(count - 10);
    let is_smaller = |net: &Net| net.is_whole() && net.snapshot(0).members == rest;
    assert!(net.run_till(ms(10_000), is_smaller), "the others go on");
    let went_on = net.now.since(start);
    for index in count - 10..count {
        net.boot(index);
    }
    assert!(net.run_till(ms(20_000), Net::is_whole), "the dead come back");
    net.faults = Faults::default();
    assert!(net.run_till(ms(20_000), |net| net.is_whole() && net.is_drained()));
    net.run_for(ms(500));
    check::settled(&net);
    println!(
        "{count} nodes, {loss} per mille lost: formed in {formed:?}, without ten in {went_on:?}"
    );
    for (kind, name) in NAMES {
        // 16 more if sealed.
        let bytes = sizes.borrow()[usize::from(kind)] + 16;
        println!("  largest {name}: {bytes} B");
        assert!(bytes <= DATAGRAM_BYTES_MIN, "a {name} of {bytes} bytes");
    }
}

#[test]
fn fifty_nodes_form_a_ring_under_loss() {
    large(50, 20);
}

#[test]
fn sixty_four_nodes_form_a_ring_under_loss() {
    large(64, 20);
}

#[test]
fn sixty_four_nodes_form_a_ring_without_loss() {
    large(64, 0);
}

#[test]
fn a_message_of_16_mib_arrives() {
    let mut net = Net::with_config(3, 1, |_, config| config.datagram_bytes_max = 9000);
    assert!(net.run_till(ms(1000), Net::is_whole));
    net.faults = Faults { loss: 5, ..Faults::default() };
    net.send(1, PAYLOAD_BYTES_MAX, Guarantee::Agreed).expect("taken");
    let now = net.now;
    let longer = vec![0; PAYLOAD_BYTES_MAX + 1].into();
    assert_eq!(net.ring(1).submit(now, longer, Guarantee::Agreed), Err(Full::TooLarge));
    assert!(net.run_till(ms(20_000), |net| (0..3).all(|i| !net.delivered(i).is_empty())));
    assert_eq!(net.delivered(2)[0].payload.len(), PAYLOAD_BYTES_MAX);
    check::safety(&net);
}

#[test]
fn a_ring_of_one_delivers_what_is_longer_than_it_sends_at_once() {
    for bytes in [1 << 20, PAYLOAD_BYTES_MAX] {
        let mut net = Net::with_config(1, 1, |_, config| config.datagram_bytes_max = 1400);
        assert!(net.run_till(ms(1000), Net::is_whole));
        net.send(0, bytes, Guarantee::Agreed).expect("taken");
        assert!(net.run_till(ms(1000), |net| !net.delivered(0).is_empty()), "{bytes}");
        assert_eq!(net.delivered(0)[0].payload.len(), bytes);
    }
}
