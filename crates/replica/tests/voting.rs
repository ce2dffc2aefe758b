//! Replies are compared: who lies is outvoted, reported, and rebuilt.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_base::NodeId;
use quorba_replica::{Command, ComparisonRule, DownReason, Event, MemberState, Style};

fn voting() -> Cluster {
    Cluster::whole_planned(Plan::style(Style::ActiveWithVoting))
}

fn lie(c: &mut Cluster, index: usize, lies: bool) {
    c.server(index).lies = lies;
}

fn hold(c: &mut Cluster, index: usize, held: bool) {
    c.server(index).held = held;
}

fn replies_to(c: &Cluster, index: usize, number: u64) -> Vec<&str> {
    let replies = c.nodes[index].replies.iter().filter(|(to, _)| *to == number);
    replies.map(|(_, text)| text.as_str()).collect()
}

fn diverged(c: &Cluster, index: usize) -> Vec<(usize, u64)> {
    let told = c.nodes[index].events.iter().filter_map(|event| match event {
        Event::Diverged { node, request, .. } => Some((usize::from(node.index()), *request)),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_reply_goes_out_when_more_than_half_agree_and_not_before() {
    let mut c = voting();
    hold(&mut c, 1, true);
    hold(&mut c, 2, true);
    c.request(0, 1, "a");
    c.settle();
    assert!(c.nodes[0].replies.is_empty(), "one of three is no majority");
    hold(&mut c, 2, false);
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    hold(&mut c, 1, false);
    c.settle();
    assert_eq!(c.nodes[0].replies.len(), 1);
    assert_eq!(c.states(0), ["in", "in", "in"]);
}

#[test]
fn a_wrong_replica_is_outvoted_reported_expelled_and_rebuilt() {
    for liar in 0..3 {
        let mut c = voting();
        c.request(0, 1, "a");
        c.settle();
        lie(&mut c, liar, true);
        c.request(0, 2, "b");
        c.settle();
        let right = [(1, "a is number 1".to_string()), (2, "b is number 2".to_string())];
        assert_eq!(c.nodes[0].replies, right, "liar {liar}");
        assert_eq!(diverged(&c, 1), [(liar, 2)]);
        assert_eq!(c.nodes[liar].restarts, [DownReason::Diverged]);
        assert_eq!(c.states((liar + 1) % 3)[liar], "down");
        c.start_server(liar);
        c.settle();
        assert_eq!(c.states(0), ["in", "in", "in"]);
        c.request(0, 3, "c");
        c.settle();
        assert_eq!(c.executed(liar), ["a", "b", "c"]);
        assert_eq!(c.nodes[0].replies.len(), 3);
    }
}

#[test]
fn a_wrong_reply_that_comes_after_the_decision_is_found_all_the_same() {
    let mut c = voting();
    hold(&mut c, 2, true);
    lie(&mut c, 2, true);
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    hold(&mut c, 2, false);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "down"]);
    assert_eq!(diverged(&c, 0), [(2, 1)]);
}

// Nobody else has a state any more (seeds 6000345 and 6000594 of the simulator's `backups`).
#[test]
fn who_is_outvoted_when_it_is_the_last_stays() {
    let mut c = voting();
    lie(&mut c, 2, true);
    hold(&mut c, 2, true);
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    c.crash_server(0);
    c.crash_server(1);
    c.settle();
    hold(&mut c, 2, false);
    c.settle();
    assert_eq!(diverged(&c, 1), [(2, 1)], "it is told");
    assert_eq!(c.states(0), ["down", "down", "in"]);
    assert!(c.nodes[2].restarts.is_empty());
}

#[test]
fn two_that_disagree_tell_the_client_so_and_live_on() {
    let mut c = voting();
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    lie(&mut c, 1, true);
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies.len(), 1);
    assert!(c.nodes[0].replies[0].1.contains("exception"), "{:?}", c.nodes[0].replies);
    assert_eq!(c.states(0)[..2], ["in", "in"]);
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies[0], c.nodes[0].replies[1], "the repetition is told the same");
    let told = c.nodes[0].events.iter().any(|e| matches!(e, Event::Disagreement { .. }));
    assert!(told);
}

#[test]
fn the_dead_are_not_waited_for() {
    let mut c = voting();
    hold(&mut c, 1, true);
    hold(&mut c, 2, true);
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(1);
    c.settle();
    assert!(c.nodes[0].replies.is_empty(), "one of two is no majority");
    c.crash_server(2);
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
}

