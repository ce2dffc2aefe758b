//! The manager, called through its stubs: every operation and every exception.

#![expect(clippy::result_large_err, reason = "errors of generated stubs hold properties")]

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Home, Local, Object};
use quorba_idl::cos_notification as cn;
use quorba_idl::ft::generic_factory::{CreateObjectError, DeleteObjectError};
use quorba_idl::ft::object_group_manager as ogm;
use quorba_idl::ft::property_manager as pm;
use quorba_idl::ft::replication_manager::GetFaultNotifierError;
use quorba_idl::ft::{self, Property};
use quorba_idl::quorba::WatcherStub;
use quorba_idl::{portable_group as pg, tao_ft};
use quorba_manager::table::Defined;
use quorba_manager::{Manager, TAO_KEY, WATCHER_KEY};
use stage::calls::{
    CHECKPOINT, CONSISTENCY, FACTORIES, INITIAL, MEMBERSHIP, MINIMUM, STYLE, create, factory,
    factory_at, fault, locations, name, named, property, push, version, wanted, with, with_watcher,
};
use stage::{BANK, OWN, Way, domain, manager};

#[test]
fn a_group_is_created_with_as_many_members_as_wanted_and_deleted() {
    let way = domain();
    let mut manager = manager(&way);
    let (group, id) = create(&mut manager, vec![property(INITIAL, &3_u16)]);
    assert_eq!(locations(&mut manager, &group), ["n1", "n2", "n3"]);
    assert_eq!(with(&mut manager, |it| it.get_object_group_id(&group)), Ok(1));
    assert_eq!(id.get::<u64>(), Some(1), "the group is what was created");
    assert_eq!(way.0.borrow().groups["object-1"].members(), ["n1", "n2", "n3"]);
    assert_eq!(version(&group), 1);
    with(&mut manager, |it| it.delete_object(&id)).expect("deleted");
    let again = with(&mut manager, |it| it.delete_object(&id));
    assert!(matches!(again, Err(DeleteObjectError::ObjectNotFound(_))));
    assert!(!way.0.borrow().groups.contains_key("object-1"));
    let gone = with(&mut manager, |it| it.get_object_group_ref(&group));
    assert!(matches!(gone, Err(ogm::GetObjectGroupRefError::ObjectGroupNotFound(_))));
    let (next, _) = create(&mut manager, Vec::new());
    assert_eq!(with(&mut manager, |it| it.get_object_group_id(&next)), Ok(2));
}

#[test]
fn properties_override_default_type_creation_dynamic() {
    let way = domain();
    let mut manager = manager(&way);
    let number = |properties: &ft::Properties, id: &str| {
        let found = properties.iter().find(|one| one.nam == name(id))?;
        found.val.get::<u16>()
    };
    with(&mut manager, |it| {
        it.set_default_properties(&vec![property(INITIAL, &2_u16), property(MINIMUM, &1_u16)])
            .expect("set");
        it.set_type_properties(&BANK.to_owned(), &vec![property(INITIAL, &3_u16)]).expect("set");
        assert_eq!(number(&it.get_default_properties().expect("read"), INITIAL), Some(2));
        let of_type = it.get_type_properties(&BANK.to_owned()).expect("read");
        assert_eq!((number(&of_type, INITIAL), number(&of_type, MINIMUM)), (Some(3), Some(1)));
        let other = it.get_type_properties(&"IDL:Other:1.0".to_owned()).expect("read");
        assert_eq!(number(&other, INITIAL), Some(2), "the default");
    });
    let (group, _) = create(&mut manager, Vec::new());
    assert_eq!(locations(&mut manager, &group).len(), 3, "the type's");
    let (other, _) = create(&mut manager, vec![property(INITIAL, &4_u16)]);
    assert_eq!(locations(&mut manager, &other).len(), 4, "its own");
    with(&mut manager, |it| {
        let properties = it.get_properties(&group).expect("read");
        assert_eq!(number(&properties, MINIMUM), Some(1));
        it.set_properties_dynamically(&group, &vec![property(MINIMUM, &2_u16)]).expect("set");
        let properties = it.get_properties(&group).expect("read");
        assert_eq!(number(&properties, MINIMUM), Some(2));
        it.remove_type_properties(&BANK.to_owned(), &vec![property(INITIAL, &0_u16)])
            .expect("removed, whatever the value");
        let of_type = it.get_type_properties(&BANK.to_owned()).expect("read");
        assert_eq!(number(&of_type, INITIAL), Some(2));
        it.remove_default_properties(&vec![property(INITIAL, &2_u16)]).expect("removed");
        assert_eq!(number(&it.get_default_properties().expect("read"), INITIAL), None);
    });
}

