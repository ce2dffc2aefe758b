//! Calls past the order that have connections of their own.

use super::*;
use crate::calls::reads::ReadId;
use crate::words::rules::{LeaderRule, ReadRule};

fn after(millis: u64) -> Instant {
    NOW + Duration::from_millis(millis)
}

fn bench(aside: bool) -> Bench {
    let of_leader = Some(Box::new(LeaderRule { keys: Bytes::from_static(b"u/"), waits: None }));
    let reads = ReadRule { of_leader, aside, ..ReadRule::default() };
    let config = GroupConfig { reads, ..GroupConfig::plain(WITHIN) };
    let executor = Executor::new(&config, node(0));
    let (readers, sent, closed) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut bench = Bench { executor, readers, sent, closed };
    let mut out = Vec::new();
    bench.executor.watch(&mut out);
    bench.carry_out(out);
    bench
}

fn push_with(bench: &mut Bench, id: u64, object: &[u8], code_sets: Option<&[u8]>) {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id: 7,
        response_flags: ResponseFlags::WithTarget,
        object_key: object,
        operation: b"push",
        contexts: &[],
    };
    let giop = build::request(&head, |_| {}).bytes().clone();
    let code_sets = code_sets.map(Bytes::copy_from_slice);
    bench.executor.push_aside(ReadId(id), giop, code_sets);
}

fn push(bench: &mut Bench, id: u64, object: &[u8]) {
    push_with(bench, id, object, None);
}

#[test]
fn the_connection_of_calls_past_the_order_is_there_before_there_is_any() {
    for (aside, connections) in [(true, 2), (false, 1)] {
        let of_leader = Some(Box::new(LeaderRule { keys: Bytes::from_static(b"u/"), waits: None }));
        let reads = ReadRule { of_leader, aside, ..ReadRule::default() };
        let config = GroupConfig { reads, ..GroupConfig::plain(WITHIN) };
        let mut out = Vec::new();
        Executor::new(&config, node(0)).watch(&mut out);
        assert_eq!(out.len(), connections);
    }
}

#[test]
fn the_first_push_takes_the_connection_that_is_there_whatever_its_code_sets() {
    let mut bench = bench(true);
    let early = bench.executor.next_channel;
    push_with(&mut bench, 1, b"u/s-1", Some(b"utf-8"));
    assert_eq!(bench.step(), ["u/s-1"]);
    assert_eq!(bench.sent[0].0, ChannelId(early), "none is opened for it");
    let early = bench.sent[0].0;
    assert_eq!(bench.answer(0), good(&["read 1 answered"]));
    push_with(&mut bench, 2, b"u/s-1", Some(b"utf-8"));
    push_with(&mut bench, 3, b"u/s-1", Some(b"latin"));
    push(&mut bench, 4, b"u/s-1");
    assert_eq!(bench.step(), ["u/s-1", "u/s-1", "u/s-1"]);
    let used: Vec<_> = bench.sent.iter().map(|(channel, ..)| *channel).collect();
    assert_eq!(used[1], early, "the same code sets");
    assert!(used[2] != early && used[3] != early && used[2] != used[3]);
}

#[test]
fn neither_a_subscription_nor_a_state_keeps_a_push_waiting() {
    let mut bench = bench(true);
    bench.call(1, b"admin");
    bench.capture();
    bench.call(2, b"u/other");
    assert_eq!(bench.step(), ["admin"]);
    push(&mut bench, 1, b"u/s-1");
    assert_eq!(bench.step(), ["u/s-1"]);
    assert_ne!(bench.sent[0].0, bench.sent[1].0, "it has a connection of its own");
    assert_eq!(bench.answer(1), good(&["read 1 answered"]));
    assert_eq!(bench.answer(0), good(&["1"]));
    assert_eq!(bench.step(), ["state"], "a state is given");
    push(&mut bench, 2, b"u/s-1");
    assert_eq!(bench.step(), ["u/s-1"]);
    assert_eq!(bench.answer(3), good(&["read 2 answered"]));
}

