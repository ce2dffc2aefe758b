//! A durable group that nobody is in goes on from its members' disks.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_replica::{Command, Style};

fn durable(style: Style) -> Cluster {
    Cluster::whole_planned(Plan { durable: true, ..Plan::style(style) })
}

/// One server after the other, so that the first comes to where it can without the others.
fn start_each(cluster: &mut Cluster, nodes: &[usize]) {
    for index in nodes {
        cluster.start_server(*index);
        cluster.settle();
    }
}

/// A request is on all disks, and then 2 is away.
fn without_2() -> Cluster {
    let mut cluster = durable(Style::Active);
    cluster.request(1, 1, "acknowledged");
    cluster.settle();
    cluster.crash(2);
    cluster.install(&[0, 1]);
    cluster.settle();
    cluster
}

/// Everybody's server ends, and no node does.
#[test]
fn a_group_whose_servers_all_end_goes_on_from_the_logs() {
    for style in [Style::Active, Style::SemiActive, Style::WarmPassive] {
        let mut cluster = durable(style);
        for number in 1..=4 {
            cluster.request(0, number, &format!("{number}"));
        }
        cluster.settle();
        for index in 0..3 {
            cluster.crash_server(index);
        }
        cluster.settle();
        for index in 0..3 {
            cluster.start_server(index);
        }
        cluster.settle();
        assert_eq!(cluster.states(0), ["in", "in", "in"], "{style:?}");
        cluster.request(1, 1, "5");
        cluster.settle();
        assert_eq!(cluster.nodes[1].replies, [(1, "5 is number 5".to_string())], "{style:?}");
    }
}

/// The one member that is in has not on disk what the others' logs have, who have no state: the
/// group goes on from what it has, and what is cut off was never acknowledged.
#[test]
fn what_only_logs_without_a_state_have_keeps_nobody_out() {
    let mut cluster = durable(Style::Active);
    cluster.request(0, 1, "acknowledged");
    cluster.settle();
    assert_eq!(cluster.nodes[0].logged, [1]);
    // The others miss a request, one after the other, and get no state.
    for away in [1, 2] {
        let others: Vec<usize> = (0..3).filter(|other| *other != away).collect();
        cluster.install(&others);
        cluster.settle();
        cluster.request(0, 10 + away as u64, &format!("without {away}"));
        cluster.settle();
        cluster.cut = true;
        cluster.install(&[0, 1, 2]);
        cluster.settle();
    }
    assert_eq!(cluster.states(0), ["in", "joining", "joining"]);
    cluster.nodes[0].disk.slow = true;
    cluster.request(0, 20, "not acknowledged");
    cluster.settle();
    assert!(!cluster.nodes[0].logged.contains(&20));
    cluster.cut = false;
    for index in 0..3 {
        cluster.crash(index);
    }
    for index in 0..3 {
        cluster.restart(index);
    }
    cluster.nodes[0].disk.slow = false;
    cluster.start(&[0, 1, 2]);
    for index in 0..3 {
        assert_eq!(cluster.states(index), ["in", "in", "in"]);
        assert!(cluster.executed(index).contains(&"acknowledged"), "{index}");
        assert!(!cluster.executed(index).contains(&"not acknowledged"), "{index}");
    }
    cluster.request(2, 1, "more");
    cluster.settle();
    let before = cluster.executed(0).len();
    assert_eq!(cluster.nodes[2].replies, [(1, format!("more is number {before}"))]);
}

/// What was ordered before the group went on from a disk that lacks it is not there, however far
/// the disks are by then (seed 104202 of the simulator's `styles`).
#[test]
fn what_a_revival_throws_away_is_never_called_logged() {
    let mut cluster = durable(Style::Active);
    cluster.install(&[0, 1]);
    cluster.settle();
    cluster.request(0, 1, "acknowledged");
    cluster.settle();
    cluster.cut = true;
    cluster.crash(0);
    cluster.install(&[1, 2]);
    cluster.settle();
    cluster.start_server(2);
    cluster.request(1, 1, "missed by 0");
    cluster.settle();
    assert_eq!(cluster.states(1), ["down", "in", "joining"]);
    cluster.restart(0);
    cluster.start(&[0, 1, 2]);
    // Links pass disks' news only.
    cluster.request(2, 1, "thrown away");
    cluster.settle();
    assert_eq!(cluster.states(1), ["joining", "in", "joining"]);
    cluster.crash_server(1);
    cluster.settle();
    cluster.cut = false;
    for index in [0, 2] {
        cluster.crash_server(index);
        cluster.settle();
        cluster.start_server(index);
        cluster.settle();
    }
    assert_eq!(cluster.executed(0), ["acknowledged"]);
    cluster.request(2, 2, "later");
    cluster.settle();
    assert_eq!(cluster.nodes[2].logged, [2]);
}

