//! The standard's interface, through stubs: push and pull on both sides, and every exception.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Object};
use quorba_events::{
    Full, Limits, NO_ROOM, NOTHING_YET, Outcome, Outgoing, Proposal, QueueLimits, Settings,
};
use quorba_idl::cos_event_channel_admin as admin;
use quorba_idl::cos_event_channel_admin::{
    proxy_pull_consumer as to_pull, proxy_pull_supplier as pulls, proxy_push_consumer as pushes,
    proxy_push_supplier as to_push,
};
use quorba_idl::cos_event_comm::Disconnected;
use quorba_idl::cos_event_comm::pull_supplier::{PullError, TryPullError};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use stage::{COS, MS, Mood, Stage, key_of};

fn any(number: u32) -> Any {
    Any::new(&number).expect("a number")
}

fn numbers(anys: &[Any]) -> Vec<u32> {
    anys.iter().map(|any| any.get().expect("a number")).collect()
}

fn system(kind: ExceptionKind) -> SystemException {
    SystemException { kind, minor: 0, completed: Completion::No }
}

fn later(minor: u32) -> SystemException {
    SystemException { kind: ExceptionKind::Transient, minor, completed: Completion::No }
}

fn admins(stage: &mut Stage) -> (Object, Object) {
    let channel = stage.channel.cos_reference();
    stage.at(&channel, |it| {
        let mut it = admin::EventChannelStub(it);
        (it.for_consumers().expect("consumers"), it.for_suppliers().expect("suppliers"))
    })
}

/// A proxy of each kind: for consumers that are pushed to and that pull, for suppliers that push
/// and that are pulled.
fn proxies(stage: &mut Stage) -> [Object; 4] {
    let (consumers, suppliers) = admins(stage);
    let (one, two) = stage.at(&consumers, |it| {
        let mut it = admin::ConsumerAdminStub(it);
        (it.obtain_push_supplier().expect("a proxy"), it.obtain_pull_supplier().expect("a proxy"))
    });
    let (three, four) = stage.at(&suppliers, |it| {
        let mut it = admin::SupplierAdminStub(it);
        (it.obtain_push_consumer().expect("a proxy"), it.obtain_pull_consumer().expect("a proxy"))
    });
    [one, two, three, four]
}

fn connect_to_push(
    stage: &mut Stage,
    proxy: &Object,
    peer: &Object,
) -> Result<(), to_push::ConnectPushConsumerError> {
    stage.at(proxy, |it| admin::ProxyPushSupplierStub(it).connect_push_consumer(peer))
}

fn connect_pulls(
    stage: &mut Stage,
    proxy: &Object,
    peer: &Object,
) -> Result<(), pulls::ConnectPullConsumerError> {
    stage.at(proxy, |it| admin::ProxyPullSupplierStub(it).connect_pull_consumer(peer))
}

fn connect_pushes(
    stage: &mut Stage,
    proxy: &Object,
    peer: &Object,
) -> Result<(), pushes::ConnectPushSupplierError> {
    stage.at(proxy, |it| admin::ProxyPushConsumerStub(it).connect_push_supplier(peer))
}

fn connect_to_pull(
    stage: &mut Stage,
    proxy: &Object,
    peer: &Object,
) -> Result<(), to_pull::ConnectPullSupplierError> {
    stage.at(proxy, |it| admin::ProxyPullConsumerStub(it).connect_pull_supplier(peer))
}

fn push(stage: &mut Stage, proxy: &Object, number: u32) -> Result<(), PushError> {
    stage.at(proxy, |it| admin::ProxyPushConsumerStub(it).push(&any(number)))
}

fn try_pull(stage: &mut Stage, proxy: &Object) -> Result<Option<u32>, TryPullError> {
    let (data, is_there) = stage.at(proxy, |it| admin::ProxyPullSupplierStub(it).try_pull())?;
    Ok(is_there.then(|| data.get().expect("a number")))
}

fn pull(stage: &mut Stage, proxy: &Object) -> Result<u32, PullError> {
    let data = stage.at(proxy, |it| admin::ProxyPullSupplierStub(it).pull())?;
    Ok(data.get().expect("a number"))
}

