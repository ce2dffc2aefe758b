//! Requests that servers do not answer, told as short stories: what all did alike is no crash, and
//! who alone did it is brought back.

mod cluster;

use cluster::{Cluster, GROUP, Plan, are_well, ends, pass, seconds};
use quorba_base::Duration;
use quorba_replica::{Command, Concurrency, DownReason, NoReply, RequestEnd, Style};

const GONE: RequestEnd = RequestEnd::NoReply(NoReply::ConnectionEnded);

#[test]
fn when_all_servers_end_the_connection_the_request_ends_and_the_group_goes_on() {
    for style in [Style::Active, Style::SemiActive, Style::ActiveWithVoting] {
        let mut c = Cluster::whole_planned(Plan::style(style));
        c.request(0, 1, "a");
        c.settle();
        c.make_odd("b");
        c.ft_request(1, 1, "b", 7);
        c.request(0, 2, "c");
        pass(&mut c, seconds(1));
        are_well(&c, &["a", "c"]);
        let told = &c.nodes[1].replies;
        assert!(told.len() == 1 && told[0].1.contains("CommFailure"), "{style:?} {told:?}");
        assert_eq!(c.nodes[0].replies.last(), Some(&(2, "c is number 2".into())), "{style:?}");
        c.ft_request(2, 5, "b", 7);
        pass(&mut c, seconds(1));
        assert!(c.nodes[2].replies[0].1.contains("CommFailure"), "a repetition is told the same");
        assert_eq!(ends(&c, 2), [(2, GONE)]);
        assert_eq!(c.snapshot(0).endings.doubt, None, "their states were compared");
        assert!((0..3).all(|index| c.nodes[index].server.as_ref().unwrap().asked == 1));
    }
}

#[test]
fn who_alone_ends_the_connection_is_at_fault_and_comes_back() {
    for style in [Style::Active, Style::SemiActive, Style::ActiveWithVoting] {
        let mut c = Cluster::whole_planned(Plan::style(style));
        c.server(1).odd.push("b".into());
        c.request(1, 1, "b");
        c.request(0, 1, "c");
        pass(&mut c, seconds(1));
        assert_eq!(c.nodes[1].restarts, [DownReason::ConnectionLost], "{style:?}");
        assert_eq!(c.states(0), ["in", "down", "in"]);
        assert!(ends(&c, 0).is_empty());
        c.request(1, 1, "b");
        c.settle();
        let told = &c.nodes[1].replies;
        let is_right = |reply: &(u64, String)| *reply == (1, "b is number 1".into());
        assert!(!told.is_empty() && told.iter().all(is_right), "others have answered: {told:?}");
        c.start_server(1);
        pass(&mut c, seconds(1));
        assert_eq!(c.states(0), ["in", "in", "in"]);
        assert_eq!(c.executed(1), ["b", "c"]);
    }
}

#[test]
fn where_only_the_leader_executes_its_word_counts_and_whoever_follows_it_comes_to_the_same() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.make_odd("b");
    c.request(0, 1, "a");
    c.ft_request(1, 1, "b", 7);
    c.request(2, 1, "c");
    pass(&mut c, Duration::from_millis(300));
    assert!(c.nodes[1].replies[0].1.contains("CommFailure"));
    assert_eq!(ends(&c, 2), [(2, GONE)]);
    assert!(c.nodes[0].restarts.is_empty());
    c.crash_server(0);
    pass(&mut c, seconds(1));
    assert_eq!(c.leader(1), Some(1));
    assert_eq!(c.executed(1), ["a", "c"]);
    assert!(c.nodes[1].restarts.is_empty(), "it ended there, too, as all know");
    c.ft_request(2, 5, "b", 7);
    pass(&mut c, seconds(1));
    assert!(c.nodes[2].replies.last().is_some_and(|(_, text)| text.contains("CommFailure")));
}

