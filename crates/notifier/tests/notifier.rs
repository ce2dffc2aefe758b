//! The notifier, called through its stubs: every operation and every exception.

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Home, Local, Object};
use quorba_idl::cos_event_comm::Disconnected;
use quorba_idl::cos_notification::{self as cn, EventType, StructuredEvent};
use quorba_idl::cos_notify_filter::filter::{
    AddConstraintsError, GetConstraintsError, ModifyConstraintsError,
};
use quorba_idl::cos_notify_filter::{ConstraintExp, ConstraintInfo, FilterStub};
use quorba_idl::ft::FaultNotifierStub;
use quorba_idl::ft::fault_notifier::DisconnectConsumerError;
use quorba_idl::quorba::{FaultDeliveryStub, Pendings};
use quorba_idl::tao_ft;
use quorba_notifier::event::{DOMAIN_NAME, Report, TYPE_NAME};
use quorba_notifier::{DELIVERY_KEY, Limits, MANAGER, NOTIFIER_KEY, Notifier, TAO_KEY};

fn home() -> Home {
    Home { addresses: vec![("n1".to_owned(), 2811)], prefix: Vec::new() }
}

fn notifier() -> Notifier {
    Notifier::new(home(), "test", Limits::default())
}

fn consumer(port: u16) -> Object {
    let home = Home { addresses: vec![("consumer".to_owned(), port)], prefix: Vec::new() };
    home.object("IDL:omg.org/CosNotifyComm/StructuredPushConsumer:1.0", b"consumer")
}

fn report(location: &str, group: Option<u64>, incident: &str) -> Report {
    Report {
        domain_id: "test".to_owned(),
        location: location.to_owned(),
        type_id: group.map(|_| "IDL:Bank/Ledger:1.0".to_owned()),
        group,
        incident: incident.to_owned(),
    }
}

