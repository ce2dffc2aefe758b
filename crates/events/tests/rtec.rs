//! TAO's interface, and the facade, through stubs: subscriptions, filters, timers, gateways,
//! observers, and every exception.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Object};
use quorba_events::filter::designator as d;
use quorba_events::{Limits, Outcome, Outgoing, Settings};
use quorba_idl::ft_rtec_event_channel_admin::EventChannelStub as FacadeStub;
use quorba_idl::ft_rtec_event_comm::InvalidObjectID;
use quorba_idl::ft_rtec_event_comm::push_consumer::PushError;
use quorba_idl::rtec_event_channel_admin::{
    self as rtec, AlreadyConnected, ConsumerQOS, TypeError, event_channel,
};
use stage::{COS, MS, Mood, RTEC, Stage, entry, event, offers, wants, wants_all};

fn system(kind: ExceptionKind) -> SystemException {
    SystemException { kind, minor: 0, completed: Completion::No }
}

/// Pushes events of types and sources.
fn push(stage: &mut Stage, proxy: &Object, events: &[(i32, i32)]) {
    let events = events.iter().map(|(event_type, source)| event(*event_type, *source, 0)).collect();
    let pushed = stage.at(proxy, |it| rtec::ProxyPushConsumerStub(it).push(&events));
    pushed.expect("sent");
    stage.settle();
}

#[test]
fn consumers_get_what_they_asked_for_and_nothing_else() {
    let mut stage = Stage::new(Settings::default());
    let (all, _) = stage.rtec_consumer(&wants_all());
    let (by_type, _) = stage.rtec_consumer(&wants(&[(16, 0)]));
    let (by_source, _) = stage.rtec_consumer(&wants(&[(d::ANY, 3)]));
    let (either, _) = stage.rtec_consumer(&wants(&[(d::DISJUNCTION, 2), (16, 1), (17, 3)]));
    let (not, _) = stage.rtec_consumer(&wants(&[(d::NEGATION, 0), (16, 0)]));
    let (masked, _) = stage.rtec_consumer(&wants(&[(d::MASKED_TYPE, 0), (0xf, 0), (1, 0)]));
    let bits = [(d::BITMASK, 0), (1, 1), (d::NULL, 0)];
    let (bits, _) = stage.rtec_consumer(&wants(&bits));
    let both = [(d::LOGICAL_AND, 2), (d::ANY, 1), (d::NEGATION, 0), (17, 0)];
    let (both, _) = stage.rtec_consumer(&wants(&both));
    let (nothing, _) = stage.rtec_consumer(&wants(&[]));
    let (_, supplier) = stage.rtec_supplier(&offers(&[]));
    push(&mut stage, &supplier, &[(16, 1), (17, 3), (18, 1), (17, 1)]);
    let types = |port: u16| stage.peers[&port].types();
    assert_eq!(types(all), [16, 17, 18, 17]);
    assert_eq!(types(by_type), [16]);
    assert_eq!(types(by_source), [17]);
    assert_eq!(types(either), [16, 17]);
    assert_eq!(types(not), [17, 18, 17]);
    assert_eq!(types(masked), [17, 17]);
    assert_eq!(types(bits), [17, 17], "16 and 18 have no bit in common with 1");
    assert_eq!(types(both), [16, 18]);
    assert!(types(nothing).is_empty());
}

#[test]
fn of_many_consumers_only_those_that_can_want_an_event_are_asked_and_none_is_left_out() {
    let mut stage = Stage::new(Settings::default());
    let (first, _) = stage.rtec_consumer(&wants(&[(d::MASKED_TYPE, 0), (0x7f, 0), (105, 0)]));
    let few: Vec<u16> =
        (0..40).map(|one| stage.rtec_consumer(&wants(&[(100 + one, 0)])).0).collect();
    let (masked, _) = stage.rtec_consumer(&wants(&[(d::MASKED_TYPE, 0), (0x7f, 0), (105, 0)]));
    let (gone, proxy) = stage.rtec_consumer(&wants(&[(105, 0)]));
    let (_, supplier) = stage.rtec_supplier(&offers(&[]));
    let done = stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).disconnect_push_supplier());
    done.expect("disconnected");
    push(&mut stage, &supplier, &[(105, 1), (139, 1), (150, 1)]);
    assert_eq!(stage.peers[&few[5]].types(), [105]);
    assert_eq!(stage.peers[&few[39]].types(), [139]);
    assert_eq!(stage.peers[&masked].types(), [105]);
    assert_eq!(stage.peers[&first].types(), [105]);
    assert!(stage.peers[&gone].sets.is_empty());
    let count: usize = stage.peers.values().map(|peer| peer.sets.len()).sum();
    assert_eq!(count, 4);
    // A type that stands for all is for all.
    push(&mut stage, &supplier, &[(0, 1)]);
    assert!(few.iter().all(|port| stage.peers[port].types().last() == Some(&0)));
}

