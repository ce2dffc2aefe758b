//! Suppliers that are pulled: no event is fetched only to be dropped.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::{Any, Object};
use quorba_events::{Full, QueueLimits, Settings};
use quorba_idl::cos_event_channel_admin as admin;
use quorba_idl::rtec_event_channel_admin as rtec;
use stage::{COS, MS, Stage, wants};

/// A consumer that pulls: its proxy.
fn puller(stage: &mut Stage) -> Object {
    let channel = stage.channel.cos_reference();
    let admin = stage.at(&channel, |it| admin::EventChannelStub(it).for_consumers());
    let admin = admin.expect("an admin");
    let proxy = stage.at(&admin, |it| admin::ConsumerAdminStub(it).obtain_pull_supplier());
    let proxy = proxy.expect("a proxy");
    stage
        .at(&proxy, |it| admin::ProxyPullSupplierStub(it).connect_pull_consumer(&Object::nil()))
        .expect("connected");
    proxy
}

fn try_pull(stage: &mut Stage, proxy: &Object) -> Option<String> {
    let pulled = stage.at(proxy, |it| admin::ProxyPullSupplierStub(it).try_pull());
    let (data, is_there) = pulled.expect("it is connected");
    is_there.then(|| data.get().expect("a text"))
}

/// A supplier that answers each `try_pull` by an event of so many letters: its port.
fn source(stage: &mut Stage, events: usize, letters: usize) -> u16 {
    let channel = stage.channel.cos_reference();
    let admin = stage.at(&channel, |it| admin::EventChannelStub(it).for_suppliers());
    let admin = admin.expect("an admin");
    let proxy = stage.at(&admin, |it| admin::SupplierAdminStub(it).obtain_pull_consumer());
    let proxy = proxy.expect("a proxy");
    let (port, peer) = stage.peer(COS);
    let text = |number: usize| format!("{number:0letters$}");
    let stock = (1..=events).map(|number| Any::new(&text(number)).expect("a text"));
    stage.peers.get_mut(&port).expect("a peer").stock = stock.collect();
    stage
        .at(&proxy, |it| admin::ProxyPullConsumerStub(it).connect_pull_supplier(&peer))
        .expect("connected");
    port
}

fn left(stage: &Stage, port: u16) -> usize {
    stage.peers[&port].stock.len()
}

/// All that is due within a second is done.
fn pass(stage: &mut Stage) {
    let end = stage.channel.poll_timeout().unwrap_or(0) + 1_000 * MS;
    stage.settle();
    while let Some(due) = stage.channel.poll_timeout().filter(|due| *due <= end) {
        stage.channel.tick(due);
        stage.settle();
    }
}

fn three(full: Full) -> Settings {
    let queue = QueueLimits { sets_max: 3, ..QueueLimits::default() };
    Settings { full, queue, ..Settings::default() }
}

const LOSSY: [Full; 3] = [Full::DropOldest, Full::DropNewest, Full::Disconnect];

#[test]
fn a_supplier_keeps_what_no_queue_has_room_for_whatever_the_policy() {
    for full in LOSSY {
        let mut stage = Stage::new(three(full));
        let proxy = puller(&mut stage);
        let port = source(&mut stage, 10, 5);
        pass(&mut stage);
        assert_eq!(left(&stage, port), 7, "{full:?}");
        let given = [(); 2].map(|()| try_pull(&mut stage, &proxy));
        assert_eq!(given, [Some("00001".to_owned()), Some("00002".to_owned())]);
        pass(&mut stage);
        assert_eq!(left(&stage, port), 5, "{full:?}: there is room for two");
        let mut all = Vec::new();
        while let Some(text) = try_pull(&mut stage, &proxy) {
            all.push(text);
            pass(&mut stage);
        }
        let expected: Vec<String> = (3..=10).map(|number| format!("{number:05}")).collect();
        assert_eq!(all, expected, "{full:?}");
        let dropped: u64 = stage.channel.consumers().map(|one| one.counters.dropped).sum();
        assert_eq!(dropped, 0, "{full:?}");
    }
}