#[test]
fn properties_that_are_wrong_or_unknown_are_refused_and_change_nothing() {
    let way = domain();
    let mut manager = manager(&way);
    let (group, _) = create(&mut manager, Vec::new());
    let before = manager.state();
    let unknown = property("org.omg.ft.Colour", &1_u16);
    let wrong = property(STYLE, &77_u16);
    let text = property(INITIAL, &"two".to_owned());
    with(&mut manager, |it| {
        let sets = [
            it.set_default_properties(&vec![property(INITIAL, &2_u16), wrong.clone()]),
            it.set_default_properties(&vec![text.clone()]),
        ];
        for set in sets {
            assert!(matches!(set, Err(pm::SetDefaultPropertiesError::InvalidProperty(_))));
        }
        let Err(pm::SetTypePropertiesError::UnsupportedProperty(it_is)) =
            it.set_type_properties(&BANK.to_owned(), &vec![unknown.clone()])
        else {
            panic!("nobody knows it")
        };
        assert_eq!(it_is.nam, unknown.nam);
        let set = it.set_properties_dynamically(&group, &vec![property(STYLE, &3_u16)]);
        let refused = matches!(set, Err(pm::SetPropertiesDynamicallyError::InvalidProperty(_)));
        assert!(refused, "a style is not set of a group that there is: {set:?}");
        let set = it.set_properties_dynamically(&Object::nil(), &Vec::new());
        let refused = matches!(set, Err(pm::SetPropertiesDynamicallyError::ObjectGroupNotFound(_)));
        assert!(refused);
        let removed = it.remove_default_properties(&vec![property(STYLE, &3_u16)]);
        assert!(matches!(removed, Err(pm::RemoveDefaultPropertiesError::InvalidProperty(_))));
        let removed = it.remove_type_properties(&BANK.to_owned(), &vec![unknown.clone()]);
        assert!(matches!(removed, Err(pm::RemoveTypePropertiesError::UnsupportedProperty(_))));
        let both = vec![property(STYLE, &ft::STATELESS), property(CHECKPOINT, &10_000_u64)];
        let set = it.set_default_properties(&both);
        assert!(matches!(set, Err(pm::SetDefaultPropertiesError::InvalidProperty(_))), "{set:?}");
    });
    assert_eq!(manager.state(), before);
    let created =
        with(&mut manager, |it| it.create_object(&BANK.to_owned(), &wanted(vec![unknown])));
    assert!(matches!(created, Err(CreateObjectError::InvalidProperty(_))));
}

#[test]
fn criteria_are_refused_by_what_is_wrong_with_them() {
    let way = domain();
    let mut manager = manager(&way);
    let mut create = |type_id: &str, criteria: ft::Criteria| {
        with(&mut manager, |it| it.create_object(&type_id.to_owned(), &criteria))
            .expect_err("refused")
    };
    let invalid = vec![property("org.omg.ft.FTProperties", &5_u16)];
    assert!(matches!(create(BANK, invalid.clone()), CreateObjectError::InvalidCriteria(it)
            if it.invalid_criteria.len() == 1 && it.invalid_criteria[0].nam == invalid[0].nam));
    let unmet = vec![property("colour", &"blue".to_owned())];
    assert!(matches!(create(BANK, unmet), CreateObjectError::CannotMeetCriteria(_)));
    let many = wanted(vec![property(INITIAL, &6_u16)]);
    assert!(matches!(create(BANK, many), CreateObjectError::CannotMeetCriteria(it)
        if it.unmet_criteria[0].nam == name(INITIAL)));
    let other = create("IDL:Other:1.0", Vec::new());
    assert!(matches!(other, CreateObjectError::NoFactory(it) if it.type_id == "IDL:Other:1.0"));
    assert_eq!(manager.groups(), 0);
    assert_eq!(way.0.borrow().groups.len(), 1, "the manager's own");
}