#[test]
fn push_and_pull_go_together_on_both_sides() {
    let mut stage = Stage::new(Settings::default());
    let [to_push, to_give, from_push, from_pull] = proxies(&mut stage);
    let (consumer, consumer_object) = stage.peer(COS);
    let (supplier, supplier_object) = stage.peer(COS);
    connect_to_push(&mut stage, &to_push, &consumer_object).expect("connected");
    connect_pulls(&mut stage, &to_give, &Object::nil()).expect("nobody to call back is fine");
    connect_pushes(&mut stage, &from_push, &Object::nil()).expect("connected");
    connect_to_pull(&mut stage, &from_pull, &supplier_object).expect("connected");
    for number in 1..=3 {
        push(&mut stage, &from_push, number).expect("pushed");
    }
    stage.settle();
    stage.peers.get_mut(&supplier).expect("a peer").stock = vec![any(4), any(5)];
    stage.channel.tick(stage.channel.poll_timeout().expect("it asks again"));
    stage.settle();
    assert_eq!(numbers(&stage.peers[&consumer].anys), [1, 2, 3, 4, 5]);
    assert_eq!(pull(&mut stage, &to_give), Ok(1));
    for number in 2..=5 {
        assert_eq!(try_pull(&mut stage, &to_give), Ok(Some(number)));
    }
    assert_eq!(try_pull(&mut stage, &to_give), Ok(None));
    assert_eq!(pull(&mut stage, &to_give), Err(later(NOTHING_YET).into()));
}

#[test]
fn who_can_hold_a_pull_knows_when_it_would_wait() {
    let mut stage = Stage::new(Settings::default());
    let [_, to_give, from_push, _] = proxies(&mut stage);
    assert!(stage.channel.has_event(&key_of(&to_give)), "it is told at once that it is not");
    connect_pulls(&mut stage, &to_give, &Object::nil()).expect("connected");
    connect_pushes(&mut stage, &from_push, &Object::nil()).expect("connected");
    assert!(!stage.channel.has_event(&key_of(&to_give)));
    push(&mut stage, &from_push, 1).expect("pushed");
    assert!(stage.channel.has_event(&key_of(&to_give)));
}

#[test]
fn what_is_not_connected_is_told_so() {
    let mut stage = Stage::new(Settings::default());
    let [_, to_give, from_push, _] = proxies(&mut stage);
    let disconnected = Disconnected {};
    assert_eq!(push(&mut stage, &from_push, 1), Err(disconnected.clone().into()));
    assert_eq!(try_pull(&mut stage, &to_give), Err(disconnected.clone().into()));
    assert_eq!(pull(&mut stage, &to_give), Err(disconnected.into()));
}

#[test]
fn a_proxy_is_connected_once_and_to_somebody() {
    let mut stage = Stage::new(Settings::default());
    let [to_push, to_give, from_push, from_pull] = proxies(&mut stage);
    let (_, peer) = stage.peer(COS);
    let nobody = system(ExceptionKind::BadParam);
    let nil = Object::nil();
    assert_eq!(connect_to_push(&mut stage, &to_push, &nil), Err(nobody.into()));
    assert_eq!(connect_to_pull(&mut stage, &from_pull, &nil), Err(nobody.into()));
    connect_to_push(&mut stage, &to_push, &peer).expect("connected");
    connect_pulls(&mut stage, &to_give, &peer).expect("connected");
    connect_pushes(&mut stage, &from_push, &peer).expect("connected");
    connect_to_pull(&mut stage, &from_pull, &peer).expect("connected");
    // Who is nobody hears that, also where somebody is connected.
    assert_eq!(connect_to_push(&mut stage, &to_push, &nil), Err(nobody.into()));
    assert_eq!(connect_to_pull(&mut stage, &from_pull, &nil), Err(nobody.into()));
    let again = admin::AlreadyConnected {};
    assert_eq!(connect_to_push(&mut stage, &to_push, &peer), Err(again.clone().into()));
    assert_eq!(connect_pulls(&mut stage, &to_give, &peer), Err(again.clone().into()));
    assert_eq!(connect_pushes(&mut stage, &from_push, &peer), Err(again.clone().into()));
    assert_eq!(connect_to_pull(&mut stage, &from_pull, &peer), Err(again.into()));
}