#[test]
fn a_conjunction_comes_as_one_set() {
    let mut stage = Stage::new(Settings::default());
    let (port, _) = stage.rtec_consumer(&wants(&[(d::CONJUNCTION, 2), (16, 0), (17, 0)]));
    let (_, supplier) = stage.rtec_supplier(&offers(&[]));
    push(&mut stage, &supplier, &[(17, 1), (18, 1), (17, 2), (16, 4), (16, 5), (17, 6)]);
    let sources: Vec<Vec<i32>> = stage.peers[&port]
        .sets
        .iter()
        .map(|set| set.iter().map(|event| event.header.source).collect())
        .collect();
    assert_eq!(sources, [[1, 4], [5, 6]], "the first of each, in the order of coming");
}

#[test]
fn timers_fire_when_they_are_due() {
    let mut stage = Stage::new(Settings::default());
    let timer = |kind: i32, ms: u64| entry(kind, 0, ms * MS, 0);
    let one = |kind| ConsumerQOS { dependencies: vec![timer(kind, 10)], is_gateway: false };
    let (once, _) = stage.rtec_consumer(&one(d::TIMEOUT));
    let (often, _) = stage.rtec_consumer(&one(d::INTERVAL_TIMEOUT));
    // A deadline beside an event: it fires only if nothing comes for so long.
    let dependencies =
        vec![entry(d::DISJUNCTION, 2, 0, 0), entry(16, 0, 0, 0), timer(d::DEADLINE_TIMEOUT, 10)];
    let (late, _) = stage.rtec_consumer(&ConsumerQOS { dependencies, is_gateway: false });
    let (_, supplier) = stage.rtec_supplier(&offers(&[]));
    for ms in 1..=50 {
        stage.channel.tick(ms * MS);
        if ms % 8 == 0 && ms < 30 {
            push(&mut stage, &supplier, &[(16, 1)]);
        }
        stage.settle();
    }
    assert_eq!(stage.peers[&once].types(), [d::TIMEOUT]);
    assert_eq!(stage.peers[&often].types(), [d::INTERVAL_TIMEOUT; 5]);
    let deadline = d::DEADLINE_TIMEOUT;
    assert_eq!(stage.peers[&late].types(), [16, 16, 16, deadline, deadline]);
    assert_eq!(stage.channel.poll_timeout(), Some(54 * MS));
    // Times that have passed meanwhile are not made up for.
    stage.channel.tick(1000 * MS);
    stage.settle();
    assert_eq!(stage.peers[&often].sets.len(), 6);
}

#[test]
fn a_suspended_consumer_gets_nothing_until_it_resumes() {
    let mut stage = Stage::new(Settings::default());
    let (port, proxy) = stage.rtec_consumer(&wants_all());
    let (_, supplier) = stage.rtec_supplier(&offers(&[]));
    push(&mut stage, &supplier, &[(16, 1)]);
    stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).suspend_connection()).expect("suspended");
    push(&mut stage, &supplier, &[(17, 1)]);
    stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).resume_connection()).expect("resumed");
    push(&mut stage, &supplier, &[(18, 1)]);
    assert_eq!(stage.peers[&port].types(), [16, 18]);
}

#[test]
fn gateways_get_what_has_a_hop_left() {
    for (takes_hop, ttl) in [(false, 2), (true, 1)] {
        let mut stage = Stage::new(Settings { takes_hop, ..Settings::default() });
        let (gateway, _) = stage.rtec_consumer(&ConsumerQOS { is_gateway: true, ..wants_all() });
        let (other, _) = stage.rtec_consumer(&wants_all());
        let (_, supplier) = stage.rtec_supplier(&offers(&[]));
        let (mut far, mut here) = (event(16, 1, 0), event(17, 1, 0));
        (far.header.ttl, here.header.ttl) = (2, 0);
        let pushed =
            stage.at(&supplier, |it| rtec::ProxyPushConsumerStub(it).push(&vec![far, here]));
        pushed.expect("sent");
        stage.settle();
        assert_eq!(stage.peers[&other].types(), [16, 17]);
        assert_eq!(stage.peers[&gateway].types(), [16]);
        assert_eq!(stage.peers[&gateway].sets[0][0].header.ttl, ttl);
    }
}