// Seed 81851 of the simulator's `calls`.
#[test]
fn what_a_leader_replies_behind_it_waits_for_the_state_though_that_is_not_given_at_once() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.server(0).odd.push("b".into());
    c.server(0).refusals = 2;
    c.request(0, 1, "b");
    c.request(0, 2, "c");
    let is_told = |c: &Cluster| c.nodes[0].replies.iter().any(|(_, text)| text.contains("c is"));
    for _ in 0..100 {
        if !is_told(&c) {
            pass(&mut c, Duration::from_millis(10));
        }
    }
    assert!(is_told(&c));
    c.crash_server(0);
    pass(&mut c, seconds(1));
    assert_eq!(c.leader(1), Some(1));
    assert_eq!(c.executed(1), ["c"], "what the reply to it was made in");
}

#[test]
fn a_server_that_gives_no_state_keeps_replies_waiting_for_three_questions_only() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.server(0).odd.push("b".into());
    c.server(0).is_private = true;
    c.request(0, 1, "b");
    c.request(0, 2, "c");
    pass(&mut c, Duration::from_millis(200));
    assert!(c.nodes[0].replies.iter().any(|(_, text)| text.contains("c is")));
    assert_eq!(c.server(0).asked, 3);
}

#[test]
fn a_joiner_that_executes_such_a_request_again_goes_on() {
    let mut c = Cluster::planned(3, Plan { replay_bytes_max: Some(1 << 20), ..Plan::plain(false) });
    c.start(&[0, 1, 2]);
    c.make_odd("b");
    for (number, text) in [(1, "a"), (2, "b"), (3, "c")] {
        c.request(0, number, text);
    }
    pass(&mut c, seconds(1));
    are_well(&c, &["a", "c"]);
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.make_odd("b");
    pass(&mut c, seconds(1));
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), ["a", "c"]);
}

#[test]
fn a_view_change_in_the_middle_of_an_inquiry_ends_it_all_the_same() {
    let mut c = Cluster::whole(true);
    c.make_odd("b");
    c.server(2).held = true;
    c.request(0, 1, "b");
    pass(&mut c, Duration::from_millis(300));
    assert!(ends(&c, 0).is_empty(), "one has not said what it saw");
    c.crash(2);
    c.install(&[0, 1]);
    pass(&mut c, seconds(1));
    assert_eq!(ends(&c, 0), [(1, GONE)]);
    assert_eq!(c.states(0), ["in", "in", "down"]);
    c.request(0, 2, "c");
    pass(&mut c, seconds(1));
    assert_eq!(c.executed(0), ["c"]);
}

#[test]
fn a_call_that_is_late_everywhere_is_waited_for() {
    for style in [Style::Active, Style::SemiActive, Style::ActiveWithVoting] {
        let mut c = Cluster::whole_planned(Plan::style(style));
        (0..3).for_each(|index| c.server(index).held = true);
        c.request(1, 1, "a");
        pass(&mut c, seconds(70));
        for index in 0..3 {
            assert_eq!(c.states(index), ["in", "in", "in"]);
            let waiting = c.snapshot(index).endings.waiting.expect("it is at something");
            assert_eq!((waiting.0, waiting.2.map(|request| request.index)), (1, Some(1)));
            c.server(index).held = false;
            pass(&mut c, seconds(2));
        }
        are_well(&c, &["a"]);
        assert_eq!(c.nodes[1].replies.last(), Some(&(1, "a is number 1".into())), "{style:?}");
    }
}

