//! Who is at fault, and how requests end.

use super::*;
use crate::words::ids::{GatewayKey, RequestNumber};
use crate::words::wire::{Reader, Writer};
use alloc::vec;

fn node(index: u8) -> NodeId {
    NodeId::new(index).unwrap()
}

fn named(count: u64) -> (RequestKey, History) {
    let (incarnation, number) = (1, RequestNumber(count));
    let key = RequestKey::Gateway(GatewayKey { node: node(0), incarnation, number });
    (key, History { count, digest: 7 * count })
}

fn all() -> Electorate<'static> {
    of(0b111)
}

fn of(bits: u64) -> Electorate<'static> {
    let inside = NodeSet::from_bits(bits);
    Electorate {
        inside,
        executing: inside,
        joined: &|_| JoinedWith::Requests(0),
        votes: false,
        durable: false,
        led_from: 0,
        in_sequence: true,
        begins_anew: false,
    }
}

fn leader(index: u8) -> Electorate<'static> {
    let executing = NodeSet::EMPTY.with(node(index));
    Electorate {
        inside: NodeSet::first(3),
        executing,
        joined: &|_| JoinedWith::Requests(0),
        votes: false,
        durable: false,
        led_from: 0,
        in_sequence: true,
        begins_anew: false,
    }
}

const GONE: Report = Report::NoReply(NoReply::ConnectionEnded);

fn ended(count: u64, end: RequestEnd) -> Vec<Conclusion> {
    let (key, at) = named(count);
    vec![Conclusion::Ended { key, at, end }]
}

fn at_fault(index: u8, reason: DownReason) -> Vec<Conclusion> {
    vec![Conclusion::AtFault { node: node(index), reason, at: named(5).1 }]
}

/// What was encoded is what is decoded, at any time.
fn copy(endings: &Endings) -> Endings {
    let mut writer = Writer::default();
    endings.encode(&mut writer);
    let copy = Endings::decode(&mut Reader::new(writer.finish())).expect("just encoded");
    assert_eq!(copy, *endings);
    copy
}

#[test]
fn what_all_did_ends_the_request_and_nobody_is_at_fault() {
    let mut endings = Endings::default();
    endings.hear(node(0), named(5), GONE);
    endings.hear(node(2), named(5), Report::NoReply(NoReply::NotAReply));
    assert_eq!(endings.conclude(&all()), vec![]);
    let asked = endings.asked_of(node(1), &all());
    assert_eq!(asked, [(named(5).0, named(5).1, false)]);
    endings = copy(&endings);
    endings.hear(node(1), named(5), GONE);
    let end = RequestEnd::NoReply(NoReply::ConnectionEnded);
    assert_eq!(endings.conclude(&all()), ended(5, end));
    endings = copy(&endings);
    assert!(endings.open.is_empty() && endings.conclude(&all()).is_empty());
    endings.hear(node(1), named(5), GONE);
    assert!(endings.open.is_empty(), "it is over for whoever executes it again");
    assert_eq!(endings.ends().count(), 1);
}

#[test]
fn who_alone_did_not_reply_is_at_fault_whoever_speaks_first() {
    for first in [true, false] {
        let mut endings = Endings::default();
        if first {
            endings.hear(node(1), named(5), Report::Replied);
        }
        endings.hear(node(0), named(5), GONE);
        if !first {
            assert_eq!(endings.conclude(&all()), vec![]);
            endings.hear(node(1), named(5), Report::Replied);
        }
        assert_eq!(endings.conclude(&all()), at_fault(0, DownReason::ConnectionLost));
        endings.leave(node(0));
        endings.hear(node(2), named(5), Report::Replied);
        assert_eq!(endings.conclude(&of(0b110)), vec![]);
        assert!(endings.open.is_empty(), "all who are in have replied");
    }
}

#[test]
fn who_is_gone_is_waited_for_no_more_and_its_reply_counts_no_more() {
    let mut endings = Endings::default();
    endings.hear(node(0), named(5), GONE);
    endings.leave(node(1));
    endings.leave(node(2));
    let end = RequestEnd::NoReply(NoReply::ConnectionEnded);
    assert_eq!(endings.conclude(&of(0b001)), ended(5, end), "the last one is never at fault");
}

#[test]
fn who_joined_behind_a_request_has_no_say_and_is_judged() {
    let electorate =
        Electorate { joined: &|of| JoinedWith::State(if of == node(2) { 5 } else { 0 }), ..all() };
    let mut endings = Endings::default();
    endings.hear(node(2), named(5), GONE);
    assert!(endings.asked_of(node(2), &electorate).is_empty());
    endings.hear(node(0), named(5), Report::Replied);
    assert_eq!(endings.conclude(&electorate), at_fault(2, DownReason::ConnectionLost));
}

