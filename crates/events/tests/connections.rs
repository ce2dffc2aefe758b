//! What is decided or known of one connection of a proxy, and the next one; and what a reliable
//! channel keeps of those that go.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::giop::{Completion, ExceptionKind};
use quorba_corba::{Any, Object};
use quorba_events::{Full, Outcome, Outgoing, Proposal, QueueLimits, Reason, Settings};
use quorba_idl::cos_event_channel_admin as cos;
use quorba_idl::quorba_events::NumberedChannelStub;
use quorba_idl::rtec_event_channel_admin as rtec;
use stage::{COS, MS, Mood, RTEC, Stage, channel, event, offers, wants_all};

fn reliable() -> Settings {
    Settings {
        is_reliable: true,
        full: Full::BackPressure,
        may_reconnect: true,
        ..Settings::default()
    }
}

fn plain(full: Full) -> Settings {
    Settings { full, may_reconnect: true, ..Settings::default() }
}

fn connect_again(stage: &mut Stage, proxy: &Object, peer: &Object) {
    let connected = stage
        .at(proxy, |it| rtec::ProxyPushSupplierStub(it).connect_push_consumer(peer, &wants_all()));
    connected.expect("it may");
}

/// The ends that are proposed until there is one; time goes by.
fn ends(stage: &mut Stage) -> Vec<Proposal> {
    for _ in 0..1_000 {
        let mut proposals = stage.proposals();
        proposals.retain(|one| matches!(one, Proposal::EndConsumer { .. }));
        if !proposals.is_empty() {
            return proposals;
        }
        stage.channel.tick(stage.channel.poll_timeout().expect("it is called again"));
    }
    panic!("nobody is given up")
}

/// A consumer that its leader wants ended, for each reason for which one may be: the stage, the
/// proxy, and what is to be ordered.
fn given_up() -> Vec<(Stage, Object, Proposal)> {
    let raises = Mood::Raises(ExceptionKind::Unknown, Completion::No);
    let queue = QueueLimits { sets_max: 1, ..QueueLimits::default() };
    let slow = Settings { queue, ..plain(Full::Disconnect) };
    [
        (reliable(), Mood::Gone, Reason::Gone),
        (reliable(), Mood::Away, Reason::Gone),
        (reliable(), raises, Reason::Raises),
        (plain(Full::DropOldest), Mood::Gone, Reason::Gone),
        (slow, Mood::Away, Reason::TooSlow),
    ]
    .into_iter()
    .map(|(settings, mood, expected)| {
        let mut stage = Stage::new(settings);
        let (port, proxy) = stage.rtec_consumer(&wants_all());
        stage.peers.get_mut(&port).expect("a peer").mood = mood;
        stage.channel.push(vec![event(16, 1, 0)]).expect("taken");
        if expected == Reason::TooSlow {
            stage.channel.push(vec![event(16, 2, 0)]).expect("taken");
        }
        let end = ends(&mut stage).remove(0);
        let Proposal::EndConsumer { why, .. } = end else { panic!("an end: {end:?}") };
        assert_eq!(why, expected);
        (stage, proxy, end)
    })
    .collect()
}

#[test]
fn what_was_decided_of_a_connection_ends_no_later_one() {
    for (mut stage, proxy, end) in given_up() {
        let (port, peer) = stage.peer(RTEC);
        connect_again(&mut stage, &proxy, &peer);
        let mut joiner = channel(stage.channel_settings());
        joiner.take_over(&stage.channel.state()).expect("a state");
        joiner.carry_out(end.clone());
        stage.carry_out(end.clone());
        assert_eq!(stage.channel.consumers().count(), 1, "{end:?}");
        assert_eq!(joiner.state(), stage.channel.state(), "{end:?}");
        stage.settle();
        stage.channel.push(vec![event(17, 1, 0)]).expect("taken");
        stage.settle();
        assert!(stage.peers[&port].types().contains(&17), "{end:?}");
        assert_eq!((stage.ended.len(), stage.peers[&port].goodbyes.len()), (0, 0), "{end:?}");
    }
}

