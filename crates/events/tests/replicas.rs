//! Several channels that are one: what they have alike, how a change gets from one to the other,
//! and what is left of events when another one leads.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::{Local, Object};
use quorba_events::filter::designator as d;
use quorba_events::{
    Channel, Full, Outcome, Outgoing, Proposal, QueueLimits, Refused, Settings, UpdateFault,
    Updates,
};
use quorba_idl::ft::CheckpointableStub;
use quorba_idl::ft_rtec_event_channel_admin::EventChannelStub as FacadeStub;
use quorba_idl::quorba_events::NumberedChannelStub;
use quorba_idl::rtec_event_channel_admin as rtec;
use stage::{BASE, MS, RTEC, Stage, channel, entry, event, key_of, offers, wants, wants_all};

fn reliable() -> Settings {
    Settings { is_reliable: true, full: Full::BackPressure, ..Settings::default() }
}

/// What one channel lacks of another's changes, taken one after the other.
fn catch_up(behind: &mut Channel, ahead: &Channel) -> usize {
    match ahead.updates_since(behind.sequence()) {
        Updates::Changes(changes) => {
            for change in &changes {
                behind.take_update(change).expect("a change");
            }
            changes.len()
        }
        Updates::Whole(state) => {
            behind.take_update(&state).expect("a state");
            0
        }
    }
}

/// Subscriptions of every kind.
fn subscribe(stage: &mut Stage) {
    let (_, observer) = stage.peer(RTEC);
    let channel = stage.channel.rtec_reference();
    stage.at(&channel, |it| rtec::EventChannelStub(it).append_observer(&observer)).expect("done");
    stage.rtec_consumer(&wants(&[(d::CONJUNCTION, 2), (16, 1), (17, 0)]));
    let (_, proxy) = stage.rtec_consumer(&wants_all());
    stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).suspend_connection()).expect("done");
    let (_, proxy) = stage.rtec_consumer(&wants_all());
    stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).disconnect_push_supplier()).expect("ok");
    stage.rtec_supplier(&offers(&[(16, 1)]));
    let facade = stage.channel.facade_reference();
    let (_, peer) = stage.peer(RTEC);
    let qos = wants(&[(18, 0)]);
    stage.at(&facade, |it| FacadeStub(it).connect_push_consumer(&peer, &qos)).expect("an id");
    let cos = stage.channel.cos_reference();
    let admin = stage.at(&cos, |it| {
        quorba_idl::cos_event_channel_admin::EventChannelStub(it).for_consumers().expect("one")
    });
    stage
        .at(&admin, |it| {
            quorba_idl::cos_event_channel_admin::ConsumerAdminStub(it).obtain_pull_supplier()
        })
        .expect("a proxy");
}

#[test]
fn a_replica_that_joins_takes_the_whole_and_is_equal_to_the_octet() {
    let mut stage = Stage::new(Settings::default());
    subscribe(&mut stage);
    let key = format!("{BASE}/state");
    let state = CheckpointableStub(&mut Local::new(&mut stage.channel, key.as_bytes())).get_state();
    let state = state.expect("a state");
    let mut joiner = channel(Settings::default());
    let taken = CheckpointableStub(&mut Local::new(&mut joiner, key.as_bytes())).set_state(&state);
    taken.expect("taken");
    assert_eq!(joiner.state(), state);
    let all = |channel: &Channel| channel.consumers().collect::<Vec<_>>();
    assert_eq!(all(&joiner), all(&stage.channel));
    for length in 0..state.len() {
        assert!(joiner.take_over(&state[..length]).is_err(), "cut at {length}");
    }
    assert_eq!(joiner.state(), state);
}

#[test]
fn changes_one_by_one_make_the_same_as_the_whole() {
    let mut stage = Stage::new(Settings::default());
    let mut backup = channel(Settings::default());
    subscribe(&mut stage);
    let count = catch_up(&mut backup, &stage.channel);
    assert_eq!(count as u64, stage.channel.sequence());
    assert_eq!(backup.state(), stage.channel.state());
    assert_eq!(catch_up(&mut backup, &stage.channel), 0, "nothing is missing");
}