/// A group that turned back while a node was away is where that node's log was before the node
/// missed something: what it is delivered from then on it has (seed 940379 of the simulator's
/// `styles`).
#[test]
fn a_log_goes_on_where_its_group_turned_back_to_while_the_node_was_away() {
    let mut cluster = durable(Style::Active);
    cluster.install(&[0, 1]);
    cluster.settle();
    cluster.request(0, 1, "acknowledged");
    cluster.settle();
    cluster.cut = true;
    cluster.crash(0);
    cluster.install(&[1, 2]);
    cluster.settle();
    cluster.start_server(2);
    cluster.request(1, 1, "missed by 0");
    cluster.settle();
    cluster.restart(0);
    cluster.start(&[0, 1, 2]);
    assert_eq!(cluster.states(1), ["joining", "in", "joining"]);
    // Its disk does not come to know that the group goes on from what is on it.
    cluster.nodes[0].disk.slow = true;
    cluster.crash_server(1);
    cluster.settle();
    start_each(&mut cluster, &[0, 2]);
    cluster.relink();
    cluster.settle();
    assert_eq!(cluster.states(2), ["in", "down", "in"]);
    cluster.crash(0);
    cluster.install(&[1, 2]);
    cluster.settle();
    cluster.restart(0);
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    cluster.start_server(0);
    cluster.settle();
    assert_eq!(cluster.states(0), ["in", "down", "in"]);
    cluster.request(0, 2, "acknowledged later");
    cluster.settle();
    assert_eq!(cluster.nodes[0].logged, [2]);
    for index in 0..3 {
        cluster.crash(index);
    }
    for index in [0, 1] {
        cluster.restart(index);
    }
    cluster.start(&[0, 1]);
    assert_eq!(cluster.executed(0), ["acknowledged", "acknowledged later"]);
}

/// A group turns back to what a member's disk has when that member says so: the log that holds
/// both goes on from there at the next start (seed 952462 of the simulator's `styles`).
#[test]
fn a_log_that_tells_of_its_own_nodes_turning_back_goes_on_from_there() {
    let mut cluster = durable(Style::Active);
    cluster.install(&[0, 1]);
    cluster.settle();
    cluster.request(0, 1, "acknowledged");
    cluster.settle();
    cluster.cut = true;
    cluster.crash(0);
    cluster.install(&[1, 2]);
    cluster.settle();
    cluster.start_server(2);
    cluster.request(1, 1, "missed by 0");
    cluster.settle();
    cluster.restart(0);
    cluster.start(&[0, 1, 2]);
    assert_eq!(cluster.states(1), ["joining", "in", "joining"]);
    for index in 0..3 {
        cluster.crash(index);
    }
    cluster.restart(0);
    cluster.restart(2);
    cluster.relink();
    // It is the last to say what its disk has.
    cluster.crash_server(0);
    cluster.install(&[0, 2]);
    cluster.settle();
    start_each(&mut cluster, &[2, 0]);
    assert_eq!(cluster.states(0), ["in", "down", "in"]);
    cluster.request(0, 2, "acknowledged later");
    cluster.settle();
    assert_eq!(cluster.nodes[0].logged, [2]);
    cluster.crash(0);
    cluster.crash(2);
    cluster.restart(0);
    cluster.restart(1);
    cluster.start(&[0, 1]);
    assert_eq!(cluster.executed(0), ["acknowledged", "acknowledged later"]);
}

/// A node starts, and a request counts on its disk before its member's word has got its place. What
/// that member found there at the start is not all then (seed 1004822 of the simulator's `styles`).
#[test]
fn a_disk_that_counts_for_a_request_says_so_when_nobody_is_left() {
    let mut cluster = without_2();
    cluster.crash(0);
    cluster.restart(0);
    cluster.install(&[0, 1]);
    // The word of 0's member gets no place in this view.
    const JOIN: u8 = 3;
    let mut late = Vec::new();
    while let Some(delivered) = cluster.order.pop_front() {
        if delivered.payload[0] == JOIN {
            late.push(delivered);
        } else {
            cluster.deliver_one(&delivered);
        }
    }
    assert_eq!(cluster.states(1), ["down", "in", "down"]);
    cluster.request(1, 2, "acknowledged later");
    cluster.settle();
    assert_eq!(cluster.nodes[1].logged, [1, 2]);
    cluster.crash(1);
    cluster.restart(2);
    cluster.install(&[0, 2]);
    cluster.order.extend(late);
    cluster.settle();
    start_each(&mut cluster, &[0, 2]);
    assert_eq!(cluster.states(0), ["in", "down", "in"]);
    assert_eq!(cluster.executed(0), ["acknowledged", "acknowledged later"]);
}

