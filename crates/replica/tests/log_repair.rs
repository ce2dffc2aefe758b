//! A disk that lacks its member's state is given it while the member works.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_base::Duration;
use quorba_replica::Style;

fn durable() -> Cluster {
    Cluster::whole_planned(Plan { durable: true, ..Plan::plain(true) })
}

/// 2 is delivered a request that does not count, for it is alone; when it counts, its server has
/// executed it. So it comes in with all that its group was delivered, and its log has a gap in
/// front of that (seed 1606738 of the simulator's `styles`).
fn one_log_has_a_gap(is_private: bool) -> Cluster {
    let mut cluster = durable();
    cluster.request(0, 1, "first");
    cluster.settle();
    cluster.server(2).held = true;
    cluster.only_at(2, |cluster| cluster.request(2, 1, "alone"));
    cluster.install(&[0, 1]);
    cluster.settle();
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    assert_eq!(cluster.states(0), ["in", "in", "down"]);
    cluster.request(2, 1, "alone");
    cluster.settle();
    cluster.server(2).held = false;
    cluster.server(2).is_private = is_private;
    cluster.settle();
    assert_eq!(cluster.states(0), ["in", "in", "in"]);
    assert_eq!(cluster.executed(2), ["first", "alone"]);
    assert_eq!(cluster.server(2).states, 0);
    cluster
}

#[test]
fn a_disk_with_a_gap_counts_as_soon_as_its_member_is_in() {
    let mut cluster = one_log_has_a_gap(false);
    cluster.crash(0);
    cluster.install(&[1, 2]);
    cluster.settle();
    cluster.request(1, 1, "on both disks that are left");
    cluster.settle();
    assert_eq!(cluster.nodes[1].logged, [1]);
    cluster.crash(1);
    cluster.crash(2);
    cluster.restart(0);
    cluster.restart(2);
    cluster.start(&[0, 2]);
    for index in [0, 2] {
        let all = ["first", "alone", "on both disks that are left"];
        assert_eq!(cluster.executed(index), all, "{index}");
    }
}

#[test]
fn a_member_is_captured_once_for_its_disk_and_again_if_that_came_to_nothing() {
    let mut cluster = one_log_has_a_gap(true);
    assert_eq!(cluster.server(2).asked, 1);
    assert!(cluster.snapshot(2).disk_lacks_state);
    cluster.request(1, 1, "more");
    cluster.settle();
    assert_eq!(cluster.server(2).asked, 1, "not at once");
    cluster.server(2).is_private = false;
    let due = cluster.nodes[2].replica.poll_timeout().expect("it tries again");
    assert!(due > cluster.now);
    cluster.pass(Duration::from_secs(1));
    cluster.settle();
    assert_eq!(cluster.server(2).asked, 2);
    assert!(!cluster.snapshot(2).disk_lacks_state);
    cluster.request(1, 2, "still more");
    cluster.pass(Duration::from_secs(5));
    cluster.settle();
    assert_eq!(cluster.server(2).asked, 2, "its disk has all");
}

#[test]
fn a_server_that_refuses_is_asked_less_and_less_often() {
    let mut cluster = one_log_has_a_gap(true);
    for (times, wait_s) in [(2, 1), (3, 2), (4, 4), (5, 8), (6, 16), (7, 32), (8, 64), (9, 64)] {
        cluster.pass(Duration::from_secs(wait_s) - Duration::from_millis(1));
        cluster.settle();
        assert_eq!(cluster.server(2).asked, times - 1, "not so soon");
        cluster.pass(Duration::from_millis(1));
        cluster.settle();
        assert_eq!(cluster.server(2).asked, times);
    }
}

/// A passive leader gives its state for a log snapshot when another becomes the leader, whose
/// checkpoint would make its server superfluous.
#[test]
fn a_server_runs_until_it_has_given_the_state_that_it_was_asked_for() {
    let plan = Plan { durable: true, ..Plan::style(Style::ColdPassive) };
    let mut cluster = Cluster::planned(3, plan);
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    cluster.request(0, 1, "a");
    cluster.settle();
    cluster.server(0).held = true;
    assert!(cluster.compact_log(0));
    cluster.promote(1);
    cluster.pass(Duration::from_secs(1));
    cluster.settle();
    assert_eq!(cluster.executed(1), ["a"]);
    assert_eq!(cluster.logged(2), 0, "the new leader's checkpoint is there");
    assert_eq!(cluster.nodes[0].disk.given_up, 0);
    cluster.server(0).held = false;
    cluster.settle();
    assert!(cluster.nodes[0].disk.given_up > 0);
    assert!(cluster.nodes[0].server.is_none(), "nobody needs it any more");
}
