//! Servers that somebody else runs, which may have executed something before there was a group.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_replica::Style;

/// A cluster of three whose servers were somebody else's and come up one after the other, each with
/// what it has executed for itself.
fn with_pasts(plan: Plan, pasts: [&str; 3]) -> Cluster {
    let mut c = Cluster::planned(3, Plan { foreign: true, ..plan });
    c.install(&[0, 1, 2]);
    c.settle();
    for (index, past) in pasts.into_iter().enumerate() {
        c.start_server(index);
        c.server(index).executed.push(past.into());
        c.settle();
    }
    c
}

#[test]
fn the_state_of_the_first_server_is_the_groups_and_the_others_are_given_it() {
    for style in [Style::Active, Style::SemiActive, Style::WarmPassive] {
        let mut c = with_pasts(Plan::style(style), ["mine", "yours", "theirs"]);
        assert_eq!(c.states(0), ["in", "in", "in"], "{style}");
        for index in 0..3 {
            assert_eq!(c.executed(index), ["mine"], "{style}");
        }
        c.request(1, 1, "a");
        c.settle();
        let leader = c.leader(0).unwrap_or(0);
        assert_eq!(c.executed(leader), ["mine", "a"], "{style}");
    }
}

#[test]
fn without_a_state_object_all_of_them_are_believed_to_be_empty() {
    let mut c = with_pasts(Plan::plain(false), ["", "", ""]);
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert!((0..3).all(|index| c.server(index).states == 0));
}
