//! Calls without a reply, connections that end, and time that passes.

use super::*;
use alloc::format;

fn after(millis: u64) -> Instant {
    NOW + Duration::from_millis(millis)
}

const GONE: RequestEnd = RequestEnd::NoReply(NoReply::ConnectionEnded);

#[test]
fn a_connection_that_ends_may_be_the_end_of_the_process_and_is_told_when_it_is_not() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.call(2, b"b");
    bench.step();
    bench.cut(0).expect("the server lives");
    assert_eq!(bench.ends_at(NOW), good(&[]));
    let (ended, _) = bench.executor.process_end(2);
    assert_eq!((ended.at, ended.answered), (vec![(key(1), history(1))], 0));
    assert_eq!(bench.executor.deadline(), Some(after(100)));
    assert_eq!(bench.ends_at(after(100)), good(&["1 ConnectionEnded"]));
    assert_eq!(bench.ends_at(after(9_000)), good(&[]), "once");
    assert_eq!(bench.sent.len(), 1, "nothing starts before it is decided");
    bench.learn(&[(1, GONE)], &[]);
    assert_eq!(bench.ends_at(after(9_000)), good(&["1 COMM_FAILURE"]));
    assert_eq!(bench.step(), ["b"]);
    assert_ne!(bench.sent[1].0, bench.sent[0].0);
    assert_eq!(bench.answer(1), good(&["2"]));
}

#[test]
fn what_is_known_to_have_no_reply_is_sent_and_not_inquired_into() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.learn(&[(1, GONE)], &[]);
    bench.call(1, b"a");
    assert_eq!(bench.step(), ["a"]);
    bench.cut(0).expect("the server lives");
    bench.ends_at(NOW).expect("the server lives");
    assert_eq!(bench.ends_at(after(100)), good(&["1 COMM_FAILURE"]));
}

// What a member executed again was lost together with a request that had no reply, as all knew
// (seed 5000222 of the simulator's `backups`).
#[test]
fn nothing_is_with_a_server_together_with_what_is_known_to_have_no_reply() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    bench.learn(&[(2, RequestEnd::NoReply(NoReply::NotAReply))], &[]);
    (1..=4).for_each(|number| bench.call(number, b"a"));
    assert_eq!(bench.step(), ["a"], "the first one");
    assert_eq!(bench.answer(0), good(&["1"]));
    assert_eq!(bench.step(), ["a"], "alone");
    bench.cut(1).expect("the server lives");
    bench.ends_at(NOW).expect("the server lives");
    assert_eq!(bench.ends_at(after(100)), good(&["2 COMM_FAILURE"]));
    assert_eq!(bench.step(), ["a", "a"], "the others");
}

#[test]
fn an_idle_connection_that_ends_is_made_again_with_growing_pauses() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.step();
    assert_eq!(bench.answer(0), good(&["1"]));
    let mut out = Vec::new();
    bench.executor.disconnected(bench.sent[0].0, &mut out).expect("the server lives");
    let connect = |out: &[ServerCommand]| {
        out.iter().find_map(|command| match command {
            ServerCommand::Connect(id) => Some(*id),
            _ => None,
        })
    };
    let mut last = connect(&out).expect("at once");
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let mut out = Vec::new();
        bench.executor.disconnected(last, &mut out).expect("it lives");
        assert_eq!(connect(&out), None);
        bench.executor.step(NOW, &mut out);
        let at = bench.executor.deadline().expect("it is to be made again");
        bench.executor.step(at, &mut out);
        last = connect(&out).expect("now");
        pauses.push(at.since(NOW).as_millis());
    }
    assert_eq!(pauses[..4], [10, 20, 40, 80]);
    assert_eq!(pauses[10..], [5_000, 5_000]);
    assert_eq!(bench.executor.figures().reconnects, 13);
}

#[test]
fn what_never_left_goes_out_on_the_next_connection() {
    let mut bench = Bench::new(Concurrency::Sequential);
    let mut out = Vec::new();
    let first = ChannelId(1);
    bench.executor.disconnected(first, &mut out).expect("it lives");
    bench.call(1, b"a");
    bench.executor.step(NOW, &mut out);
    let second = ChannelId(2);
    bench.executor.disconnected(second, &mut out).expect("it was never there");
    assert_eq!(bench.executor.process_end(1).0.at, vec![]);
    bench.carry_out(core::mem::take(&mut out));
    bench.ends_at(NOW).expect("it lives");
    assert!(bench.sent.is_empty());
    assert_eq!(bench.ends_at(after(10)), good(&[]));
    assert_eq!(bench.sent.len(), 1);
    assert_eq!(bench.answer(0), good(&["1"]));
}

