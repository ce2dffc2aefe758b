//! A group that is not durable, in a domain with one that is, when disks bring back the domain: it
//! waits for a node that is away and may know more, and goes on from there.

mod cluster;

use cluster::{Cluster, GROUP, Plan};
use quorba_base::Duration;
use quorba_replica::primary::Basis;
use quorba_replica::{
    Availability, BackupRefused, Command, CommandRefused, Event, PrimaryStatus, Style,
};

fn beside_durable(style: Style) -> Plan {
    Plan { beside_durable: true, ..Plan::style(style) }
}

/// The group takes requests at `nodes`, the only ones that have ever been there.
fn first_start(count: usize, style: Style, nodes: &[usize]) -> Cluster {
    let mut cluster = Cluster::planned(count, beside_durable(style));
    cluster.start(nodes);
    cluster.pass(Duration::from_secs(60));
    cluster.settle();
    assert_eq!(cluster.nodes[nodes[0]].replica.availability(GROUP), Availability::Ready);
    cluster
}

/// Node 0 and node 2 acknowledge two requests, of which the second is not on the disk of node 2.
/// That one ends, node 0 is cut off, and node 1 comes for the first time.
fn one_ends_and_one_is_cut_off(style: Style) -> Cluster {
    let mut cluster = first_start(3, style, &[0, 2]);
    if style.is_passive() {
        cluster.promote(2);
    }
    if style == Style::Stateless {
        cluster.command_group(0, Command::SetStyle(Style::Active));
        cluster.start_server(2);
        cluster.settle();
        assert_eq!(cluster.states(0)[2], "in");
    }
    cluster.request(0, 1, "on disk");
    cluster.settle();
    cluster.nodes[2].disk.slow = true;
    cluster.request(0, 2, "in memory");
    cluster.settle();
    assert_eq!(cluster.nodes[0].replies.len(), 2, "both are acknowledged");
    cluster.crash(2);
    cluster.restart(2);
    cluster.install(&[0]);
    cluster.start(&[1, 2]);
    cluster
}

fn assert_waits(cluster: &mut Cluster, nodes: &[usize]) {
    for node in nodes {
        let replica = &cluster.nodes[*node].replica;
        assert_eq!(replica.status(), PrimaryStatus::Primary, "{node}: durable groups go on");
        assert_eq!(replica.availability(GROUP), Availability::Waits, "{node}");
        assert!(cluster.snapshot(*node).waits_for_memory, "{node}");
    }
    let answered = cluster.nodes[nodes[0]].replies.len();
    cluster.request(nodes[0], 900, "too early");
    cluster.settle();
    assert_eq!(cluster.nodes[nodes[0]].replies.len(), answered, "it counts nowhere");
}

fn assert_all_have(cluster: &Cluster, requests: &[&str]) {
    for node in 0..cluster.nodes.len() {
        assert!(!cluster.snapshot(node).waits_for_memory, "{node}");
        assert_eq!(cluster.executed(node), requests, "{node}");
        assert!(cluster.states(node).iter().all(|state| *state == "in"), "{node}");
    }
}

/// Found as seed 1983801 of the simulator's `styles`.
#[test]
fn it_waits_for_the_node_that_was_cut_off_and_goes_on_from_there() {
    let mut cluster = one_ends_and_one_is_cut_off(Style::Active);
    assert_waits(&mut cluster, &[1, 2]);
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    assert_all_have(&cluster, &["on disk", "in memory"]);
    cluster.request(1, 3, "afterwards");
    cluster.settle();
    assert_all_have(&cluster, &["on disk", "in memory", "afterwards"]);
}

#[test]
fn a_backup_that_was_cut_off_has_what_it_logged() {
    let mut cluster = one_ends_and_one_is_cut_off(Style::WarmPassive);
    assert_waits(&mut cluster, &[1, 2]);
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    assert_eq!(cluster.leader(1), Some(0));
    cluster.request(1, 3, "afterwards");
    cluster.settle();
    assert_eq!(cluster.executed(0), ["on disk", "in memory", "afterwards"]);
    for node in 0..3 {
        assert_eq!(cluster.states(node), ["in", "in", "in"], "{node}");
    }
}

#[test]
fn a_group_that_was_declared_stateless_and_has_a_state_now_waits_as_well() {
    let mut cluster = one_ends_and_one_is_cut_off(Style::Stateless);
    assert_waits(&mut cluster, &[1, 2]);
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    assert_all_have(&cluster, &["on disk", "in memory"]);
}

#[test]
fn operators_are_told_that_it_waits() {
    let mut cluster = one_ends_and_one_is_cut_off(Style::Active);
    cluster.command_group(1, Command::SetStyle(Style::SemiActive));
    assert_eq!(cluster.nodes[1].commanded, [Err(CommandRefused::Waits)]);
    let refused = cluster.back_up(2).err();
    assert_eq!(refused, Some(BackupRefused::Group(CommandRefused::Waits)));
}