#[test]
fn clients_of_the_standard_connect_once_also_where_those_of_tao_may_again() {
    let mut stage = Stage::new(Settings { may_reconnect: true, ..Settings::default() });
    let [to_push, to_give, from_push, from_pull] = proxies(&mut stage);
    let (_, peer) = stage.peer(COS);
    connect_to_push(&mut stage, &to_push, &peer).expect("connected");
    connect_pulls(&mut stage, &to_give, &peer).expect("connected");
    connect_pushes(&mut stage, &from_push, &peer).expect("connected");
    connect_to_pull(&mut stage, &from_pull, &peer).expect("connected");
    let already = admin::AlreadyConnected {};
    let again = connect_to_push(&mut stage, &to_push, &peer);
    assert_eq!(again, Err(already.clone().into()));
    assert_eq!(connect_pulls(&mut stage, &to_give, &peer), Err(already.clone().into()));
    assert_eq!(connect_pushes(&mut stage, &from_push, &peer), Err(already.clone().into()));
    assert_eq!(connect_to_pull(&mut stage, &from_pull, &peer), Err(already.into()));
}

#[test]
fn who_disconnects_is_called_back_and_its_proxy_is_no_more() {
    let mut stage = Stage::new(Settings::default());
    let all = proxies(&mut stage);
    let peers: Vec<(u16, Object)> = (0..4).map(|_| stage.peer(COS)).collect();
    connect_to_push(&mut stage, &all[0], &peers[0].1).expect("connected");
    connect_pulls(&mut stage, &all[1], &peers[1].1).expect("connected");
    connect_pushes(&mut stage, &all[2], &peers[2].1).expect("connected");
    connect_to_pull(&mut stage, &all[3], &peers[3].1).expect("connected");
    let done = [
        stage.at(&all[0], |it| admin::ProxyPushSupplierStub(it).disconnect_push_supplier()),
        stage.at(&all[1], |it| admin::ProxyPullSupplierStub(it).disconnect_pull_supplier()),
        stage.at(&all[2], |it| admin::ProxyPushConsumerStub(it).disconnect_push_consumer()),
        stage.at(&all[3], |it| admin::ProxyPullConsumerStub(it).disconnect_pull_consumer()),
    ];
    assert_eq!(done, [Ok(()); 4]);
    stage.settle();
    let told: Vec<_> = peers.iter().map(|(port, _)| stage.peers[port].goodbyes.clone()).collect();
    assert_eq!(
        told,
        [
            ["disconnect_push_consumer"],
            ["disconnect_pull_consumer"],
            ["disconnect_push_supplier"],
            ["disconnect_pull_supplier"]
        ]
    );
    let missing = system(ExceptionKind::ObjectNotExist);
    assert_eq!(push(&mut stage, &all[2], 1), Err(missing.into()));
    assert_eq!(try_pull(&mut stage, &all[1]), Err(missing.into()));
}

#[test]
fn a_channel_that_ends_tells_everybody_and_is_no_more() {
    let mut stage = Stage::new(Settings::default());
    let all = proxies(&mut stage);
    let peers: Vec<(u16, Object)> = (0..4).map(|_| stage.peer(COS)).collect();
    connect_to_push(&mut stage, &all[0], &peers[0].1).expect("connected");
    connect_pulls(&mut stage, &all[1], &peers[1].1).expect("connected");
    connect_pushes(&mut stage, &all[2], &peers[2].1).expect("connected");
    connect_to_pull(&mut stage, &all[3], &peers[3].1).expect("connected");
    let channel = stage.channel.cos_reference();
    let ended = stage.at(&channel, |it| admin::EventChannelStub(it).destroy());
    assert_eq!(ended, Ok(()));
    stage.settle();
    assert!(peers.iter().all(|(port, _)| stage.peers[port].goodbyes.len() == 1));
    let missing = system(ExceptionKind::ObjectNotExist);
    let again = stage.at(&channel, |it| admin::EventChannelStub(it).destroy());
    assert_eq!(again, Err(missing));
    assert_eq!(push(&mut stage, &all[2], 1), Err(missing.into()));
}

