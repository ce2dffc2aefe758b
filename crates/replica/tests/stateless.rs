//! Stateless groups: any member executes a call, without order, and another one if it goes.

mod cluster;

use cluster::{Cluster, GROUP, Plan};
use quorba_replica::{Availability, Command, CommandRefused, DownReason, Style};

fn planned(state_object: bool) -> Cluster {
    let style = Style::Stateless;
    let mut c = Cluster::planned(3, Plan { style, ..Plan::plain(state_object) });
    c.relink();
    c.install(&[0, 1, 2]);
    (0..3).for_each(|index| c.start_server(index));
    c.settle();
    c
}

fn hold(c: &mut Cluster, held: bool) {
    c.nodes.iter_mut().for_each(|node| node.server.as_mut().unwrap().held = held);
}

/// What every member has executed, in all.
fn executions(c: &Cluster) -> usize {
    (0..3).map(|index| c.executed(index).len()).sum()
}

#[test]
fn a_member_is_in_as_soon_as_its_server_is_up_and_one_is_enough() {
    let mut c = Cluster::planned(3, Plan { style: Style::Stateless, ..Plan::plain(false) });
    c.relink();
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.nodes[0].replica.availability(GROUP), Availability::Starting);
    c.start_server(1);
    c.settle();
    assert_eq!(c.states(0), ["down", "in", "down"]);
    assert_eq!(c.nodes[0].replica.availability(GROUP), Availability::Ready);
    c.call(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].reads, [(1, "a is number 1".into())]);
    // Whoever comes later needs no state, although the group has none to give.
    c.start_server(0);
    c.settle();
    assert_eq!(c.states(2), ["in", "in", "down"]);
    assert!(c.executed(0).is_empty());
}

#[test]
fn calls_are_spread_over_the_members_and_nothing_is_ordered_for_them() {
    let mut c = planned(false);
    let before = c.snapshot(0);
    hold(&mut c, true);
    for number in 1..=6 {
        c.call(0, number, "a");
    }
    assert!(c.order.is_empty());
    c.settle();
    hold(&mut c, false);
    c.settle();
    assert_eq!([0, 1, 2].map(|index| c.executed(index).len()), [2, 2, 2]);
    assert_eq!(c.nodes[0].reads.len(), 6);
    let after = c.snapshot(0);
    assert_eq!((after.history, after.retained), (before.history, 0));
    // With nothing outstanding the member on the gateway's own node is nearest.
    c.call(2, 1, "b");
    c.settle();
    assert_eq!(c.executed(2).len(), 3);
}

#[test]
fn a_call_is_given_back_when_its_member_goes_and_can_be_called_elsewhere() {
    let mut c = planned(false);
    hold(&mut c, true);
    c.call(0, 1, "a");
    c.call(0, 2, "b");
    c.settle();
    c.crash_server(1);
    c.settle();
    assert_eq!(c.nodes[0].reads, [(2, "order it".into())]);
    c.call(0, 2, "b");
    c.crash_server(0);
    c.settle();
    assert_eq!(c.nodes[0].reads[1..], [(1, "order it".into())]);
    c.nodes[2].server.as_mut().unwrap().held = false;
    while c.serve(2) {}
    c.settle();
    assert_eq!(c.nodes[0].reads[2..], [(2, "b is number 1".into())]);
}

// Its member's end comes through the order, and overtakes the word on what its process was at,
// which comes over a link. Who called it elsewhere at once had not heard of one end yet, and lost
// one process more to the same call (seed 625 of the simulator's `styles`).
#[test]
fn a_call_at_a_member_whose_process_ends_waits_for_its_nodes_word() {
    let mut c = planned(false);
    hold(&mut c, true);
    for number in 1..=5 {
        c.call(0, number, "a");
    }
    c.settle();
    assert!(c.nodes[0].reads.is_empty());
    c.crash_server(1);
    c.settle();
    // Its server was at the first of its two, and had not begun the second.
    let back = |number| (number, "order it".into());
    assert_eq!((&c.nodes[0].reads, &c.nodes[0].ended_reads), (&vec![back(2), back(5)], &vec![2]));
    // If that is lost, the end of the link is enough.
    c.cut = true;
    c.crash_server(2);
    c.settle();
    assert_eq!(c.nodes[0].reads.len(), 2);
    c.relink();
    assert_eq!(
        (c.nodes[0].reads[2..].to_vec(), &c.nodes[0].ended_reads),
        (vec![back(3)], &vec![2])
    );
}

// A gateway handed out all that was open whenever the member that answers its node for the group
// was another one: also a call that was at a third server, or whose end was on its way (seed 625).
#[test]
fn what_is_with_other_members_stays_there_when_one_goes() {
    let mut c = planned(false);
    hold(&mut c, true);
    (1..=3).for_each(|number| c.call(0, number, "a"));
    c.settle();
    let resubmits = c.nodes[0].resubmits;
    for (index, back) in [(0, 1), (1, 2)] {
        c.crash_server(index);
        c.settle();
        let node = &mut c.nodes[0];
        assert_eq!(core::mem::take(&mut node.reads), [(back, "order it".into())]);
        assert_eq!(core::mem::take(&mut node.ended_reads), [back]);
    }
    assert_eq!(c.nodes[0].resubmits, resubmits);
    c.nodes[2].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.nodes[0].reads, [(3, "a is number 1".into())]);
}