// Two that were cut off had come back with it. What the third did alone was taken for all.
#[test]
fn who_came_back_with_a_request_that_its_own_server_was_given_has_a_say_in_it() {
    let electorate = Electorate {
        joined: &|of| JoinedWith::Requests(if of == node(0) { 0 } else { 9 }),
        ..all()
    };
    let mut endings = Endings::default();
    endings.hear(node(0), named(5), GONE);
    assert_eq!(endings.conclude(&electorate), vec![]);
    assert_eq!(endings.asked_of(node(1), &electorate).len(), 1);
    endings.hear(node(1), named(5), Report::Replied);
    assert_eq!(endings.conclude(&electorate), at_fault(0, DownReason::ConnectionLost));
}

#[test]
fn what_the_leader_before_may_have_answered_the_next_one_tries_once_more() {
    let mut endings = Endings::default();
    let taken_over = |index| Electorate { led_from: 7, ..leader(index) };
    endings.hear(node(0), named(5), GONE);
    assert_eq!(endings.conclude(&taken_over(0)), at_fault(0, DownReason::ConnectionLost));
    endings = copy(&endings);
    endings.leave(node(0));
    assert_eq!(endings.asked_of(node(1), &taken_over(1)), []);
    endings.hear(node(1), named(5), GONE);
    let end = RequestEnd::NoReply(NoReply::ConnectionEnded);
    assert_eq!(endings.conclude(&taken_over(1)), ended(5, end));
    endings.hear(node(1), named(8), GONE);
    assert_eq!(endings.conclude(&taken_over(1)), ended(8, end), "nobody else had it");
}

// Seed 9000070 of the simulator's `calls`: an acknowledged call was lost.
#[test]
fn what_a_leader_answered_before_it_hung_is_not_given_up_when_the_next_one_hangs_at_it() {
    let mut endings = Endings::default();
    endings.hear(node(0), named(6), Report::Late);
    let found = endings.conclude(&leader(0));
    assert!(matches!(found[..], [Conclusion::AtFault { reason: DownReason::ServerHung, .. }]));
    endings.leave(node(0));
    assert!(!endings.may_skip(named(5).1, &leader(1)), "it was answered");
    assert!(endings.may_skip(named(6).1, &leader(1)));
    let several = Electorate { in_sequence: false, ..leader(0) };
    let mut endings = Endings::default();
    endings.hear(node(0), named(6), Report::Late);
    endings.conclude(&several);
    assert!(endings.may_skip(named(5).1, &several), "nobody knows what else it was at");
}

#[test]
fn where_members_vote_most_decide() {
    let votes = Electorate { votes: true, ..all() };
    let mut endings = Endings::default();
    endings.hear(node(0), named(5), Report::Replied);
    endings.hear(node(1), named(5), GONE);
    assert_eq!(endings.conclude(&votes), vec![]);
    endings.hear(node(2), named(5), GONE);
    let mut expected = ended(5, RequestEnd::NoReply(NoReply::ConnectionEnded));
    expected.extend(at_fault(0, DownReason::Diverged));
    assert_eq!(endings.conclude(&votes), expected);
    endings.hear(node(0), named(6), Report::Replied);
    endings.hear(node(1), named(6), Report::Replied);
    endings.hear(node(2), named(6), GONE);
    let found = endings.conclude(&votes);
    assert!(matches!(found[..], [Conclusion::AtFault { node: of, .. }] if of == node(2)));
}

#[test]
fn where_only_the_leader_executes_its_word_counts() {
    let mut endings = Endings::default();
    endings.hear(node(1), named(5), GONE);
    let end = RequestEnd::NoReply(NoReply::ConnectionEnded);
    assert_eq!(endings.conclude(&leader(1)), ended(5, end));
}

#[test]
fn a_leader_that_is_late_is_followed_once_by_another_one() {
    let mut endings = Endings::default();
    endings.hear(node(1), named(5), Report::Late);
    assert_eq!(endings.conclude(&leader(1)), at_fault(1, DownReason::ServerHung));
    assert_eq!(endings.conclude(&leader(1)), vec![]);
    endings.leave(node(1));
    endings = copy(&endings);
    endings.hear(node(2), named(5), Report::Late);
    assert_eq!(endings.conclude(&leader(2)), vec![], "so it is the request");
    let alone = Electorate { inside: NodeSet::EMPTY.with(node(1)), ..leader(1) };
    endings.hear(node(1), named(6), Report::Late);
    assert_eq!(endings.conclude(&alone), vec![], "nobody else has the state");
}

