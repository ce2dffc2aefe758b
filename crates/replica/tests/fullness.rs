//! A member with too many replies to remember: what is refused, what is not, and for how long.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_base::Duration;
use quorba_replica::Event;

/// Three members that remember four replies or so.
fn small() -> Cluster {
    let plan = Plan { retention_bytes_max: 200, ..Plan::plain(true) };
    let mut c = Cluster::whole_planned(plan);
    for number in 1..=5 {
        c.ft_request(0, number, "a", number as i32);
        c.settle();
    }
    assert!(c.snapshot(1).full, "{} bytes are remembered", c.snapshot(1).retained_bytes);
    c
}

#[test]
fn new_calls_of_clients_are_refused_by_all_members_alike_and_known_ones_are_answered() {
    let mut c = small();
    let executed = c.executed(0).len();
    c.ft_request(1, 1, "one more", 77);
    c.settle();
    assert!(c.nodes[1].replies[0].1.contains("NoResources"), "{:?}", c.nodes[1].replies);
    c.ft_request(2, 1, "a", 1);
    c.settle();
    assert_eq!(c.nodes[2].replies, [(1, "a is number 1".into())]);
    // A gateway's own name for a request goes as soon as the gateway says so.
    c.request(1, 2, "nameless");
    c.settle();
    for index in 0..3 {
        assert_eq!(c.executed(index).len(), executed + 1);
    }
    let said = c.nodes[0].events.iter().filter(|e| matches!(e, Event::Full { .. })).count();
    assert_eq!(said, 1, "three members are full, and that is one event");
}

#[test]
fn new_calls_are_taken_again_when_the_time_of_the_old_ones_is_over() {
    let mut c = small();
    // Each request moves the group's time by ten seconds, or a sixth of what it remembers, at most.
    for number in 10..30 {
        c.pass(Duration::from_secs(10));
        c.release_below(0, number);
        c.request(0, number, "time goes by");
        c.settle();
    }
    assert!(!c.snapshot(2).full, "{} bytes are remembered", c.snapshot(2).retained_bytes);
    c.ft_request(1, 1, "one more", 77);
    c.settle();
    assert!(c.nodes[1].replies[0].1.starts_with("one more is number"));
}

#[test]
fn a_member_that_joins_refuses_what_the_others_refuse() {
    let mut c = small();
    c.crash_server(2);
    c.settle();
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "joining"]);
    c.ft_request(1, 1, "while it joins", 77);
    c.nodes[0].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(0));
    assert!(!c.executed(2).contains(&"while it joins"));
}

/// Found as seed 2055964 of the simulator's `styles`: a member refused a request when only it was
/// full and only it was delivered the request; the others, without it, executed the same one.
#[test]
fn who_refused_what_the_others_executed_does_not_say_that_it_has_the_same() {
    let plan = Plan { retention_bytes_max: 200, ..Plan::plain(true) };
    let mut c = Cluster::whole_planned(plan);
    for node in &mut c.nodes[1..] {
        node.server.as_mut().unwrap().held = true;
    }
    for number in 1..=5 {
        c.ft_request(0, number, "a", number as i32);
        c.settle();
    }
    assert!(c.snapshot(1).full, "because member 0 is");
    c.only_at(0, |c| c.ft_request(1, 9, "refused, or not", 9));
    c.install(&[1, 2]);
    c.settle();
    assert!(!c.snapshot(1).full, "member 0 is gone");
    c.ft_request(1, 9, "refused, or not", 9);
    c.settle();
    for node in &mut c.nodes[1..] {
        node.server.as_mut().unwrap().held = false;
    }
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.executed(1).last(), Some(&"refused, or not"));
    for index in [0, 2] {
        assert_eq!(c.executed(index), c.executed(1), "{index}");
    }
}

#[test]
fn a_member_that_is_gone_is_not_full_any_more() {
    let mut c = Cluster::whole_planned(Plan { retention_bytes_max: 200, ..Plan::plain(true) });
    for node in &mut c.nodes[..2] {
        node.server.as_mut().unwrap().held = true;
    }
    for number in 1..=5 {
        c.ft_request(2, number, "a", number as i32);
    }
    c.settle();
    assert!(c.snapshot(0).full, "the only one that has executed them");
    c.crash_server(2);
    c.settle();
    assert!(!c.snapshot(0).full);
}
