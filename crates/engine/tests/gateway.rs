//! What a client sees of the gateway, told as short stories.

mod stage;

use bytes::Bytes;
use quorba_base::Duration;
use quorba_base::Network;
use quorba_engine::{Access, ClientRule, CloseReason, ConnectionId, GatewayLimits};
use quorba_giop::{Completion, Endian, ExceptionKind, ResponseFlags, Version, build};
use stage::{GROUP, Got, Plan, STATE_OBJECT, Stage, UNAVAILABLE_WAIT, request, request_with};
use std::net::IpAddr;

#[test]
fn a_reply_waits_until_a_majority_holds_the_request() {
    let mut s = Stage::serving(3);
    // The token rests where it was used last.
    s.call(6);
    s.pass_until(|stage| stage.executed == [1, 1, 1]);
    assert_eq!(s.client_got(), [Got::Results(6)]);
    s.cut_off(&[0]);
    s.call(7);
    assert_eq!(s.executed, [2, 1, 1], "execution does not wait");
    assert_eq!(s.client_got(), [], "the reply does");
    s.heal();
    s.pass_until(|stage| !stage.got[0].is_empty());
    assert_eq!(s.client_got(), [Got::Results(7)]);
    s.pass_until(|stage| stage.executed == [2, 2, 2]);
}

#[test]
fn of_several_ordered_replies_the_client_gets_one() {
    let mut s = Stage::serving_ordered(3);
    for id in [6, 7] {
        s.call(id);
        s.pass_until(|stage| !stage.got[0].is_empty());
        s.pass(Duration::from_millis(100));
        assert_eq!(s.client_got(), [Got::Results(id)]);
    }
    assert_eq!(s.executed, [2, 2, 2]);
    assert!(s.got[1].is_empty() && s.got[2].is_empty());
    assert_eq!(s.nodes[0].snapshot().gateway.groups[GROUP].pending, 0, "nothing is left behind");
}

#[test]
fn a_request_that_only_a_cut_off_node_holds_is_never_acknowledged() {
    let mut s = Stage::serving(3);
    s.cut_off(&[0]);
    s.call(7);
    s.pass(Duration::from_secs(59));
    assert_eq!(s.client_got(), []);
    s.pass(Duration::from_secs(2));
    let outcome = Got::Raised(7, ExceptionKind::Timeout, Completion::Maybe);
    assert_eq!(s.client_got(), [outcome]);
    assert_eq!(s.executed[1..], [0, 0]);
}

#[test]
fn several_calls_of_one_connection_are_answered_under_their_own_ids() {
    let mut s = Stage::serving(1);
    s.held = true;
    for id in [3, 9, 4] {
        s.call(id);
    }
    s.held = false;
    s.settle();
    assert_eq!(s.client_got(), [Got::Results(3), Got::Results(9), Got::Results(4)]);
}

#[test]
fn heartbeats_and_locate_requests_need_no_server() {
    let mut s = Stage::serving(1);
    s.held = true;
    for (id, operation) in [(1, b"FT_HB".as_slice()), (2, b"_FT_HB")] {
        s.say(request(id, operation, b"any").bytes());
    }
    s.say(build::locate_request(Version::V1_2, Endian::Big, 3, b"any").bytes());
    assert_eq!(s.client_got(), [Got::Results(1), Got::Results(2), Got::Here(3)]);
    assert_eq!(s.executed, [0]);
}

#[test]
fn clients_cannot_move_a_groups_state() {
    let mut s = Stage::serving(1);
    let operations = [b"get_state", b"set_state".as_slice(), b"get_update", b"set_update"];
    let mut id = 0;
    // Servers may know the object under other keys than the configured one.
    for key in [STATE_OBJECT, b"poa/root/state", b""] {
        for operation in operations {
            for flags in [ResponseFlags::WithTarget, ResponseFlags::None] {
                id += 1;
                s.say(request_with(id, operation, key, flags).bytes());
                let forbidden = Got::Raised(id, ExceptionKind::NoPermission, Completion::No);
                let expected = flags != ResponseFlags::None;
                assert_eq!(s.client_got(), Vec::from_iter(expected.then_some(forbidden)));
            }
        }
    }
    assert_eq!(s.executed, [0]);
    assert!(s.nodes[0].snapshot().gateway.groups[GROUP].refused >= 24);
}

