//! Circles are found, and nothing else is; what is known is forgotten when nobody asks again.

use super::*;
use alloc::vec::Vec;

const A: GroupId = GroupId(0);
const B: GroupId = GroupId(1);
const C: GroupId = GroupId(2);
const NEW: Verdict = Verdict::New { floors: false };
const CYCLE: Verdict = Verdict::Refused { why: CallRefusal::Cycle, first: true };

fn call(caller: GroupId, count: u64, number: u32) -> NestedCall {
    let during = History { count, digest: count.wrapping_mul(0x9e37_79b9) };
    let key = CallKey { caller, during, number };
    NestedCall { key, attempt: Attempt(1), digest: u64::from(number) }
}

fn group(position: u64, is_served: bool) -> Callee {
    Callee::Group { position, is_served, is_read: false }
}

fn node(index: u8) -> NodeId {
    NodeId::new(index).unwrap()
}

#[test]
fn a_call_back_into_the_group_that_waits_is_refused_also_to_those_who_ask_later() {
    let mut calls = Calls::default();
    assert_eq!(calls.deliver(&call(A, 5, 1), B, group(9, true)), NEW);
    // B executes that call as its 9th request, and calls A in it.
    assert_eq!(calls.deliver(&call(B, 9, 1), A, group(6, true)), CYCLE);
    let again = Verdict::Refused { why: CallRefusal::Cycle, first: false };
    assert_eq!(calls.deliver(&call(B, 9, 1), A, group(7, true)), again);
    // It does not wait for anything now, and may call others.
    assert_eq!(calls.deliver(&call(B, 9, 2), C, group(1, true)), NEW);
    assert_eq!(calls.deliver(&call(B, 9, 1), A, group(8, true)), again);
}

#[test]
fn a_group_that_calls_itself_and_a_circle_of_three_are_refused() {
    let mut calls = Calls::default();
    assert_eq!(calls.deliver(&call(A, 5, 1), A, group(6, true)), CYCLE);
    assert_eq!(calls.deliver(&call(A, 5, 2), B, group(1, true)), NEW);
    assert_eq!(calls.deliver(&call(B, 1, 1), C, group(1, true)), NEW);
    assert_eq!(calls.deliver(&call(C, 1, 1), A, group(6, true)), CYCLE);
}

#[test]
fn two_requests_that_wait_for_each_other_are_a_circle_though_neither_began_in_the_other() {
    let mut calls = Calls::default();
    // B executes its 4th request when A's call becomes its 5th, and then calls A.
    assert_eq!(calls.deliver(&call(A, 5, 1), B, group(5, true)), NEW);
    assert_eq!(calls.deliver(&call(B, 4, 1), A, group(6, true)), CYCLE);
}

#[test]
fn a_call_that_has_surely_ended_or_may_have_ended_closes_no_circle() {
    let mut calls = Calls::default();
    assert_eq!(calls.deliver(&call(A, 5, 1), B, group(3, true)), NEW);
    // B is at its 4th request, so the 3rd has ended.
    assert_eq!(calls.deliver(&call(B, 4, 1), A, group(6, true)), NEW);
    // A member of A that is behind makes its call again, and has its reply.
    assert_eq!(calls.deliver(&call(A, 5, 1), B, group(7, true)), Verdict::Known { differs: false });
    // A has gone on, and is executing the call of B.
    assert_eq!(calls.deliver(&call(A, 6, 1), C, group(1, true)), NEW);
    assert_eq!(calls.deliver(&call(A, 6, 2), B, group(8, true)), CYCLE);
}

#[test]
fn a_read_that_closes_a_circle_is_served_where_its_group_waits_and_nothing_else_is() {
    let read = |is_served| Callee::Group { position: 7, is_served, is_read: true };
    let mut calls = Calls::default();
    // Without a cycle it is a call like any other.
    assert_eq!(calls.deliver(&call(A, 5, 1), B, read(true)), NEW);
    assert_eq!(calls.spot(call(A, 5, 1).key), None);
    assert_eq!(calls.deliver(&call(A, 5, 2), B, group(9, true)), NEW);
    let closing = call(B, 9, 1);
    assert_eq!(calls.deliver(&closing, A, read(true)), NEW);
    let spot = Spot { group: A, during: call(A, 5, 2).key.during, number: 2 };
    assert_eq!(calls.spot(closing.key), Some(spot));
    assert!(calls.is_at(spot));
    let again = calls.deliver(&closing, A, read(true));
    assert_eq!(again, Verdict::Known { differs: false });
    // It waits for nobody, so the next one closes a cycle, too; and of one that is not a read
    // nothing has changed.
    assert_eq!(calls.deliver(&call(B, 9, 2), A, group(8, true)), CYCLE);
    assert_eq!(calls.deliver(&call(B, 9, 3), A, read(false)), CYCLE);
    // A group that reads itself waits in that very call.
    let own = call(C, 3, 1);
    assert_eq!(calls.deliver(&own, C, read(true)), NEW);
    assert_eq!(calls.spot(own.key), Some(Spot { group: C, during: own.key.during, number: 1 }));
    let mut w = Writer::default();
    calls.encode(&mut w);
    assert_eq!(Calls::decode(&mut Reader::new(w.finish())), Ok(calls.clone()));
    // The group has gone on: what is asked for is not there any more.
    assert_eq!(calls.deliver(&call(A, 6, 1), C, group(9, true)), NEW);
    assert!(!calls.is_at(spot));
}

