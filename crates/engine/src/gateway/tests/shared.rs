//! The port that groups share, and what is left of a group that is deleted.

use super::*;
use alloc::vec::Vec;
use quorba_giop::{Message, MinorCode, ReplyStatus, shared_key};
use quorba_replica::RequestEnvelope;

const SHARED: ConnectionId = ConnectionId(9);

fn asked(key: &[u8], request_id: u32) -> Message {
    asked_for(b"echo", key, request_id)
}

fn asked_for(operation: &[u8], key: &[u8], request_id: u32) -> Message {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key: key,
        operation,
        contexts: &[],
    };
    build::request(&head, |_| {})
}

fn next(gateway: &mut Gateway) -> Option<Submission> {
    gateway.next_submission(|_| Availability::Ready, |_| Backlog::default())
}

/// What the client of the shared port was sent: exceptions, with their minor codes.
fn told(gateway: &mut Gateway) -> Vec<Result<(), MinorCode>> {
    let sent = gateway.out.drain(..).filter_map(|output| match output {
        Output::ClientSend { bytes, .. } => Message::from_bytes(bytes).ok(),
        _ => None,
    });
    let answer = |message: Message| match message.parse() {
        Ok(Body::Reply(reply)) if reply.status() == ReplyStatus::NoException => Ok(()),
        Ok(Body::Reply(reply)) => {
            let exception = reply.system_exception().expect("it is one").expect("it is whole");
            let code = MinorCode::ALL.iter().find(|code| code.number() == exception.minor & 0xfff);
            Err(*code.expect("it is ours"))
        }
        other => panic!("{other:?}"),
    };
    sent.map(answer).collect()
}

fn opened() -> Gateway {
    let mut gateway = gateway(2, GatewayLimits::default());
    gateway.opened(NOW, SHARED, SHARED_PORT, ClientPeer::at(Ipv4Addr::LOCALHOST.into()));
    gateway
}

#[test]
fn requests_of_one_connection_go_to_the_groups_that_their_keys_name() {
    let mut gateway = opened();
    for (request_id, name) in [(1, "0"), (2, "1"), (3, "0")] {
        let message = asked(&shared_key(name, b"account/7"), request_id);
        gateway.received(NOW, SHARED, message.bytes());
    }
    let mut groups = Vec::new();
    while let Some(submission) = next(&mut gateway) {
        groups.push(submission.group.0);
        let envelope = RequestEnvelope::from_payload(submission.payload).expect("a request");
        let message = Message::from_bytes(envelope.giop).expect("a message");
        let Ok(Body::Request(request)) = message.parse() else { panic!("it is a request") };
        assert_eq!(request.target().object_key(), Some(&b"account/7"[..]));
    }
    groups.sort_unstable();
    assert_eq!(groups, [0, 0, 1]);
    assert!(told(&mut gateway).is_empty());
}

#[test]
fn a_key_that_names_no_group_is_answered_at_once() {
    let mut gateway = opened();
    let keys = [shared_key("mill", b"x"), b"account/7".to_vec(), b"QRB/0".to_vec(), Vec::new()];
    for (request_id, key) in (1..).zip(&keys) {
        gateway.received(NOW, SHARED, asked(key, request_id).bytes());
    }
    assert!(next(&mut gateway).is_none());
    assert_eq!(told(&mut gateway), [Err(MinorCode::NoSuchGroup); 4]);
    assert_eq!(gateway.snapshot().shared.refused, 4);
}

#[test]
fn a_group_that_is_gone_does_not_exist_and_one_that_is_there_says_so_itself() {
    let mut gateway = opened();
    let key = shared_key("1", b"x");
    for (request_id, operation) in [(1, b"_non_existent"), (2, b"_not_existent")] {
        gateway.received(NOW, SHARED, asked_for(operation, &key, request_id).bytes());
        assert!(next(&mut gateway).is_some(), "the servers are asked");
    }
    gateway.dissolve(GroupId(1));
    gateway.out.clear();
    for (request_id, operation) in [(3, b"_non_existent"), (4, b"_not_existent")] {
        gateway.received(NOW, SHARED, asked_for(operation, &key, request_id).bytes());
        let Some(Output::ClientSend { bytes, .. }) = gateway.out.pop_front() else {
            panic!("it is answered")
        };
        let message = Message::from_bytes(bytes).expect("a message");
        let Ok(Body::Reply(reply)) = message.parse() else { panic!("a reply") };
        assert_eq!(reply.status(), ReplyStatus::NoException);
        assert_eq!(reply.reader().read_bool("result"), Ok(true));
    }
    assert!(next(&mut gateway).is_none());
}

