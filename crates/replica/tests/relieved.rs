//! What follows from requests without a reply for those who lead, or were away: whose state counts.

mod cluster;

use cluster::{Cluster, GROUP, Plan, are_well, ends, pass, seconds};
use quorba_base::{Duration, NodeId};
use quorba_replica::{Command, DownReason, NoReply, RequestEnd, Style};

const GONE: RequestEnd = RequestEnd::NoReply(NoReply::ConnectionEnded);

/// The leader has executed half of a request, ended the connection, and not given its state since.
fn half_done(behind: &[&str]) -> Cluster {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.request(0, 1, "a");
    c.settle();
    c.make_odd("b");
    c.request(0, 2, "b");
    c.settle();
    c.server(0).executed.push("half of b".into());
    c.server(0).held = true;
    for (text, number) in behind.iter().zip(1..) {
        c.ft_request(1, number, text, number as i32);
    }
    pass(&mut c, Duration::from_millis(300));
    assert_eq!(ends(&c, 1), [(2, GONE)]);
    c
}

#[test]
fn a_leader_is_not_relieved_with_a_state_that_nobody_else_has() {
    let mut c = half_done(&[]);
    c.promote(1);
    pass(&mut c, seconds(1));
    assert_eq!(c.nodes[0].restarts, [DownReason::MayDiffer]);
    c.start_server(0);
    pass(&mut c, seconds(1));
    assert_eq!(c.states(2), ["in", "in", "in"]);
    c.promote(0);
    pass(&mut c, seconds(1));
    (0..2).for_each(|index| assert_eq!(c.executed(index), ["a"], "member {index}"));

    let mut c = half_done(&[]);
    c.server(0).held = false;
    pass(&mut c, seconds(1));
    c.promote(1);
    pass(&mut c, seconds(1));
    assert!(c.nodes[0].restarts.is_empty(), "they have it");
    assert_eq!(c.executed(1), ["a", "half of b"]);
}

#[test]
fn a_leader_goes_on_behind_a_request_without_a_reply_when_its_state_was_taken() {
    for crashes in [false, true] {
        let mut c = half_done(&["c"]);
        c.server(0).held = false;
        let told = if crashes {
            c.crash_server(0);
            "c is number 2"
        } else {
            assert!(c.serve_once(0));
            assert_eq!(c.executed(0), ["a", "half of b"], "its state was taken");
            pass(&mut c, Duration::from_millis(100));
            c.crash_server(0);
            "c is number 3"
        };
        c.ft_request(1, 2, "c", 1);
        pass(&mut c, seconds(1));
        let told = [(1, told.to_string()), (2, told.to_string())];
        assert_eq!(c.nodes[1].replies, told);
    }
}

#[test]
fn a_leader_that_was_relieved_at_a_request_is_not_at_it_for_ever() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.server(0).silent.push("b".into());
    c.request(0, 1, "a");
    c.request(0, 2, "b");
    c.settle();
    c.promote(1);
    pass(&mut c, seconds(40));
    assert_eq!(c.nodes[0].replies.last(), Some(&(2, "b is number 2".into())));
    assert_eq!(c.nodes[0].restarts, [DownReason::ServerHung]);
    c.start_server(0);
    c.promote(0);
    pass(&mut c, seconds(1));
    assert_eq!((c.states(1), c.executed(0)), (vec!["in"; 3], vec!["a", "b"]));
}

/// Delivers what is ordered, and no server does anything.
fn deliver_all(c: &mut Cluster) {
    while let Some(delivered) = c.order.pop_front() {
        c.deliver_one(&delivered);
    }
}

/// Member 0 leads, and is at "a" when member 1 follows it, which stands at it, too.
fn relieved_at_the_first_of(texts: &[&str], style: Style) -> Cluster {
    let mut c = Cluster::planned(3, Plan::style(style));
    c.install(&[0, 1, 2]);
    c.settle();
    if style != Style::ColdPassive {
        (0..3).for_each(|index| c.start_server(index));
        c.settle();
    }
    c.server(0).held = true;
    for (text, number) in texts.iter().zip(1..) {
        c.request(0, number, text);
    }
    c.settle();
    c.nodes[0].replica.handle_command(GROUP, 1, Command::Promote(NodeId::new(1).unwrap()));
    c.drain_all();
    deliver_all(&mut c);
    assert_eq!((c.leader(0), c.states(0)), (Some(1), vec!["in"; 3]));
    c.server(1).held = true;
    c.server(0).held = false;
    pass(&mut c, Duration::from_millis(500));
    c
}