#[test]
fn events_carry_the_times_of_the_channel_and_their_data() {
    let mut stage = Stage::new(Settings::default());
    let (port, _) = stage.rtec_consumer(&wants_all());
    let (_, supplier) = stage.rtec_supplier(&offers(&[]));
    let mut sent = event(16, 1, 42);
    sent.header.creation_time = 3;
    sent.data.any_value = Any::new(&"text".to_owned()).expect("a text");
    stage.channel.tick(7);
    let pushed =
        stage.at(&supplier, |it| rtec::ProxyPushConsumerStub(it).push(&vec![sent.clone()]));
    pushed.expect("sent");
    stage.channel.tick(9);
    stage.settle();
    let got = &stage.peers[&port].sets[0][0];
    assert_eq!((got.header.creation_time, got.header.ec_recv_time), (3, 7));
    assert_eq!(got.header.ec_send_time, 9);
    assert_eq!(got.data.payload, sent.data.payload);
    assert_eq!(got.data.any_value.get::<String>(), Some("text".to_owned()));
}

#[test]
fn events_go_from_one_interface_to_the_other() {
    use quorba_idl::cos_event_channel_admin as cos;
    let mut stage = Stage::new(Settings::default());
    let (rtec_port, _) = stage.rtec_consumer(&wants(&[(16, 0)]));
    let (_, supplier) = stage.rtec_supplier(&offers(&[]));
    let channel = stage.channel.cos_reference();
    let admins = stage.at(&channel, |it| {
        let mut it = cos::EventChannelStub(it);
        (it.for_consumers().expect("an admin"), it.for_suppliers().expect("an admin"))
    });
    let to = stage.at(&admins.0, |it| cos::ConsumerAdminStub(it).obtain_push_supplier());
    let from = stage.at(&admins.1, |it| cos::SupplierAdminStub(it).obtain_push_consumer());
    let (to, from) = (to.expect("a proxy"), from.expect("a proxy"));
    let (cos_port, peer) = stage.peer(COS);
    stage.at(&to, |it| cos::ProxyPushSupplierStub(it).connect_push_consumer(&peer)).expect("done");
    let nobody = Object::nil();
    let connected =
        stage.at(&from, |it| cos::ProxyPushConsumerStub(it).connect_push_supplier(&nobody));
    connected.expect("connected");
    let data = Any::new(&7_u32).expect("a number");
    stage.at(&from, |it| cos::ProxyPushConsumerStub(it).push(&data)).expect("pushed");
    push(&mut stage, &supplier, &[(17, 5)]);
    let there = &stage.peers[&rtec_port].sets;
    assert_eq!(there.len(), 1);
    assert_eq!(there[0][0].data.any_value.get::<u32>(), Some(7));
    let anys = &stage.peers[&cos_port].anys;
    assert_eq!(anys[0].get::<u32>(), Some(7));
    let whole = anys[1].get::<quorba_idl::rtec_event_comm::Event>().expect("an event");
    assert_eq!((whole.header.r#type, whole.header.source), (17, 5));
}

#[test]
fn observers_are_told_what_is_wanted_and_what_there_is() {
    let limits = Limits { observers_max: 1, ..Limits::default() };
    let mut stage = Stage::new(Settings { limits, ..Settings::default() });
    let (port, observer) = stage.peer(RTEC);
    let channel = stage.channel.rtec_reference();
    let append = |stage: &mut Stage, one: &Object| {
        stage.at(&channel, |it| rtec::EventChannelStub(it).append_observer(one))
    };
    let refused = event_channel::CANTAPPENDOBSERVER {};
    assert_eq!(append(&mut stage, &Object::nil()), Err(refused.clone().into()));
    let handle = append(&mut stage, &observer).expect("appended");
    assert_eq!(append(&mut stage, &observer), Err(refused.into()), "one is the limit");
    stage.settle();
    stage.rtec_consumer(&wants(&[(d::DISJUNCTION, 2), (16, 1), (17, 1)]));
    stage.rtec_consumer(&wants(&[(16, 1)]));
    stage.rtec_consumer(&ConsumerQOS { is_gateway: true, ..wants(&[(99, 1)]) });
    stage.rtec_supplier(&offers(&[(16, 1), (17, 1), (18, 1)]));
    stage.settle();
    let seen = stage.peers[&port].seen.clone();
    let none = usize::MAX;
    assert_eq!(seen, [(1, none), (none, 0), (3, none), (none, 3)], "with the group in front");
    let remove = |stage: &mut Stage, handle: u32| {
        stage.at(&channel, |it| rtec::EventChannelStub(it).remove_observer(&handle))
    };
    assert_eq!(remove(&mut stage, handle), Ok(()));
    let missing = event_channel::CANTREMOVEOBSERVER {};
    assert_eq!(remove(&mut stage, handle), Err(missing.into()));
    stage.rtec_consumer(&wants_all());
    stage.settle();
    assert_eq!(stage.peers[&port].seen.len(), seen.len());
}

#[test]
fn what_makes_no_sense_is_refused_with_the_interface_s_exceptions() {
    let mut stage = Stage::new(Settings::default());
    let (_, to) = stage.rtec_consumer(&wants_all());
    let (_, from) = stage.rtec_supplier(&offers(&[]));
    let (_, peer) = stage.peer(RTEC);
    let connect = |stage: &mut Stage, proxy: &Object, peer: &Object, qos: &ConsumerQOS| {
        stage.at(proxy, |it| rtec::ProxyPushSupplierStub(it).connect_push_consumer(peer, qos))
    };
    let again = connect(&mut stage, &to, &peer, &wants_all());
    assert_eq!(again, Err(AlreadyConnected {}.into()));
    let qos = offers(&[]);
    let again =
        stage.at(&from, |it| rtec::ProxyPushConsumerStub(it).connect_push_supplier(&peer, &qos));
    assert_eq!(again, Err(AlreadyConnected {}.into()));
    let channel = stage.channel.rtec_reference();
    let admins = stage.at(&channel, |it| {
        let mut it = rtec::EventChannelStub(it);
        (it.for_consumers().expect("an admin"), it.for_suppliers().expect("an admin"))
    });
    let fresh = stage.at(&admins.0, |it| rtec::ConsumerAdminStub(it).obtain_push_supplier());
    let fresh = fresh.expect("a proxy");
    let nobody = connect(&mut stage, &fresh, &Object::nil(), &wants_all());
    assert_eq!(nobody, Err(system(ExceptionKind::BadParam).into()));
    let cut = connect(&mut stage, &fresh, &peer, &wants(&[(d::CONJUNCTION, 2), (16, 0)]));
    assert_eq!(cut, Err(TypeError {}.into()));
    connect(&mut stage, &fresh, &peer, &wants_all()).expect("it is as if nothing had happened");
    let fresh = stage.at(&admins.1, |it| rtec::SupplierAdminStub(it).obtain_push_consumer());
    let fresh = fresh.expect("a proxy");
    let done = stage.at(&fresh, |it| rtec::ProxyPushConsumerStub(it).disconnect_push_consumer());
    assert_eq!(done, Ok(()), "its client has no other way to end it");
}

#[test]
fn who_is_nobody_hears_so_first_and_a_proxy_that_was_never_connected_can_be_ended() {
    let mut stage = Stage::new(Settings { may_reconnect: false, ..Settings::default() });
    let (_, to) = stage.rtec_consumer(&wants_all());
    let (_, from) = stage.rtec_supplier(&offers(&[]));
    let nil = Object::nil();
    let connected = stage
        .at(&to, |it| rtec::ProxyPushSupplierStub(it).connect_push_consumer(&nil, &wants_all()));
    assert_eq!(connected, Err(system(ExceptionKind::BadParam).into()));
    // A supplier that pushes may be nobody.
    let connected = stage
        .at(&from, |it| rtec::ProxyPushConsumerStub(it).connect_push_supplier(&nil, &offers(&[])));
    assert_eq!(connected, Err(AlreadyConnected {}.into()));
    let channel = stage.channel.rtec_reference();
    let admins = stage.at(&channel, |it| {
        let mut it = rtec::EventChannelStub(it);
        (it.for_consumers().expect("an admin"), it.for_suppliers().expect("an admin"))
    });
    let to = stage.at(&admins.0, |it| rtec::ConsumerAdminStub(it).obtain_push_supplier());
    let from = stage.at(&admins.1, |it| rtec::SupplierAdminStub(it).obtain_push_consumer());
    let (to, from) = (to.expect("a proxy"), from.expect("a proxy"));
    let end_both = |stage: &mut Stage| {
        [
            stage.at(&to, |it| rtec::ProxyPushSupplierStub(it).disconnect_push_supplier()),
            stage.at(&from, |it| rtec::ProxyPushConsumerStub(it).disconnect_push_consumer()),
        ]
    };
    assert_eq!(end_both(&mut stage), [Ok(()); 2]);
    let missing = system(ExceptionKind::ObjectNotExist);
    assert_eq!(end_both(&mut stage), [Err(missing); 2], "they are no more");
}

#[test]
fn to_connect_again_is_a_change_where_that_is_allowed() {
    let mut stage = Stage::new(Settings { may_reconnect: true, ..Settings::default() });
    let (_, proxy) = stage.rtec_consumer(&wants(&[(16, 0)]));
    let (_, supplier) = stage.rtec_supplier(&offers(&[]));
    let (port, peer) = stage.peer(RTEC);
    let qos = wants(&[(17, 0)]);
    let changed =
        stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).connect_push_consumer(&peer, &qos));
    assert_eq!(changed, Ok(()));
    push(&mut stage, &supplier, &[(16, 1), (17, 1)]);
    assert_eq!(stage.peers[&port].types(), [17]);
}