#[test]
fn what_was_decided_and_cannot_be_ordered_changes_no_later_connection() {
    for (mut stage, proxy, end) in given_up() {
        let (port, peer) = stage.peer(RTEC);
        connect_again(&mut stage, &proxy, &peer);
        stage.channel.left_out(&end);
        stage.settle();
        assert_eq!(stage.peers[&port].types(), [16], "it is called at once: {end:?}");
    }
}

#[test]
fn what_was_decided_of_a_connection_ends_it_if_there_is_no_later_one() {
    for (mut stage, _, end) in given_up() {
        let mut joiner = channel(stage.channel_settings());
        joiner.take_over(&stage.channel.state()).expect("a state");
        joiner.carry_out(end.clone());
        stage.carry_out(end.clone());
        assert_eq!(stage.channel.consumers().count(), 0, "{end:?}");
        assert_eq!(joiner.state(), stage.channel.state(), "{end:?}");
        let Proposal::EndConsumer { why, .. } = end else { panic!("an end: {end:?}") };
        // All members know why, not only the one that found it out.
        for counts in [stage.channel.end_counts(), joiner.end_counts()] {
            let all = (counts.too_slow, counts.gone, counts.raises);
            let of = |reason| u64::from(why == reason);
            assert_eq!(all, (of(Reason::TooSlow), of(Reason::Gone), of(Reason::Raises)));
        }
    }
}

#[test]
fn a_supplier_that_has_connected_again_is_not_ended_for_what_was_before() {
    let mut stage = Stage::new(plain(Full::DropOldest));
    let (_, proxy) = stage.rtec_supplier(&offers(&[]));
    let before = stage.channel.sequence();
    let (_, peer) = stage.peer(RTEC);
    let again = stage.at(&proxy, |it| {
        rtec::ProxyPushConsumerStub(it).connect_push_supplier(&peer, &offers(&[]))
    });
    again.expect("it may");
    let now = stage.channel.sequence();
    for (connection, ended) in [(before, 0), (now, 1)] {
        stage.carry_out(Proposal::EndSupplier { supplier: 1, connection, why: Reason::Gone });
        stage.settle();
        assert_eq!(stage.ended.len(), ended);
    }
}

/// Its ORB may be there before its object is.
#[test]
fn who_was_called_before_it_connected_again_at_the_same_place_is_not_gone() {
    for settings in [reliable(), plain(Full::DropOldest)] {
        let mut stage = Stage::new(settings);
        let (port, proxy) = stage.rtec_consumer(&wants_all());
        stage.channel.push(vec![event(16, 1, 0)]).expect("taken");
        let flying = stage.channel.poll_push().expect("under way");
        let peer = (*flying.to).clone();
        connect_again(&mut stage, &proxy, &peer);
        stage.channel.pushed(flying.consumer, flying.ticket, Outcome::Gone);
        stage.settle();
        assert_eq!((stage.ended.len(), stage.channel.consumers().count()), (0, 1));
        stage.channel.tick(stage.channel.poll_timeout().expect("it is called again"));
        stage.settle();
        assert_eq!(stage.peers[&port].types(), [16]);
    }
}

#[test]
fn an_end_that_nobody_orders_is_proposed_again_as_much_later_and_not_at_each_attempt() {
    let mut stage = Stage::new(Settings { give_up_after: 10_000 * MS, ..reliable() });
    let (port, _) = stage.rtec_consumer(&wants_all());
    stage.peers.get_mut(&port).expect("a peer").mood = Mood::Away;
    stage.channel.push(vec![event(16, 1, 0)]).expect("taken");
    let mut proposed = 0;
    for second in 0..65 {
        stage.channel.tick(second * 1_000 * MS);
        proposed += stage.proposals().len();
    }
    assert_eq!(proposed, 6, "once in ten seconds");
}

fn any(number: u32) -> Any {
    Any::new(&number).expect("a value")
}

