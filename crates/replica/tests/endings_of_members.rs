//! Requests that servers do not answer, and members that come and go meanwhile, told as short
//! stories.

mod cluster;

use bytes::Bytes;
use cluster::{Cluster, GROUP, Plan, ends, pass, seconds};
use quorba_base::Duration;
use quorba_replica::{
    CallKey, CatalogChange, Command, Definition, DownReason, GroupId, History, MemberState,
    NestedCall, NoReply, RequestEnd, Style,
};

const GONE: RequestEnd = RequestEnd::NoReply(NoReply::ConnectionEnded);

// Who had come in by its log said at the end of its server that this had answered all, though it
// had been given nothing yet; so what ended one process after the other was taken for answered
// (seed 96 of the simulator's `styles`).
#[test]
fn what_a_server_was_not_given_yet_it_has_not_answered() {
    let mut c = Cluster::held_at_poison();
    c.crash(1);
    c.install(&[0, 2]);
    c.settle();
    c.restart(1);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"], "nothing was delivered meanwhile");
    (0..3).for_each(|index| c.crash_server(index));
    c.settle();
    assert_eq!(ends(&c, 2), [(2, RequestEnd::EndsServers)]);
    (0..3).for_each(|index| c.start_server(index));
    pass(&mut c, seconds(2));
    for index in 0..3 {
        assert_eq!(c.states(index), ["in", "in", "in"]);
        assert_eq!(c.executed(index), ["a"]);
    }
}

// The last server that had the state never ended what it was at, or ended it without a reply, and
// its member waited for that before it asked to come in again (seed 400 of the simulator's
// domains).
#[test]
fn the_last_member_comes_in_again_whatever_its_server_is_at() {
    for is_silent in [true, false] {
        let mut c = Cluster::whole(true);
        c.request(0, 1, "a");
        c.settle();
        c.crash_server(0);
        c.crash_server(1);
        c.settle();
        c.server(2).held = true;
        if is_silent {
            c.server(2).silent.push("b".into());
        } else {
            c.server(2).odd.push("b".into());
        }
        c.request(0, 2, "b");
        c.settle();
        c.install(&[0, 1]);
        c.settle();
        c.install(&[0, 1, 2]);
        c.settle();
        assert_eq!(c.states(0)[2], "down");
        c.server(2).held = false;
        pass(&mut c, seconds(40));
        assert_eq!(c.states(0)[2], "in");
        if is_silent {
            c.nodes[2].replica.handle_skip(GROUP, 1, 2);
            c.drain_all();
            pass(&mut c, seconds(1));
            assert_eq!(ends(&c, 0), [(2, RequestEnd::Skipped)]);
        } else {
            assert_eq!(ends(&c, 0), [(2, GONE)]);
        }
        assert!(c.nodes[2].restarts.is_empty());
        c.start_server(0);
        c.start_server(1);
        c.request(0, 3, "c");
        pass(&mut c, seconds(1));
        assert_eq!(c.states(0), ["in", "in", "in"]);
        (1..3).for_each(|index| assert_eq!(c.executed(index), c.executed(0)));
        assert_eq!(c.executed(0).last(), Some(&"c"));
    }
}

// Who comes back with a server that calls others asks at once, whatever that is at. Its node ended
// it while the word was on its way, and with it what the group went on with (seed 80640 of the
// simulator's `calls`).
#[test]
fn a_server_is_not_ended_while_its_member_waits_to_be_in_with_what_it_has() {
    let mut c = Cluster::whole_planned(Plan { calls: true, ..Plan::plain(true) });
    c.request(0, 1, "a");
    c.settle();
    c.make_silent("b");
    c.request(0, 2, "b");
    c.settle();
    c.install(&[0, 1]);
    pass(&mut c, seconds(40));
    c.install(&[0, 1, 2]);
    pass(&mut c, seconds(1));
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert!(c.nodes[2].restarts.is_empty(), "nobody has answered it");
}

