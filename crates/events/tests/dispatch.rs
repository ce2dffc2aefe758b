//! Queues and their order: slow and dead consumers, policies, priorities, batches.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use std::collections::BTreeMap;

use quorba_events::filter::designator as d;
use quorba_events::{
    Contradiction, Full, Outcome, Outgoing, Proposal, QueueLimits, Reason, RtInfo, Schedule,
    Scheduling, Settings,
};
use quorba_idl::rtec_event_channel_admin::ConsumerQOS;
use stage::{MS, Mood, Stage, entry, event, wants, wants_all};

fn push(stage: &mut Stage, event_type: i32) {
    stage.channel.push(vec![event(event_type, 1, 0)]).expect("pushed");
}

fn queue(sets_max: usize) -> QueueLimits {
    QueueLimits { sets_max, ..QueueLimits::default() }
}

#[test]
fn a_consumer_that_is_away_keeps_nobody_waiting() {
    let mut stage = Stage::new(Settings { queue: queue(4), ..Settings::default() });
    let (away, _) = stage.rtec_consumer(&wants_all());
    let (there, _) = stage.rtec_consumer(&wants_all());
    stage.peers.get_mut(&away).expect("a peer").mood = Mood::Away;
    for event_type in 16..32 {
        push(&mut stage, event_type);
        stage.settle();
    }
    let all: Vec<i32> = (16..32).collect();
    assert_eq!(stage.peers[&there].types(), all);
    stage.peers.get_mut(&away).expect("a peer").mood = Mood::Fine;
    stage.channel.tick(stage.channel.poll_timeout().expect("it is tried again"));
    stage.settle();
    assert_eq!(stage.peers[&away].types(), [28, 29, 30, 31], "the newest have stayed");
    let status = stage.channel.consumers().next().expect("a consumer");
    let counters = status.counters;
    assert_eq!((counters.delivered, counters.dropped, counters.failed), (4, 12, 1));
    assert_eq!((status.waiting, status.waiting_bytes), (0, 0));
}

#[test]
fn one_call_is_under_way_to_a_consumer_and_it_is_not_dropped() {
    let mut stage = Stage::new(Settings { queue: queue(2), batch_max: 1, ..Settings::default() });
    stage.rtec_consumer(&wants_all());
    push(&mut stage, 16);
    let first = stage.channel.poll_push().expect("a push");
    assert_eq!(stage.channel.poll_push(), None);
    for event_type in 17..20 {
        push(&mut stage, event_type);
    }
    stage.channel.pushed(first.consumer, first.ticket + 1, Outcome::Taken);
    assert_eq!(stage.channel.poll_push(), None, "the outcome of another attempt");
    stage.channel.pushed(first.consumer, first.ticket, Outcome::Failed);
    stage.channel.tick(stage.channel.poll_timeout().expect("it is tried again"));
    stage.settle();
    let port = *stage.peers.keys().next().expect("a peer");
    assert_eq!(stage.peers[&port].types(), [16, 19]);
}

#[test]
fn each_policy_keeps_what_it_says() {
    for (full, kept) in [(Full::DropOldest, [18, 19]), (Full::DropNewest, [16, 17])] {
        let mut stage = Stage::new(Settings { full, queue: queue(2), ..Settings::default() });
        let (port, _) = stage.rtec_consumer(&wants_all());
        (16..20).for_each(|event_type| push(&mut stage, event_type));
        stage.settle();
        assert_eq!(stage.peers[&port].types(), kept, "{full:?}");
    }
    let full = Full::Disconnect;
    let mut stage = Stage::new(Settings { full, queue: queue(2), ..Settings::default() });
    let (port, _) = stage.rtec_consumer(&wants_all());
    (16..20).for_each(|event_type| push(&mut stage, event_type));
    assert!(stage.channel.poll_push().is_none(), "it is to be disconnected");
    let Some(Outgoing::Propose(proposal)) = stage.channel.poll() else { panic!("a proposal") };
    let Proposal::EndConsumer { why, .. } = proposal else { panic!("an end: {proposal:?}") };
    assert_eq!(why, Reason::TooSlow);
    stage.channel.carry_out(proposal);
    stage.settle();
    assert_eq!(stage.peers[&port].goodbyes, ["disconnect_push_consumer"]);
    assert_eq!(stage.channel.consumers().count(), 0);
}

#[test]
fn a_consumer_that_leaves_while_events_wait_for_it_keeps_nobody_waiting() {
    let mut stage = Stage::new(Settings::default());
    let (gone, proxy) = stage.rtec_consumer(&wants_all());
    let (there, _) = stage.rtec_consumer(&wants_all());
    push(&mut stage, 16);
    let done = stage.at(&proxy, |it| {
        quorba_idl::rtec_event_channel_admin::ProxyPushSupplierStub(it).disconnect_push_supplier()
    });
    done.expect("disconnected");
    stage.settle();
    assert!(stage.peers[&gone].sets.is_empty());
    assert_eq!(stage.peers[&there].types(), [16]);
}

