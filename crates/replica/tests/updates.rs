//! Members of groups whose checkpoints are updates: who comes back with the state of one is given
//! what has changed since, and nobody else is given a state because of it.

mod cluster;

use cluster::{Cluster, Plan, pass, seconds};
use quorba_base::{Duration, NodeId};
use quorba_replica::{CheckpointRule, Command, DownReason, Lacks, MemberState, OnTotalLoss, Style};

fn with_updates(style: Style) -> Plan {
    let mut plan = Plan::style(style);
    plan.checkpoint.updates = true;
    plan
}

fn warm() -> Cluster {
    Cluster::whole_planned(with_updates(Style::WarmPassive))
}

fn cold() -> Cluster {
    let mut cluster = Cluster::planned(3, with_updates(Style::ColdPassive));
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    assert_eq!(cluster.states(0), ["in", "in", "in"]);
    cluster
}

fn requests(c: &mut Cluster, from: u64, count: u64) {
    for number in from..from + count {
        c.request(0, number, &format!("call {number}"));
    }
    c.settle();
}

/// What the member on node 2 lacks, as soon as it joins.
fn lacks(c: &mut Cluster) -> Lacks {
    loop {
        if let MemberState::Joining { lacks, .. } = c.snapshot(0).members[2].1 {
            return lacks;
        }
        let delivered = c.order.pop_front().expect("it joins");
        c.deliver_one(&delivered);
    }
}

/// States and updates that the servers of nodes 1 and 2 were given.
fn given(c: &Cluster) -> [(usize, usize); 2] {
    [1, 2].map(|index| {
        let server = c.nodes[index].server.as_ref().expect("a server");
        (server.states, server.updates)
    })
}

/// The third was away while requests were executed, and comes back.
fn one_was_away(mut c: Cluster) -> Cluster {
    requests(&mut c, 1, 8);
    c.install(&[0, 1]);
    c.settle();
    requests(&mut c, 9, 11);
    c.install(&[0, 1, 2]);
    c
}

#[test]
fn a_member_that_was_away_gets_the_updates_and_nobody_a_state() {
    let mut c = one_was_away(warm());
    assert_eq!(lacks(&mut c), Lacks::Updates);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(0));
    assert_eq!(c.executed(1), c.executed(0), "the others were brought to the same place");
    requests(&mut c, 20, 6);
    for index in [1, 2] {
        assert_eq!(c.executed(index), c.executed(0), "the next update goes on from there");
    }
    let states = given(&c).map(|(states, _)| states);
    assert_eq!(states, [1, 1], "the first checkpoint");
    assert_eq!(c.nodes[2].restarts, []);
}

#[test]
fn it_takes_over_with_what_it_was_given_and_knows_the_replies() {
    let mut c = warm();
    requests(&mut c, 1, 3);
    c.install(&[0, 1]);
    c.settle();
    c.ft_request(0, 4, "named", 5);
    requests(&mut c, 5, 1);
    c.install(&[0, 1, 2]);
    c.settle();
    requests(&mut c, 6, 1);
    assert_eq!(c.states(0), ["in", "in", "in"]);
    c.promote(2);
    c.ft_request(2, 1, "named", 5);
    c.settle();
    assert_eq!(c.executed(2), ["call 1", "call 2", "call 3", "named", "call 5", "call 6"]);
    assert_eq!(c.nodes[2].replies.last(), Some(&(1, "named is number 4".into())));
}

#[test]
fn what_is_delivered_meanwhile_updates_too_is_applied_behind_them() {
    let mut c = one_was_away(warm());
    assert_eq!(lacks(&mut c), Lacks::Updates);
    c.cut = true;
    c.settle();
    // Two updates, and two requests behind them.
    for (from, count) in [(20, 3), (23, 3), (26, 2)] {
        requests(&mut c, from, count);
    }
    assert_eq!(c.states(0), ["in", "in", "joining"]);
    assert_eq!(c.executed(1).len(), 25);
    c.relink();
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!((c.executed(2).len(), c.logged(2)), (25, 2));
    requests(&mut c, 28, 1);
    assert_eq!(c.executed(2), c.executed(1));
    assert_eq!(given(&c).map(|(states, _)| states), [1, 1]);
}

