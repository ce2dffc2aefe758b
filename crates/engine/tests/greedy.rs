//! Clients that ask for more than they take, or than their share: what they and others see.

mod stage;

use quorba_base::Duration;
use quorba_engine::{CloseReason, ConnectionId, GatewayLimits};
use quorba_giop::{Completion, Endian, ExceptionKind, ResponseFlags, Version, build};
use stage::{CLIENT, GROUP, Got, Plan, Stage, request, request_with};
use std::net::{IpAddr, Ipv4Addr};

const OTHER: ConnectionId = ConnectionId(20);
const MIB: usize = 1 << 20;

fn open(s: &mut Stage, id: ConnectionId, last: u8) {
    let peer = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    s.nodes[0].handle_client_opened(s.now, id, GROUP, peer);
    s.settle();
}

fn calls(ids: core::ops::Range<u32>, flags: ResponseFlags) -> Vec<u8> {
    ids.flat_map(|id| request_with(id, b"echo", b"key", flags).bytes().to_vec()).collect()
}

fn unsent(s: &mut Stage, id: ConnectionId, bytes: usize) {
    s.nodes[0].handle_client_unsent(s.now, id, bytes);
    s.settle();
}

fn pending(s: &Stage) -> usize {
    s.nodes[0].snapshot().gateway.groups[GROUP].pending
}

#[test]
fn oneways_and_cancelled_calls_count_until_they_are_executed() {
    let limits = GatewayLimits { pending_per_connection: 4, ..GatewayLimits::default() };
    for mut s in [
        Stage::serving_with(1, limits),
        // The reply takes the way through the order.
        Stage::of(Plan {
            nodes: 3,
            limits,
            reply: quorba_engine::replica::ReplyPath::Ordered,
            ..Plan::default()
        })
        .with_servers(),
    ] {
        s.held = true;
        s.say(&calls(1..101, ResponseFlags::None));
        assert_eq!((s.client_got(), pending(&s)), (vec![Got::Paused], 4));
        s.held = false;
        s.settle();
        s.pass_until(|stage| stage.executed[0] == 100);
        s.pass_until(|stage| pending(stage) == 0);
        assert_eq!(s.client_got().last(), Some(&Got::Resumed));
        s.held = true;
        let cancel = |id| build::cancel_request(Version::V1_2, Endian::Little, id);
        for id in 200..300 {
            s.say(&[request(id, b"echo", b"key").bytes().as_ref(), cancel(id).bytes()].concat());
        }
        s.pass(Duration::from_secs(1));
        assert_eq!((s.client_got(), pending(&s)), (vec![Got::Paused], 4));
    }
}

#[test]
fn who_leaves_its_replies_is_not_read_and_what_it_has_asked_is_not_ordered() {
    let mut s = Stage::serving(1);
    unsent(&mut s, CLIENT, 2 * MIB);
    assert_eq!(s.client_got(), [Got::Paused]);
    s.say(&calls(1..5, ResponseFlags::WithTarget));
    assert_eq!((s.executed[0], s.client_got()), (0, vec![]));
    open(&mut s, OTHER, 1);
    s.call_as(0, OTHER, 9);
    assert_eq!(s.client_got(), [Got::Results(9)], "another connection of the same address");
    unsent(&mut s, CLIENT, 1000);
    assert_eq!(s.executed[0], 5);
    s.held = true;
    s.say(&calls(10..20, ResponseFlags::WithTarget));
    unsent(&mut s, CLIENT, 2 * MIB);
    s.held = false;
    s.settle();
    let executed = s.executed[0];
    assert!(executed < 15, "{executed}: no more than what was ordered before");
    unsent(&mut s, CLIENT, 0);
    assert_eq!(s.executed[0], 15);
    unsent(&mut s, CLIENT, 1);
    s.client_got();
    s.pass(Duration::from_secs(70));
    assert_eq!(s.client_got(), [Got::Ended(CloseReason::TooSlow)], "it takes nothing at all");
}

#[test]
fn an_address_that_holds_too_much_loses_the_connection_that_holds_the_most() {
    let mut s = Stage::serving(1);
    open(&mut s, OTHER, 1);
    unsent(&mut s, CLIENT, 30 * MIB);
    unsent(&mut s, OTHER, 20 * MIB);
    let ended = |s: &mut Stage| s.client_got().contains(&Got::Ended(CloseReason::OverBudget));
    assert!(!ended(&mut s));
    unsent(&mut s, OTHER, 40 * MIB);
    assert!(ended(&mut s));
    assert_eq!(s.nodes[0].snapshot().gateway.held_bytes, 30 * MIB);
}

#[test]
fn a_call_from_another_address_does_not_wait_for_a_backlog() {
    let mut s = Stage::serving(3);
    s.held = true;
    for id in 2..10 {
        open(&mut s, ConnectionId(100 + id), 1);
        s.say_as(0, ConnectionId(100 + id), &calls(1..60, ResponseFlags::WithTarget));
    }
    open(&mut s, OTHER, 2);
    s.call_as(0, OTHER, 999);
    s.held = false;
    s.settle();
    s.pass_until(|stage| stage.executed.iter().all(|executed| *executed == 8 * 59 + 1));
    let place = s.logs(GROUP)[0].iter().position(|id| *id == 999).expect("executed");
    assert!(place <= 8, "{place} calls came first");
}