#[test]
fn octets_are_counted_too() {
    let limits = QueueLimits { sets_max: 100, bytes_max: 1000 };
    let mut stage = Stage::new(Settings { queue: limits, ..Settings::default() });
    let (port, _) = stage.rtec_consumer(&wants_all());
    for number in 0..10 {
        let mut large = event(16, number, 0);
        large.data.payload = vec![0; 300];
        stage.channel.push(vec![large]).expect("pushed");
    }
    let status = stage.channel.consumers().next().expect("a consumer");
    assert!(status.waiting_bytes <= 1000 && status.waiting == 2, "{status:?}");
    stage.settle();
    assert_eq!(stage.peers[&port].sets[0][0].header.source, 8);
    let mut huge = event(16, 99, 0);
    huge.data.payload = vec![0; 3000];
    stage.channel.push(vec![huge]).expect("one goes in any case");
    stage.settle();
    assert_eq!(stage.peers[&port].sets[1][0].header.source, 99);
}

/// Pushes ten events of 300 octets, of which one consumer takes all at once and one nothing; what
/// waits for both.
fn crowd(full: Full) -> (Stage, Vec<usize>, Vec<bool>) {
    let mut stage = Stage::new(Settings { full, total_bytes: 1000, ..Settings::default() });
    let (away, _) = stage.rtec_consumer(&wants_all());
    stage.rtec_consumer(&wants_all());
    stage.peers.get_mut(&away).expect("a peer").mood = Mood::Away;
    let mut taken = Vec::new();
    for number in 0..10 {
        let mut large = event(16, number, 0);
        large.data.payload = vec![0; 300];
        taken.push(stage.channel.push(vec![large]).is_ok());
        stage.settle();
    }
    let waiting = stage.channel.consumers().map(|one| one.waiting_bytes).collect();
    (stage, waiting, taken)
}

#[test]
fn what_waits_for_all_consumers_together_has_a_bound_and_the_slowest_pays() {
    for full in [Full::DropOldest, Full::DropNewest] {
        let (stage, waiting, taken) = crowd(full);
        assert!(waiting[0] > 300 && waiting[0] <= 1000, "{full:?}: {waiting:?}");
        assert!(taken.iter().all(|taken| *taken), "{full:?}");
        let count = stage.peers.values().map(|peer| peer.types().len()).max();
        assert_eq!(count, Some(10), "{full:?}: the other one loses nothing");
        assert_eq!(stage.channel.totals().dropped, 0, "{full:?}: it counts at the slow one");
        let dropped = stage.channel.consumers().map(|one| one.counters.dropped);
        assert_eq!(dropped.collect::<Vec<_>>(), [9, 0], "{full:?}");
    }
    let (_, waiting, taken) = crowd(Full::Disconnect);
    assert_eq!((waiting.len(), taken.iter().all(|taken| *taken)), (1, true));
    let (_, waiting, taken) = crowd(Full::BackPressure);
    assert_eq!(waiting.len(), 2);
    assert!(taken[0] && !taken[9], "{taken:?}");
}

#[test]
fn what_is_under_way_to_one_consumer_costs_nobody_else_anything() {
    for full in [Full::DropOldest, Full::DropNewest, Full::Disconnect] {
        let mut stage = Stage::new(Settings { full, total_bytes: 1000, ..Settings::default() });
        stage.rtec_consumer(&wants_all());
        let large = |bytes: usize| {
            let mut large = event(16, 1, 0);
            large.data.payload = vec![0; bytes];
            vec![large]
        };
        stage.channel.push(large(3000)).expect("one goes in any case");
        stage.channel.poll_push().expect("it is under way");
        let (there, _) = stage.rtec_consumer(&wants_all());
        for _ in 0..10 {
            stage.channel.push(large(300)).expect("pushed");
            while stage.push_one() {}
        }
        assert_eq!(stage.peers[&there].types().len(), 10, "{full:?}");
        let most = stage.channel.consumers().map(|one| one.waiting_bytes).max();
        assert!(most <= Some(3200), "{full:?}: {most:?}");
    }
}

