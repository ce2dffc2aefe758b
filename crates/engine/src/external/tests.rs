//! One connection, one request, one reply; and what is in doubt and what is not.

use super::*;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Endian, Version};
use quorba_replica::{History, OnDoubt};

const NOW: Instant = Instant::ZERO;
const CONNECT: Duration = Duration::from_secs(1);
const REPLY: Duration = Duration::from_secs(5);
const SERVER: GroupId = GroupId(40_000);
const REQUEST_ID: u32 = 9;

fn external() -> ExternalCalls {
    with_tries(2)
}

/// A call is begun of which so many tries are in doubt.
fn with_tries(tries: u32) -> ExternalCalls {
    let replica = OutsideConfig { on_doubt: OnDoubt::Fail, reply_bytes_max: 1_024 };
    let settings = OutsideSettings { replica, connect: CONNECT, reply: REPLY };
    let mut external =
        ExternalCalls::new(Bytes::from_static(b"plant"), GroupMap::of([SERVER], |_| settings));
    external.begin(NOW, SERVER, Purpose::Call(key(), tries), envelope());
    external
}

fn key() -> CallKey {
    let during = History { count: 7, digest: 0xab };
    CallKey { caller: GroupId(1), during, number: 3 }
}

fn envelope() -> RequestEnvelope {
    let own_name = FtRequest { client_id: b"its own".into(), retention_id: 1, expiration_time: 2 };
    let own_name = own_name.encode(Endian::Little);
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id: REQUEST_ID,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"bank",
        operation: b"deposit",
        contexts: &[(context::FT_REQUEST, &own_name)],
    };
    RequestEnvelope {
        group: GroupId(2),
        number: RequestNumber(1),
        released: quorba_replica::Released::below(RequestNumber(1)),
        stamp: 40,
        ft: None,
        nested: None,
        ended_process: false,
        code_sets: Some(Bytes::from_static(b"code sets")),
        giop: build::request(&head, |cdr| cdr.write_u64(12)).bytes().clone(),
    }
}

/// The connection that is asked for, if one is.
fn asked_for(external: &mut ExternalCalls) -> Option<ExternalId> {
    core::iter::from_fn(|| external.out.pop_front()).find_map(|output| match output {
        Output::ExternalCalls {
            connection,
            command: ExternalCommand::Connect { server: SERVER },
        } => Some(connection),
        _ => None,
    })
}