#[test]
fn a_call_that_is_closed_on_each_time_is_sent_ever_more_seldom_and_not_for_ever() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.step();
    let goodbye = build::close_connection(Version::V1_2);
    let (mut now, mut told) = (NOW, Vec::new());
    while told.is_empty() {
        let (channel, _) = *bench.sent.last().expect("it was sent");
        let before = bench.sent.len();
        assert_eq!(bench.hear(channel, goodbye.bytes()), good(&[]));
        while told.is_empty() && bench.sent.len() == before {
            told = bench.ends_at(now).expect("it lives");
            if bench.sent.len() == before {
                now = bench.executor.deadline().unwrap_or(now).max(now);
            }
        }
    }
    assert_eq!(told, ["1 NeverTaken"]);
    assert_eq!(bench.sent.len(), 9);
    assert!(now.since(NOW) > Duration::from_millis(600) && now.since(NOW) < WITHIN);
    bench.learn(&[(1, RequestEnd::NoReply(NoReply::NeverTaken))], &[]);
    assert_eq!(bench.ends_at(now), good(&["1 NO_RESOURCES"]));
}

#[test]
fn what_answers_nothing_is_dropped_and_what_is_called_is_refused() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.step();
    let channel = bench.sent[0].0;
    let (version, endian) = (Version::V1_2, Endian::Little);
    let first = id_of(&bench.sent[0].1);
    assert_eq!(bench.answer(0), good(&["1"]));
    bench.call(2, b"b");
    bench.step();
    let again = build::reply(version, endian, first, ReplyStatus::NoException, |_| {});
    assert_eq!(bench.hear(channel, again.bytes()), good(&[]));
    // A Fragment of GIOP 1.1 that continues nothing.
    let fragment = b"GIOP\x01\x01\x01\x07\x00\x00\x00\x00";
    assert_eq!(bench.hear(channel, fragment), good(&[]));
    let head = RequestHead {
        version,
        endian,
        request_id: 77,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"client",
        operation: b"notify",
        contexts: &[],
    };
    let callback = build::request(&head, |_| {});
    assert_eq!(bench.hear(channel, callback.bytes()), good(&[]));
    let (to, refusal) = bench.sent.last().expect("a refusal");
    let Ok(Body::Reply(refusal)) = refusal.parse() else { panic!("no reply") };
    assert_eq!((*to, refusal.request_id()), (channel, 77));
    let figures = bench.executor.figures();
    assert_eq!((figures.dropped, figures.refused_calls, figures.reconnects), (2, 1, 0));
    assert_eq!(bench.answer(1), good(&["2"]));
}

#[test]
fn a_reply_to_what_was_never_asked_is_no_reply_to_what_was() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.step();
    let id = id_of(&bench.sent[0].1) + 7;
    let stray = build::reply(Version::V1_2, Endian::Little, id, ReplyStatus::NoException, |_| {});
    assert_eq!(bench.hear(bench.sent[0].0, stray.bytes()), good(&[]));
    assert_eq!(bench.ends_at(NOW), good(&["1 NotAReply"]));
}

#[test]
fn noise_is_no_reply_and_the_next_call_goes_over_another_connection() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.call(2, b"b");
    bench.step();
    assert_eq!(bench.hear(bench.sent[0].0, b"HTTP/1.1 200 OK\r\n\r\n"), good(&[]));
    assert_eq!(bench.ends_at(NOW), good(&["1 NotAReply"]));
    bench.learn(&[(1, RequestEnd::NoReply(NoReply::NotAReply))], &[]);
    assert_eq!(bench.ends_at(NOW), good(&["1 COMM_FAILURE"]));
    assert_eq!(bench.step(), ["b"]);
}

#[test]
fn what_no_server_may_execute_is_left_out_at_its_place() {
    let mut bench = Bench::new(Concurrency::PerObject);
    bench.learn(&[(2, RequestEnd::EndsServers)], &[3]);
    (1..=4).for_each(|number| bench.call(number, b"a"));
    assert_eq!(bench.step(), ["a"]);
    assert_eq!(bench.answer(0), good(&["1"]));
    assert_eq!(bench.ends_at(NOW), good(&["2 COMM_FAILURE", "3 TIMEOUT"]));
    assert_eq!(bench.answer(1), good(&["4"]));
    assert!(bench.executor.is_idle());
}

