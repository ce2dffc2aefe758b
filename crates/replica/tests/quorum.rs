//! Which component goes on, as stories of whole replicas; `src/primary/walk.rs` has the proofs.

mod cluster;

use cluster::Cluster;
use quorba_base::NodeId;
use quorba_replica::primary::Blocked;
use quorba_replica::{PrimaryStatus, Quorum, QuorumRule};

const DYNAMIC: Quorum = Quorum { rule: QuorumRule::DynamicLinear, tie_breaker: None };

fn status(cluster: &Cluster, index: usize) -> PrimaryStatus {
    cluster.nodes[index].replica.status()
}

#[test]
fn the_dynamic_rule_goes_on_with_the_majority_of_the_majority_and_with_the_distinguished_half() {
    let mut cluster = Cluster::whole_under(DYNAMIC);
    cluster.install(&[0, 1]);
    cluster.settle();
    cluster.request(0, 1, "two");
    cluster.settle();
    cluster.install(&[0]);
    cluster.settle();
    assert_eq!(status(&cluster, 0), PrimaryStatus::Primary, "half of the last two, the lowest");
    cluster.request(0, 2, "one");
    cluster.settle();
    cluster.install(&[1, 2]);
    cluster.settle();
    let blocked = PrimaryStatus::Blocked(Blocked::NoQuorum);
    assert_eq!((status(&cluster, 1), status(&cluster, 2)), (blocked, blocked));
    cluster.install(&[0, 1, 2]);
    cluster.settle();
    for index in 0..3 {
        assert_eq!(cluster.executed(index), ["two", "one"], "merged, with the state");
    }
}

#[test]
fn a_component_is_formed_only_when_every_disk_knows_of_it() {
    let mut cluster = Cluster::whole_under(DYNAMIC);
    cluster.install(&[0, 1]);
    // Both Hellos, and the word of the first disk.
    for _ in 0..3 {
        let delivered = cluster.order.pop_front().expect("they have spoken");
        cluster.deliver_one(&delivered);
    }
    assert_eq!(status(&cluster, 0), PrimaryStatus::CatchingUp);
    assert!(cluster.nodes.iter().take(2).all(|node| node.record.attempts.len() == 1));
    cluster.settle();
    assert_eq!(status(&cluster, 0), PrimaryStatus::Primary);
    assert!(cluster.nodes.iter().take(2).all(|node| node.record.attempts.is_empty()));
}

/// The distinguished node and its half go on; the other half has to wait for them, even if
/// all of it is restarted.
#[test]
fn what_a_restarted_node_wrote_down_still_counts() {
    let mut cluster = Cluster::whole_under(DYNAMIC);
    cluster.install(&[0, 1]);
    cluster.settle();
    cluster.crash(1);
    cluster.restart(1);
    cluster.install(&[1, 2]);
    cluster.settle();
    assert_eq!(status(&cluster, 2), PrimaryStatus::Blocked(Blocked::NoQuorum));
}

#[test]
fn a_request_from_before_the_decision_counts_nowhere_and_is_sent_again() {
    let mut cluster = Cluster::whole(true);
    cluster.install(&[0, 1]);
    let before = cluster.nodes[0].resubmits;
    // It is ordered in front of the Hello that decides.
    cluster.request(0, 1, "early");
    let early = cluster.order.pop_back().expect("just submitted");
    cluster.order.push_front(early);
    cluster.settle();
    assert!(cluster.executed(0).is_empty() && cluster.executed(1).is_empty());
    assert_eq!(cluster.nodes[0].resubmits, before + 1, "its gateway knows");
    cluster.request(0, 1, "early");
    cluster.settle();
    assert_eq!((cluster.executed(0), cluster.executed(1)), (vec!["early"], vec!["early"]));
}

/// What acknowledges may be held by a node that delivers it only when the ring has ended: it must
/// have taken part in the component then.
#[test]
fn the_decision_counts_in_the_transitional_view_too() {
    let mut cluster = Cluster::whole(true);
    cluster.install(&[0, 1, 2]);
    // Nothing of this view is delivered before the next one comes.
    cluster.install(&[0, 1]);
    let record = &cluster.nodes[0].record;
    assert_eq!(record.formed.as_ref().map(|formed| formed.members.len()), Some(3));
    cluster.settle();
    assert_eq!(status(&cluster, 0), PrimaryStatus::Primary);
}

#[test]
fn without_a_tie_breaker_halves_wait() {
    let tie_breaker = NodeId::new(2);
    for (quorum, goes_on) in
        [(Quorum::default(), false), (Quorum { tie_breaker, ..Quorum::default() }, true)]
    {
        let plan = cluster::Plan { quorum, ..cluster::Plan::plain(true) };
        let mut cluster = Cluster::planned(4, plan);
        cluster.install(&[0, 1, 2, 3]);
        (0..4).for_each(|index| cluster.start_server(index));
        cluster.settle();
        cluster.install(&[2, 3]);
        cluster.settle();
        assert_eq!(status(&cluster, 2) == PrimaryStatus::Primary, goes_on);
        cluster.install(&[0, 1]);
        cluster.settle();
        assert_eq!(status(&cluster, 0), PrimaryStatus::Blocked(Blocked::NoMajority));
    }
}

/// A majority held it, so it may have been acknowledged; the one that is left of them delivered it
/// when the ring had ended, and was alone for a while.
#[test]
fn what_a_node_held_when_its_ring_ended_counts_after_a_view_without_majority() {
    let mut cluster = Cluster::whole(true);
    cluster.install(&[0, 2]);
    cluster.settle();
    cluster.request(0, 1, "last");
    cluster.install(&[2]);
    cluster.settle();
    assert_eq!(status(&cluster, 2), PrimaryStatus::Blocked(Blocked::NoMajority));
    cluster.install(&[1, 2]);
    cluster.settle();
    assert_eq!((cluster.executed(1), cluster.executed(2)), (vec!["last"], vec!["last"]));
}

/// Nobody can say what stood in the gap, so what stands behind it is no history that others share.
#[test]
fn what_stands_behind_a_gap_counts_nowhere_and_is_sent_again() {
    let mut cluster = Cluster::whole(true);
    cluster.request(0, 1, "behind");
    cluster.order.back_mut().expect("just submitted").behind_gap = true;
    let before = cluster.nodes[0].resubmits;
    cluster.install(&[0, 1]);
    cluster.settle();
    assert!(cluster.executed(0).is_empty() && cluster.executed(1).is_empty());
    assert_eq!(cluster.nodes[0].resubmits, before + 1, "its gateway knows");
}
