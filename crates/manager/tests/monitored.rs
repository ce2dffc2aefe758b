//! FaultMonitoringStyle PULL and NOT_MONITORED: who is asked, and what comes of who is not alive.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::{Any, Object};
use quorba_idl::cos_notification as cn;
use quorba_idl::ft::generic_factory::CreateObjectError;
use quorba_idl::ft::object_group_manager as ogm;
use quorba_idl::ft::{self};
use quorba_manager::{Charge, Manager, UNANSWERED, Watched, Whom};
use stage::calls::{
    FACTORIES, GRANULARITY, INITIAL, MEMBERSHIP, MINIMUM, MONITORING, TIMES, create, factory_at,
    fault, locations, name, named, property, push, wanted, with, with_watcher,
};
use stage::{BANK, Way, domain, manager};

/// The detector of a node that is told of no other one.
fn alone(node: &str) -> Charge {
    Charge { node: node.to_owned(), inside: Vec::new() }
}

/// A group of objects of factories at n1 to n3, watched like this.
fn pulled(manager: &mut Manager<Way>, granularity: u16) -> Object {
    let factories: Vec<_> = (1..=3).map(|at| factory_at(10 + at, &format!("n{at}"))).collect();
    let times =
        ft::FaultMonitoringIntervalAndTimeoutValue { monitoring_interval: 500_000, timeout: 20 };
    let properties = vec![
        property(FACTORIES, &factories),
        property(INITIAL, &2_u16),
        property(MINIMUM, &2_u16),
        property(MONITORING, &ft::PULL),
        property(GRANULARITY, &granularity),
        property(TIMES, &times),
    ];
    create(manager, properties).0
}

#[test]
fn objects_are_asked_by_the_granularity_of_their_groups() {
    let way = domain();
    let mut manager = manager(&way);
    create(&mut manager, vec![property(MONITORING, &ft::PULL)]);
    for granularity in [ft::MEMB, ft::MEMB, ft::LOC_AND_TYPE, ft::LOC_AND_TYPE, ft::LOC, ft::LOC] {
        pulled(&mut manager, granularity);
    }
    let asked = manager.watched(&alone("n1"));
    let whom: Vec<_> = asked.iter().map(|one| (one.type_id.as_deref(), one.group)).collect();
    let of_type = Some(BANK);
    // The one of the first group is a server, and its node knows whether it can be asked.
    let expected =
        [(of_type, Some(2)), (of_type, Some(3)), (of_type, None), (None, None), (of_type, Some(1))];
    assert_eq!(whom, expected);
    let times = (asked[0].interval.as_millis(), asked[0].timeout.as_micros());
    assert_eq!(times, (50, 2), "they count 100 ns");
    assert_eq!(asked[4].whom, Whom::Server("object-1".to_owned()));
    assert!(manager.watched(&alone("n3")).is_empty());
    // The first replica asks the objects at nodes that have none, but no servers there.
    let charge = |node: &str| Charge { node: node.to_owned(), inside: vec!["n3".to_owned()] };
    let of = |asked: Vec<Watched>, node: &str| {
        asked.iter().filter(|one| one.location == node).map(|one| one.group).collect::<Vec<_>>()
    };
    let first = manager.watched(&charge("n3"));
    assert_eq!(of(first.clone(), "n1"), [Some(2), Some(3), None, None]);
    assert_eq!(of(first, "n2"), [Some(2), Some(3), None, None]);
    assert_eq!(of(manager.watched(&charge("n2")), "n1"), []);
}

#[test]
fn an_object_that_does_not_answer_is_replaced_although_its_server_is_in() {
    let way = domain();
    let mut manager = manager(&way);
    let one = pulled(&mut manager, ft::MEMB);
    let located = [pulled(&mut manager, ft::LOC), pulled(&mut manager, ft::LOC)];
    let item = |name: &str, value: Any| cn::Property { name: name.to_owned(), value };
    let unanswered = item(UNANSWERED, Any::new(&true).expect("a boolean"));
    let of_one = [
        item("TypeId", Any::new(&BANK.to_owned()).expect("a text")),
        item("ObjectGroupId", Any::new(&1_u64).expect("a number")),
    ];
    push(&mut manager, &fault("n1", of_one.to_vec()));
    assert_eq!(locations(&mut manager, &one), ["n1", "n2"], "it is in again");
    let [type_id, group] = of_one;
    push(&mut manager, &fault("n1", vec![type_id, group, unanswered.clone()]));
    assert_eq!(locations(&mut manager, &one), ["n2", "n3"]);
    assert_eq!(locations(&mut manager, &located[0]), ["n1", "n2"]);
    // One stands for all that are watched by their location, and for nobody else.
    push(&mut manager, &fault("n2", vec![unanswered]));
    assert_eq!(locations(&mut manager, &one), ["n2", "n3"]);
    for group in &located {
        assert_eq!(locations(&mut manager, group), ["n1", "n3"]);
    }
}