#[test]
fn a_server_that_alone_is_late_keeps_no_client_waiting_and_is_restarted_in_the_end() {
    for style in [Style::Active, Style::SemiActive] {
        let mut c = Cluster::whole_planned(Plan::style(style));
        for number in 1..=3 {
            c.request(0, number, "x");
            c.settle();
        }
        c.server(0).held = true;
        let before = c.nodes[0].resubmits;
        c.request(0, 4, "a");
        c.settle();
        pass(&mut c, Duration::from_millis(300));
        assert!(c.nodes[0].resubmits > before, "{style:?}: the gateway is told to ask again");
        c.request(0, 4, "a");
        c.settle();
        assert_eq!(c.nodes[0].replies.last(), Some(&(4, "a is number 4".into())), "{style:?}");
        assert_eq!(c.snapshot(1).endings.late.iter().count(), 1);
        pass(&mut c, seconds(25));
        assert_eq!(c.states(1), ["in", "in", "in"]);
        pass(&mut c, seconds(10));
        assert_eq!(c.nodes[0].restarts, [DownReason::ServerHung], "{style:?}");
        c.start_server(0);
        pass(&mut c, seconds(1));
        assert_eq!(c.executed(0), ["x", "x", "x", "a"]);
        assert!(c.snapshot(1).endings.late.is_empty());
    }
}

#[test]
fn a_server_that_catches_up_answers_for_itself_again() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "x");
    c.settle();
    c.server(0).held = true;
    c.request(0, 2, "a");
    pass(&mut c, Duration::from_millis(300));
    assert!(!c.snapshot(2).endings.late.is_empty());
    c.server(0).held = false;
    pass(&mut c, seconds(1));
    assert!(c.snapshot(2).endings.late.is_empty());
    are_well(&c, &["x", "a"]);
}

#[test]
fn the_last_member_is_never_given_up_for_being_late() {
    let mut c = Cluster::whole(true);
    c.server(0).held = true;
    c.request(0, 1, "a");
    pass(&mut c, seconds(16));
    c.crash(1);
    c.crash(2);
    c.install(&[0]);
    pass(&mut c, seconds(120));
    assert!(c.nodes[0].restarts.is_empty());
}

#[test]
fn a_leader_that_gives_no_sign_of_life_is_followed_once() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.request(0, 1, "a");
    // Until a checkpoint has it.
    pass(&mut c, seconds(3));
    c.server(0).held = true;
    c.request(0, 2, "b");
    pass(&mut c, seconds(29));
    assert!(c.nodes[0].restarts.is_empty());
    (1..3).for_each(|index| c.server(index).held = true);
    pass(&mut c, seconds(3));
    assert_eq!(c.nodes[0].restarts, [DownReason::ServerHung]);
    c.server(1).held = true;
    assert_eq!(c.leader(1), Some(1));
    c.start_server(0);
    pass(&mut c, seconds(90));
    assert_eq!(c.nodes[1].restarts, [], "then it is the call");
    c.server(1).held = false;
    c.server(2).held = false;
    pass(&mut c, seconds(2));
    assert_eq!(c.executed(1), ["a", "b"]);
    assert_eq!(c.states(1), ["in", "in", "in"]);
}

// Seed 80219 of the simulator's `styles`.
#[test]
fn what_a_leader_hung_at_is_with_the_next_one_alone() {
    let concurrency = Concurrency::Pipelined;
    let mut c = Cluster::whole_planned(Plan { concurrency, ..Plan::style(Style::WarmPassive) });
    c.make_silent("b");
    c.server(0).held = true;
    c.request(0, 1, "b");
    c.request(0, 2, "c");
    pass(&mut c, seconds(60));
    assert_eq!(c.leader(1), Some(1));
    assert!(c.executed(1).is_empty(), "nothing is sent behind it");
    c.nodes[1].replica.handle_skip(GROUP, 1, 1);
    c.drain_all();
    pass(&mut c, seconds(1));
    assert_eq!(c.executed(1), ["c"]);
}