#[test]
fn events_change_no_state_of_a_channel_that_is_not_reliable() {
    let mut stage = Stage::new(Settings::default());
    subscribe(&mut stage);
    let before = stage.channel.state();
    stage.channel.push(vec![event(16, 1, 0), event(18, 1, 0)]).expect("pushed");
    stage.channel.tick(5000 * MS);
    stage.settle();
    assert_eq!(stage.channel.state(), before);
}

#[test]
fn a_missing_change_is_seen_and_asked_for() {
    let mut stage = Stage::new(Settings::default());
    let mut backup = channel(Settings::default());
    subscribe(&mut stage);
    let Updates::Changes(changes) = stage.channel.updates_since(0) else { panic!("changes") };
    assert_eq!(backup.take_update(&changes[0]), Ok(()));
    assert_eq!(backup.take_update(&changes[2]), Err(UpdateFault::Gap { current: 1 }));
    assert_eq!(backup.take_update(&changes[0]), Ok(()), "one that came twice is taken once");
    assert_eq!(backup.sequence(), 1);
    assert_eq!(backup.take_update(b"nonsense"), Err(UpdateFault::Invalid));
    assert_eq!(catch_up(&mut backup, &stage.channel), changes.len() - 1);
    assert_eq!(backup.state(), stage.channel.state());
}

#[test]
fn who_missed_too_much_is_given_the_whole() {
    let mut settings = Settings::default();
    settings.limits.updates_max = 3;
    let mut stage = Stage::new(settings.clone());
    subscribe(&mut stage);
    let last = stage.channel.sequence();
    assert!(matches!(stage.channel.updates_since(last - 4), Updates::Whole(_)));
    assert!(matches!(stage.channel.updates_since(last - 3), Updates::Changes(_)));
    // So is who knows of more than there was.
    assert!(matches!(stage.channel.updates_since(last + 1), Updates::Whole(_)));
    let mut backup = channel(settings);
    catch_up(&mut backup, &stage.channel);
    assert_eq!(backup.state(), stage.channel.state());
}

#[test]
fn what_too_few_replicas_have_is_rolled_back_and_nobody_is_told_of_it() {
    let mut stage = Stage::new(Settings::default());
    let (kept, proxy) = stage.rtec_consumer(&wants_all());
    stage.settle();
    let (before, number) = (stage.channel.state(), stage.channel.sequence());
    let (port, _) = stage.rtec_consumer(&wants_all());
    stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).suspend_connection()).expect("done");
    stage.rtec_supplier(&offers(&[(16, 1)]));
    let channel = stage.channel.rtec_reference();
    stage.at(&channel, |it| rtec::EventChannelStub(it).destroy()).expect("ended");
    assert!(stage.channel.roll_back(number));
    stage.settle();
    assert_eq!(stage.channel.state(), before);
    assert!(stage.peers.values().all(|peer| peer.goodbyes.is_empty()));
    stage.channel.push(vec![event(16, 1, 0)]).expect("pushed");
    stage.settle();
    assert_eq!(stage.peers[&kept].types(), [16]);
    assert!(stage.peers[&port].sets.is_empty());
    assert!(stage.channel.roll_back(number), "there is nothing more to undo");
    let mut joiner = stage::channel(Settings::default());
    joiner.take_over(&before).expect("taken");
    assert!(!joiner.roll_back(number - 1), "what it was told as a whole it cannot undo");
}