/// A channel with one observer: its port.
fn observed() -> (Stage, u16) {
    let limits = Limits { observers_max: 1, ..Limits::default() };
    let mut stage = Stage::new(Settings { limits, ..Settings::default() });
    let (port, observer) = stage.peer(RTEC);
    append(&mut stage, &observer).expect("appended");
    (stage, port)
}

fn append(stage: &mut Stage, observer: &Object) -> Result<u32, event_channel::AppendObserverError> {
    let channel = stage.channel.rtec_reference();
    stage.at(&channel, |it| rtec::EventChannelStub(it).append_observer(observer))
}

#[test]
fn one_update_is_under_way_to_an_observer_and_the_newest_is_told_last() {
    let (mut stage, port) = observed();
    let Some(Outgoing::Update { observer, ticket, update: first, .. }) = stage.channel.poll()
    else {
        panic!("an update")
    };
    for kind in [16, 17, 18] {
        stage.rtec_consumer(&wants(&[(kind, 1)]));
    }
    assert_eq!(stage.channel.poll(), None, "nothing overtakes it");
    stage.channel.observed(observer, ticket + 1, Outcome::Taken);
    assert_eq!(stage.channel.poll(), None, "the outcome of another one");
    stage.channel.observed(observer, ticket, Outcome::Failed);
    assert_eq!(stage.channel.poll(), None, "not at once");
    stage.channel.tick(stage.channel.poll_timeout().expect("it is told again"));
    stage.settle();
    let none = usize::MAX;
    assert_eq!(stage.peers[&port].seen, [(4, none), (none, 0)], "once, and not {first:?}");
    assert_eq!(stage.channel.poll_timeout(), None);
}