// A server that was given the only state there is ended the connection, and the state was lost with
// it (seed 24 of the simulator's `backups`).
#[test]
fn a_state_that_nobody_else_has_is_kept_until_a_server_has_taken_it() {
    let mut c = Cluster::whole_planned(Plan::style(Style::ColdPassive));
    c.request(0, 1, "a");
    pass(&mut c, seconds(2));
    assert_eq!(c.logged(1), 0, "it has a checkpoint");
    c.request(0, 2, "b");
    c.settle();
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    c.nodes[1].refuses = 2;
    c.crash_server(0);
    pass(&mut c, seconds(1));
    assert_eq!(c.leader(1), Some(1));
    for _ in 0..2 {
        assert_eq!(c.nodes[1].restarts.last(), Some(&DownReason::StateRefused));
        c.start_server(1);
        pass(&mut c, seconds(1));
    }
    assert_eq!(c.executed(1), ["a", "b"]);
    assert_eq!(c.states(1)[1], "in");
}

// What was given up only one server had, which had executed it; the others were given its state,
// and all nodes ended. Its log leaves the request out (seed 6000371 of the simulator's `styles`).
#[test]
fn who_leaves_out_of_its_log_what_others_have_executed_is_found() {
    let mut c = Cluster::whole_planned(Plan { durable: true, ..Plan::plain(true) });
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(0);
    c.crash_server(2);
    c.settle();
    c.server(1).silent.push("b".into());
    c.request(1, 1, "b");
    pass(&mut c, seconds(1));
    // It has done it, and says nothing.
    c.server(1).executed.push("b".into());
    c.nodes[1].replica.handle_skip(GROUP, 1, 2);
    c.drain_all();
    pass(&mut c, seconds(1));
    c.start_server(0);
    c.start_server(2);
    pass(&mut c, seconds(1));
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "b"]));
    (0..3).for_each(|index| c.crash(index));
    (0..3).for_each(|index| c.restart(index));
    c.start(&[0, 1, 2]);
    pass(&mut c, seconds(2));
    if c.nodes[1].server.is_none() {
        c.start_server(1);
        pass(&mut c, seconds(2));
    }
    (0..3).for_each(|index| assert_eq!(c.states(index), ["in", "in", "in"]));
    assert_eq!(c.snapshot(0).endings.doubt, None);
    (1..3).for_each(|index| assert_eq!(c.executed(index), c.executed(0)));
}

// A server was late while only the leader's word counted, and nobody heard of it when the style
// changed (seed 6000345 of the simulator's `backups`).
#[test]
fn who_is_late_when_the_style_changes_says_so_again() {
    let mut c = Cluster::whole_planned(Plan::style(Style::Active));
    c.request(0, 1, "a");
    c.settle();
    c.server(2).silent.push("b".into());
    c.request(0, 2, "b");
    c.settle();
    c.command_group(0, Command::SetStyle(Style::ColdPassive));
    pass(&mut c, seconds(20));
    c.command_group(0, Command::SetStyle(Style::Active));
    for index in 0..3 {
        if c.nodes[index].server.is_none() {
            c.start_server(index);
        }
    }
    pass(&mut c, seconds(60));
    if c.nodes[2].server.is_none() {
        c.start_server(2);
        pass(&mut c, seconds(2));
    }
    assert_eq!(c.states(0), ["in", "in", "in"]);
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "b"], "{index}"));
}