#[test]
fn calls_of_a_deleted_group_end_and_nothing_of_them_is_kept() {
    let mut gateway = opened();
    send(&mut gateway, 3, 1, 5);
    for request_id in 1..4 {
        gateway.received(NOW, SHARED, asked(&shared_key("1", b"x"), request_id).bytes());
    }
    let submission = next(&mut gateway).expect("they wait");
    gateway.submitted(&submission, Ticket(1));
    gateway.dissolve(GroupId(1));
    let closed = gateway.out.iter().filter(|output| {
        matches!(output, Output::ClientClose { reason: CloseReason::Deleted, .. })
    });
    assert_eq!(closed.count(), 1, "the port of its own alone");
    assert_eq!(told(&mut gateway), [Err(MinorCode::NoSuchGroup); 8]);
    assert!(next(&mut gateway).is_none());
    assert_eq!((gateway.pending_count(), gateway.connection_count()), (0, 1));
    // What comes late of it finds nobody.
    gateway.held(Ticket(1));
    gateway.replied(GroupId(1), RequestNumber(1), None, false);
    gateway.resubmit(None);
    gateway.received(NOW, SHARED, asked(&shared_key("1", b"x"), 9).bytes());
    assert_eq!(told(&mut gateway), [Err(MinorCode::NoSuchGroup)]);
    let (holdings, _) = gateway.holdings();
    assert_eq!(holdings.groups.len(), 1);
}

#[test]
fn who_connects_to_a_group_that_is_gone_is_sent_away() {
    let mut gateway = opened();
    gateway.dissolve(GroupId(0));
    gateway.opened(NOW, ConnectionId(4), GroupId(0), ClientPeer::at(Ipv4Addr::LOCALHOST.into()));
    assert!(gateway.out.iter().any(|output| matches!(
        output,
        Output::ClientClose { connection: ConnectionId(4), reason: CloseReason::Deleted, .. }
    )));
    assert_eq!(gateway.connection_count(), 1);
}

#[test]
fn what_clients_begin_with_is_found_at_the_ports_of_all_groups_that_have_such_keys() {
    let keys: [(u64, &[&str]); 2] =
        [(0, &["NameService"]), (1, &["ReplicationManager", "TAO/ReplicationManager"])];
    let known = keys.into_iter().map(|(id, keys)| {
        let initial_keys = keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect();
        (GroupId(id), GroupSettings { initial_keys, ..settings() })
    });
    let mut gateway =
        with_groups(GatewayLimits::default(), known.chain([(GroupId(2), settings())]));
    let goes = |gateway: &mut Gateway, port: u64, key: &str| {
        let id = ConnectionId(100 + port);
        gateway.opened(NOW, id, GroupId(port), ClientPeer::at(Ipv4Addr::LOCALHOST.into()));
        let request_id = key.len() as u32;
        gateway.received(NOW, id, asked(key.as_bytes(), request_id).bytes());
        let group = next(gateway).expect("it goes somewhere").group.0;
        gateway.closed(id);
        group
    };
    for port in [0, 1] {
        assert_eq!(goes(&mut gateway, port, "NameService"), 0);
        assert_eq!(goes(&mut gateway, port, "NameService/7"), 0);
        assert_eq!(goes(&mut gateway, port, "ReplicationManager"), 1);
        assert_eq!(goes(&mut gateway, port, "TAO/ReplicationManager"), 1);
        assert_eq!(goes(&mut gateway, port, "NameServiceX"), port, "another object");
    }
    // A server that calls one group calls no other one by that.
    let (id, peer) = (ConnectionId(200), Ipv4Addr::LOCALHOST.into());
    gateway.opened_by_server(NOW, id, (GroupId(2), GroupId(0)), peer);
    gateway.received(NOW, id, asked(b"ReplicationManager", 1).bytes());
    let call = gateway.next_call().expect("a call");
    let refused = |gateway: &Gateway| [0, 1].map(|id| gateway.groups[GroupId(id)].counters.refused);
    assert_eq!(refused(&gateway), [0, 0]);
    gateway.refuse_call(&call);
    assert_eq!(refused(&gateway), [1, 0], "it was for the group of the port");
    // Whose servers may have objects of these names.
    assert_eq!(goes(&mut gateway, 2, "NameService"), 2);
    gateway.dissolve(GroupId(0));
    assert_eq!(goes(&mut gateway, 1, "NameService"), 1, "whose it was is no more");
}