fn sent(external: &mut ExternalCalls) -> Message {
    match external.out.pop_front() {
        Some(Output::ExternalCalls { command: ExternalCommand::Send(bytes), .. }) => {
            Message::from_bytes(bytes).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn reply(request_id: u32, status: ReplyStatus, bytes: usize) -> Bytes {
    let body = alloc::vec![0; bytes];
    let write = |cdr: &mut quorba_giop::cdr::Writer| cdr.write_octets(&body);
    build::reply(Version::V1_2, Endian::Little, request_id, status, write).bytes().clone()
}

/// What came of the call, when its connection has been made and has brought this.
fn heard(bytes: &[u8]) -> Option<OutsideReport> {
    let mut external = external();
    let id = asked_for(&mut external).unwrap();
    external.connected(NOW, id);
    external.received(NOW, id, bytes);
    external.next_return().map(|returned| returned.report)
}

fn failed(why: OutsideFailure) -> Option<OutsideReport> {
    Some(OutsideReport::Failed(why))
}

#[test]
fn the_request_has_the_calls_name_and_the_code_sets_of_its_caller() {
    let mut external = external();
    let id = asked_for(&mut external).unwrap();
    external.connected(NOW, id);
    let message = sent(&mut external);
    let Ok(Body::Request(request)) = message.parse() else { panic!("a request") };
    let of = |wanted| request.contexts().filter(move |(id, _)| *id == wanted);
    let names: Vec<_> = of(context::FT_REQUEST).collect();
    assert_eq!(names.len(), 1, "its ORB's own name is not the replicas'");
    let name = FtRequest::decode(names[0].1).unwrap();
    assert_eq!(name.client_id, b"plant/1/7.00000000000000ab");
    assert_eq!((name.retention_id, name.expiration_time), (3, 40 + EXPIRES_AFTER));
    assert_eq!(of(context::CODE_SETS).next().map(|(_, data)| data), Some(&b"code sets"[..]));
    assert_eq!((request.object_key(), request.operation()), (Some(&b"bank"[..]), &b"deposit"[..]));
}

#[test]
fn a_call_that_may_have_been_executed_for_another_node_says_so() {
    for (tries, is_told) in [(0, false), (1, true), (2, true)] {
        let mut external = with_tries(tries);
        let id = asked_for(&mut external).unwrap();
        external.connected(NOW, id);
        let message = sent(&mut external);
        let Ok(Body::Request(request)) = message.parse() else { panic!("a request") };
        let mut contexts = request.contexts().map(|(id, _)| id);
        assert_eq!(contexts.any(|id| id == context::CALL_IN_DOUBT), is_told, "{tries} tries");
    }
}

#[test]
fn a_reply_ends_the_connection_and_is_passed_on_whatever_it_says() {
    use ReplyStatus::{NoException, SystemException, UserException};
    for status in [NoException, UserException, SystemException] {
        let bytes = reply(REQUEST_ID, status, 4);
        assert_eq!(heard(&bytes), Some(OutsideReport::Reply(bytes)));
    }
}

#[test]
fn what_is_no_reply_to_the_call_says_why() {
    use ReplyStatus::{LocationForward, NoException};
    let large = reply(REQUEST_ID, NoException, 4_000);
    assert_eq!(heard(&large[..100]), failed(OutsideFailure::TooLarge), "its header says so");
    assert_eq!(heard(&reply(8, NoException, 4)), failed(OutsideFailure::Doubt));
    assert_eq!(heard(b"HTTP/1.1 400 Bad Request"), failed(OutsideFailure::Doubt));
    let forward = reply(REQUEST_ID, LocationForward, 4);
    assert_eq!(heard(&forward), failed(OutsideFailure::Moved));
    let error = build::message_error(Version::V1_2);
    assert_eq!(heard(error.bytes()), failed(OutsideFailure::Rejected));
    assert_eq!(heard(&reply(REQUEST_ID, NoException, 4)[..20]), None, "more may come");
}

#[test]
fn a_server_that_is_not_there_is_tried_again_until_its_time_is_over() {
    let mut external = external();
    let mut now = NOW;
    let mut tries = 0;
    while let Some(id) = asked_for(&mut external) {
        tries += 1;
        external.closed(now, id);
        let Some(due) = external.poll_timeout() else { break };
        now = due;
        external.handle_timeout(now);
    }
    assert!(tries > 5 && now <= NOW + CONNECT, "{tries} tries until {now:?}");
    let report = external.next_return().map(|returned| returned.report);
    assert_eq!(report, failed(OutsideFailure::NotReached));
}

#[test]
fn a_polite_end_is_followed_by_another_try_and_any_other_is_a_doubt() {
    let mut external = external();
    let first = asked_for(&mut external).unwrap();
    external.connected(NOW, first);
    external.received(NOW, first, build::close_connection(Version::V1_2).bytes());
    external.handle_timeout(NOW + AGAIN_AFTER);
    let second = asked_for(&mut external).expect("the server has not executed it");
    external.connected(NOW + AGAIN_AFTER, second);
    external.closed(NOW + AGAIN_AFTER, second);
    let Return { purpose, report, .. } = external.next_return().expect("an end");
    assert_eq!((purpose, Some(report)), (Purpose::Call(key(), 2), failed(OutsideFailure::Doubt)));
    assert_eq!(external.poll_timeout(), None);
}

#[test]
fn a_server_that_hangs_is_waited_for_so_long_and_its_late_reply_is_nobodys() {
    let mut external = external();
    let id = asked_for(&mut external).unwrap();
    external.connected(NOW, id);
    assert_eq!(external.poll_timeout(), Some(NOW + REPLY));
    external.handle_timeout(NOW + REPLY);
    let report = external.next_return().map(|returned| returned.report);
    assert_eq!(report, failed(OutsideFailure::Doubt));
    external.received(NOW + REPLY, id, &reply(REQUEST_ID, ReplyStatus::NoException, 4));
    assert!(external.next_return().is_none());
}

#[test]
fn calls_beyond_the_limit_wait_for_one_to_end() {
    let mut external = external();
    let first = asked_for(&mut external).unwrap();
    for number in 0..CALLS_MAX as u64 {
        let purpose = Purpose::Ask(GroupId(2), RequestNumber(number));
        external.begin(NOW, SERVER, purpose, envelope());
    }
    let connects = external.out.drain(..).count();
    assert_eq!(connects, CALLS_MAX - 1);
    external.connected(NOW, first);
    external.closed(NOW, first);
    let connects = external.out.iter().filter(|output| {
        matches!(output, Output::ExternalCalls { command: ExternalCommand::Connect { .. }, .. })
    });
    assert_eq!(connects.count(), 1);
}