// A member whose state was taken before such a request executes that itself.
#[test]
fn who_joins_in_front_of_such_a_request_is_compared_when_it_is_in() {
    let mut c = Cluster::whole(true);
    c.crash_server(2);
    c.settle();
    c.server(0).held = true;
    c.server(1).held = true;
    c.request(0, 1, "a");
    c.settle();
    c.start_server(2);
    c.server(2).held = true;
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "joining"]);
    c.server(0).odd.push("b".into());
    c.server(1).odd.push("b".into());
    c.request(0, 2, "b");
    c.settle();
    c.server(0).held = false;
    c.server(1).held = false;
    pass(&mut c, seconds(1));
    assert_eq!(ends(&c, 0), [(2, GONE)]);
    let asked = |c: &mut Cluster| (c.server(0).asked, c.server(1).asked);
    let before = asked(&mut c);
    c.server(2).odd.push("b".into());
    c.server(2).held = false;
    pass(&mut c, seconds(1));
    let after = asked(&mut c);
    assert!(after.0 > before.0 && after.1 > before.1, "{before:?} {after:?}");
    for _ in 0..2 {
        if c.nodes[2].server.is_none() {
            c.start_server(2);
        }
        pass(&mut c, seconds(2));
    }
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.snapshot(0).endings.doubt, None);
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a"], "{index}"));
}

/// The member of node 2 is the only one that is in, node 1 is cut off, and request 2 has ended
/// without a reply.
fn with_one_that_had_no_reply() -> Cluster {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.crash_server(0);
    c.install(&[0, 2]);
    c.settle();
    c.server(2).odd.push("b".into());
    c.request(0, 2, "b");
    pass(&mut c, seconds(1));
    assert_eq!(ends(&c, 0), [(2, GONE)]);
    c
}

// The only member that was in had no reply, and answered what followed; the other one had been cut
// off, was given what it had missed, and was cut off again while its server executed it. Nobody
// could tell which of two states was right, so both stayed (seed 430631 of the simulator's
// `domain`).
#[test]
fn who_executes_anew_what_had_no_reply_does_not_count_as_much_as_who_has_answered_since() {
    for is_called_meanwhile in [false, true] {
        let mut c = with_one_that_had_no_reply();
        c.request(0, 3, "c");
        c.settle();
        assert_eq!(c.executed(2), ["a", "c"]);
        c.server(1).held = true;
        c.install(&[0, 1, 2]);
        c.settle();
        c.install(&[0, 2]);
        c.settle();
        c.server(1).held = false;
        pass(&mut c, seconds(1));
        assert_eq!(c.executed(1), ["a", "b", "c"]);
        if is_called_meanwhile {
            c.request(0, 4, "d");
            c.settle();
        }
        c.install(&[0, 1, 2]);
        pass(&mut c, seconds(1));
        assert_eq!(c.nodes[1].restarts, [DownReason::Diverged]);
        assert!(c.nodes[2].restarts.is_empty(), "clients were told of its state");
        c.start_server(1);
        pass(&mut c, seconds(2));
        assert_eq!(c.states(0), ["down", "in", "in"]);
        assert_eq!(c.snapshot(0).endings.doubt, None);
        assert_eq!(c.executed(1), c.executed(2));
        assert!(!c.executed(1).contains(&"b"));
    }
}

// What the leader before it had answered was left out, because the connection to the server of the
// next one ended, and nobody else was in (seed 100185 of the simulator's `styles`).
#[test]
fn a_leader_that_is_alone_tries_once_more_what_the_one_before_it_had_answered() {
    for is_request in [false, true] {
        let mut c = Cluster::whole_planned(Plan::style(Style::ColdPassive));
        c.request(0, 1, "a");
        pass(&mut c, seconds(2));
        c.request(0, 2, "b");
        c.request(0, 3, "c");
        c.settle();
        assert_eq!((c.nodes[0].replies.len(), c.logged(1)), (3, 2));
        c.crash(2);
        c.install(&[0, 1]);
        c.settle();
        c.nodes[1].next_odd.push("c".into());
        c.crash_server(0);
        pass(&mut c, seconds(1));
        assert_eq!(c.nodes[1].restarts, [DownReason::ConnectionLost]);
        assert_eq!((c.leader(0), c.states(0)[1]), (Some(1), "in"));
        c.request(0, 4, "d");
        if is_request {
            c.nodes[1].next_odd.push("c".into());
        }
        c.start_server(1);
        pass(&mut c, seconds(1));
        assert_eq!(c.nodes[1].restarts.len(), 1);
        if is_request {
            assert_eq!(ends(&c, 0), [(3, GONE)]);
            assert_eq!(c.executed(1), ["a", "b", "d"]);
        } else {
            assert!(ends(&c, 0).is_empty());
            assert_eq!(c.executed(1), ["a", "b", "c", "d"]);
        }
        c.start_server(0);
        pass(&mut c, seconds(2));
        assert_eq!(c.states(1)[..2], ["in", "in"]);
        assert_eq!(c.logged(0), 0, "it has a checkpoint");
    }
}

