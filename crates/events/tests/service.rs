//! Channels by name: how they come and go, and what replicas of the service have alike.

use quorba_base::channel::{Bounds, ChannelRule};
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Home, Local, Object, Objects};
use quorba_events::filter::designator;
use quorba_events::{
    DECISIONS_KEY, Decision, EventService, Outcome, Outgoing, SERVICE_KEY, Settings,
    UNORDERED_PREFIX,
};
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPullSupplierStub, ProxyPushConsumerStub,
    ProxyPushSupplierStub, SupplierAdminStub,
};
use quorba_idl::cos_event_comm::PullSupplierStub;
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::ft_rtec_event_channel_admin::EventChannelFacadeStub;
use quorba_idl::ft_rtec_event_comm;
use quorba_idl::quorba_events::channels::{CreateError, DisconnectError, RemoveError};
use quorba_idl::quorba_events::{ChannelsStub, DecisionsStub, Filed, WaitingStub};
use quorba_idl::rtec_event_channel_admin::{self as rtec, ConsumerQOS, Dependency, SupplierQOS};
use quorba_idl::rtec_event_comm::{Event, EventData, EventHeader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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
    let Bounds { channels_bytes, reliable_bytes } = Bounds::default();
    let together = quorba_idl::quorba_events::Bounds { channels_bytes, reliable_bytes };
    let mut local = Local::new(service, DECISIONS_KEY.as_bytes());
    DecisionsStub(&mut local).configure(&filed.collect(), &together).expect("it is taken");
}

fn create(service: &mut EventService, name: &str, settings: &str) -> Result<Object, CreateError> {
    let mut local = Local::new(service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).create(&name.to_owned(), &settings.to_owned())
}

fn missing(service: &mut EventService) -> Vec<(String, String)> {
    let mut local = Local::new(service, SERVICE_KEY.as_bytes());
    let all = ChannelsStub(&mut local).missing().expect("a list");
    all.into_iter().map(|one| (one.name, one.why)).collect()
}

fn channel(service: &mut EventService, name: &str) -> Object {
    let mut local = Local::new(service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).channel(&name.to_owned()).expect("it is there")
}

/// The key of the channel's object for consumers.
fn consumer_admin(service: &mut EventService, name: &str) -> Vec<u8> {
    let channel = key(&channel(service, name));
    let admin = EventChannelStub(&mut Local::new(service, &channel)).for_consumers();
    key(&admin.expect("an admin"))
}

