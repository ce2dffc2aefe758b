//! How much of one address is let into the order, whatever it has asked for.

use super::stand::*;
use super::*;
use alloc::vec;
use bytes::Bytes;
use core::net::IpAddr;
use quorba_giop::ReplyStatus;

const CONNECTIONS: u64 = 12;
const CALLS: u32 = 60;
const REPLY_BYTES: usize = 4 << 20;
/// What may be behind the order, and the reply that broke the limit.
const INSIDE_BYTES: usize = (16 << 20) + REPLY_BYTES;

fn large_reply() -> Bytes {
    let body = vec![0; REPLY_BYTES];
    let (version, endian) = (Version::V1_2, Endian::Little);
    build::reply(version, endian, 1, ReplyStatus::NoException, |out| out.write_raw(&body))
        .bytes()
        .clone()
}

/// On a busy node the order takes the longer the more is behind it, and what nobody has seen the
/// end of may take any time, and any bytes at all members.
#[test]
fn a_flood_of_calls_with_large_replies_leaves_room_for_a_call_of_another_address() {
    let limits = GatewayLimits {
        connections_per_peer: 100,
        pending_per_connection: 64,
        ..GatewayLimits::default()
    };
    let mut stand = Stand::new(limits);
    for id in 1..=CONNECTIONS {
        stand.open(ConnectionId(id), ACTIVE, ADDRESS);
        (0..CALLS).for_each(|call_id| stand.receive(ConnectionId(id), &call(call_id)));
    }
    let inside = |stand: &Stand| stand.gateway.groups[ACTIVE].window.holdings().0 as usize;
    for _ in 0..10 {
        stand.submit();
        stand.pass(SECOND / 10, Availability::Ready);
        stand.hold();
    }
    assert!(inside(&stand) <= 4, "{} calls behind the order, and none has ended", inside(&stand));
    let reply = large_reply();
    for _ in 0..8 {
        stand.pass(SECOND / 10, Availability::Ready);
        stand.execute_with(|_| Some(reply.clone()));
        stand.submit();
        stand.hold();
        let bytes = inside(&stand) * REPLY_BYTES;
        assert!(bytes <= INSIDE_BYTES, "{} large replies to come", inside(&stand));
    }
    assert!(inside(&stand) > 0, "it goes on");
    let honest = ConnectionId(99);
    stand.open(honest, ACTIVE, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9)));
    stand.receive(honest, &call(1));
    let (group, number) = stand.holdings().0.connections[&honest].pending[&1];
    let has_turn = |stand: &Stand| {
        let request = stand.gateway.groups[group].book.get(number);
        request.is_some_and(|request| request.entered.is_some())
    };
    for _ in 0..2 {
        stand.execute_with(|_| Some(reply.clone()));
        stand.submit();
    }
    assert!(has_turn(&stand), "it waits for one turn of the other address");
}
