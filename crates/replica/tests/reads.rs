//! Reads: executed by one member without a place of their own in the order.

mod cluster;

use cluster::{Cluster, GROUP, Plan};
use quorba_base::NodeId;
use quorba_replica::{Command, LeaderRule, ReadConsistency, ReadRule, Style};

fn planned(style: Style, consistency: ReadConsistency) -> Cluster {
    let mut c = Cluster::whole_planned(Plan { reads: Some(consistency), ..Plan::style(style) });
    c.relink();
    c.settle();
    c
}

fn linearizable(style: Style) -> Cluster {
    planned(style, ReadConsistency::Linearizable)
}

fn write(c: &mut Cluster, index: usize, number: u64, text: &str) {
    c.request(index, number, text);
    c.settle();
}

#[test]
fn a_read_waits_until_its_mark_is_held_and_is_nowhere_in_the_history() {
    let mut c = linearizable(Style::Active);
    write(&mut c, 0, 1, "a");
    let before = c.snapshot(0);
    c.read(0, 2);
    c.settle();
    assert!(c.nodes[0].reads.is_empty(), "executed, and kept back");
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads, [(2, "a".into())]);
    let after = c.snapshot(0);
    assert_eq!((after.history, after.retained), (before.history, before.retained));
    assert_eq!((after.reads, after.read_marks), (1, 1));
    assert_eq!((c.snapshot(1).reads, c.snapshot(2).reads), (0, 0), "one member executes it");
}

#[test]
fn one_mark_serves_all_reads_that_waited() {
    let mut c = linearizable(Style::Active);
    for number in 1..=10 {
        c.read(0, number);
    }
    c.settle();
    // The first one had no reason to wait for the others.
    assert_eq!(c.nodes[0].marks, [1, 2]);
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads.len(), 10);
}

#[test]
fn a_read_sees_what_was_ordered_before_its_mark_and_nothing_behind() {
    let mut c = linearizable(Style::Active);
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.request(0, 1, "before");
    c.read(0, 2);
    c.request(0, 3, "behind");
    c.settle();
    c.nodes[0].server.as_mut().unwrap().held = false;
    while c.serve(0) {}
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads, [(2, "before".into())]);
}

#[test]
fn a_gateway_without_a_member_that_is_in_asks_another_node() {
    let mut c = linearizable(Style::Active);
    write(&mut c, 1, 1, "a");
    c.crash_server(0);
    c.settle();
    c.read(0, 2);
    c.settle();
    c.hold_marks(1);
    c.settle();
    assert_eq!(c.nodes[0].reads, [(2, "a".into())]);
    assert_eq!(c.snapshot(1).reads, 1, "the next one in ring order");
}

#[test]
fn only_the_leader_of_a_passive_group_reads() {
    let mut c = linearizable(Style::WarmPassive);
    write(&mut c, 0, 1, "a");
    assert!(c.executed(2).is_empty());
    c.read(2, 1);
    c.settle();
    c.hold_marks(0);
    c.settle();
    assert_eq!(c.nodes[2].reads, [(1, "a".into())]);
    // The reader goes on with whoever leads.
    c.promote(2);
    c.read(2, 2);
    c.settle();
    c.hold_marks(2);
    c.settle();
    assert_eq!(c.nodes[2].reads[1..], [(2, "a".into())]);
}

#[test]
fn reads_of_the_leader_are_executed_by_nobody_else_though_all_members_could() {
    let consistency = ReadConsistency::Sequential;
    let plan = Plan {
        reads: Some(consistency),
        reads_of_leader: Some(b"lo"),
        ..Plan::style(Style::SemiActive)
    };
    let mut c = Cluster::whole_planned(plan);
    c.relink();
    c.settle();
    c.read(2, 1);
    c.settle();
    c.hold_marks(0);
    c.settle();
    assert_eq!(c.nodes[2].reads.len(), 1);
    let reads = |c: &Cluster| [0, 1, 2].map(|node| c.snapshot(node).reads);
    assert_eq!(reads(&c), [1, 0, 0]);
    c.promote(1);
    c.read(2, 2);
    c.settle();
    c.hold_marks(1);
    c.settle();
    assert_eq!(reads(&c), [1, 1, 0]);
}

#[test]
fn a_rule_for_some_objects_is_of_no_other_object() {
    let operations = [b"push".as_slice().into()].into();
    let of_leader =
        Some(Box::new(LeaderRule { keys: b"Unordered/".as_slice().into(), waits: None }));
    let rule = ReadRule { operations, of_leader, ..ReadRule::default() };
    assert!(rule.has(b"push", Some(b"Unordered/a/s-1")));
    assert!(!rule.has(b"push", Some(b"Events/a/s-1")) && !rule.has(b"push", None));
    assert!(!rule.has(b"connect", Some(b"Unordered/a/s-1")));
}

