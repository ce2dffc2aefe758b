//! Each checker of the ring is shown a history that it must refuse, and the one that was forged
//! from, which it must accept.
//!
//! What it is not: a run with a bug in it; those are the canaries. Invariant: a forgery changes one
//! thing in what a node was delivered in a run that kept every promise.

use super::super::life::Got;
use super::super::{RingPlan, RingWorld, play};
use super::judge;
use crate::transcript::Transcript;

fn peaceful() -> RingWorld {
    let played = (1..).map(|seed| {
        let mut world = RingWorld::new(seed, RingPlan::draw(seed), Transcript::new(false, false));
        let _ = play(&mut world);
        world
    });
    let is_rich = |world: &RingWorld| {
        let all = world.lives.iter().filter(|life| life.ended.is_none());
        all.clone().count() >= 3 && all.clone().all(|life| life.got.len() > 20)
    };
    played.take(50).find(is_rich).expect("some seed gives such a run")
}

/// The first life that lasts, and which that is.
fn living(world: &RingWorld) -> usize {
    world.lives.iter().position(|life| life.ended.is_none()).expect("somebody lives")
}

fn refuses(checker: &str, forge: impl FnOnce(&mut Vec<Got>, usize)) {
    let mut world = peaceful();
    assert_eq!(judge(&world), Ok(()), "what happened is refused");
    let life = living(&world);
    forge(&mut world.lives[life].got, life);
    let found = judge(&world).expect_err("what was forged is accepted");
    assert_eq!(found.0, checker, "{}", found.1);
}

#[test]
fn what_was_delivered_twice_or_before_what_its_sender_sent_first_is_refused() {
    refuses("basic delivery", |got, _| {
        let last = got.len() - 1;
        let before = got[last - 1];
        got[last] = before;
    });
    refuses("basic delivery", |got, _| {
        let (first, origin) = (0, got[0].origin);
        let second = got.iter().skip(1).position(|of| of.origin == origin).unwrap() + 1;
        (got[first].ticket, got[second].ticket) = (got[second].ticket, got[first].ticket);
    });
}

#[test]
fn another_order_than_that_of_the_others_is_refused() {
    refuses("total order", |got, _| {
        let at = (1..got.len()).find(|at| got[*at].origin != got[at - 1].origin);
        let at = at.expect("two send");
        got.swap(at, at - 1);
    });
}

#[test]
fn a_node_that_was_not_delivered_its_own_message_is_refused() {
    refuses("self-delivery", |got, life| {
        let own = got.iter().rposition(|of| of.origin == life).expect("it sent one");
        got.remove(own);
    });
}

#[test]
fn a_message_that_others_of_the_same_views_were_delivered_and_one_was_not_is_refused() {
    refuses("failure atomicity", |got, life| {
        let other = got.iter().rposition(|of| of.origin != life).expect("others sent some");
        got.remove(other);
    });
}