// It went on with all that it had been given, for nobody, so that three processes ended at a
// request that ends them (seeds 101287 and 101507 of the simulator's `calls`).
#[test]
fn a_leader_that_is_relieved_executes_only_what_its_server_is_at() {
    for style in [Style::WarmPassive, Style::ColdPassive] {
        let mut c = relieved_at_the_first_of(&["a", "b", "c"], style);
        assert_eq!(c.executed(0), ["a"], "{style:?}");
        c.server(1).held = false;
        pass(&mut c, seconds(1));
        assert_eq!(c.executed(1), ["a", "b", "c"], "{style:?}");
        if style == Style::WarmPassive {
            assert_eq!(c.executed(0), ["a", "b", "c"], "it is given the state");
            assert_eq!(c.server(0).states, 1);
        }
        c.promote(0);
        c.request(2, 1, "d");
        c.settle();
        assert_eq!(c.executed(0), ["a", "b", "c", "d"], "{style:?}");
        assert_eq!(c.nodes[2].replies, [(1, "d is number 4".into())]);
    }
}

#[test]
fn a_leader_that_is_relieved_and_leads_again_goes_on_where_it_was() {
    for style in [Style::WarmPassive, Style::ColdPassive] {
        let mut c = relieved_at_the_first_of(&["a", "b"], style);
        c.request(2, 1, "c");
        c.settle();
        c.promote(0);
        assert_eq!(c.executed(0), ["a", "b", "c"], "{style:?}");
        assert_eq!(c.nodes[2].replies, [(1, "c is number 3".into())]);
        assert!(c.nodes[0].restarts.is_empty());
    }
}

#[test]
fn what_somebody_waits_for_a_relieved_leader_gives_in_its_place() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.crash_server(1);
    c.settle();
    c.server(0).held = true;
    c.request(0, 1, "a");
    c.request(0, 2, "b");
    c.settle();
    // It is to give its state behind "b".
    c.start_server(1);
    c.settle();
    c.request(0, 3, "c");
    c.settle();
    c.server(2).held = true;
    c.promote(2);
    c.server(0).held = false;
    pass(&mut c, Duration::from_millis(300));
    assert_eq!(c.states(0), ["in"; 3]);
    (0..2).for_each(|index| assert_eq!(c.executed(index), ["a", "b"], "member {index}"));
    c.server(2).held = false;
    pass(&mut c, seconds(2));
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "b", "c"], "member {index}"));
    assert!([0, 2].iter().all(|index| c.nodes[*index].restarts.is_empty()));
}

#[test]
fn a_poisonous_request_costs_two_leaders_whoever_led_before() {
    let mut c = relieved_at_the_first_of(&["a", "poison", "b"], Style::WarmPassive);
    c.server(1).held = false;
    assert!(c.serve_once(1), "a");
    c.crash_server(1);
    deliver_all(&mut c);
    assert_eq!(c.leader(0), Some(2));
    assert!(c.serve_once(2), "a");
    c.crash_server(2);
    pass(&mut c, seconds(1));
    assert_eq!(ends(&c, 0), [(2, RequestEnd::EndsServers)]);
    assert_eq!(c.executed(0), ["a", "b"]);
    assert!(c.nodes[0].restarts.is_empty());
}

// Two processes had ended at it. The third leader stood at it, was relieved before its word on that
// was delivered, and began it (seed 300022 of the simulator's `calls`).
#[test]
fn a_leader_that_is_relieved_does_not_begin_what_is_held() {
    for style in [Style::WarmPassive, Style::ColdPassive] {
        let mut c = Cluster::planned(4, Plan::style(style));
        c.install(&[0, 1, 2, 3]);
        c.settle();
        if style != Style::ColdPassive {
            (0..4).for_each(|index| c.start_server(index));
            c.settle();
        }
        c.server(0).held = true;
        c.request(0, 1, "poison");
        c.settle();
        for index in [0, 1] {
            c.crash_server(index);
            while c.leader(2) == Some(index) {
                let delivered = c.order.pop_front().expect("the next one leads");
                c.deliver_one(&delivered);
            }
            while c.states(2)[index] != "joining" && style == Style::ColdPassive {
                let delivered = c.order.pop_front().expect("it joins");
                c.deliver_one(&delivered);
            }
        }
        assert_eq!(c.leader(0), Some(2), "{style:?}");
        let says = core::mem::take(&mut c.order);
        c.nodes[0].replica.handle_command(GROUP, 1, Command::Promote(NodeId::new(3).unwrap()));
        c.drain_all();
        c.order.extend(says);
        while c.leader(2) == Some(2) {
            let delivered = c.order.pop_front().expect("it is promoted");
            c.deliver_one(&delivered);
        }
        while c.serve_once(2) {}
        assert_eq!(c.executed(2), Vec::<&str>::new(), "{style:?}: it is given what ended two");
        pass(&mut c, seconds(1));
        assert_eq!(ends(&c, 0), [(1, RequestEnd::EndsServers)], "{style:?}");
        c.request(0, 2, "b");
        pass(&mut c, seconds(1));
        assert_eq!(c.executed(3), ["b"], "{style:?}");
    }
}