/// A reliable channel that asks a supplier: also the supplier's proxy, the consumer's port, and
/// the name of the attempt.
fn asked() -> (Stage, Object, u16, (u64, u64)) {
    let mut stage = Stage::new(reliable());
    let channel = stage.channel.cos_reference();
    let admin = stage.at(&channel, |it| cos::EventChannelStub(it).for_suppliers().expect("one"));
    let proxy = stage.at(&admin, |it| cos::SupplierAdminStub(it).obtain_pull_consumer());
    let proxy = proxy.expect("a proxy");
    let (_, peer) = stage.peer(COS);
    let done = stage.at(&proxy, |it| cos::ProxyPullConsumerStub(it).connect_pull_supplier(&peer));
    done.expect("connected");
    let (port, _) = stage.rtec_consumer(&wants_all());
    while let Some(outgoing) = stage.channel.poll() {
        if let Outgoing::Pull { supplier, ticket, .. } = outgoing {
            return (stage, proxy, port, (supplier, ticket));
        }
    }
    panic!("it is asked")
}

#[test]
fn what_a_supplier_gave_before_it_disconnected_is_not_lost() {
    for is_answered_first in [true, false] {
        let (mut stage, proxy, port, (supplier, ticket)) = asked();
        let disconnect = |stage: &mut Stage| {
            stage
                .at(&proxy, |it| {
                    quorba_idl::cos_event_comm::PullConsumerStub(it).disconnect_pull_consumer()
                })
                .expect("it was there");
        };
        if is_answered_first {
            stage.channel.pulled(supplier, ticket, Ok(Some(any(7))));
            // Its call is ordered before its event is.
            let event = stage.channel.poll().expect("it is to be ordered");
            disconnect(&mut stage);
            let Outgoing::Propose(event) = event else { panic!("{event:?}") };
            stage.carry_out(event);
        } else {
            disconnect(&mut stage);
            stage.channel.pulled(supplier, ticket, Ok(Some(any(7))));
        }
        stage.settle();
        let sets = &stage.peers[&port].sets;
        assert_eq!(sets.len(), 1, "the event that it gave: {is_answered_first}");
        assert_eq!(sets[0][0].data.any_value.get::<u32>(), Some(7));
        assert_eq!(stage.channel.poll_timeout(), None, "who has gone is asked no more");
    }
}

#[test]
fn an_event_of_a_supplier_that_this_channel_never_had_is_none() {
    let mut stage = Stage::new(reliable());
    let (port, _) = stage.rtec_consumer(&wants_all());
    stage.carry_out(Proposal::Pulled { supplier: 2, data: any(7) });
    stage.settle();
    assert!(stage.peers[&port].sets.is_empty(), "it is of an earlier channel of that name");
}

/// Who refuses a message for its size refuses it again, until it is given up.
#[test]
fn events_go_together_up_to_a_bound_in_octets_too() {
    let mut stage = Stage::new(reliable());
    let (port, _) = stage.rtec_consumer(&wants_all());
    for size in [10, 10, 900 << 10, 900 << 10, 3 << 20, 10, 10] {
        let mut one = event(16, 1, 0);
        one.data.payload = vec![0; size];
        stage.channel.push(vec![one]).expect("taken");
    }
    stage.settle();
    let sets: Vec<usize> = stage.peers[&port].sets.iter().map(Vec::len).collect();
    assert_eq!(sets, [3, 1, 1, 2], "none has more than 1 MiB, but for one event");
}

#[test]
fn who_acknowledges_to_a_channel_that_keeps_nothing_loses_nothing() {
    let mut stage = Stage::new(plain(Full::DropOldest));
    let numbered = stage.channel.numbered_reference();
    let (port, peer) = stage.peer(RTEC);
    let connected = stage
        .at(&numbered, |it| NumberedChannelStub(it).connect_numbered_consumer(&peer, &wants_all()));
    let id = connected.expect("an id");
    stage.channel.push(vec![event(16, 1, 0)]).expect("taken");
    // The numbers that it knows are another leader's.
    let done = stage.at(&numbered, |it| NumberedChannelStub(it).acknowledge(&id, &500));
    done.expect("it is known");
    stage.settle();
    assert_eq!(stage.peers[&port].types(), [16]);
}
