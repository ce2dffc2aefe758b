//! What the replica that leads does next for each consumer.

use quorba_corba::{Home, Local, Object};
use quorba_idl::ft::FaultNotifierStub;
use quorba_idl::quorba::FaultDeliveryStub;
use quorba_notifier::event::Report;
use quorba_notifier::{
    Courier, DELIVERY_KEY, Errand, Limits, MANAGER, NOTIFIER_KEY, NotTaken, Notifier, PATIENCE,
};
use std::time::Duration;

fn home(port: u16) -> Home {
    Home { addresses: vec![("somewhere".to_owned(), port)], prefix: Vec::new() }
}

fn notifier() -> Notifier {
    Notifier::new(home(2811), "test", Limits::default())
}

fn consumer(port: u16) -> Object {
    home(port).object("IDL:omg.org/CosNotifyComm/StructuredPushConsumer:1.0", b"consumer")
}

fn connect(notifier: &mut Notifier, is_batch: bool) -> u64 {
    let mut local = Local::new(notifier, NOTIFIER_KEY.as_bytes());
    let mut stub = FaultNotifierStub(&mut local);
    if is_batch {
        stub.connect_sequence_fault_consumer(&consumer(1)).expect("connected")
    } else {
        stub.connect_structured_fault_consumer(&consumer(1)).expect("connected")
    }
}

/// Of an object of group `group`, told by nobody in particular.
fn report(notifier: &mut Notifier, group: u64) {
    let report = Report {
        domain_id: "test".to_owned(),
        location: "n1".to_owned(),
        type_id: None,
        group: Some(group),
        incident: String::new(),
    };
    let mut local = Local::new(notifier, NOTIFIER_KEY.as_bytes());
    FaultNotifierStub(&mut local).push_structured_fault(&report.to_event()).expect("taken");
}

fn delivered(notifier: &mut Notifier, consumer: u64, last: u64) {
    let mut local = Local::new(notifier, DELIVERY_KEY.as_bytes());
    FaultDeliveryStub(&mut local).delivered(&consumer, &last).expect("heard");
}

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Consumer, last report and groups of a push that is to be done.
fn pushes(errands: &[Errand]) -> Vec<(u64, u64, Vec<u64>)> {
    let push = |errand: &Errand| match errand {
        Errand::Push(pending) => {
            let groups = pending.events.iter().map(|event| {
                Report::of_event(event).and_then(|report| report.group).expect("a group")
            });
            (pending.consumer, pending.last, groups.collect())
        }
        other => panic!("{other:?} is no push"),
    };
    errands.iter().map(push).collect()
}

fn not_taken(is_final: bool) -> Result<(), NotTaken> {
    Err(NotTaken { text: "it does not answer".to_owned(), is_final })
}

#[test]
fn each_consumer_has_one_errand_at_a_time() {
    let (mut it, mut courier) = (notifier(), Courier::default());
    let (one, batch) = (connect(&mut it, false), connect(&mut it, true));
    (1..=2).for_each(|group| report(&mut it, group));
    let errands = courier.look(&it, 10, at(0));
    assert_eq!(pushes(&errands), [(one, 1, vec![1]), (batch, 2, vec![1, 2])]);
    assert_eq!(courier.look(&it, 10, at(0)), []);
    let next = courier.pushed(&it, (one, 1), Ok(()), at(0));
    assert_eq!(next, Some(Errand::Delivered { consumer: one, last: 1 }));
    delivered(&mut it, one, 1);
    courier.said(one, true, at(0));
    assert_eq!(pushes(&courier.look(&it, 10, at(0))), [(one, 2, vec![2])]);
}

#[test]
fn what_a_consumer_has_taken_is_said_again_and_not_pushed_again() {
    let (mut it, mut courier) = (notifier(), Courier::default());
    let id = connect(&mut it, true);
    report(&mut it, 1);
    courier.look(&it, 10, at(0));
    courier.pushed(&it, (id, 1), Ok(()), at(0));
    courier.said(id, false, at(0));
    report(&mut it, 2);
    assert_eq!(courier.look(&it, 10, at(0)), [], "a moment later");
    assert_eq!(courier.look(&it, 10, at(1)), [Errand::Delivered { consumer: id, last: 1 }]);
    courier.said(id, true, at(1));
    // This replica has not heard it yet.
    assert_eq!(pushes(&courier.look(&it, 10, at(1))), [(id, 2, vec![2])]);
}

// A replica that was cut off had a report that nobody else has; another one has its number now.
#[test]
fn nothing_is_said_of_reports_of_another_state() {
    for is_pushed_before in [true, false] {
        let (mut it, mut other, mut courier) = (notifier(), notifier(), Courier::default());
        let id = connect(&mut it, true);
        connect(&mut other, true);
        report(&mut it, 1);
        report(&mut other, 2);
        assert_eq!(pushes(&courier.look(&it, 10, at(0))), [(id, 1, vec![1])]);
        if is_pushed_before {
            let next = courier.pushed(&it, (id, 1), Ok(()), at(0));
            assert!(next.is_some(), "it is to be said");
            it.take_over(&other.state()).expect("a state");
            courier.said(id, false, at(0));
        } else {
            it.take_over(&other.state()).expect("a state");
            assert_eq!(courier.look(&it, 10, at(1)), [], "the push is under way");
            assert_eq!(courier.pushed(&it, (id, 1), Ok(()), at(1)), None);
        }
        assert_eq!(pushes(&courier.look(&it, 10, at(2))), [(id, 1, vec![2])]);
    }
}