#[test]
fn octets_of_the_queue_and_of_the_channel_count_too() {
    let queue = QueueLimits { sets_max: 1_000, bytes_max: 4_000 };
    let of_queue = Settings { full: Full::DropOldest, queue, ..Settings::default() };
    let of_all = Settings { full: Full::DropOldest, total_bytes: 4_000, ..Settings::default() };
    for settings in [of_queue, of_all] {
        let mut stage = Stage::new(settings);
        puller(&mut stage);
        let port = source(&mut stage, 100, 900);
        pass(&mut stage);
        let waiting = stage.channel.consumers().map(|one| one.waiting).sum::<usize>();
        assert!((2..=4).contains(&waiting), "{waiting}");
        assert_eq!(left(&stage, port), 100 - waiting, "nothing is dropped");
    }
}

#[test]
fn who_has_room_is_given_what_there_is_where_others_lose_it() {
    let mut stage = Stage::new(three(Full::DropOldest));
    let (slow, quick) = (puller(&mut stage), puller(&mut stage));
    let port = source(&mut stage, 10, 5);
    let mut all = 0;
    for _ in 0..10 {
        pass(&mut stage);
        while try_pull(&mut stage, &quick).is_some() {
            all += 1;
        }
    }
    assert_eq!((all, left(&stage, port)), (10, 0));
    assert_eq!(try_pull(&mut stage, &slow), Some("00008".to_owned()), "it lost the others");
}

#[test]
fn what_nobody_wants_stays_where_it_is_until_somebody_does() {
    for full in [Full::DropOldest, Full::BackPressure] {
        let mut stage = Stage::new(three(full));
        let port = source(&mut stage, 2, 5);
        pass(&mut stage);
        assert_eq!(left(&stage, port), 2, "{full:?}: nobody is there");
        stage.rtec_consumer(&wants(&[(20, 1)]));
        pass(&mut stage);
        assert_eq!(left(&stage, port), 2, "{full:?}: it wants something else");
        let (_, suspended) = stage.rtec_consumer(&wants(&[(16, 0)]));
        let suspends =
            stage.at(&suspended, |it| rtec::ProxyPushSupplierStub(it).suspend_connection());
        suspends.expect("it is there");
        let before = left(&stage, port);
        pass(&mut stage);
        assert_eq!(left(&stage, port), before, "{full:?}: it is given nothing now");
        let proxy = puller(&mut stage);
        pass(&mut stage);
        assert_eq!(left(&stage, port), 0, "{full:?}");
        let given = [(); 3].map(|()| try_pull(&mut stage, &proxy).is_some());
        assert_eq!(given, [true, true, false]);
    }
}

#[test]
fn who_pulls_no_more_keeps_suppliers_that_are_pulled_waiting_for_a_bounded_time_only() {
    for is_reliable in [false, true] {
        let settings = Settings { is_reliable, ..three(Full::BackPressure) };
        let mut stage = Stage::new(settings);
        let (gone, here) = (puller(&mut stage), puller(&mut stage));
        let port = source(&mut stage, 5, 5);
        let mut given = 0;
        for _ in 0..70 {
            pass(&mut stage);
            given += usize::from(try_pull(&mut stage, &here).is_some());
            if given < 3 {
                assert_eq!(stage.ended, [""; 0], "it may come back");
            }
        }
        assert_eq!(stage.ended.len(), 1, "{is_reliable}");
        assert!(stage.ended[0].starts_with("consumer 1 "), "{:?}", stage.ended);
        assert_eq!((given, left(&stage, port)), (5, 0), "{is_reliable}");
        let pulled = stage.at(&gone, |it| admin::ProxyPullSupplierStub(it).try_pull());
        assert!(pulled.is_err(), "it is disconnected");
    }
}