#[test]
fn a_member_that_asks_for_something_else_is_noticed() {
    let mut calls = Calls::default();
    assert_eq!(calls.deliver(&call(A, 5, 1), B, group(3, true)), NEW);
    let other = NestedCall { digest: 99, ..call(A, 5, 1) };
    assert_eq!(calls.deliver(&other, B, group(4, true)), Verdict::Known { differs: true });
}

#[test]
fn a_call_that_nobody_could_execute_stays_refused_when_somebody_could() {
    let mut calls = Calls::default();
    let why = CallRefusal::NoMember;
    assert_eq!(
        calls.deliver(&call(A, 5, 1), B, group(1, false)),
        Verdict::Refused { why, first: true }
    );
    assert_eq!(
        calls.deliver(&call(A, 5, 1), B, group(1, true)),
        Verdict::Refused { why, first: false }
    );
}

#[test]
fn calls_are_known_until_every_member_of_this_try_is_done_with_them() {
    let mut calls = Calls::default();
    for count in 1..=10 {
        calls.deliver(&call(A, count, 1), B, group(count, true));
    }
    let members: Vec<_> = (0..2).map(|index| (node(index), Attempt(4))).collect();
    calls.floor(A, (node(0), Attempt(4), 8), &members);
    assert_eq!(calls.forgotten_below(A), 0, "one has not said anything");
    calls.floor(A, (node(1), Attempt(3), 9), &members);
    assert_eq!(calls.forgotten_below(A), 0, "that was another try");
    calls.floor(A, (node(1), Attempt(4), 6), &members);
    assert_eq!(calls.forgotten_below(A), 7);
    assert_eq!(calls.deliver(&call(A, 6, 1), B, group(11, true)), Verdict::TooLate);
    assert_eq!(
        calls.deliver(&call(A, 7, 1), B, group(11, true)),
        Verdict::Known { differs: false }
    );
    calls.reset(A);
    assert_eq!(calls.deliver(&call(A, 1, 1), B, group(11, true)), NEW);
}

#[test]
fn a_request_makes_so_many_calls_and_what_is_known_is_bounded() {
    let mut calls = Calls::default();
    let why = CallRefusal::TooMany;
    for number in 1..=CALLS_PER_REQUEST_MAX {
        let verdict = calls.deliver(&call(A, 1, number), B, group(u64::from(number), true));
        assert!(matches!(verdict, Verdict::New { .. }));
    }
    assert_eq!(
        calls.deliver(&call(A, 1, CALLS_PER_REQUEST_MAX + 1), B, group(999, true)),
        Verdict::Refused { why, first: false }
    );
    for count in 2..=KNOWN_MAX as u64 + 2 {
        calls.deliver(&call(A, count, 1), B, group(999 + count, true));
    }
    assert!(calls.callers[&A].known.len() <= KNOWN_MAX);
    assert_eq!(calls.deliver(&call(A, 1, 1), B, group(0, true)), Verdict::TooLate);
    let mut writer = Writer::default();
    calls.encode(&mut writer);
    let bytes = writer.finish();
    assert!(bytes.len() < 500_000, "it has to fit into one message: {}", bytes.len());
    assert_eq!(Calls::decode(&mut Reader::new(bytes)), Ok(calls));
}

#[test]
fn replies_from_outside_take_room_until_no_member_asks_for_them_again() {
    use crate::outside::{Copy, OutsideReport};
    use quorba_base::policy::OnDoubt;
    const LARGE: usize = OUTSIDE_BYTES_MAX / 8;
    let (callee, members) = (Callee::Outside { reply_bytes_max: LARGE }, [(node(0), Attempt(1))]);
    let mut calls = Calls::default();
    let make = |calls: &mut Calls, count| {
        let call = call(A, count, 1);
        let verdict = calls.deliver(&call, C, callee);
        let (rule, maker) = (OnDoubt::Fail, (node(0), 7));
        if let Some(outside) = calls.outside(call.key) {
            assert_eq!(outside.deliver(maker, |_| true, rule), Copy::MadeBy(maker, 0));
            let reply = OutsideReport::Reply(alloc::vec![1; LARGE].into());
            assert!(outside.end(maker, 0, &reply, rule));
        }
        verdict
    };
    assert_eq!(make(&mut calls, 1), NEW);
    let rest: Vec<_> = (2..=8).map(|count| make(&mut calls, count)).collect();
    assert_eq!(rest.last(), Some(&Verdict::New { floors: true }), "members are asked in time");
    let full = Verdict::Refused { why: CallRefusal::NoRoom, first: true };
    assert_eq!(make(&mut calls, 9), full);
    // What was refused stays so, for all who make the call later.
    calls.floor(A, (node(0), Attempt(1), 8), &members);
    let again = Verdict::Refused { why: CallRefusal::NoRoom, first: false };
    assert_eq!(make(&mut calls, 9), again);
    assert!(matches!(make(&mut calls, 10), Verdict::New { .. }));
    assert!(calls.outside(call(A, 8, 1).key).is_none(), "nobody asks for it again");
    let mut w = Writer::default();
    calls.encode(&mut w);
    assert_eq!(Calls::decode(&mut Reader::new(w.finish())), Ok(calls));
}

#[test]
fn callers_of_whom_nothing_is_known_any_more_are_read_as_they_were_written() {
    let caller = Caller { forgotten_below: 7, made: 9, ..Caller::default() };
    let calls = Calls { callers: [(A, caller.clone()), (B, caller)].into() };
    let mut w = Writer::default();
    calls.encode(&mut w);
    assert_eq!(Calls::decode(&mut Reader::new(w.finish())), Ok(calls));
}