#[test]
fn a_request_at_which_processes_end_is_begun_by_no_third_one() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    (0..3).for_each(|index| c.server(index).held = true);
    c.request(1, 1, "x");
    c.ft_request(0, 2, "poison", 7);
    c.request(0, 3, "b");
    c.settle();
    for index in 0..2 {
        c.server(index).held = false;
        assert!(c.serve_once(index), "x");
        c.server(index).held = true;
        c.crash_server(index);
    }
    c.settle();
    // The third has not begun it; it is at what comes before.
    c.server(2).held = false;
    pass(&mut c, seconds(1));
    assert_eq!(c.executed(2), ["a", "x", "b"]);
    assert_eq!(ends(&c, 2), [(3, RequestEnd::EndsServers)]);
    for index in 0..2 {
        c.start_server(index);
        c.settle();
        assert_eq!(c.executed(index), ["a", "x", "b"]);
    }
    c.ft_request(1, 9, "poison", 7);
    c.settle();
    assert!(c.nodes[1].replies.last().is_some_and(|(_, text)| text.contains("CommFailure")));
    assert_eq!(c.executed(1), ["a", "x", "b"]);
}

#[test]
fn when_all_processes_end_at_a_request_its_client_is_told_and_nobody_begins_it_again() {
    for durable in [false, true] {
        let mut c = Cluster::whole_planned(Plan { durable, ..Plan::plain(true) });
        c.request(0, 1, "a");
        c.settle();
        (0..3).for_each(|index| c.server(index).held = true);
        c.ft_request(0, 2, "poison", 7);
        c.settle();
        (0..3).for_each(|index| c.crash_server(index));
        c.settle();
        assert_eq!(c.nodes[0].ended, [RequestEnd::EndsServers]);
        (0..3).for_each(|index| c.start_server(index));
        pass(&mut c, seconds(2));
        if !durable {
            assert_eq!(c.states(0), ["out", "out", "out"], "their state was in them alone");
            c.ft_request(1, 4, "poison", 7);
            c.settle();
            assert_eq!(c.nodes[1].ended.last(), Some(&RequestEnd::EndsServers));
            continue;
        }
        assert_eq!(c.states(0), ["in", "in", "in"]);
        (0..3).for_each(|index| assert_eq!(c.executed(index), ["a"]));
        c.request(0, 3, "b");
        c.settle();
        (0..3).for_each(|index| c.crash(index));
        (0..3).for_each(|index| c.restart(index));
        c.start(&[0, 1, 2]);
        pass(&mut c, seconds(2));
        (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "b"]));
    }
}

#[test]
fn who_was_told_to_wait_with_a_request_and_ends_does_not_wait_for_ever() {
    let mut c = Cluster::held_at_poison();
    c.crash_server(0);
    c.crash_server(1);
    c.settle();
    assert!(ends(&c, 2).is_empty(), "the third is at it, too");
    c.crash_server(2);
    c.settle();
    (0..3).for_each(|index| c.start_server(index));
    pass(&mut c, seconds(2));
    assert_eq!(c.states(0), ["in", "in", "in"]);
    c.request(0, 3, "b");
    c.settle();
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "b"]));
}

#[test]
fn a_poisonous_request_costs_a_passive_group_two_leaders() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.request(0, 1, "a");
    c.settle();
    (0..3).for_each(|index| c.server(index).held = true);
    c.request(0, 2, "poison");
    c.request(1, 1, "b");
    c.settle();
    c.crash_server(0);
    c.settle();
    assert_eq!(c.leader(2), Some(1));
    c.server(1).held = false;
    assert!(c.serve_once(1), "a");
    c.server(1).held = true;
    c.crash_server(1);
    c.settle();
    assert_eq!(c.leader(2), Some(2));
    c.server(2).held = false;
    pass(&mut c, seconds(1));
    assert_eq!(c.executed(2), ["a", "b"]);
    assert_eq!(ends(&c, 2), [(2, RequestEnd::EndsServers)]);
    assert!(c.nodes[0].replies.last().is_some_and(|(_, text)| text.contains("CommFailure")));
}

fn staggered(style: Style) -> Cluster {
    let mut c = Cluster::whole_planned(Plan { staggered: true, ..Plan::style(style) });
    c.relink();
    c.settle();
    c
}

