//! Servers that have no state to give: who joins executes everything again.

mod cluster;

use cluster::{Cluster, Plan, pass};
use quorba_base::Duration;
use quorba_replica::{DownReason, Style};

fn plan() -> Plan {
    Plan { replay_bytes_max: Some(10_000), ..Plan::plain(false) }
}

#[test]
fn a_member_whose_server_crashed_executes_everything_again_and_what_came_meanwhile() {
    let mut c = Cluster::whole_planned(plan());
    c.request(0, 1, "a");
    c.request(1, 1, "b");
    c.settle();
    c.crash_server(2);
    c.settle();
    c.request(0, 2, "c");
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), ["a", "b", "c"]);
    c.request(2, 1, "d");
    c.settle();
    assert_eq!(c.nodes[2].replies, [(1, "d is number 4".into())]);
}

#[test]
fn requests_that_come_during_the_replay_are_executed_behind_it() {
    let mut c = Cluster::whole_planned(plan());
    for number in 1..=5 {
        c.request(0, number, "old");
    }
    c.settle();
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.nodes[2].server.as_mut().unwrap().held = true;
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "joining"], "it has not executed them all");
    c.request(1, 1, "new");
    c.settle();
    assert_eq!(c.executed(0).len(), 6, "nobody waits for it");
    c.nodes[2].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(0));
}

#[test]
fn a_request_that_the_donor_still_executes_is_in_the_replay_and_its_reply_is_known() {
    let mut c = Cluster::whole_planned(plan());
    c.crash_server(2);
    c.settle();
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.ft_request(1, 1, "slow", 7);
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"], "the donor is not waited for");
    assert_eq!(c.executed(2), ["slow"]);
    c.ft_request(2, 1, "slow", 7);
    c.settle();
    assert_eq!(c.nodes[2].replies, [(1, "slow is number 1".into())]);
    assert_eq!(c.executed(2), ["slow"]);
}

#[test]
fn a_joiner_gives_what_it_was_given() {
    let mut c = Cluster::whole_planned(plan());
    c.request(0, 1, "a");
    c.settle();
    for index in [2, 1, 0] {
        c.crash_server(index);
        c.settle();
        c.start_server(index);
        c.settle();
        assert_eq!(c.states(index), ["in", "in", "in"]);
    }
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a"]);
    }
}

#[test]
fn a_server_that_has_executed_something_is_replaced_before_the_replay() {
    let mut c = Cluster::whole_planned(plan());
    c.request(0, 1, "a");
    c.request(0, 2, "b");
    c.settle();
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.nodes[2].server.as_mut().unwrap().held = true;
    c.settle();
    c.nodes[2].server.as_mut().unwrap().held = false;
    c.serve_once(2);
    c.nodes[2].server.as_mut().unwrap().held = true;
    assert_eq!(c.executed(2), ["a"]);
    c.crash_server(0);
    c.settle();
    assert_eq!(c.nodes[2].restarts, [DownReason::ServerExited, DownReason::NotFresh]);
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(1), ["down", "in", "in"]);
    assert_eq!(c.executed(2), ["a", "b"]);
}

#[test]
fn after_more_than_is_kept_nobody_comes_in_and_the_reason_is_said() {
    let mut c = Cluster::whole_planned(Plan { replay_bytes_max: Some(500), ..plan() });
    for number in 1..=9 {
        c.request(0, number, "a");
    }
    c.settle();
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "out"]);
    assert_eq!(c.nodes[2].restarts, [DownReason::ServerExited], "it is not tried again and again");
}

#[test]
fn followers_of_a_semi_active_leader_are_brought_back_alike() {
    let mut c = Cluster::whole_planned(Plan { style: Style::SemiActive, ..plan() });
    c.request(1, 1, "a");
    c.settle();
    let leader = c.leader(0).expect("one leads");
    c.crash_server(leader);
    c.settle();
    c.request(1, 2, "b");
    c.settle();
    c.start_server(leader);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert_eq!(c.executed(leader), ["a", "b"]);
}

// A call had taken all servers longer than one may take that is late alone.
#[test]
fn who_executes_again_what_took_the_others_long_is_given_more_time() {
    let mut c = Cluster::whole_planned(plan());
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(2);
    c.settle();
    for (time, restarts) in [(31, 1), (45, 1)] {
        c.start_server(2);
        c.server(2).held = true;
        c.settle();
        pass(&mut c, Duration::from_secs(time));
        let hung = c.nodes[2].restarts.iter().filter(|why| **why == DownReason::ServerHung);
        assert_eq!(hung.count(), restarts, "{time}");
    }
    c.server(2).held = false;
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
}
