//! How many members must have a call before its caller goes on, as the caller says (Huang05 §3.4).

mod stage;

use quorba_base::{Duration, NodeSet};
use quorba_engine::replica::{DownReason, Replication};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{
    Completion, Endian, ExceptionKind, FtRequest, Message, ResponseFlags, TransactionDepth,
    Version, context,
};
use stage::{CLIENT, GROUP, Got, Plan, Server, Stage, id};

/// A call that so many members must have; what its caller got.
fn call(s: &mut Stage, request_id: u32, depth: u32) -> Vec<Got> {
    call_with(s, request_id, &TransactionDepth(depth).encode(Endian::Big))
}

fn call_with(s: &mut Stage, request_id: u32, context: &[u8]) -> Vec<Got> {
    call_at(s, 0, request_id, &[(context::FT_TRANSACTION_DEPTH, context)])
}

fn call_at(s: &mut Stage, node: usize, request_id: u32, contexts: &[(u32, &[u8])]) -> Vec<Got> {
    s.say_as(node, CLIENT, request_of(request_id, contexts).bytes());
    s.pass_until(|stage| !stage.got[node].is_empty());
    s.pass(Duration::from_millis(50));
    s.got_at(node)
}

#[test]
fn a_depth_that_the_members_have_is_met_and_a_deeper_one_is_refused_and_never_executed() {
    let mut s = Stage::serving(3);
    for depth in 1..=3 {
        assert_eq!(call(&mut s, depth, depth), [Got::Results(depth)]);
    }
    assert_eq!(call(&mut s, 4, 4), [Got::User(4)], "there are three");
    s.nodes[2].handle_server_down(s.now, GROUP, DownReason::ServerExited);
    s.settle();
    s.pass(Duration::from_millis(100));
    assert_eq!(call(&mut s, 5, 3), [Got::User(5)], "two are in");
    assert_eq!(call(&mut s, 6, 2), [Got::Results(6)]);
    s.pass_until(|stage| stage.executed[..2] == [4, 4]);
    assert_eq!(s.executed[2], 3);
}

#[test]
fn what_is_no_depth_is_left_unread() {
    let mut s = Stage::serving(3);
    let odd: [&[u8]; 6] = [
        &[],
        &[0],
        &[0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
        &[0, 0, 0, 0, 0, 0, 0, 9, 0],
        &[7; 64],
    ];
    for (request_id, context) in (1..).zip(odd) {
        assert_eq!(call_with(&mut s, request_id, context), [Got::Results(request_id)]);
    }
}

#[test]
fn a_node_that_goes_away_meanwhile_keeps_nobody_waiting_and_is_not_said_to_have_it() {
    let mut s = Stage::serving(3);
    s.cut_off(&[2]);
    let short = [Got::Raised(1, ExceptionKind::Transient, Completion::Maybe)];
    assert_eq!(call(&mut s, 1, 3), short, "both that are left have it, and three were wanted");
    assert_eq!(s.executed[..2], [1, 1]);
    assert_eq!(call(&mut s, 2, 3), [Got::User(2)]);
}

#[test]
fn a_named_call_is_answered_again_if_so_many_members_have_it_as_are_wanted_now() {
    let mut s = Stage::serving(3);
    s.connect_at(1);
    let depth = TransactionDepth(3).encode(Endian::Big);
    let named = |retention_id| {
        let client_id = b"client".to_vec();
        FtRequest { client_id, retention_id, expiration_time: 0 }.encode(Endian::Big)
    };
    let (first, second) = (named(1), named(2));
    let with = |name| [(context::FT_REQUEST, name), (context::FT_TRANSACTION_DEPTH, &*depth)];
    assert_eq!(call_at(&mut s, 0, 1, &with(&*first)), [Got::Results(1)]);
    s.nodes[2].handle_server_down(s.now, GROUP, DownReason::ServerExited);
    s.settle();
    s.pass(Duration::from_millis(100));
    // The gateway that had it may have ended before so many had it: nobody knows.
    let short = [Got::Raised(8, ExceptionKind::Transient, Completion::Maybe)];
    assert_eq!(call_at(&mut s, 1, 8, &with(&*first)), short);
    let two = TransactionDepth(2).encode(Endian::Big);
    let less = [(context::FT_REQUEST, &*first), (context::FT_TRANSACTION_DEPTH, &*two)];
    assert_eq!(call_at(&mut s, 1, 9, &less), [Got::Results(9)], "the reply of before");
    assert_eq!(call_at(&mut s, 1, 10, &with(&*second)), [Got::User(10)], "a new one");
    // A gateway whose member is not in does not know whether it was.
    s.connect_at(2);
    let unknown = [Got::Raised(11, ExceptionKind::Transient, Completion::Maybe)];
    assert_eq!(call_at(&mut s, 2, 11, &with(&*first)), unknown);
    assert_eq!(s.executed[..2], [1, 1]);
}

/// Three nodes whose group counts members that have executed a call.
fn counting(replication: Replication, depth: u32) -> Stage {
    Stage::of(Plan { nodes: 3, replication, depth, ..Plan::default() }).with_servers().linked()
}

/// Calls without waiting for the reply.
fn begin(s: &mut Stage, request_id: u32, contexts: &[(u32, &[u8])]) {
    let message = request_of(request_id, contexts);
    s.say_as(0, CLIENT, message.bytes());
    go_on(s);
}

fn go_on(s: &mut Stage) {
    s.settle();
    s.pass(Duration::from_millis(5));
}

fn request_of(request_id: u32, contexts: &[(u32, &[u8])]) -> Message {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"key",
        operation: b"echo",
        contexts,
    };
    build::request(&head, |cdr| cdr.write_u32(request_id))
}