#[test]
fn a_group_may_open_an_operation_of_that_name_to_its_clients() {
    let access =
        || Access { state_operations: vec![Bytes::from_static(b"get_state")], ..Access::default() };
    let mut s = Stage::of(Plan { access: Some(access), ..Plan::default() }).with_servers();
    s.say(request(1, b"get_state", b"player").bytes());
    assert_eq!(s.client_got(), [Got::Results(1)]);
    s.say(request(2, b"set_state", b"player").bytes());
    let forbidden = Got::Raised(2, ExceptionKind::NoPermission, Completion::No);
    assert_eq!(s.client_got(), [forbidden]);
}

#[test]
fn an_operation_whose_name_ends_early_for_some_servers_reaches_none() {
    let mut s = Stage::serving(1);
    s.say(request(1, b"get_state\0", b"any").bytes());
    s.say(request(2, b"echo\0echo", b"any").bytes());
    let unreadable = |id| Got::Raised(id, ExceptionKind::Marshal, Completion::No);
    assert_eq!(s.client_got(), [unreadable(1), unreadable(2)]);
    assert_eq!(s.executed, [0]);
}

#[test]
fn who_is_not_in_the_groups_list_calls_nothing() {
    let access = || {
        let network = Network { address: "127.0.0.9".parse().unwrap(), prefix_bits: 32 };
        let operations = Some(vec![Bytes::from_static(b"balance")]);
        let nets = vec![network];
        let rule = ClientRule { networks: nets, operations, ..ClientRule::default() };
        Access { clients: Some(vec![rule]), ..Access::default() }
    };
    let mut s = Stage::of(Plan { access: Some(access), ..Plan::default() }).with_servers();
    let forbidden = |id| Got::Raised(id, ExceptionKind::NoPermission, Completion::No);
    s.say(request(1, b"balance", b"any").bytes());
    assert_eq!(s.client_got(), [forbidden(1)]);
    s.connect_from(0, IpAddr::from([127, 0, 0, 9]));
    s.say(request(2, b"balance", b"any").bytes());
    s.say(request(3, b"transfer", b"any").bytes());
    assert_eq!(s.client_got(), [Got::Results(2), forbidden(3)]);
}

#[test]
fn a_call_that_nobody_can_take_is_refused_after_its_wait_and_not_executed() {
    let mut s = Stage::new(1, GatewayLimits::default());
    s.pass(Duration::from_secs(1));
    s.connect();
    s.call(1);
    s.pass(UNAVAILABLE_WAIT / 2);
    assert_eq!(s.client_got(), [], "it may still come");
    s.pass(UNAVAILABLE_WAIT);
    assert_eq!(s.client_got(), [Got::Raised(1, ExceptionKind::Transient, Completion::No)]);
}

#[test]
fn a_oneway_is_executed_and_not_answered_and_the_next_call_waits_for_it() {
    let mut s = Stage::serving(1);
    s.held = true;
    s.say(request_with(1, b"note", b"key", ResponseFlags::None).bytes());
    s.call(2);
    assert_eq!(s.calls[0].len(), 1, "the server has one call at a time");
    s.held = false;
    s.settle();
    assert_eq!(s.executed, [2]);
    assert_eq!(s.client_got(), [Got::Results(2)]);
}

#[test]
fn a_cancelled_call_runs_on_and_its_reply_goes_nowhere() {
    let mut s = Stage::serving(1);
    s.held = true;
    s.call(1);
    s.say(build::cancel_request(Version::V1_2, Endian::Little, 1).bytes());
    s.held = false;
    s.settle();
    assert_eq!(s.executed, [1]);
    assert_eq!(s.client_got(), []);
}