#[test]
fn a_push_keeps_no_request_waiting() {
    let mut bench = bench(true);
    push(&mut bench, 1, b"u/s-1");
    bench.call(1, b"admin");
    assert_eq!(bench.step(), ["u/s-1", "admin"]);
    assert_eq!(bench.answer(1), good(&["1"]));
    assert_eq!(bench.answer(0), good(&["read 1 answered"]));
}

#[test]
fn a_push_comes_behind_what_was_delivered_before_for_its_own_proxy() {
    let mut bench = bench(true);
    bench.call(1, b"admin");
    bench.call(2, b"u/s-1");
    push(&mut bench, 1, b"u/s-1");
    push(&mut bench, 2, b"u/s-2");
    push(&mut bench, 3, b"u/s-1");
    // It was delivered behind the pushes.
    bench.call(3, b"u/s-1");
    assert_eq!(bench.step(), ["u/s-2", "admin"]);
    assert_eq!(bench.answer(1), good(&["1"]));
    assert_eq!(bench.step(), ["u/s-1"]);
    assert_eq!(bench.answer(2), good(&["2"]));
    assert_eq!(bench.step(), ["u/s-1", "u/s-1", "u/s-1"]);
    let of = |index: usize| bench.sent[index].0;
    assert_eq!((of(3), of(4)), (of(0), of(0)), "both pushes, in their order");
    assert_eq!(of(5), of(1));
}

#[test]
fn a_push_whose_connection_ends_is_called_elsewhere_and_the_server_goes_on() {
    let mut bench = bench(true);
    bench.call(1, b"admin");
    push(&mut bench, 1, b"u/s-1");
    bench.step();
    assert_eq!(bench.cut(0), Ok(()));
    assert_eq!(bench.ends_at(NOW), good(&["read 1"]));
    push(&mut bench, 2, b"u/s-1");
    assert_eq!(bench.step(), ["u/s-1"]);
    assert_ne!(bench.sent[2].0, bench.sent[0].0, "there is another connection");
    assert_eq!(bench.executor.figures().reconnects, 1);
    assert_eq!(bench.answer(1), good(&["1"]));
    assert_eq!(bench.answer(2), good(&["read 2 answered"]));
}

#[test]
fn a_push_that_takes_too_long_is_called_elsewhere() {
    let mut bench = bench(true);
    push(&mut bench, 1, b"u/s-1");
    bench.step_at(after(10));
    let deadline = bench.executor.deadline().expect("its time runs");
    assert_eq!(deadline, after(10) + WITHIN);
    assert_eq!(bench.ends_at(deadline), good(&["read 1"]));
    assert_eq!(bench.closed, [bench.sent[0].0]);
    assert_eq!(bench.executor.deadline(), None);
}

#[test]
fn what_is_no_reply_ends_its_connection_only() {
    let mut bench = bench(true);
    push(&mut bench, 1, b"u/s-1");
    bench.call(1, b"admin");
    bench.step();
    let channel = bench.sent[0].0;
    assert_eq!(bench.hear(channel, b"this is no GIOP message"), good(&["read 1"]));
    assert_eq!(bench.closed, [channel]);
    assert_eq!(bench.answer(1), good(&["1"]));
}

#[test]
fn code_sets_have_connections_of_their_own_but_not_without_end() {
    let mut bench = bench(true);
    for sets in 0..20_u8 {
        push_with(&mut bench, sets.into(), b"u/s-1", Some(&[sets]));
        assert_eq!(bench.step().len(), 1);
        assert_eq!(bench.answer(sets.into()).expect("an answer").len(), 1);
    }
    assert!(bench.closed.len() >= 20 - CHANNELS_MAX, "{}", bench.closed.len());
    assert!(!bench.executor.is_awaited());
}

#[test]
fn what_was_forgotten_answers_nobody() {
    let mut bench = bench(true);
    push(&mut bench, 1, b"u/s-1");
    bench.step();
    bench.call(1, b"u/s-1");
    push(&mut bench, 2, b"u/s-1");
    let epoch = bench.executor.epoch();
    bench.executor.finish_requests();
    assert!(bench.executor.epoch() > epoch);
    assert_eq!(bench.answer(0), good(&[]));
    assert_eq!(bench.step(), ["u/s-1"], "the request goes on, no push does");
    assert_eq!(bench.answer(1), good(&["1"]));
    assert_eq!(bench.step(), [""; 0]);
}