#[test]
fn calls_that_nobody_was_given_are_forgotten_with_their_client() {
    let mut s = Stage::serving(1);
    s.held = true;
    s.say(&calls(1..60, ResponseFlags::WithTarget));
    s.nodes[0].handle_client_closed(s.now, CLIENT);
    s.settle();
    s.held = false;
    s.settle();
    let executed = s.executed[0];
    assert!((1..10).contains(&executed), "{executed}");
    assert_eq!((pending(&s), s.nodes[0].snapshot().gateway.held_bytes), (0, 0));
}

#[test]
fn a_call_that_had_no_turn_in_its_time_is_refused_and_not_executed() {
    let mut s = Stage::serving(1);
    s.held = true;
    s.say(&calls(1..60, ResponseFlags::WithTarget));
    s.pass(Duration::from_secs(61));
    let got = s.client_got();
    let not_executed = |id| Got::Raised(id, ExceptionKind::Transient, Completion::No);
    let in_doubt = |id| Got::Raised(id, ExceptionKind::Timeout, Completion::Maybe);
    assert!(got.contains(&in_doubt(1)) && got.contains(&not_executed(59)), "{got:?}");
}

#[test]
fn a_client_that_has_ended_its_sending_gets_its_replies_and_then_the_end() {
    let mut s = Stage::serving(1);
    s.held = true;
    s.say(&calls(1..4, ResponseFlags::WithTarget));
    s.nodes[0].handle_client_half_closed(s.now, CLIENT);
    s.settle();
    assert_eq!(s.client_got(), []);
    s.held = false;
    s.settle();
    let all = [1, 2, 3].map(Got::Results).into_iter();
    let all: Vec<Got> = all.chain([Got::Ended(CloseReason::ByClient)]).collect();
    assert_eq!(s.client_got(), all);
    s.connect();
    s.nodes[0].handle_client_half_closed(s.now, CLIENT);
    s.settle();
    assert_eq!(s.client_got(), [Got::Ended(CloseReason::ByClient)], "it was owed nothing");
}

#[test]
fn a_message_must_go_on_at_its_rate_however_much_came_before() {
    let mut s = Stage::serving(1);
    let mut long = request(1, b"echo", b"key").bytes().to_vec();
    long[8..12].copy_from_slice(&(8u32 << 20).to_le_bytes());
    long.resize(4 << 20, 7);
    s.say(&long);
    for _ in 0..20 {
        s.pass(Duration::from_secs(1));
        s.say(&[7; 100]);
    }
    assert_eq!(s.client_got(), [Got::Ended(CloseReason::TooSlow)]);
}

#[test]
fn a_request_above_the_limit_is_refused_and_the_next_one_served() {
    let limits = GatewayLimits { message_bytes: 10_000, ..GatewayLimits::default() };
    let mut s = Stage::serving_with(1, limits);
    let mut long = request(1, b"echo", b"key").bytes().to_vec();
    long[8..12].copy_from_slice(&(50_000u32 - 12).to_le_bytes());
    long.resize(50_000, 7);
    let stream = [&long[..], request(2, b"echo", b"key").bytes()].concat();
    stream.chunks(7000).for_each(|piece| s.say(piece));
    let refused = Got::Raised(1, ExceptionKind::ImpLimit, Completion::No);
    assert_eq!(s.client_got(), [refused, Got::Results(2)]);
}

#[test]
fn when_the_node_is_full_who_holds_the_most_is_refused_and_others_are_served() {
    let limits = GatewayLimits {
        buffered_bytes: MIB,
        buffered_bytes_per_peer: MIB,
        buffered_bytes_per_group: MIB,
        message_bytes: MIB / 2,
        ..GatewayLimits::default()
    };
    let mut s = Stage::serving_with(1, limits);
    s.held = true;
    let mut long = request(1, b"echo", b"key").bytes().to_vec();
    long.resize(100_000, 7);
    long[8..12].copy_from_slice(&(100_000u32 - 12).to_le_bytes());
    for id in 0..30u32 {
        long[12..16].copy_from_slice(&id.to_le_bytes());
        open(&mut s, ConnectionId(100 + u64::from(id)), 1);
        s.say_as(0, ConnectionId(100 + u64::from(id)), &long);
    }
    assert!(s.nodes[0].snapshot().gateway.held_bytes <= MIB + 100_000);
    open(&mut s, OTHER, 2);
    s.call_as(0, OTHER, 999);
    s.held = false;
    s.settle();
    assert!(s.client_got().contains(&Got::Results(999)));
}

#[test]
fn members_forget_long_replies_that_nobody_will_ask_for_again_without_another_request() {
    let mut s = Stage::serving(3);
    for node in &mut s.servers {
        node[GROUP.0 as usize].filler = MIB;
    }
    let retained = |s: &Stage| -> Vec<usize> {
        s.nodes.iter().map(|node| node.snapshot().groups[GROUP].retained_bytes).collect()
    };
    s.say(&calls(1..4, ResponseFlags::WithTarget));
    s.pass_until(|stage| stage.executed == [3, 3, 3]);
    assert!(retained(&s).iter().all(|bytes| *bytes >= MIB), "{:?}", retained(&s));
    s.pass(Duration::from_secs(4));
    assert_eq!(retained(&s), [0, 0, 0]);
}
