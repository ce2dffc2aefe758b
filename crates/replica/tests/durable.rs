//! What a durable group keeps when every node of the domain ends at once.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_replica::primary::Blocked;
use quorba_replica::{CheckpointRule, PrimaryStatus, Style};

fn durable() -> Cluster {
    Cluster::whole_planned(Plan { durable: true, ..Plan::plain(true) })
}

fn blackout(cluster: &mut Cluster) {
    for index in 0..3 {
        cluster.crash(index);
    }
    for index in 0..3 {
        cluster.restart(index);
    }
}

#[test]
fn a_reply_waits_for_a_majority_of_disks() {
    let mut cluster = durable();
    for index in 0..3 {
        cluster.nodes[index].disk.slow = true;
    }
    cluster.request(0, 1, "a");
    cluster.settle();
    assert_eq!(cluster.nodes[0].replies.len(), 1, "executed");
    assert!(cluster.nodes[0].logged.is_empty(), "on no disk");
    cluster.sync(2);
    cluster.settle();
    assert!(cluster.nodes[0].logged.is_empty(), "on one of three");
    cluster.sync(1);
    cluster.settle();
    assert_eq!(cluster.nodes[0].logged, [1]);
}

#[test]
fn what_was_acknowledged_is_there_after_all_nodes_ended_and_nothing_is_answered_twice() {
    let mut cluster = durable();
    for number in 1..=5 {
        cluster.request(0, number, &format!("call {number}"));
    }
    cluster.settle();
    assert_eq!(cluster.nodes[0].logged, [1, 2, 3, 4, 5]);
    blackout(&mut cluster);
    cluster.start(&[0, 1, 2]);
    for index in 0..3 {
        let all = ["call 1", "call 2", "call 3", "call 4", "call 5"];
        assert_eq!(cluster.executed(index), all, "{index}");
        assert_eq!(cluster.states(index), ["in", "in", "in"]);
        assert!(cluster.nodes[index].replies.is_empty(), "{index}");
    }
    cluster.request(1, 1, "more");
    cluster.settle();
    assert_eq!(cluster.nodes[1].replies, [(1, "more is number 6".to_string())]);
    blackout(&mut cluster);
    cluster.start(&[0, 1, 2]);
    assert_eq!(cluster.executed(2).len(), 6, "and once more, over two boots");
}

#[test]
fn a_client_that_repeats_a_call_after_the_blackout_gets_the_reply_of_then() {
    let mut cluster = durable();
    cluster.ft_request(0, 1, "once", 7);
    cluster.settle();
    blackout(&mut cluster);
    cluster.start(&[0, 1, 2]);
    cluster.ft_request(2, 1, "once", 7);
    cluster.settle();
    assert_eq!(cluster.nodes[2].replies, [(1, "once is number 1".to_string())]);
    assert_eq!(cluster.executed(0), ["once"]);
}

#[test]
fn a_majority_of_disks_is_enough_and_the_longest_log_counts() {
    let mut cluster = durable();
    cluster.request(0, 1, "everywhere");
    cluster.settle();
    cluster.nodes[1].disk.slow = true;
    cluster.request(0, 2, "on two disks");
    cluster.settle();
    assert_eq!(cluster.nodes[0].logged, [1, 2]);
    blackout(&mut cluster);
    cluster.start(&[1, 2]);
    assert_eq!(cluster.nodes[1].replica.status(), PrimaryStatus::Primary);
    for index in [1, 2] {
        assert_eq!(cluster.executed(index), ["everywhere", "on two disks"], "{index}");
    }
    cluster.start(&[0, 1, 2]);
    assert_eq!(cluster.states(0), ["in", "in", "in"]);
}

#[test]
fn one_disk_of_three_decides_nothing() {
    let mut cluster = durable();
    cluster.request(0, 1, "a");
    cluster.settle();
    blackout(&mut cluster);
    cluster.install(&[0]);
    cluster.settle();
    let blocked = PrimaryStatus::Blocked(Blocked::NoMajority);
    assert_eq!(cluster.nodes[0].replica.status(), blocked);
}