#[test]
fn what_is_not_giop_is_answered_by_message_error_and_the_end() {
    let mut s = Stage::serving(1);
    s.say(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(s.client_got(), [Got::MessageError, Got::Ended(CloseReason::Malformed)]);
}

#[test]
fn a_message_that_does_not_go_on_ends_the_connection() {
    let mut s = Stage::serving(1);
    s.say(&request(1, b"echo", b"key").bytes()[..20]);
    s.pass(Duration::from_secs(4));
    assert_eq!(s.client_got(), []);
    s.pass(Duration::from_secs(3));
    assert_eq!(s.client_got(), [Got::Ended(CloseReason::TooSlow)]);
}

#[test]
fn a_client_with_too_many_open_calls_is_not_read_until_some_are_answered() {
    let limits = GatewayLimits { pending_per_connection: 2, ..GatewayLimits::default() };
    let mut s = Stage::serving_with(1, limits);
    s.held = true;
    for id in 1..=4 {
        s.call(id);
    }
    assert_eq!(s.client_got(), [Got::Paused]);
    s.held = false;
    s.settle();
    s.pass(Duration::from_millis(1));
    let got = s.client_got();
    let results: Vec<_> = got.iter().filter(|got| matches!(got, Got::Results(_))).collect();
    assert_eq!(results.len(), 4, "{got:?}");
    assert_eq!(s.executed, [4]);
}

#[test]
fn a_client_above_its_rate_is_slowed_down_and_nothing_is_lost() {
    let limits = GatewayLimits { requests_per_second_per_peer: 10, ..GatewayLimits::default() };
    let mut s = Stage::serving_with(1, limits);
    let burst: Vec<u8> =
        (1..=15).flat_map(|id| request(id, b"echo", b"key").bytes().to_vec()).collect();
    s.say(&burst);
    let early = s.client_got().iter().filter(|got| matches!(got, Got::Results(_))).count();
    assert!((10..=11).contains(&early), "{early}");
    s.pass(Duration::from_secs(2));
    let late = s.client_got().iter().filter(|got| matches!(got, Got::Results(_))).count();
    assert_eq!(early + late, 15);
}

#[test]
fn a_client_has_its_rate_and_not_twice_as_much_also_for_questions() {
    let limits = GatewayLimits { requests_per_second_per_peer: 10, ..GatewayLimits::default() };
    let call = |id| request(id, b"echo", b"key").bytes().to_vec();
    let locate =
        |id| build::locate_request(Version::V1_2, Endian::Little, id, b"any").bytes().to_vec();
    let kinds: [&dyn Fn(u32) -> Vec<u8>; 2] = [&call, &locate];
    for ask in kinds {
        let mut s = Stage::serving_with(1, limits);
        s.say(&(1..=100).flat_map(ask).collect::<Vec<u8>>());
        s.pass(Duration::from_secs(2));
        let is_answer = |got: &&Got| matches!(got, Got::Results(_) | Got::Here(_));
        let answers = s.client_got().iter().filter(is_answer).count();
        assert!((30..=31).contains(&answers), "{answers}: a second at once, then two seconds");
    }
}

#[test]
fn a_connection_beyond_the_limit_is_told_so_in_the_answer_to_its_first_request() {
    let limits = GatewayLimits { connections: 0, ..GatewayLimits::default() };
    let mut s = Stage::serving_with(1, limits);
    assert_eq!(s.client_got(), [], "it has not asked for anything");
    s.say(build::locate_request(Version::V1_2, Endian::Little, 3, b"any").bytes());
    s.call(4);
    let refused = Got::Raised(4, ExceptionKind::Transient, Completion::No);
    let goodbye = [Got::Here(3), refused, Got::Close, Got::Ended(CloseReason::TooMany)];
    assert_eq!(s.client_got(), goodbye);
    assert_eq!(s.executed, [0]);
    s.connect();
    s.pass(Duration::from_secs(10));
    assert_eq!(s.client_got(), [Got::Ended(CloseReason::TooMany)], "it does not ask for long");
}

#[test]
fn a_node_that_stops_answers_open_calls_and_sends_clients_elsewhere() {
    let mut s = Stage::serving(1);
    s.held = true;
    s.call(1);
    s.nodes[0].handle_stop(s.now);
    s.settle();
    assert_eq!(s.client_got(), [], "its call is still open");
    assert!(!s.nodes[0].is_drained());
    s.held = false;
    s.settle();
    let goodbye = [Got::Results(1), Got::Close, Got::Ended(CloseReason::Stopping)];
    assert_eq!(s.client_got(), goodbye);
    assert!(s.nodes[0].is_drained());
}

#[test]
fn a_big_endian_client_is_sent_elsewhere_without_words() {
    let mut s = Stage::serving(1);
    s.say(build::locate_request(Version::V1_2, Endian::Big, 1, b"any").bytes());
    s.nodes[0].handle_stop(s.now);
    s.settle();
    assert_eq!(s.client_got(), [Got::Here(1), Got::Ended(CloseReason::Stopping)]);
}

#[test]
fn an_idle_connection_is_closed_by_the_rules() {
    let limits = GatewayLimits { idle: Duration::from_secs(100), ..GatewayLimits::default() };
    let mut s = Stage::serving_with(1, limits);
    s.call(1);
    assert_eq!(s.client_got(), [Got::Results(1)]);
    s.pass(Duration::from_secs(90));
    assert_eq!(s.client_got(), []);
    s.pass(Duration::from_secs(40));
    assert_eq!(s.client_got(), [Got::Close, Got::Ended(CloseReason::Idle)]);
}

/// Nobody who waits for something, or has just spoken, is asked to go.
#[test]
fn where_all_connections_are_taken_the_client_that_is_silent_for_longest_makes_room() {
    let limits = GatewayLimits { connections: 2, ..GatewayLimits::default() };
    let mut s = Stage::serving_with(1, limits);
    let [second, third, fourth] = [70, 71, 72].map(ConnectionId);
    let open = |s: &mut Stage, id| {
        let peer = IpAddr::from([127, 0, 0, 1]);
        s.nodes[0].handle_client_opened(s.now, id, GROUP, peer);
        s.settle();
    };
    open(&mut s, second);
    s.pass(Duration::from_secs(2));
    s.call(1);
    assert_eq!(s.client_got(), [Got::Results(1)]);
    open(&mut s, third);
    assert!(s.client_got().contains(&Got::Ended(CloseReason::Idle)));
    s.held = true;
    s.call_as(0, third, 2);
    s.call(3);
    s.pass(Duration::from_secs(2));
    open(&mut s, fourth);
    assert_eq!(s.nodes[0].snapshot().gateway.groups[GROUP].refused, 1, "both are waited for");
    s.held = false;
    s.pass(Duration::from_secs(2));
    let got = s.client_got();
    assert!(got.contains(&Got::Results(2)) && got.contains(&Got::Results(3)), "{got:?}");
}

#[test]
fn nobody_makes_room_for_an_address_that_has_its_share() {
    let limits =
        GatewayLimits { connections: 1, connections_per_peer: 1, ..GatewayLimits::default() };
    let mut s = Stage::serving_with(1, limits);
    s.pass(Duration::from_secs(2));
    let open = |s: &mut Stage, id, last: u8| {
        let peer = IpAddr::from([127, 0, 0, last]);
        s.nodes[0].handle_client_opened(s.now, ConnectionId(id), GROUP, peer);
        s.settle();
    };
    open(&mut s, 70, 1);
    assert!(!s.client_got().contains(&Got::Ended(CloseReason::Idle)));
    open(&mut s, 71, 2);
    assert!(s.client_got().contains(&Got::Ended(CloseReason::Idle)));
}
