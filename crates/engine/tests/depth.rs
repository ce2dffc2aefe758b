//! How many members must have a call before its caller goes on, as the caller says (Huang05 §3.4).

mod stage;

use quorba_base::Duration;
use quorba_engine::replica::DownReason;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{
    Completion, Endian, ExceptionKind, FtRequest, ResponseFlags, TransactionDepth, Version, context,
};
use stage::{CLIENT, GROUP, Got, Stage};

/// A call that so many members must have; what its caller got.
fn call(s: &mut Stage, request_id: u32, depth: u32) -> Vec<Got> {
    call_with(s, request_id, &TransactionDepth(depth).encode(Endian::Big))
}

fn call_with(s: &mut Stage, request_id: u32, context: &[u8]) -> Vec<Got> {
    call_at(s, 0, request_id, &[(context::FT_TRANSACTION_DEPTH, context)])
}

fn call_at(s: &mut Stage, node: usize, request_id: u32, contexts: &[(u32, &[u8])]) -> Vec<Got> {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"key",
        operation: b"echo",
        contexts,
    };
    s.say_as(node, CLIENT, build::request(&head, |cdr| cdr.write_u32(7)).bytes());
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
fn a_named_call_that_was_executed_before_gets_its_reply_though_fewer_members_are_in_now() {
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
    assert_eq!(call_at(&mut s, 1, 9, &with(&*first)), [Got::Results(9)], "the reply of before");
    assert_eq!(call_at(&mut s, 1, 10, &with(&*second)), [Got::User(10)], "a new one");
    // A gateway whose member is not in does not know whether it was.
    s.connect_at(2);
    let unknown = [Got::Raised(11, ExceptionKind::Transient, Completion::Maybe)];
    assert_eq!(call_at(&mut s, 2, 11, &with(&*first)), unknown);
    assert_eq!(s.executed[..2], [1, 1]);
}
