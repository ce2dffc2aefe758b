//! Members that missed a few requests: they are given these, by anybody who has them.

mod cluster;

use cluster::{Cluster, GROUP, Plan};
use quorba_base::{Duration, Instant};
use quorba_replica::{DownReason, Lacks, MemberState, Style};

/// What the member on node 2 lacks, as node 0 knows it.
fn lacks(c: &Cluster) -> Option<Lacks> {
    let state = c.snapshot(0).members[2].1;
    match state {
        MemberState::Joining { lacks, .. } => Some(lacks),
        _ => None,
    }
}

/// Three members; the third was away while one request was executed, and comes back.
fn one_was_away(plan: Plan) -> Cluster {
    let mut c = Cluster::whole_planned(plan);
    c.request(0, 1, "a");
    c.request(2, 1, "b");
    c.settle();
    c.install(&[0, 1]);
    c.settle();
    c.request(0, 2, "c");
    c.settle();
    assert_eq!(c.executed(2), ["a", "b"]);
    c.install(&[0, 1, 2]);
    c
}

#[test]
fn a_member_that_was_away_gets_what_it_missed_and_no_state() {
    for state_object in [true, false] {
        let mut c = one_was_away(Plan::plain(state_object));
        c.settle();
        assert_eq!(c.states(0), ["in", "in", "in"]);
        assert_eq!(c.executed(2), ["a", "b", "c"]);
        assert_eq!(c.nodes[2].restarts, []);
        c.request(2, 2, "d");
        c.settle();
        assert_eq!(c.nodes[2].replies.last(), Some(&(2, "d is number 4".into())));
    }
}

#[test]
fn what_comes_while_it_is_given_what_it_missed_is_executed_behind_it() {
    let mut c = one_was_away(Plan::plain(true));
    c.cut = true;
    c.settle();
    assert_eq!(lacks(&c), Some(Lacks::Requests));
    c.request(1, 1, "d");
    c.settle();
    assert_eq!(c.executed(2), ["a", "b"]);
    c.relink();
    c.settle();
    assert_eq!(c.executed(2), ["a", "b", "c", "d"]);
}

#[test]
fn a_member_finishes_what_it_was_delivered_before_it_says_what_it_has_executed() {
    let mut c = Cluster::whole(true);
    c.nodes[2].server.as_mut().unwrap().held = true;
    c.request(0, 1, "a");
    c.request(0, 2, "b");
    c.settle();
    c.install(&[0, 1]);
    c.settle();
    c.request(0, 3, "c");
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "down"], "it is not done yet");
    c.nodes[2].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), ["a", "b", "c"]);
}

/// The node that is up to date has a member that is being brought back; those whose members have
/// the state missed something. Nobody's state is lost, and the group goes on.
#[test]
fn a_group_whose_members_with_a_state_all_missed_something_is_not_lost() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(1);
    c.settle();
    c.install(&[0, 1]);
    c.settle();
    c.request(1, 1, "b");
    c.settle();
    // Now node 0 is away as well, and node 1 goes on with node 2.
    c.install(&[1, 2]);
    c.settle();
    assert_eq!(c.states(1), ["down", "down", "in"], "given by a node without a member");
    assert_eq!(c.executed(2), ["a", "b"]);
    c.start_server(1);
    c.settle();
    c.request(2, 1, "c");
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    for index in 0..3 {
        assert_eq!(c.states(index), ["in", "in", "in"]);
        assert_eq!(c.executed(index), ["a", "b", "c"]);
    }
}

#[test]
fn a_donor_that_leaves_is_replaced_by_another_that_has_the_requests() {
    let mut c = one_was_away(Plan::plain(true));
    c.cut = true;
    c.settle();
    let MemberState::Joining { donor, .. } = c.snapshot(0).members[2].1 else { panic!("it joins") };
    let other = 1 - usize::from(donor.index());
    c.install(&[other, 2]);
    c.settle();
    c.relink();
    c.settle();
    assert_eq!(c.states(other)[2], "in");
    assert_eq!(c.executed(2), ["a", "b", "c"]);
}

#[test]
fn a_passive_backup_keeps_what_it_missed_for_when_it_has_to_lead() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    let leader = c.leader(0).expect("one leads");
    assert_eq!(leader, 0);
    c.install(&[0, 1]);
    c.settle();
    c.request(0, 1, "a");
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    c.install(&[1, 2]);
    c.settle();
    c.install(&[2, 1]);
    c.settle();
    let leader = c.leader(1).expect("another leads");
    assert_eq!(c.executed(leader), ["a"]);
}

#[test]
fn who_missed_more_than_a_state_may_cost_is_given_a_state() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.install(&[0, 1]);
    c.settle();
    for number in 2..10 {
        c.request(0, number, &"long ".repeat(30_000));
        c.settle();
    }
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert!(c.nodes[0].downs().contains(&DownReason::RequestsTooLong));
    assert_eq!(c.executed(2), c.executed(0));
}

/// The only member that is in was cut off when it had just ordered a request: it executed it, and
/// the others never heard of it.
#[test]
fn a_group_goes_on_from_its_only_server_although_that_has_executed_more() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(1);
    c.crash_server(2);
    c.settle();
    assert_eq!(c.states(0), ["in", "down", "down"]);
    c.only_at(0, |c| c.request(0, 2, "b"));
    assert_eq!(c.executed(0), ["a", "b"]);
    c.install(&[1, 2]);
    c.settle();
    c.start_server(1);
    c.settle();
    assert_eq!(c.states(1), ["down", "out", "down"]);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "down"]);
    assert_eq!(c.executed(1), ["a", "b"]);
    // Its client asks again.
    c.request(0, 2, "b");
    c.request(1, 1, "c");
    c.settle();
    assert_eq!(c.nodes[0].replies.last(), Some(&(2, "b is number 2".into())));
    assert_eq!(c.nodes[1].replies, [(1, "c is number 3".into())]);
}

/// Named by seed 600127 of the simulator's `styles`.
#[test]
fn a_server_that_was_ahead_is_told_no_earlier_time_than_before() {
    let mut c = Cluster::whole(true);
    c.crash_server(1);
    c.crash_server(2);
    c.settle();
    c.now = c.now + Duration::from_secs(60);
    c.only_at(0, |c| c.request(0, 1, "a"));
    c.install(&[1, 2]);
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(1), ["in", "down", "down"]);
    let now = c.now;
    // The clock of another gateway is behind.
    c.now = Instant::ZERO;
    c.request(1, 1, "b");
    c.now = now;
    c.nodes[0].server.as_mut().expect("a server").held = true;
    c.settle();
    let moment = c.nodes[0].replica.moment(GROUP).expect("it executes");
    assert_eq!((moment.number, moment.time), (2, now.as_nanos() / 100));
    assert!(c.nodes[0].replica.caller(GROUP).is_some_and(|caller| caller > 0));
}