#[test]
fn staggered_one_goes_ahead_and_the_others_follow_when_it_is_through() {
    for style in [Style::Active, Style::SemiActive, Style::ActiveWithVoting] {
        let mut c = staggered(style);
        c.request(0, 1, "x");
        c.settle();
        (0..3).for_each(|index| assert_eq!(c.executed(index), ["x"]));
        c.server(0).held = true;
        c.request(1, 1, "a");
        c.request(2, 1, "b");
        c.settle();
        assert_eq!((c.executed(1).len(), c.executed(2).len()), (1, 1), "{style:?}");
        c.server(0).held = false;
        c.settle();
        are_well(&c, &["x", "a", "b"]);
        // They wait for a while only.
        c.server(0).held = true;
        c.request(1, 2, "c");
        pass(&mut c, seconds(1));
        assert_eq!(c.executed(1), ["x", "a", "b", "c"]);
        c.server(0).held = false;
        c.cut = true;
        c.request(1, 3, "d");
        pass(&mut c, seconds(1));
        are_well(&c, &["x", "a", "b", "c", "d"]);
    }
}

#[test]
fn staggered_a_poisonous_request_costs_two_members_and_no_state() {
    for style in [Style::Active, Style::SemiActive, Style::ActiveWithVoting] {
        let mut c = staggered(style);
        c.request(0, 1, "a");
        c.settle();
        (0..3).for_each(|index| c.server(index).held = true);
        c.ft_request(1, 1, "poison", 7);
        c.request(0, 2, "b");
        c.settle();
        c.crash_server(0);
        c.settle();
        c.crash_server(1);
        c.settle();
        (2..3).for_each(|index| c.server(index).held = false);
        pass(&mut c, seconds(1));
        assert_eq!(ends(&c, 2), [(2, RequestEnd::EndsServers)], "{style:?}");
        assert_eq!(c.executed(2), ["a", "b"]);
        (0..2).for_each(|index| c.start_server(index));
        pass(&mut c, seconds(1));
        (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "b"], "{style:?}"));
        c.ft_request(0, 9, "poison", 7);
        c.settle();
        let told = &c.nodes[0].replies;
        assert!(told.last().is_some_and(|(_, text)| text.contains("CommFailure")), "{told:?}");
    }
}

#[test]
fn staggered_what_all_do_alike_is_no_crash_either() {
    let mut c = staggered(Style::Active);
    c.make_odd("b");
    for (number, text) in [(1, "a"), (2, "b"), (3, "c")] {
        c.request(0, number, text);
    }
    pass(&mut c, seconds(1));
    are_well(&c, &["a", "c"]);
    assert_eq!(ends(&c, 1), [(2, GONE)]);
}

#[test]
fn what_was_answered_is_executed_by_whoever_follows_whatever_became_of_others_at_it() {
    let mut c = Cluster::whole(true);
    c.server(0).held = true;
    c.server(1).held = true;
    c.request(2, 1, "a");
    c.settle();
    assert_eq!(c.nodes[2].replies, [(1, "a is number 1".into())]);
    c.crash_server(0);
    c.crash_server(1);
    c.settle();
    assert!(ends(&c, 2).is_empty());
    for index in 0..2 {
        c.start_server(index);
        c.settle();
    }
    pass(&mut c, seconds(1));
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a"]));
}

