//! Groups whose members' states are the application's (CONS_APP_CTRL of FT-CORBA §23.3.2): who
//! joins takes part from its place in the order on, knows which calls the group has executed, and
//! is given no state.

mod cluster;

use cluster::{Cluster, Plan, pass, seconds};
use quorba_base::NodeId;
use quorba_replica::{Command, CommandRefused, Concurrency, DownReason, Style};

fn plan() -> Plan {
    Plan { by_application: true, ..Plan::plain(false) }
}

fn node(index: u8) -> NodeId {
    NodeId::new(index).unwrap()
}

fn requests(c: &mut Cluster, from: u64, texts: &[&str]) {
    for (number, text) in (from..).zip(texts) {
        c.request(0, number, text);
        c.settle();
    }
}

fn are_in(c: &Cluster) {
    for index in 0..3 {
        assert_eq!(c.states(index), ["in", "in", "in"], "as {index} knows it");
    }
}

#[test]
fn a_joiner_executes_what_comes_behind_its_place_and_no_server_is_asked() {
    for concurrency in [Concurrency::Sequential, Concurrency::Pipelined, Concurrency::PerObject] {
        let mut c = Cluster::planned(3, Plan { concurrency, ..plan() });
        c.install(&[0, 1, 2]);
        c.start_server(0);
        c.start_server(1);
        c.settle();
        pass(&mut c, seconds(16));
        requests(&mut c, 1, &["a", "b"]);
        c.start_server(2);
        c.settle();
        are_in(&c);
        requests(&mut c, 3, &["c"]);
        assert_eq!(c.executed(0), ["a", "b", "c"], "{concurrency:?}");
        assert_eq!(c.executed(2), ["c"], "{concurrency:?}");
        assert_eq!((c.server(0).asked, c.server(1).asked, c.server(2).states), (0, 0, 0));
    }
}

#[test]
fn a_server_that_crashed_comes_back_again_and_again() {
    for style in [Style::Active, Style::SemiActive] {
        let mut c = Cluster::whole_planned(Plan { style, ..plan() });
        requests(&mut c, 1, &["a"]);
        for round in 2..=4 {
            c.crash_server(0);
            c.settle();
            c.start_server(0);
            c.settle();
            are_in(&c);
            requests(&mut c, round, &["more"]);
            assert_eq!(c.executed(0), ["more"], "{style:?}");
        }
        assert_eq!(c.executed(1), ["a", "more", "more", "more"]);
        assert_eq!(c.nodes[0].replies.len(), 4);
    }
}

#[test]
fn a_call_that_the_group_has_executed_is_not_executed_by_a_joiner() {
    let mut c = Cluster::whole_planned(plan());
    c.ft_request(0, 1, "once", 7);
    c.settle();
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.settle();
    c.ft_request(2, 1, "once", 7);
    c.settle();
    assert_eq!(c.nodes[2].replies, [(1, "once is number 1".into())], "the reply of then");
    assert_eq!((c.executed(1), c.executed(2)), (vec!["once"], vec![]));
}

#[test]
fn a_joiner_waits_for_what_its_donor_still_executes_and_knows_its_reply() {
    let mut c = Cluster::whole_planned(plan());
    c.crash_server(2);
    c.settle();
    (0..2).for_each(|index| c.server(index).held = true);
    c.ft_request(1, 1, "slow", 7);
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "joining"]);
    c.request(1, 2, "behind");
    c.settle();
    (0..2).for_each(|index| c.server(index).held = false);
    c.settle();
    are_in(&c);
    assert_eq!(c.executed(2), ["behind"]);
    c.ft_request(2, 1, "slow", 7);
    c.settle();
    assert_eq!(c.nodes[2].replies, [(1, "slow is number 1".into())]);
}

