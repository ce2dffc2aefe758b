//! A read is asked where its server waits, and never costs the server anything.

use super::*;
use crate::ids::{CallKey, GroupId};
use crate::outside::{OutsideFailure, OutsideReport};
use crate::reentrant::{Question, ReadAttempt, Spot};

const SPOT: Spot = Spot { group: GroupId(0), during: History { count: 1, digest: 1 }, number: 2 };

fn question(tries: u32) -> Question {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id: 3,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"read",
        operation: b"get",
        contexts: &[],
    };
    let key = CallKey { caller: GroupId(4), during: history(9), number: 1 };
    let giop = build::request(&head, |_| ()).bytes().clone();
    Question { read_attempt: ReadAttempt { key, tries }, spot: SPOT, giop, code_sets: None }
}

impl Bench {
    /// Its server stands in the second call of its first request.
    fn waiting() -> Self {
        let mut bench = Self::new(Concurrency::Sequential);
        assert_eq!(bench.executor.position(SPOT), Position::Before);
        bench.call(1, b"x");
        assert_eq!(bench.step(), ["x"]);
        assert_eq!(bench.executor.begin_call(), Some((history(1), 1)));
        assert_eq!(bench.executor.position(SPOT), Position::Before, "that was the first");
        bench.executor.end_call(NOW, history(1));
        assert_eq!(bench.executor.begin_call(), Some((history(1), 2)));
        assert_eq!(bench.executor.position(SPOT), Position::There);
        bench
    }

    fn ask(&mut self, tries: u32) -> ChannelId {
        let mut out = Vec::new();
        assert_eq!(self.executor.ask_reentrant(NOW, &question(tries), &mut out), None);
        self.carry_out(out);
        let (channel, message) = self.sent.last().expect("it was asked");
        assert_eq!(object_of(message), "read");
        *channel
    }
}

#[test]
fn a_read_goes_to_a_server_that_waits_on_a_connection_of_its_own() {
    let mut bench = Bench::waiting();
    let channel = bench.ask(0);
    assert_ne!(channel, bench.sent[0].0, "the request is on another one");
    assert_eq!(bench.executor.begin_call(), None, "a read makes no calls");
    assert_eq!(bench.executor.moment(), None, "nor does it know the time");
    let answer = bench.answer(1);
    assert_eq!(answer, good(&["reentrant reply"]));
    assert_eq!(bench.closed, [channel]);
    // The request goes on as if nothing had been.
    bench.executor.end_call(NOW, history(1));
    assert_eq!(bench.executor.position(SPOT), Position::Behind);
    assert_eq!(bench.executor.begin_call(), Some((history(1), 3)));
    bench.executor.end_call(NOW, history(1));
    assert_eq!(bench.answer(0), good(&["1"]));
}

#[test]
fn a_server_that_does_not_answer_beside_is_not_hung_and_its_late_answer_is_nothing() {
    let mut bench = Bench::waiting();
    let channel = bench.ask(0);
    assert_eq!(bench.executor.deadline(), None);
    let due = bench.executor.reentrant_deadline().expect("it is waited for");
    assert_eq!(due, NOW + WITHIN);
    let mut out = Vec::new();
    assert!(bench.executor.reentrant_overdue(NOW, &mut out).is_none());
    let served = bench.executor.reentrant_overdue(due, &mut out).expect("the time is over");
    assert_eq!(served.report, OutsideReport::Failed(OutsideFailure::Doubt));
    bench.carry_out(out);
    assert_eq!(bench.closed, [channel]);
    assert_eq!(bench.answer(1), good(&[]));
    bench.executor.end_call(NOW, history(1));
    assert_eq!(bench.answer(0), good(&["1"]));
}

#[test]
fn a_server_that_let_the_time_pass_is_not_asked_again_unless_it_has_ever_answered() {
    // Found by the simulator (calls 700580): thirty reads one after the other, five seconds each.
    let mut bench = Bench::waiting();
    bench.ask(0);
    bench.executor.reentrant_overdue(NOW + WITHIN, &mut Vec::new()).expect("the time is over");
    let mut out = Vec::new();
    let served =
        bench.executor.ask_reentrant(NOW, &question(1), &mut out).expect("it is not asked");
    assert_eq!(served.report, OutsideReport::Failed(OutsideFailure::Doubt));
    assert_eq!((served.read_attempt, out.len()), (question(1).read_attempt, 0));
    let mut bench = Bench::waiting();
    bench.ask(0);
    assert_eq!(bench.answer(1), good(&["reentrant reply"]));
    bench.ask(1);
    bench.executor.reentrant_overdue(NOW + WITHIN, &mut Vec::new()).expect("it is slow");
    bench.ask(2);
}

#[test]
fn a_read_that_nobody_waits_for_is_no_longer_in_the_way_of_calls() {
    // Found by the simulator (calls 48): somebody else had answered the caller.
    let mut bench = Bench::waiting();
    let channel = bench.ask(0);
    bench.executor.end_call(NOW, history(1));
    assert_eq!(bench.executor.begin_call(), Some((history(1), 3)));
    bench.step();
    assert_eq!(bench.closed, [channel]);
    // A new try takes the place of an old one.
    let old = bench.ask(1);
    let new = bench.ask(2);
    assert_eq!(bench.closed, [channel, old]);
    bench.executor.keep_reentrant(Some(question(2).read_attempt));
    bench.step();
    assert_eq!(bench.closed, [channel, old]);
    bench.executor.keep_reentrant(None);
    bench.step();
    assert_eq!(bench.closed, [channel, old, new]);
}

#[test]
fn a_reply_that_is_too_long_or_none_at_all_is_said_so() {
    let mut bench = Bench::waiting();
    let channel = bench.ask(0);
    let id = id_of(&bench.sent[1].1);
    let long = build::reply(Version::V1_2, Endian::Little, id, ReplyStatus::NoException, |cdr| {
        cdr.write_octets(&vec![0; crate::reentrant::REENTRANT_REPLY_BYTES_MAX]);
    });
    assert_eq!(bench.hear(channel, long.bytes()), good(&["reentrant Failed(TooLarge)"]));
    let channel = bench.ask(1);
    assert_eq!(bench.hear(channel, b"HTTP/1.1 200 OK\r\n"), good(&["reentrant Failed(Doubt)"]));
}