#[test]
fn an_operator_gives_up_what_is_never_answered() {
    for style in [Style::Active, Style::ActiveWithVoting, Style::WarmPassive] {
        let mut c = Cluster::whole_planned(Plan::style(style));
        c.request(0, 1, "a");
        c.settle();
        c.make_silent("b");
        c.ft_request(0, 2, "b", 7);
        c.request(1, 1, "c");
        pass(&mut c, seconds(10));
        assert_eq!(c.executed(0), ["a"], "{style:?}");
        c.nodes[0].replica.handle_skip(GROUP, 1, 9);
        c.drain_all();
        assert!(c.nodes[0].commanded[0].is_err(), "there is no such request");
        c.nodes[0].replica.handle_skip(GROUP, 1, 2);
        c.drain_all();
        pass(&mut c, seconds(1));
        assert_eq!(c.nodes[0].commanded[1], Ok(()));
        assert!(c.nodes[0].replies.last().is_some_and(|(_, text)| text.contains("Timeout")));
        assert_eq!(c.executed(0), ["a", "c"]);
        assert_eq!(ends(&c, 1), [(2, RequestEnd::Skipped)]);
        c.ft_request(2, 3, "b", 7);
        pass(&mut c, seconds(1));
        assert!(c.nodes[2].replies.last().is_some_and(|(_, text)| text.contains("Timeout")));
        assert!((0..3).all(|index| c.nodes[index].restarts.is_empty()), "{style:?}");
    }
}

#[test]
fn a_group_gives_up_by_itself_what_is_never_answered_if_it_is_to() {
    let abandon = Some(seconds(40));
    let mut c = Cluster::whole_planned(Plan { abandon, ..Plan::plain(true) });
    c.make_silent("b");
    c.request(0, 1, "b");
    c.request(0, 2, "c");
    pass(&mut c, seconds(39));
    assert!(ends(&c, 0).is_empty());
    pass(&mut c, seconds(2));
    assert_eq!(ends(&c, 0), [(1, RequestEnd::Skipped)]);
    are_well(&c, &["c"]);
}

#[test]
fn servers_whose_states_differ_behind_such_a_request_are_made_alike() {
    let mut c = Cluster::whole(true);
    c.make_odd("b");
    c.server(2).executed.push("something else".into());
    c.request(0, 1, "b");
    pass(&mut c, seconds(1));
    assert_eq!(c.nodes[2].restarts, [DownReason::Diverged]);
    assert_eq!(c.snapshot(0).endings.doubt, None, "the two others are equal");
    c.start_server(2);
    pass(&mut c, seconds(1));
    are_equal(&c);
}

fn are_equal(c: &Cluster) {
    (0..3).for_each(|index| assert_eq!(c.executed(index), c.executed(0)));
}

#[test]
fn where_no_state_can_be_had_it_is_told_that_members_may_differ() {
    let mut c = Cluster::whole(true);
    c.make_odd("b");
    (0..3).for_each(|index| c.server(index).is_private = true);
    c.request(0, 1, "b");
    pass(&mut c, seconds(1));
    assert_eq!(c.snapshot(0).endings.doubt, Some(1));
    let refused = c.snapshot(0).endings.state_not_given.expect("it was asked");
    let said = refused.refusal.said.as_str();
    assert_eq!((refused.times, said), (1, "IDL:omg.org/CORBA/NoStateAvailable:1.0"));
    are_well(&c, &[]);
    for index in [1, 2] {
        let node = quorba_base::NodeId::new(index).expect("a node");
        c.command_group(0, Command::Remove(node));
    }
    pass(&mut c, seconds(1));
    assert_eq!(c.snapshot(0).endings.doubt, None, "one state is everybody's");
}

#[test]
fn what_a_server_that_is_gone_did_not_give_is_not_said_of_the_next_one() {
    let mut c = Cluster::whole(true);
    c.make_odd("b");
    (0..3).for_each(|index| c.server(index).is_private = true);
    c.request(0, 1, "b");
    pass(&mut c, seconds(1));
    assert!(c.snapshot(1).endings.state_not_given.is_some(), "it was asked");
    c.crash_server(1);
    c.settle();
    assert_eq!(c.snapshot(1).endings.state_not_given, None);
}