/// Whoever was to give the joiner what the group remembers is gone: another one does.
#[test]
fn a_joiner_whose_donor_ends_is_given_it_by_another_one() {
    let mut c = Cluster::whole_planned(plan());
    c.crash_server(2);
    c.settle();
    c.server(0).held = true;
    c.server(1).held = true;
    c.request(1, 1, "slow");
    c.settle();
    c.start_server(2);
    c.settle();
    assert_eq!(c.states(1), ["in", "in", "joining"]);
    c.crash_server(0);
    c.settle();
    c.server(1).held = false;
    pass(&mut c, seconds(1));
    assert_eq!(c.states(1), ["down", "in", "in"]);
}

#[test]
fn a_member_that_was_cut_off_is_given_the_requests_that_it_missed() {
    for foreign in [false, true] {
        let mut c = Cluster::whole_planned(Plan { foreign, ..plan() });
        requests(&mut c, 1, &["a"]);
        c.install(&[0, 1]);
        c.settle();
        requests(&mut c, 2, &["b", "c"]);
        c.install(&[0, 1, 2]);
        c.settle();
        are_in(&c);
        assert_eq!(c.executed(2), ["a", "b", "c"], "foreign: {foreign}");
        assert_eq!(c.nodes[2].restarts, []);
    }
}

/// It has executed what the group has not, so that nobody can say what it lacks: a new process
/// begins, which is how the application is told.
#[test]
fn a_server_that_went_another_way_is_replaced_and_one_of_others_goes_on() {
    for foreign in [false, true] {
        let mut c = Cluster::whole_planned(Plan { foreign, ..plan() });
        requests(&mut c, 1, &["a"]);
        c.request(2, 1, "alone");
        c.only_at(2, |_| {});
        assert_eq!(c.executed(2), ["a", "alone"]);
        c.install(&[0, 1]);
        c.settle();
        requests(&mut c, 2, &["b"]);
        c.install(&[0, 1, 2]);
        c.settle();
        if foreign {
            are_in(&c);
            assert_eq!(c.nodes[2].restarts, []);
        } else {
            assert_eq!(c.nodes[2].restarts, [DownReason::NotFresh]);
            c.start_server(2);
            c.settle();
            are_in(&c);
            assert_eq!(c.executed(2), Vec::<&str>::new());
        }
        requests(&mut c, 3, &["c"]);
        assert_eq!(c.executed(2).last(), Some(&"c"));
    }
}

#[test]
fn a_node_that_was_started_anew_and_another_component_keep_nobody_out() {
    let mut c = Cluster::whole_planned(plan());
    requests(&mut c, 1, &["a"]);
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    requests(&mut c, 2, &["b"]);
    c.restart(2);
    c.install(&[0, 1, 2]);
    c.start_server(2);
    c.settle();
    are_in(&c);
    requests(&mut c, 3, &["c"]);
    assert_eq!((c.executed(1), c.executed(2)), (vec!["a", "b", "c"], vec!["c"]));
}

/// Nobody has any of it any more; or one has, whose node was cut off, and comes later.
#[test]
fn a_group_whose_servers_have_all_ended_goes_on_with_those_that_come() {
    let mut c = Cluster::whole_planned(plan());
    requests(&mut c, 1, &["a"]);
    (0..3).for_each(|index| c.crash_server(index));
    c.settle();
    c.start_server(1);
    c.settle();
    assert_eq!(c.states(0), ["down", "in", "down"]);
    c.request(1, 1, "b");
    c.settle();
    assert_eq!(c.nodes[1].replies, [(1, "b is number 1".into())]);
    c.start_server(0);
    c.start_server(2);
    c.settle();
    are_in(&c);
    requests(&mut c, 2, &["c"]);
    let executed: Vec<_> = (0..3).map(|index| c.executed(index)).collect();
    assert_eq!(executed, [vec!["c"], vec!["b", "c"], vec!["c"]]);
}