#[test]
fn in_parallel_a_reply_waits_until_so_many_members_have_executed_its_call() {
    let mut s = counting(Replication::Parallel, 0);
    let depth = |depth| TransactionDepth(depth).encode(Endian::Big);
    s.waits = NodeSet::EMPTY.with(id(1)).with(id(2));
    begin(&mut s, 1, &[]);
    assert_eq!(s.got_at(0), [Got::Results(1)], "nobody asks for more");
    begin(&mut s, 2, &[(context::FT_TRANSACTION_DEPTH, &depth(2))]);
    assert_eq!(s.got_at(0), [], "one has executed it");
    begin(&mut s, 3, &[(context::FT_TRANSACTION_DEPTH, &depth(1))]);
    assert_eq!(s.got_at(0), [Got::Results(3)], "others do not wait for that");
    begin(&mut s, 4, &[(context::FT_TRANSACTION_DEPTH, &depth(3))]);
    s.waits.remove(id(2));
    go_on(&mut s);
    assert_eq!(s.got_at(0), [Got::Results(2)], "two have, and any two count");
    s.waits.remove(id(1));
    go_on(&mut s);
    assert_eq!(s.got_at(0), [Got::Results(4)]);
    assert_eq!(s.executed, [4, 4, 4]);
}

#[test]
fn in_a_chain_each_member_begins_when_the_one_in_front_is_through() {
    let mut s = counting(Replication::Chain, 0);
    let depth = |depth| TransactionDepth(depth).encode(Endian::Big);
    // The second one holds up the third one, which could go on.
    s.waits.insert(id(1));
    begin(&mut s, 1, &[(context::FT_TRANSACTION_DEPTH, &depth(2))]);
    assert_eq!((s.got_at(0), &s.executed[..]), (vec![], &[1, 0, 0][..]));
    s.waits.remove(id(1));
    go_on(&mut s);
    assert_eq!((s.got_at(0), &s.executed[..]), (vec![Got::Results(1)], &[1, 1, 1][..]));
    // Beyond the depth that is asked for nobody is waited for.
    s.waits.insert(id(2));
    begin(&mut s, 2, &[(context::FT_TRANSACTION_DEPTH, &depth(2))]);
    assert_eq!((s.got_at(0), &s.executed[..]), (vec![Got::Results(2)], &[2, 2, 1][..]));
    // The first one holds up all.
    s.waits = NodeSet::EMPTY.with(id(0));
    begin(&mut s, 3, &[]);
    assert_eq!((s.got_at(0), &s.executed[..]), (vec![], &[2, 2, 2][..]));
    s.waits = NodeSet::EMPTY;
    go_on(&mut s);
    assert_eq!((s.got_at(0), &s.executed[..]), (vec![Got::Results(3)], &[3, 3, 3][..]));
}