#[test]
fn an_observer_that_is_gone_or_away_for_long_makes_room_for_another() {
    for mood in [Mood::Gone, Mood::Away] {
        let (mut stage, port) = observed();
        let (other, object) = stage.peer(RTEC);
        stage.peers.get_mut(&port).expect("a peer").mood = mood;
        stage.settle();
        while stage.ended.is_empty() {
            assert!(append(&mut stage, &object).is_err(), "it may come back");
            let due = stage.channel.poll_timeout().expect("it is told again");
            assert!(due <= Settings::default().give_up_after + Settings::default().retry_after);
            stage.channel.tick(due);
            stage.settle();
        }
        append(&mut stage, &object).expect("there is room");
        stage.settle();
        assert_eq!(stage.peers[&other].seen.len(), 2);
        assert!(stage.peers[&port].seen.is_empty());
    }
}

#[test]
fn who_connects_again_is_given_what_waits() {
    let full = quorba_events::Full::BackPressure;
    let connect = |stage: &mut Stage, proxy: &Object, peer: &Object, qos: &ConsumerQOS| {
        stage.at(proxy, |it| rtec::ProxyPushSupplierStub(it).connect_push_consumer(peer, qos))
    };
    for is_reliable in [true, false] {
        let settings = Settings { may_reconnect: true, is_reliable, full, ..Settings::default() };
        let mut stage = Stage::new(settings);
        let (old, proxy) = stage.rtec_consumer(&wants_all());
        let (_, supplier) = stage.rtec_supplier(&offers(&[]));
        stage.peers.get_mut(&old).expect("a peer").mood = stage::Mood::Away;
        push(&mut stage, &supplier, &[(16, 1), (17, 1)]);
        let waiting = stage.channel.waiting_bytes();
        assert!(waiting > 0);
        let (new, peer) = stage.peer(RTEC);
        let again = connect(&mut stage, &proxy, &peer, &wants(&[(17, 0)]));
        again.expect("it is allowed");
        assert_eq!(stage.channel.waiting_bytes(), waiting, "it waits as before");
        push(&mut stage, &supplier, &[(16, 2), (17, 2)]);
        assert_eq!(
            stage.peers[&new].types(),
            [16, 17, 17],
            "{is_reliable}: no retry is waited for"
        );
        assert!(stage.peers[&old].sets.is_empty());

        // What is under way to where it was: nobody knows whether it came.
        let sent = vec![event(17, 3, 0)];
        stage.channel.push(sent).expect("pushed");
        let flying = stage.channel.poll_push().expect("under way");
        let (last, peer) = stage.peer(RTEC);
        connect(&mut stage, &proxy, &peer, &wants(&[(17, 0)])).expect("it is allowed");
        stage.channel.pushed(flying.consumer, flying.ticket, quorba_events::Outcome::Gone);
        push(&mut stage, &supplier, &[(17, 4)]);
        let expected: &[i32] = if is_reliable { &[17, 17] } else { &[17] };
        assert_eq!(stage.peers[&last].types(), expected, "{is_reliable}");
        assert_eq!(stage.ended, [""; 0], "who is gone is the old one");
    }
}