#[test]
fn of_those_for_which_equally_much_waits_none_has_it_all_and_the_bound_holds() {
    for full in [Full::DropOldest, Full::DropNewest] {
        let settings = Settings { full, total_bytes: 10_000, ..Settings::default() };
        let mut stage = Stage::new(settings);
        (0..4).for_each(|_| drop(stage.rtec_consumer(&wants_all())));
        for number in 0..40 {
            let mut large = event(16, number, 0);
            large.data.payload = vec![0; 300];
            stage.channel.push(vec![large]).expect("pushed");
            assert!(stage.channel.waiting_bytes() <= 10_000, "{full:?}");
        }
        let waiting: Vec<usize> = stage.channel.consumers().map(|one| one.waiting).collect();
        let (least, most) = (waiting.iter().min(), waiting.iter().max());
        assert!(least.zip(most).is_some_and(|(least, most)| most - least <= 1), "{waiting:?}");
    }
}

#[test]
fn a_consumer_whose_object_is_gone_is_disconnected() {
    let mut stage = Stage::new(Settings::default());
    let id = stage.channel.numbered_reference();
    let (port, peer) = stage.peer(stage::RTEC);
    let connected = stage.at(&id, |it| {
        quorba_idl::quorba_events::NumberedChannelStub(it)
            .connect_numbered_consumer(&peer, &wants_all())
    });
    connected.expect("connected");
    stage.peers.get_mut(&port).expect("a peer").mood = Mood::Gone;
    push(&mut stage, 16);
    stage.settle();
    assert_eq!(stage.channel.consumers().count(), 0);
    assert!(stage.peers[&port].goodbyes.is_empty(), "there is nobody to tell");
}

#[test]
fn single_events_go_together_and_conjunctions_alone() {
    let mut stage = Stage::new(Settings { batch_max: 3, ..Settings::default() });
    let both = [(d::DISJUNCTION, 2), (d::CONJUNCTION, 2), (16, 0), (17, 0), (18, 0)];
    let (port, _) = stage.rtec_consumer(&wants(&both));
    for event_type in [18, 18, 18, 18, 16, 17, 18, 16, 17] {
        push(&mut stage, event_type);
    }
    stage.settle();
    let lengths: Vec<usize> = stage.peers[&port].sets.iter().map(Vec::len).collect();
    assert_eq!(lengths, [3, 1, 2, 1, 2]);
}

/// A reliable channel, or one where suppliers wait, with a queue of so many events.
fn sure(is_reliable: bool, sets_max: usize) -> Settings {
    let full = Full::BackPressure;
    Settings { is_reliable, full, queue: queue(sets_max), ..Settings::default() }
}

#[test]
fn a_consumer_whose_conjunctions_hold_too_much_is_disconnected_where_nothing_is_dropped() {
    let both = wants(&[(d::CONJUNCTION, 2), (16, 0), (17, 0)]);
    for (settings, is_dropped) in
        [(sure(true, 9), false), (sure(false, 9), false), (Settings::default(), true)]
    {
        let mut settings = settings;
        settings.limits.held_bytes_max = 1000;
        let mut stage = Stage::new(settings);
        let (port, _) = stage.rtec_consumer(&both);
        let mut large = event(16, 1, 0);
        large.data.payload = vec![0; 2000];
        stage.channel.push(vec![large]).expect("no supplier waits for what may never come");
        stage.settle();
        let left: Vec<u64> = stage.channel.consumers().map(|one| one.counters.dropped).collect();
        if is_dropped {
            assert_eq!(left, [1]);
            continue;
        }
        assert_eq!(left, [] as [u64; 0], "it is disconnected");
        assert_eq!(stage.peers[&port].goodbyes, ["disconnect_push_consumer"]);
        assert_eq!(stage.channel.end_counts().holds_too_much, 1);
        assert!(stage.ended[0].contains("conjunctions"), "{:?}", stage.ended);
        assert_eq!(stage.channel.totals().dropped, 0);
    }
}

#[test]
fn a_timer_of_a_full_consumer_waits_for_room_where_nothing_is_dropped() {
    for is_reliable in [true, false] {
        let mut stage = Stage::new(sure(is_reliable, 1));
        let dependencies = vec![
            entry(d::DISJUNCTION, 2, 0, 0),
            entry(16, 0, 0, 0),
            entry(d::INTERVAL_TIMEOUT, 0, 10 * MS, 0),
        ];
        let (port, _) = stage.rtec_consumer(&ConsumerQOS { dependencies, is_gateway: false });
        push(&mut stage, 16);
        stage.channel.tick(35 * MS);
        assert_eq!(stage.channel.poll_timeout(), None, "nothing is to be looked at before");
        stage.settle();
        assert_eq!(stage.peers[&port].types(), [16]);
        assert!(stage.channel.poll_timeout().expect("it is due") <= 35 * MS);
        stage.channel.tick(35 * MS);
        stage.settle();
        assert_eq!(stage.peers[&port].types(), [16, d::INTERVAL_TIMEOUT], "late, and once");
        let counters = stage.channel.consumers().next().expect("a consumer").counters;
        assert_eq!((counters.delivered, counters.dropped), (2, 0));
    }
}

