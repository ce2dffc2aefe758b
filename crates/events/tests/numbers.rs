//! A channel that is made again under its name knows nothing of what the old one gave out: its
//! proxies, ids and handles, and the calls that it had under way.

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Home, Local, Object};
use quorba_events::{
    DECISIONS_KEY, Decision, Delivery, EventService, Outcome, Outgoing, Proposal, SERVICE_KEY,
};
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPullConsumerStub, ProxyPushConsumerStub,
    ProxyPushSupplierStub, SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::ft_rtec_event_channel_admin::EventChannelFacadeStub;
use quorba_idl::ft_rtec_event_channel_admin::event_channel_facade::DisconnectPushConsumerError;
use quorba_idl::quorba_events::{ChannelsStub, DecisionsStub};
use quorba_idl::rtec_event_channel_admin::{
    EventChannelStub as RtecChannelStub, SupplierQOS, event_channel::RemoveObserverError,
};

fn home() -> Home {
    Home { addresses: vec![("here".to_owned(), 2812)], prefix: Vec::new() }
}

fn peer(name: &str) -> Object {
    home().object("IDL:peer:1.0", name.as_bytes())
}

/// A service that leads, with the channel `tests`.
fn service(settings: &str) -> EventService {
    let mut service = EventService::new(home());
    service.lead();
    let together =
        quorba_idl::quorba_events::Bounds { channels_bytes: 4 << 30, reliable_bytes: 200 << 20 };
    let mut local = Local::new(&mut service, DECISIONS_KEY.as_bytes());
    DecisionsStub(&mut local).configure(&Vec::new(), &together).expect("it is taken");
    create(&mut service, settings);
    service
}

fn create(service: &mut EventService, settings: &str) {
    let mut local = Local::new(service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).create(&"tests".to_owned(), &settings.to_owned()).expect("made");
}

/// The channel is removed and made again.
fn renew(service: &mut EventService, settings: &str) {
    let mut local = Local::new(service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).remove(&"tests".to_owned()).expect("it was there");
    create(service, settings);
    // Goodbyes.
    while service.poll().is_some() {}
}

fn key(object: &Object) -> Vec<u8> {
    home().key_of(object).expect("an object of the service")
}

/// A consumer that is connected: its proxy.
fn consumer(service: &mut EventService, name: &str) -> Vec<u8> {
    let mut local = Local::new(service, b"Events/tests/consumers");
    let proxy = key(&ConsumerAdminStub(&mut local).obtain_push_supplier().expect("a proxy"));
    let mut local = Local::new(service, &proxy);
    ProxyPushSupplierStub(&mut local).connect_push_consumer(&peer(name)).expect("connected");
    proxy
}

fn supplier(service: &mut EventService) -> Vec<u8> {
    let mut local = Local::new(service, b"Events/tests/suppliers");
    let proxy = key(&SupplierAdminStub(&mut local).obtain_push_consumer().expect("a proxy"));
    let mut local = Local::new(service, &proxy);
    ProxyPushConsumerStub(&mut local).connect_push_supplier(&Object::nil()).expect("connected");
    proxy
}

/// A supplier that is pulled.
fn source(service: &mut EventService, name: &str) {
    let mut local = Local::new(service, b"Events/tests/suppliers");
    let proxy = key(&SupplierAdminStub(&mut local).obtain_pull_consumer().expect("a proxy"));
    let mut local = Local::new(service, &proxy);
    ProxyPullConsumerStub(&mut local).connect_pull_supplier(&peer(name)).expect("connected");
}

fn push(service: &mut EventService, proxy: &[u8]) -> Result<(), PushError> {
    let data = Any::new(&1_u32).expect("a value");
    ProxyPushConsumerStub(&mut Local::new(service, proxy)).push(&data)
}

fn next_push(service: &mut EventService) -> Delivery {
    service.poll_push().expect("an event waits").1
}

fn next_pull(service: &mut EventService) -> (u64, u64) {
    let found = std::iter::from_fn(|| service.poll()).find_map(|(_, outgoing)| match outgoing {
        Outgoing::Pull { supplier, ticket, .. } => Some((supplier, ticket)),
        _ => None,
    });
    found.expect("it is asked")
}

fn is_missing(raised: &SystemException) -> bool {
    raised.kind == ExceptionKind::ObjectNotExist
}