#[test]
fn clients_are_called_back_if_that_is_wanted_and_always_when_the_channel_ends() {
    for calls_back in [false, true] {
        let mut stage = Stage::new(Settings { calls_back, ..Settings::default() });
        let (one, proxy) = stage.rtec_consumer(&wants_all());
        let (two, supplier) = stage.rtec_supplier(&offers(&[]));
        let (three, _) = stage.rtec_consumer(&wants_all());
        let done =
            stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).disconnect_push_supplier());
        done.expect("disconnected");
        let done =
            stage.at(&supplier, |it| rtec::ProxyPushConsumerStub(it).disconnect_push_consumer());
        done.expect("disconnected");
        let channel = stage.channel.rtec_reference();
        stage.at(&channel, |it| rtec::EventChannelStub(it).destroy()).expect("ended");
        stage.settle();
        let count = |port: u16| stage.peers[&port].goodbyes.len();
        let wanted = usize::from(calls_back);
        assert_eq!([count(one), count(two), count(three)], [wanted, wanted, 1]);
    }
}

#[test]
fn the_facade_needs_one_call_and_one_object() {
    let mut stage = Stage::new(Settings::default());
    let facade = stage.channel.facade_reference();
    let (port, peer) = stage.peer(RTEC);
    let with = |stage: &mut Stage| {
        stage.at(&facade, |it| FacadeStub(it).connect_push_consumer(&peer, &wants(&[(16, 0)])))
    };
    let consumer = with(&mut stage).expect("an id");
    let nobody = Object::nil();
    let supplier =
        stage.at(&facade, |it| FacadeStub(it).connect_push_supplier(&nobody, &offers(&[])));
    let supplier = supplier.expect("an id");
    assert_eq!((consumer.len(), supplier.len()), (16, 16));
    let push = |stage: &mut Stage, id: &Vec<u8>| {
        let events = vec![event(16, 1, 0), event(17, 1, 0)];
        let pushed = stage.at(&facade, |it| FacadeStub(it).push(id, &events));
        stage.settle();
        pushed
    };
    assert_eq!(push(&mut stage, &supplier), Ok(()));
    assert_eq!(stage.peers[&port].types(), [16]);
    let suspended = stage.at(&facade, |it| FacadeStub(it).suspend_push_supplier(&consumer));
    assert_eq!(suspended, Ok(()));
    push(&mut stage, &supplier).expect("pushed");
    let resumed = stage.at(&facade, |it| FacadeStub(it).resume_push_supplier(&consumer));
    assert_eq!(resumed, Ok(()));
    push(&mut stage, &supplier).expect("pushed");
    assert_eq!(stage.peers[&port].types(), [16, 16]);
    let done = stage.at(&facade, |it| FacadeStub(it).disconnect_push_supplier(&consumer));
    assert_eq!(done, Ok(()));
    let done = stage.at(&facade, |it| FacadeStub(it).disconnect_push_consumer(&supplier));
    assert_eq!(done, Ok(()));
    assert_eq!(push(&mut stage, &supplier), Err(PushError::from(InvalidObjectID {})));
    assert_eq!(stage.peers[&port].types(), [16, 16]);
}

