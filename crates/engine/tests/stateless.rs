//! Calls to a stateless group whose clients do not wait, and at which processes end.

mod stage;

use quorba_base::Duration;
use quorba_engine::replica::{DownReason, Style};
use quorba_engine::{ClientPeer, ConnectionId};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Completion, Endian, ExceptionKind, FtRequest, ResponseFlags, Version, context};
use stage::{CLIENT, GROUP, Got, Plan, Stage};
use std::net::Ipv4Addr;

/// Three members, none of which answers.
fn hanging() -> Stage {
    let plan = Plan { nodes: 3, style: Style::Stateless, ..Plan::default() };
    let mut s = Stage::of(plan).with_servers();
    s.held = true;
    s
}

/// A call under a name, with this argument.
fn named(request_id: u32, retention_id: i32, argument: u32) -> Vec<u8> {
    let name = FtRequest { client_id: b"me".to_vec(), retention_id, expiration_time: u64::MAX };
    let name = name.encode(Endian::Little);
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"key",
        operation: b"echo",
        contexts: &[(context::FT_REQUEST, &name)],
    };
    build::request(&head, |cdr| cdr.write_u32(argument)).bytes().to_vec()
}

/// What each node's server has and does not answer.
fn with_servers(s: &Stage) -> Vec<usize> {
    s.calls.iter().map(std::collections::VecDeque::len).collect()
}

fn pending(s: &Stage) -> usize {
    s.nodes[0].snapshot().gateway.groups[GROUP].pending
}

/// A client at the gateway of node 0.
fn open(s: &mut Stage, id: u64, address: Ipv4Addr) -> ConnectionId {
    let id = ConnectionId(id);
    s.nodes[0].handle_client_opened(s.now, id, GROUP, ClientPeer::at(address.into()));
    s.settle();
    id
}

/// It waits no more.
fn leave(s: &mut Stage, id: ConnectionId) {
    s.nodes[0].handle_client_closed(s.now, id);
    s.settle();
}

/// The process of a node's server ends with what it has, and another one comes.
fn restart(s: &mut Stage, index: usize) {
    s.calls[index].clear();
    s.nodes[index].handle_server_down(s.now, GROUP, DownReason::ServerExited);
    s.settle();
    s.nodes[index].handle_server_up(s.now, GROUP);
    s.settle();
    s.pass(Duration::from_millis(200));
}

/// Whoever has the only call loses its server; gives whether somebody had it.
fn end_where_it_is(s: &mut Stage) -> bool {
    let found = with_servers(s).iter().position(|calls| *calls > 0);
    found.into_iter().for_each(|index| restart(s, index));
    found.is_some()
}

// Each was given to one member after the other until its minute was over (styles 770110).
#[test]
fn what_nobody_waits_for_any_more_is_given_to_no_other_member() {
    let mut s = hanging();
    s.call(1);
    assert_eq!((with_servers(&s).iter().sum::<usize>(), pending(&s)), (1, 1));
    leave(&mut s, CLIENT);
    assert!(end_where_it_is(&mut s));
    assert_eq!((with_servers(&s), pending(&s)), (vec![0; 3], 0));
    // One that is waited for is.
    let other = open(&mut s, 10, Ipv4Addr::LOCALHOST);
    s.call_as(0, other, 2);
    assert!(end_where_it_is(&mut s));
    assert_eq!((with_servers(&s).iter().sum::<usize>(), pending(&s)), (1, 1));
}

#[test]
fn what_nobody_waits_for_any_more_is_not_handed_out_again_behind_a_view() {
    let mut s = hanging();
    s.call(1);
    leave(&mut s, CLIENT);
    s.calls.iter_mut().for_each(std::collections::VecDeque::clear);
    s.cut_off(&[2]);
    s.pass_until(Stage::views_are_right);
    s.pass(Duration::from_secs(1));
    assert_eq!((with_servers(&s), pending(&s)), (vec![0; 3], 0));
}

// A client that waited for less than two ends was never told, and its call ended, or kept, one
// server after the other for as long as it repeated it (styles 770110).
#[test]
fn a_named_call_that_ended_two_processes_is_executed_no_more_however_short_its_client_waits() {
    let mut s = hanging();
    for attempt in 1..=2 {
        let client = open(&mut s, 10 + u64::from(attempt), Ipv4Addr::LOCALHOST);
        s.say_as(0, client, &named(attempt, 7, 1));
        leave(&mut s, client);
        assert!(end_where_it_is(&mut s));
    }
    s.say(&named(3, 7, 1));
    let ended = |id| Got::Raised(id, ExceptionKind::CommFailure, Completion::Maybe);
    assert_eq!((s.client_got(), with_servers(&s)), (vec![ended(3)], vec![0; 3]));
    // Another name, and a stranger's call under the same one, are other calls.
    s.say(&named(4, 8, 1));
    let stranger = open(&mut s, 20, Ipv4Addr::new(10, 0, 0, 1));
    s.say_as(0, stranger, &named(5, 7, 2));
    assert_eq!((s.client_got(), pending(&s)), (vec![], 2));
    s.held = false;
    s.settle();
    s.client_got();
    // It is known for as long as groups that have an order remember replies.
    s.pass(Duration::from_secs(30));
    s.say(&named(6, 7, 1));
    assert_eq!(s.client_got(), [ended(6)]);
    s.pass(Duration::from_secs(31));
    s.say(&named(7, 7, 1));
    assert_eq!(s.client_got(), [Got::Results(7)]);
}