#[test]
fn who_was_connected_to_a_channel_that_is_no_more_is_nobody_in_the_next_one_of_its_name() {
    for settings in ["", "reliable=true"] {
        let mut service = service(settings);
        let (old_consumer, old_supplier) = (consumer(&mut service, "old"), supplier(&mut service));
        renew(&mut service, settings);
        consumer(&mut service, "new");
        let new = supplier(&mut service);
        let refused = push(&mut service, &old_supplier);
        assert!(matches!(&refused, Err(PushError::System(it)) if is_missing(it)), "{refused:?}");
        let mut local = Local::new(&mut service, &old_consumer);
        let refused = ProxyPushSupplierStub(&mut local).disconnect_push_supplier();
        assert!(refused.as_ref().is_err_and(is_missing), "{refused:?}");
        push(&mut service, &new).expect("it is connected");
        assert_eq!(*next_push(&mut service).to, peer("new"));
        assert!(service.poll_push().is_none(), "nothing was taken of the old one");
    }
}

#[test]
fn an_id_of_a_facade_is_that_of_one_proxy_for_ever_and_so_is_the_handle_of_an_observer() {
    let mut service = service("");
    let offers = SupplierQOS { publications: Vec::new(), is_gateway: false };
    let connect = |service: &mut EventService| {
        let mut facade = Local::new(service, b"Events/tests/ft");
        let mut facade = EventChannelFacadeStub(&mut facade);
        facade.connect_push_supplier(&Object::nil(), &offers).expect("connected")
    };
    let append = |service: &mut EventService| {
        let mut channel = Local::new(service, b"Events/tests/rtec");
        RtecChannelStub(&mut channel).append_observer(&peer("observer")).expect("appended")
    };
    let old = (connect(&mut service), append(&mut service));
    renew(&mut service, "");
    let new = (connect(&mut service), append(&mut service));
    let mut facade = Local::new(&mut service, b"Events/tests/ft");
    let ended = EventChannelFacadeStub(&mut facade).disconnect_push_consumer(&old.0);
    assert!(matches!(ended, Err(DisconnectPushConsumerError::InvalidObjectID(_))), "{ended:?}");
    let mut channel = Local::new(&mut service, b"Events/tests/rtec");
    let removed = RtecChannelStub(&mut channel).remove_observer(&old.1);
    let is_refused = matches!(removed, Err(RemoveObserverError::CANTREMOVEOBSERVER(_)));
    assert!(is_refused, "{removed:?}");
    let mut facade = Local::new(&mut service, b"Events/tests/ft");
    EventChannelFacadeStub(&mut facade).disconnect_push_consumer(&new.0).expect("its own");
    let mut channel = Local::new(&mut service, b"Events/tests/rtec");
    RtecChannelStub(&mut channel).remove_observer(&new.1).expect("its own");
}

#[test]
fn how_a_push_of_a_channel_that_is_no_more_ended_counts_for_no_other_one() {
    for outcome in [Outcome::Gone, Outcome::Taken, Outcome::Unanswered] {
        let mut service = service("reliable=true");
        consumer(&mut service, "old");
        let proxy = supplier(&mut service);
        push(&mut service, &proxy).expect("taken");
        let old = next_push(&mut service);
        renew(&mut service, "reliable=true");
        consumer(&mut service, "new");
        let proxy = supplier(&mut service);
        push(&mut service, &proxy).expect("taken");
        let new = next_push(&mut service);
        service.pushed("tests", old.consumer, old.ticket, outcome);
        assert!(service.is_under_way("tests", &new), "{outcome:?}");
        assert_eq!(service.poll(), None, "{outcome:?}: nothing is decided of it");
        service.pushed("tests", new.consumer, new.ticket, Outcome::Taken);
        assert!(service.poll().is_some(), "its own counts");
    }
}

#[test]
fn what_is_pulled_for_a_channel_that_is_no_more_comes_to_no_other_one() {
    let mut service = service("");
    consumer(&mut service, "old");
    source(&mut service, "old source");
    let old = next_pull(&mut service);
    renew(&mut service, "");
    consumer(&mut service, "new");
    source(&mut service, "new source");
    let new = next_pull(&mut service);
    let data = |number: u32| Ok(Some(Any::new(&number).expect("a value")));
    service.pulled("tests", old.0, old.1, data(1));
    assert!(service.poll_push().is_none(), "it is of the old one");
    service.pulled("tests", new.0, new.1, data(2));
    assert!(service.poll_push().is_some());
}

