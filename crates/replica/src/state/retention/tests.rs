//! What is remembered, for how long, and what of it travels.

use super::*;
use crate::words::binding::{Binding, Bound};
use alloc::vec;

fn gateway(incarnation: u64, number: u64) -> GatewayKey {
    let node = NodeId::new(1).unwrap();
    GatewayKey { node, incarnation, number: RequestNumber(number) }
}

fn client(retention_id: i32) -> RequestKey {
    RequestKey::Client {
        client_id: Bytes::from_static(b"c"),
        retention_id,
        binding: Binding::default(),
    }
}

fn reply() -> Option<Bytes> {
    Some(Bytes::from_static(b"reply"))
}

#[test]
fn a_repetition_waits_then_gets_the_logged_reply() {
    let mut retention = Retention::default();
    let key = client(1);
    assert!(matches!(retention.admit(&key, gateway(1, 1), 10, false), Admission::Execute));
    assert!(matches!(retention.admit(&key, gateway(1, 2), 10, false), Admission::Wait));
    assert_eq!(retention.complete(&key, reply()), vec![gateway(1, 1), gateway(1, 2)]);
    let Admission::Answer(answer) = retention.admit(&key, gateway(1, 3), 10, false) else {
        panic!("executed twice");
    };
    assert_eq!(answer, reply());
}

#[test]
fn a_table_that_came_with_a_state_does_not_keep_it() {
    let mut retention = Retention::default();
    for key in [client(1), RequestKey::Gateway(gateway(1, 2))] {
        retention.admit(&key, gateway(1, 1), 5, false);
        retention.complete(&key, reply());
    }
    let mut writer = Writer::with_capacity(1000);
    retention.encode(&retention.freeze(), &mut writer);
    writer.rest(&[7; 1000]);
    let whole = writer.finish();
    let mut reader = Reader::new(whole.clone());
    let copy = Retention::decode(&mut reader).expect("it was encoded");
    drop(reader);
    assert!(whole.is_unique());
    assert_eq!((copy.len(), copy.reply_bytes()), (2, 10));
}

#[test]
fn a_table_is_forgotten_at_once_and_freed_by_and_by() {
    let mut retention = Retention::default();
    let (reply, count) = (Bytes::from(vec![7; 100]), 10 * FREED as i32);
    for number in 0..count {
        retention.admit(&client(number), gateway(1, number as u64), 5, false);
        retention.complete(&client(number), Some(reply.clone()));
    }
    retention.replace_by(Retention::default());
    assert_eq!((retention.len(), retention.reply_bytes()), (0, 0));
    let again = retention.admit(&client(1), gateway(1, 1), 5, false);
    assert!(matches!(again, Admission::Execute));
    for _ in 0..10 {
        assert!(!reply.is_unique());
        retention.free_some();
    }
    assert!(reply.is_unique());
    retention.free_some();
    assert!(retention.graves.is_empty());
    assert_eq!(retention.len(), 1);
}

#[test]
fn a_name_is_one_call_whoever_asks_and_a_stranger_must_ask_the_same() {
    let bound = |subject: u8, call: u8, body: u8| Bound {
        subject: [subject; 16],
        call: [call; 16],
        body: [body; 16],
    };
    let named = |bound: Bound| RequestKey::Client {
        client_id: Bytes::from_static(b"c"),
        retention_id: 7,
        binding: bound.into(),
    };
    let mut retention = Retention::default();
    let first = named(bound(1, 1, 1));
    assert!(matches!(retention.admit(&first, gateway(1, 1), 10, false), Admission::Execute));
    let mut is = |bound: Bound, expected: &str| {
        let found = match retention.admit(&named(bound), gateway(1, 2), 10, true) {
            Admission::Wait => "wait",
            Admission::Answer(_) => "answer",
            Admission::Taken => "taken",
            Admission::Forgotten => "forgotten",
            Admission::Execute | Admission::Refuse => "executed or refused",
        };
        assert_eq!(found, expected, "{bound:?}");
        retention.complete(&first, reply());
    };
    is(bound(2, 2, 1), "taken");
    is(bound(1, 2, 1), "taken");
    is(bound(2, 1, 2), "taken");
    is(bound(1, 1, 2), "answer");
    is(bound(2, 1, 1), "answer");
    let mut writer = Writer::default();
    retention.encode(&retention.freeze(), &mut writer);
    let mut copy = Retention::decode(&mut Reader::new(writer.finish())).unwrap();
    let stranger = named(bound(2, 1, 2));
    assert!(matches!(copy.admit(&stranger, gateway(2, 1), 10, false), Admission::Taken));
    copy.expire(11);
    let again = copy.admit(&stranger, gateway(2, 1), 20, false);
    assert!(matches!(again, Admission::Execute), "the name is free again");
}