// Seed 5000222 of the simulator's `backups`; where calls go one by one, seed 400443 of `names`.
#[test]
fn who_executes_again_what_was_with_such_a_request_may_differ_and_it_is_told() {
    let (one_by_one, several) = (Concurrency::Sequential, Concurrency::Pipelined);
    for (concurrency, does_alike, doubt) in
        [(several, true, Some(2)), (one_by_one, true, None), (one_by_one, false, Some(2))]
    {
        let replay_bytes_max = Some(1 << 20);
        let plan = Plan { concurrency, replay_bytes_max, ..Plan::plain(false) };
        let mut c = Cluster::whole_planned(plan);
        c.make_odd("b");
        c.request(0, 1, "a");
        c.request(0, 2, "b");
        c.request(0, 3, "c");
        pass(&mut c, seconds(1));
        assert_eq!(ends(&c, 0)[0], (2, GONE));
        c.crash_server(1);
        c.crash_server(2);
        c.settle();
        assert_eq!(c.snapshot(0).endings.doubt, None, "one is left");
        if does_alike {
            c.nodes[1].next_odd.push("b".into());
        }
        c.start_server(1);
        pass(&mut c, seconds(1));
        assert_eq!(c.states(0), ["in", "in", "down"]);
        assert_eq!(c.snapshot(0).endings.doubt, doubt);
        assert_eq!(c.snapshot(1).endings.doubt, doubt);
    }
}

// Seed 80598 of the simulator's `styles`.
#[test]
fn who_leaves_out_what_another_one_may_have_executed_may_differ_and_it_is_told() {
    let replay_bytes_max = Some(1 << 20);
    let mut c = Cluster::whole_planned(Plan { replay_bytes_max, ..Plan::plain(false) });
    c.crash_server(1);
    c.crash_server(2);
    c.make_silent("b");
    c.request(0, 1, "a");
    c.request(0, 2, "b");
    c.request(0, 3, "c");
    pass(&mut c, seconds(1));
    c.nodes[0].replica.handle_skip(GROUP, 1, 2);
    c.drain_all();
    pass(&mut c, seconds(1));
    assert_eq!(ends(&c, 0), [(2, RequestEnd::Skipped)]);
    assert_eq!(c.snapshot(0).endings.doubt, None, "there is one");
    c.start_server(1);
    pass(&mut c, seconds(1));
    assert_eq!(c.states(0), ["in", "in", "down"]);
    assert_eq!(c.snapshot(0).endings.doubt, Some(2));
    c.crash_server(0);
    pass(&mut c, seconds(1));
    assert_eq!(c.snapshot(1).endings.doubt, None, "who has left it out is left");
    c.start_server(0);
    pass(&mut c, seconds(1));
    assert_eq!(c.states(1), ["in", "in", "down"]);
    assert_eq!(c.snapshot(1).endings.doubt, None, "both have left it out");
}

#[test]
fn states_that_could_not_be_had_are_compared_when_they_can() {
    let mut c = Cluster::whole(true);
    c.make_odd("b");
    c.server(1).is_private = true;
    c.request(0, 1, "b");
    pass(&mut c, seconds(60));
    assert_eq!(c.snapshot(0).endings.doubt, Some(1));
    assert!(c.server(1).asked < 6);
    c.server(1).is_private = false;
    pass(&mut c, seconds(60));
    assert_eq!(c.snapshot(2).endings.doubt, None);
    are_well(&c, &[]);
}

#[test]
fn a_donor_that_cannot_give_its_state_is_asked_ever_more_seldom() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    (0..3).for_each(|index| c.server(index).is_private = true);
    c.crash_server(2);
    c.start_server(2);
    pass(&mut c, seconds(60));
    let asked: usize = (0..2).map(|index| c.server(index).asked).sum();
    assert!((4..=10).contains(&asked), "{asked}");
    (0..2).for_each(|index| c.server(index).is_private = false);
    pass(&mut c, seconds(35));
    assert_eq!(c.states(0), ["in", "in", "in"]);
}