#[test]
fn a_supplier_that_is_gone_is_disconnected_and_one_that_is_away_is_asked_later() {
    let mut stage = Stage::new(Settings::default());
    let [to_push, _, _, from_pull] = proxies(&mut stage);
    let (consumer, consumer_object) = stage.peer(COS);
    let (supplier, supplier_object) = stage.peer(COS);
    connect_to_push(&mut stage, &to_push, &consumer_object).expect("connected");
    connect_to_pull(&mut stage, &from_pull, &supplier_object).expect("connected");
    stage.peers.get_mut(&supplier).expect("a peer").mood = Mood::Away;
    stage.settle();
    let again = stage.channel.poll_timeout().expect("it is asked again");
    assert_eq!(again, Settings::default().retry_after);
    let peer = stage.peers.get_mut(&supplier).expect("a peer");
    (peer.mood, peer.stock) = (Mood::Fine, vec![any(7)]);
    stage.channel.tick(again);
    stage.settle();
    assert_eq!(numbers(&stage.peers[&consumer].anys), [7]);
    stage.peers.get_mut(&supplier).expect("a peer").mood = Mood::Gone;
    stage.channel.tick(again + 1000 * MS);
    stage.settle();
    assert_eq!(stage.channel.poll_timeout(), None, "nobody is asked any more");
}

#[test]
fn what_is_too_much_is_refused() {
    let limits = Limits { proxies_max: 4, event_bytes_max: 200, ..Limits::default() };
    let mut stage = Stage::new(Settings { limits, ..Settings::default() });
    let [_, _, from_push, _] = proxies(&mut stage);
    let (consumers, suppliers) = admins(&mut stage);
    let full = system(ExceptionKind::NoResources);
    let one = stage.at(&consumers, |it| admin::ConsumerAdminStub(it).obtain_pull_supplier());
    let two = stage.at(&suppliers, |it| admin::SupplierAdminStub(it).obtain_push_consumer());
    assert_eq!((one, two), (Err(full), Err(full)));
    connect_pushes(&mut stage, &from_push, &Object::nil()).expect("connected");
    let large = Any::new(&"x".repeat(200)).expect("a text");
    let pushed = stage.at(&from_push, |it| admin::ProxyPushConsumerStub(it).push(&large));
    assert_eq!(pushed, Err(system(ExceptionKind::ImpLimit).into()));
}

#[test]
fn what_is_too_large_is_left_out_before_it_is_proposed_and_its_supplier_is_told() {
    for is_reliable in [false, true] {
        let limits = Limits { event_bytes_max: 200, ..Limits::default() };
        let full = Full::BackPressure;
        let mut stage = Stage::new(Settings { limits, full, is_reliable, ..Settings::default() });
        let [to_push, _, _, from_pull] = proxies(&mut stage);
        let (consumer, consumer_object) = stage.peer(COS);
        let (supplier, supplier_object) = stage.peer(COS);
        connect_to_push(&mut stage, &to_push, &consumer_object).expect("connected");
        let large = Any::new(&"x".repeat(200)).expect("a text");
        stage.peers.get_mut(&supplier).expect("a peer").stock = vec![any(1), large, any(2)];
        connect_to_pull(&mut stage, &from_pull, &supplier_object).expect("connected");
        stage.settle();
        assert_eq!(numbers(&stage.peers[&consumer].anys), [1]);
        assert_eq!(stage.channel.totals().refused, 1);
        assert_eq!(stage.peers[&supplier].goodbyes, ["disconnect_pull_supplier"]);
        assert_eq!(stage.peers[&supplier].stock.len(), 1, "it is asked no more");
    }
}

/// While nothing is ordered what is proposed would grow without a bound.
#[test]
fn a_supplier_of_a_reliable_channel_is_not_asked_before_its_last_event_is_ordered() {
    let settings = Settings { is_reliable: true, full: Full::BackPressure, ..Settings::default() };
    let mut stage = Stage::new(settings);
    let [_, to_give, _, from_pull] = proxies(&mut stage);
    connect_pulls(&mut stage, &to_give, &Object::nil()).expect("connected");
    let (supplier, supplier_object) = stage.peer(COS);
    stage.peers.get_mut(&supplier).expect("a peer").stock = (1..=5).map(any).collect();
    connect_to_pull(&mut stage, &from_pull, &supplier_object).expect("connected");
    for left in (0..5).rev() {
        let proposals = stage.proposals();
        assert_eq!(proposals.len(), 1, "{proposals:?}");
        stage.channel.tick(stage.channel.poll_timeout().unwrap_or(0) + 1000 * MS);
        assert_eq!(stage.proposals(), [], "it is not ordered yet");
        assert_eq!(stage.peers[&supplier].stock.len(), left);
        proposals.into_iter().for_each(|one| stage.carry_out(one));
    }
}

