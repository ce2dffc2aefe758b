//! What subscriptions may cost: octets, changes that are kept, goodbyes, timers.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_base::channel::Bounds;
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Home, Local, Object, raise_system};
use quorba_events::filter::{FilterLimits, designator as d};
use quorba_events::{
    DECISIONS_KEY, EventService, Full, Limits, Outcome, Outgoing, SERVICE_KEY, Settings, Updates,
};
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPushConsumerStub, ProxyPushSupplierStub,
    SupplierAdminStub,
};
use quorba_idl::ft_rtec_event_channel_admin::EventChannelStub as FacadeStub;
use quorba_idl::quorba_events::channels::CreateError;
use quorba_idl::quorba_events::{
    self as numbered, ChannelsStub, DecisionsStub, Filed, NumberedChannelStub,
};
use quorba_idl::rtec_event_channel_admin::event_channel::CANTAPPENDOBSERVER;
use quorba_idl::rtec_event_channel_admin::{self as rtec, ConsumerQOS, SupplierQOS, TypeError};
use stage::{COS, MS, RTEC, Stage, entry, event, key_of, offers, wants, wants_all};

const FULL: SystemException = raise_system(ExceptionKind::NoResources);

fn limited(limits: Limits) -> Settings {
    Settings { limits, ..Settings::default() }
}

/// A subscription that is large.
fn large() -> ConsumerQOS {
    wants(&[(16, 1); 1000])
}

fn rtec_proxy(stage: &mut Stage) -> Result<Object, SystemException> {
    let channel = stage.channel.rtec_reference();
    let admin = stage.at(&channel, |it| rtec::EventChannelStub(it).for_consumers())?;
    stage.at(&admin, |it| rtec::ConsumerAdminStub(it).obtain_push_supplier())
}

fn rtec_connect(stage: &mut Stage, proxy: &Object, qos: &ConsumerQOS) -> Result<(), String> {
    let (_, peer) = stage.peer(RTEC);
    let done =
        stage.at(proxy, |it| rtec::ProxyPushSupplierStub(it).connect_push_consumer(&peer, qos));
    done.map_err(|fault| format!("{fault:?}"))
}

fn is_full(said: &Result<(), String>) -> bool {
    said.as_ref().is_err_and(|said| said.contains("NoResources"))
}

#[test]
fn what_is_beyond_the_octets_of_subscriptions_is_refused_and_what_is_there_stays() {
    let mut stage =
        Stage::new(limited(Limits { subscription_bytes_max: 60_000, ..Limits::default() }));
    let (port, there) = stage.rtec_consumer(&large());
    let proxy = rtec_proxy(&mut stage).expect("a proxy");
    let before = stage.channel.state();
    let counted = stage.channel.subscription_bytes();
    assert!(is_full(&rtec_connect(&mut stage, &proxy, &large())));
    let facade = stage.channel.facade_reference();
    let (_, peer) = stage.peer(RTEC);
    let refused = stage.at(&facade, |it| FacadeStub(it).connect_push_consumer(&peer, &large()));
    assert_eq!(refused, Err(FULL.into()));
    let numbered = stage.channel.numbered_reference();
    let refused = stage
        .at(&numbered, |it| NumberedChannelStub(it).connect_numbered_consumer(&peer, &large()));
    assert_eq!(refused, Err(FULL.into()));
    assert_eq!(stage.channel.subscription_bytes(), counted, "nothing is left of them");
    assert_eq!(stage.channel.state().len(), before.len());
    rtec_connect(&mut stage, &proxy, &wants_all()).expect("there is room for that");
    stage.channel.push(vec![event(16, 1, 0)]).expect("pushed");
    stage.settle();
    assert_eq!(stage.peers[&port].types(), [16]);
    // What has ended makes room.
    let done = stage.at(&there, |it| rtec::ProxyPushSupplierStub(it).disconnect_push_supplier());
    done.expect("it was there");
    let proxy = rtec_proxy(&mut stage).expect("a proxy");
    rtec_connect(&mut stage, &proxy, &large()).expect("there is room");
}

