//! FaultMonitoringStyle PUSH: objects that say that they live, and reports by others.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::{Any, Home, Local, Object};
use quorba_idl::cos_notification as cn;
use quorba_idl::ft::{self, Property};
use quorba_idl::quorba::PushMonitorStub;
use quorba_manager::{Charge, INCIDENT, Manager, PUSH_KEY, UNANSWERED};
use stage::calls::{
    FACTORIES, GRANULARITY, INITIAL, MINIMUM, MONITORING, TIMES, create, factory_at, fault,
    locations, property, push, version,
};
use stage::{BANK, Way, domain, manager};

/// A group of objects of factories with these ports at n1 to n3.
fn pushed(manager: &mut Manager<Way>, port: u16, more: Vec<Property>) -> Object {
    let factories: Vec<_> = (1..=3).map(|at| factory_at(port, &format!("n{at}"))).collect();
    let mut properties = vec![
        property(FACTORIES, &factories),
        property(INITIAL, &2_u16),
        property(MINIMUM, &2_u16),
        property(MONITORING, &ft::PUSH),
    ];
    properties.retain(|one| more.iter().all(|other| other.nam != one.nam));
    properties.extend(more);
    create(manager, properties).0
}

fn times(interval: u64, timeout: u64) -> Property {
    let value =
        ft::FaultMonitoringIntervalAndTimeoutValue { monitoring_interval: interval, timeout };
    property(TIMES, &value)
}

/// What such a factory makes at a location.
fn object(port: u16, location: &str) -> Object {
    let home = Home { addresses: vec![(location.to_owned(), port)], prefix: Vec::new() };
    home.object("", b"ledger")
}

fn alive(manager: &mut Manager<Way>, object: &Object) -> bool {
    PushMonitorStub(&mut Local::new(manager, PUSH_KEY.as_bytes())).alive(object).expect("answered")
}

/// The detector of n1, which is told of no other one.
fn alone() -> Charge {
    Charge { node: "n1".to_owned(), inside: Vec::new() }
}

/// The group that each stands for at n1, and whether it was heard and accused.
fn at_n1(manager: &mut Manager<Way>) -> Vec<(Option<u64>, bool, bool)> {
    let pushing = manager.pushing(&alone());
    pushing.iter().map(|one| (one.group, one.is_heard, one.is_accused)).collect()
}

fn member(group: u64) -> Vec<cn::Property> {
    let item = |name: &str, value: Any| cn::Property { name: name.to_owned(), value };
    vec![
        item("TypeId", Any::new(&BANK.to_owned()).expect("a text")),
        item("ObjectGroupId", Any::new(&group).expect("a number")),
    ]
}

fn unanswered() -> cn::Property {
    cn::Property { name: UNANSWERED.to_owned(), value: Any::new(&true).expect("a boolean") }
}

#[test]
fn an_object_says_that_it_lives_by_its_own_reference_alone() {
    let way = domain();
    let mut manager = manager(&way);
    pushed(&mut manager, 11, vec![times(5_000_000, 2_500_000)]);
    pushed(&mut manager, 12, Vec::new());
    assert_eq!(at_n1(&mut manager), [(Some(1), false, false), (Some(2), false, false)]);
    let state = manager.state();
    assert!(alive(&mut manager, &object(11, "n1")));
    assert_eq!(manager.state(), state, "what was heard is no part of it");
    assert_eq!(at_n1(&mut manager), [(Some(1), true, false), (Some(2), false, false)]);
    assert_eq!(at_n1(&mut manager), [(Some(1), false, false), (Some(2), false, false)]);
    for stranger in [object(11, "n3"), object(13, "n1"), Object::nil()] {
        assert!(!alive(&mut manager, &stranger), "{stranger:?}");
    }
    let silences: Vec<_> = manager.pushing(&alone()).iter().map(|one| one.silence).collect();
    let ms = std::time::Duration::from_millis;
    assert_eq!(silences, [Some(ms(750)), None], "who has set no times is not waited for");
    // One that comes is known at once.
    pushed(&mut manager, 13, Vec::new());
    assert!(alive(&mut manager, &object(13, "n1")));
}

#[test]
fn one_object_speaks_for_all_that_are_watched_by_their_location() {
    let way = domain();
    let mut manager = manager(&way);
    let of_all = || property(GRANULARITY, &ft::LOC);
    pushed(&mut manager, 11, vec![of_all(), times(1, 20)]);
    pushed(&mut manager, 12, vec![of_all(), times(1, 10)]);
    assert!(alive(&mut manager, &object(12, "n1")));
    let pushing = manager.pushing(&alone());
    assert_eq!(pushing.len(), 1);
    let one = (pushing[0].group, pushing[0].is_heard, pushing[0].silence.map(|it| it.as_nanos()));
    assert_eq!(one, (None, true, Some(1_100)));
}

#[test]
fn who_is_silent_is_taken_out_and_replaced_where_fewer_than_the_minimum_are_left() {
    let way = domain();
    let mut manager = manager(&way);
    let short = pushed(&mut manager, 11, Vec::new());
    let one_is_enough = vec![property(MINIMUM, &1_u16)];
    let rich = pushed(&mut manager, 12, one_is_enough);
    let before = version(&rich);
    for group in [1, 2] {
        let mut items = member(group);
        items.push(unanswered());
        push(&mut manager, &fault("n1", items));
    }
    assert_eq!(locations(&mut manager, &short), ["n2", "n3"]);
    assert_eq!(locations(&mut manager, &rich), ["n2"], "it does not come back by itself");
    let group = stage::calls::with(&mut manager, |it| it.get_object_group_ref(&rich));
    assert_eq!(version(&group.expect("a group")), before + 1);
    assert_eq!(way.0.borrow().made[&12].len(), 1, "its factory was told");
    // Nobody takes the place of the last one, and it stays.
    way.0.borrow_mut().broken.insert(12);
    let mut items = member(2);
    items.push(unanswered());
    push(&mut manager, &fault("n2", items));
    assert_eq!(locations(&mut manager, &rich), ["n2"]);
}

#[test]
fn a_report_by_somebody_else_is_looked_into_and_ends_nobody_itself() {
    let way = domain();
    let mut manager = manager(&way);
    let group = pushed(&mut manager, 11, Vec::new());
    let pulled = pushed(&mut manager, 12, vec![property(MONITORING, &ft::PULL)]);
    push(&mut manager, &fault("n1", member(1)));
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    assert_eq!(at_n1(&mut manager), [(Some(1), false, true)]);
    assert_eq!(at_n1(&mut manager), [(Some(1), false, false)], "once");
    // Too much is said, or of others, or by a node, which does as nodes do.
    let mut by_node = fault("n1", member(1));
    let value = Any::new(&"n1 bank 1".to_owned()).expect("a text");
    by_node.header.variable_header.push(cn::Property { name: INCIDENT.to_owned(), value });
    for report in [fault("n1", Vec::new()), fault("n2", member(1)), fault("n1", member(2)), by_node]
    {
        push(&mut manager, &report);
        assert_eq!(at_n1(&mut manager), [(Some(1), false, false)], "{report:?}");
    }
    for group in [&group, &pulled] {
        assert_eq!(locations(&mut manager, group), ["n1", "n2"]);
    }
}