/// Without an answer nothing else would ever be decided of them.
#[test]
fn who_was_to_be_ended_and_cannot_is_served_on() {
    let settings = Settings { is_reliable: true, full: Full::BackPressure, ..Settings::default() };
    let mut stage = Stage::new(settings);
    let [to_push, _, from_push, from_pull] = proxies(&mut stage);
    let (consumer, consumer_object) = stage.peer(COS);
    let (supplier, supplier_object) = stage.peer(COS);
    connect_to_push(&mut stage, &to_push, &consumer_object).expect("connected");
    connect_to_pull(&mut stage, &from_pull, &supplier_object).expect("connected");
    connect_pushes(&mut stage, &from_push, &Object::nil()).expect("connected");
    for peer in [consumer, supplier] {
        stage.peers.get_mut(&peer).expect("a peer").mood = Mood::Gone;
    }
    push(&mut stage, &from_push, 1).expect("pushed");
    let mut proposals = stage.proposals();
    assert_eq!(proposals.len(), 2, "both are to be ended: {proposals:?}");
    for proposal in proposals.drain(..) {
        stage.channel.left_out(&proposal);
    }
    assert_eq!(stage.channel.totals().left_out, 2);
    for peer in [consumer, supplier] {
        stage.peers.get_mut(&peer).expect("a peer").mood = Mood::Fine;
    }
    stage.peers.get_mut(&supplier).expect("a peer").stock = vec![any(2)];
    stage.channel.tick(Settings::default().retry_after);
    stage.settle();
    assert_eq!(numbers(&stage.peers[&consumer].anys), [1, 2]);
}

#[test]
fn a_supplier_is_told_to_come_again_when_there_is_no_room() {
    let queue = QueueLimits { sets_max: 2, ..QueueLimits::default() };
    let settings = Settings { full: Full::BackPressure, queue, ..Settings::default() };
    let mut stage = Stage::new(settings);
    let [_, to_give, from_push, from_pull] = proxies(&mut stage);
    let (supplier, supplier_object) = stage.peer(COS);
    connect_pulls(&mut stage, &to_give, &Object::nil()).expect("connected");
    connect_pushes(&mut stage, &from_push, &Object::nil()).expect("connected");
    push(&mut stage, &from_push, 1).expect("pushed");
    push(&mut stage, &from_push, 2).expect("pushed");
    assert_eq!(push(&mut stage, &from_push, 3), Err(later(NO_ROOM).into()));
    stage.peers.get_mut(&supplier).expect("a peer").stock = vec![any(4)];
    connect_to_pull(&mut stage, &from_pull, &supplier_object).expect("connected");
    stage.settle();
    assert_eq!(stage.peers[&supplier].stock.len(), 1, "it is not pulled either");
    let next = stage.channel.poll_timeout();
    assert_eq!(next, Some(Settings::default().pull_every), "and nobody spins meanwhile");
    assert_eq!(try_pull(&mut stage, &to_give), Ok(Some(1)));
    stage.settle();
    assert!(stage.peers[&supplier].stock.is_empty());
    assert_eq!(try_pull(&mut stage, &to_give), Ok(Some(2)));
    assert_eq!(try_pull(&mut stage, &to_give), Ok(Some(4)), "and nothing was lost");
}

#[test]
fn a_consumer_that_pulls_no_more_keeps_suppliers_waiting_for_a_bounded_time_only() {
    let queue = QueueLimits { sets_max: 2, ..QueueLimits::default() };
    for is_reliable in [true, false] {
        let settings =
            Settings { is_reliable, full: Full::BackPressure, queue, ..Settings::default() };
        let after = settings.give_up_after;
        let mut stage = Stage::new(settings);
        let [_, to_give, from_push, _] = proxies(&mut stage);
        let ([_, other, ..], start) = (proxies(&mut stage), 1_000);
        connect_pulls(&mut stage, &to_give, &Object::nil()).expect("connected");
        connect_pulls(&mut stage, &other, &Object::nil()).expect("connected");
        connect_pushes(&mut stage, &from_push, &Object::nil()).expect("connected");
        stage.channel.tick(start);
        for number in [1, 2] {
            push(&mut stage, &from_push, number).expect("there is room");
        }
        // One pulls now and then, and the other one has ended without a word.
        assert_eq!(push(&mut stage, &from_push, 3), Err(later(NO_ROOM).into()));
        stage.channel.tick(start + after - 1);
        assert_eq!(try_pull(&mut stage, &other), Ok(Some(1)));
        assert_eq!(push(&mut stage, &from_push, 3), Err(later(NO_ROOM).into()));
        stage.settle();
        let proxies = stage.channel.consumers().count();
        stage.channel.tick(start + after);
        assert_eq!(push(&mut stage, &from_push, 3), Err(later(NO_ROOM).into()));
        stage.settle();
        assert_eq!(stage.channel.consumers().count(), proxies - 1);
        push(&mut stage, &from_push, 3).expect("who is gone keeps nobody waiting");
        let given = [(); 3].map(|()| try_pull(&mut stage, &other).expect("it is connected"));
        assert_eq!(given, [Some(2), Some(3), None]);
    }
}