#[test]
fn what_is_held_waits_and_all_behind_it() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    bench.executor.hold([key(2)].into());
    (1..=3).for_each(|number| bench.call(number, b"a"));
    assert_eq!(bench.step().len(), 1);
    assert_eq!(bench.executor.has(&key(2)), (true, false));
    assert_eq!(bench.answer(0), good(&["1"]));
    assert!(bench.step().is_empty());
    bench.executor.hold(Default::default());
    assert_eq!(bench.step().len(), 2);
}

#[test]
fn a_call_that_is_given_up_frees_the_server_on_another_connection() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.call(2, b"b");
    bench.step();
    bench.learn(&[], &[1]);
    assert_eq!(bench.ends_at(NOW), good(&["1 TIMEOUT"]));
    assert_eq!(bench.closed, [bench.sent[0].0]);
    assert_eq!(bench.step(), ["b"]);
    assert_eq!(bench.answer(0), good(&[]), "too late");
    assert_eq!(bench.answer(1), good(&["2"]));
}

#[test]
fn late_is_told_early_to_who_waits_and_again_when_others_have_answered() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.step();
    let half = after(15_000);
    assert_eq!(bench.executor.deadline(), Some(half), "nobody knows what is usual");
    bench.answer(0).expect("it answers");
    bench.call(2, b"a");
    bench.step_at(after(1_000));
    assert_eq!(bench.executor.deadline(), Some(after(1_050)));
    assert_eq!(bench.ends_at(after(1_050)), good(&["2 Late"]));
    assert_eq!(bench.executor.deadline(), None, "and waits as long as it takes");
    bench.executor.answered_elsewhere(after(1_060), history(2));
    assert_eq!(bench.ends_at(after(1_072)), good(&[]));
    assert_eq!(bench.ends_at(after(1_073)), good(&["2 Late"]));
    assert_eq!(bench.ends_at(after(31_059)), good(&[]));
    assert_eq!(bench.ends_at(after(31_060)).map(|told| told[0].clone()), Ok("overdue".into()));
}

/// What the server has sent meanwhile is read next.
#[test]
fn the_time_in_which_its_node_stood_still_is_none_of_the_servers() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.step();
    assert_eq!(bench.ends_at(after(15_000)), good(&["1 Late"]));
    bench.executor.answered_elsewhere(after(15_010), history(1));
    assert_eq!(bench.ends_at(after(18_760)), good(&["1 Late"]));
    // It was to be looked at after 45,010 ms.
    assert_eq!(bench.ends_at(after(60_000)), good(&[]));
    assert_eq!(bench.executor.deadline(), Some(after(60_050)));
    assert_eq!(bench.ends_at(after(60_050)).map(|told| told[0].clone()), Ok("overdue".into()));
}

#[test]
fn who_waits_for_nobody_takes_its_time_and_who_executes_alone_takes_all_of_it() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call_for_nobody(1);
    bench.step();
    assert_eq!(bench.executor.deadline(), Some(after(15_000)));
    bench.executor.set_alone(true);
    assert_eq!(bench.executor.deadline(), Some(after(30_000)));
    // It is asked whether it lives.
    assert_eq!(bench.ends_at(after(30_000)), good(&[]));
    let (channel, question) = bench.sent.last().cloned().expect("a question");
    let Ok(Body::LocateRequest(asked)) = question.parse() else { panic!("another message") };
    let (version, endian) = (Version::V1_2, Endian::Little);
    let here = quorba_giop::LocateStatus::ObjectHere;
    let answer = build::locate_reply(version, endian, asked.request_id(), here);
    assert_eq!(bench.hear(channel, answer.bytes()), good(&[]));
    assert_eq!(bench.ends_at(after(59_999)), good(&[]));
    assert_eq!(bench.ends_at(after(60_000)), good(&[]), "it is asked again");
    assert_eq!(bench.ends_at(after(60_499)), good(&[]));
    assert_eq!(bench.ends_at(after(60_500)), good(&["1 Late"]), "and gives no sign of life");
    assert_eq!(bench.ends_at(after(90_000)), good(&[]));
}

#[test]
fn a_state_that_does_not_come_keeps_no_call_waiting() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.capture();
    bench.call(1, b"a");
    bench.step();
    assert_eq!(bench.ends_at(after(30_000)), good(&["state false"]));
    assert_eq!(bench.step(), ["a"]);
}

