//! What clients see on either side of a cut, and that both sides agree after it.

mod stage;

use quorba_base::Duration;
use quorba_engine::replica::primary::Blocked;
use quorba_engine::replica::{PrimaryStatus, Quorum, QuorumRule};
use quorba_giop::{Completion, ExceptionKind};
use stage::{CLIENT, GROUP, Got, Plan, Stage, id};

const NO_WAIT: Duration = Duration::from_millis(0);
/// Longer than any cut here, and shorter than a request may take.
const LONG_WAIT: Duration = Duration::from_secs(50);

fn serving(nodes: usize, quorum: Quorum, unavailable_wait: Duration) -> Stage {
    let plan = Plan { nodes, quorum, unavailable_wait, ..Plan::default() };
    let mut stage = Stage::of(plan).with_servers();
    (1..nodes).for_each(|index| stage.connect_at(index));
    stage
}

/// Until these nodes go on, and the others know that they must not.
fn until_only(s: &mut Stage, primary: &[usize]) {
    s.pass_until(|stage| {
        stage.views_are_right()
            && stage.statuses().into_iter().enumerate().all(|(index, status)| {
                if primary.contains(&index) {
                    status == PrimaryStatus::Primary
                } else {
                    matches!(
                        status,
                        PrimaryStatus::Blocked(Blocked::NoMajority | Blocked::NoQuorum)
                    )
                }
            })
    });
}

/// The client at a node is served.
fn served(s: &mut Stage, index: usize, number: u32) {
    s.call_as(index, CLIENT, number);
    s.pass_until(|stage| !stage.got[index].is_empty());
    assert_eq!(s.got_at(index), [Got::Results(number)]);
}

/// The client at a node is told to try elsewhere, before any time to speak of has passed.
fn refused(s: &mut Stage, index: usize, number: u32) {
    s.call_as(index, CLIENT, number);
    s.pass(Duration::from_millis(1));
    let elsewhere = Got::Raised(number, ExceptionKind::Transient, Completion::No);
    assert_eq!(s.got_at(index), [elsewhere]);
}

fn until_all_have(s: &mut Stage, log: &[u32]) {
    s.pass_until(|stage| stage.logs(GROUP).iter().all(|have| *have == log));
}

/// All nodes are in one component, and every member is in the group again.
fn until_whole(s: &mut Stage) {
    let nodes: Vec<usize> = (0..s.nodes.len()).collect();
    until_only(s, &nodes);
    s.pass_until(|stage| {
        let groups = stage.nodes.iter().map(|node| node.snapshot().groups[GROUP].local);
        groups.into_iter().all(|local| local == Some("serving"))
    });
}

#[test]
fn a_cut_off_node_refuses_at_once_what_may_not_wait() {
    let mut s = serving(3, Quorum::default(), NO_WAIT);
    s.cut_off(&[0]);
    until_only(&mut s, &[1, 2]);
    refused(&mut s, 0, 1);
    served(&mut s, 1, 2);
    s.heal();
    until_whole(&mut s);
    served(&mut s, 0, 3);
    until_all_have(&mut s, &[2, 3]);
}

#[test]
fn a_call_that_may_wait_is_held_and_after_the_merge_executed_once_and_answered() {
    let mut s = serving(3, Quorum::default(), LONG_WAIT);
    s.cut_off(&[0]);
    until_only(&mut s, &[1, 2]);
    s.call(1);
    s.pass(Duration::from_secs(10));
    assert_eq!(s.client_got(), [], "it waits");
    served(&mut s, 1, 2);
    s.heal();
    s.pass_until(|stage| !stage.got[0].is_empty());
    assert_eq!(s.client_got(), [Got::Results(1)]);
    until_all_have(&mut s, &[2, 1]);
    s.pass(Duration::from_secs(10));
    assert_eq!(s.logs(GROUP), [[2, 1]; 3], "once");
    assert_eq!(s.client_got(), [], "and answered once");
}