#[test]
fn the_facade_knows_its_own_ids_only_and_leaves_nothing_of_what_it_refuses() {
    let mut stage = Stage::new(Settings::default());
    let facade = stage.channel.facade_reference();
    let (_, peer) = stage.peer(RTEC);
    let cut = wants(&[(d::NEGATION, 0)]);
    let refused = stage.at(&facade, |it| FacadeStub(it).connect_push_consumer(&peer, &cut));
    assert_eq!(refused, Err(TypeError {}.into()));
    assert_eq!(stage.channel.consumers().count(), 0);
    let supplier =
        stage.at(&facade, |it| FacadeStub(it).connect_push_supplier(&peer, &offers(&[])));
    let supplier = supplier.expect("an id");
    // A proxy of the other interface has a number, too, but no id.
    stage.rtec_consumer(&wants_all());
    let mut of_other = supplier.clone();
    of_other[15] += 1;
    for id in [vec![], vec![0; 16], supplier.clone(), of_other] {
        let done = stage.at(&facade, |it| FacadeStub(it).disconnect_push_supplier(&id));
        assert_eq!(done, Err(InvalidObjectID {}.into()), "{id:?}");
        let done = stage.at(&facade, |it| FacadeStub(it).suspend_push_supplier(&id));
        assert_eq!(done, Err(InvalidObjectID {}.into()), "{id:?}");
    }
    let refused = stage.at(&facade, |it| FacadeStub(it).set_update(&vec![1]));
    assert_eq!(refused, Err(system(ExceptionKind::NoPermission).into()));
}

/// Who pushes by a oneway hears nothing of it.
#[test]
fn pushes_that_are_too_large_are_counted_and_told_once_a_minute() {
    for is_reliable in [false, true] {
        let full = quorba_events::Full::BackPressure;
        let limits = Limits { event_bytes_max: 200, events_max: 3, ..Limits::default() };
        let mut stage = Stage::new(Settings { limits, is_reliable, full, ..Settings::default() });
        let (port, _) = stage.rtec_consumer(&wants_all());
        let (_, supplier) = stage.rtec_supplier(&offers(&[]));
        push(&mut stage, &supplier, &[(16, 1); 3]);
        assert_eq!((stage.channel.totals().refused, stage.ended.len()), (0, 0));
        push(&mut stage, &supplier, &[(16, 1); 4]);
        assert_eq!((stage.channel.totals().refused, stage.ended.len()), (1, 1));
        let said = &stage.ended[0];
        assert!(said.starts_with("a push of supplier 2 (peer:9002) is too large"), "{said}");
        assert!(said.contains("it has 4 events") && said.contains("1 pushes were"), "{said}");
        let mut large = event(16, 1, 0);
        large.data.payload = vec![0; 200];
        let push_large = |stage: &mut Stage| {
            let large = vec![large.clone()];
            let pushed = stage.at(&supplier, |it| rtec::ProxyPushConsumerStub(it).push(&large));
            pushed.expect("sent");
            stage.settle();
        };
        push_large(&mut stage);
        assert_eq!((stage.channel.totals().refused, stage.ended.len()), (2, 1));
        stage.channel.tick(60_000 * MS);
        push_large(&mut stage);
        assert_eq!((stage.channel.totals().refused, stage.ended.len()), (3, 2));
        assert!(stage.ended[1].contains("3 pushes were refused"), "{}", stage.ended[1]);
        assert_eq!(stage.peers[&port].types().len(), 3, "nothing of them is taken");
    }
}
