//! Channels by name: how they come and go, and what replicas of the service have alike.

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Home, Local, Object, Objects};
use quorba_events::{DECISIONS_KEY, EventService, Outcome, SERVICE_KEY, UNORDERED_PREFIX};
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPushConsumerStub, ProxyPushSupplierStub,
    SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::quorba_events::channels::{CreateError, RemoveError};
use quorba_idl::quorba_events::{ChannelsStub, DecisionsStub, Filed};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn home() -> Home {
    Home { addresses: vec![("here".to_owned(), 2812)], prefix: Vec::new() }
}

fn service() -> EventService {
    let mut service = EventService::new(home());
    service.lead();
    service
}

fn key(object: &Object) -> Vec<u8> {
    home().key_of(object).expect("an object of the service")
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn configure(service: &mut EventService, filed: &[(&str, &str)]) {
    let filed = filed.iter().map(|(name, settings)| Filed {
        name: (*name).to_owned(),
        settings: (*settings).to_owned(),
    });
    let mut local = Local::new(service, DECISIONS_KEY.as_bytes());
    DecisionsStub(&mut local).configure(&filed.collect()).expect("it is taken");
}

fn channel(service: &mut EventService, name: &str) -> Object {
    let mut local = Local::new(service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).channel(&name.to_owned()).expect("it is there")
}

/// A consumer that is connected, and a supplier; their proxies.
fn connect(service: &mut EventService, name: &str) -> (Vec<u8>, Vec<u8>) {
    let channel = key(&channel(service, name));
    let admin = EventChannelStub(&mut Local::new(service, &channel)).for_consumers();
    let admin = key(&admin.expect("an admin"));
    let consumer = ConsumerAdminStub(&mut Local::new(service, &admin)).obtain_push_supplier();
    let consumer = key(&consumer.expect("a proxy"));
    let peer = home().object("IDL:peer:1.0", b"peer");
    let mut local = Local::new(service, &consumer);
    ProxyPushSupplierStub(&mut local).connect_push_consumer(&peer).expect("connected");
    let admin = EventChannelStub(&mut Local::new(service, &channel)).for_suppliers();
    let admin = key(&admin.expect("an admin"));
    let supplier = SupplierAdminStub(&mut Local::new(service, &admin)).obtain_push_consumer();
    let supplier = key(&supplier.expect("a proxy"));
    let mut local = Local::new(service, &supplier);
    ProxyPushConsumerStub(&mut local).connect_push_supplier(&Object::nil()).expect("connected");
    (consumer, supplier)
}

fn push(service: &mut EventService, proxy: &[u8]) -> Result<(), PushError> {
    let data = Any::new(&1_u32).expect("a value");
    ProxyPushConsumerStub(&mut Local::new(service, proxy)).push(&data)
}

#[test]
fn before_it_is_configured_callers_of_a_channel_are_told_to_come_again() {
    let mut service = service();
    let ask = |service: &mut EventService| {
        EventChannelStub(&mut Local::new(service, b"Events/a")).for_consumers().map(drop)
    };
    let kind = |answer: Result<(), SystemException>| answer.map_err(|raised| raised.kind);
    assert_eq!(kind(ask(&mut service)), Err(ExceptionKind::Transient));
    configure(&mut service, &[]);
    assert_eq!(kind(ask(&mut service)), Err(ExceptionKind::ObjectNotExist));
    configure(&mut service, &[("a", "")]);
    assert_eq!(kind(ask(&mut service)), Ok(()));
}

#[test]
fn channels_of_the_file_come_change_and_go_with_it() {
    let mut service = service();
    configure(&mut service, &[("a", "queue_events=5"), ("b", "reliable=true queue_events=50")]);
    connect(&mut service, "a");
    let (_, supplier) = connect(&mut service, "b");
    (0..20).for_each(|_| push(&mut service, &supplier).expect("it is taken"));
    assert_eq!(service.names().collect::<Vec<_>>(), ["a", "b"]);
    // What waits stays, so the queue of a reliable channel does not become smaller.
    configure(&mut service, &[("b", "reliable=true queue_events=10"), ("c", "batch=1")]);
    assert_eq!(service.names().collect::<Vec<_>>(), ["b", "c"]);
    let settings = service.filed().remove(0).settings;
    assert!(settings.contains("queue_events=50"), "{settings}");
    let mut other = EventService::new(home());
    other.take_over(&service.state()).expect("a state");
    assert_eq!(other.state(), service.state());
    // Who was connected to the one that is gone is told.
    let goodbyes = std::iter::from_fn(|| service.poll()).filter(|(name, _)| name.is_empty());
    assert_eq!(goodbyes.count(), 1);
}

#[test]
fn clients_make_channels_and_end_them_but_not_those_of_the_file() {
    let mut service = service();
    configure(&mut service, &[("filed", "")]);
    let mut local = Local::new(&mut service, SERVICE_KEY.as_bytes());
    let mut channels = ChannelsStub(&mut local);
    let (name, settings) = ("own".to_owned(), "reliable=true".to_owned());
    let made = channels.create(&name, &settings).expect("made");
    assert_eq!(channels.create(&name, &settings).expect("the same"), made);
    let other = channels.create(&name, &String::new());
    assert!(matches!(other, Err(CreateError::AlreadyThere(_))), "{other:?}");
    for (name, settings) in [("a/b", ""), ("", ""), ("x", "batch=0"), ("x", "full=no")] {
        let wrong = channels.create(&name.to_owned(), &settings.to_owned());
        assert!(matches!(wrong, Err(CreateError::Invalid(_))), "{name} {settings}: {wrong:?}");
    }
    let filed = channels.remove(&"filed".to_owned());
    assert!(matches!(filed, Err(RemoveError::IsFiled(_))), "{filed:?}");
    let none = channels.remove(&"none".to_owned());
    assert!(matches!(none, Err(RemoveError::NoSuchChannel(_))), "{none:?}");
    let destroyed = EventChannelStub(&mut Local::new(&mut service, b"Events/filed")).destroy();
    assert_eq!(destroyed.map_err(|raised| raised.kind), Err(ExceptionKind::NoPermission));
    EventChannelStub(&mut Local::new(&mut service, b"Events/own")).destroy().expect("ended");
    assert_eq!(service.names().collect::<Vec<_>>(), ["filed"]);
}

#[test]
fn pushes_past_the_order_are_taken_by_the_leader_only() {
    let mut service = service();
    configure(&mut service, &[("fast", ""), ("sure", "reliable=true")]);
    let (consumer, supplier) = connect(&mut service, "fast");
    assert_eq!(text(&supplier), format!("{UNORDERED_PREFIX}fast/s-2"));
    assert_eq!(text(&consumer), format!("{UNORDERED_PREFIX}fast/c-1"));
    push(&mut service, &supplier).expect("it is taken");
    let (name, delivery) = service.poll_push().expect("for the consumer");
    service.pushed(&name, delivery.consumer, delivery.ticket, Outcome::Taken);
    service.follow_another();
    let refused = push(&mut service, &supplier);
    let is_transient = |raised: &SystemException| raised.kind == ExceptionKind::Transient;
    assert!(matches!(&refused, Err(PushError::System(it)) if is_transient(it)), "{refused:?}");

    // In a reliable channel a push has a place in the order, or does not happen.
    let (_, supplier) = connect(&mut service, "sure");
    assert_eq!(text(&supplier), "Events/sure/s-2");
    push(&mut service, &supplier).expect("all members take it");
    let past = [UNORDERED_PREFIX, "sure/s-2"].concat();
    assert!(push(&mut service, past.as_bytes()).is_err());
    // Other objects have one key.
    assert_eq!(service.interface([UNORDERED_PREFIX, "fast"].concat().as_bytes()), None);
}

/// Only the leader sees such a call: had it moved the time, the others would have another one.
#[test]
fn a_push_beside_the_order_moves_no_time_of_a_reliable_channel() {
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let clock = move || Some(u64::from(counter.fetch_add(1, Ordering::Relaxed)));
    let mut service = EventService::new(home()).with_clock(Box::new(clock));
    service.lead();
    configure(&mut service, &[("sure", "reliable=true")]);
    let (_, supplier) = connect(&mut service, "sure");
    push(&mut service, &supplier).expect("all members take it");
    let before = asked.load(Ordering::Relaxed);
    assert!(before > 0);
    let past = [UNORDERED_PREFIX, "sure/s-2"].concat();
    assert!(push(&mut service, past.as_bytes()).is_err());
    assert_eq!(asked.load(Ordering::Relaxed), before);
}

#[test]
fn channels_take_turns() {
    let mut service = service();
    configure(&mut service, &[("a", "batch=1"), ("b", "batch=1"), ("c", "batch=1")]);
    for name in ["a", "b", "c"] {
        let (_, supplier) = connect(&mut service, name);
        (0..2).for_each(|_| push(&mut service, &supplier).expect("it is taken"));
    }
    let mut served = String::new();
    while let Some((name, delivery)) = service.poll_push() {
        served.push_str(&name);
        service.pushed(&name, delivery.consumer, delivery.ticket, Outcome::Taken);
    }
    assert_eq!(served, "abcabc");
}

#[test]
fn what_is_no_state_changes_nothing() {
    let mut service = service();
    configure(&mut service, &[("a", ""), ("b", "reliable=true")]);
    connect(&mut service, "b");
    let state = service.state();
    for length in 0..state.len() {
        assert!(service.take_over(&state[..length]).is_err(), "{length}");
    }
    let longer = [&state[..], &[0]].concat();
    assert!(service.take_over(&longer).is_err());
    assert_eq!(service.state(), state);
}

#[test]
fn a_consumer_that_cannot_be_called_for_long_is_given_up() {
    let mut service = service();
    configure(&mut service, &[("a", "retry_ms=10 give_up_ms=100")]);
    let (_, supplier) = connect(&mut service, "a");
    push(&mut service, &supplier).expect("it is taken");
    let mut proposals = 0;
    for now in (0..30).map(|turn| turn * 100_000) {
        service.tick(now);
        while let Some((name, delivery)) = service.poll_push() {
            service.pushed(&name, delivery.consumer, delivery.ticket, Outcome::Failed);
        }
        let proposed = std::iter::from_fn(|| service.poll()).count();
        assert!(proposed == 0 || now >= 1_000_000, "at {now}");
        proposals += proposed;
    }
    assert!(proposals > 0);
}