#[test]
fn who_goes_away_before_it_has_executed_a_call_is_not_waited_for_and_not_counted() {
    for replication in [Replication::Parallel, Replication::Chain] {
        let mut s = counting(replication, 3);
        s.waits.insert(id(1));
        begin(&mut s, 1, &[]);
        assert_eq!(s.got_at(0), []);
        s.nodes[1].handle_server_down(s.now, GROUP, DownReason::ServerExited);
        s.settle();
        s.pass_until(|s| !s.got[0].is_empty());
        let short = Got::Raised(1, ExceptionKind::Transient, Completion::Maybe);
        assert_eq!(s.got_at(0), [short], "two have it, and three were wanted");
        s.pass_until(|s| s.executed[2] == 1);
        // Who knows of no depth is told so in words that it knows.
        begin(&mut s, 2, &[]);
        assert_eq!(s.got_at(0), [Got::Raised(2, ExceptionKind::Transient, Completion::No)]);
        // A client that asks for less is served.
        let two = TransactionDepth(2).encode(Endian::Big);
        begin(&mut s, 3, &[(context::FT_TRANSACTION_DEPTH, &two)]);
        assert_eq!(s.got_at(0), [Got::Results(3)]);
        assert_eq!(s.executed, [2, 0, 2]);
    }
}

#[test]
fn a_node_without_a_member_is_told_how_far_members_are() {
    for replication in [Replication::Parallel, Replication::Chain] {
        let plan = Plan { nodes: 4, members: Some(3), replication, depth: 3, ..Plan::default() };
        let mut s = Stage::of(plan).with_servers().linked();
        s.connect_at(3);
        s.waits.insert(id(2));
        let message = request_of(1, &[]);
        s.say_as(3, CLIENT, message.bytes());
        go_on(&mut s);
        assert_eq!((s.got_at(3), &s.executed[..]), (vec![], &[1, 1, 0, 0][..]));
        s.waits = NodeSet::EMPTY;
        go_on(&mut s);
        assert_eq!(s.got_at(3), [Got::Results(1)]);
    }
}

#[test]
fn nobody_in_a_chain_waits_for_a_member_that_is_on_its_way_in() {
    let mut s = counting(Replication::Chain, 2);
    begin(&mut s, 1, &[]);
    assert_eq!(s.got_at(0), [Got::Results(1)]);
    s.nodes[1].handle_server_down(s.now, GROUP, DownReason::ServerExited);
    go_on(&mut s);
    // Its new server does not take its state yet.
    s.waits.insert(id(1));
    s.servers[1][0] = Server::default();
    s.nodes[1].handle_server_up(s.now, GROUP);
    s.pass_until(|s| s.local(GROUP, 1) == Some("restoring state"));
    for number in 2..5 {
        begin(&mut s, number, &[]);
        assert_eq!(s.got_at(0), [Got::Results(number)]);
    }
    s.waits = NodeSet::EMPTY;
    go_on(&mut s);
    s.pass_until(|s| s.local(GROUP, 1) == Some("serving"));
    let three = TransactionDepth(3).encode(Endian::Big);
    begin(&mut s, 5, &[(context::FT_TRANSACTION_DEPTH, &three)]);
    assert_eq!(s.got_at(0), [Got::Results(5)]);
    assert_eq!(s.logs(GROUP), [[1, 2, 3, 4, 5]; 3]);
}
