//! Operators take the state of a group away, and put it back.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_base::{Duration, NodeId};
use quorba_replica::{
    Backup, BackupRefused, CheckpointRule, Command, CommandRefused, DownReason, Style,
};

const STYLES: [Style; 5] = [
    Style::Active,
    Style::ActiveWithVoting,
    Style::SemiActive,
    Style::WarmPassive,
    Style::ColdPassive,
];

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

fn whole(plan: Plan) -> Cluster {
    let mut c = Cluster::planned(3, plan);
    c.install(&[0, 1, 2]);
    if plan.style != Style::ColdPassive {
        (0..3).for_each(|index| c.start_server(index));
    }
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    c
}

/// Who has executed everything.
fn donor(c: &Cluster) -> usize {
    c.leader(0).unwrap_or(1)
}

fn call(c: &mut Cluster, number: u64, text: &str) -> String {
    c.request(2, number, text);
    c.settle();
    let (last, reply) = c.nodes[2].replies.last().expect("a reply").clone();
    assert_eq!(last, number);
    reply
}

fn named(c: &mut Cluster, number: u64, text: &str, retention_id: i32) -> String {
    c.ft_request(2, number, text, retention_id);
    c.settle();
    c.nodes[2].replies.last().expect("a reply").1.clone()
}

fn backup_of(plan: Plan) -> Backup {
    let mut c = whole(plan);
    call(&mut c, 1, "a");
    assert_eq!(named(&mut c, 2, "b", 7), "b is number 2");
    let donor = donor(&c);
    let backup = c.back_up(donor).expect("the member is in");
    assert_eq!((backup.history.count, backup.requests), (2, 2));
    assert_eq!(&backup.state[..], b"a\nb");
    backup
}

#[test]
fn a_restored_group_has_the_state_at_every_member_and_knows_what_clients_repeat() {
    for style in STYLES {
        let backup = backup_of(Plan::style(style));
        // Another life of the domain, in which something has been done since. Its gateways count
        // anew here, so that numbers of the first life are left out: nodes never have such boots.
        let mut c = whole(Plan::style(style));
        call(&mut c, 11, "to be thrown away");
        let at = donor(&c);
        assert_eq!(c.restore(at, backup), Ok(()), "{style:?}");
        assert_eq!(c.states(1), ["in", "in", "in"], "{style:?}");
        assert_eq!(named(&mut c, 12, "b", 7), "b is number 2", "{style:?}: executed twice");
        assert_eq!(call(&mut c, 13, "c"), "c is number 3", "{style:?}");
        c.command_group(0, Command::SetStyle(Style::Active));
        for index in 0..3 {
            if c.nodes[index].server.is_none() {
                c.start_server(index);
            }
        }
        c.settle();
        for index in 0..3 {
            assert_eq!(c.executed(index), ["a", "b", "c"], "{style:?} {index}");
        }
    }
}

#[test]
fn a_restore_brings_back_a_group_that_has_lost_its_state() {
    let backup = backup_of(Plan::plain(true));
    let mut c = whole(Plan::plain(true));
    call(&mut c, 1, "lost");
    (0..3).for_each(|index| c.crash_server(index));
    c.settle();
    (0..3).for_each(|index| c.start_server(index));
    c.settle();
    assert_eq!(c.states(0), ["out", "out", "out"]);
    assert_eq!(c.restore(1, backup), Ok(()));
    assert_eq!(c.states(2), ["in", "in", "in"]);
    assert_eq!(call(&mut c, 2, "c"), "c is number 3");
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a", "b", "c"], "{index}");
    }
}

#[test]
fn a_restored_state_is_not_lost_with_a_server_that_never_ends_what_it_was_at() {
    for style in [Style::Active, Style::WarmPassive] {
        for crashes in [false, true] {
            let backup = backup_of(Plan::style(style));
            let mut c = whole(Plan::style(style));
            call(&mut c, 1, "to be thrown away");
            let at = donor(&c);
            c.make_silent("b");
            c.request(2, 2, "b");
            c.settle();
            c.begin_restore(at, backup.clone());
            c.settle();
            c.request(2, 3, "c");
            c.settle();
            if crashes {
                c.crash_server(at);
            }
            for _ in 0..40 {
                c.pass(Duration::from_secs(1));
                c.settle();
                for index in 0..3 {
                    if c.nodes[index].server.is_none() {
                        c.start_server(index);
                    }
                }
                c.settle();
            }
            assert_eq!(c.states(0), ["in", "in", "in"], "{style:?}");
            assert_eq!(c.nodes[2].replies.last(), Some(&(3, "c is number 3".into())));
            assert_eq!(c.executed(at), ["a", "b", "c"], "{style:?}");
        }
    }
}

