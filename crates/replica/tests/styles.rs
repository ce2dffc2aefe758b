//! What the members do in each style, and what becomes of the requests when that changes.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_base::{Duration, NodeId};
use quorba_replica::{Command, CommandRefused, Style};

fn warm() -> Cluster {
    Cluster::whole_planned(Plan::style(Style::WarmPassive))
}

fn cold() -> Cluster {
    let mut cluster = Cluster::planned(3, Plan::style(Style::ColdPassive));
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    for index in 0..3 {
        assert_eq!(cluster.states(index), ["in", "in", "in"]);
    }
    cluster
}

fn requests(c: &mut Cluster, from: u64, texts: &[&str]) {
    for (number, text) in (from..).zip(texts) {
        c.request(0, number, text);
    }
    c.settle();
}

#[test]
fn the_leader_of_a_semi_active_group_answers_every_client() {
    let mut c = Cluster::whole_planned(Plan::style(Style::SemiActive));
    assert_eq!(c.leader(2), Some(0));
    c.request(2, 1, "a");
    c.settle();
    assert_eq!(c.nodes[2].replies, [(1, "a is number 1".into())]);
    assert_eq!(c.executed(1), ["a"], "the others execute too");
    // Nobody but the leader: with the leader held, no reply comes.
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.request(2, 2, "b");
    c.settle();
    assert_eq!(c.executed(1), ["a", "b"]);
    assert_eq!(c.nodes[2].replies.len(), 1);
    let before = c.nodes[2].resubmits;
    c.crash_server(0);
    c.settle();
    assert_eq!(c.leader(2), Some(1), "the next one in ring order leads");
    assert!(c.nodes[2].resubmits > before);
    c.request(2, 2, "b");
    c.settle();
    assert_eq!(c.nodes[2].replies[1..], [(2, "b is number 2".into())]);
    c.start_server(0);
    c.settle();
    assert_eq!(c.leader(2), Some(1), "who comes back does not take the lead");
}

#[test]
fn the_preferred_leader_leads_at_first_also_if_it_comes_last() {
    let mut c = Cluster::planned(3, Plan::style(Style::SemiActive));
    c.install(&[0, 1, 2]);
    for index in [2, 1, 0] {
        c.start_server(index);
        c.settle();
    }
    assert!(c.snapshot(1).opened);
    assert_eq!(c.leader(1), Some(0));
}

#[test]
fn in_a_warm_passive_group_only_the_leader_executes() {
    let mut c = warm();
    requests(&mut c, 1, &["a", "b"]);
    assert_eq!(c.executed(0), ["a", "b"]);
    assert!(c.executed(1).is_empty() && c.executed(2).is_empty());
    assert_eq!((c.logged(1), c.logged(2)), (2, 2));
    assert_eq!(c.nodes[0].replies.len(), 2);
}

#[test]
fn a_checkpoint_comes_after_so_many_requests() {
    let mut c = warm();
    requests(&mut c, 1, &["a", "b", "c", "d"]);
    assert_eq!(c.executed(1), ["a", "b", "c"], "three, and then the state");
    assert_eq!(c.logged(1), 1);
}

#[test]
fn a_checkpoint_comes_after_so_much_time() {
    let mut c = warm();
    requests(&mut c, 1, &["a"]);
    assert_eq!(c.logged(1), 1);
    c.pass(Duration::from_secs(1));
    c.settle();
    assert_eq!(c.logged(1), 0);
    assert_eq!(c.executed(2), ["a"]);
}

#[test]
fn who_follows_a_dead_leader_replays_and_answers() {
    let mut c = warm();
    requests(&mut c, 1, &["a", "b", "c", "d"]);
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.request(2, 1, "e");
    c.settle();
    assert!(c.nodes[2].replies.is_empty());
    c.crash_server(0);
    c.settle();
    assert_eq!(c.executed(1), ["a", "b", "c", "d", "e"]);
    c.request(2, 1, "e");
    c.settle();
    let reply = (1, "e is number 5".to_string());
    assert_eq!(c.nodes[2].replies, [reply.clone(), reply], "the repetition is not executed");
    assert_eq!(c.executed(1).len(), 5);
    assert_eq!(c.executed(2), ["a", "b", "c"], "the third stands by still");
    c.start_server(0);
    c.settle();
    requests(&mut c, 5, &["f", "g", "h"]);
    assert_eq!(c.states(2), ["in", "in", "in"]);
    for index in 0..3 {
        c.pass(Duration::from_secs(1));
        c.settle();
        assert_eq!(c.executed(index).len(), 8, "node {index}");
    }
}