#[test]
fn proxies_suppliers_and_observers_count_at_every_interface() {
    let mut stage =
        Stage::new(limited(Limits { subscription_bytes_max: 19_000, ..Limits::default() }));
    let channel = stage.channel.cos_reference();
    let admin = stage.at(&channel, |it| EventChannelStub(it).for_suppliers()).expect("an admin");
    let supplier = stage.at(&admin, |it| SupplierAdminStub(it).obtain_push_consumer());
    let supplier = supplier.expect("a proxy");
    let of_consumers = stage.at(&channel, |it| EventChannelStub(it).for_consumers());
    let of_consumers = of_consumers.expect("an admin");
    let consumer = stage.at(&of_consumers, |it| ConsumerAdminStub(it).obtain_push_supplier());
    let consumer = consumer.expect("a proxy");
    let facade = stage.channel.facade_reference();
    let many = offers(&[(16, 1); 300]);
    let offered = |it: &mut Local<'_>| FacadeStub(it).connect_push_supplier(&Object::nil(), &many);
    let mut ids = 0;
    while stage.at(&facade, offered).is_ok() {
        ids += 1;
    }
    assert_eq!(ids, 4, "300 take 3,600 octets, and an id its share");
    assert_eq!(stage.at(&facade, offered), Err(FULL));
    // Now until not even a proxy has room.
    let (_, observer) = stage.peer(RTEC);
    let observe = |it: &mut Local<'_>| FacadeStub(it).append_observer(&observer);
    let mut observers = 0;
    while stage.at(&facade, observe).is_ok() {
        observers += 1;
    }
    assert!((1..16).contains(&observers), "{observers}");
    assert_eq!(stage.at(&facade, observe), Err(CANTAPPENDOBSERVER {}.into()));
    while stage.at(&admin, |it| SupplierAdminStub(it).obtain_push_consumer()).is_ok() {}
    let refused = stage.at(&admin, |it| SupplierAdminStub(it).obtain_pull_consumer());
    assert_eq!(refused, Err(FULL));
    let refused = stage.at(&of_consumers, |it| ConsumerAdminStub(it).obtain_pull_supplier());
    assert_eq!(refused, Err(FULL));
    assert_eq!(rtec_proxy(&mut stage), Err(FULL));
    let home = Home { addresses: vec![("far".to_owned(), 1)], prefix: vec![b'x'; 1000] };
    let peer = home.object("IDL:Peer:1.0", b"peer");
    let refused = stage.at(&consumer, |it| ProxyPushSupplierStub(it).connect_push_consumer(&peer));
    assert_eq!(refused, Err(FULL.into()));
    let refused = stage.at(&supplier, |it| ProxyPushConsumerStub(it).connect_push_supplier(&peer));
    assert_eq!(refused, Err(FULL.into()));
}

#[test]
fn what_counts_is_no_less_than_what_is_in_a_state_and_a_joiner_counts_the_same() {
    for is_reliable in [false, true] {
        let full = Full::BackPressure;
        let mut stage = Stage::new(Settings { is_reliable, full, ..Settings::default() });
        let timers = vec![entry(d::INTERVAL_TIMEOUT, 0, 10 * MS, 0); 32];
        stage.rtec_consumer(&ConsumerQOS { dependencies: timers, is_gateway: false });
        stage.rtec_consumer(&large());
        stage.rtec_consumer(&wants(&[&[(d::CONJUNCTION, 999)][..], &[(16, 0); 999]].concat()));
        stage.rtec_supplier(&offers(&[(16, 1); 100]));
        let (_, observer) = stage.peer(COS);
        let channel = stage.channel.rtec_reference();
        let done = stage.at(&channel, |it| rtec::EventChannelStub(it).append_observer(&observer));
        done.expect("there is room");
        let (_, proxy) = stage.rtec_consumer(&wants_all());
        let done =
            stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).disconnect_push_supplier());
        done.expect("it was there");
        let state = stage.channel.state();
        let counted = stage.channel.subscription_bytes();
        assert!((state.len()..2 * state.len()).contains(&counted), "{counted} {}", state.len());
        let mut joiner = stage::channel(Settings { is_reliable, full, ..Settings::default() });
        joiner.take_over(&state).expect("a state");
        assert_eq!(joiner.subscription_bytes(), counted);
    }
}

fn home() -> Home {
    Home { addresses: vec![("here".to_owned(), 2812)], prefix: Vec::new() }
}

/// A service that leads, whose channels' subscriptions may take so many octets together.
fn service(octets: u64) -> EventService {
    let mut service = EventService::new(home());
    service.lead();
    configure(&mut service, octets);
    service
}

fn configure(service: &mut EventService, octets: u64) {
    let together = numbered::Bounds {
        channels_bytes: Bounds::default().channels_bytes,
        reliable_bytes: 7 * octets,
    };
    let filed = vec![Filed { name: "filed".to_owned(), settings: String::new() }];
    let mut local = Local::new(service, DECISIONS_KEY.as_bytes());
    DecisionsStub(&mut local).configure(&filed, &together).expect("it is taken");
}

fn create(service: &mut EventService, name: &str) -> Result<Object, CreateError> {
    let mut local = Local::new(service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).create(&name.to_owned(), &String::new())
}