#[test]
fn a_log_is_compacted_while_a_server_of_a_group_that_waits_is_down() {
    let mut cluster = one_ends_and_one_is_cut_off(Style::Active);
    cluster.crash_server(2);
    assert!(cluster.compact_log(2));
    cluster.settle();
    assert!(cluster.nodes[2].disk.given_up > 0);
    assert_eq!(cluster.snapshot(2).log_hold, None);
    cluster.install(&[0, 1, 2]);
    cluster.start_server(2);
    cluster.settle();
    assert_all_have(&cluster, &["on disk", "in memory"]);
}

#[test]
fn that_it_waits_is_known_after_a_restart() {
    let mut cluster = one_ends_and_one_is_cut_off(Style::Active);
    for node in [1, 2] {
        cluster.crash(node);
        cluster.restart(node);
    }
    cluster.start(&[1, 2]);
    assert_waits(&mut cluster, &[1, 2]);
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    assert_all_have(&cluster, &["on disk", "in memory"]);
}

#[test]
fn that_it_waits_is_known_when_the_log_was_compacted() {
    let mut cluster = one_ends_and_one_is_cut_off(Style::Active);
    assert!(cluster.compact_log(2));
    cluster.settle();
    assert!(cluster.nodes[2].disk.given_up > 0);
    for node in [1, 2] {
        cluster.crash(node);
        cluster.restart(node);
    }
    cluster.start(&[1, 2]);
    assert_waits(&mut cluster, &[1, 2]);
    assert_eq!(cluster.executed(2), ["on disk"], "by the log snapshot");
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    assert_all_have(&cluster, &["on disk", "in memory"]);
}

#[test]
fn when_the_last_one_has_lost_its_memory_too_the_logs_are_the_best_there_is() {
    let mut cluster = one_ends_and_one_is_cut_off(Style::Active);
    cluster.nodes[0].disk.synced = 0;
    cluster.crash(0);
    cluster.restart(0);
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    cluster.start_server(0);
    cluster.settle();
    assert_all_have(&cluster, &["on disk"]);
    let is_said =
        |event: &Event| matches!(event, Event::MemoryFrom { basis: Basis::MemoryLost, .. });
    assert!(cluster.nodes[1].events.iter().any(is_said), "requests may be lost");
}

#[test]
fn when_all_nodes_ended_nobody_waits() {
    let mut cluster = Cluster::whole_planned(beside_durable(Style::Active));
    cluster.request(0, 1, "everywhere");
    cluster.settle();
    for node in 0..3 {
        cluster.crash(node);
    }
    for node in 0..3 {
        cluster.restart(node);
    }
    cluster.start(&[0, 1, 2]);
    assert_all_have(&cluster, &["everywhere"]);
    let is_said =
        |event: &Event| matches!(event, Event::MemoryFrom { basis: Basis::MemoryLost, .. });
    assert!(cluster.nodes[0].events.iter().any(is_said), "what was on no disk may be lost");
}

#[test]
fn a_whole_domain_of_which_one_node_does_not_come_back_waits_with_what_is_not_durable() {
    let mut cluster = Cluster::whole_planned(beside_durable(Style::Active));
    for node in 0..3 {
        cluster.crash(node);
    }
    for node in [1, 2] {
        cluster.restart(node);
    }
    cluster.start(&[1, 2]);
    assert_waits(&mut cluster, &[1, 2]);
    // Another machine takes its place.
    cluster.lose_disk(0);
    cluster.restart(0);
    cluster.start(&[0, 1, 2]);
    assert_all_have(&cluster, &[]);
}

/// Of four that were in the last component two have ended; one of the others alone may lack what
/// the fourth has acknowledged with those. What happens to its server while the group waits is
/// known when it goes on.
#[test]
fn it_waits_until_enough_of_its_memory_is_there() {
    let mut cluster = first_start(5, Style::Active, &[0, 1, 2, 4]);
    cluster.request(0, 1, "on disk");
    cluster.settle();
    for node in [1, 2] {
        cluster.nodes[node].disk.slow = true;
    }
    cluster.request(0, 2, "in memory");
    cluster.settle();
    for node in [1, 2] {
        cluster.crash(node);
        cluster.restart(node);
    }
    cluster.start(&[1, 2, 3]);
    assert_waits(&mut cluster, &[1, 2, 3]);
    cluster.install(&[0, 1, 2, 3]);
    cluster.settle();
    assert_waits(&mut cluster, &[1, 2, 3]);
    cluster.crash_server(0);
    cluster.settle();
    cluster.install(&[0, 1, 2, 3, 4]);
    cluster.settle();
    assert_eq!(cluster.executed(4), ["on disk", "in memory"]);
    assert_eq!(cluster.states(1), ["down", "in", "in", "in", "in"]);
    cluster.start_server(0);
    cluster.settle();
    assert_all_have(&cluster, &["on disk", "in memory"]);
}