#[test]
fn only_who_leads_calls_anybody() {
    let mut stage = Stage::new(Settings::default());
    stage.channel.follow_another();
    let (port, proxy) = stage.rtec_consumer(&wants_all());
    stage.channel.push(vec![event(16, 1, 0)]).expect("pushed");
    stage.settle();
    assert!(stage.peers[&port].sets.is_empty());
    stage.channel.lead();
    stage.channel.push(vec![event(17, 1, 0)]).expect("pushed");
    stage.settle();
    assert_eq!(stage.peers[&port].types(), [17]);
    stage.channel.follow_another();
    let done = stage.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).disconnect_push_supplier());
    done.expect("disconnected");
    assert_eq!(stage.channel.poll(), None);
    let dependencies = vec![entry(d::INTERVAL_TIMEOUT, 0, 10 * MS, 0)];
    let (port, _) = stage.rtec_consumer(&rtec::ConsumerQOS { dependencies, is_gateway: false });
    stage.channel.tick(50 * MS);
    assert_eq!(stage.channel.poll_timeout(), None, "another one has the timers");
    stage.channel.lead();
    assert_eq!(stage.channel.poll_timeout(), Some(60 * MS));
    stage.channel.tick(60 * MS);
    stage.settle();
    assert_eq!(stage.peers[&port].types(), [d::INTERVAL_TIMEOUT]);
}

/// Two replicas of a reliable channel that are told everything alike, and one peer.
struct Pair {
    leader: Stage,
    backup: Channel,
    port: u16,
    id: Vec<u8>,
}

fn pair(qos: &rtec::ConsumerQOS, settings: &Settings) -> Pair {
    let mut leader = Stage::new(settings.clone());
    let mut backup = channel(settings.clone());
    backup.follow_another();
    let (port, peer) = leader.peer(RTEC);
    let object = leader.channel.numbered_reference();
    let connect = |it: &mut Local<'_>, peer: &Object| {
        NumberedChannelStub(it).connect_numbered_consumer(peer, qos).expect("an id")
    };
    let id = leader.at(&object, |it| connect(it, &peer));
    let same = connect(&mut Local::new(&mut backup, &key_of(&object)), &peer);
    assert_eq!(id, same);
    Pair { leader, backup, port, id }
}

impl Pair {
    /// Tells both the same.
    fn both<R: PartialEq + core::fmt::Debug>(&mut self, tell: impl Fn(&mut Channel) -> R) -> R {
        let answer = tell(&mut self.leader.channel);
        assert_eq!(answer, tell(&mut self.backup), "replicas answer alike");
        assert_eq!(self.leader.channel.state(), self.backup.state(), "and are alike");
        answer
    }

    fn push(&mut self, types: &[i32]) -> Result<(), Refused> {
        let events: Vec<_> = types.iter().map(|one| event(*one, 1, 0)).collect();
        self.both(|channel| channel.push(events.clone()))
    }

    /// What the leader proposes is ordered, so both carry it out.
    fn order(&mut self) {
        while let Some(outgoing) = self.leader.channel.poll() {
            let Outgoing::Propose(proposal) = outgoing else { panic!("{outgoing:?}") };
            self.both(|channel| channel.carry_out(proposal.clone()));
        }
    }

    /// The leader dies; the backup leads in its place, for the same peers.
    fn fail_over(&mut self) {
        let fresh = channel(reliable());
        let backup = core::mem::replace(&mut self.backup, fresh);
        self.leader.channel = backup;
        self.leader.channel.lead();
        let state = self.leader.channel.state();
        self.backup.take_over(&state).expect("a joiner");
        self.backup.follow_another();
    }
}

#[test]
fn a_replica_joins_a_reliable_channel_that_has_nothing_to_do() {
    let settings = reliable();
    let mut pair = pair(&wants_all(), &settings);
    let mut joiner = channel(settings);
    let state = pair.leader.channel.state();
    joiner.take_over(&state).expect("taken");
    assert_eq!(joiner.state(), state);
    pair.push(&[16]).expect("pushed");
    let state = pair.leader.channel.state();
    joiner.take_over(&state).expect("taken");
    assert_eq!(joiner.state(), state);
}