/// A consumer that is connected, and a supplier; their proxies.
fn connect(service: &mut EventService, name: &str) -> (Vec<u8>, Vec<u8>) {
    let admin = consumer_admin(service, name);
    let consumer = ConsumerAdminStub(&mut Local::new(service, &admin)).obtain_push_supplier();
    let consumer = key(&consumer.expect("a proxy"));
    let peer = home().object("IDL:peer:1.0", b"peer");
    let mut local = Local::new(service, &consumer);
    ProxyPushSupplierStub(&mut local).connect_push_consumer(&peer).expect("connected");
    let channel = key(&channel(service, name));
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

fn plain_event() -> Event {
    Event {
        header: EventHeader {
            r#type: 16,
            source: 1,
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData { pad1: 0, payload: Vec::new(), any_value: Any::default() },
    }
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
fn all_channels_together_hold_no_more_than_they_may() {
    let mut service = service();
    configure(&mut service, &[("filed", "total_bytes=536870912")]);
    // 512 MiB each, and 4 GiB together.
    for number in 1..8 {
        let name = format!("large-{number}");
        create(&mut service, &name, "total_bytes=536870912").expect("made");
    }
    let refused = create(&mut service, "more", "total_bytes=1024");
    let Err(CreateError::Invalid(said)) = refused else { panic!("{refused:?}") };
    assert!(said.why.contains("channels_bytes of [service.events]"), "{}", said.why);
    let mut local = Local::new(&mut service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).remove(&"large-1".to_owned()).expect("it was there");
    create(&mut service, "sure", "reliable=true total_bytes=200000000").expect("made");
    let refused = create(&mut service, "sure-2", "reliable=true total_bytes=200000000");
    let Err(CreateError::Invalid(said)) = refused else { panic!("{refused:?}") };
    assert!(said.why.contains("state_bytes of [limits]"), "{}", said.why);
}

#[test]
fn a_channel_of_the_file_that_there_is_no_room_for_is_named_and_made_when_there_is() {
    let mut service = service();
    configure(&mut service, &[]);
    for number in 0..1_000 {
        create(&mut service, &format!("own-{number}"), "total_bytes=1024").expect("made");
    }
    configure(&mut service, &[("filed", "")]);
    let said = missing(&mut service);
    assert!(said.len() == 1 && said[0].0 == "filed", "{said:?}");
    assert!(said[0].1.contains("1000 channels already"), "{said:?}");
    // All replicas know it.
    let mut other = EventService::new(home());
    other.take_over(&service.state()).expect("a state");
    assert_eq!((missing(&mut other), other.state()), (said, service.state()));
    let mut local = Local::new(&mut service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).remove(&"own-7".to_owned()).expect("it was there");
    assert_eq!(missing(&mut service), []);
    assert_eq!(service.filed().len(), 1);
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
    assert_eq!(text(&supplier), "Events/sure/s-4");
    push(&mut service, &supplier).expect("all members take it");
    let past = [UNORDERED_PREFIX, "sure/s-4"].concat();
    assert!(push(&mut service, past.as_bytes()).is_err());
    // Other objects have one key.
    assert_eq!(service.interface([UNORDERED_PREFIX, "fast"].concat().as_bytes()), None);
}

/// It would be lost when it is pulled: no reply carries it.
#[test]
fn an_event_that_no_reply_carries_is_not_taken() {
    let mut service = EventService::new(home()).with_event_bytes_max(1_000);
    service.lead();
    for settings in ["", "reliable=true"] {
        configure(&mut service, &[("a", settings)]);
        let (_, supplier) = connect(&mut service, "a");
        let mut push = |bytes: usize| {
            let data = Any::new(&"x".repeat(bytes)).expect("a value");
            ProxyPushConsumerStub(&mut Local::new(&mut service, &supplier)).push(&data)
        };
        push(900).expect("taken");
        let refused = push(1_000);
        let Err(PushError::System(raised)) = &refused else { panic!("{refused:?}") };
        assert_eq!(raised.kind, ExceptionKind::ImpLimit);
    }
}

/// It comes with a backup of a domain whose order carries more.
#[test]
fn a_state_with_an_event_that_would_not_be_taken_now_is_read() {
    let channels = [("a", "reliable=true")];
    let mut service = service();
    configure(&mut service, &channels);
    puller(&mut service, "a");
    let offers = SupplierQOS { publications: Vec::new(), is_gateway: false };
    let mut local = Local::new(&mut service, b"Events/a/ft");
    let mut facade = EventChannelFacadeStub(&mut local);
    let supplier = facade.connect_push_supplier(&Object::nil(), &offers).expect("connected");
    let mut event = plain_event();
    event.data.payload = vec![7; 2_000];
    ft_rtec_event_comm::PushConsumerStub(&mut local).push(&supplier, &vec![event]).expect("taken");
    let state = service.state();
    let mut other = EventService::new(home()).with_event_bytes_max(1_000);
    other.take_over(&state).expect("a state");
    assert!(other.state() == state);
}

#[test]
fn only_the_leader_says_whether_a_pull_would_be_answered_and_nothing_changes_for_it() {
    let mut service = service();
    configure(&mut service, &[("fast", ""), ("sure", "reliable=true")]);
    let ask = |service: &mut EventService, proxy: &[u8]| {
        WaitingStub(&mut Local::new(service, proxy)).has_event()
    };
    for name in ["fast", "sure"] {
        let admin = consumer_admin(&mut service, name);
        let proxy = ConsumerAdminStub(&mut Local::new(&mut service, &admin)).obtain_pull_supplier();
        let proxy = key(&proxy.expect("a proxy"));
        assert_eq!(ask(&mut service, &proxy), Ok(true), "it hears that it is not connected");
        let mut local = Local::new(&mut service, &proxy);
        ProxyPullSupplierStub(&mut local).connect_pull_consumer(&Object::nil()).expect("connected");
        let (_, supplier) = connect(&mut service, name);
        let before = service.state();
        assert_eq!(ask(&mut service, &proxy), Ok(false));
        assert_eq!(service.state(), before);
        push(&mut service, &supplier).expect("taken");
        assert_eq!(ask(&mut service, &proxy), Ok(true));
        service.follow_another();
        let raised = ask(&mut service, &proxy).expect_err("another one leads");
        assert_eq!(raised.kind, ExceptionKind::Transient);
        service.lead();
    }
}

#[test]
fn the_facade_takes_pushes_past_the_order_where_the_channel_is_not_reliable() {
    let mut service = service();
    configure(&mut service, &[("fast", ""), ("sure", "reliable=true")]);
    connect(&mut service, "fast");
    let past = [UNORDERED_PREFIX, "fast/ft"].concat();
    let offers = SupplierQOS { publications: Vec::new(), is_gateway: false };
    let subscribe = |service: &mut EventService, key: &str| {
        let mut local = Local::new(service, key.as_bytes());
        EventChannelFacadeStub(&mut local).connect_push_supplier(&Object::nil(), &offers)
    };
    let supplier = subscribe(&mut service, &past).expect("connected");
    let push = |service: &mut EventService, key: &str| {
        let mut local = Local::new(service, key.as_bytes());
        ft_rtec_event_comm::PushConsumerStub(&mut local).push(&supplier, &vec![plain_event()])
    };
    let pushed =
        |service: &EventService, name| service.channel(name).expect("a channel").totals().pushed;
    push(&mut service, &past).expect("it is taken");
    push(&mut service, "Events/fast/ft").expect("in the order, as before");
    assert_eq!(pushed(&service, "fast"), 2);
    service.follow_another();
    let later = ft_rtec_event_comm::push_consumer::PushError::System(quorba_corba::raise_system(
        ExceptionKind::Transient,
    ));
    let before = service.state();
    for key in [&past, "Events/fast/ft"] {
        let raised = push(&mut service, key).expect_err("another one leads, or nobody knows who");
        assert_eq!(raised, later, "{key}");
    }
    assert_eq!((service.state(), pushed(&service, "fast")), (before, 2));
    service.lead();
    // A reliable channel has no such object, so that each of its pushes has a place in the order.
    let past = [UNORDERED_PREFIX, "sure/ft"].concat();
    let raised = subscribe(&mut service, &past).expect_err("nothing is there");
    assert_eq!(raised.kind, ExceptionKind::ObjectNotExist);
    subscribe(&mut service, "Events/sure/ft").expect("connected");
}

#[test]
fn what_an_rt_info_means_is_the_same_at_all_replicas_and_is_checked_when_a_channel_is_made() {
    let mut service = service();
    let settings = "strategy=least-laxity rt_info.7=priority:3,deadline_us:500,execution_us:200";
    create(&mut service, "a", settings).expect("made");
    create(&mut service, "a", settings).expect("found");
    let mut other = EventService::new(home());
    other.take_over(&service.state()).expect("a state");
    assert_eq!(other.state(), service.state());
    let rule = ChannelRule::parse(settings).expect("a rule");
    let told = Settings::of(&rule).schedule;
    let means = told.rt_infos[&7];
    assert_eq!((means.priority, means.deadline, means.execution), (3, 5_000, 2_000));
    let wrong = create(&mut service, "b", "rt_info.7=priority:high");
    let Err(CreateError::Invalid(wrong)) = wrong else { panic!("{wrong:?}") };
    assert_eq!(wrong.why, "rt_info.7 priority cannot be high");
}

#[test]
fn who_holds_too_much_is_shown_so_in_channels_that_keep_nothing_too() {
    for settings in ["full=disconnect", "reliable=true"] {
        let mut service = service();
        configure(&mut service, &[("a", settings)]);
        let mut group = plain_event();
        (group.header.r#type, group.header.source) = (designator::CONJUNCTION, 5);
        let part = |number: i32| {
            let mut event = plain_event();
            (event.header.r#type, event.header.source) = (16 + number, 0);
            event
        };
        let events = [group].into_iter().chain((0..5).map(part));
        let dependencies = events.map(|event| Dependency { event, rt_info: 0 }).collect();
        let wants = ConsumerQOS { dependencies, is_gateway: false };
        let peer = home().object("IDL:peer:1.0", b"peer");
        let mut local = Local::new(&mut service, b"Events/a/ft");
        let mut facade = EventChannelFacadeStub(&mut local);
        facade.connect_push_consumer(&peer, &wants).expect("connected");
        let offers = SupplierQOS { publications: Vec::new(), is_gateway: false };
        let supplier = facade.connect_push_supplier(&Object::nil(), &offers).expect("connected");
        for number in 0..4 {
            let mut event = part(number);
            event.data.payload = vec![0; 3 << 20];
            let mut local = Local::new(&mut service, b"Events/a/ft");
            let mut consumer = ft_rtec_event_comm::PushConsumerStub(&mut local);
            consumer.push(&supplier, &vec![event]).expect("taken");
        }
        let outgoing: Vec<_> = std::iter::from_fn(|| service.poll()).collect();
        for (name, outgoing) in outgoing {
            if let Outgoing::Propose(proposal) = outgoing {
                let mut local = Local::new(&mut service, DECISIONS_KEY.as_bytes());
                Decision::Proposal(name, proposal).call(&mut local).expect("ordered");
            }
        }
        let mut local = Local::new(&mut service, SERVICE_KEY.as_bytes());
        let ended = ChannelsStub(&mut local).ended(&"a".to_owned()).expect("a channel");
        assert_eq!((ended.too_slow, ended.holds_too_much), (0, 1), "{settings}");
    }
}

#[test]
fn proxies_that_a_channel_has_ended_are_shown_with_the_reason() {
    let mut service = service();
    let settings = "full=disconnect queue_events=1";
    configure(&mut service, &[("a", settings)]);
    let (_, supplier) = connect(&mut service, "a");
    (0..2).for_each(|_| push(&mut service, &supplier).expect("taken"));
    let (name, outgoing) = service.poll().expect("a proposal");
    let Outgoing::Propose(proposal) = outgoing else { panic!("{outgoing:?}") };
    let mut local = Local::new(&mut service, DECISIONS_KEY.as_bytes());
    Decision::Proposal(name, proposal).call(&mut local).expect("ordered");
    let mut local = Local::new(&mut service, SERVICE_KEY.as_bytes());
    let ended = ChannelsStub(&mut local).ended(&"a".to_owned()).expect("a channel");
    let counts = (ended.too_slow, ended.holds_too_much, ended.too_large, ended.gone);
    assert_eq!(counts, (1, 0, 0, 0));
    let last = &ended.last[0];
    assert!(last.is_consumer && ended.last.len() == 1, "{last:?}");
    assert_eq!((last.place.as_str(), last.why.as_str()), ("here:2812", "too-slow"));
    let figures = service.figures();
    let channel = &figures.channels[0];
    assert_eq!((channel.ended_too_slow, channel.ended.len()), (1, 1));
    let told = std::iter::from_fn(|| service.poll()).find_map(|(name, outgoing)| match outgoing {
        Outgoing::Ended(ended) => Some((name, ended.to_string())),
        _ => None,
    });
    let (name, text) = told.expect("it is told for the log");
    assert_eq!((name.as_str(), &text), ("a", &channel.ended[0]));
    assert!(text.starts_with("consumer 1 (here:2812) is disconnected: more waits"), "{text}");
}

/// An operator's end of a proxy: its client is told, it is no fault of anybody's, and room is made.
#[test]
fn an_operator_ends_proxies_of_either_side_and_their_clients_are_told() {
    let mut service = service();
    configure(&mut service, &[("a", "reliable=true")]);
    connect(&mut service, "a");
    let disconnect = |service: &mut EventService, name: &str, proxy: u64| {
        let mut local = Local::new(service, SERVICE_KEY.as_bytes());
        ChannelsStub(&mut local).disconnect(&name.to_owned(), &proxy)
    };
    let none = disconnect(&mut service, "none", 1);
    assert!(matches!(none, Err(DisconnectError::NoSuchChannel(_))), "{none:?}");
    for proxy in [0, 3, u64::MAX] {
        let none = disconnect(&mut service, "a", proxy);
        assert!(matches!(none, Err(DisconnectError::NoSuchProxy(_))), "{none:?}");
    }
    for proxy in [1, 2] {
        disconnect(&mut service, "a", proxy).expect("it was there");
        assert!(!service.has_proxy("a", proxy));
        let again = disconnect(&mut service, "a", proxy);
        assert!(matches!(again, Err(DisconnectError::NoSuchProxy(_))), "{again:?}");
    }
    let (mut told, mut logged) = (Vec::new(), Vec::new());
    while let Some((_, outgoing)) = service.poll() {
        match outgoing {
            Outgoing::Disconnect { call, .. } => told.push(call.operation()),
            Outgoing::Ended(ended) => logged.push((ended.proxy, ended.why.word())),
            _ => {}
        }
    }
    assert!(told.contains(&"disconnect_push_consumer"), "{told:?}");
    assert_eq!(logged, [(1, "removed"), (2, "removed")]);
    let figures = service.figures();
    let channel = &figures.channels[0];
    let counts = [channel.ended_too_slow, channel.ended_too_large, channel.ended_gone];
    assert_eq!((counts, channel.ended.len()), ([0; 3], 2));
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

/// What the file says of the standard's interface and of TAO's reaches the channel.
#[test]
fn all_that_a_channel_can_be_told_is_told_by_its_settings() {
    let settings = "cos_type=40 cos_source=3 takes_hop=true calls_back=true may_reconnect=true";
    let rule = ChannelRule::parse(settings).expect("a rule");
    let told = Settings::of(&rule);
    assert_eq!((told.cos_type, told.cos_source), (40, 3));
    assert!(told.takes_hop && told.calls_back && told.may_reconnect);
    let usual = Settings::default();
    assert_eq!((usual.cos_type, usual.cos_source, usual.takes_hop), (16, 0, false));
    // Who connects again changes its subscription.
    let mut service = service();
    configure(&mut service, &[("a", "may_reconnect=true"), ("b", "")]);
    for (name, may) in [("a", true), ("b", false)] {
        let admin = format!("Events/{name}/rtec/consumers");
        let mut local = Local::new(&mut service, admin.as_bytes());
        let proxy = rtec::ConsumerAdminStub(&mut local).obtain_push_supplier();
        let proxy = key(&proxy.expect("a proxy"));
        let mut connect = |port: &[u8]| {
            let peer = home().object("IDL:peer:1.0", port);
            let qos = ConsumerQOS { dependencies: Vec::new(), is_gateway: false };
            let mut local = Local::new(&mut service, &proxy);
            rtec::ProxyPushSupplierStub(&mut local).connect_push_consumer(&peer, &qos)
        };
        connect(b"one").expect("connected");
        assert_eq!(connect(b"other").is_ok(), may, "{name}");
    }
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

/// A service with a reliable channel in which something is due, and a consumer that waits for it.
fn with_timer(now: &Arc<AtomicU64>) -> EventService {
    let clock = Arc::clone(now);
    let mut service =
        EventService::new(home()).with_clock(Box::new(move || Some(clock.load(Ordering::Relaxed))));
    service.lead();
    configure(&mut service, &[("sure", "reliable=true retry_ms=100")]);
    let (_, supplier) = connect(&mut service, "sure");
    push(&mut service, &supplier).expect("it is taken");
    let (name, delivery) = service.poll_push().expect("a push");
    service.pushed(&name, delivery.consumer, delivery.ticket, Outcome::Failed);
    service
}

#[test]
fn the_leader_asks_once_for_the_time_of_a_reliable_channel_and_sleeps_until_it_is_ordered() {
    let now = Arc::new(AtomicU64::new(0));
    let mut service = with_timer(&now);
    assert_eq!(service.poll_timeout(), Some(1_000_000), "the consumer is called again");
    service.tick(1_000_000);
    assert_eq!(service.overdue(), ["sure"]);
    // There is no majority: nothing is ordered.
    assert_eq!(service.overdue(), [""; 0]);
    assert_eq!(service.poll_timeout(), Some(6_000_000), "nobody wakes before");
    service.tick(6_000_000);
    assert_eq!(service.overdue(), ["sure"], "it may have been lost");
    now.store(6_000_000, Ordering::Relaxed);
    let mut local = Local::new(&mut service, DECISIONS_KEY.as_bytes());
    DecisionsStub(&mut local).look(&"sure".to_owned()).expect("it is ordered");
    assert!(service.poll_push().is_some(), "the consumer is called again");
    assert_eq!(service.poll_timeout(), None);
}

#[test]
fn who_does_not_lead_sleeps_while_something_is_due() {
    let mut service = with_timer(&Arc::new(AtomicU64::new(0)));
    service.follow_another();
    service.tick(1_000_000);
    assert_eq!((service.poll_timeout(), service.overdue().len()), (None, 0));
}

#[test]
fn it_is_told_when_proxies_end() {
    let mut service = service();
    configure(&mut service, &[("a", "")]);
    let (consumer, supplier) = connect(&mut service, "a");
    let before = service.ended();
    assert!(service.has_proxy("a", 1) && service.has_proxy("a", 2) && !service.has_proxy("a", 3));
    let mut local = Local::new(&mut service, &consumer);
    ProxyPushSupplierStub(&mut local).disconnect_push_supplier().expect("it was there");
    assert!(service.ended() > before && !service.has_proxy("a", 1));
    let before = service.ended();
    let mut local = Local::new(&mut service, &supplier);
    ProxyPushConsumerStub(&mut local).disconnect_push_consumer().expect("it was there");
    assert!(service.ended() > before && !service.has_proxy("a", 2));
    let before = service.ended();
    configure(&mut service, &[]);
    assert!(service.ended() > before, "the channel has");
    let before = service.ended();
    let state = service.state();
    service.take_over(&state).expect("a state");
    assert!(service.ended() > before, "nobody knows what was before");
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

/// A connected consumer that pulls.
fn puller(service: &mut EventService, name: &str) -> Vec<u8> {
    let admin = consumer_admin(service, name);
    let proxy = ConsumerAdminStub(&mut Local::new(service, &admin)).obtain_pull_supplier();
    let proxy = key(&proxy.expect("a proxy"));
    let mut local = Local::new(service, &proxy);
    ProxyPullSupplierStub(&mut local).connect_pull_consumer(&Object::nil()).expect("connected");
    proxy
}

fn try_pull(service: &mut EventService, proxy: &[u8]) -> Option<u32> {
    let (data, is_there) = PullSupplierStub(&mut Local::new(service, proxy)).try_pull().unwrap();
    is_there.then(|| data.get().expect("a number"))
}

#[test]
fn what_is_pulled_through_a_gateway_that_ends_is_given_again_also_by_a_replica_that_joined() {
    let caller = Arc::new(AtomicU64::new(0));
    let told = |service: EventService| {
        let caller = Arc::clone(&caller);
        let clock = Box::new(|| Some(1));
        let caller = Box::new(move || match caller.load(Ordering::Relaxed) {
            0 => None,
            caller => Some(caller),
        });
        service.with_clock(clock).with_caller(caller)
    };
    let mut service = told(service());
    configure(&mut service, &[("sure", "reliable=true"), ("plain", "")]);
    for (name, again) in [("sure", Some(2)), ("plain", Some(3))] {
        let (_, supplier) = connect(&mut service, name);
        let proxy = puller(&mut service, name);
        for number in 1..=4_u32 {
            let data = Any::new(&number).expect("a value");
            let mut local = Local::new(&mut service, &supplier);
            ProxyPushConsumerStub(&mut local).push(&data).expect("taken");
        }
        caller.store(7, Ordering::Relaxed);
        assert_eq!([(); 2].map(|()| try_pull(&mut service, &proxy)), [Some(1), Some(2)]);
        // The gateway ends. A replica that has joined behind this says the same as the others.
        let mut joined = told(EventService::new(home()));
        joined.take_over(&service.state()).expect("a state");
        assert_eq!(joined.state(), service.state());
        caller.store(8, Ordering::Relaxed);
        let all: &mut [&mut EventService] =
            if name == "sure" { &mut [&mut service, &mut joined] } else { &mut [&mut service] };
        for one in all {
            assert_eq!(try_pull(one, &proxy), again, "{name}");
            let behind = again.map(|number| number + 1).filter(|number| *number < 5);
            assert_eq!(try_pull(one, &proxy), behind, "{name}");
        }
    }
}

#[test]
fn proxies_stay_when_reliable_is_changed_as_far_as_their_keys_are_still_known() {
    let mut service = service();
    let next = |service: &mut EventService| service.poll_push().map(|(_, push)| push.consumer);
    configure(&mut service, &[("a", "reliable=true")]);
    let (_, ordered) = connect(&mut service, "a");
    configure(&mut service, &[("a", "")]);
    push(&mut service, &ordered).expect("it goes on, in the order");
    assert_eq!(next(&mut service), Some(1), "its consumer is connected");
    let (_, past) = connect(&mut service, "a");
    assert!(past.starts_with(UNORDERED_PREFIX.as_bytes()));
    push(&mut service, &past).expect("it is taken");
    configure(&mut service, &[("a", "reliable=true")]);
    let refused = push(&mut service, &past);
    let is_missing = |raised: &SystemException| raised.kind == ExceptionKind::ObjectNotExist;
    assert!(matches!(&refused, Err(PushError::System(it)) if is_missing(it)), "{refused:?}");
    push(&mut service, &ordered).expect("its key is known");
    assert_eq!([next(&mut service), next(&mut service)], [Some(1), Some(3)]);
}