#[test]
fn released_requests_and_those_of_former_boots_go() {
    let mut retention = Retention::default();
    for (incarnation, number) in [(1, 8), (2, 1), (2, 2), (2, 3)] {
        let key = RequestKey::Gateway(gateway(incarnation, number));
        retention.admit(&key, gateway(incarnation, number), 0, false);
        retention.complete(&key, reply());
    }
    assert_eq!(retention.reply_bytes(), 20);
    let mut release = |below, also: &[u64]| {
        let also = also.iter().copied().map(RequestNumber).collect();
        let released = Released { below: RequestNumber(below), also };
        retention.release(NodeId::new(1).unwrap(), 2, &released);
        (retention.len(), retention.reply_bytes())
    };
    assert_eq!(release(2, &[]), (2, 10));
    assert_eq!(release(2, &[3, 99]), (1, 5), "2 is still open at its gateway");
    assert_eq!(release(4, &[]), (0, 0));
}

#[test]
fn client_requests_stay_until_their_time_is_over_even_when_answered() {
    let mut retention = Retention::default();
    retention.admit(&client(1), gateway(1, 1), 100, false);
    retention.complete(&client(1), reply());
    retention.admit(&client(2), gateway(1, 2), 50, false);
    retention.release(NodeId::new(1).unwrap(), 1, &Released::below(RequestNumber(9)));
    retention.expire(100);
    assert_eq!(retention.len(), 1, "2 is forgotten though it runs, 1 expires after 100");
    assert_eq!(retention.complete(&client(2), None), vec![gateway(1, 2)]);
    assert_eq!(retention.len(), 1);
    retention.expire(101);
    assert_eq!(retention.len(), 0);
}

#[test]
fn what_was_known_at_the_join_travels_even_if_it_is_forgotten_before_the_state_is_there() {
    let mut retention = Retention::default();
    let key = |number| RequestKey::Gateway(gateway(1, number));
    retention.admit(&client(1), gateway(1, 1), 100, false);
    retention.complete(&client(1), reply());
    retention.admit(&key(2), gateway(1, 2), 0, false);
    retention.admit(&key(3), gateway(1, 3), 0, false);
    let frozen = retention.freeze();
    retention.complete(&key(2), reply());
    retention.complete(&key(3), reply());
    // Request 4 comes behind the join: it says that 2 is answered, and is not for the joiner.
    retention.release(NodeId::new(1).unwrap(), 1, &Released::below(RequestNumber(3)));
    retention.admit(&key(4), gateway(1, 4), 0, false);
    let mut writer = Writer::default();
    retention.encode(&frozen, &mut writer);
    let mut copy = Retention::decode(&mut Reader::new(writer.finish())).unwrap();
    assert_eq!(copy.entries[&client(1)].entry, Entry::Done { reply: reply() });
    assert_eq!(copy.entries[&key(3)].entry, Entry::Done { reply: reply() });
    let again = copy.admit(&key(2), gateway(1, 2), 0, false);
    assert!(matches!(again, Admission::Answer(_)), "a late repetition is executed twice");
    assert!(matches!(copy.admit(&key(4), gateway(1, 4), 0, false), Admission::Execute));
}

#[test]
fn a_call_of_another_group_is_known_until_nobody_there_can_make_it_again() {
    let call = |count, number| {
        let during = History { count, digest: 7 * count };
        RequestKey::Nested(CallKey { caller: GroupId(3), during, number })
    };
    let mut retention = Retention::default();
    for (count, number) in [(4, 1), (4, 2), (5, 1), (9, 1)] {
        retention.admit(&call(count, number), gateway(1, count), 0, false);
        retention.complete(&call(count, number), reply());
    }
    retention.expire(u64::MAX);
    retention.release(NodeId::new(1).unwrap(), 9, &Released::below(RequestNumber(99)));
    assert_eq!(retention.len(), 4, "neither time nor a gateway's word lets it go");
    retention.release_calls(GroupId(2), 100);
    retention.release_calls(GroupId(3), 5);
    assert_eq!(retention.len(), 2);
    let mut writer = Writer::default();
    retention.encode(&retention.freeze(), &mut writer);
    let mut copy = Retention::decode(&mut Reader::new(writer.finish())).unwrap();
    assert!(matches!(copy.admit(&call(5, 1), gateway(2, 1), 0, false), Admission::Answer(_)));
    assert!(matches!(copy.admit(&call(5, 2), gateway(2, 1), 0, false), Admission::Execute));
}

/// Says whether the client's request is answered from the table.
fn is_known(retention: &mut Retention, retention_id: i32, clock: u64) -> bool {
    retention.expire(clock);
    // Each time as another request.
    let gateway = gateway(2, 10 * clock + retention_id as u64);
    match retention.admit(&client(retention_id), gateway, clock, true) {
        Admission::Answer(_) => true,
        Admission::Refuse => false,
        _ => panic!("neither answered nor new"),
    }
}

fn travelled(retention: &Retention) -> Retention {
    let mut writer = Writer::default();
    retention.encode(&retention.freeze(), &mut writer);
    Retention::decode(&mut Reader::new(writer.finish())).expect("it was encoded")
}

