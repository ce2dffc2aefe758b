//! The plan of a recovery, and who is let in: what only forged or late packets would show.

use super::*;
use crate::config::Boot;
use crate::ids::RingId;
use crate::output::GatherReason;
use crate::seal::{BootId, Sealer};
use crate::wire::{MemberState, OldState};
use quorba_base::{Instant, NodeSet};

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

fn core() -> Core {
    let config = crate::fuzzing::config(node(0), NodeSet::first(3));
    let boot = Boot { incarnation: 10, salt: [3; 16], ring_seq_min: 0 };
    Core::new(config, boot, Instant::ZERO)
}

fn old_ring() -> RingId {
    RingId { seq: 4, representative: node(0) }
}

/// A full commit token of three members, all from one old ring; the last one in boot `boot`.
fn commit(seq: u64, boot: u64) -> CommitToken {
    let obligation = NodeSet::EMPTY;
    let old = OldState { ring: old_ring(), delivered: 5, aru: 6, high: 9, obligation };
    let state = |incarnation| Some(MemberState { incarnation, old: Some(old) });
    CommitToken {
        ring: RingId { seq, representative: node(0) },
        hop: 3,
        rotation_us: 0,
        members: NodeSet::first(3),
        states: alloc::vec![state(10), state(11), state(boot)],
    }
}

#[test]
fn only_the_same_boot_moves_together_from_an_old_ring() {
    let core = core();
    let old = Circuit::new(&core, &commit(4, 12));
    let same = Plan::new(&core, &old, &commit(5, 12));
    assert_eq!(same.transitional, NodeSet::first(3));
    let reborn = Plan::new(&core, &old, &commit(5, 13));
    assert_eq!(reborn.transitional, NodeSet::first(2), "what it says it had, its old boot had");
}

/// Seed 200679 of the simulator's rings: one member was bound by a recovery that had failed for it,
/// and delivered more than those that it moved with.
#[test]
fn all_that_move_together_are_bound_by_what_one_of_them_is_bound_to() {
    let core = core();
    let old = Circuit::new(&core, &commit(4, 12));
    let mut token = commit(5, 12);
    if let Some(Some(MemberState { old: Some(state), .. })) = token.states.get_mut(1) {
        state.obligation = NodeSet::EMPTY.with(node(1)).with(node(5));
    }
    let plan = Plan::new(&core, &old, &token);
    assert_eq!(plan.senders, NodeSet::first(3).with(node(5)));
    assert_eq!(plan.transitional, NodeSet::first(3), "that one need not come along");
    token.states[1] = Some(MemberState { incarnation: 99, old: token.states[1].unwrap().old });
    let plan = Plan::new(&core, &old, &token);
    assert!(!plan.senders.contains(node(5)), "its old boot was bound");
}

#[test]
fn a_commit_token_counts_only_if_all_boots_in_it_are_proven() {
    let mut core = core();
    assert!(!core.knows_boots_of(&commit(5, 12)), "nobody is proven yet");
    for (index, incarnation) in [(1, 11), (2, 12)] {
        let id = BootId { node: node(index), incarnation, session: [index; 12] };
        let mut sealer = Sealer::new(&[7; 32].into(), id, true);
        let mut datagram = Sealer::start(1);
        sealer.seal(&mut datagram);
        let accepted = core.sessions.open(Instant::ZERO, datagram).ok().expect("authentic");
        core.sessions.prove(&accepted);
    }
    assert!(core.knows_boots_of(&commit(5, 12)));
    assert!(!core.knows_boots_of(&commit(5, 13)), "another boot than the one that I know");
    let mut unfilled = commit(5, 13);
    unfilled.states[2] = None;
    assert!(core.knows_boots_of(&unfilled), "it has not said yet which");
}

#[test]
fn numbers_of_a_commit_token_that_no_log_can_hold_are_not_believed() {
    let core = core();
    let old = Circuit::new(&core, &commit(4, 12));
    assert!(is_plausible(&core, Some(&old), &commit(5, 12)));
    let mut wild = commit(5, 12);
    let state = wild.states[1].as_mut().and_then(|state| state.old.as_mut()).expect("filled in");
    state.high = 1 << 40;
    assert!(!is_plausible(&core, Some(&old), &wild));
}

#[test]
fn the_last_to_recover_waits_until_all_know_that_they_are_bound() {
    let mut core = core();
    let old = Circuit::new(&core, &commit(4, 12));
    let attempt = Attempt::new(GatherReason::Boot, NodeSet::first(3));
    let mut recovery = Recovery::new(&mut core, Some(Box::new(old)), attempt, &commit(5, 12));
    let mut token = recovery.circuit.first_token();
    token.recovering = NodeSet::EMPTY.with(node(0));
    // The others have seen it while this node recovered still: they do not know that they are
    // done, and would not deliver with whoever installs.
    assert!(recovery.on_token(&mut core, token.clone()).is_none(), "one rotation more");
    token.recovering = NodeSet::EMPTY;
    token.hop += 3;
    let complete = recovery.on_token(&mut core, token).expect("now all know");
    assert!(complete.complete);
}