#[test]
fn a_newcomer_gets_a_state_and_the_others_an_update_to_the_same_place() {
    let mut c = warm();
    requests(&mut c, 1, 4);
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    assert_eq!(lacks(&mut c), Lacks::State);
    c.settle();
    assert_eq!(c.executed(1), c.executed(0));
    requests(&mut c, 5, 3);
    for index in [1, 2] {
        assert_eq!(c.executed(index), c.executed(0));
    }
    assert_eq!(given(&c), [(1, 2), (1, 1)], "no second state for the one that was there");
}

#[test]
fn a_member_without_a_server_keeps_its_base_and_gets_the_updates() {
    let mut c = one_was_away(cold());
    assert_eq!(lacks(&mut c), Lacks::Updates);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert!(c.nodes[2].server.is_none());
    requests(&mut c, 20, 4);
    assert_eq!(c.logged(2), 1, "its base is of the last checkpoint");
    c.promote(2);
    c.settle();
    assert_eq!(c.executed(2).len(), 23);
    let server = c.nodes[2].server.as_ref().expect("it leads");
    assert!(server.states == 1 && server.updates >= 3, "{}", server.updates);
}

#[test]
fn when_the_leader_has_changed_it_gets_a_state() {
    let mut c = warm();
    requests(&mut c, 1, 8);
    c.install(&[0, 1]);
    c.settle();
    c.promote(1);
    requests(&mut c, 9, 2);
    c.install(&[0, 1, 2]);
    assert_eq!(lacks(&mut c), Lacks::Updates);
    c.settle();
    assert!(c.nodes[0].downs().contains(&DownReason::UpdatesUnknown));
    c.pass(Duration::from_secs(1));
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    c.pass(Duration::from_secs(1));
    c.settle();
    assert_eq!(c.executed(2), c.executed(1));
    assert_eq!(c.executed(2).len(), 10);
}

#[test]
fn when_the_leader_dies_on_the_way_the_next_one_gives_a_state() {
    let mut c = one_was_away(warm());
    assert_eq!(lacks(&mut c), Lacks::Updates);
    c.cut = true;
    c.settle();
    c.cut = false;
    c.crash_server(0);
    c.settle();
    c.pass(Duration::from_secs(1));
    c.settle();
    assert_eq!(c.leader(2), Some(1));
    assert_eq!(c.states(1)[1..], ["in", "in"]);
    c.request(1, 1, "behind");
    c.settle();
    c.pass(Duration::from_secs(1));
    c.settle();
    assert_eq!(c.executed(2), c.executed(1));
    assert_eq!(c.executed(1).len(), 20);
}

#[test]
fn one_that_goes_away_again_on_the_way_still_has_what_it_had() {
    let mut c = one_was_away(warm());
    assert_eq!(lacks(&mut c), Lacks::Updates);
    c.cut = true;
    c.settle();
    c.install(&[0, 1]);
    c.settle();
    requests(&mut c, 20, 5);
    c.cut = false;
    c.install(&[0, 1, 2]);
    assert_eq!(lacks(&mut c), Lacks::Updates);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(0));
    assert_eq!(given(&c)[1].0, 1);
}

/// What the leader replied while it was alone, nobody was told with a checkpoint: the next one is
/// whole where that is written down, for its node may come back with what is there.
#[test]
fn a_leader_that_was_alone_and_comes_back_with_its_log_knows_what_it_replied_then() {
    comes_back_with_what_it_replied_alone(false);
}