#[test]
fn a_reply_that_was_given_before_the_checkpoint_is_known_after_the_takeover() {
    let mut c = warm();
    c.ft_request(0, 1, "a", 5);
    c.settle();
    requests(&mut c, 2, &["b", "c"]);
    assert_eq!(c.logged(1), 0);
    c.crash_server(0);
    c.settle();
    c.ft_request(2, 9, "a", 5);
    c.settle();
    assert_eq!(c.nodes[2].replies, [(9, "a is number 1".into())]);
    assert_eq!(c.executed(1), ["a", "b", "c"]);
}

#[test]
fn a_checkpoint_of_which_only_a_part_came_before_the_leader_died_counts_nowhere() {
    let mut c = warm();
    requests(&mut c, 1, &["a", "b"]);
    c.request(0, 3, &"c".repeat(100_000));
    // Everything but the last piece.
    while c.order.len() != 1 || c.executed(0).len() < 3 {
        match c.order.pop_front() {
            Some(delivered) => c.deliver_one(&delivered),
            None => assert!(c.serve_once(0)),
        }
    }
    c.crash(0);
    c.install(&[1, 2]);
    c.settle();
    assert_eq!(c.executed(1).len(), 3, "replayed from the log");
    assert_eq!(c.executed(2).len(), 3, "by the next checkpoint, of the next leader");
    assert_eq!(c.logged(2), 0);
}

#[test]
fn an_updateable_sends_what_has_changed_and_a_newcomer_gets_everything() {
    let mut plan = Plan::style(Style::WarmPassive);
    plan.checkpoint.updates = true;
    let mut c = Cluster::whole_planned(plan);
    requests(&mut c, 1, &["a", "b", "c"]);
    requests(&mut c, 4, &["d", "e", "f"]);
    requests(&mut c, 7, &["g", "h", "i"]);
    assert_eq!(c.executed(1).len(), 9);
    assert_eq!(c.nodes[1].server.as_ref().unwrap().updates, 2, "a state, then two updates");
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.settle();
    requests(&mut c, 10, &["j", "k", "l", "m", "n", "o"]);
    for index in [1, 2] {
        assert_eq!(c.executed(index).len(), 15, "node {index}");
        assert_eq!(c.executed(index), c.executed(0));
    }
}

#[test]
fn of_a_cold_passive_group_only_the_leader_has_a_server() {
    let mut c = cold();
    assert!(c.nodes[0].server.is_some());
    assert!(c.nodes[1].server.is_none() && c.nodes[2].server.is_none());
    requests(&mut c, 1, &["a", "b", "c", "d"]);
    assert_eq!(c.logged(1), 1, "a checkpoint covers the rest");
    c.crash(0);
    c.install(&[1, 2]);
    c.settle();
    assert_eq!(c.leader(2), Some(1));
    assert_eq!(c.executed(1), ["a", "b", "c", "d"], "launched, given the state, and the log");
    c.restart(0);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert!(c.nodes[0].server.is_none(), "who comes back needs none");
    c.request(2, 1, "e");
    c.settle();
    c.crash_server(1);
    c.settle();
    assert_eq!(c.leader(0), Some(2));
    assert_eq!(c.executed(2), ["a", "b", "c", "d", "e"]);
}

#[test]
fn a_cold_leader_whose_server_dies_comes_back_without_one() {
    let mut c = cold();
    requests(&mut c, 1, &["a"]);
    c.crash_server(0);
    c.settle();
    assert_eq!(c.leader(0), Some(1));
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert!(c.nodes[0].server.is_none());
    requests(&mut c, 2, &["b"]);
    assert_eq!(c.executed(1), ["a", "b"]);
}