#[test]
fn a_server_that_is_asked_and_is_not_alive_is_reported_once_and_replaced_if_it_must_be() {
    let way = domain();
    let mut manager = manager(&way);
    let own =
        vec![property(INITIAL, &2_u16), property(MINIMUM, &2_u16), property(MONITORING, &ft::PULL)];
    let (group, _) = create(&mut manager, own);
    let item = |name: &str, value: Any| cn::Property { name: name.to_owned(), value };
    let report = |incident: &str| {
        let of = vec![
            item("TypeId", Any::new(&BANK.to_owned()).expect("a text")),
            item("ObjectGroupId", Any::new(&1_u64).expect("a number")),
            item(UNANSWERED, Any::new(&true).expect("a boolean")),
        ];
        named(fault("n1", of), incident)
    };
    for node in ["n3", "n4", "n5"] {
        way.0.borrow_mut().nodes.insert(node.to_owned(), false);
    }
    push(&mut manager, &report("a"));
    push(&mut manager, &report("b"));
    assert_eq!(manager.for_notifier(10).len(), 1);
    let asked = manager.watched(&alone("n1"));
    assert!(asked[0].is_reported && !manager.watched(&alone("n2"))[0].is_reported);
    with_watcher(&mut manager, |it| it.answers(&asked[0].name)).expect("heard");
    assert!(!manager.watched(&alone("n1"))[0].is_reported);
    way.0.borrow_mut().nodes.insert("n3".to_owned(), true);
    push(&mut manager, &report("c"));
    assert_eq!(locations(&mut manager, &group), ["n2", "n3"]);
}

#[test]
fn of_an_object_that_is_not_alive_the_notifier_is_told_once_until_it_answers_again() {
    let way = domain();
    let mut manager = manager(&way);
    pulled(&mut manager, ft::MEMB);
    let unanswered = |group: u64, incident: &str| {
        let item = |name: &str, value: Any| cn::Property { name: name.to_owned(), value };
        let event = fault(
            "n1",
            vec![
                item("TypeId", Any::new(&BANK.to_owned()).expect("a text")),
                item("ObjectGroupId", Any::new(&group).expect("a number")),
                item(UNANSWERED, Any::new(&true).expect("a boolean")),
            ],
        );
        if incident.is_empty() { event } else { named(event, incident) }
    };
    let waiting = |manager: &Manager<Way>| {
        let all = manager.for_notifier(100).into_iter();
        all.map(|one| one.incident).collect::<Vec<_>>()
    };
    // Nobody can take its place.
    for node in ["n3", "n4", "n5"] {
        way.0.borrow_mut().nodes.insert(node.to_owned(), false);
    }
    push(&mut manager, &unanswered(1, "a"));
    push(&mut manager, &unanswered(1, "a"));
    assert!(manager.watched(&alone("n1"))[0].is_reported);
    // The detector's process begins anew, and another replica goes on.
    let mut other = stage::manager(&way);
    other.take_over(&manager.state()).expect("a state");
    push(&mut other, &unanswered(1, "b"));
    push(&mut other, &unanswered(7, "c"));
    assert_eq!(waiting(&other), ["a"]);
    with_watcher(&mut other, |it| it.told(&vec!["a".to_owned()])).expect("heard");
    assert_eq!(waiting(&other), Vec::<String>::new());
    let object = other.watched(&alone("n1"))[0].name.clone();
    with_watcher(&mut other, |it| it.answers(&object)).expect("heard");
    assert!(!other.watched(&alone("n1"))[0].is_reported);
    push(&mut other, &unanswered(1, "d"));
    assert_eq!(waiting(&other), ["d"]);
    // What others report comes from the notifier.
    with_watcher(&mut other, |it| it.answers(&object)).expect("heard");
    push(&mut other, &unanswered(1, ""));
    assert_eq!(waiting(&other), ["d"]);
}

#[test]
fn what_cannot_be_monitored_so_is_refused_and_what_is_not_monitored_is_said_to_be_so() {
    let way = domain();
    let mut manager = manager(&way);
    let pushed = vec![property(MONITORING, &ft::PUSH)];
    let created =
        with(&mut manager, |it| it.create_object(&BANK.to_owned(), &wanted(pushed.clone())));
    let Err(CreateObjectError::InvalidProperty(wrong)) = created else { panic!("{created:?}") };
    assert_eq!(wrong.nam, name(MONITORING), "a server cannot push");
    let own = [pushed, vec![property(MEMBERSHIP, &ft::MEMB_APP_CTRL)]].concat();
    let (group, _) = create(&mut manager, own);
    with(&mut manager, |it| {
        let created = it.create_member(&group, &name("n1"), &BANK.to_owned(), &Vec::new());
        assert!(matches!(created, Err(ogm::CreateMemberError::NoFactory(_))), "{created:?}");
    });
    let (_, plain) = create(&mut manager, Vec::new());
    let (_, quiet) = create(&mut manager, vec![property(MONITORING, &ft::NOT_MONITORED)]);
    let said = |id: &Any| {
        let name = format!("object-{}", id.get::<u64>().expect("a number"));
        way.0.borrow().groups[&name].keys.get("ft_monitored").cloned()
    };
    assert_eq!([said(&plain), said(&quiet)], [None, Some("false".to_owned())]);
}