// Who keeps no server has the next leader's state kept for it. Its own server, kept on for a
// joiner, was at the request for ever, so that the joiner waited for ever (seed 81082 of the
// simulator's `calls`).
#[test]
fn a_leader_that_was_relieved_at_a_request_gives_its_state_or_ends() {
    let mut c = Cluster::whole_planned(Plan::style(Style::ColdPassive));
    c.request(0, 1, "a");
    pass(&mut c, seconds(2));
    c.server(0).silent.push("b".into());
    c.request(0, 2, "b");
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    c.restart(2);
    c.install(&[0, 1, 2]);
    c.settle();
    c.promote(1);
    pass(&mut c, seconds(2));
    assert_eq!(c.states(0), ["in", "in", "joining"]);
    pass(&mut c, seconds(60));
    assert_eq!(c.states(1), ["in", "in", "in"]);
    assert_eq!(c.executed(1), ["a", "b"]);
}

#[test]
fn who_executes_from_now_on_begins_with_the_state_of_the_leader_that_nobody_else_has() {
    let mut c = half_done(&[]);
    c.command_group(1, Command::SetStyle(Style::Active));
    pass(&mut c, seconds(1));
    assert!(c.nodes[0].restarts.is_empty());
    c.server(0).held = false;
    for index in 1..3 {
        assert_eq!(c.nodes[index].restarts, [DownReason::MayDiffer]);
        c.start_server(index);
    }
    pass(&mut c, seconds(1));
    assert_eq!(c.states(0), ["in", "in", "in"]);
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "half of b"], "member {index}"));
}

#[test]
fn who_replied_to_what_ended_without_it_gets_the_state_of_the_others() {
    let mut c = Cluster::whole(true);
    c.request(1, 1, "a");
    c.settle();
    (1..3).for_each(|index| c.server(index).odd.push("b".into()));
    c.request(1, 2, "b");
    c.settle();
    c.install(&[0]);
    c.install(&[1, 2]);
    pass(&mut c, seconds(1));
    assert_eq!((ends(&c, 1), c.executed(0)), (vec![(2, GONE)], vec!["a", "b"]));
    c.install(&[0, 1, 2]);
    pass(&mut c, seconds(1));
    are_well(&c, &["a"]);
}

// What the others had executed of it, it had not, and was given only requests.
#[test]
fn who_missed_a_request_that_was_given_up_is_given_a_state() {
    let mut c = Cluster::whole(true);
    c.request(1, 1, "a");
    c.settle();
    c.install(&[0]);
    c.install(&[1, 2]);
    (1..3).for_each(|index| c.server(index).silent.push("b".into()));
    c.request(1, 2, "b");
    c.settle();
    (1..3).for_each(|index| c.server(index).executed.push("b, without a word".into()));
    c.nodes[1].replica.handle_skip(GROUP, 1, 2);
    c.drain_all();
    pass(&mut c, seconds(1));
    c.install(&[0, 1, 2]);
    pass(&mut c, seconds(1));
    are_well(&c, &["a", "b, without a word"]);
}

// It had led, and executed the request before it was cut off, at which the next leader hangs (seed
// 401357 of the simulator's `calls`).
#[test]
fn who_executed_what_was_given_up_since_and_stands_by_is_given_a_state() {
    let mut c = Cluster::whole_planned(Plan::style(Style::WarmPassive));
    c.request(0, 1, "a");
    c.request(0, 2, "b");
    c.settle();
    assert_eq!(c.executed(0), ["a", "b"]);
    c.server(1).silent.push("b".into());
    c.install(&[0]);
    c.install(&[1, 2]);
    pass(&mut c, Duration::from_millis(300));
    c.install(&[0, 1, 2]);
    pass(&mut c, Duration::from_millis(300));
    assert_eq!(c.states(1), ["in", "in", "in"]);
    c.server(1).held = true;
    c.nodes[1].replica.handle_skip(GROUP, 1, 2);
    pass(&mut c, Duration::from_millis(50));
    c.install(&[0]);
    c.install(&[1, 2]);
    assert_eq!(ends(&c, 1), [(2, RequestEnd::Skipped)]);
    c.server(1).held = false;
    c.request(1, 3, "c");
    pass(&mut c, seconds(1));
    c.install(&[0, 1, 2]);
    pass(&mut c, seconds(1));
    c.promote(0);
    c.request(0, 4, "d");
    pass(&mut c, seconds(1));
    assert_eq!(c.executed(0), ["a", "c", "d"]);
}