#[test]
fn a_creation_that_fails_is_tried_elsewhere_and_leaves_nothing_if_there_is_no_elsewhere() {
    let way = domain();
    let mut manager = manager(&way);
    way.0.borrow_mut().failing.insert("n2".to_owned());
    let (group, _) =
        create(&mut manager, vec![property(INITIAL, &3_u16), property(MINIMUM, &3_u16)]);
    assert_eq!(locations(&mut manager, &group), ["n1", "n4", "n3"]);
    assert_eq!(version(&group), 2);
    way.0.borrow_mut().failing = (1..=5).map(|number| format!("n{number}")).collect();
    let created = with(&mut manager, |it| it.create_object(&BANK.to_owned(), &Vec::new()));
    assert!(matches!(created, Err(CreateObjectError::ObjectNotCreated(_))), "{created:?}");
    assert_eq!(way.0.borrow().groups.len(), 2);
    assert_eq!(manager.groups(), 1);
}

#[test]
fn members_come_and_go_and_each_change_has_a_version() {
    let way = domain();
    let mut manager = manager(&way);
    let (first, _) = create(&mut manager, vec![property(STYLE, &ft::WARM_PASSIVE)]);
    let bank = BANK.to_owned();
    let (second, third) = with(&mut manager, |it| {
        let present = it.create_member(&first, &name("n1"), &bank, &Vec::new());
        assert!(matches!(present, Err(ogm::CreateMemberError::MemberAlreadyPresent(_))));
        let nowhere = it.create_member(&first, &name("n9"), &bank, &Vec::new());
        assert!(matches!(nowhere, Err(ogm::CreateMemberError::NoFactory(it))
            if it.the_location == name("n9")));
        let second = it.create_member(&first, &name("n4"), &bank, &Vec::new()).expect("created");
        let missing = it.remove_member(&second, &name("n3"));
        assert!(matches!(missing, Err(ogm::RemoveMemberError::MemberNotFound(_))));
        // An old reference names the same group.
        let third = it.remove_member(&first, &name("n2")).expect("removed");
        (second, third)
    });
    assert_eq!([&first, &second, &third].map(version), [1, 2, 3]);
    assert_eq!(locations(&mut manager, &first), ["n1", "n4"]);
    with(&mut manager, |it| {
        let missing = it.set_primary_member(&first, &name("n2"));
        assert!(matches!(missing, Err(ogm::SetPrimaryMemberError::MemberNotFound(_))));
        let fourth = it.set_primary_member(&first, &name("n4")).expect("set");
        assert_eq!(version(&fourth), 4);
        assert_eq!(it.get_object_group_ref(&first), Ok(fourth));
        // It leads to the member's node, and is no reference to the group.
        let member = it.get_member_ref(&first, &name("n4")).expect("it is in");
        let hosts: Vec<_> = member.0.endpoints().iter().map(|one| one.host.to_string()).collect();
        assert_eq!((hosts, member.0.ft_group()), (vec!["n4".to_owned()], None));
        let missing = it.get_member_ref(&first, &name("n2"));
        assert!(matches!(missing, Err(ogm::GetMemberRefError::MemberNotFound(_))));
    });
    assert_eq!(way.0.borrow().groups["object-1"].leader, "n4");
    way.0.borrow_mut().nodes.insert("n1".to_owned(), false);
    with(&mut manager, |it| {
        let away = it.get_member_ref(&first, &name("n1"));
        assert!(matches!(away, Err(ogm::GetMemberRefError::System(it))
            if it.kind == ExceptionKind::Transient));
        let down = it.set_primary_member(&first, &name("n1"));
        assert!(matches!(down, Err(ogm::SetPrimaryMemberError::PrimaryNotSet(_))));
    });
    let (active, _) = create(&mut manager, Vec::new());
    with(&mut manager, |it| {
        let set = it.set_primary_member(&active, &name("n2"));
        assert!(matches!(set, Err(ogm::SetPrimaryMemberError::BadReplicationStyle(_))));
    });
}

