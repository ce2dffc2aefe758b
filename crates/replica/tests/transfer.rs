//! A member gets the group's state from another one, whatever happens on the way.

mod cluster;

use cluster::{Cluster, GROUP, Plan};
use quorba_base::Duration;
use quorba_replica::{DownReason, Style};

/// A cluster in which member 2 is being started again, and has got some of a long state.
fn halfway() -> Cluster {
    let mut c = Cluster::whole(true);
    for number in 1..200 {
        c.request(0, number, "a call of some length");
    }
    c.settle();
    c.crash_server(2);
    c.settle();
    c.start_server(2);
    let mut chunks = 0;
    let is_coming = |c: &Cluster| c.peers.iter().any(|(_, to, _)| *to == 2);
    while chunks < 20 || !is_coming(&c) {
        if let Some(delivered) = c.order.pop_front() {
            c.deliver_one(&delivered);
        } else if let Some((from, to, bytes)) = c.peers.pop_front() {
            chunks += usize::from(to == 2);
            c.deliver_peer(from, to, bytes);
        } else {
            assert!(c.serve(0) | c.serve(1) | c.serve(2), "the state is longer");
        }
    }
    assert_eq!(c.states(0), ["in", "in", "joining"]);
    c
}

#[test]
fn a_transfer_goes_on_after_its_link_was_broken_and_requests_are_replayed() {
    let mut c = halfway();
    c.cut = true;
    c.request(0, 200, "while the link is broken");
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "joining"]);
    assert!(c.transfers(2).done > 0 && c.transfers(2).done < c.transfers(2).total.unwrap());
    let before = c.transfers(2).done;
    c.relink();
    assert_eq!(c.transfers(2).done, before, "it goes on where it stood");
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(0));
    assert_eq!(c.executed(2).len(), 200);
    assert_eq!(c.nodes[2].restarts, [DownReason::ServerExited], "only what the test did");
}

#[test]
fn a_joiner_that_hears_nothing_asks_again_by_itself() {
    let mut c = halfway();
    c.cut = true;
    c.settle();
    c.cut = false;
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "joining"], "nobody has told it");
    c.pass(Duration::from_secs(1));
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(0));
}

#[test]
fn a_joiner_that_starts_again_takes_nothing_of_the_state_before() {
    let mut c = halfway();
    let late = c.peers.clone();
    assert!(late.iter().any(|(_, to, _)| *to == 2), "chunks are on their way");
    c.crash_server(2);
    c.request(1, 1, "a call that is in the new state only");
    c.start_server(2);
    while let Some(delivered) = c.order.pop_front() {
        c.deliver_one(&delivered);
    }
    for (from, to, bytes) in late {
        c.deliver_peer(from, to, bytes);
    }
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(0));
}

#[test]
fn a_state_that_was_changed_on_the_way_does_not_count_and_is_given_again() {
    let mut c = halfway();
    let chunk = c.peers.iter_mut().rfind(|(_, to, _)| *to == 2).expect("one is on its way");
    let mut bent = chunk.2.to_vec();
    *bent.last_mut().expect("it is long") ^= 1;
    chunk.2 = bent.into();
    c.settle();
    let down = c.nodes[0].downs();
    assert!(down.contains(&DownReason::StateDamaged), "{down:?}");
    c.pass(Duration::from_secs(1));
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(0));
    assert_eq!(c.nodes[2].restarts, [DownReason::ServerExited], "only what the test did");
}

#[test]
fn when_the_donor_dies_another_gives_the_state() {
    let mut c = halfway();
    let donor = c.transfers(2).peer;
    c.crash_server(usize::from(donor.index()));
    c.settle();
    c.settle();
    assert_eq!(c.states(2)[2], "in");
    assert_eq!(c.executed(2).len(), 199);
}

#[test]
fn both_sides_show_how_far_it_is() {
    let mut c = halfway();
    let (taken, donor) = (c.transfers(2), c.transfers(2).peer);
    let given = c.transfers(usize::from(donor.index()));
    assert!(given.gives && !taken.gives);
    assert_eq!((given.total, usize::from(given.peer.index())), (taken.total, 2));
    assert!(given.done <= taken.done && taken.done >= 16 * 50);
    c.settle();
    assert!(c.nodes.iter().all(|node| node.replica.group_snapshots()[GROUP].transfers.len() <= 1));
}

#[test]
fn while_a_member_gives_its_state_another_one_answers_at_its_gateway() {
    let mut c = halfway();
    let donor = usize::from(c.transfers(2).peer.index());
    c.cut = true;
    c.nodes[donor].server.as_mut().expect("a server").held = true;
    c.request(donor, 500, "meanwhile");
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "joining"]);
    let answered = |c: &Cluster| c.nodes[donor].replies.iter().any(|(number, _)| *number == 500);
    assert!(answered(&c), "its own server has not answered yet");
    c.nodes[donor].server.as_mut().expect("a server").held = false;
    c.relink();
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(donor));
    assert_eq!(c.executed(2).len(), 200);
    c.request(donor, 501, "afterwards");
    while let Some(delivered) = c.order.pop_front() {
        c.deliver_one(&delivered);
    }
    c.serve(donor);
    let last = c.nodes[donor].replies.last().map(|(number, _)| *number);
    assert_eq!(last, Some(501), "it answers again by itself");
}

#[test]
fn a_member_that_has_given_its_state_answers_at_its_own_gateway_while_that_travels() {
    let mut c = halfway();
    let donor = usize::from(c.transfers(2).peer.index());
    c.cut = true;
    c.settle();
    let other = 1 - donor;
    c.nodes[other].server.as_mut().expect("a server").held = true;
    c.request(donor, 500, "at the donor");
    c.request(other, 501, "at the other");
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "joining"]);
    let answered =
        |c: &Cluster, at: usize, n| c.nodes[at].replies.iter().any(|(number, _)| *number == n);
    assert!(answered(&c, donor, 500), "its server has long given the state");
    assert!(!answered(&c, other, 501), "it answers nobody else");
    c.nodes[other].server.as_mut().expect("a server").held = false;
    c.relink();
    c.settle();
    assert_eq!(c.states(0), ["in", "in", "in"]);
    assert_eq!(c.executed(2), c.executed(donor));
}

#[test]
fn a_leader_gives_its_state_only_if_nobody_else_can() {
    let mut c = Cluster::whole_planned(Plan::style(Style::SemiActive));
    c.promote(0);
    c.settle();
    let give_to = |c: &mut Cluster, joiner: usize| {
        c.request(0, 100 + joiner as u64, "missed");
        c.crash_server(joiner);
        c.settle();
        c.start_server(joiner);
        while c.states(0)[joiner] != "joining" {
            let delivered = c.order.pop_front().expect("it joins");
            c.deliver_one(&delivered);
        }
        usize::from(c.transfers(joiner).peer.index())
    };
    c.request(0, 1, "a call");
    c.settle();
    assert_eq!(c.leader(0), Some(0));
    assert_eq!(give_to(&mut c, 2), 1, "not the leader, which is next");
    c.crash_server(1);
    c.settle();
    c.settle();
    assert_eq!((c.states(0)[0], c.states(0)[2]), ("in", "in"), "the leader has given it");
    assert_eq!(c.executed(2), c.executed(0));
}