// Nobody is asked who came in behind a request, and this one had been through with it before it was
// cut off.
#[test]
fn who_comes_back_with_what_it_has_answered_has_answered_it() {
    let mut c = Cluster::whole(true);
    c.server(0).held = true;
    c.request(1, 1, "a");
    c.settle();
    c.crash_server(2);
    c.install(&[0, 2]);
    c.settle();
    assert_eq!(c.executed(1), ["a"], "it is cut off with it");
    c.request(0, 2, "b");
    c.settle();
    c.install(&[0, 1, 2]);
    c.settle();
    c.start_server(2);
    pass(&mut c, seconds(60));
    assert_eq!(c.nodes[0].restarts, [DownReason::ServerHung], "the others have answered");
    c.start_server(0);
    pass(&mut c, seconds(2));
    (0..3).for_each(|index| assert_eq!(c.states(index), ["in", "in", "in"]));
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "b"]));
}

/// Of a group whose members' disks have all, member 2 is left. Its server does not answer what the
/// others had answered before their servers ended.
fn the_last_is_behind(does: impl Fn(&mut Cluster)) -> Cluster {
    let mut c = Cluster::whole_planned(Plan { durable: true, ..Plan::plain(true) });
    does(&mut c);
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    c.crash_server(0);
    c.crash_server(1);
    c.settle();
    c
}

fn comes_back_from_disks(c: &mut Cluster) {
    for index in 0..3 {
        if c.nodes[index].server.is_none() {
            c.start_server(index);
        }
    }
    pass(c, seconds(5));
    c.request(1, 9, "b");
    c.settle();
    for index in 0..3 {
        assert_eq!(c.states(index), ["in", "in", "in"]);
        assert_eq!(c.executed(index), ["a", "b"], "{index}");
    }
}

#[test]
fn the_last_server_of_a_durable_group_is_ended_if_it_hangs_at_what_was_answered() {
    let mut c = the_last_is_behind(|c| c.server(2).silent.push("a".into()));
    pass(&mut c, seconds(20));
    c.nodes[2].replica.handle_skip(GROUP, 1, 1);
    c.drain_all();
    c.settle();
    assert!(c.nodes[2].commanded[0].is_err(), "what was acknowledged is kept");
    pass(&mut c, seconds(180));
    assert_eq!(c.nodes[2].restarts, [DownReason::ServerHung]);
    comes_back_from_disks(&mut c);
}

#[test]
fn it_may_take_longer_for_that_than_a_server_whose_callers_wait() {
    let mut c = the_last_is_behind(|c| c.server(2).held = true);
    pass(&mut c, seconds(100));
    assert!(c.nodes[2].restarts.is_empty(), "nobody knows how long it took the others");
    c.server(2).held = false;
    comes_back_from_disks(&mut c);
    assert!(c.nodes[2].restarts.is_empty());
}

#[test]
fn a_durable_group_keeps_what_was_answered_though_the_last_server_did_not_answer_it() {
    let mut c = the_last_is_behind(|c| {
        c.server(2).odd.push("a".into());
        c.server(2).held = true;
    });
    c.server(2).held = false;
    pass(&mut c, seconds(1));
    assert_eq!(c.nodes[2].restarts, [DownReason::ConnectionLost]);
    assert!(ends(&c, 2).is_empty());
    comes_back_from_disks(&mut c);
}

#[test]
fn who_follows_a_leader_that_had_answered_is_at_fault_if_it_does_not() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.server(1).odd.push("a".into());
    c.request(0, 1, "a");
    c.settle();
    c.server(0).held = true;
    c.request(0, 2, "b");
    c.settle();
    c.crash_server(0);
    pass(&mut c, seconds(1));
    assert_eq!(c.nodes[1].restarts, [DownReason::ConnectionLost]);
    assert!(ends(&c, 2).is_empty());
    assert_eq!((c.leader(2), c.executed(2)), (Some(2), vec!["a", "b"]));
}