/// The same, but it gives the last checkpoint when it is alone already (styles 1930186): the call
/// was never answered.
#[test]
fn so_does_one_whose_checkpoint_was_under_way_when_the_others_went() {
    comes_back_with_what_it_replied_alone(true);
}

fn comes_back_with_what_it_replied_alone(under_way: bool) {
    let plan = Plan { beside_durable: true, ..with_updates(Style::WarmPassive) };
    let mut c = Cluster::whole_planned(plan);
    c.server(0).held = under_way;
    requests(&mut c, 1, 3);
    c.crash_server(1);
    c.crash_server(2);
    c.settle();
    c.server(0).held = false;
    c.settle();
    c.ft_request(0, 4, "named", 5);
    c.settle();
    c.start_server(1);
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    requests(&mut c, 5, 3);
    assert!(c.logged(1) < 3, "there was a checkpoint");
    c.crash(0);
    c.install(&[1, 2]);
    c.settle();
    c.restart(0);
    c.install(&[0, 1, 2]);
    c.settle();
    c.start_server(0);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "in"]);
    c.promote(0);
    c.ft_request(0, 1, "named", 5);
    c.settle();
    assert_eq!(c.nodes[0].replies.last(), Some(&(1, "named is number 4".into())));
}

/// A group that begins anew after a total loss begins with nothing, also if the member that
/// comes has kept the state of a checkpoint for updates that nobody can give it.
#[test]
fn who_begins_a_lost_group_anew_forgets_the_checkpoint_that_it_had_kept() {
    let mut plan = with_updates(Style::ColdPassive);
    plan.on_total_loss = OnTotalLoss::Fresh;
    let mut c = Cluster::planned(3, plan);
    c.install(&[0, 1, 2]);
    c.settle();
    requests(&mut c, 1, 4);
    c.install(&[0, 1]);
    c.settle();
    requests(&mut c, 5, 1);
    c.command_group(0, Command::Remove(NodeId::new(1).unwrap()));
    // So it has a server when it comes, a fresh one.
    c.command_group(0, Command::SetStyle(Style::WarmPassive));
    c.install(&[0, 1, 2]);
    while c.order.len() > 1 || c.states(2) != ["in", "out", "down"] {
        let next = c.order.pop_front().expect("it asks to come in");
        c.deliver_one(&next);
    }
    let asks = c.order.pop_front().expect("it asks to come in");
    c.crash_server(0);
    let leaves = c.order.pop_front().expect("it is down");
    // Whose word comes first then is chance.
    c.deliver_one(&leaves);
    c.deliver_one(&asks);
    assert_eq!(c.states(2), ["down", "out", "in"]);
    c.settle();
    c.request(2, 1, "new");
    c.settle();
    let leader = c.leader(2).expect("one leads");
    assert_eq!(c.executed(leader), ["new"]);
    assert_eq!(c.nodes[2].replies.last(), Some(&(1, "new is number 1".into())));
}

// A state that members agree on while the group is quiet was taken between two updates, and what
// had changed in front of it was in neither (seed 8000030 of the simulator's `styles`).
#[test]
fn what_changed_before_a_state_is_agreed_on_is_in_the_next_update() {
    let after = seconds(10);
    let checkpoint = CheckpointRule { requests: 3, after, updates: true };
    let plan = Plan { checkpoint, foreign: true, ..Plan::style(Style::WarmPassive) };
    let mut c = Cluster::whole_planned(plan);
    for (number, text) in [(1, "a"), (2, "b"), (3, "c")] {
        c.request(0, number, text);
    }
    pass(&mut c, Duration::from_millis(200));
    c.request(0, 4, "d");
    pass(&mut c, seconds(3));
    assert!(c.server(0).asked > 1, "they have agreed");
    c.request(0, 5, "e");
    pass(&mut c, seconds(15));
    assert_eq!(c.logged(1), 0, "it has a checkpoint");
    assert_eq!(c.executed(1), ["a", "b", "c", "d", "e"]);
}
