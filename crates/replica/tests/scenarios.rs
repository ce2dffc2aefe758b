//! What happens to a group when things go right and when they go wrong, told as short stories.

mod cluster;

use cluster::{Cluster, GROUP, Plan, pass};
use quorba_base::Duration;
use quorba_replica::{Availability, DownReason, PrimaryStatus, ReplyPath};

#[test]
fn every_member_executes_and_the_one_next_to_the_client_answers() {
    let mut c = Cluster::whole(true);
    c.request(1, 1, "a");
    c.request(2, 1, "b");
    c.settle();
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a", "b"]);
    }
    assert_eq!(c.nodes[1].replies, [(1, "a is number 1".into())]);
    assert_eq!(c.nodes[2].replies, [(1, "b is number 2".into())]);
    assert!(c.nodes[0].replies.is_empty(), "one reply each, at its own gateway");
}

#[test]
fn a_member_executes_one_request_at_a_time() {
    let mut c = Cluster::whole(true);
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.request(0, 1, "a");
    c.request(0, 2, "b");
    c.settle();
    assert_eq!(c.nodes[0].replica.group_snapshots()[GROUP].queued, 1, "b waits for a");
    assert!(c.executed(0).is_empty());
    c.nodes[0].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.executed(0), ["a", "b"]);
}

#[test]
fn a_repeated_submission_is_executed_once_and_answered_from_the_log() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.executed(1), ["a"]);
    assert_eq!(c.nodes[0].replies.len(), 2);
    assert_eq!(c.nodes[0].replies[0], c.nodes[0].replies[1]);
}

#[test]
fn a_client_that_repeats_at_another_gateway_gets_the_logged_reply_there() {
    let mut c = Cluster::whole(true);
    c.ft_request(0, 1, "a", 5);
    c.settle();
    c.ft_request(2, 9, "a", 5);
    c.settle();
    assert_eq!(c.executed(1), ["a"]);
    assert_eq!(c.nodes[2].replies, [(9, "a is number 1".into())]);
}

#[test]
fn a_client_that_repeats_while_the_first_call_runs_waits_for_its_reply() {
    let mut c = Cluster::whole(true);
    for node in &mut c.nodes {
        node.server.as_mut().unwrap().held = true;
    }
    c.ft_request(0, 1, "a", 5);
    c.settle();
    c.ft_request(2, 9, "a", 5);
    c.settle();
    for node in &mut c.nodes {
        node.server.as_mut().unwrap().held = false;
    }
    c.settle();
    assert_eq!(c.executed(1), ["a"]);
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    assert_eq!(c.nodes[2].replies, [(9, "a is number 1".into())]);
}

#[test]
fn when_the_replier_dies_the_next_member_answers_the_repetition() {
    let mut c = Cluster::whole(true);
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.request(0, 1, "a");
    c.settle();
    assert!(c.nodes[0].replies.is_empty());
    let before = c.nodes[0].resubmits;
    c.crash_server(0);
    c.settle();
    assert_eq!(c.states(1), ["down", "in", "in"]);
    assert!(c.nodes[0].resubmits > before, "the gateway is told to repeat");
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    assert_eq!(c.executed(1), ["a"]);
}

fn ordered(replier: Option<usize>) -> Plan {
    Plan { reply: ReplyPath::Ordered, replier, ..Plan::plain(true) }
}

#[test]
fn ordered_replies_come_from_every_member_in_messages() {
    let mut c = Cluster::whole_planned(ordered(None));
    c.request(0, 1, "a");
    let request = c.order.pop_front().expect("the request");
    c.deliver_one(&request);
    assert!(c.order.is_empty() && c.nodes[0].replies.is_empty());
    c.settle();
    // The gateway takes the first; this stage shows all three.
    assert_eq!(c.nodes[0].replies, [(); 3].map(|()| (1, "a is number 1".into())));
    assert!(c.nodes[1].replies.is_empty() && c.nodes[2].replies.is_empty());
    // Whoever is lost without having replied is made up for by the others.
    for node in &mut c.nodes {
        node.server.as_mut().unwrap().held = true;
    }
    c.request(0, 2, "b");
    c.settle();
    c.crash(0);
    c.crash(1);
    c.nodes[2].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.executed(2), ["a", "b"]);
}

#[test]
fn a_named_replier_answers_alone_until_it_is_gone() {
    let mut c = Cluster::whole_planned(ordered(Some(1)));
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    c.nodes[1].server.as_mut().unwrap().held = true;
    c.request(0, 2, "b");
    c.settle();
    assert_eq!(c.nodes[0].replies.len(), 1, "nobody else answers: {:?}", c.nodes[0].replies);
    let before = c.nodes[0].resubmits;
    c.crash(1);
    c.install(&[0, 2]);
    c.settle();
    assert!(c.nodes[0].resubmits > before, "the gateway is told to repeat");
    c.request(0, 2, "b");
    c.settle();
    assert_eq!(c.nodes[0].replies[1..], [(2, "b is number 2".into())], "the next one answers");
    assert_eq!(c.executed(2), ["a", "b"], "nothing is executed twice");
    c.restart(1);
    c.install(&[0, 1, 2]);
    c.start_server(1);
    c.settle();
    c.request(0, 3, "c");
    c.settle();
    assert_eq!(c.nodes[0].replies[2..], [(3, "c is number 3".into())], "one reply, of one member");
    assert_eq!(c.executed(1), ["a", "b", "c"]);
}