#[test]
fn a_read_is_given_back_when_the_server_dies() {
    let mut c = linearizable(Style::Active);
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.read(0, 1);
    c.settle();
    c.crash_server(0);
    c.settle();
    assert_eq!(c.nodes[0].reads, [(1, "order it".into())]);
    // Whoever comes back answers nothing of before.
    c.start_server(0);
    c.settle();
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads.len(), 1);
}

#[test]
fn a_read_is_given_back_when_the_link_breaks_and_when_the_other_server_dies() {
    let mut c = linearizable(Style::Active);
    c.crash_server(0);
    c.settle();
    c.nodes[1].server.as_mut().unwrap().held = true;
    c.read(0, 1);
    c.settle();
    c.relink();
    assert_eq!(c.nodes[0].reads, [(1, "order it".into())]);
    c.settle();
    c.read(0, 2);
    c.settle();
    c.crash_server(1);
    c.settle();
    assert_eq!(c.nodes[0].reads[1..], [(2, "order it".into())]);
}

#[test]
fn a_view_change_gives_back_what_was_not_answered() {
    let mut c = linearizable(Style::Active);
    write(&mut c, 0, 1, "a");
    c.read(0, 2);
    c.settle();
    c.install(&[0, 1]);
    assert_eq!(c.nodes[0].reads, [(2, "order it".into())]);
    c.settle();
    // The mark of before says nothing now.
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads.len(), 1);
}

#[test]
fn nobody_reads_where_there_is_no_primary_component() {
    let mut c = linearizable(Style::Active);
    assert!(c.nodes[0].replica.can_read(GROUP));
    c.install(&[0]);
    c.settle();
    assert!(!c.nodes[0].replica.can_read(GROUP));
    c.read(0, 1);
    assert_eq!(c.nodes[0].reads, [(1, "order it".into())]);
}

#[test]
fn what_is_longer_than_a_message_between_nodes_is_given_back() {
    let mut c = linearizable(Style::Active);
    c.crash_server(0);
    c.settle();
    c.read_padded(0, 1, LONG);
    assert_eq!(c.nodes[0].reads, [(1, "order it".into())]);
    // At a member of the own node it needs no message.
    c.read_padded(1, 1, LONG);
    c.settle();
    c.hold_marks(1);
    assert_eq!(c.nodes[1].reads, [(1, String::new())]);
}

/// The leader alone reads, as of event channels that are not reliable: what it reads it takes away.
fn read_by_leader() -> Cluster {
    let plan = Plan {
        reads: Some(ReadConsistency::Sequential),
        reads_of_leader: Some(b"lo"),
        ..Plan::style(Style::SemiActive)
    };
    let mut c = Cluster::whole_planned(plan);
    c.relink();
    c.settle();
    c
}

/// Longer than a message between nodes.
const LONG: usize = 300 << 10;

/// A text that makes a reply so long has been written, and node 2 has asked for it; the server of
/// node 0 has not said it yet.
fn asked_for_a_long_reply(c: &mut Cluster) -> String {
    let text = "x".repeat(LONG);
    write(c, 0, 1, &text);
    c.server(0).held = true;
    c.read(2, 2);
    c.settle();
    text
}

/// The same, and its reply waits for its place in the order.
fn said_a_long_reply(c: &mut Cluster) -> String {
    let text = asked_for_a_long_reply(c);
    c.hold_marks(0);
    c.server(0).held = false;
    while c.serve(0) {}
    text
}

#[test]
fn a_reply_longer_than_a_message_between_nodes_comes_to_its_gateway_and_nothing_is_read_twice() {
    let text = "x".repeat(LONG);
    for mut c in [read_by_leader(), linearizable(Style::WarmPassive)] {
        write(&mut c, 0, 1, &text);
        c.read(2, 2);
        c.settle();
        c.hold_marks(0);
        c.settle();
        assert_eq!(c.nodes[2].reads.len(), 1);
        assert!(c.nodes[2].reads[0] == (2, text.clone()), "not given back");
        assert!(c.nodes[2].replies.is_empty(), "it is no reply to what was ordered");
        assert_eq!(c.snapshot(0).reads, 1);
    }
}