fn with<R>(notifier: &mut Notifier, call: impl FnOnce(&mut FaultNotifierStub<'_>) -> R) -> R {
    let mut local = Local::new(notifier, NOTIFIER_KEY.as_bytes());
    call(&mut FaultNotifierStub(&mut local))
}

fn delivery<R>(notifier: &mut Notifier, call: impl FnOnce(&mut FaultDeliveryStub<'_>) -> R) -> R {
    let mut local = Local::new(notifier, DELIVERY_KEY.as_bytes());
    call(&mut FaultDeliveryStub(&mut local))
}

fn push(notifier: &mut Notifier, report: &Report) {
    with(notifier, |it| it.push_structured_fault(&report.to_event())).expect("taken");
}

fn pending(notifier: &mut Notifier) -> Pendings {
    delivery(notifier, |it| it.pending(&100)).expect("listed")
}

/// Consumer, last report and number of reports of what waits.
fn numbers(notifier: &mut Notifier) -> Vec<(u64, u64, usize)> {
    let pending = pending(notifier);
    pending.iter().map(|one| (one.consumer, one.last, one.events.len())).collect()
}

const BAD_PARAM: SystemException =
    SystemException { kind: ExceptionKind::BadParam, minor: 0, completed: Completion::No };

#[test]
fn reports_wait_for_each_consumer_until_it_has_them() {
    let mut it = notifier();
    let (one, batch) = with(&mut it, |it| {
        let one = it.connect_structured_fault_consumer(&consumer(1)).expect("connected");
        (one, it.connect_sequence_fault_consumer(&consumer(2)).expect("connected"))
    });
    push(&mut it, &report("n1", Some(1), "a"));
    push(&mut it, &report("n1", Some(2), "b"));
    let events = [report("n2", Some(1), "c"), report("n2", Some(2), "d")].map(|it| it.to_event());
    with(&mut it, |it| it.push_sequence_fault(&events.to_vec())).expect("taken");
    assert_eq!(numbers(&mut it), [(one, 1, 1), (batch, 4, 4)]);
    assert!(pending(&mut it)[1].events[3].filterable_data.len() == 4);
    delivery(&mut it, |it| {
        it.delivered(&one, &1).expect("heard");
        it.delivered(&batch, &3).expect("heard");
        it.delivered(&batch, &2).expect("heard, late");
    });
    assert_eq!(numbers(&mut it), [(one, 2, 1), (batch, 4, 1)]);
    with(&mut it, |it| {
        it.disconnect_consumer(&one).expect("disconnected");
        let again = it.disconnect_consumer(&one);
        assert_eq!(again, Err(DisconnectConsumerError::Disconnected(Disconnected {})));
        assert_eq!(it.connect_structured_fault_consumer(&Object::nil()), Err(BAD_PARAM));
    });
    assert_eq!(numbers(&mut it), [(batch, 4, 1)]);
}

#[test]
fn a_dead_node_is_told_once_and_its_objects_are_not_told_beside_it() {
    let mut it = notifier();
    with(&mut it, |it| it.connect_sequence_fault_consumer(&consumer(1))).expect("connected");
    push(&mut it, &report("n1", None, "n1 boot 1"));
    push(&mut it, &report("n1", None, "n1 boot 1"));
    push(&mut it, &report("n1", None, "n1, said by somebody else"));
    push(&mut it, &report("n1", Some(1), "member"));
    push(&mut it, &report("n2", Some(1), "member of n2"));
    assert_eq!(numbers(&mut it), [(1, 2, 2)]);
    delivery(&mut it, |it| it.node_is_up(&"n1".to_owned())).expect("heard");
    push(&mut it, &report("n1", None, "n1 boot 1"));
    push(&mut it, &report("n1", Some(1), "its server"));
    push(&mut it, &report("n1", None, "n1 boot 2"));
    assert_eq!(numbers(&mut it), [(1, 4, 4)]);
    // Of another domain nothing is known.
    let other = Report { domain_id: "other".to_owned(), ..report("n1", None, "x") };
    push(&mut it, &other);
    push(&mut it, &other);
    assert_eq!(numbers(&mut it), [(1, 6, 6)]);
}

#[test]
fn what_nodes_tell_late_of_a_view_is_no_news() {
    let mut it = notifier();
    with(&mut it, |it| it.connect_sequence_fault_consumer(&consumer(1))).expect("connected");
    let up = |it: &mut Notifier, view: &str| {
        delivery(it, |it| it.node_is_up(&view.to_owned())).expect("heard");
    };
    push(&mut it, &report("n1", None, "n1 view 5"));
    // Another node has seen it come before it went, and says so only now.
    up(&mut it, "n1 view 4");
    push(&mut it, &report("n1", None, "n1 view 6"));
    assert_eq!(numbers(&mut it), [(1, 1, 1)]);
    up(&mut it, "n1 view 7");
    push(&mut it, &report("n1", None, "n1 view 3"));
    assert_eq!(numbers(&mut it), [(1, 1, 1)], "it has come since");
    push(&mut it, &report("n1", None, "n1 view 8"));
    assert_eq!(numbers(&mut it), [(1, 2, 2)]);
}

/// Whether a report passes a constraint; nothing if that is none.
fn matched(constraint: &str, event: &StructuredEvent) -> Option<bool> {
    let mut it = notifier();
    let id = with(&mut it, |it| it.connect_sequence_fault_consumer(&consumer(1))).expect("new");
    let set = with(&mut it, |it| it.replace_constraint(&id, &Vec::new(), &constraint.to_owned()));
    if set == Err(BAD_PARAM) {
        return None;
    }
    set.expect("set");
    with(&mut it, |it| it.push_structured_fault(event)).expect("taken");
    Some(!pending(&mut it).is_empty())
}

#[test]
fn constraints_are_in_the_language_of_the_standard() {
    let event = report("n1", Some(7), "i").to_event();
    let yes = [
        "",
        "TRUE",
        "$FTDomainId == 'test'",
        "$ObjectGroupId == 7",
        "$Location[0].id == 'n1' and $ObjectGroupId > 3 and $ObjectGroupId < 8",
        "not ($ObjectGroupId == 8)",
        "$ObjectGroupId == 8 or 'Ledger' ~ $TypeId",
        "exist $TypeId and not exist $Colour",
        "$ObjectGroupId * 2 + 1 == 15",
        "$ObjectGroupId / 2.0 == 3.5",
        "-$ObjectGroupId == -7",
        "$type_name == 'ObjectCrashFault' and $domain_name == 'FT_CORBA'",
        "$.header.fixed_header.event_type.type_name == 'ObjectCrashFault'",
        "$.filterable_data(ObjectGroupId) == 7",
        "$.filterable_data[0].name == 'FTDomainId'",
        "$.filterable_data._length == 4 and $Location._length == 1",
        "'n1' in $Location",
        r"'it\'s' != 'its'",
        "1 == 1.0",
    ];
    for constraint in yes {
        assert_eq!(matched(constraint, &event), Some(true), "{constraint}");
    }
    // What has no answer does not match, whatever stands behind it.
    let no =
        ["FALSE", "$", "$ObjectGroupId == 8", "$Colour == 3 or TRUE", "$TypeId == 7", "1 / 0 == 1"];
    for constraint in no {
        assert_eq!(matched(constraint, &event), Some(false), "{constraint}");
    }
    let deep = ["(".repeat(100), "TRUE".to_owned(), ")".repeat(100)].concat();
    let long = vec!["TRUE"; 200].join(" and ");
    let nots = "not ".repeat(200) + "TRUE";
    let wrong = ["==", "$a ==", "'open", "(TRUE", "TRUE)", "a b", "1 +", "$a[", "$a[x]", "not"];
    let too_much = ["99999999999999999999999999999999999999999999", &deep, &long, &nots];
    for constraint in wrong.into_iter().chain(too_much) {
        assert_eq!(matched(constraint, &event), None, "{constraint}");
    }
}

#[test]
fn constraints_are_about_types_of_events() {
    let mut it = notifier();
    let id = with(&mut it, |it| it.connect_sequence_fault_consumer(&consumer(1))).expect("new");
    let of = |domain: &str, kind: &str| {
        vec![EventType { domain_name: domain.to_owned(), type_name: kind.to_owned() }]
    };
    let mut gets = |types: &Vec<EventType>, incident: &str| {
        with(&mut it, |it| it.replace_constraint(&id, types, &String::new())).expect("set");
        let before = pending(&mut it).first().map_or(0, |one| one.events.len());
        push(&mut it, &report("n1", Some(1), incident));
        pending(&mut it).first().map_or(0, |one| one.events.len()) > before
    };
    assert!(gets(&of(DOMAIN_NAME, TYPE_NAME), "a"));
    assert!(gets(&of("*", "%ALL"), "b"));
    assert!(!gets(&of("Telecom", "*"), "c"));
    assert!(gets(&Vec::new(), "d"));
    let nobody = with(&mut it, |it| it.replace_constraint(&9, &Vec::new(), &String::new()));
    assert_eq!(nobody, Err(BAD_PARAM));
}

#[test]
fn clients_of_tao_have_filters() {
    let mut it = notifier();
    let mut local = Local::new(&mut it, TAO_KEY.as_bytes());
    let mut stub = tao_ft::FaultNotifierStub(&mut local);
    assert_eq!(stub.is_alive(), Ok(true));
    assert!(stub.create_subscription_filter(&"PROLOG".to_owned()).is_err());
    let filter = stub.create_subscription_filter(&"EXTENDED_TCL".to_owned()).expect("a filter");
    let id = stub.connect_structured_fault_consumer(&consumer(1), &filter).expect("connected");
    let foreign = stub.connect_sequence_fault_consumer(&consumer(1), &consumer(2));
    assert_eq!(foreign, Err(BAD_PARAM));
    stub.connect_sequence_fault_consumer(&consumer(2), &Object::nil()).expect("connected");
    let key = home().key_of(&filter).expect("ours");
    let mut local = Local::new(&mut it, &key);
    let mut stub = FilterStub(&mut local);
    assert_eq!(stub.constraint_grammar(), Ok("EXTENDED_TCL".to_owned()));
    let exp =
        |text: &str| ConstraintExp { event_types: Vec::new(), constraint_expr: text.to_owned() };
    let wrong = stub.add_constraints(&vec![exp("TRUE"), exp("(")]);
    assert!(matches!(wrong, Err(AddConstraintsError::InvalidConstraint(it))
        if it.constr.constraint_expr == "("));
    assert_eq!(stub.get_all_constraints().expect("listed"), []);
    let added = stub.add_constraints(&vec![exp("$ObjectGroupId == 2")]).expect("added");
    let number = added[0].constraint_id;
    assert_eq!(stub.get_constraints(&vec![number]).expect("listed"), added);
    assert!(stub.get_constraints(&vec![99]).is_err());
    let constraint_expression = exp("$ObjectGroupId == 1");
    let other = ConstraintInfo { constraint_id: number, constraint_expression };
    stub.modify_constraints(&Vec::new(), &vec![other]).expect("changed");
    let missing = stub.modify_constraints(&vec![99], &Vec::new());
    assert!(matches!(missing, Err(ModifyConstraintsError::ConstraintNotFound(it)) if it.id == 99));
    let event = report("n1", Some(1), "").to_event();
    assert_eq!(stub.match_structured(&event), Ok(true));
    assert_eq!(stub.r#match(&Any::new(&event).expect("an event")), Ok(true));
    assert!(stub.r#match(&Any::new(&1_u32).expect("a number")).is_err());
    push(&mut it, &report("n1", Some(2), "a"));
    push(&mut it, &report("n1", Some(1), "b"));
    assert_eq!(numbers(&mut it), [(id, 2, 1), (2, 2, 2)]);
    let mut local = Local::new(&mut it, &key);
    let mut stub = FilterStub(&mut local);
    stub.remove_all_constraints().expect("removed");
    stub.destroy().expect("destroyed");
    assert!(stub.get_all_constraints().is_err(), "it is gone");
}

#[test]
fn each_form_has_its_own_name_of_a_group_and_constraints_know_both() {
    let mut it = notifier();
    let all = with(&mut it, |it| it.connect_sequence_fault_consumer(&consumer(1))).expect("new");
    let mut local = Local::new(&mut it, TAO_KEY.as_bytes());
    let mut stub = tao_ft::FaultNotifierStub(&mut local);
    let filter = stub.create_subscription_filter(&String::new()).expect("a filter");
    stub.connect_sequence_fault_consumer(&consumer(2), &filter).expect("connected");
    stub.connect_sequence_fault_consumer(&consumer(3), &Object::nil()).expect("connected");
    let key = home().key_of(&filter).expect("ours");
    let wanted = "$GroupId == 7 and $.filterable_data(GroupId) == 7".to_owned();
    let exp = ConstraintExp { event_types: Vec::new(), constraint_expr: wanted };
    FilterStub(&mut Local::new(&mut it, &key)).add_constraints(&vec![exp]).expect("added");
    // One in each form.
    push(&mut it, &report("n1", Some(7), "a"));
    let mut of_tao = report("n1", Some(7), "b").to_event();
    of_tao.filterable_data[3].name = "GroupId".to_owned();
    with(&mut it, |it| it.push_structured_fault(&of_tao)).expect("taken");
    push(&mut it, &report("n1", Some(8), "c"));
    let names = pending(&mut it).into_iter().map(|one| {
        let name = |event: StructuredEvent| event.filterable_data[3].name.clone();
        (one.consumer, one.events.into_iter().map(name).collect::<Vec<_>>())
    });
    let names: Vec<_> = names.collect();
    assert_eq!(names[0], (all, vec!["ObjectGroupId".to_owned(); 3]));
    assert_eq!(names[1].1, ["GroupId"; 2], "those of group 7");
    assert_eq!(names[2].1, ["GroupId"; 3]);
    let listed = delivery(&mut it, |it| it.consumers(&1, &100)).expect("listed");
    let listed: Vec<_> =
        listed.iter().map(|one| (one.consumer, one.is_of_tao, one.waiting)).collect();
    assert_eq!(listed, [(2, true, 2), (3, true, 3)]);
    // What is no report is nobody's form.
    let mut other = of_tao;
    other.header.fixed_header.event_type.type_name = "Weather".to_owned();
    with(&mut it, |it| it.push_structured_fault(&other)).expect("taken");
    let first = pending(&mut it).remove(0).events.remove(3);
    assert_eq!(first.filterable_data[3].name, "GroupId");
}

#[test]
fn a_constraint_that_is_asked_for_twice_is_given_twice() {
    let mut it = notifier();
    let mut local = Local::new(&mut it, TAO_KEY.as_bytes());
    let mut stub = tao_ft::FaultNotifierStub(&mut local);
    let filter = stub.create_subscription_filter(&String::new()).expect("a filter");
    let key = home().key_of(&filter).expect("ours");
    let mut local = Local::new(&mut it, &key);
    let mut stub = FilterStub(&mut local);
    let exp = ConstraintExp { event_types: Vec::new(), constraint_expr: "TRUE".to_owned() };
    let one = stub.add_constraints(&vec![exp]).expect("added").remove(0);
    let (id, twice) = (one.constraint_id, vec![one.clone(), one]);
    assert_eq!(stub.get_constraints(&vec![id, id]).expect("listed"), twice);
    let many = stub.get_constraints(&vec![id; 65]);
    let GetConstraintsError::System(raised) = many.expect_err("more than there can be") else {
        panic!("it is there")
    };
    assert_eq!(raised.kind, ExceptionKind::ImpLimit);
}

#[test]
fn a_report_of_an_object_that_stands_for_its_location_is_not_of_the_node() {
    let mut it = notifier();
    with(&mut it, |it| it.connect_sequence_fault_consumer(&consumer(1))).expect("connected");
    let mut of_object = report("n1", None, "n1 object 1").to_event();
    let value = Any::new(&true).expect("a boolean");
    let item = cn::Property { name: "QuorbaUnanswered".to_owned(), value };
    of_object.filterable_data.push(item);
    // A replica that takes over tells it again.
    for _ in 0..2 {
        with(&mut it, |it| it.push_structured_fault(&of_object)).expect("taken");
    }
    push(&mut it, &report("n1", Some(1), "its server"));
    push(&mut it, &report("n1", None, "n1 view 4"));
    assert_eq!(numbers(&mut it), [(1, 3, 3)]);
}

#[test]
fn a_consumer_that_takes_nothing_is_cut_off_with_a_reason_and_costs_nobody_anything() {
    let limits = Limits { waiting_max: 3, recent_max: 2, ..Limits::default() };
    let mut it = Notifier::new(home(), "test", limits);
    let (slow, quick) = with(&mut it, |it| {
        let slow = it.connect_structured_fault_consumer(&consumer(1)).expect("connected");
        (slow, it.connect_structured_fault_consumer(&consumer(2)).expect("connected"))
    });
    for number in 1..=4 {
        push(&mut it, &report("n1", Some(number), &number.to_string()));
        delivery(&mut it, |it| it.delivered(&quick, &number)).expect("heard");
    }
    assert!(numbers(&mut it).is_empty(), "one has all, the other is gone");
    delivery(&mut it, |it| {
        let cut_off = it.cut_offs().expect("listed");
        assert_eq!(cut_off.len(), 1);
        assert!(cut_off[0].consumer == slow && cut_off[0].why.contains("3 reports"));
        assert_eq!((&cut_off[0].reference, cut_off[0].is_told), (&consumer(1), false));
        it.parted(&slow).expect("heard");
        assert!(it.cut_offs().expect("listed")[0].is_told);
        let kept = it.reports(&0, &100).expect("listed");
        assert_eq!(kept.iter().map(|one| one.number).collect::<Vec<_>>(), [3, 4]);
        it.cut_off(&quick, &"it is unreachable".to_owned()).expect("heard");
        assert_eq!(it.cut_offs().expect("listed").len(), 2);
    });
}

#[test]
fn replicas_have_equal_states_and_a_new_one_takes_over() {
    let mut one = notifier();
    let id = with(&mut one, |it| it.connect_sequence_fault_consumer(&consumer(1))).expect("new");
    let constraint = "$ObjectGroupId > 0".to_owned();
    with(&mut one, |it| it.replace_constraint(&id, &Vec::new(), &constraint)).expect("set");
    push(&mut one, &report("n1", Some(3), "a"));
    push(&mut one, &report("n2", None, "b"));
    let mut other = notifier();
    other.take_over(&one.state()).expect("a state");
    assert_eq!(other.state(), one.state());
    for it in [&mut one, &mut other] {
        push(it, &report("n2", Some(1), "c"));
        push(it, &report("n3", Some(1), "d"));
    }
    assert_eq!(other.state(), one.state());
    assert_eq!(numbers(&mut other), [(id, 3, 2)]);
    let before = other.state();
    assert!(other.take_over(b"nonsense").is_err());
    assert_eq!(other.state(), before);
}

/// The last number that waits for the manager, and how many reports.
fn for_manager(notifier: &Notifier) -> Option<(u64, usize)> {
    notifier.for_manager(0, 100).map(|(last, events)| (last, events.len()))
}

#[test]
fn the_manager_is_told_what_others_than_nodes_report() {
    let mut it = notifier();
    push(&mut it, &report("n1", Some(1), "said by a node"));
    assert_eq!(for_manager(&it), None);
    push(&mut it, &report("n1", Some(1), ""));
    push(&mut it, &report("n2", None, ""));
    let mut of_detector = report("n1", Some(2), "").to_event();
    let value = Any::new(&true).expect("a boolean");
    let item = cn::Property { name: "QuorbaUnanswered".to_owned(), value };
    of_detector.filterable_data.push(item);
    with(&mut it, |it| it.push_structured_fault(&of_detector)).expect("taken");
    push(&mut it, &Report { domain_id: "other".to_owned(), ..report("n1", None, "") });
    assert_eq!(for_manager(&it), Some((3, 2)));
    // Another replica goes on with it.
    let mut other = notifier();
    other.take_over(&it.state()).expect("a state");
    delivery(&mut other, |it| it.delivered(&MANAGER, &2)).expect("heard");
    assert_eq!(for_manager(&other), Some((3, 1)));
    delivery(&mut other, |it| it.delivered(&MANAGER, &3)).expect("heard");
    assert_eq!(for_manager(&other), None);
}

#[test]
fn what_others_say_of_a_location_does_not_keep_back_what_comes_after_it() {
    let mut it = notifier();
    with(&mut it, |it| it.connect_sequence_fault_consumer(&consumer(1))).expect("connected");
    push(&mut it, &report("n1", None, ""));
    push(&mut it, &report("n1", Some(1), "its server"));
    assert_eq!(numbers(&mut it), [(1, 2, 2)]);
}

#[test]
fn a_manager_that_takes_nothing_costs_the_oldest_reports() {
    let limits = Limits { waiting_max: 3, ..Limits::default() };
    let mut it = Notifier::new(home(), "test", limits);
    (1..=5).for_each(|group| push(&mut it, &report("n1", Some(group), "")));
    assert_eq!(for_manager(&it), Some((5, 3)));
}

#[test]
fn a_state_without_what_the_manager_is_told_is_still_read() {
    let mut it = notifier();
    push(&mut it, &report("n1", Some(1), "a"));
    let state = it.state();
    // As the version before wrote it: another head, and no count at the end.
    let mut old = state[..state.len() - 4].to_vec();
    old[7] = 1;
    let mut newer = state.clone();
    newer[7] = 2;
    for state_before in [old, newer] {
        let mut other = notifier();
        other.take_over(&state_before).expect("a state");
        assert_eq!(other.state(), state);
    }
}