#[test]
fn when_the_one_that_was_to_answer_dies_the_repetition_is_answered() {
    let mut c = voting();
    // The gateway's own member is slow, so another one answers; and dies with the reply unsent.
    hold(&mut c, 0, true);
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    c.request(0, 1, "a");
    hold(&mut c, 0, false);
    c.settle();
    assert!(c.nodes[0].replies.len() >= 2, "it answers itself, too, when it is done");
    assert_eq!(c.executed(0), ["a"]);
}

#[test]
fn a_repetition_that_comes_while_votes_are_out_waits_for_them() {
    let mut c = voting();
    hold(&mut c, 1, true);
    hold(&mut c, 2, true);
    c.ft_request(0, 1, "a", 5);
    c.settle();
    c.ft_request(2, 9, "a", 5);
    c.settle();
    assert!(c.nodes[2].replies.is_empty());
    hold(&mut c, 2, false);
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    assert_eq!(c.nodes[2].replies, [(9, "a is number 1".into())]);
    assert_eq!(c.executed(2), ["a"]);
}

#[test]
fn who_comes_back_votes_on_what_comes_after() {
    let mut c = voting();
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    c.request(0, 1, "a");
    c.settle();
    c.restart(2);
    c.install(&[0, 1, 2]);
    c.start_server(2);
    c.settle();
    hold(&mut c, 1, true);
    c.request(0, 2, "b");
    c.settle();
    assert_eq!(c.nodes[0].replies.len(), 2, "two of three, one of them the newcomer");
}

#[test]
fn the_style_can_change_while_replies_are_held() {
    let mut c = voting();
    hold(&mut c, 1, true);
    hold(&mut c, 2, true);
    c.request(0, 1, "a");
    c.command_group(0, Command::SetStyle(Style::Active));
    c.request(0, 2, "b");
    c.settle();
    hold(&mut c, 1, false);
    hold(&mut c, 2, false);
    c.settle();
    c.request(0, 1, "a");
    c.settle();
    let numbers: Vec<u64> = c.nodes[0].replies.iter().map(|(number, _)| *number).collect();
    assert!(numbers.contains(&1) && numbers.contains(&2), "{numbers:?}");
    c.command_group(0, Command::SetStyle(Style::ActiveWithVoting));
    c.request(0, 3, "c");
    c.settle();
    assert!(c.nodes[0].replies.iter().any(|(number, _)| *number == 3));
}

#[test]
fn active_members_are_compared_in_windows_behind_the_replies() {
    for expel in [false, true] {
        let comparison = ComparisonRule { requests: 4, expel, ignore_padding: false };
        let mut c = Cluster::whole_planned(Plan { comparison, ..Plan::plain(true) });
        lie(&mut c, 1, true);
        c.request(0, 1, "a");
        c.settle();
        lie(&mut c, 1, false);
        assert_eq!(c.nodes[0].replies.len(), 1, "nobody waits for it");
        for number in 2..=4 {
            assert!(diverged(&c, 0).is_empty());
            c.request(0, number, "b");
            c.settle();
        }
        assert_eq!(diverged(&c, 0), [(1, 4)]);
        assert_eq!(c.states(0)[1], if expel { "down" } else { "in" });
        let node = NodeId::new(1).unwrap();
        assert!(c.nodes[2].events.iter().any(|event| matches!(event,
            Event::Diverged { node: n, expelled, .. } if *n == node && *expelled == expel)));
    }
}

/// Who is given a state answers with the replies that come with it.
#[test]
fn a_state_is_not_given_before_the_replies_that_go_with_it_are_decided() {
    let mut c = voting();
    c.request(0, 7, "a");
    c.settle();
    c.crash_server(2);
    c.settle();
    c.cut = true;
    c.start_server(2);
    c.settle();
    let MemberState::Joining { donor, .. } = c.snapshot(0).members[2].1 else { panic!("it joins") };
    let donor = usize::from(donor.index());
    c.crash_server(2);
    c.settle();
    c.cut = false;
    lie(&mut c, donor, true);
    hold(&mut c, 1 - donor, true);
    c.ft_request(donor, 1, "w", 5);
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(donor)[2], "joining");
    hold(&mut c, 1 - donor, false);
    c.settle();
    assert_eq!(c.states(donor)[2], "in");
    c.ft_request(2, 9, "w", 5);
    c.settle();
    assert!(c.nodes[2].replies[0].1.contains("exception"), "{:?}", c.nodes[2].replies);
    assert_eq!(replies_to(&c, donor, 1)[0], c.nodes[2].replies[0].1);
}