/// Member 2 joins with a state from before "b", at which the leader's connection ended when half of
/// it was done, and comes in when the group is passive.
fn joined_in_front_of(style_first: bool) -> Cluster {
    let mut c = Cluster::whole(true);
    c.crash_server(1);
    c.crash_server(2);
    c.settle();
    c.request(0, 1, "a");
    c.settle();
    c.cut = true;
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(0), ["in", "down", "joining"]);
    if style_first {
        c.command_group(0, Command::SetStyle(Style::WarmPassive));
    }
    c.server(0).odd.push("b".into());
    c.request(0, 2, "b");
    c.settle();
    c.server(0).executed.push("half of b".into());
    pass(&mut c, Duration::from_millis(300));
    if !style_first {
        c.command_group(0, Command::SetStyle(Style::WarmPassive));
    }
    c.request(0, 3, "c");
    c.settle();
    assert_eq!(ends(&c, 0), [(2, GONE)]);
    assert_eq!(c.nodes[0].replies.last(), Some(&(3, "c is number 3".into())));
    c.relink();
    c.settle();
    assert_eq!(c.states(0), ["in", "down", "in"]);
    c
}

// It logged that request, executed it anew when it led, and so did what no client had been told
// (seed 7033 of the simulator's `backups`).
#[test]
fn who_joins_in_front_of_a_request_that_only_the_leader_did_comes_in_with_what_it_did() {
    for style_first in [true, false] {
        let mut c = joined_in_front_of(style_first);
        c.promote(2);
        c.request(0, 4, "d");
        c.settle();
        assert_eq!(c.executed(2), ["a", "half of b", "c", "d"], "{style_first}");
        assert!(c.nodes[0].restarts.is_empty());
    }
}

// The next leader executes it anew, and what it did with it only its own state tells.
#[test]
fn what_follows_on_a_request_without_a_reply_that_is_executed_anew_waits_for_the_state() {
    let mut c = half_done(&["c"]);
    c.crash_server(0);
    deliver_all(&mut c);
    assert_eq!(c.leader(1), Some(1));
    let mut is_half_done = false;
    for _ in 0..20 {
        if !c.serve_once(1) {
            c.pass(Duration::from_millis(50));
        }
        if c.executed(1) == ["a"] && !core::mem::replace(&mut is_half_done, true) {
            c.server(1).executed.push("other half of b".into());
        }
    }
    assert_eq!(c.executed(1), ["a", "other half of b", "c"]);
    assert_eq!(c.nodes[1].replies, [], "nobody else has the state that it was made in");
    c.settle();
    assert_eq!(c.nodes[1].replies, [(1, "c is number 3".into())]);
    c.crash_server(1);
    c.request(2, 1, "d");
    pass(&mut c, seconds(1));
    assert_eq!(c.executed(2), ["a", "other half of b", "c", "d"]);
}

// The only other member's server hung at an earlier request, so that nobody had the state any more
// when the leader's was ended (seed 451 of the simulator's `styles`).
#[test]
fn a_leader_is_not_ended_for_one_whose_server_hangs() {
    let mut c = Cluster::whole(true);
    c.server(2).silent.push("a".into());
    c.request(0, 1, "a");
    pass(&mut c, seconds(20));
    c.make_odd("b");
    c.request(1, 2, "b");
    c.settle();
    c.install(&[1, 2]);
    c.settle();
    assert_eq!(ends(&c, 1), [], "one has said nothing of it yet");
    c.command_group(1, Command::SetStyle(Style::WarmPassive));
    pass(&mut c, seconds(1));
    assert_eq!(ends(&c, 1), [(2, GONE)]);
    assert!(c.nodes[1].restarts.is_empty());
    assert_eq!((c.leader(1), c.executed(1)), (Some(1), vec!["a"]));
}

#[test]
fn a_server_that_hangs_has_not_caught_up_because_the_style_changes() {
    let mut c = Cluster::whole(true);
    c.server(2).silent.push("a".into());
    c.request(0, 1, "a");
    pass(&mut c, seconds(20));
    assert_eq!(c.snapshot(0).endings.late.iter().count(), 1);
    c.command_group(0, Command::SetStyle(Style::WarmPassive));
    pass(&mut c, Duration::from_millis(200));
    assert_eq!(c.snapshot(0).endings.late.iter().count(), 1);
}