#[test]
fn a_named_replier_answers_directly_where_it_is() {
    let replier = Some(2);
    let mut c = Cluster::whole_planned(Plan { replier, ..Plan::plain(true) });
    c.request(2, 1, "a");
    let request = c.order.pop_front().expect("the request");
    c.deliver_one(&request);
    c.settle();
    assert_eq!(c.nodes[2].replies, [(1, "a is number 1".into())]);
    c.request(0, 1, "b");
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "b is number 2".into())]);
}

#[test]
fn the_reply_of_a_member_that_is_not_in_any_more_does_not_count() {
    let mut c = Cluster::whole_planned(ordered(None));
    c.nodes[1].server.as_mut().unwrap().held = true;
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies.len(), 2);
    c.install(&[0, 2]);
    c.settle();
    // It was left out without having noticed, and what it says arrives later.
    c.nodes[1].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.nodes[0].replies.len(), 2);
}

#[test]
fn a_restarted_server_gets_the_state_and_what_came_meanwhile() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(2);
    c.settle();
    c.request(0, 2, "b");
    c.settle();
    c.start_server(2);
    // The donor is slow, and requests go on.
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.request(1, 1, "c");
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "joining"]);
    c.request(1, 2, "d");
    c.settle();
    c.nodes[0].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a", "b", "c", "d"]);
    }
}

#[test]
fn a_member_that_joined_knows_the_repetitions_of_old_requests() {
    let mut c = Cluster::whole(true);
    c.ft_request(0, 1, "a", 5);
    c.settle();
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.executed(2), ["a"]);
    c.ft_request(2, 4, "a", 5);
    c.settle();
    assert_eq!(c.executed(2), ["a"]);
    assert_eq!(c.nodes[2].replies, [(4, "a is number 1".into())]);
}

#[test]
fn a_repetition_that_comes_behind_a_join_is_not_executed_by_the_joiner() {
    let mut c = Cluster::whole(true);
    c.crash_server(2);
    c.settle();
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.request(1, 1, "a");
    c.settle();
    c.start_server(2);
    // The join is delivered, then the second copy of a request, then one that releases it.
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "joining"]);
    c.request(1, 1, "a");
    c.release_below(1, 2);
    c.request(1, 2, "b");
    c.settle();
    c.nodes[0].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert_eq!(c.executed(2), ["a", "b"]);
}

#[test]
fn without_a_state_object_a_member_that_missed_requests_stays_out() {
    let mut c = Cluster::whole(false);
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"], "nothing was missed yet");
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "out"]);
    assert!(c.executed(2).is_empty());
}

#[test]
fn when_the_donor_dies_the_joiner_asks_the_next_one() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(2);
    c.settle();
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "joining"]);
    c.crash_server(0);
    c.settle();
    assert_eq!(c.states(1), ["down", "in", "in"]);
    assert_eq!(c.executed(2), ["a"]);
}

#[test]
fn a_donor_whose_server_died_before_the_join_was_delivered_gives_nothing() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(2);
    c.settle();
    // The join is in the order when the donor's server dies; its Down comes behind.
    c.start_server(2);
    c.crash_server(0);
    c.settle();
    assert_eq!(c.states(1), ["down", "in", "in"]);
    assert_eq!(c.executed(2), ["a"]);
    let limit = c.now + Duration::from_secs(3600);
    let next = c.nodes[0].replica.poll_timeout();
    assert!(next.is_none_or(|at| at > c.now && at < limit), "{next:?}");
    c.pass(Duration::from_secs(60));
    assert_eq!(c.nodes[0].replica.poll_timeout(), None, "nothing is waited for");
}

#[test]
fn a_second_try_to_join_gets_the_state_although_the_first_is_under_way() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.crash_server(2);
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "joining"]);
    // The server is replaced, and its Down is still behind the second Join in nobody's way.
    c.start_server(2);
    c.order.retain(|delivered| !is_down(delivered));
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "joining"]);
    c.nodes[0].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert_eq!(c.executed(2), ["a"]);
}

/// Whether a message says that a member is down: the fifth kind of envelope.
fn is_down(delivered: &quorba_replica::Delivered) -> bool {
    delivered.payload.first() == Some(&5)
}

#[test]
fn a_node_that_crashed_is_told_the_tables_and_its_member_the_state() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "down"]);
    c.request(0, 2, "b");
    c.settle();
    c.restart(2);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.nodes[2].replica.status(), PrimaryStatus::Primary);
    assert_eq!(c.states(2), ["in", "in", "down"]);
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(2), ["in", "in", "in"]);
    assert_eq!(c.executed(2), ["a", "b"]);
    assert_eq!(c.nodes[2].replica.history(), c.nodes[0].replica.history());
}