#[test]
fn a_long_reply_is_for_the_boot_that_asked_and_is_kept_for_no_other() {
    let mut c = read_by_leader();
    asked_for_a_long_reply(&mut c);
    c.crash(2);
    c.restart(2);
    c.server(0).held = false;
    while c.serve(0) {}
    c.hold_marks(0);
    assert_eq!(c.order.len(), 1, "the reply");
    c.settle();
    assert!(c.nodes[2].reads.is_empty() && c.nodes[2].replies.is_empty());
    c.pass(quorba_base::Duration::from_secs(60));
    c.settle();
    assert!(c.order.is_empty() && c.peers.is_empty());
}

#[test]
fn a_long_reply_that_is_delivered_where_nothing_counts_is_said_again() {
    let mut c = read_by_leader();
    let text = said_a_long_reply(&mut c);
    let reply = std::mem::take(&mut c.order);
    assert_eq!(reply.len(), 1);
    // Each node alone is none that counts. The links live on.
    (0..3).for_each(|index| c.only_at(index, |c| c.install(&[index])));
    c.only_at(0, |c| c.order = reply);
    assert!(c.nodes[2].reads.is_empty());
    c.install(&[0, 1, 2]);
    c.settle();
    assert!(c.nodes[2].reads == [(2, text)]);
    assert_eq!(c.snapshot(0).reads, 1);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.nodes[2].reads.len(), 1, "said once more, and no more");
}

/// This node was cut off when the reply was ordered, and its links live on.
#[test]
fn a_read_whose_long_reply_was_ordered_where_its_gateway_was_not_is_given_back() {
    let mut c = linearizable(Style::WarmPassive);
    said_a_long_reply(&mut c);
    let reply = std::mem::take(&mut c.order);
    c.only_at(2, |c| c.install(&[2]));
    c.order = reply;
    c.install(&[0, 1]);
    c.settle();
    assert!(c.nodes[2].reads.is_empty());
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.nodes[2].reads, [(2, "order it".into())]);
}

/// The messages from one node to another that are on their way.
fn take_messages(c: &mut Cluster, from: usize, to: usize) -> Vec<bytes::Bytes> {
    let all = std::mem::take(&mut c.peers);
    let (its, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|it| (it.0, it.1) == (from, to));
    c.peers.extend(others);
    its.into_iter().map(|(_, _, bytes)| bytes).collect()
}

fn refuse_messages(c: &mut Cluster, from: usize, to: usize) {
    let messages = take_messages(c, from, to);
    assert_eq!(messages.len(), 1);
    let (now, to) = (c.now, NodeId::new(to as u8).unwrap());
    for bytes in messages {
        c.nodes[from].replica.handle_peer_full(now, to, bytes);
        c.drain_all();
    }
}

#[test]
fn a_reply_that_finds_no_room_on_the_link_comes_and_other_reads_are_not_given_back() {
    let mut c = read_by_leader();
    write(&mut c, 0, 1, "a");
    c.server(0).held = true;
    c.read(2, 2);
    c.settle();
    c.hold_marks(0);
    c.server(0).held = false;
    while c.serve(0) {}
    c.server(0).held = true;
    refuse_messages(&mut c, 0, 2);
    c.read(2, 3);
    c.settle();
    c.hold_marks(0);
    assert_eq!(c.nodes[2].reads, [(2, "a".into())]);
    let (now, there) = (c.now, NodeId::new(2).unwrap());
    c.nodes[0].replica.handle_peer_room(now, there);
    c.drain_all();
    c.settle();
    assert_eq!(c.nodes[2].reads.len(), 1, "the other one is still there");
    c.server(0).held = false;
    c.settle();
    assert_eq!(c.nodes[2].reads[1..], [(3, "a".into())]);
    assert_eq!(c.snapshot(0).reads, 2);
}

/// Nothing bounds how many replies wait for the order.
#[test]
fn a_reply_to_what_can_be_read_again_does_not_go_through_the_order_for_want_of_room() {
    let mut c = linearizable(Style::WarmPassive);
    write(&mut c, 0, 1, "a");
    c.server(0).held = true;
    c.read(2, 2);
    c.settle();
    c.hold_marks(2);
    c.hold_marks(0);
    c.server(0).held = false;
    while c.serve(0) {}
    refuse_messages(&mut c, 0, 2);
    c.settle();
    assert!(c.nodes[2].reads.is_empty(), "{:?}", c.nodes[2].reads);
    let (now, there) = (c.now, NodeId::new(2).unwrap());
    c.nodes[0].replica.handle_peer_room(now, there);
    c.drain_all();
    c.settle();
    assert_eq!(c.nodes[2].reads, [(2, "order it".into())]);
}

