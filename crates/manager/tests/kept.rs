//! What is acknowledged is written down, and what is written down counts after the end of all.
//! Found by the simulator's scope `manager`.

#![expect(clippy::result_large_err, reason = "errors of generated stubs hold properties")]

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::giop::ExceptionKind;
use quorba_corba::{Home, Local, Object};
use quorba_idl::ft::generic_factory::DeleteObjectError;
use quorba_idl::ft::property_manager::SetDefaultPropertiesError;
use quorba_idl::ft::{self};
use quorba_idl::portable_group as pg;
use quorba_idl::quorba::WatcherStub;
use quorba_manager::{Manager, WATCHER_KEY};
use stage::calls::{
    FACTORIES, INITIAL, MEMBERSHIP, MINIMUM, create, factory_at, fault, locations, name, property,
    push, version, with,
};
use stage::{BANK, Way, domain, manager};

fn look(manager: &mut Manager<Way>) -> Result<u32, ExceptionKind> {
    let mut local = Local::new(manager, WATCHER_KEY.as_bytes());
    WatcherStub(&mut local).look().map_err(|raised| raised.kind)
}

fn server(port: u16) -> Object {
    Home { addresses: vec![("s".to_owned(), port)], prefix: Vec::new() }.object(BANK, b"ledger")
}

#[test]
fn what_cannot_be_written_down_is_refused_and_changes_nothing() {
    let way = domain();
    let mut manager = manager(&way);
    create(&mut manager, Vec::new());
    let before = manager.state();
    way.0.borrow_mut().busy = true;
    let set = with(&mut manager, |it| it.set_default_properties(&vec![property(MINIMUM, &2_u16)]));
    assert!(matches!(set, Err(SetDefaultPropertiesError::System(it))
        if it.kind == ExceptionKind::Transient));
    let registered = with(&mut manager, |it| it.register_fault_notifier(&server(9)));
    assert_eq!(registered.map_err(|it| it.kind), Err(ExceptionKind::Transient));
    assert_eq!(manager.state(), before);
}

#[test]
fn a_group_whose_end_can_neither_be_had_nor_be_written_down_is_not_deleted() {
    let way = domain();
    let mut first = manager(&way);
    let (group, id) = create(&mut first, Vec::new());
    // The domain refuses, and what is to go cannot be written down either.
    way.0.borrow_mut().busy = true;
    let deleted = with(&mut first, |it| it.delete_object(&id));
    assert!(matches!(deleted, Err(DeleteObjectError::System(it))
        if it.kind == ExceptionKind::Transient));
    assert_eq!(locations(&mut first, &group), ["n1", "n2"]);
    way.0.borrow_mut().busy = false;
    with(&mut first, |it| it.delete_object(&id)).expect("deleted");
    assert!(!way.0.borrow().groups.contains_key("object-1"));
}

#[test]
fn a_group_that_has_lost_its_members_has_none_after_the_end_of_all() {
    let way = domain();
    let mut first = manager(&way);
    let (group, _) = create(&mut first, vec![property(MEMBERSHIP, &ft::MEMB_APP_CTRL)]);
    with(&mut first, |it| it.add_member(&group, &name("n1"), &server(1))).expect("added");
    // It is written down, and then the domain refuses to end the group.
    way.0.borrow_mut().busy_after = Some(1);
    let empty = with(&mut first, |it| it.remove_member(&group, &name("n1"))).expect("removed");
    assert_eq!(version(&empty), 3);
    way.0.borrow_mut().groups.get_mut("object-1").expect("it is left there");
    (way.0.borrow_mut().busy_after, way.0.borrow_mut().busy) = (None, false);
    let mut second = manager(&way);
    assert!(locations(&mut second, &group).is_empty());
    // It goes before the group is made again, and not afterwards.
    with(&mut second, |it| it.add_member(&group, &name("n2"), &server(2))).expect("added");
    assert!(look(&mut second).is_ok());
    assert_eq!(way.0.borrow().groups["object-1"].members(), ["n2"]);
    let mut third = manager(&way);
    assert_eq!(locations(&mut third, &group), ["n2"]);
    assert!(look(&mut third).is_ok());
    assert_eq!(way.0.borrow().groups["object-1"].members(), ["n2"]);
}

#[test]
fn properties_that_are_set_are_said_to_be_although_the_minimum_is_restored_later() {
    let way = domain();
    let mut manager = manager(&way);
    let (group, _) = create(&mut manager, vec![property(INITIAL, &2_u16)]);
    way.0.borrow_mut().busy_after = Some(1);
    let more = vec![property(MINIMUM, &2_u16)];
    way.0.borrow_mut().nodes.insert("n2".to_owned(), false);
    with(&mut manager, |it| it.set_properties_dynamically(&group, &more)).expect("set");
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    (way.0.borrow_mut().busy_after, way.0.borrow_mut().busy) = (None, false);
    assert_eq!(look(&mut manager), Ok(1));
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"]);
}

#[test]
fn two_factories_at_one_location_make_one_member_there() {
    let way = domain();
    let mut manager = manager(&way);
    let mut local = Local::new(&mut manager, b"TAO/FactoryRegistry");
    let mut it = pg::FactoryRegistryStub(&mut local);
    for (role, port, at) in [("a", 11, "n1"), ("b", 12, "n1"), ("b", 13, "n2")] {
        let (role, bank) = (role.to_owned(), BANK.to_owned());
        it.register_factory(&role, &bank, &factory_at(port, at)).expect("registered");
    }
    let (group, _) = create(&mut manager, Vec::new());
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    let mut other = stage::manager(&way);
    other.take_over(&manager.state()).expect("a state");
    // The other one there is tried where the first one creates nothing.
    way.0.borrow_mut().broken.insert(11);
    let (group, _) = create(&mut manager, vec![property(INITIAL, &2_u16)]);
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    assert_eq!(way.0.borrow().made[&12].len(), 1);
}

#[test]
fn a_group_of_nodes_is_repaired_by_nodes_although_factories_came_since() {
    let way = domain();
    let mut manager = manager(&way);
    let (group, _) = create(&mut manager, vec![property(MINIMUM, &2_u16)]);
    let mut local = Local::new(&mut manager, b"TAO/FactoryRegistry");
    let mut it = pg::FactoryRegistryStub(&mut local);
    it.register_factory(&"a".to_owned(), &BANK.to_owned(), &factory_at(11, "n3")).expect("new");
    way.0.borrow_mut().nodes.insert("n2".to_owned(), false);
    push(&mut manager, &fault("n2", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"]);
    assert!(way.0.borrow().made.is_empty());
}

#[test]
fn factories_that_are_named_twice_for_a_location_count_once() {
    let way = domain();
    let mut manager = manager(&way);
    let twice = vec![factory_at(11, "n1"), factory_at(12, "n1")];
    let wanted = vec![property(FACTORIES, &twice), property(INITIAL, &2_u16)];
    let criteria = stage::calls::wanted(wanted);
    let created = with(&mut manager, |it| it.create_object(&BANK.to_owned(), &criteria));
    use quorba_idl::ft::generic_factory::CreateObjectError::CannotMeetCriteria;
    assert!(matches!(created, Err(CannotMeetCriteria(_))), "{created:?}");
}