/// A node that restarted lacks what had not reached its disk, which others may have acknowledged
/// in a group that is not durable.
#[test]
fn a_disk_does_not_count_as_memory_while_one_that_is_away_may_know_more() {
    let mut cluster = durable();
    cluster.nodes[1].disk.slow = true;
    cluster.request(0, 1, "a");
    cluster.settle();
    cluster.crash(1);
    cluster.restart(1);
    cluster.install(&[1, 2]);
    cluster.settle();
    let blocked = PrimaryStatus::Blocked(Blocked::MemoryAway);
    assert_eq!(cluster.nodes[2].replica.status(), blocked);
    cluster.start(&[0, 1, 2]);
    assert_eq!(cluster.executed(1), ["a"]);
}

#[test]
fn a_node_without_its_disk_rebuilds_from_the_others() {
    let mut cluster = durable();
    cluster.request(0, 1, "a");
    cluster.settle();
    for index in 0..3 {
        cluster.crash(index);
    }
    cluster.lose_disk(0);
    for index in 0..3 {
        cluster.restart(index);
    }
    cluster.start(&[0, 1, 2]);
    for index in 0..3 {
        assert_eq!(cluster.executed(index), ["a"], "{index}");
        assert_eq!(cluster.states(index), ["in", "in", "in"]);
    }
}

/// Each node in turn is away while something is acknowledged, so that no log has everything: what
/// counts then is the state that a member was given, which is kept beside the log.
#[test]
fn members_that_were_given_their_state_have_it_on_disk() {
    let mut cluster = durable();
    cluster.request(0, 1, "first");
    cluster.settle();
    for index in 0..3 {
        let others: Vec<usize> = (0..3).filter(|other| *other != index).collect();
        cluster.crash(index);
        cluster.install(&others);
        cluster.settle();
        cluster.request(others[0], 10 + index as u64, &format!("without {index}"));
        cluster.settle();
        cluster.restart(index);
        cluster.start(&[0, 1, 2]);
        assert_eq!(cluster.states(index), ["in", "in", "in"]);
    }
    let before = cluster.executed(0).join(",");
    blackout(&mut cluster);
    cluster.start(&[1, 2]);
    for index in [1, 2] {
        assert_eq!(cluster.executed(index).join(","), before, "{index}");
    }
}

#[test]
fn a_passive_group_goes_on_from_its_last_checkpoint() {
    for style in [Style::WarmPassive, Style::ColdPassive, Style::SemiActive] {
        let after = quorba_base::Duration::from_secs(1);
        let checkpoint = CheckpointRule { requests: 3, after, updates: false };
        let plan = Plan { durable: true, checkpoint, ..Plan::style(style) };
        let mut cluster = Cluster::whole_planned(plan);
        for number in 1..=5 {
            cluster.request(0, number, &format!("{number}"));
            cluster.settle();
        }
        blackout(&mut cluster);
        cluster.install(&[0, 1, 2]);
        cluster.settle();
        for index in 0..3 {
            if style != Style::ColdPassive || cluster.leader(index) == Some(index) {
                cluster.start_server(index);
            }
        }
        cluster.settle();
        let leader = cluster.leader(0).expect("somebody leads");
        assert_eq!(cluster.executed(leader), ["1", "2", "3", "4", "5"], "{style:?}");
        cluster.request(1, 1, "6");
        cluster.settle();
        assert_eq!(cluster.nodes[1].replies, [(1, "6 is number 6".to_string())], "{style:?}");
    }
}