#[test]
fn late_is_not_dead_and_others_answer_for_who_alone_is_late() {
    let mut endings = Endings::default();
    (0..3).for_each(|index| endings.hear(node(index), named(5), Report::Late));
    assert_eq!(endings.conclude(&all()), vec![]);
    assert!(endings.late().is_empty(), "all are");
    endings.hear(node(1), named(5), Report::Replied);
    assert_eq!(endings.conclude(&all()), vec![], "the others have some time");
    assert!(endings.late().is_empty());
    endings.hear(node(2), named(5), Report::Late);
    assert!(endings.is_answered_elsewhere(node(2), named(5).1, &all()));
    assert!(!endings.is_answered_elsewhere(node(1), named(5).1, &all()));
    assert_eq!(endings.late(), NodeSet::EMPTY.with(node(2)));
    endings = copy(&endings);
    endings.hear(node(2), named(5), Report::CaughtUp);
    assert!(endings.late().is_empty());
}

#[test]
fn two_processes_may_end_at_a_request_and_a_third_does_not_begin_it() {
    let mut endings = Endings::default();
    endings.process_ended(&[named(5)], 4);
    assert!(endings.asked_of(node(1), &of(0b110)).is_empty(), "others go on");
    endings.leave(node(0));
    endings.process_ended(&[named(5)], 4);
    endings.leave(node(1));
    assert_eq!(endings.conclude(&of(0b100)), vec![]);
    assert_eq!(endings.asked_of(node(2), &of(0b100)), [(named(5).0, named(5).1, true)]);
    endings = copy(&endings);
    endings.hear(node(2), named(5), Report::NotStarted);
    assert_eq!(endings.conclude(&of(0b100)), ended(5, RequestEnd::EndsServers));
}

#[test]
fn when_all_processes_ended_nobody_executes_it_again_whatever_the_past() {
    let mut endings = Endings::default();
    for index in 0..3 {
        endings.process_ended(&[named(5)], 4);
        endings.leave(node(index));
    }
    assert_eq!(endings.conclude(&of(0)), ended(5, RequestEnd::EndsServers));
    endings.begin_anew();
    assert_eq!(copy(&endings).ends().count(), 1);
}

#[test]
fn an_answered_request_ends_no_server() {
    let mut endings = Endings::default();
    endings.process_ended(&[named(5)], 4);
    endings.leave(node(0));
    endings.process_ended(&[named(5)], 4);
    endings.leave(node(1));
    endings.hear(node(2), named(5), Report::Replied);
    assert_eq!(endings.conclude(&of(0b100)), vec![]);
    assert!(endings.open.is_empty());
    // A leader that ended at a later one had answered it.
    endings.process_ended(&[named(9)], 8);
    endings.process_ended(&[named(6)], 0);
    endings.process_ended(&[named(6)], 0);
    endings.leave(node(2));
    assert_eq!(endings.conclude(&of(0)), vec![]);
}

#[test]
fn a_request_that_comes_again_behind_another_past_ends_no_more_servers() {
    let mut endings = Endings::default();
    endings.process_ended(&[named(5)], 4);
    endings.begin_anew();
    let again = (named(5).0, History { count: 3, digest: 1 });
    endings.process_ended(core::slice::from_ref(&again), 2);
    let (key, at) = again;
    let end = RequestEnd::EndsServers;
    assert_eq!(endings.conclude(&of(0)), vec![Conclusion::Ended { key, at, end }]);
}

#[test]
fn what_is_given_up_is_inquired_into_no_more() {
    let mut endings = Endings::default();
    endings.hear(node(0), named(5), Report::Late);
    endings.skip(named(5).1);
    endings.hear(node(1), named(5), Report::Late);
    assert!(endings.open.is_empty());
    assert_eq!(copy(&endings).skipped().collect::<Vec<_>>(), [named(5).1]);
}

#[test]
fn what_is_remembered_has_a_bound_and_the_oldest_goes() {
    let mut endings = Endings::default();
    for count in 1..=2 * OPEN_MAX as u64 {
        endings.process_ended(&[named(count)], 0);
    }
    assert_eq!(endings.open.len(), OPEN_MAX);
    for count in 1..=2 * ENDED_MAX as u64 {
        endings.hear(node(0), named(10_000 + count), GONE);
        endings.conclude(&of(1));
        endings.skip(named(count).1);
    }
    assert_eq!((endings.ended.len(), endings.skipped.len()), (ENDED_MAX, ENDED_MAX));
    assert_eq!(endings.ends().last().map(|(_, at, _)| at.count), Some(12_048));
}