/// A reliable channel with a supplier that is being asked; its proxy, and the attempt.
fn asked_in_a_reliable_channel() -> (Stage, u64, u64) {
    let settings = Settings { is_reliable: true, full: Full::BackPressure, ..Settings::default() };
    let mut stage = Stage::new(settings);
    let [to_push, _, _, from_pull] = proxies(&mut stage);
    let (_, consumer) = stage.peer(COS);
    let (_, supplier) = stage.peer(COS);
    connect_to_push(&mut stage, &to_push, &consumer).expect("connected");
    connect_to_pull(&mut stage, &from_pull, &supplier).expect("connected");
    let Some(Outgoing::Pull { supplier, ticket, .. }) = stage.channel.poll() else {
        panic!("it is asked")
    };
    (stage, supplier, ticket)
}

#[test]
fn what_was_pulled_is_ordered_whoever_leads_by_then_and_before_more_is_pulled() {
    // The answer comes, and then another one leads; or the other way round.
    for is_answered_first in [true, false] {
        let (mut stage, supplier, ticket) = asked_in_a_reliable_channel();
        if is_answered_first {
            stage.channel.pulled(supplier, ticket, Ok(Some(any(7))));
            stage.channel.follow_another();
        } else {
            stage.channel.follow_another();
            stage.channel.pulled(supplier, ticket, Ok(Some(any(7))));
        }
        let Some(Outgoing::Propose(pulled)) = stage.channel.poll() else {
            panic!("it is to be ordered")
        };
        assert_eq!(pulled, Proposal::Pulled { supplier, data: any(7) });
        assert_eq!(stage.channel.poll(), None, "nothing else goes out");
        stage.channel.lead();
        assert_eq!(stage.channel.poll(), None, "it would give the next one");
        stage.channel.carry_out(pulled);
        assert_eq!(stage.channel.poll(), None, "nobody else may have it yet");
        stage.channel.settled(supplier);
        assert!(matches!(stage.channel.poll(), Some(Outgoing::Pull { .. })));
        assert!(stage.channel.poll_push().is_some(), "the consumer gets it");
    }
}

#[test]
fn who_leads_again_asks_a_supplier_once_at_a_time() {
    let (mut stage, supplier, ticket) = asked_in_a_reliable_channel();
    stage.channel.follow_another();
    stage.channel.lead();
    assert_eq!(stage.channel.poll(), None, "its answer is on its way");
    stage.channel.pulled(supplier, ticket, Ok(None));
    stage.channel.tick(stage.channel.poll_timeout().expect("it is asked again"));
    assert!(matches!(stage.channel.poll(), Some(Outgoing::Pull { .. })));
}

#[test]
fn a_supplier_whose_end_nobody_ordered_is_asked_by_who_leads_next() {
    let (mut stage, supplier, ticket) = asked_in_a_reliable_channel();
    stage.channel.pulled(supplier, ticket, Err(Outcome::Gone));
    stage.channel.follow_another();
    assert_eq!(stage.channel.poll(), None, "another one finds out by itself");
    stage.channel.lead();
    assert!(matches!(stage.channel.poll(), Some(Outgoing::Pull { .. })));
}