/// Logs that begin at a cut, and a blackout: everything is there, once.
fn compacted_and_ended(plan: Plan) {
    let mut cluster = Cluster::whole_planned(plan);
    for number in 1..=5 {
        cluster.request(0, number, &format!("call {number}"));
    }
    cluster.ft_request(1, 1, "once", 7);
    cluster.settle();
    let calls_before = cluster.executed(0).len();
    for index in 0..3 {
        assert!(cluster.compact_log(index));
    }
    cluster.settle();
    for index in 0..3 {
        let disk = &cluster.nodes[index].disk;
        assert!(disk.given_up > 5, "{index}: {} records went", disk.given_up);
    }
    for number in 6..=7 {
        cluster.request(0, number, &format!("call {number}"));
    }
    cluster.settle();
    assert_eq!(cluster.executed(0).len(), calls_before + 2);
    assert_eq!(cluster.nodes[0].logged, [1, 2, 3, 4, 5, 6, 7]);
    let before: Vec<String> = cluster.executed(0).iter().map(ToString::to_string).collect();
    blackout(&mut cluster);
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    for index in 0..3 {
        if plan.style != Style::ColdPassive || cluster.leader(index) == Some(index) {
            cluster.start_server(index);
        }
    }
    cluster.settle();
    cluster.ft_request(2, 1, "once", 7);
    cluster.request(0, 1, "more");
    cluster.settle();
    let mut all = before;
    all.push("more".into());
    let style = plan.style;
    let leader = cluster.leader(0).unwrap_or(0);
    assert_eq!(cluster.executed(leader), all, "{style:?}");
    assert_eq!(cluster.nodes[2].replies, [(1, "once is number 6".to_string())], "{style:?}");
    assert_eq!(cluster.nodes[0].replies, [(1, "more is number 9".to_string())], "{style:?}");
}

#[test]
fn a_compacted_log_has_all_that_is_needed_in_every_style() {
    for style in [
        Style::Active,
        Style::ActiveWithVoting,
        Style::SemiActive,
        Style::WarmPassive,
        Style::ColdPassive,
    ] {
        for requests in [2, 1_000] {
            let checkpoint = CheckpointRule { requests, ..Plan::plain(true).checkpoint };
            compacted_and_ended(Plan { durable: true, style, checkpoint, ..Plan::plain(true) });
        }
    }
}

/// Found by seed 618 of styles: a leader whose log snapshot had requests behind its base counted
/// them as not delivered, so that its checkpoints did not cover them.
#[test]
fn the_first_checkpoint_after_a_compacted_log_covers_what_was_executed_again() {
    let checkpoint = CheckpointRule { requests: 1_000, ..Plan::plain(true).checkpoint };
    let style = Style::WarmPassive;
    let plan = Plan { durable: true, style, checkpoint, ..Plan::plain(true) };
    let mut cluster = Cluster::whole_planned(plan);
    for number in 1..=5 {
        cluster.request(0, number, &format!("call {number}"));
    }
    cluster.settle();
    for index in [1, 2] {
        assert_eq!(cluster.logged(index), 5, "{index}");
        assert!(cluster.compact_log(index));
    }
    cluster.settle();
    for index in 0..3 {
        cluster.crash(index);
    }
    for index in [1, 2] {
        cluster.restart(index);
    }
    cluster.start(&[1, 2]);
    cluster.pass(checkpoint.after);
    cluster.settle();
    for index in [1, 2] {
        assert_eq!(cluster.logged(index), 0, "{index}: covered by a checkpoint, or executed");
    }
}

#[test]
fn a_log_is_not_compacted_before_the_log_snapshot_is_there_nor_where_there_can_be_none() {
    let mut cluster = durable();
    cluster.request(0, 1, "a");
    cluster.settle();
    cluster.nodes[1].server.as_mut().expect("it runs").held = true;
    assert!(cluster.compact_log(1));
    cluster.settle();
    assert_eq!(cluster.nodes[1].disk.given_up, 0, "its server has not given its state");
    cluster.nodes[1].server.as_mut().expect("it runs").held = false;
    cluster.settle();
    assert!(cluster.nodes[1].disk.given_up > 0);
    cluster.crash_server(2);
    cluster.settle();
    assert!(!cluster.compact_log(2), "its member is not in");
}

#[test]
fn a_slow_disk_has_the_record_before_anything_is_given_up() {
    let mut cluster = durable();
    cluster.request(0, 1, "a");
    cluster.settle();
    cluster.nodes[1].disk.slow = true;
    assert!(cluster.compact_log(1));
    cluster.settle();
    assert_eq!(cluster.nodes[1].disk.given_up, 0);
    cluster.request(0, 2, "b");
    cluster.settle();
    cluster.sync(1);
    assert!(cluster.nodes[1].disk.given_up > 0);
    let said = cluster.nodes[0].logged.len();
    cluster.nodes[2].disk.slow = true;
    cluster.request(0, 3, "c");
    cluster.settle();
    assert_eq!(cluster.nodes[0].logged.len(), said, "the cut's record is no message");
}