/// Suppliers with large descriptions connect by the facade until one is refused; how many did.
fn fill(service: &mut EventService, name: &str) -> usize {
    let key = format!("Events/{name}/ft");
    let many = offers(&[(16, 1); 100]);
    let connect = |service: &mut EventService| -> Result<Vec<u8>, SystemException> {
        FacadeStub(&mut Local::new(service, key.as_bytes()))
            .connect_push_supplier(&Object::nil(), &many)
    };
    let mut count = 0;
    let refused = loop {
        match connect(service) {
            Ok(_) => count += 1,
            Err(raised) => break raised,
        }
    };
    assert_eq!(refused, FULL);
    count
}

#[test]
fn no_channel_takes_the_octets_of_all_and_all_together_have_a_bound() {
    let mut service = service(100_000);
    for name in ["a", "b", "c"] {
        create(&mut service, name).expect("there is room");
    }
    let a = fill(&mut service, "a");
    assert!((30..=34).contains(&a), "{a}: half of all, of 1,456 each");
    let b = fill(&mut service, "b");
    assert!((25..a).contains(&b), "{b}: channels count, too");
    assert_eq!(fill(&mut service, "c"), 0);
    assert!(service.state().len() < 100_000);
    let refused = (0..).find_map(|number| create(&mut service, &format!("d{number}")).err());
    let said = format!("{refused:?}");
    assert!(said.contains("1/8 of state_bytes"), "{said}");
    // One that is removed makes room.
    let mut local = Local::new(&mut service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).remove(&"a".to_owned()).expect("it was there");
    create(&mut service, "e").expect("there is room");
    let more = fill(&mut service, "b");
    assert!(more > 0);
    // A smaller bound ends nobody, and a member that joins takes all of it.
    configure(&mut service, 10_000);
    assert_eq!(service.names().filter(|name| *name == "b" || *name == "filed").count(), 2);
    let state = service.state();
    let mut joiner = EventService::new(home());
    joiner.take_over(&state).expect("a state");
    assert_eq!(joiner.state(), state);
    assert_eq!(fill(&mut service, "b"), 0);
}

#[test]
fn what_is_kept_of_changes_has_a_bound_of_octets_and_behind_a_group_nothing_is_kept() {
    let mut stage = Stage::new(limited(Limits { updates_bytes_max: 100_000, ..Limits::default() }));
    let (_, proxy) = stage.rtec_consumer(&large());
    for _ in 0..5 {
        let suspend = |it: &mut Local<'_>| rtec::ProxyPushSupplierStub(it).suspend_connection();
        stage.at(&proxy, suspend).expect("it is there");
    }
    let last = stage.channel.sequence();
    // Each change is with a subscription of 40,000 octets.
    assert!(matches!(stage.channel.updates_since(last - 2), Updates::Changes(_)));
    assert!(matches!(stage.channel.updates_since(last - 3), Updates::Whole(_)));
    let mut service = service(100_000);
    create(&mut service, "a").expect("there is room");
    fill(&mut service, "a");
    let channel = service.channel("a").expect("it is there");
    assert!(matches!(channel.updates_since(channel.sequence() - 1), Updates::Whole(_)));
}

#[test]
fn goodbyes_that_nobody_says_have_a_bound() {
    let mut stage = Stage::new(limited(Limits { proxies_max: 5, ..Limits::default() }));
    for _ in 0..20 {
        let facade = stage.channel.facade_reference();
        let channel = stage.channel.cos_reference();
        let admin = stage.at(&channel, |it| EventChannelStub(it).for_consumers()).expect("there");
        let proxy = stage.at(&admin, |it| ConsumerAdminStub(it).obtain_push_supplier());
        let proxy = proxy.expect("a proxy");
        let (_, peer) = stage.peer(COS);
        let connected =
            stage.at(&proxy, |it| ProxyPushSupplierStub(it).connect_push_consumer(&peer));
        connected.expect("connected");
        let ended = stage.at(&proxy, |it| ProxyPushSupplierStub(it).disconnect_push_supplier());
        ended.expect("it was there");
        assert!(!key_of(&facade).is_empty());
    }
    let mut said = 0;
    while let Some(outgoing) = stage.channel.poll() {
        said += usize::from(matches!(outgoing, Outgoing::Disconnect { .. }));
    }
    assert_eq!(said, 5);
}

fn timers(count: usize, ms: u64) -> ConsumerQOS {
    let dependencies = vec![entry(d::INTERVAL_TIMEOUT, 0, ms * MS, 0); count];
    ConsumerQOS { dependencies, is_gateway: false }
}

