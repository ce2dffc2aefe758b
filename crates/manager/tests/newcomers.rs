//! MinimumNumberReplicas: who is removed is replaced elsewhere, the last one too; and whoever comes
//! in its place has to come in.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::{Local, Object};
use quorba_idl::quorba::WatcherStub;
use quorba_manager::{Lookout, Manager, Newcomer, WATCHER_KEY};
use stage::calls::{
    FACTORIES, INITIAL, MINIMUM, create, factory_at, fault, locations, name, property, push,
    version, with,
};
use stage::{Way, domain, manager};
use std::time::Duration;

fn watcher<R>(manager: &mut Manager<Way>, call: impl FnOnce(&mut WatcherStub<'_>) -> R) -> R {
    let mut local = Local::new(manager, WATCHER_KEY.as_bytes());
    call(&mut WatcherStub(&mut local))
}

fn group(manager: &mut Manager<Way>, members: u16) -> Object {
    create(manager, vec![property(INITIAL, &members), property(MINIMUM, &members)]).0
}

fn remove(manager: &mut Manager<Way>, group: &Object, at: &str) -> Object {
    with(manager, |it| it.remove_member(group, &name(at))).expect("removed")
}

fn set_up(way: &Way, nodes: &[&str], is_up: bool) {
    let mut table = way.0.borrow_mut();
    table.nodes.extend(nodes.iter().map(|node| ((*node).to_owned(), is_up)));
}

#[test]
fn a_member_that_is_removed_is_replaced_at_another_location() {
    let way = domain();
    let mut manager = manager(&way);
    let group = group(&mut manager, 2);
    remove(&mut manager, &group, "n1");
    assert_eq!(locations(&mut manager, &group), ["n2", "n3"]);
    // There is no other location: the minimum counts for more.
    set_up(&way, &["n1", "n4", "n5"], false);
    remove(&mut manager, &group, "n3");
    assert_eq!(locations(&mut manager, &group), ["n2", "n3"]);
}

#[test]
fn the_last_member_goes_when_another_one_has_its_state() {
    let way = domain();
    let mut manager = manager(&way);
    let group = group(&mut manager, 1);
    let now = remove(&mut manager, &group, "n1");
    assert_eq!(locations(&mut manager, &group), ["n2"]);
    // Both were in it together, and it was not ended meanwhile.
    assert_eq!(version(&now), 3);
    assert!(way.0.borrow().ended.is_empty());
    assert_eq!(way.0.borrow().groups["object-1"].members(), ["n2"]);
}

#[test]
fn the_last_member_stays_as_long_as_its_state_is_on_its_way() {
    let way = domain();
    let mut manager = manager(&way);
    let group = group(&mut manager, 1);
    set_up(&way, &["n3", "n4", "n5"], false);
    way.0.borrow_mut().coming.insert(("object-1".to_owned(), "n2".to_owned()));
    let refused = with(&mut manager, |it| it.remove_member(&group, &name("n1")));
    let refused = refused.expect_err("not yet");
    assert!(format!("{refused:?}").contains("Transient"), "{refused:?}");
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    assert!(way.0.borrow().ended.is_empty(), "its state would be lost");
    assert_eq!(manager.newcomers().count(), 1);
    way.0.borrow_mut().coming.clear();
    remove(&mut manager, &group, "n1");
    assert_eq!(locations(&mut manager, &group), ["n2"]);
    assert!(way.0.borrow().ended.is_empty());
}

#[test]
fn a_last_member_that_is_out_has_nothing_to_hand_over() {
    let way = domain();
    let mut manager = manager(&way);
    let group = group(&mut manager, 1);
    way.0.borrow_mut().out.insert(("object-1".to_owned(), "n1".to_owned()));
    remove(&mut manager, &group, "n1");
    assert!(way.0.borrow().ended.contains("object-1"), "it is another one");
    assert_eq!(locations(&mut manager, &group), ["n2"]);
}

#[test]
fn a_newcomer_that_ends_before_it_is_in_is_not_tried_at_once_again() {
    let way = domain();
    let mut manager = manager(&way);
    let group = group(&mut manager, 2);
    set_up(&way, &["n4"], false);
    for node in ["n2", "n3", "n5"] {
        way.0.borrow_mut().failing.insert(node.to_owned());
    }
    push(&mut manager, &fault("n2", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"]);
    push(&mut manager, &fault("n3", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    push(&mut manager, &fault("n2", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n5"], "n3 has failed");
}

#[test]
fn a_group_whose_last_member_nobody_can_follow_is_begun_anew_when_somebody_can() {
    let way = domain();
    let mut manager = manager(&way);
    let lonely = group(&mut manager, 1);
    set_up(&way, &["n1", "n2", "n3", "n4", "n5"], false);
    let empty = remove(&mut manager, &lonely, "n1");
    assert!(empty.0.endpoints().is_empty() && manager.has_work());
    assert!(!way.0.borrow().groups.contains_key("object-1"));
    set_up(&way, &["n4"], true);
    assert_eq!(watcher(&mut manager, |it| it.look()), Ok(1));
    assert_eq!(locations(&mut manager, &lonely), ["n4"]);
    assert!(!manager.has_work());

    // No server comes in that could take over.
    set_up(&way, &["n5"], true);
    way.0.borrow_mut().failing.insert("n5".to_owned());
    remove(&mut manager, &lonely, "n4");
    assert_eq!(locations(&mut manager, &lonely), ["n4"], "where none came in it is not tried");
}

#[test]
fn objects_of_factories_are_replaced_when_the_last_one_is_removed() {
    let way = domain();
    let mut manager = manager(&way);
    let factories = vec![factory_at(11, "n1"), factory_at(12, "n2")];
    let own = vec![property(FACTORIES, &factories), property(INITIAL, &1_u16)];
    let (group, _) = create(&mut manager, own);
    remove(&mut manager, &group, "n1");
    assert_eq!(locations(&mut manager, &group), ["n2"]);
    let made = |port| way.0.borrow().made[&port].len();
    assert_eq!((made(11), made(12)), (0, 1));
}

/// Tells the manager of whom the process beside it finds late, as often as there are such.
fn wait_until(manager: &mut Manager<Way>, lookout: &mut Lookout, seconds: u64) -> Vec<Newcomer> {
    let mut late = Vec::new();
    while let Some(one) = lookout.overdue(manager, Duration::from_secs(seconds)) {
        watcher(manager, |it| it.overdue(&one.group, &one.location)).expect("heard");
        late.push(one);
    }
    late
}

#[test]
fn a_newcomer_that_does_not_come_in_is_given_up_for_another_location() {
    let way = domain();
    let mut manager = manager(&way);
    let group = group(&mut manager, 2);
    for node in ["n2", "n3", "n4"] {
        way.0.borrow_mut().failing.insert(node.to_owned());
    }
    push(&mut manager, &fault("n2", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"]);
    let mut lookout = Lookout::default();
    assert_eq!(wait_until(&mut manager, &mut lookout, 100), []);
    assert_eq!(wait_until(&mut manager, &mut lookout, 119), []);
    let late = Newcomer { group: 1, location: "n3".to_owned(), failed: 0 };
    assert_eq!(wait_until(&mut manager, &mut lookout, 120), [late]);
    // n2 and n4 are spare; its server has died at n2, but nobody has seen that it does not start.
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    assert_eq!(wait_until(&mut manager, &mut lookout, 159), []);
    let late = Newcomer { group: 1, location: "n2".to_owned(), failed: 1 };
    assert_eq!(wait_until(&mut manager, &mut lookout, 160), [late], "twice as long");
    assert_eq!(locations(&mut manager, &group), ["n1", "n4"]);
    wait_until(&mut manager, &mut lookout, 240);
    assert_eq!(locations(&mut manager, &group), ["n1", "n5"]);
    // Another replica goes on from there.
    let mut other = stage::manager(&way);
    other.take_over(&manager.state()).expect("a state");
    let mut lookout = Lookout::default();
    assert_eq!(wait_until(&mut other, &mut lookout, 0), []);
    assert_eq!(wait_until(&mut other, &mut lookout, 1_000).len(), 1);
    assert_eq!(locations(&mut other, &group), ["n1", "n5"], "it is in");
    assert_eq!(other.newcomers().count(), 0);
}

#[test]
fn a_newcomer_that_is_given_a_state_or_that_nobody_can_follow_is_waited_for() {
    let way = domain();
    let mut manager = manager(&way);
    let group = group(&mut manager, 2);
    set_up(&way, &["n4", "n5"], false);
    way.0.borrow_mut().coming.insert(("object-1".to_owned(), "n3".to_owned()));
    remove(&mut manager, &group, "n2");
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"]);
    let mut lookout = Lookout::default();
    wait_until(&mut manager, &mut lookout, 0);
    assert_eq!(wait_until(&mut manager, &mut lookout, 20).len(), 1);
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"], "a long state");
    way.0.borrow_mut().coming.clear();
    way.0.borrow_mut().failing.insert("n3".to_owned());
    set_up(&way, &["n2"], false);
    assert_eq!(wait_until(&mut manager, &mut lookout, 40).len(), 1);
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"], "there is nobody else");
    let waits: Vec<_> = manager.newcomers().collect();
    assert!(matches!(waits.as_slice(), [Newcomer { failed: 1, .. }]), "{waits:?}");
}