// The only member that was in had left a request out, and was cut off; the group went on with one
// that executed it. It came back with what it had, and nobody compared their states (seed 101302
// of the simulator's `calls`).
#[test]
fn who_did_otherwise_than_the_one_that_executed_it_again_gets_the_state_of_that_one() {
    let mut c = with_one_that_had_no_reply();
    c.install(&[0, 1]);
    pass(&mut c, seconds(1));
    assert_eq!(c.states(0)[1], "in");
    assert_eq!(c.executed(1), ["a", "b"], "it was not there");
    c.install(&[0, 1, 2]);
    pass(&mut c, seconds(1));
    c.start_server(0);
    pass(&mut c, seconds(2));
    assert_eq!(c.states(0), ["in", "in", "in"]);
    (0..3).for_each(|index| assert_eq!(c.executed(index), ["a", "b"], "{index}"));
    assert_eq!(c.snapshot(0).endings.doubt, None);
}

/// A group that calls the one of the stage, with three members that are in.
fn caller(c: &mut Cluster) -> GroupId {
    let text = format!("calls={}", GROUP.0);
    let definition = Definition { name: "shop".into(), text: Bytes::from(text) };
    let create = CatalogChange::Create(definition);
    c.nodes[0].replica.handle_define(7, Bytes::from_static(b"a"), create);
    c.drain_all();
    c.settle();
    let shop = c.nodes[0].replica.catalog().id_of("shop").expect("it was created");
    (0..3).for_each(|index| c.nodes[index].replica.handle_server_up(c.now, shop));
    c.drain_all();
    c.settle();
    shop
}

/// What the server of each member of that group calls in its first request.
fn all_call(c: &mut Cluster, shop: GroupId, text: &str) {
    let members = c.nodes[0].replica.group_snapshots()[shop].members.clone();
    for (index, (_, state)) in members.into_iter().enumerate() {
        let MemberState::In { attempt } = state else { panic!("{state:?}") };
        let key = CallKey { caller: shop, during: History::EMPTY, number: 1 };
        c.nested(index, 1, text, NestedCall { key, attempt, digest: 0 });
    }
    c.settle();
}

// Seed 400876 of the simulator's `calls`: two replicas had heard the reply when those that gave it
// were gone, and the third one heard how the last member had ended it.
#[test]
fn replicas_that_may_have_heard_the_reply_or_the_end_are_told_of() {
    for is_answered in [true, false] {
        let mut c = Cluster::whole(false);
        let shop = caller(&mut c);
        let odd = if is_answered { 2..3 } else { 0..3 };
        odd.for_each(|index| c.server(index).odd.push("b".into()));
        all_call(&mut c, shop, "b");
        let gone = if is_answered { 0..2 } else { 0..0 };
        gone.for_each(|index| c.crash_server(index));
        pass(&mut c, Duration::from_millis(300));
        assert_eq!(ends(&c, 2), [(1, GONE)], "nobody is left that has replied");
        let during = is_answered.then_some(0);
        for node in &c.nodes {
            let doubt = node.replica.group_snapshots()[shop].endings.doubt;
            assert_eq!(doubt, during, "{is_answered}");
        }
    }
}