#[test]
fn a_call_that_counts_no_more_and_whose_connection_ends_leaves_nobody_sure_of_the_server() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.step();
    bench.executor.abandon();
    bench.cut(0).expect("it lives");
    assert_eq!(bench.ends_at(after(100)), Err(DownReason::ConnectionLost));
}

/// A server that somebody else runs, with a witness if it has answered on that connection.
fn foreign(is_proven: bool) -> (Bench, ChannelId) {
    let mut bench = Bench::of(Concurrency::Sequential, true);
    bench.step();
    let (witness, question) = bench.sent.pop().expect("a question");
    let Ok(Body::LocateRequest(asked)) = question.parse() else { panic!("another message") };
    if is_proven {
        let (version, endian) = (Version::V1_2, Endian::Little);
        let here = quorba_giop::LocateStatus::ObjectHere;
        let answer = build::locate_reply(version, endian, asked.request_id(), here);
        assert_eq!(bench.hear(witness, answer.bytes()), good(&[]));
    }
    bench.call(1, b"a");
    assert_eq!(bench.step(), ["a"]);
    assert_ne!(bench.sent[0].0, witness);
    (bench, witness)
}

#[test]
fn somebody_elses_server_that_lives_is_seen_to_live_on_another_connection() {
    let (mut bench, _) = foreign(true);
    bench.cut(0).expect("it may live");
    bench.call(2, b"b");
    assert_eq!(bench.ends_at(NOW), good(&[]));
    assert_eq!(bench.ends_at(after(100)), good(&["1 ConnectionEnded"]));
    bench.learn(&[(1, GONE)], &[]);
    assert_eq!(bench.ends_at(after(100)), good(&["1 COMM_FAILURE"]));
    assert_eq!(bench.step_at(after(100)), ["b"]);
}

#[test]
fn nobody_knows_who_is_behind_the_next_connection_to_somebody_elses_server() {
    let (mut bench, _) = foreign(false);
    assert_eq!(bench.cut(0), Err(DownReason::ConnectionLost), "it has never shown itself");
    let (mut bench, witness) = foreign(true);
    bench.cut(0).expect("it may live");
    bench.executor.disconnected(witness, &mut Vec::new()).expect("a moment");
    assert_eq!(bench.ends_at(NOW), good(&[]));
    assert_eq!(bench.ends_at(after(100)), Err(DownReason::ConnectionLost));
}

#[test]
fn a_farewell_of_somebody_elses_server_is_no_end_of_its_process_if_it_stays_on_the_other() {
    let goodbye = build::close_connection(Version::V1_2);
    let (mut bench, witness) = foreign(true);
    assert_eq!(bench.hear(bench.sent[0].0, goodbye.bytes()), good(&[]));
    assert_eq!(bench.ends_at(NOW), good(&[]));
    assert_eq!(bench.ends_at(after(100)), good(&[]));
    assert_eq!(bench.sent.len(), 2, "it goes out again");
    assert_eq!(bench.answer(1), good(&["1"]));
    bench.call(2, b"a");
    bench.step_at(after(200));
    assert_eq!(bench.hear(bench.sent[2].0, goodbye.bytes()), good(&[]));
    assert_eq!(bench.hear(witness, goodbye.bytes()), good(&[]));
    bench.ends_at(after(200)).expect("a moment");
    assert_eq!(bench.ends_at(after(300)), Err(DownReason::ConnectionLost));
}

#[test]
fn the_other_connection_is_kept_in_use_and_made_again() {
    let (mut bench, witness) = foreign(true);
    assert_eq!(bench.answer(0), good(&["1"]));
    bench.ends_at(after(100)).expect("all is well");
    let before = bench.sent.len();
    bench.ends_at(after(20_000)).expect("all is well");
    assert_eq!(bench.sent.len(), before + 1);
    bench.executor.disconnected(witness, &mut Vec::new()).expect("the first one stays");
    bench.ends_at(after(20_001)).expect("all is well");
    bench.ends_at(after(21_001)).expect("all is well");
    let (again, _) = bench.sent.last().expect("a question");
    assert!(bench.sent.len() == before + 2 && *again != witness);
}