#[test]
fn a_backup_waits_for_the_votes_on_the_replies_in_it() {
    let mut c = voting();
    hold(&mut c, 1, true);
    hold(&mut c, 2, true);
    c.ft_request(0, 1, "w", 5);
    c.settle();
    c.nodes[0].replica.handle_backup(cluster::GROUP, 1);
    c.drain_all();
    c.settle();
    assert!(c.nodes[0].backups.is_empty());
    hold(&mut c, 1, false);
    c.settle();
    assert!(matches!(c.nodes[0].backups[..], [Ok(_)]));
}

/// 0 and 1, which were held back, go on without 2, and it comes back.
fn two_is_away(c: &mut Cluster, more: bool) {
    c.install(&[0, 1]);
    c.settle();
    hold(c, 0, false);
    hold(c, 1, false);
    c.settle();
    if more {
        c.request(0, 1, "missed by 2");
        c.settle();
    }
    c.install(&[0, 1, 2]);
    c.settle();
}

/// A wrong member is cut off before its reply is decided, and comes back with all that the group
/// has executed.
#[test]
fn who_comes_back_with_what_it_has_executed_votes_on_it_late() {
    for more in [false, true] {
        let mut c = voting();
        c.request(2, 1, "a");
        c.settle();
        lie(&mut c, 2, true);
        hold(&mut c, 0, true);
        hold(&mut c, 1, true);
        c.ft_request(2, 2, "w", 5);
        c.settle();
        lie(&mut c, 2, false);
        two_is_away(&mut c, more);
        assert_eq!(diverged(&c, 0).iter().map(|(node, _)| *node).collect::<Vec<_>>(), [2]);
        assert_eq!(c.states(0), ["in", "in", "down"]);
        c.ft_request(2, 2, "w", 5);
        c.settle();
        let told: Vec<&str> = replies_to(&c, 2, 2);
        assert!(!told.is_empty() && told.iter().all(|it| *it == "w is number 2"), "{told:?}");
    }
}

/// A wrong member is cut off; those who were right decide, and their servers end. It is the last
/// one with a state, so it stays, and those that start anew get its state.
#[test]
fn the_last_member_stays_although_it_was_outvoted_and_gives_its_state() {
    let mut c = voting();
    c.request(2, 1, "a");
    c.settle();
    lie(&mut c, 2, true);
    hold(&mut c, 0, true);
    hold(&mut c, 1, true);
    c.ft_request(2, 2, "w", 5);
    c.settle();
    lie(&mut c, 2, false);
    c.install(&[0, 1]);
    for index in [0, 1] {
        hold(&mut c, index, false);
    }
    c.settle();
    for index in [0, 1] {
        c.crash_server(index);
        c.settle();
    }
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(diverged(&c, 2), [(2, 2)]);
    for index in [0, 1] {
        c.start_server(index);
    }
    c.settle();
    assert_eq!(c.states(2), ["in", "in", "in"]);
    c.ft_request(2, 2, "w", 5);
    c.request(2, 3, "x");
    c.settle();
    let told = replies_to(&c, 2, 2);
    assert!(told.iter().all(|it| *it != "nonsense"), "{told:?}");
    assert!(!replies_to(&c, 2, 3).is_empty(), "the group goes on");
}

#[test]
fn who_comes_back_and_was_right_stays() {
    for more in [false, true] {
        let mut c = voting();
        hold(&mut c, 0, true);
        hold(&mut c, 1, true);
        c.request(2, 2, "w");
        c.settle();
        two_is_away(&mut c, more);
        c.request(2, 2, "w");
        c.settle();
        assert_eq!(c.states(0), ["in", "in", "in"]);
        assert_eq!(replies_to(&c, 2, 2).first(), Some(&"w is number 1"));
        assert_eq!(c.executed(2), c.executed(0));
        c.request(2, 3, "x");
        c.settle();
        assert!(!replies_to(&c, 2, 3).is_empty(), "it votes as before");
    }
}

/// Its time is over while its reply is voted on.
#[test]
fn a_reply_that_is_decided_late_is_given_although_it_is_forgotten() {
    let mut c = voting();
    hold(&mut c, 1, true);
    hold(&mut c, 2, true);
    c.ft_request(0, 1, "w", 5);
    c.settle();
    c.now = c.now + quorba_base::Duration::from_secs(61);
    // Their servers take long.
    c.request(0, 2, "x");
    c.settle();
    c.pass(quorba_base::Duration::from_secs(1));
    hold(&mut c, 1, false);
    c.settle();
    let first = c.nodes[0].replies.iter().find(|(number, _)| *number == 1);
    assert_eq!(first, Some(&(1, "w is number 1".to_string())));
}