#[test]
fn timers_have_a_shortest_period_and_a_bound_of_each_consumer_and_of_all() {
    let mut stage = Stage::new(limited(Limits { timers_max: 40, ..Limits::default() }));
    let proxy = rtec_proxy(&mut stage).expect("a proxy");
    for (count, ms) in [(33, 10), (1, 9)] {
        let said = rtec_connect(&mut stage, &proxy, &timers(count, ms));
        assert!(said.as_ref().is_err_and(|said| said.contains("TypeError")), "{said:?}");
    }
    rtec_connect(&mut stage, &proxy, &timers(32, 10)).expect("as many as there may be");
    let facade = stage.channel.facade_reference();
    let (_, peer) = stage.peer(RTEC);
    let mut subscribe = |count, ms| {
        stage.at(&facade, |it| FacadeStub(it).connect_push_consumer(&peer, &timers(count, ms)))
    };
    assert_eq!(subscribe(1, 9), Err(TypeError {}.into()));
    assert_eq!(subscribe(9, 10), Err(FULL.into()));
    assert!(subscribe(8, 10).is_ok());
    assert_eq!(subscribe(1, 10), Err(FULL.into()));
    assert!(subscribe(0, 10).is_ok(), "no timer needs no room");
}

#[test]
fn timers_that_an_earlier_version_has_taken_are_kept() {
    let filter = FilterLimits { timers_max: 1000, period_min: 10_000, ..FilterLimits::default() };
    let mut stage = Stage::new(limited(Limits { filter, ..Limits::default() }));
    stage.rtec_consumer(&timers(500, 1));
    let mut joiner = stage::channel(limited(Limits { timers_max: 1, ..Limits::default() }));
    joiner.take_over(&stage.channel.state()).expect("a state");
    assert_eq!(joiner.state(), stage.channel.state());
    assert_eq!(joiner.poll_timeout(), Some(MS));
}

fn waiting(stage: &Stage) -> usize {
    stage.channel.consumers().map(|one| one.waiting).sum()
}

#[test]
fn of_many_timers_that_are_due_few_fire_at_a_time_and_each_one_once() {
    let mut stage = Stage::new(Settings::default());
    for _ in 0..10 {
        stage.rtec_consumer(&timers(20, 10));
    }
    let mut fired = Vec::new();
    while stage.channel.poll_timeout().is_some_and(|at| at <= 1000 * MS) {
        stage.channel.tick(1000 * MS);
        fired.push(waiting(&stage));
    }
    assert_eq!(fired, [64, 128, 192, 200], "each a hundred times late");
    assert_eq!(stage.channel.poll_timeout(), Some(1010 * MS));
}

#[test]
fn channels_with_many_timers_take_turns() {
    let mut service = service(1 << 20);
    let names = ["a", "b"];
    let (_, peer) = Stage::new(Settings::default()).peer(RTEC);
    for name in names {
        create(&mut service, name).expect("there is room");
        for _ in 0..4 {
            let key = format!("Events/{name}/ft");
            let mut local = Local::new(&mut service, key.as_bytes());
            let done = FacadeStub(&mut local).connect_push_consumer(&peer, &timers(30, 10));
            done.expect("there is room");
        }
    }
    let waiting = |service: &EventService| {
        names.map(|name| {
            let channel = service.channel(name).expect("it is there");
            channel.consumers().map(|one| one.waiting).sum::<usize>()
        })
    };
    let mut fired = Vec::new();
    for _ in 0..4 {
        service.tick(10 * MS);
        fired.push(waiting(&service));
    }
    assert_eq!(fired, [[64, 0], [64, 64], [120, 72], [120, 120]]);
}

#[test]
fn one_look_at_a_reliable_channel_is_for_all_timers_that_are_due_by_then() {
    let full = Full::BackPressure;
    let mut stage = Stage::new(Settings { is_reliable: true, full, ..Settings::default() });
    stage.rtec_consumer(&timers(1, 11));
    stage.rtec_consumer(&timers(1, 17));
    assert_eq!(stage.channel.poll_timeout(), Some(20 * MS));
    stage.channel.tick(20 * MS);
    assert_eq!(waiting(&stage), 2);
    assert_eq!(stage.channel.poll_timeout(), Some(30 * MS), "the first one is due at 22");
    let push = stage.channel.poll_push().expect("a timer has fired");
    stage.channel.pushed(push.consumer, push.ticket, Outcome::Taken);
}

#[test]
fn a_supplier_that_connects_anew_with_less_is_never_refused() {
    let limits = Limits { subscription_bytes_max: 4_000, ..Limits::default() };
    let mut stage = Stage::new(Settings { may_reconnect: true, limits, ..Settings::default() });
    let (_, proxy) = stage.rtec_supplier(&offers(&[(16, 1); 250]));
    let mut again = |qos: &SupplierQOS| {
        let nobody = Object::nil();
        stage.at(&proxy, |it| rtec::ProxyPushConsumerStub(it).connect_push_supplier(&nobody, qos))
    };
    assert_eq!(again(&offers(&[(16, 1); 400])), Err(FULL.into()));
    assert_eq!(again(&offers(&[(16, 1); 240])), Ok(()));
}