#[test]
fn what_a_server_calls_in_a_request_that_was_given_up_is_refused_until_it_is_through() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.executor.calls_others = true;
    bench.call(1, b"a");
    bench.call(2, b"b");
    bench.step();
    assert_eq!(bench.executor.begin_call(), Some((history(1), 1)));
    bench.learn(&[], &[1]);
    assert_eq!(bench.ends_at(NOW), good(&["1 TIMEOUT"]));
    assert_eq!(bench.executor.begin_call(), None);
    assert!(bench.step().is_empty() && bench.closed.is_empty());
    assert_eq!(bench.executor.waiting().map(|waiting| waiting.at), Some(history(1)));
    assert_eq!(bench.answer(0), good(&[]), "nobody waits for it");
    assert_eq!(bench.step(), ["b"]);
    assert_eq!(bench.executor.begin_call(), Some((history(2), 1)));
}

#[test]
fn a_server_that_is_never_through_with_what_was_given_up_is_not_waited_for_without_end() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.executor.calls_others = true;
    bench.call(1, b"a");
    bench.call(2, b"b");
    bench.step();
    bench.learn(&[], &[1]);
    assert_eq!(bench.ends_at(NOW), good(&["1 TIMEOUT"]));
    let until = bench.executor.deadline().expect("it is not waited for without end");
    assert_eq!(bench.ends_at(until), good(&[]));
    assert_eq!(bench.sent.len(), 2, "what waits has begun, whoever looks next and when");
}

// The pauses had become longer than what a call was given, so that nothing was sent any more.
#[test]
fn what_is_given_up_again_and_again_makes_no_connection_wait() {
    let mut bench = Bench::new(Concurrency::Sequential);
    for number in 1..20 {
        bench.call(number, b"a");
        assert_eq!(bench.step(), ["a"], "{number}");
        bench.learn(&[], &(1..=number).collect::<Vec<_>>());
        assert_eq!(bench.ends_at(NOW), good(&[&format!("{number} TIMEOUT")]));
    }
}

#[test]
fn a_connection_that_is_to_be_made_is_made_though_what_waits_for_it_is_given_up() {
    let mut bench = Bench::new(Concurrency::Sequential);
    let mut out = Vec::new();
    let ids = |out: &[ServerCommand]| -> Vec<ChannelId> {
        let connect = |command: &ServerCommand| match command {
            ServerCommand::Connect(id) => Some(*id),
            _ => None,
        };
        out.iter().filter_map(connect).collect()
    };
    bench.executor.disconnected(ChannelId(1), &mut out).expect("it lives");
    let second = ids(&out)[0];
    bench.executor.disconnected(second, &mut out).expect("it lives");
    bench.call(1, b"a");
    bench.executor.step(NOW, &mut out);
    let at = bench.executor.deadline().expect("it is to be made again");
    bench.learn(&[], &[1]);
    out.clear();
    bench.executor.next_end(NOW, &mut out).expect("it lives").expect("it is given up");
    assert_eq!(ids(&out), []);
    bench.executor.step(at, &mut out);
    assert_eq!(ids(&out).len(), 1);
}

// What was behind it waited on a connection that was closed, and was answered out of its order.
#[test]
fn a_read_that_is_given_up_takes_the_connection_from_nothing_behind_it() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id: 7,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"a",
        operation: b"look",
        contexts: &[],
    };
    let giop = build::request(&head, |_| {}).bytes().clone();
    let (call, moment, code_sets) = (Call::Read(crate::calls::reads::ReadId(1)), None, None);
    bench.executor.push(Job::Execute { call, moment, giop, code_sets, awaited: true });
    bench.call(2, b"b");
    bench.step();
    assert_eq!(bench.sent.len(), 2);
    assert_eq!(bench.ends_at(after(30_000)), good(&["read 1"]));
    assert!(bench.closed.is_empty());
    assert_eq!(bench.answer(1), good(&["2"]));
}

/// A server that goes on with what was given up starts nothing, and what waits at the gate of
/// staggered execution waits for that as well: its time is no time to be woken at.
#[test]
fn who_waits_at_the_gate_behind_what_was_given_up_is_not_woken_for_it() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.executor.calls_others = true;
    bench.executor.follow(Some(1));
    bench.call(1, b"a");
    bench.call(2, b"b");
    assert_eq!(bench.step(), ["a"]);
    bench.learn(&[], &[1]);
    assert_eq!(bench.ends_at(after(100)), good(&["1 TIMEOUT"]));
    let soon = after(20_000);
    assert_eq!(bench.ends_at(soon), good(&[]));
    assert!(bench.executor.deadline().is_none_or(|at| at > soon));
    let long_after = after(100) + WITHIN;
    assert_eq!(bench.ends_at(long_after), good(&[]), "it is waited for no longer");
    bench.step_at(long_after + WITHIN);
    assert_eq!(bench.sent.len(), 2, "what waits has begun");
}