#[test]
fn a_restore_needs_no_server_that_runs_and_no_member_that_is_in() {
    let backup = backup_of(Plan::plain(true));
    let mut c = Cluster::planned(3, Plan::plain(true));
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.restore(0, backup), Ok(()));
    assert_eq!(c.states(0), ["in", "down", "down"]);
    (0..3).for_each(|index| c.start_server(index));
    c.settle();
    assert_eq!(c.states(2), ["in", "in", "in"]);
    assert_eq!(call(&mut c, 11, "c"), "c is number 3");
    assert_eq!(c.executed(1), ["a", "b", "c"]);
}

#[test]
fn what_is_being_executed_when_the_restore_comes_is_executed_again_behind_it() {
    let backup = backup_of(Plan::plain(true));
    let mut c = whole(Plan::plain(true));
    (0..3).for_each(|index| c.nodes[index].server.as_mut().expect("it runs").held = true);
    c.request(2, 11, "x");
    c.settle();
    let resubmits = c.nodes[2].resubmits;
    c.nodes[1].replica.handle_restore(cluster::GROUP, 1, backup);
    c.drain_all();
    c.settle();
    assert!(c.nodes[2].resubmits > resubmits, "its gateway asks again");
    (0..3).for_each(|index| c.nodes[index].server.as_mut().expect("it runs").held = false);
    c.settle();
    assert!(c.nodes[2].replies.is_empty(), "what was executed before counts for nothing");
    assert_eq!(call(&mut c, 11, "x"), "x is number 3");
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a", "b", "x"], "{index}");
    }
}

#[test]
fn a_backup_has_what_was_ordered_before_it_and_counts_when_a_majority_holds_it() {
    let mut c = whole(Plan::plain(true));
    c.nodes[1].server.as_mut().expect("it runs").held = true;
    (1..=3).for_each(|number| c.request(0, number, &format!("{number}")));
    c.nobody_holds = true;
    c.nodes[1].replica.handle_backup(cluster::GROUP, 5);
    c.drain_all();
    c.settle();
    c.request(0, 4, "behind it");
    c.settle();
    c.nodes[1].server.as_mut().expect("it runs").held = false;
    c.settle();
    assert_eq!(c.executed(1).len(), 4);
    assert!(c.nodes[1].backups.is_empty(), "nobody holds it");
    c.nobody_holds = false;
    c.settle();
    let backup = c.nodes[1].backups.pop().expect("told").expect("a backup");
    assert_eq!((backup.history.count, &backup.state[..]), (3, &b"1\n2\n3"[..]));
    assert_eq!(backup.requests, 3, "their gateway may still ask again");
}

#[test]
fn an_operator_is_told_that_nothing_is_known_when_the_view_changes() {
    let backup = backup_of(Plan::plain(true));
    let mut c = whole(Plan::plain(true));
    c.nobody_holds = true;
    c.nodes[1].replica.handle_backup(cluster::GROUP, 5);
    c.drain_all();
    c.settle();
    c.nodes[0].replica.handle_restore(cluster::GROUP, 6, backup.clone());
    c.drain_all();
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.nodes[1].backups.pop(), Some(Err(BackupRefused::Unknown)));
    assert_eq!(c.nodes[0].restored.pop(), Some(Err(BackupRefused::Unknown)));
    c.nobody_holds = false;
    assert_eq!(c.restore(0, backup), Ok(()), "and may try again");
}

#[test]
fn a_server_that_ends_or_refuses_gives_no_backup() {
    let mut c = whole(Plan::plain(true));
    c.nodes[1].server.as_mut().expect("it runs").held = true;
    c.nodes[1].replica.handle_backup(cluster::GROUP, 5);
    c.drain_all();
    c.settle();
    c.crash_server(1);
    c.settle();
    c.pass(quorba_base::Duration::from_millis(1));
    assert_eq!(c.nodes[1].backups.pop(), Some(Err(BackupRefused::Interrupted)));
    let down = CommandRefused::NotIn(node(1));
    assert_eq!(c.back_up(1), Err(BackupRefused::Group(down)));
}

