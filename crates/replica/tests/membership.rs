//! Operators take members out and put them back while the group works.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_base::NodeId;
use quorba_replica::{Command, CommandRefused, Style};

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

fn requests(c: &mut Cluster, from: u64, texts: &[&str]) {
    for (number, text) in (from..).zip(texts) {
        c.request(0, number, text);
    }
    c.settle();
}

/// The server of a node that was told to begin anew does so.
fn begin_anew(c: &mut Cluster, index: usize) {
    c.crash_server(index);
    c.start_server(index);
    c.settle();
}

#[test]
fn a_member_that_is_removed_executes_nothing_and_gets_the_state_when_it_is_added() {
    for style in [Style::Active, Style::SemiActive, Style::WarmPassive, Style::ActiveWithVoting] {
        let mut c = Cluster::whole_planned(Plan::style(style));
        requests(&mut c, 1, &["a"]);
        c.command_group(2, Command::Remove(node(1)));
        begin_anew(&mut c, 1);
        assert_eq!(c.states(0), ["in", "out", "in"], "{style:?}");
        requests(&mut c, 2, &["b"]);
        assert!(c.executed(1).is_empty(), "{style:?}");
        assert_eq!(c.nodes[0].replies.last(), Some(&(2, "b is number 2".into())), "{style:?}");
        c.command_group(0, Command::Add(node(1)));
        assert_eq!(c.states(2), ["in", "in", "in"], "{style:?}");
        requests(&mut c, 3, &["c"]);
        if style != Style::WarmPassive {
            assert_eq!(c.executed(1), ["a", "b", "c"], "{style:?}");
        }
    }
}

#[test]
fn a_member_that_never_came_is_removed_and_the_others_do_not_wait_for_it() {
    let mut c = Cluster::planned(3, Plan::style(Style::SemiActive));
    c.install(&[0, 1]);
    for index in [0, 1] {
        c.start_server(index);
    }
    c.settle();
    assert!(!c.snapshot(0).opened);
    c.command_group(0, Command::Remove(node(2)));
    assert!(c.snapshot(0).opened);
    assert!(c.snapshot(1).removed.contains(node(2)));
    requests(&mut c, 1, &["a"]);
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".to_string())]);
}

#[test]
fn a_leader_that_is_removed_is_followed_and_nothing_is_lost() {
    for style in [Style::SemiActive, Style::WarmPassive, Style::ColdPassive] {
        let mut c = if style == Style::ColdPassive {
            Cluster::planned(3, Plan::style(style))
        } else {
            Cluster::whole_planned(Plan::style(style))
        };
        c.install(&[0, 1, 2]);
        c.settle();
        requests(&mut c, 1, &["a", "b"]);
        c.nodes[0].server.as_mut().expect("it leads").held = true;
        c.request(2, 1, "c");
        c.settle();
        c.command_group(2, Command::Remove(node(0)));
        assert_eq!(c.leader(2), Some(1), "{style:?}");
        if c.nodes[1].server.is_none() {
            c.start_server(1);
        }
        c.request(2, 1, "c");
        c.settle();
        assert_eq!(c.nodes[2].replies.last(), Some(&(1, "c is number 3".into())), "{style:?}");
        assert_eq!(c.executed(1), ["a", "b", "c"], "{style:?}");
    }
}

#[test]
fn the_last_member_stays_and_none_is_removed_or_added_twice() {
    let mut c = Cluster::whole(true);
    let refusal = |c: &mut Cluster, command| {
        c.command_group(0, command);
        c.nodes[0].commanded.pop()
    };
    assert_eq!(
        refusal(&mut c, Command::Add(node(1))),
        Some(Err(CommandRefused::NotRemoved(node(1))))
    );
    for index in [1, 2] {
        assert_eq!(refusal(&mut c, Command::Remove(node(index))), Some(Ok(())));
        begin_anew(&mut c, usize::from(index));
    }
    assert_eq!(
        refusal(&mut c, Command::Remove(node(1))),
        Some(Err(CommandRefused::Removed(node(1))))
    );
    assert_eq!(
        refusal(&mut c, Command::Remove(node(0))),
        Some(Err(CommandRefused::LastMember(node(0))))
    );
    assert_eq!(
        refusal(&mut c, Command::Remove(node(9))),
        Some(Err(CommandRefused::NoMember(node(9))))
    );
    requests(&mut c, 1, &["a"]);
    assert_eq!(c.executed(0), ["a"]);
    let mut c = Cluster::whole(false);
    let no_way_back = Some(Err(CommandRefused::NoWayBack(node(1))));
    assert_eq!(refusal(&mut c, Command::Remove(node(1))), no_way_back, "without a state object");
}

#[test]
fn a_node_that_was_away_or_is_started_anew_learns_who_was_removed() {
    let mut c = Cluster::whole(true);
    requests(&mut c, 1, &["a"]);
    c.install(&[0, 1]);
    c.settle();
    c.command_group(0, Command::Remove(node(2)));
    requests(&mut c, 2, &["b"]);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(2), ["in", "in", "out"], "it was away");
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    c.restart(2);
    c.install(&[0, 1, 2]);
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(2), ["in", "in", "out"], "its file names it");
    c.command_group(1, Command::Add(node(2)));
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), ["a", "b"]);
}

#[test]
fn a_durable_group_remembers_who_was_removed_when_all_nodes_have_ended() {
    let mut c = Cluster::whole_planned(Plan { durable: true, ..Plan::plain(true) });
    requests(&mut c, 1, &["a"]);
    c.command_group(0, Command::Remove(node(1)));
    requests(&mut c, 2, &["b"]);
    for index in 0..3 {
        c.crash(index);
    }
    for index in 0..3 {
        c.restart(index);
    }
    c.install(&[0, 1, 2]);
    c.settle();
    for index in 0..3 {
        c.start_server(index);
    }
    c.settle();
    assert_eq!(c.states(2), ["in", "out", "in"]);
    c.command_group(2, Command::Add(node(1)));
    assert_eq!(c.states(2), ["in", "in", "in"]);
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a", "b"], "{index}");
    }
}

/// After the end of all nodes whoever was removed has nothing to say of the group, so its disk
/// must not have been one of those that a reply relied on (seed 101303 of `styles`).
#[test]
fn the_disk_of_a_removed_member_counts_for_no_reply() {
    let mut c = Cluster::whole_planned(Plan { durable: true, ..Plan::plain(true) });
    c.command_group(0, Command::Remove(node(1)));
    c.nodes[2].disk.slow = true;
    c.request(0, 1, "a");
    c.settle();
    assert!(c.nodes[0].logged.is_empty(), "one member's disk and a removed one's");
    c.nodes[2].disk.slow = false;
    c.request(0, 2, "b");
    c.settle();
    assert_eq!(c.nodes[0].logged, [1, 2]);
    c.command_group(0, Command::Remove(node(2)));
    let refused = CommandRefused::TooFewDisks(node(2));
    assert_eq!(c.nodes[0].commanded.last(), Some(&Err(refused)));
}