#[test]
fn what_was_pulled_disconnects_nobody_whose_queue_others_have_filled_since() {
    let queue = QueueLimits { sets_max: 2, ..QueueLimits::default() };
    for is_reliable in [true, false] {
        let settings =
            Settings { is_reliable, full: Full::BackPressure, queue, ..Settings::default() };
        let mut joiner = stage::channel(settings.clone());
        let mut stage = Stage::new(settings);
        let [_, to_give, from_push, from_pull] = proxies(&mut stage);
        let (_, supplier) = stage.peer(COS);
        connect_pulls(&mut stage, &to_give, &Object::nil()).expect("connected");
        connect_pushes(&mut stage, &from_push, &Object::nil()).expect("connected");
        connect_to_pull(&mut stage, &from_pull, &supplier).expect("connected");
        let Some(Outgoing::Pull { supplier, ticket, .. }) = stage.channel.poll() else {
            panic!("it is asked")
        };
        for number in [1, 2] {
            push(&mut stage, &from_push, number).expect("there is room");
        }
        stage.channel.pulled(supplier, ticket, Ok(Some(any(3))));
        stage.settle();
        assert_eq!(push(&mut stage, &from_push, 4), Err(later(NO_ROOM).into()));
        joiner.take_over(&stage.channel.state()).expect("more than a queue takes");
        assert_eq!(joiner.state(), stage.channel.state());
        let given = [(); 4].map(|()| try_pull(&mut stage, &to_give).expect("it is connected"));
        assert_eq!(given, [Some(1), Some(2), Some(3), None]);
    }
}

/// A channel with one consumer that is pushed to, and one supplier: the port of the first, and the
/// proxy of the second.
fn pushed_to(settings: Settings) -> (Stage, u16, Object) {
    let mut stage = Stage::new(settings);
    let [to_push, _, from_push, _] = proxies(&mut stage);
    let (port, peer) = stage.peer(COS);
    connect_to_push(&mut stage, &to_push, &peer).expect("connected");
    connect_pushes(&mut stage, &from_push, &Object::nil()).expect("connected");
    (stage, port, from_push)
}

/// Lets so much time go by, and does all that is due meanwhile.
fn pass(stage: &mut Stage, span: u64, now: &mut u64) {
    let end = *now + span;
    stage.settle();
    while let Some(due) = stage.channel.poll_timeout().filter(|due| *due <= end) {
        stage.channel.tick(due);
        stage.settle();
    }
    *now = end;
    stage.channel.tick(end);
    stage.settle();
}

#[test]
fn a_plain_channel_gives_nothing_twice_that_may_have_been_taken() {
    for kind in [ExceptionKind::CommFailure, ExceptionKind::Timeout, ExceptionKind::Unknown] {
        let (mut stage, port, supplier) = pushed_to(Settings::default());
        let mut now = 0;
        stage.peers.get_mut(&port).expect("a peer").mood = Mood::Raises(kind, Completion::Maybe);
        push(&mut stage, &supplier, 1).expect("taken");
        stage.settle();
        stage.peers.get_mut(&port).expect("a peer").mood = Mood::Fine;
        push(&mut stage, &supplier, 2).expect("taken");
        pass(&mut stage, 10_000 * MS, &mut now);
        assert_eq!(numbers(&stage.peers[&port].anys), [1, 2], "{kind:?}");
        let one = stage.channel.consumers().next().expect("it is there");
        let counters = (one.counters.delivered, one.counters.dropped, one.counters.failed);
        assert_eq!((counters, one.waiting_bytes), ((1, 0, 1), 0), "{kind:?}");
        assert_eq!(stage.channel.waiting_bytes(), 0);

        let mood = Mood::Raises(kind, Completion::No);
        stage.peers.get_mut(&port).expect("a peer").mood = mood;
        push(&mut stage, &supplier, 3).expect("taken");
        stage.settle();
        stage.peers.get_mut(&port).expect("a peer").mood = Mood::Fine;
        pass(&mut stage, 10_000 * MS, &mut now);
        assert_eq!(numbers(&stage.peers[&port].anys), [1, 2, 3], "{kind:?}: it surely had not it");
    }
}

/// A text that the consumer's code set does not have: it would hold up all others behind it.
#[test]
fn what_a_consumer_cannot_be_told_in_its_code_set_is_not_tried_again_where_nothing_is_kept() {
    let (mut stage, port, supplier) = pushed_to(Settings::default());
    let mood = Mood::Raises(ExceptionKind::DataConversion, Completion::No);
    stage.peers.get_mut(&port).expect("a peer").mood = mood;
    push(&mut stage, &supplier, 1).expect("taken");
    stage.settle();
    stage.peers.get_mut(&port).expect("a peer").mood = Mood::Fine;
    push(&mut stage, &supplier, 2).expect("taken");
    pass(&mut stage, 1_000 * MS, &mut 0);
    assert_eq!(numbers(&stage.peers[&port].anys), [2]);
    let one = stage.channel.consumers().next().expect("it is there");
    assert_eq!((one.counters.delivered, one.counters.failed, one.waiting), (1, 1, 0));
}