#[test]
fn every_style_can_follow_every_other_and_no_request_is_lost() {
    // A stateless group executes a request at one member; see `stateless.rs`.
    let ordered = || Style::ALL.iter().copied().filter(|style| *style != Style::Stateless);
    for first in ordered() {
        for second in ordered() {
            let mut c = if first == Style::ColdPassive {
                cold()
            } else {
                Cluster::whole_planned(Plan::style(first))
            };
            requests(&mut c, 1, &["a", "b"]);
            // In flight on both sides of the change.
            c.nodes[0].server.as_mut().unwrap().held = true;
            c.request(0, 3, "c");
            c.command_group(0, Command::SetStyle(second));
            c.request(0, 4, "d");
            c.settle();
            c.nodes[0].server.as_mut().unwrap().held = false;
            c.settle();
            c.crash(0);
            c.install(&[1, 2]);
            c.settle();
            c.request(1, 1, "e");
            c.settle();
            let name = format!("{} to {}", first.as_str(), second.as_str());
            assert_eq!(c.executed(1), ["a", "b", "c", "d", "e"], "{name}");
            assert_eq!(c.nodes[1].replies, [(1, "e is number 5".into())], "{name}");
            let answered = c.nodes[0].replies.iter().map(|(number, _)| *number);
            let answered: std::collections::BTreeSet<u64> = answered.collect();
            assert_eq!(answered, (1..=4).collect(), "{name}");
            let runs = c.nodes[2].server.is_some();
            assert_eq!(runs, second != Style::ColdPassive, "{name}: the third's server");
        }
    }
}

#[test]
fn another_member_can_be_made_the_leader_while_calls_are_open() {
    for style in [Style::SemiActive, Style::WarmPassive, Style::ColdPassive] {
        let mut c = match style {
            Style::ColdPassive => cold(),
            style => Cluster::whole_planned(Plan::style(style)),
        };
        requests(&mut c, 1, &["a"]);
        c.nodes[0].server.as_mut().unwrap().held = true;
        c.request(2, 1, "b");
        c.promote(2);
        assert_eq!(c.nodes[0].commanded, [Ok(())]);
        assert_eq!(c.leader(1), Some(2));
        c.request(2, 1, "b");
        c.settle();
        assert_eq!(c.nodes[2].replies.last(), Some(&(1, "b is number 2".into())), "{style:?}");
        if let Some(server) = &mut c.nodes[0].server {
            server.held = false;
        }
        c.settle();
        assert_eq!(c.executed(2), ["a", "b"], "{style:?}");
    }
}

#[test]
fn a_command_that_makes_no_sense_is_refused_and_changes_nothing() {
    let mut c = Cluster::whole(false);
    c.promote(1);
    c.command_group(1, Command::SetStyle(Style::WarmPassive));
    let node = NodeId::new(9).unwrap();
    c.command_group(2, Command::SetStyle(Style::SemiActive));
    c.command_group(2, Command::Promote(node));
    assert_eq!(c.nodes[0].commanded, [Err(CommandRefused::NoLeader(Style::Active))]);
    let passive = CommandRefused::NoStateObject(Style::WarmPassive);
    assert_eq!(c.nodes[1].commanded, [Err(passive)]);
    assert_eq!(c.nodes[2].commanded, [Ok(()), Err(CommandRefused::NoMember(node))]);
    assert_eq!(c.leader(0), Some(0));
    c.install(&[0]);
    c.settle();
    c.command_group(0, Command::SetStyle(Style::Active));
    assert_eq!(c.nodes[0].commanded[1..], [Err(CommandRefused::NoPrimary)]);
}

#[test]
fn a_node_that_comes_back_learns_the_style_and_the_leader() {
    let mut c = Cluster::whole(true);
    c.command_group(0, Command::SetStyle(Style::WarmPassive));
    c.promote(1);
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    requests(&mut c, 1, &["a"]);
    c.restart(2);
    c.install(&[0, 1, 2]);
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(2), ["in", "in", "in"]);
    assert_eq!(c.leader(2), Some(1));
    requests(&mut c, 2, &["b"]);
    assert_eq!(c.executed(2), ["a"], "it has the state and stands by");
    assert_eq!(c.logged(2), 1);
}

/// A checkpoint that is taken while a component forms is sent when it has formed: pieces of before
/// do not count, and would come again behind those that do.
#[test]
fn a_checkpoint_that_is_taken_while_a_component_forms_reaches_the_backups() {
    let mut c = warm();
    c.server(0).held = true;
    let long = "x".repeat(150_000);
    requests(&mut c, 1, &[&long, &long, &long]);
    assert_eq!(c.logged(1), 3);
    c.install(&[0, 1, 2]);
    let last = c.order.pop_back().expect("each says what it knows");
    assert_eq!(c.order.len(), 2);
    c.server(0).held = false;
    while c.serve_once(0) {}
    // Messages of several nodes come in any order.
    let place = c.order.len().min(6);
    c.order.insert(place, last);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert_eq!((c.logged(1), c.logged(2)), (0, 0));
    assert_eq!(c.executed(1).len(), 3);
}