/// Who led is cut off, and is given a state while it waits for a supplier.
#[test]
fn what_is_pulled_while_a_state_is_taken_over_is_an_event_of_the_same_channel() {
    let mut service = service("reliable=true");
    consumer(&mut service, "consumer");
    source(&mut service, "source");
    let asked = next_pull(&mut service);
    service.follow_another();
    let state = service.state();
    service.take_over(&state).expect("its own");
    service.pulled("tests", asked.0, asked.1, Ok(Some(Any::new(&1_u32).expect("a value"))));
    let outgoing = std::iter::from_fn(|| service.poll()).find_map(|(_, outgoing)| match outgoing {
        Outgoing::Propose(proposal @ Proposal::Pulled { .. }) => Some(proposal),
        _ => None,
    });
    assert!(outgoing.is_some(), "it is ordered, whoever leads");
}

#[test]
fn what_is_ordered_late_of_a_channel_that_is_no_more_comes_to_no_other_one() {
    let mut service = service("reliable=true");
    consumer(&mut service, "old");
    source(&mut service, "old source");
    let (old, _) = next_pull(&mut service);
    let pulled = |supplier: u64| {
        let data = Any::new(&1_u32).expect("a value");
        Decision::Proposal("tests".to_owned(), Proposal::Pulled { supplier, data })
    };
    renew(&mut service, "reliable=true");
    consumer(&mut service, "new");
    source(&mut service, "new source");
    let (new, _) = next_pull(&mut service);
    for (supplier, is_its_own) in [(old, false), (new, true)] {
        let mut local = Local::new(&mut service, DECISIONS_KEY.as_bytes());
        pulled(supplier).call(&mut local).expect("ordered");
        assert_eq!(service.poll_push().is_some(), is_its_own, "{supplier}");
    }
}

/// A state that is taken over has the numbers; the names of attempts are the process's own.
#[test]
fn numbers_go_on_in_a_state_that_is_taken_over_and_are_alike_at_all_members() {
    let mut leader = service("");
    consumer(&mut leader, "old");
    let old = supplier(&mut leader);
    let mut local = Local::new(&mut leader, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).remove(&"tests".to_owned()).expect("it was there");
    let mut member = EventService::new(home());
    member.take_over(&leader.state()).expect("a state");
    for one in [&mut leader, &mut member] {
        create(one, "");
        consumer(one, "new");
        let proxy = supplier(one);
        assert_ne!(proxy, old);
    }
    assert_eq!(leader.state(), member.state());
    // Only the leader takes what goes past the order.
    let proxy = supplier(&mut leader);
    assert_eq!(supplier(&mut member), proxy);
    push(&mut leader, &proxy).expect("taken");
    assert_eq!(leader.state(), member.state());
    let under_way = next_push(&mut leader);
    leader.take_over(&member.state()).expect("a state");
    push(&mut leader, &proxy).expect("taken");
    let other = next_push(&mut leader);
    leader.pushed("tests", under_way.consumer, under_way.ticket, Outcome::Gone);
    assert!(leader.is_under_way("tests", &other), "that was before");
}

#[test]
fn numbers_of_all_channels_of_a_service_differ() {
    let mut service = service("");
    let first = supplier(&mut service);
    let mut local = Local::new(&mut service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).create(&"more".to_owned(), &String::new()).expect("made");
    let mut local = Local::new(&mut service, b"Events/more");
    let admin = key(&EventChannelStub(&mut local).for_suppliers().expect("an admin"));
    let mut local = Local::new(&mut service, &admin);
    let proxy = key(&SupplierAdminStub(&mut local).obtain_push_consumer().expect("a proxy"));
    let number = |key: &[u8]| {
        let key = String::from_utf8_lossy(key).into_owned();
        key.rsplit_once("s-").map(|(_, number)| number.to_owned())
    };
    assert_ne!(number(&proxy), number(&first));
}

/// What members of the version before wrote: version 2 has no numbers before its first flag.
#[test]
fn a_state_without_numbers_goes_on_behind_those_of_its_channels() {
    let mut service = service("");
    let last = supplier(&mut service);
    let new = service.state();
    let old = [&b"QEVSERV\x02"[..], &new[20..21], &[0; 7], &new[24..]].concat();
    let mut other = EventService::new(home());
    other.take_over(&old).expect("a state");
    assert_eq!(other.state(), new);
    other.lead();
    assert_ne!(supplier(&mut other), last);
    // Numbers that do not go beyond those of a channel are no state.
    let mut wrong = new.clone();
    wrong[15] = 1;
    assert!(other.take_over(&wrong).is_err());
}