#[test]
fn a_consumer_that_raises_is_not_gone() {
    let raises = |completed| Mood::Raises(ExceptionKind::Unknown, completed);
    let (mut stage, port, supplier) = pushed_to(Settings::default());
    let mut now = 0;
    stage.peers.get_mut(&port).expect("a peer").mood = raises(Completion::Maybe);
    for number in 0..100 {
        push(&mut stage, &supplier, number).expect("taken");
        pass(&mut stage, 1_000 * MS, &mut now);
    }
    assert_eq!(stage.peers[&port].anys.len(), 100, "each event has its turn");
    assert_eq!(stage.ended, [""; 0], "it is there");

    let reliable = Settings { is_reliable: true, full: Full::BackPressure, ..Settings::default() };
    for (settings, completed) in
        [(reliable, Completion::Maybe), (Settings::default(), Completion::No)]
    {
        let (mut stage, port, supplier) = pushed_to(settings);
        let mut now = 0;
        stage.peers.get_mut(&port).expect("a peer").mood = raises(completed);
        push(&mut stage, &supplier, 1).expect("taken");
        pass(&mut stage, 59_000 * MS, &mut now);
        assert!(stage.peers[&port].raised.len() > 10, "it is tried again");
        assert_eq!(stage.ended, [""; 0]);
        pass(&mut stage, 2_000 * MS, &mut now);
        assert_eq!(stage.ended.len(), 1, "its queue would wait for ever");
        assert!(stage.ended[0].contains("has raised exceptions"), "{:?}", stage.ended);
        let said = stage.peers[&port].raised.last().map(String::as_str);
        assert_eq!(said, Some("disconnect_push_consumer"), "it is there, so it is told");
    }
}

#[test]
fn a_supplier_that_does_not_answer_for_long_is_given_up_and_one_that_raises_is_told() {
    let raises = Mood::Raises(ExceptionKind::Unknown, Completion::Maybe);
    let full = Full::BackPressure;
    for (mood, is_reliable, said) in [
        (Mood::Away, false, "could not be called"),
        (Mood::Away, true, "could not be called"),
        (raises, false, "has raised exceptions"),
    ] {
        let mut stage = Stage::new(Settings { is_reliable, full, ..Settings::default() });
        let [to_push, _, _, from_pull] = proxies(&mut stage);
        let (_, consumer) = stage.peer(COS);
        connect_to_push(&mut stage, &to_push, &consumer).expect("connected");
        let (port, supplier) = stage.peer(COS);
        connect_to_pull(&mut stage, &from_pull, &supplier).expect("connected");
        let mut now = 0;
        stage.peers.get_mut(&port).expect("a peer").mood = mood;
        pass(&mut stage, 59_000 * MS, &mut now);
        stage.peers.get_mut(&port).expect("a peer").mood = Mood::Fine;
        pass(&mut stage, 5_000 * MS, &mut now);
        stage.peers.get_mut(&port).expect("a peer").mood = mood;
        pass(&mut stage, 59_000 * MS, &mut now);
        assert_eq!(stage.ended, [""; 0], "it has answered meanwhile");
        pass(&mut stage, 3_000 * MS, &mut now);
        assert_eq!(stage.ended.len(), 1, "{mood:?}");
        assert!(stage.ended[0].contains(said), "{:?}", stage.ended);
        assert_eq!(stage.channel.poll_timeout(), None, "nobody is asked any more");
        let goodbye = stage.peers[&port].raised.last().map(String::as_str);
        assert_eq!(goodbye == Some("disconnect_pull_supplier"), mood == raises);
    }
    let mut stage = Stage::new(Settings { give_up_after: 0, ..Settings::default() });
    let [to_push, _, _, from_pull] = proxies(&mut stage);
    let (_, consumer) = stage.peer(COS);
    connect_to_push(&mut stage, &to_push, &consumer).expect("connected");
    let (port, supplier) = stage.peer(COS);
    connect_to_pull(&mut stage, &from_pull, &supplier).expect("connected");
    stage.peers.get_mut(&port).expect("a peer").mood = Mood::Away;
    pass(&mut stage, 100_000 * MS, &mut 0);
    assert_eq!(stage.ended, [""; 0], "never");
}