#[test]
fn the_manager_is_told_what_has_the_number_of_a_lost_report() {
    let (mut it, mut other, mut courier) = (notifier(), notifier(), Courier::default());
    report(&mut it, 1);
    report(&mut other, 2);
    let first = courier.look_for_manager(&it, 10, at(0)).expect("it has to be told");
    assert_eq!(pushes(&[first]), [(MANAGER, 1, vec![1])]);
    let next = courier.pushed(&it, (MANAGER, 1), Ok(()), at(0));
    assert_eq!(next, Some(Errand::Delivered { consumer: MANAGER, last: 1 }));
    courier.said(MANAGER, false, at(0));
    it.take_over(&other.state()).expect("a state");
    let again = courier.look_for_manager(&it, 10, at(1)).expect("it has to be told");
    assert_eq!(pushes(&[again]), [(MANAGER, 1, vec![2])]);
}

/// Fails at `from`, and then at `again`; what comes of it.
fn fails(courier: &mut Courier, it: &Notifier, id: u64, when: Duration) -> Option<Errand> {
    assert_eq!(pushes(&courier.look(it, 10, when)).len(), 1);
    courier.pushed(it, (id, 1), not_taken(false), when)
}

#[test]
fn who_takes_nothing_for_long_is_cut_off_and_who_is_no_more_at_once() {
    let (mut it, mut courier) = (notifier(), Courier::default());
    let id = connect(&mut it, false);
    report(&mut it, 1);
    assert_eq!(fails(&mut courier, &it, id, at(1)), None);
    assert_eq!(fails(&mut courier, &it, id, at(1) + PATIENCE), None);
    let why = "it does not answer".to_owned();
    let cut_off = Some(Errand::CutOff { consumer: id, why });
    assert_eq!(fails(&mut courier, &it, id, at(2) + PATIENCE), cut_off);
    let mut another = Courier::default();
    another.look(&it, 10, at(0));
    assert_eq!(another.pushed(&it, (id, 1), not_taken(true), at(0)), cut_off);
}

#[test]
fn who_takes_something_is_not_failing_any_more_although_nobody_heard_it() {
    let (mut it, mut courier) = (notifier(), Courier::default());
    let id = connect(&mut it, false);
    report(&mut it, 1);
    report(&mut it, 2);
    assert_eq!(fails(&mut courier, &it, id, at(1)), None);
    courier.look(&it, 10, at(2));
    courier.pushed(&it, (id, 1), Ok(()), at(2));
    courier.said(id, false, at(2));
    assert_eq!(courier.look(&it, 10, at(12)), [Errand::Delivered { consumer: id, last: 1 }]);
    courier.said(id, true, at(12));
    assert_eq!(pushes(&courier.look(&it, 10, at(12))), [(id, 2, vec![2])]);
    assert_eq!(courier.pushed(&it, (id, 2), not_taken(false), at(12)), None);
}

#[test]
fn who_is_cut_off_is_told_so_and_whoever_leads_then_says_that_it_was_tried() {
    let (mut it, mut courier) = (notifier(), Courier::default());
    let (id, other) = (connect(&mut it, true), connect(&mut it, false));
    let cut_off = |it: &mut Notifier| {
        let mut local = Local::new(it, DELIVERY_KEY.as_bytes());
        FaultDeliveryStub(&mut local).cut_off(&id, &"it is slow".to_owned()).expect("heard");
    };
    cut_off(&mut it);
    report(&mut it, 1);
    let part = Errand::Part { consumer: id, reference: consumer(1), is_batch: true };
    let errands = courier.look(&it, 10, at(0));
    assert_eq!(pushes(&errands[..1]), [(other, 1, vec![1])], "it waits for nobody");
    assert_eq!(&errands[1..], std::slice::from_ref(&part));
    assert_eq!(courier.look(&it, 10, at(9)), [], "it is being told");
    // That replica ends.
    let mut next = Courier::default();
    assert_eq!(next.look(&it, 10, at(9))[1..], [part]);
    assert_eq!(next.parted(&it, id), Some(Errand::Parted { consumer: id }));
    let mut local = Local::new(&mut it, DELIVERY_KEY.as_bytes());
    FaultDeliveryStub(&mut local).parted(&id).expect("heard");
    next.said(id, true, at(9));
    assert!(!it.has_untold());
    assert_eq!(next.look(&it, 10, at(10)), []);
}

#[test]
fn a_replica_that_leads_again_has_new_patience() {
    let (mut it, mut courier) = (notifier(), Courier::default());
    let id = connect(&mut it, false);
    report(&mut it, 1);
    assert_eq!(fails(&mut courier, &it, id, at(1)), None);
    courier.follow_another();
    assert_eq!(fails(&mut courier, &it, id, at(100)), None);
    // While another one leads, that one decides.
    courier.look(&it, 10, at(101));
    courier.follow_another();
    assert_eq!(courier.pushed(&it, (id, 1), not_taken(true), at(200)), None);
}
