//! Flow control: how many new packets a visit of the token may send.

use super::*;
use crate::config::Boot;
use crate::ids::Guarantee;
use crate::operational::Operational;
use crate::wire::{MemberState, OldState};

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

/// A ring of three, of which this node is the first.
fn ring() -> (Core, Circuit) {
    let config = crate::fuzzing::config(node(0), NodeSet::first(3));
    let boot = Boot { incarnation: 10, salt: [3; 16], ring_seq_min: 0 };
    let core = Core::new(config, boot, Instant::ZERO);
    let old = Some(OldState { ring: RingId { seq: 4, representative: node(0) }, ..old() });
    let commit = CommitToken {
        ring: RingId { seq: 5, representative: node(0) },
        hop: 3,
        rotation_us: 0,
        members: NodeSet::first(3),
        states: alloc::vec![Some(MemberState { incarnation: 10, old }); 3],
    };
    let circuit = Circuit::new(&core, &commit);
    (core, circuit)
}

fn old() -> OldState {
    let ring = RingId { seq: 4, representative: node(0) };
    OldState { ring, delivered: 0, aru: 0, high: 0, obligation: NodeSet::EMPTY }
}

#[test]
fn no_more_is_sent_than_may_be_unstable() {
    let (core, mut circuit) = ring();
    let most = core.limits.unstable_packets;
    let visit = u64::from(core.limits.visit_packets);
    let mut token = circuit.first_token();
    let mut allowed = |circuit: &Circuit, seq: u64| {
        token.seq = seq;
        u64::from(circuit.allowance(&core, &token, 10_000, 0))
    };
    assert_eq!(allowed(&circuit, 0), visit);
    assert_eq!(allowed(&circuit, most - visit), visit);
    assert_eq!(allowed(&circuit, most - 3), 3);
    assert_eq!(allowed(&circuit, most), 0);
    assert_eq!(allowed(&circuit, most + 1), 0, "a new ring may begin with more");
    // It is the slowest member that counts.
    circuit.arus[0] = most;
    circuit.arus[1] = most;
    assert_eq!(allowed(&circuit, most), 0);
    circuit.arus[2] = 5;
    assert_eq!(allowed(&circuit, most), 5);
    assert_eq!(circuit.allowance(&core, &token, 10_000, 4), 1, "repetitions count");
}

#[test]
fn what_one_visit_and_one_rotation_send_is_bounded_and_shared() {
    let (core, circuit) = ring();
    let (window, visit) = (core.limits.window_packets, core.limits.visit_packets);
    // What others have sent and have still to send; what this node has, and has repeated.
    for (sent, others, own, repeated, expected) in [
        (0, 0, 10_000, 0, visit),
        (0, 0, 10_000, visit + 1, 0),
        (window - 2, 0, 10_000, 0, 2),
        (window, 0, 10_000, 0, 0),
        (window + 1, 0, 10_000, 0, 0),
        (0, 30_000, 10_000, 0, window / 4),
        (0, 1_000_000, 1, 0, 1),
    ] {
        let mut token = circuit.first_token();
        (token.sent, token.backlog) = (sent, others);
        let allowed = circuit.allowance(&core, &token, own, repeated);
        assert_eq!(allowed, expected, "{sent} {others} {own} {repeated}");
    }
}

/// The whole of it: one member receives nothing for long.
#[test]
fn a_member_that_receives_nothing_stops_the_flow() {
    let (mut core, mut circuit) = ring();
    let most = core.limits.unstable_packets;
    let payload = bytes::Bytes::from(alloc::vec![7; core.limits.body_bytes / 2 + 1]);
    for _ in 0..most * 2 {
        core.queue.submit(payload.clone(), Guarantee::Agreed).expect("room");
    }
    circuit.arus[1] = most;
    let mut token = circuit.first_token();
    let mut operational = Operational::new(&core, circuit);
    for _ in 0..most {
        token.sent = 0;
        token.backlog = 0;
        operational.circuit.my_sent = 0;
        operational.circuit.my_backlog = 0;
        operational.visit(&mut core, Box::new(token.clone()));
        token.seq = operational.circuit.log.high();
    }
    assert_eq!(operational.circuit.log.high(), most);
    assert_eq!(core.counters.packets_sent, most);
}

/// It is reached by the token, and has nothing of what was sent.
#[test]
fn a_member_is_given_two_seconds_to_receive_something() {
    let (mut core, circuit) = ring();
    let mut token = circuit.first_token();
    let mut operational = Operational::new(&core, circuit);
    let mut visit = |core: &mut Core, at_ms: u64, aru: u64| {
        core.now = Instant::ZERO + Duration::from_millis(at_ms);
        token.hop += 3;
        (token.seq, token.arus[0], token.arus[1], token.arus[2]) = (9, 9, 9, aru);
        operational.on_token(core, token.clone())
    };
    for at_ms in 1..=2001 {
        assert_eq!(visit(&mut core, at_ms, 0), None, "{at_ms} ms");
    }
    // It has received something, and its time begins anew.
    assert_eq!(visit(&mut core, 2001, 1), None);
    // A few visits are no sign, however long they take.
    for visits in 1..=20 {
        assert_eq!(visit(&mut core, 10_000 + visits, 1), None, "{visits} visits");
    }
    let doubt = visit(&mut core, 20_000, 1);
    assert_eq!(doubt, Some(crate::output::GatherReason::FailToReceive(node(2))));
}