#[test]
fn a_node_that_was_cut_off_executes_nothing_and_comes_back_with_the_others_state() {
    let mut c = Cluster::whole(true);
    c.install(&[2]);
    c.settle();
    assert!(matches!(c.nodes[2].replica.status(), PrimaryStatus::Blocked(_)));
    c.request(2, 1, "nowhere");
    c.settle();
    assert!(c.executed(2).is_empty());
    assert!(matches!(c.nodes[2].replica.availability(GROUP), Availability::NoPrimary(Some(_))));
    c.install(&[0, 1]);
    c.settle();
    c.request(0, 1, "a");
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    for index in 0..3 {
        assert_eq!(c.states(index), ["in", "in", "in"]);
        assert_eq!(c.executed(index), ["a"]);
    }
}

#[test]
fn a_node_that_was_cut_off_and_missed_nothing_needs_no_state() {
    let mut c = Cluster::whole(false);
    c.request(0, 1, "a");
    c.settle();
    c.install(&[2]);
    c.settle();
    c.install(&[0, 1]);
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
}

#[test]
fn a_view_that_breaks_before_the_tables_are_delivered_costs_nobody_its_memory() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    // Node 2 is cut off and misses a request, so it is behind when it returns.
    c.install(&[2]);
    c.settle();
    c.install(&[0, 1]);
    c.settle();
    c.request(0, 2, "b");
    c.settle();
    c.install(&[0, 1, 2]);
    // The hellos are delivered, the tables are not.
    for _ in 0..3 {
        let delivered = c.order.pop_front().expect("a hello");
        c.deliver_one(&delivered);
    }
    assert_eq!(c.nodes[2].replica.status(), PrimaryStatus::CatchingUp);
    assert_eq!(c.nodes[0].replica.status(), PrimaryStatus::CatchingUp);
    c.install(&[1, 2]);
    c.settle();
    assert_eq!(c.nodes[1].replica.status(), PrimaryStatus::Primary, "1 and 2 remember enough");
    assert_eq!(c.executed(2), ["a", "b"]);
    c.install(&[0, 1, 2]);
    c.settle();
    for index in 0..3 {
        assert_eq!(c.states(index), ["in", "in", "in"]);
        assert_eq!(c.executed(index), ["a", "b"]);
    }
}

#[test]
fn what_the_survivors_of_a_crash_had_received_is_executed_before_the_new_view() {
    let mut c = Cluster::whole(true);
    c.request(1, 1, "a");
    // Not delivered yet when node 2 dies.
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    assert_eq!(c.executed(0), ["a"]);
    assert_eq!(c.executed(1), ["a"]);
    assert_eq!(c.nodes[1].replies, [(1, "a is number 1".into())]);
}

#[test]
fn a_down_message_that_was_lost_in_a_blocked_view_is_said_again() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.install(&[0]);
    c.settle();
    c.crash_server(0);
    c.settle();
    // Nothing happened elsewhere, so node 0 is up to date when it returns.
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(1), ["down", "in", "in"]);
    c.start_server(0);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert_eq!(c.executed(0), ["a"]);
}

#[test]
fn a_join_that_was_lost_in_a_blocked_view_is_said_again() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(0);
    c.settle();
    c.start_server(0);
    // Join is on its way when the node is cut off.
    c.install(&[0]);
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert_eq!(c.executed(0), ["a"]);
}

#[test]
fn requests_that_find_no_member_are_given_back() {
    let mut c = Cluster::whole(true);
    for index in 0..3 {
        c.crash_server(index);
    }
    c.settle();
    assert_eq!(c.nodes[0].replica.availability(GROUP), Availability::NoMember);
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].dropped, [1]);
}

#[test]
fn a_group_whose_state_is_lost_stops_rather_than_begin_anew() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    for index in 0..3 {
        c.crash_server(index);
    }
    c.settle();
    for index in 0..3 {
        c.start_server(index);
    }
    c.settle();
    assert_eq!(c.states(0), ["out", "out", "out"]);
}

#[test]
fn a_server_that_does_not_answer_is_restarted_and_the_group_goes_on() {
    let mut c = Cluster::whole(true);
    c.nodes[0].server.as_mut().unwrap().held = true;
    c.request(1, 1, "a");
    c.settle();
    // It says that it is late, and then the others that they are not.
    pass(&mut c, Duration::from_secs(44));
    assert_eq!(c.states(1), ["in", "in", "in"]);
    pass(&mut c, Duration::from_secs(2));
    assert_eq!(c.states(1), ["down", "in", "in"]);
    assert_eq!(c.nodes[0].restarts, [DownReason::ServerHung]);
    c.start_server(0);
    c.settle();
    assert_eq!(c.executed(0), ["a"]);
}

#[test]
fn a_group_opens_when_all_members_are_in_or_the_wait_is_over() {
    let mut c = Cluster::new(3, true);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.nodes[0].replica.availability(GROUP), Availability::Starting);
    c.start_server(0);
    c.start_server(1);
    c.settle();
    assert_eq!(c.nodes[2].replica.availability(GROUP), Availability::Starting);
    c.pass(Duration::from_secs(16));
    c.settle();
    assert_eq!(c.nodes[2].replica.availability(GROUP), Availability::Ready);
}