/// A node looks at its log for so long that its group has gone on and lost everybody again: what it
/// saw there is not all that counts on its disk by then.
#[test]
fn what_was_seen_on_a_disk_before_more_counted_on_it_is_not_said() {
    let mut cluster = without_2();
    for index in [0, 1] {
        cluster.crash_server(index);
    }
    cluster.settle();
    cluster.nodes[0].looks_long = true;
    cluster.start_server(0);
    cluster.settle();
    cluster.start_server(1);
    // It gives nobody its state.
    cluster.nodes[1].server.as_mut().expect("a server").held = true;
    cluster.settle();
    assert_eq!(cluster.states(0), ["joining", "in", "down"]);
    cluster.request(1, 2, "acknowledged later");
    cluster.settle();
    assert_eq!(cluster.nodes[1].logged, [1, 2]);
    cluster.crash(1);
    cluster.restart(2);
    cluster.install(&[0, 2]);
    cluster.settle();
    assert_eq!(cluster.states(0), ["out", "down", "out"]);
    cluster.look(0);
    cluster.settle();
    assert_eq!(cluster.states(0), ["out", "down", "out"]);
    cluster.look(0);
    cluster.settle();
    start_each(&mut cluster, &[0, 2]);
    assert_eq!(cluster.states(0), ["in", "down", "in"]);
    assert_eq!(cluster.executed(0), ["acknowledged", "acknowledged later"]);
}

/// A member was given a state, and says what its disk has before that state is on it. When it is,
/// the disk counts no sooner than the member has said so.
#[test]
fn a_disk_counts_for_no_more_than_its_member_says() {
    let mut cluster = durable(Style::Active);
    cluster.request(1, 1, "acknowledged");
    cluster.settle();
    cluster.crash(0);
    cluster.install(&[1, 2]);
    cluster.settle();
    cluster.request(1, 2, "missed by 0");
    cluster.settle();
    cluster.crash(2);
    cluster.restart(0);
    cluster.nodes[0].saves_long = true;
    cluster.relink();
    cluster.install(&[0, 1]);
    cluster.settle();
    cluster.start_server(0);
    cluster.settle();
    assert_eq!(cluster.states(1), ["in", "in", "down"]);
    cluster.request(1, 3, "acknowledged later");
    cluster.settle();
    assert_eq!(cluster.nodes[1].logged, [1, 2]);
    for index in [0, 1] {
        cluster.crash_server(index);
    }
    cluster.settle();
    cluster.start_server(0);
    cluster.settle();
    assert_eq!(cluster.states(1), ["out", "down", "down"]);
    cluster.save(0);
    cluster.settle();
    cluster.crash(1);
    cluster.restart(2);
    cluster.relink();
    cluster.install(&[0, 2]);
    cluster.settle();
    start_each(&mut cluster, &[0, 2]);
    assert_eq!(cluster.states(0), ["in", "down", "in"]);
    let all = ["acknowledged", "missed by 0", "acknowledged later"];
    assert_eq!(cluster.executed(0), all);
}

#[test]
fn a_member_alone_waits_for_another_ones_word_unless_it_has_all() {
    let mut cluster = durable(Style::Active);
    cluster.request(0, 1, "first");
    cluster.settle();
    for index in 0..3 {
        cluster.crash_server(index);
    }
    cluster.settle();
    cluster.start_server(1);
    cluster.settle();
    assert_eq!(cluster.states(1)[1], "in", "its log has all that the group was delivered");
    assert_eq!(cluster.executed(1), ["first"]);
}

#[test]
fn a_durable_group_keeps_what_was_acknowledged_across_changes_of_style() {
    let styles = [Style::WarmPassive, Style::Active, Style::ActiveWithVoting, Style::ColdPassive];
    let mut cluster = durable(Style::SemiActive);
    let mut expected = Vec::new();
    for (number, style) in (1..).zip(styles) {
        let text = format!("before {style:?}");
        cluster.request(0, number, &text);
        expected.push(text);
        cluster.settle();
        cluster.command_group(1, Command::SetStyle(style));
        cluster.settle();
    }
    for index in 0..3 {
        cluster.crash(index);
    }
    for index in 0..3 {
        cluster.restart(index);
    }
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    let leader = cluster.leader(0).expect("somebody leads");
    cluster.start_server(leader);
    cluster.settle();
    assert_eq!(cluster.executed(leader), expected);
    cluster.command_group(0, Command::SetStyle(Style::Stateless));
    cluster.settle();
    let refused = quorba_replica::CommandRefused::Durable;
    assert_eq!(cluster.nodes[0].commanded.last(), Some(&Err(refused)));
}