#[test]
fn groups_without_a_state_of_their_own_are_refused() {
    let backup = backup_of(Plan::plain(true));
    let mut none = whole(Plan::plain(false));
    let refused = Err(BackupRefused::Group(CommandRefused::NoState));
    assert_eq!(none.back_up(0).map(drop), refused);
    assert_eq!(none.restore(0, backup.clone()), refused);
    let mut stateless = whole(Plan::style(Style::Stateless));
    let refused = Err(BackupRefused::Group(CommandRefused::Stateless));
    assert_eq!(stateless.back_up(0).map(drop), refused);
    assert_eq!(stateless.restore(0, backup.clone()), refused);
    let mut passive = whole(Plan::style(Style::WarmPassive));
    let refused = Err(BackupRefused::Group(CommandRefused::NotLeading(node(1))));
    assert_eq!(passive.back_up(1).map(drop), refused);
    for damaged in [
        Backup { requests: 3, ..backup.clone() },
        Backup { replies: backup.replies.slice(1..), ..backup.clone() },
        Backup { replies: bytes::Bytes::new(), ..backup },
    ] {
        assert_eq!(none.restore(0, damaged), Err(BackupRefused::Damaged));
    }
}

#[test]
fn a_durable_group_is_restored_for_all_later_lives() {
    for style in STYLES {
        let backup = backup_of(Plan::style(style));
        let mut c = whole(Plan { durable: true, ..Plan::style(style) });
        call(&mut c, 1, "to be thrown away");
        let at = donor(&c);
        assert_eq!(c.restore(at, backup), Ok(()), "{style:?}");
        assert_eq!(call(&mut c, 2, "c"), "c is number 3", "{style:?}");
        assert_eq!(c.nodes[2].logged.last(), Some(&2), "{style:?}");
        for round in 0..2 {
            (0..3).for_each(|index| c.crash(index));
            (0..3).for_each(|index| c.restart(index));
            c.install(&[0, 1, 2]);
            c.settle();
            for index in 0..3 {
                if style != Style::ColdPassive {
                    c.start_server(index);
                }
            }
            c.settle();
            assert_eq!(c.states(0), ["in", "in", "in"], "{style:?} {round}");
            let again = named(&mut c, 1 + round, "b", 7);
            assert_eq!(again, "b is number 2", "{style:?} {round}: executed twice");
        }
        assert_eq!(call(&mut c, 9, "d"), "d is number 4", "{style:?}");
    }
}

#[test]
fn a_restore_of_which_no_majority_has_the_state_on_disk_is_not_confirmed_nor_are_calls_behind_it() {
    let backup = backup_of(Plan::plain(true));
    let mut c = whole(Plan { durable: true, ..Plan::plain(true) });
    call(&mut c, 1, "before");
    c.nodes[2].server = None;
    c.cut = true;
    // The others cannot be given the state.
    c.begin_restore(0, backup);
    c.request(2, 2, "c");
    c.settle();
    assert_eq!(c.states(0), ["in", "joining", "joining"]);
    assert_eq!(c.nodes[0].restored, []);
    assert_eq!(c.nodes[2].logged, [1], "only one disk has what it goes on from");
    c.relink();
    c.start_server(2);
    c.settle();
    c.pass(quorba_base::Duration::from_secs(2));
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.nodes[0].restored, [Ok(())]);
    assert_eq!(c.nodes[2].logged, [1, 2]);
}

#[test]
fn members_are_told_why_they_begin_anew() {
    let backup = backup_of(Plan::plain(true));
    let mut c = whole(Plan::plain(true));
    assert_eq!(c.restore(2, backup), Ok(()));
    assert_eq!(c.nodes[0].downs(), [DownReason::Restored; 2]);
}

#[test]
fn a_backup_between_two_checkpoints_is_no_gap_in_the_updates() {
    let plan = Plan::style(Style::WarmPassive);
    let checkpoint = CheckpointRule { updates: true, ..plan.checkpoint };
    let mut c = whole(Plan { checkpoint, ..plan });
    for number in 1..=4 {
        call(&mut c, number, &format!("{number}"));
    }
    let leader = donor(&c);
    c.back_up(leader).expect("it leads");
    for number in 5..=9 {
        call(&mut c, number, &format!("{number}"));
    }
    c.crash_server(leader);
    c.settle();
    let next = c.leader(2).expect("another one leads");
    assert_eq!(call(&mut c, 10, "10"), "10 is number 10");
    assert_eq!(c.executed(next).len(), 10);
}