#[test]
fn a_read_that_finds_no_room_on_the_link_is_given_back_and_others_are_not() {
    let mut c = read_by_leader();
    write(&mut c, 0, 1, "a");
    c.server(0).held = true;
    c.read(2, 2);
    c.settle();
    c.hold_marks(0);
    c.read(2, 3);
    refuse_messages(&mut c, 2, 0);
    assert_eq!(c.nodes[2].reads, [(3, "order it".into())]);
    c.server(0).held = false;
    c.settle();
    assert_eq!(c.nodes[2].reads[1..], [(2, "a".into())]);
}

/// It has been ordered meanwhile, under its number: what was read is not thrown away for that.
#[test]
fn a_long_reply_that_comes_when_its_read_was_given_back_answers_what_was_ordered() {
    let mut c = read_by_leader();
    let text = asked_for_a_long_reply(&mut c);
    c.relink();
    assert_eq!(c.nodes[2].reads, [(2, "order it".into())]);
    c.server(0).held = false;
    c.settle();
    c.hold_marks(0);
    c.settle();
    assert!(c.nodes[2].replies == [(2, text)]);
    assert_eq!(c.nodes[2].reads.len(), 1);
}

#[test]
fn a_sequential_read_needs_a_mark_only_if_something_is_not_held() {
    let mut c = planned(Style::Active, ReadConsistency::Sequential);
    write(&mut c, 0, 1, "a");
    c.read(0, 2);
    c.settle();
    assert!(c.nodes[0].reads.is_empty(), "what it has read might be lost");
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads, [(2, "a".into())]);
    c.read(0, 3);
    assert!(c.serve(0));
    assert_eq!(c.nodes[0].reads[1..], [(3, "a".into())], "nothing was ordered for it");
    assert_eq!(c.snapshot(0).read_marks, 1);
}

#[test]
fn a_sequential_read_comes_behind_all_that_was_delivered_here() {
    let mut c = planned(Style::SemiActive, ReadConsistency::Sequential);
    // The leader on node 0 answers; this gateway's own member is slower.
    c.nodes[2].server.as_mut().unwrap().held = true;
    c.request(2, 1, "a");
    c.settle();
    assert_eq!(c.nodes[2].replies.len(), 1);
    c.read(2, 2);
    c.settle();
    c.hold_marks(2);
    assert!(c.nodes[2].reads.is_empty());
    c.nodes[2].server.as_mut().unwrap().held = false;
    while c.serve(2) {}
    assert_eq!(c.nodes[2].reads, [(2, "a".into())]);
}

#[test]
fn reads_go_on_over_a_change_of_style() {
    let mut c = linearizable(Style::Active);
    write(&mut c, 1, 1, "a");
    c.read(1, 2);
    c.settle();
    c.command_group(0, Command::SetStyle(Style::WarmPassive));
    c.hold_marks(1);
    assert_eq!(c.nodes[1].reads, [(2, "a".into())], "it was executed before the change");
    c.read(1, 3);
    c.settle();
    c.hold_marks(0);
    c.settle();
    assert_eq!(c.nodes[1].reads[1..], [(3, "a".into())]);
}

#[test]
fn a_read_of_a_durable_group_waits_for_the_disks_of_what_it_found_and_not_for_its_mark() {
    let plan = Plan { reads: Some(ReadConsistency::Linearizable), ..Plan::style(Style::Active) };
    let mut c = Cluster::whole_planned(Plan { durable: true, ..plan });
    c.relink();
    write(&mut c, 0, 1, "a");
    assert_eq!(c.nodes[0].logged, [1]);
    for index in 0..3 {
        c.nodes[index].disk.slow = true;
    }
    c.read(0, 2);
    c.settle();
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads, [(2, "a".into())], "all that it found is on disks");

    write(&mut c, 0, 3, "b");
    c.read(0, 4);
    c.settle();
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads.len(), 1, "what it found may be lost");
    (0..2).for_each(|index| c.sync(index));
    c.settle();
    assert_eq!(c.nodes[0].reads[1..], [(4, "a,b".into())]);
}

#[test]
fn a_new_component_in_which_nothing_is_written_yet_has_its_reads_answered() {
    let plan = Plan { reads: Some(ReadConsistency::Linearizable), ..Plan::style(Style::Active) };
    let mut c = Cluster::whole_planned(Plan { durable: true, ..plan });
    c.relink();
    (1..=40).for_each(|number| write(&mut c, 0, number, "a"));
    c.install(&[0, 1]);
    c.settle();
    c.relink();
    c.settle();
    c.read(0, 41);
    c.settle();
    c.hold_marks(0);
    assert_eq!(c.nodes[0].reads.len(), 1, "its place in the old component is none in this one");
}