#[test]
fn a_group_of_the_application_begins_empty_and_takes_its_objects() {
    let way = domain();
    let mut manager = manager(&way);
    let own = vec![property(MEMBERSHIP, &ft::MEMB_APP_CTRL)];
    let (group, _) = create(&mut manager, own.clone());
    assert!(group.0.endpoints().is_empty() && !group.is_nil(), "it names the group only");
    let server = |port| {
        let home = Home { addresses: vec![("s".to_owned(), port)], prefix: Vec::new() };
        home.object(BANK, b"ledger")
    };
    with(&mut manager, |it| {
        let added = it.add_member(&group, &name("n9"), &server(1));
        assert!(matches!(added, Err(ogm::AddMemberError::ObjectNotAdded(_))), "no such node");
        let added = it.add_member(&group, &name("n1"), &Object::nil());
        assert!(matches!(added, Err(ogm::AddMemberError::ObjectNotAdded(_))), "nothing");
        let one = it.add_member(&group, &name("n1"), &server(1)).expect("added");
        assert_eq!(version(&one), 2);
        let again = it.add_member(&group, &name("n1"), &server(1));
        assert!(matches!(again, Err(ogm::AddMemberError::MemberAlreadyPresent(_))));
        it.add_member(&group, &name("n2"), &server(2)).expect("added");
        assert_eq!(it.get_member_ref(&group, &name("n2")), Ok(server(2)));
        let local = it.create_member(&group, &name("n3"), &BANK.to_owned(), &Vec::new());
        assert!(matches!(local, Err(ogm::CreateMemberError::NoFactory(_))), "of another kind");
    });
    let keys = way.0.borrow().groups["object-1"].keys.clone();
    assert!(keys["connect"].starts_with("{ \"n1\" = \"IOR:"), "{keys:?}");
    assert_eq!(keys["state_object"], "\"ledger\"");
    // Nobody replaces a member that dies.
    way.0.borrow_mut().nodes.insert("n1".to_owned(), false);
    push(&mut manager, &fault("n1", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    with(&mut manager, |it| {
        it.remove_member(&group, &name("n1")).expect("removed");
        let empty = it.remove_member(&group, &name("n2")).expect("removed");
        assert!(empty.0.endpoints().is_empty());
        assert_eq!(version(&empty), 5);
    });
    assert!(!way.0.borrow().groups.contains_key("object-1"));
}

#[test]
fn consistency_by_the_application_means_no_states_and_the_replies_kept_that_others_have() {
    let way = domain();
    let mut manager = manager(&way);
    let by_application = || property(CONSISTENCY, &ft::CONS_APP_CTRL);
    create(&mut manager, vec![by_application()]);
    create(&mut manager, vec![by_application(), property(STYLE, &ft::STATELESS)]);
    let own = vec![by_application(), property(MEMBERSHIP, &ft::MEMB_APP_CTRL)];
    let (group, _) = create(&mut manager, own);
    with(&mut manager, |it| it.add_member(&group, &name("n1"), &factory(7))).expect("added");
    let keys = |group: &str, key| way.0.borrow().groups[group].keys.get(key).cloned();
    let application = Some("\"application\"".to_owned());
    for (group, recovery) in
        [("object-1", application.clone()), ("object-2", None), ("object-3", application)]
    {
        assert_eq!(keys(group, "recovery"), recovery, "{group}");
        assert_eq!(keys(group, "state_object"), None, "{group}");
        assert_eq!(keys(group, "reply_retention_ms"), None, "{group}");
    }
}

#[test]
fn what_needs_states_does_not_go_with_consistency_by_the_application() {
    let way = domain();
    let mut manager = manager(&way);
    let by_application = || property(CONSISTENCY, &ft::CONS_APP_CTRL);
    for style in [ft::COLD_PASSIVE, ft::WARM_PASSIVE, ft::ACTIVE_WITH_VOTING] {
        let both = vec![by_application(), property(STYLE, &style)];
        let created =
            with(&mut manager, |it| it.create_object(&BANK.to_owned(), &wanted(both.clone())));
        let Err(CreateObjectError::InvalidProperty(wrong)) = created else {
            panic!("{style}: {created:?}")
        };
        assert_eq!(wrong.nam, name(CONSISTENCY), "{style}");
        let set = with(&mut manager, |it| it.set_default_properties(&both));
        assert!(matches!(set, Err(pm::SetDefaultPropertiesError::InvalidProperty(_))), "{style}");
    }
    // What the type says is known to the domain alone.
    let why = "`recovery` = \"application\" with `durable`";
    way.0.borrow_mut().refuses = Some(why.to_owned());
    let create = |manager: &mut Manager<Way>, own| {
        with(manager, |it| it.create_object(&BANK.to_owned(), &wanted(own))).expect_err("refused")
    };
    let created = create(&mut manager, vec![by_application()]);
    assert!(
        matches!(&created, CreateObjectError::InvalidProperty(wrong)
        if wrong.nam == name(CONSISTENCY)),
        "{created:?}"
    );
    let created = create(&mut manager, Vec::new());
    assert!(matches!(created, CreateObjectError::ObjectNotCreated(_)), "it is not what it wants");
}

#[test]
fn a_property_that_the_domain_does_not_take_is_named() {
    let way = domain();
    let mut manager = manager(&way);
    let (group, _) = create(&mut manager, vec![property(INITIAL, &2_u16)]);
    way.0.borrow_mut().refuses = Some("whatever it is".to_owned());
    let before = manager.state();
    let minimum = property(MINIMUM, &2_u16);
    let set =
        with(&mut manager, |it| it.set_properties_dynamically(&group, &vec![minimum.clone()]));
    assert!(
        matches!(&set, Err(pm::SetPropertiesDynamicallyError::InvalidProperty(wrong))
        if wrong.nam == minimum.nam),
        "{set:?}"
    );
    assert_eq!(manager.state(), before);
}

#[test]
fn factories_of_the_application_are_called_and_cleaned_up() {
    let way = domain();
    let mut manager = manager(&way);
    way.0.borrow_mut().broken.insert(12);
    let infos = vec![factory_at(11, "n1"), factory_at(12, "n2"), factory_at(13, "n3")];
    let by_factories = |count: u16| vec![property(FACTORIES, &infos), property(INITIAL, &count)];
    let (group, id) = create(&mut manager, by_factories(2));
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"], "the next one did better");
    assert_eq!(way.0.borrow().made[&11].len(), 1);
    let created =
        with(&mut manager, |it| it.create_object(&BANK.to_owned(), &wanted(by_factories(3))));
    assert!(matches!(created, Err(CreateObjectError::ObjectNotCreated(_))));
    assert_eq!(way.0.borrow().made[&11].len(), 1, "what was made for it is gone again");
    with(&mut manager, |it| it.delete_object(&id)).expect("deleted");
    let made = |port| way.0.borrow().made[&port].len();
    assert_eq!((made(11), made(13)), (0, 0));
}

#[test]
fn the_minimum_is_restored_elsewhere_when_a_node_or_a_member_dies() {
    let way = domain();
    let mut manager = manager(&way);
    let (group, _) =
        create(&mut manager, vec![property(INITIAL, &3_u16), property(MINIMUM, &3_u16)]);
    let (large, _) =
        create(&mut manager, vec![property(INITIAL, &3_u16), property(MINIMUM, &2_u16)]);
    // A node, told of by 2 items.
    way.0.borrow_mut().nodes.insert("n2".to_owned(), false);
    push(&mut manager, &fault("n2", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n3", "n4"]);
    assert_eq!(locations(&mut manager, &large), ["n1", "n2", "n3"], "it has two");
    // The same is told again.
    push(&mut manager, &fault("n2", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n3", "n4"]);
    // A member, in TAO's words.
    way.0.borrow_mut().failing.insert("n3".to_owned());
    let item = |name: &str, value: Any| cn::Property { name: name.to_owned(), value };
    let type_id = item("TypeId", Any::new(&BANK.to_owned()).expect("a text"));
    let id = item("GroupId", Any::new(&1_u64).expect("a number"));
    push(&mut manager, &fault("n3", vec![type_id, id]));
    assert_eq!(locations(&mut manager, &group), ["n1", "n4", "n5"]);
    let now = with(&mut manager, |it| it.get_object_group_ref(&group)).expect("a group");
    assert_eq!(version(&now), 3);
    // Nobody is left to replace another one; when a node is back, it is.
    way.0.borrow_mut().nodes.insert("n4".to_owned(), false);
    push(&mut manager, &fault("n4", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n5", "n3"], "n3 is no member, so spare");
    way.0.borrow_mut().nodes.insert("n5".to_owned(), false);
    push(&mut manager, &fault("n5", Vec::new()));
    assert_eq!(locations(&mut manager, &group), ["n1", "n5", "n3"]);
    way.0.borrow_mut().nodes.insert("n2".to_owned(), true);
    let mut local = Local::new(&mut manager, WATCHER_KEY.as_bytes());
    assert_eq!(WatcherStub(&mut local).look(), Ok(1), "one group was short");
    assert_eq!(locations(&mut manager, &group), ["n1", "n3", "n2"]);
}

#[test]
fn a_manager_without_memory_finds_its_groups_in_the_domain() {
    let way = domain();
    let mut first = manager(&way);
    let (group, id) = create(&mut first, vec![property(INITIAL, &3_u16)]);
    let (empty, _) = create(&mut first, vec![property(MEMBERSHIP, &ft::MEMB_APP_CTRL)]);
    with(&mut first, |it| {
        it.set_default_properties(&vec![property(STYLE, &ft::COLD_PASSIVE)]).expect("set");
        it.register_fault_notifier(&factory(9)).expect("registered");
    });
    let mut second = manager(&way);
    assert_eq!(locations(&mut second, &group), ["n1", "n2", "n3"]);
    assert!(locations(&mut second, &empty).is_empty());
    assert_eq!(with(&mut second, |it| it.get_fault_notifier()), Ok(factory(9)));
    let (third, _) = create(&mut second, Vec::new());
    let number = with(&mut second, |it| it.get_object_group_id(&third)).expect("a group");
    assert!(number > 2, "{number} was given before");
    with(&mut second, |it| it.delete_object(&id)).expect("deleted");
    assert!(!way.0.borrow().groups.contains_key("object-1"));
}

#[test]
fn replicas_have_equal_states_and_a_new_one_takes_over() {
    let way = domain();
    let mut one = manager(&way);
    create(&mut one, vec![property(INITIAL, &3_u16)]);
    create(&mut one, vec![property(FACTORIES, &vec![factory_at(11, "n1"), factory_at(13, "n2")])]);
    with(&mut one, |it| it.set_default_properties(&vec![property(MINIMUM, &1_u16)])).expect("set");
    let mut other = manager(&way);
    other.take_over(&one.state()).expect("a state");
    assert_eq!(other.state(), one.state());
    let calls = way.0.borrow().calls;
    assert_eq!(other.groups(), 2);
    assert_eq!(way.0.borrow().calls, calls, "it need not ask");
    let before = other.state();
    assert!(other.take_over(b"nonsense").is_err());
    assert_eq!(other.state(), before);
}

#[test]
fn a_domain_that_cannot_now_is_transient_and_what_may_be_left_is_removed_later() {
    let way = domain();
    let mut manager = manager(&way);
    create(&mut manager, Vec::new());
    way.0.borrow_mut().busy = true;
    let created = with(&mut manager, |it| it.create_object(&BANK.to_owned(), &Vec::new()));
    let transient =
        SystemException { kind: ExceptionKind::Transient, minor: 0, completed: Completion::No };
    assert_eq!(created, Err(CreateObjectError::System(transient)));
    way.0.borrow_mut().busy = false;
    let mut local = Local::new(&mut manager, WATCHER_KEY.as_bytes());
    assert_eq!(WatcherStub(&mut local).look(), Ok(1));
    let mut local = Local::new(&mut manager, WATCHER_KEY.as_bytes());
    assert_eq!(WatcherStub(&mut local).look(), Ok(0));
}

#[test]
fn a_creation_that_is_broken_off_leaves_no_group_that_nobody_was_told_of() {
    let way = domain();
    let mut manager = manager(&way);
    // The number is reserved, the group is defined; its change cannot be done any more.
    way.0.borrow_mut().failing.insert("n2".to_owned());
    way.0.borrow_mut().busy_after = Some(2);
    let created = with(&mut manager, |it| it.create_object(&BANK.to_owned(), &Vec::new()));
    assert!(matches!(created, Err(CreateObjectError::System(it))
        if it.kind == ExceptionKind::Transient && it.completed == Completion::No));
    assert_eq!(manager.groups(), 0);
    (way.0.borrow_mut().busy_after, way.0.borrow_mut().busy) = (None, false);
    let mut local = Local::new(&mut manager, WATCHER_KEY.as_bytes());
    assert_eq!(WatcherStub(&mut local).look(), Ok(1), "it was removed as soon as it could be");
    assert_eq!(way.0.borrow().groups.len(), 1, "the manager's own");
}

#[test]
fn a_group_without_members_that_cannot_be_written_down_is_not_acknowledged() {
    let way = domain();
    let mut manager = manager(&way);
    create(&mut manager, Vec::new());
    way.0.borrow_mut().busy = true;
    let criteria = wanted(vec![property(MEMBERSHIP, &ft::MEMB_APP_CTRL)]);
    let created = with(&mut manager, |it| it.create_object(&BANK.to_owned(), &criteria));
    assert!(matches!(created, Err(CreateObjectError::System(it))
        if it.kind == ExceptionKind::Transient && it.completed == Completion::No));
    assert_eq!(manager.groups(), 1);
}

#[test]
fn a_removal_is_answered_although_the_minimum_is_restored_later() {
    let way = domain();
    let mut manager = manager(&way);
    let (group, _) =
        create(&mut manager, vec![property(INITIAL, &2_u16), property(MINIMUM, &2_u16)]);
    // The removal itself is done; what repairs it cannot be.
    way.0.borrow_mut().busy_after = Some(1);
    with(&mut manager, |it| it.remove_member(&group, &name("n1"))).expect("removed");
    assert_eq!(locations(&mut manager, &group), ["n2"]);
    (way.0.borrow_mut().busy_after, way.0.borrow_mut().busy) = (None, false);
    let mut local = Local::new(&mut manager, WATCHER_KEY.as_bytes());
    assert_eq!(WatcherStub(&mut local).look(), Ok(1));
    assert_eq!(locations(&mut manager, &group).len(), 2);
}

#[test]
fn the_notifier_is_what_was_registered() {
    let way = domain();
    let mut manager = manager(&way);
    with(&mut manager, |it| {
        let none = it.get_fault_notifier();
        assert!(matches!(none, Err(GetFaultNotifierError::InterfaceNotFound(_))));
        it.register_fault_notifier(&factory(9)).expect("registered");
        assert_eq!(it.get_fault_notifier(), Ok(factory(9)));
    });
}

#[test]
fn the_notifier_is_the_domains_own_until_another_one_is_registered() {
    let way = domain();
    let mut manager = manager(&way);
    let keys = [("members", "[\"n1\", \"n2\"]"), ("object_key", "\"FaultNotifier\"")];
    let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let own = Defined { keys, ..Defined::default() };
    way.0.borrow_mut().groups.insert("fault-notifier".to_owned(), own);
    let found = with(&mut manager, |it| it.get_fault_notifier()).expect("the domain's");
    let places = |object: &Object| {
        let all = object.0.endpoints().into_iter();
        all.map(|one| (one.host.to_string(), one.port, one.object_key.to_vec())).collect::<Vec<_>>()
    };
    let at = |key: &str| {
        let node = |node: &str| (node.to_owned(), 5000, format!("QRB/fault-notifier/{key}").into());
        vec![node("n1"), node("n2")]
    };
    assert_eq!(places(&found), at("FaultNotifier"));
    let mut local = Local::new(&mut manager, TAO_KEY.as_bytes());
    let of_tao = tao_ft::ReplicationManagerStub(&mut local).get_fault_notifier().expect("TAO's");
    assert_eq!(places(&of_tao), at("TAO/FaultNotifier"));
    with(&mut manager, |it| {
        it.register_fault_notifier(&factory(9)).expect("registered");
        assert_eq!(it.get_fault_notifier(), Ok(factory(9)));
        it.register_fault_notifier(&Object::nil()).expect("taken back");
        assert_eq!(it.get_fault_notifier(), Ok(found.clone()));
    });
    assert_eq!(manager.registered_notifier(), None);
}

// Every node tells of every member: of one that comes anew they may tell late.
#[test]
fn what_several_nodes_tell_of_one_end_is_handled_once() {
    let way = domain();
    let mut manager = manager(&way);
    let two = vec![property(INITIAL, &2_u16), property(MINIMUM, &2_u16)];
    let (group, _) = create(&mut manager, two);
    way.0.borrow_mut().failing.insert("n2".to_owned());
    push(&mut manager, &named(fault("n2", Vec::new()), "n2 0000 17"));
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"]);
    way.0.borrow_mut().nodes.insert("n1".to_owned(), false);
    way.0.borrow_mut().nodes.insert("n4".to_owned(), false);
    way.0.borrow_mut().nodes.insert("n5".to_owned(), false);
    with_watcher(&mut manager, |it| it.look()).expect("looked");
    assert_eq!(locations(&mut manager, &group), ["n3", "n2"], "its server is being started");
    way.0.borrow_mut().nodes.insert("n4".to_owned(), true);
    let mut other = stage::manager(&way);
    other.take_over(&manager.state()).expect("a state");
    for it in [&mut manager, &mut other] {
        push(it, &named(fault("n2", Vec::new()), "n2 0000 17"));
        assert_eq!(locations(it, &group), ["n3", "n2"]);
    }
    push(&mut manager, &named(fault("n2", Vec::new()), "n2 0000 18"));
    assert_eq!(locations(&mut manager, &group), ["n3", "n4"]);
}

#[test]
fn clients_of_tao_hear_the_same_in_their_own_form() {
    let way = domain();
    let mut manager = manager(&way);
    let mut local = Local::new(&mut manager, TAO_KEY.as_bytes());
    let mut it = tao_ft::ReplicationManagerStub(&mut local);
    let tao = |id: &str, value: Any| Property { nam: name(id), val: value };
    it.set_default_properties(&vec![
        tao("org.omg.PortableGroup.InitialNumberMembers", Any::new(&3_u16).expect("a number")),
        tao(STYLE, Any::new(&i32::from(ft::SEMI_ACTIVE)).expect("a number")),
    ])
    .expect("set");
    let defaults = it.get_default_properties().expect("read");
    let style = defaults.iter().find(|one| one.nam == name(STYLE)).expect("set");
    assert_eq!(style.val.get::<i32>(), Some(5), "TAO has `long`");
    let own = vec![pg::Property {
        nam: name("org.omg.PortableGroup.MinimumNumberMembers"),
        val: Any::new(&2_u16).expect("a number"),
    }];
    let criteria = vec![property("org.omg.ft.FTProperties", &own)];
    let (group, id) = it.create_object(&BANK.to_owned(), &criteria).expect("created");
    assert_eq!(id.get::<u64>(), Some(1));
    assert_eq!(it.groups_at_location(&name("n2")), Ok(vec![group.clone()]));
    assert_eq!(it.get_object_group_ref_from_id(&1), Ok(group.clone()));
    let missing = it.get_object_group_ref_from_id(&7);
    assert!(matches!(
        missing,
        Err(pg::object_group_manager::GetObjectGroupRefFromIdError::ObjectGroupNotFound(_))
    ));
    let registry = it.get_factory_registry(&Vec::new()).expect("a registry");
    it.shutdown().expect("sent");
    assert!(!registry.is_nil());
    assert_eq!(way.0.borrow().groups["object-1"].keys["style"], "\"semi-active\"");
    assert_eq!(way.0.borrow().groups[OWN].members(), Vec::<String>::new());
}

#[test]
fn factories_that_are_registered_create_what_is_of_their_type() {
    let way = domain();
    let mut manager = manager(&way);
    let mut local = Local::new(&mut manager, b"TAO/FactoryRegistry");
    let mut it = pg::FactoryRegistryStub(&mut local);
    let (role, bank) = ("banks".to_owned(), BANK.to_owned());
    it.register_factory(&role, &bank, &factory_at(11, "n1")).expect("registered");
    it.register_factory(&role, &bank, &factory_at(12, "n2")).expect("registered");
    use pg::factory_registry::{RegisterFactoryError, UnregisterFactoryError};
    let again = it.register_factory(&role, &bank, &factory_at(11, "n1"));
    assert!(matches!(again, Err(RegisterFactoryError::MemberAlreadyPresent(_))));
    let other = it.register_factory(&role, &"IDL:Other:1.0".to_owned(), &factory_at(11, "n3"));
    assert!(matches!(other, Err(RegisterFactoryError::TypeConflict(_))));
    let (listed, of) = it.list_factories_by_role(&role).expect("listed");
    assert_eq!((listed.len(), of), (2, bank.clone()));
    assert_eq!(it.list_factories_by_location(&name("n2")).expect("listed").len(), 1);
    let (group, _) = create(&mut manager, Vec::new());
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    assert_eq!(way.0.borrow().made[&12].len(), 1);
    let mut local = Local::new(&mut manager, b"TAO/FactoryRegistry");
    let mut it = pg::FactoryRegistryStub(&mut local);
    it.unregister_factory(&role, &name("n1")).expect("removed");
    let missing = it.unregister_factory(&role, &name("n1"));
    assert!(matches!(missing, Err(UnregisterFactoryError::MemberNotFound(_))));
    it.unregister_factory_by_location(&name("n2")).expect("removed");
    assert_eq!(it.list_factories_by_role(&role).expect("listed").0.len(), 0);
    it.register_factory(&role, &bank, &factory_at(11, "n1")).expect("registered");
    it.unregister_factory_by_role(&role).expect("removed");
    assert_eq!(it.list_factories_by_location(&name("n1")).expect("listed").len(), 0);
}