#[test]
fn what_is_moved_to_another_clock_is_kept_as_long_there_and_wherever_it_travels() {
    for (from, to) in [(100, 100), (100, 100_000), (100, 10)] {
        let mut retention = Retention::default();
        // The time of the last one was over: it is not kept any longer than that.
        for (number, expiry) in [(1, 150), (2, 100), (3, 40)] {
            retention.admit(&client(number), gateway(1, number as u64), expiry, false);
            retention.complete(&client(number), reply());
        }
        retention.shift(from, to);
        for mut moved in [travelled(&retention), retention] {
            assert!((1..=3).all(|number| is_known(&mut moved, number, to)), "{from} {to}");
            assert!(!is_known(&mut moved, 3, to + 1));
            assert!(!is_known(&mut moved, 2, to + 1));
            assert!(is_known(&mut moved, 1, to + 50), "{from} {to}: forgotten early");
            // What was moved is moved with all that it has.
            assert!(is_known(&mut travelled(&moved), 1, to + 50));
            assert!(!is_known(&mut travelled(&moved), 1, to + 51));
            assert!(!is_known(&mut moved, 1, to + 51), "{from} {to}: kept for too long");
            assert_eq!((moved.len(), moved.reply_bytes()), (0, 0));
            assert!(moved.expiries.is_empty());
        }
    }
}

/// Whatever it was at, and wherever it came from.
#[test]
fn what_expires_gives_its_room_back() {
    let mut retention = Retention::default();
    for number in 1..=4 {
        let number_there = number as u64;
        retention.admit(&client(number), gateway(1, number_there), 50 + number_there, false);
    }
    retention.complete(&client(1), reply());
    retention.complete(&client(2), None);
    let mut copy = travelled(&retention);
    for table in [&mut retention, &mut copy] {
        table.expire(53);
        assert!(!table.holders.is_empty(), "two are left");
        table.expire(55);
        assert!(table.holders.is_empty());
        assert_eq!((table.len(), table.reply_bytes(), table.expiries.len()), (0, 0, 0));
    }
    for number in [3, 4] {
        assert_eq!(retention.complete(&client(number), reply()), [gateway(1, number as u64)]);
    }
    assert!(retention.overdue.is_empty());
    assert_eq!((retention.len(), retention.reply_bytes()), (0, 0), "it is not known again");
}

#[test]
fn a_repetition_neither_shortens_nor_lengthens_the_time_for_which_a_reply_is_kept() {
    let mut retention = Retention::default();
    retention.admit(&client(1), gateway(1, 1), 100, false);
    retention.complete(&client(1), reply());
    for (clock, expiry) in [(10, 20), (50, 500), (100, 1000)] {
        retention.expire(clock);
        let again = retention.admit(&client(1), gateway(1, 2), expiry, false);
        assert!(matches!(again, Admission::Answer(_)), "at {clock}");
    }
    retention.expire(101);
    let again = retention.admit(&client(1), gateway(1, 3), 200, false);
    assert!(matches!(again, Admission::Execute));
    assert_eq!(retention.expiries.len(), 1);
}

/// A gateway that was stopped has it ordered again, under its old number, when its time is over.
#[test]
fn what_a_gateway_orders_again_is_not_executed_though_its_name_is_forgotten() {
    let mut retention = Retention::default();
    assert!(matches!(retention.admit(&client(1), gateway(1, 1), 100, false), Admission::Execute));
    retention.complete(&client(1), reply());
    // The client has asked again elsewhere.
    assert!(matches!(retention.admit(&client(1), gateway(1, 7), 100, false), Admission::Answer(_)));
    retention.expire(101);
    let mut travelled = travelled(&retention);
    for table in [&mut retention, &mut travelled] {
        for number in [1, 7] {
            let again = table.admit(&client(1), gateway(1, number), 300, false);
            assert!(matches!(again, Admission::Forgotten), "{number}");
        }
        assert_eq!((table.len(), table.unreleased()), (0, 2), "it is not known again");
        let other = table.admit(&client(1), gateway(1, 8), 300, false);
        assert!(matches!(other, Admission::Execute), "its client may use the name again");
        let again = table.admit(&client(1), gateway(1, 1), 300, false);
        assert!(matches!(again, Admission::Wait), "whatever the name stands for is known");
        table.release(NodeId::new(1).unwrap(), 1, &Released::below(RequestNumber(9)));
        assert_eq!(table.unreleased(), 0);
    }
}

#[test]
fn what_was_refused_may_be_asked_again() {
    let mut retention = Retention::default();
    assert!(matches!(retention.admit(&client(1), gateway(1, 1), 100, true), Admission::Refuse));
    assert_eq!(retention.unreleased(), 0);
    assert!(matches!(retention.admit(&client(1), gateway(1, 1), 100, false), Admission::Execute));
}