#[test]
fn without_a_member_there_is_nobody_to_call() {
    let mut c = planned(false);
    (0..3).for_each(|index| c.crash_server(index));
    c.settle();
    assert_eq!(c.nodes[0].replica.availability(GROUP), Availability::NoMember);
    assert!(!c.nodes[0].replica.takes_call(GROUP, 100));
}

#[test]
fn a_call_too_long_for_a_message_is_ordered_and_executed_by_one() {
    let mut c = planned(false);
    c.crash_server(0);
    c.settle();
    assert!(c.nodes[0].replica.takes_call(GROUP, 1000));
    assert!(!c.nodes[0].replica.takes_call(GROUP, 300 << 10), "no member of the own node");
    assert!(c.nodes[1].replica.takes_call(GROUP, 300 << 10));
    let text = "x".repeat(300 << 10);
    c.request(0, 1, &text);
    c.settle();
    assert_eq!(c.executed(1).len(), 1);
    assert!(c.executed(2).is_empty());
    // Its reply is as long, and comes through the order as well.
    assert_eq!(c.nodes[0].replies.len(), 1);
    assert!(c.nodes[0].reads.is_empty());
}

#[test]
fn a_group_that_was_stateless_has_the_state_of_one_member() {
    let mut c = planned(true);
    hold(&mut c, true);
    for number in 1..=3 {
        c.call(0, number, "a");
    }
    c.settle();
    hold(&mut c, false);
    c.settle();
    assert_eq!(executions(&c), 3);
    c.call(0, 4, "b");
    c.settle();
    c.command_group(2, Command::SetStyle(Style::Active));
    assert_eq!(c.states(1), ["in", "down", "down"]);
    assert_eq!(c.nodes[1].downs(), [DownReason::MayDiffer, DownReason::MayDiffer]);
    c.pass(quorba_base::Duration::from_secs(1));
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    c.request(1, 1, "c");
    c.settle();
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a", "b", "c"]);
    }
}

#[test]
fn a_group_without_a_state_object_stays_stateless() {
    let mut c = planned(false);
    c.command_group(0, Command::SetStyle(Style::Active));
    assert_eq!(c.nodes[0].commanded, [Err(CommandRefused::MembersDiffer)]);
    assert_eq!(c.snapshot(1).style, Style::Stateless);
}

#[test]
fn requests_that_were_ordered_before_a_group_became_stateless_are_executed_by_one() {
    let mut c = Cluster::whole_planned(Plan::style(Style::Active));
    c.relink();
    c.nodes[0].replica.handle_command(GROUP, 1, Command::SetStyle(Style::Stateless));
    c.pass(quorba_base::Duration::ZERO);
    c.request(1, 1, "a");
    c.settle();
    assert_eq!(c.snapshot(1).style, Style::Stateless);
    assert_eq!(executions(&c), 1);
    assert_eq!(c.nodes[1].reads, [(1, "a is number 1".into())], "by the member next to it");
}

#[test]
fn a_node_that_has_not_heard_of_the_change_executes_no_call() {
    let mut c = Cluster::whole_planned(Plan::style(Style::Active));
    c.relink();
    c.settle();
    // The call says that the group is stateless; it is not, where it arrives.
    c.command_group(0, Command::SetStyle(Style::Stateless));
    hold(&mut c, true);
    c.call(0, 1, "a");
    c.call(0, 2, "b");
    let on_its_way = core::mem::take(&mut c.peers);
    c.command_group(0, Command::SetStyle(Style::Active));
    c.peers = on_its_way;
    hold(&mut c, false);
    c.settle();
    c.pass(quorba_base::Duration::from_secs(1));
    c.settle();
    assert_eq!(c.nodes[0].reads.iter().filter(|(number, _)| *number == 2).count(), 1);
    assert!(c.nodes[0].reads.contains(&(2, "order it".into())));
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a"]);
    }
}

#[test]
fn a_stateless_group_can_become_of_any_style_and_back() {
    for style in Style::ALL.iter().copied().filter(|style| *style != Style::Stateless) {
        let mut c = planned(true);
        c.call(0, 1, "a");
        c.settle();
        c.command_group(0, Command::SetStyle(style));
        for _ in 0..5 {
            c.pass(quorba_base::Duration::from_secs(1));
            c.settle();
        }
        assert_eq!(c.states(0), ["in", "in", "in"], "{}", style.as_str());
        c.request(0, 2, "b");
        c.settle();
        assert_eq!(c.executed(0), ["a", "b"], "{}", style.as_str());
        c.command_group(0, Command::SetStyle(Style::Stateless));
        c.call(0, 3, "c");
        c.settle();
        assert_eq!(c.executed(0), ["a", "b", "c"], "{}", style.as_str());
    }
}