#[test]
fn a_server_that_lived_on_keeps_what_it_has_where_a_new_one_was_faster() {
    let mut c = Cluster::whole_planned(plan());
    requests(&mut c, 1, &["a"]);
    c.install(&[2]);
    c.settle();
    (0..2).for_each(|index| c.crash_server(index));
    c.install(&[0, 1]);
    c.settle();
    c.start_server(0);
    c.settle();
    assert_eq!(c.states(0), ["in", "down", "down"]);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.states(0), ["in", "down", "in"]);
    requests(&mut c, 2, &["b"]);
    assert_eq!((c.executed(0), c.executed(2)), (vec!["b"], vec!["a", "b"]));
}

/// The same, but it has executed what nobody else was delivered.
#[test]
fn a_server_with_another_past_is_replaced_although_nobody_has_more() {
    for foreign in [false, true] {
        let mut c = Cluster::whole_planned(Plan { foreign, ..plan() });
        c.ft_request(2, 1, "alone", 7);
        c.only_at(2, |_| {});
        c.install(&[0, 1]);
        c.settle();
        requests(&mut c, 1, &["a"]);
        (0..2).for_each(|index| c.crash_server(index));
        c.settle();
        c.install(&[0, 1, 2]);
        c.settle();
        if !foreign {
            assert_eq!(c.nodes[2].restarts, [DownReason::NotFresh]);
            c.start_server(2);
            c.settle();
        }
        assert_eq!(c.states(0), ["down", "down", "in"]);
        requests(&mut c, 2, &["b"]);
        assert_eq!(c.executed(2).last(), Some(&"b"), "foreign: {foreign}");
    }
}

#[test]
fn after_the_end_of_all_nodes_the_group_begins_with_new_servers() {
    for beside_durable in [false, true] {
        let mut c = Cluster::whole_planned(Plan { beside_durable, ..plan() });
        requests(&mut c, 1, &["a"]);
        (0..3).for_each(|index| c.crash(index));
        (0..3).for_each(|index| c.restart(index));
        c.start(&[0, 1, 2]);
        are_in(&c);
        c.request(0, 10, "b");
        c.settle();
        for index in 0..3 {
            assert_eq!(c.executed(index), ["b"], "beside a durable group: {beside_durable}");
        }
    }
}

/// Its requests stand in the log, from which none of them is executed again.
#[test]
fn it_keeps_no_log_of_other_groups_from_becoming_shorter() {
    let mut c = Cluster::whole_planned(Plan { beside_durable: true, ..plan() });
    requests(&mut c, 1, &["a", "b"]);
    assert!(c.compact_log(0), "nothing of the group is waited for");
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    c.settle();
    are_in(&c);
}

#[test]
fn a_member_that_was_removed_comes_back_and_styles_that_need_states_are_refused() {
    let mut c = Cluster::whole_planned(plan());
    requests(&mut c, 1, &["a"]);
    c.command_group(0, Command::Remove(node(2)));
    c.command_group(0, Command::Add(node(2)));
    c.start_server(2);
    c.settle();
    are_in(&c);
    c.nodes[0].commanded.clear();
    for style in [Style::ActiveWithVoting, Style::WarmPassive, Style::SemiActive] {
        c.command_group(0, Command::SetStyle(style));
    }
    let refused = [
        Err(CommandRefused::MayDiffer(Style::ActiveWithVoting)),
        Err(CommandRefused::NoStateObject(Style::WarmPassive)),
        Ok(()),
    ];
    assert_eq!(c.nodes[0].commanded, refused);
}

/// Members do what they do with a request, and are not asked for states that they need not have
/// alike.
#[test]
fn a_request_that_no_server_answers_leaves_no_doubt() {
    let mut c = Cluster::whole_planned(plan());
    c.make_odd("odd");
    c.request(0, 1, "odd");
    c.settle();
    pass(&mut c, seconds(5));
    are_in(&c);
    let snapshot = c.snapshot(0);
    assert_eq!(snapshot.endings.ended.len(), 1);
    requests(&mut c, 2, &["a"]);
    assert_eq!(c.executed(2).last(), Some(&"a"));
}