#[test]
fn why_a_proxy_ended_is_counted_kept_and_told_but_not_what_its_client_wants() {
    let full = Full::Disconnect;
    let mut stage = Stage::new(Settings { full, queue: queue(1), ..Settings::default() });
    let (_, left) = stage.rtec_consumer(&wants_all());
    let done = stage.at(&left, |it| {
        quorba_idl::rtec_event_channel_admin::ProxyPushSupplierStub(it).disconnect_push_supplier()
    });
    done.expect("disconnected");
    for number in 0..10 {
        let (slow, _) = stage.rtec_consumer(&wants_all());
        (0..2).for_each(|_| push(&mut stage, 16));
        stage.settle();
        assert_eq!(stage.ended.len(), number + 1);
        let said = format!("(peer:{slow}) is disconnected: more waits for it than may");
        assert!(stage.ended[number].contains(&said), "{:?}", stage.ended);
    }
    let counts = stage.channel.end_counts();
    assert_eq!((counts.too_slow, counts.gone), (10, 0));
    let kept: Vec<String> = stage.channel.last_ended().map(ToString::to_string).collect();
    assert_eq!(kept, stage.ended[2..], "the last eight");
}

const URGENT: i32 = 1;
const SLOW: i32 = 2;
const CRITICAL: i32 = 3;

/// Four consumers with an `rtec_info` each, none served before the last has something; in which
/// order they are.
fn order(scheduling: Scheduling) -> Vec<i32> {
    let info = |priority, deadline, execution, is_critical| RtInfo {
        priority,
        deadline,
        execution,
        is_critical,
    };
    let rt_infos = BTreeMap::from([
        (URGENT, info(1, 500 * MS, 0, false)),
        (SLOW, info(5, 600 * MS, 300 * MS, false)),
        (CRITICAL, info(9, 900 * MS, 0, true)),
    ]);
    let schedule = Schedule { scheduling, rt_infos };
    let mut stage = Stage::new(Settings { schedule, ..Settings::default() });
    let mut who = BTreeMap::new();
    for rt_info in [SLOW, CRITICAL, URGENT] {
        let dependencies = vec![entry(16, 0, 0, rt_info)];
        let (port, _) = stage.rtec_consumer(&ConsumerQOS { dependencies, is_gateway: false });
        who.insert(port, rt_info);
    }
    push(&mut stage, 16);
    let mut order = Vec::new();
    while stage.push_one() {
        let served = |rt_info: &i32| order.contains(rt_info);
        let new =
            who.iter().find(|(port, one)| !stage.peers[*port].sets.is_empty() && !served(one));
        order.push(*new.expect("one was served").1);
    }
    order
}

#[test]
fn consumers_are_served_in_the_order_of_the_strategy() {
    assert_eq!(order(Scheduling::FixedPriority), [URGENT, SLOW, CRITICAL]);
    assert_eq!(order(Scheduling::EarliestDeadline), [URGENT, SLOW, CRITICAL]);
    assert_eq!(order(Scheduling::LeastLaxity), [SLOW, URGENT, CRITICAL]);
    assert_eq!(order(Scheduling::MaximumUrgency), [CRITICAL, SLOW, URGENT]);
}

#[test]
fn what_is_urgent_overtakes_in_the_queue_of_one_consumer_too() {
    let rt_infos = BTreeMap::from([(URGENT, RtInfo { priority: -1, ..RtInfo::default() })]);
    let schedule = Schedule { rt_infos, ..Schedule::default() };
    let mut stage = Stage::new(Settings { schedule, ..Settings::default() });
    let dependencies =
        vec![entry(d::DISJUNCTION, 2, 0, 0), entry(16, 0, 0, 0), entry(17, 0, 0, URGENT)];
    let (port, _) = stage.rtec_consumer(&ConsumerQOS { dependencies, is_gateway: false });
    [16, 16, 17, 16, 17].into_iter().for_each(|event_type| push(&mut stage, event_type));
    stage.settle();
    assert_eq!(stage.peers[&port].types(), [17, 17, 16, 16, 16]);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let of = |settings: Settings| {
        quorba_events::Channel::new("x", &stage::home(), settings)
            .err()
            .map(|Contradiction(why)| why)
    };
    assert!(of(Settings { is_reliable: true, ..Settings::default() }).is_some());
    assert!(of(Settings { batch_max: 0, ..Settings::default() }).is_some());
    let full = Full::BackPressure;
    assert_eq!(of(Settings { is_reliable: true, full, ..Settings::default() }), None);
}