// Whoever had been late itself never said that its server had replied after all, and another one,
// whose server never did, waited for ever.
#[test]
fn who_was_late_and_has_replied_says_so() {
    let mut endings = Endings::default();
    endings.hear(node(1), named(5), Report::Late);
    endings.hear(node(0), named(5), Report::Late);
    assert_eq!(endings.asked_of(node(1), &all()), [(named(5).0, named(5).1, false)]);
    endings.hear(node(1), named(5), Report::Replied);
    assert!(endings.asked_of(node(1), &all()).is_empty());
    assert_eq!(endings.conclude(&all()), vec![]);
    assert!(endings.is_answered_elsewhere(node(0), named(5).1, &all()));
}

#[test]
fn that_it_was_never_taken_is_promised_only_if_nobody_saw_anything_else() {
    let never = Report::NoReply(NoReply::NeverTaken);
    for (last, end) in [(GONE, NoReply::ConnectionEnded), (never, NoReply::NeverTaken)] {
        let mut endings = Endings::default();
        endings.hear(node(0), named(5), never);
        endings.hear(node(1), named(5), never);
        endings.hear(node(2), named(5), last);
        assert_eq!(endings.conclude(&all()), ended(5, RequestEnd::NoReply(end)));
    }
}

/// Of three that vote, two never took it, and the third one's server is silent, or has replied: it
/// may have executed it.
#[test]
fn that_it_was_never_taken_is_not_promised_by_most() {
    let votes = Electorate { votes: true, ..all() };
    let never = Report::NoReply(NoReply::NeverTaken);
    for third in [None, Some(Report::Late), Some(Report::Replied)] {
        let mut endings = Endings::default();
        for index in 0..2 {
            endings.hear(node(index), named(5), never);
        }
        third.into_iter().for_each(|report| endings.hear(node(2), named(5), report));
        let mut expected = ended(5, RequestEnd::NoReply(NoReply::ConnectionEnded));
        if third == Some(Report::Replied) {
            expected.extend(at_fault(2, DownReason::Diverged));
        }
        assert_eq!(endings.conclude(&votes), expected, "{third:?}");
    }
}

#[test]
fn who_replies_to_what_the_others_did_not_is_sent_back_unless_it_alone_executes() {
    let mut endings = Endings::default();
    for index in 0..2 {
        endings.hear(node(index), named(5), GONE);
    }
    assert_eq!(
        endings.conclude(&of(0b011)),
        ended(5, RequestEnd::NoReply(NoReply::ConnectionEnded))
    );
    endings.hear(node(2), named(5), Report::Replied);
    assert_eq!(endings.conclude(&of(0b011)), at_fault(2, DownReason::Diverged));
    assert_eq!(endings.conclude(&of(0b011)), vec![], "once");
    endings.hear(node(2), named(5), Report::Replied);
    assert_eq!(endings.conclude(&leader(2)), vec![], "a leader's word counts");
}

// The only one that was in when it came was late with it, and those who had come in since had it.
#[test]
fn who_came_in_with_what_was_answered_has_answered() {
    let electorate =
        Electorate { joined: &|of| JoinedWith::State(if of == node(0) { 0 } else { 9 }), ..all() };
    let mut endings = Endings::default();
    endings.hear(node(0), named(5), Report::Late);
    assert!(endings.is_answered_elsewhere(node(0), named(5).1, &electorate));
    assert_eq!(endings.conclude(&electorate), vec![]);
    endings.hear(node(0), named(5), GONE);
    assert_eq!(endings.conclude(&electorate), at_fault(0, DownReason::ConnectionLost));
}

#[test]
fn what_somebody_has_answered_or_what_has_ended_is_not_given_up() {
    let mut endings = Endings::default();
    assert!(endings.may_skip(named(5).1, &all()));
    endings.hear(node(0), named(5), Report::Late);
    assert!(endings.may_skip(named(5).1, &all()));
    endings.hear(node(1), named(5), Report::Replied);
    assert!(!endings.may_skip(named(5).1, &all()), "its caller may have the reply");
    for of in 0..3 {
        endings.hear(node(of), named(6), GONE);
    }
    endings.conclude(&all());
    assert!(!endings.may_skip(named(6).1, &all()), "its callers were told another end");
    endings.skip(named(7).1);
    assert!(!endings.may_skip(named(7).1, &all()));
}