#[test]
fn what_a_node_executed_before_it_knew_of_the_cut_is_undone_and_counts_once() {
    let mut s = serving(3, Quorum::default(), LONG_WAIT);
    served(&mut s, 0, 1);
    s.cut_off(&[0]);
    s.call(2);
    assert_eq!(s.logs(GROUP)[0], [1, 2], "nobody but this node knows of it");
    until_only(&mut s, &[1, 2]);
    served(&mut s, 1, 3);
    assert_eq!(s.client_got(), [], "the reply was not released");
    s.heal();
    s.pass_until(|stage| !stage.got[0].is_empty());
    assert_eq!(s.client_got(), [Got::Results(2)]);
    until_all_have(&mut s, &[1, 3, 2]);
}

#[test]
fn of_two_halves_the_one_with_the_tie_breaker_goes_on_and_brings_the_other_up_to_date() {
    let quorum = Quorum { tie_breaker: Some(id(3)), ..Quorum::default() };
    let mut s = serving(4, quorum, NO_WAIT);
    s.split(&[&[0, 1], &[2, 3]]);
    until_only(&mut s, &[2, 3]);
    served(&mut s, 2, 1);
    refused(&mut s, 0, 2);
    served(&mut s, 3, 3);
    assert_eq!(s.logs(GROUP), [&[][..], &[], &[1, 3], &[1, 3]]);
    s.heal();
    until_whole(&mut s);
    until_all_have(&mut s, &[1, 3]);
    assert_eq!(s.executed, [0, 0, 2, 2], "the others have it from the state");
    served(&mut s, 0, 4);
    until_all_have(&mut s, &[1, 3, 4]);
}

#[test]
fn of_two_halves_without_a_tie_breaker_neither_goes_on() {
    let mut s = serving(4, Quorum::default(), NO_WAIT);
    s.split(&[&[0, 1], &[2, 3]]);
    until_only(&mut s, &[]);
    refused(&mut s, 0, 1);
    refused(&mut s, 2, 2);
    s.heal();
    until_whole(&mut s);
    served(&mut s, 2, 3);
    until_all_have(&mut s, &[3]);
}

#[test]
fn by_the_dynamic_rule_the_last_component_counts_and_not_the_domain() {
    let quorum = Quorum { rule: QuorumRule::DynamicLinear, tie_breaker: None };
    let mut s = serving(3, quorum, NO_WAIT);
    s.split(&[&[0, 1], &[2]]);
    until_only(&mut s, &[0, 1]);
    served(&mut s, 1, 1);
    refused(&mut s, 2, 2);
    // Two of three, but of the last component only the half without its lowest node.
    s.split(&[&[0], &[1, 2]]);
    until_only(&mut s, &[0]);
    refused(&mut s, 1, 3);
    refused(&mut s, 2, 4);
    served(&mut s, 0, 5);
    s.heal();
    until_whole(&mut s);
    served(&mut s, 2, 6);
    until_all_have(&mut s, &[1, 5, 6]);
}

#[test]
fn by_the_dynamic_rule_too_a_held_call_is_executed_once_after_the_merge() {
    let quorum = Quorum { rule: QuorumRule::DynamicLinear, tie_breaker: Some(id(1)) };
    let mut s = serving(3, quorum, LONG_WAIT);
    s.split(&[&[0, 1], &[2]]);
    until_only(&mut s, &[0, 1]);
    // The tie-breaker's half is one node now.
    s.split(&[&[1], &[0, 2]]);
    until_only(&mut s, &[1]);
    s.call(1);
    s.call_as(2, CLIENT, 2);
    served(&mut s, 1, 3);
    s.pass(Duration::from_secs(5));
    assert!(s.got[0].is_empty() && s.got[2].is_empty(), "they wait");
    s.heal();
    s.pass_until(|stage| !stage.got[0].is_empty() && !stage.got[2].is_empty());
    assert_eq!((s.got_at(0), s.got_at(2)), (vec![Got::Results(1)], vec![Got::Results(2)]));
    s.pass_until(|stage| stage.logs(GROUP).iter().all(|log| log.len() == 3));
    let first = s.logs(GROUP)[0].to_vec();
    assert_eq!(s.logs(GROUP), [first.as_slice(); 3]);
    let mut sorted = first.clone();
    sorted.sort_unstable();
    assert_eq!((first[0], sorted), (3, vec![1, 2, 3]), "each once");
}