#[test]
fn a_reliable_channel_loses_nothing_when_its_leader_dies() {
    let mut pair = pair(&wants_all(), &Settings { batch_max: 2, ..reliable() });
    pair.push(&[16, 17, 18]).expect("pushed");
    assert!(pair.leader.push_one());
    // It has two; that was acknowledged, and the third was on its way.
    pair.order();
    assert!(pair.leader.channel.poll_push().is_some());
    pair.fail_over();
    pair.push(&[19]).expect("pushed");
    while pair.leader.push_one() {
        pair.order();
    }
    let peer = &pair.leader.peers[&pair.port];
    assert_eq!(peer.types(), [16, 17, 18, 19]);
    assert_eq!(peer.numbers, [1, 3], "each event has its number");
    assert!(pair.leader.channel.consumers().all(|one| one.waiting == 0));
}

#[test]
fn what_was_given_and_not_acknowledged_comes_again_under_the_same_number() {
    let mut pair = pair(&wants_all(), &reliable());
    pair.push(&[16, 17]).expect("pushed");
    assert!(pair.leader.push_one());
    // The leader dies before anybody knows.
    pair.fail_over();
    pair.push(&[18]).expect("pushed");
    assert!(pair.leader.push_one());
    pair.order();
    let peer = &pair.leader.peers[&pair.port];
    assert_eq!(peer.numbers, [1, 1]);
    assert_eq!(peer.types(), [16, 17, 16, 17, 18]);
    // With numbers a consumer leaves out what it has.
    let mut seen = 0;
    let mut once = Vec::new();
    for (first, set) in peer.numbers.iter().zip(&peer.sets) {
        for (number, event) in (*first..).zip(set) {
            if number > seen {
                seen = number;
                once.push(event.header.r#type);
            }
        }
    }
    assert_eq!(once, [16, 17, 18]);
}

#[test]
fn who_leads_again_begins_anew_what_it_had_under_way() {
    let mut pair = pair(&wants_all(), &reliable());
    pair.push(&[16]).expect("pushed");
    let flying = pair.leader.channel.poll_push().expect("a push");
    pair.leader.channel.follow_another();
    pair.leader.channel.lead();
    pair.leader.channel.pushed(flying.consumer, flying.ticket, Outcome::Taken);
    assert!(pair.leader.push_one(), "nobody knows that it arrived");
    assert_eq!(pair.leader.peers[&pair.port].types(), [16]);
}

/// It was cut off when it alone had an event, and its gateway has the decision ordered when it
/// comes back.
#[test]
fn who_was_cut_off_acknowledges_nothing_that_came_meanwhile() {
    let mut pair = pair(&wants_all(), &reliable());
    let pushed = |channel: &mut Channel, at: u64, event_type: i32| {
        channel.tick(at * MS);
        channel.push(vec![event(event_type, 1, 0)]).expect("taken");
    };
    // Both have the first one, and each one another second one, with the same number.
    pushed(&mut pair.leader.channel, 1, 16);
    pushed(&mut pair.backup, 1, 16);
    pushed(&mut pair.leader.channel, 2, 17);
    pushed(&mut pair.backup, 3, 18);
    let push = pair.leader.channel.poll_push().expect("both go together");
    assert_eq!((push.number, push.events()), (1, 2));
    pair.leader.channel.pushed(push.consumer, push.ticket, Outcome::Taken);
    let Some(Outgoing::Propose(taken)) = pair.leader.channel.poll() else {
        panic!("an acknowledgement")
    };
    pair.backup.lead();
    pair.backup.carry_out(taken);
    let push = pair.backup.poll_push().expect("nobody has taken what is here");
    assert_eq!((push.number, push.events()), (1, 2), "the first one again, the second one at last");
    // What it has taken of these it can acknowledge.
    pair.backup.pushed(push.consumer, push.ticket, Outcome::Taken);
    while let Some(outgoing) = pair.backup.poll() {
        let Outgoing::Propose(taken) = outgoing else { panic!("{outgoing:?}") };
        pair.backup.carry_out(taken);
    }
    assert_eq!(pair.backup.waiting_bytes(), 0);
}

#[test]
fn a_consumer_acknowledges_by_itself_too() {
    let mut pair = pair(&wants_all(), &Settings { batch_max: 1, ..reliable() });
    pair.push(&[16, 17, 18]).expect("pushed");
    let flying = pair.leader.channel.poll_push().expect("a push");
    let (key, id) = (key_of(&pair.leader.channel.numbered_reference()), pair.id.clone());
    pair.both(|channel| NumberedChannelStub(&mut Local::new(channel, &key)).acknowledge(&id, &2))
        .expect("acknowledged");
    // The outcome of what is not there any more.
    pair.leader.channel.pushed(flying.consumer, flying.ticket, Outcome::Taken);
    assert!(pair.leader.push_one());
    assert_eq!(pair.leader.peers[&pair.port].numbers, [3]);
}

#[test]
fn conjunctions_and_timers_go_on_at_the_new_leader() {
    let dependencies = vec![
        entry(d::DISJUNCTION, 2, 0, 0),
        entry(d::CONJUNCTION, 2, 0, 0),
        entry(16, 0, 0, 0),
        entry(17, 0, 0, 0),
        entry(d::DEADLINE_TIMEOUT, 0, 10 * MS, 0),
    ];
    let qos = rtec::ConsumerQOS { dependencies, is_gateway: false };
    let mut pair = pair(&qos, &reliable());
    pair.both(|channel| channel.tick(4 * MS));
    pair.push(&[16]).expect("pushed");
    pair.fail_over();
    pair.push(&[17]).expect("pushed");
    pair.both(|channel| channel.tick(13 * MS));
    pair.both(|channel| channel.tick(14 * MS));
    while pair.leader.push_one() {
        pair.order();
    }
    assert_eq!(pair.leader.peers[&pair.port].types(), [16, 17, d::DEADLINE_TIMEOUT]);
}

#[test]
fn a_reliable_channel_refuses_instead_of_dropping_and_loses_who_cannot_be_refused() {
    let queue = QueueLimits { sets_max: 3, ..QueueLimits::default() };
    let mut pair = pair(&wants(&[(16, 0)]), &Settings { queue, ..reliable() });
    pair.push(&[16, 16]).expect("pushed");
    assert_eq!(pair.push(&[16, 17, 16]), Err(Refused::Full), "all of a push or nothing");
    pair.push(&[17, 17, 17, 16]).expect("what it does not want needs no room");
    assert_eq!(pair.push(&[16]), Err(Refused::Full));
    assert!(pair.leader.push_one());
    pair.order();
    pair.push(&[16, 16, 16]).expect("pushed");
    assert_eq!(pair.leader.peers[&pair.port].types(), [16; 3]);
    // A oneway cannot be refused: the consumer goes, and is told.
    pair.both(|channel| channel.push_oneway(vec![event(16, 1, 0)])).expect("pushed");
    assert_eq!(pair.leader.channel.consumers().count(), 0);
    assert!(matches!(pair.leader.channel.poll(), Some(Outgoing::Ended(_))), "for the log");
    assert!(matches!(pair.leader.channel.poll(), Some(Outgoing::Disconnect { .. })));
}

#[test]
fn a_reliable_channel_waits_for_the_reply_to_a_oneway() {
    let mut stage = Stage::new(reliable());
    let (port, _) = stage.rtec_consumer(&wants_all());
    stage.channel.push(vec![event(16, 1, 0)]).expect("pushed");
    let push = stage.channel.poll_push().expect("a push");
    assert_eq!((push.operation(), push.is_oneway()), ("push", false));
    let peer = stage.peers.get_mut(&port).expect("a peer");
    let outcome = push.send(&mut Local::new(peer, b"peer"));
    stage.channel.pushed(push.consumer, push.ticket, outcome);
    assert!(matches!(
        stage.channel.poll(),
        Some(Outgoing::Propose(Proposal::Acknowledge { number: 1, .. }))
    ));
}
