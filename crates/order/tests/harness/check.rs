//! The checkers: each property by its name in Moser94, and the promises of this crate.

use super::{Life, Net, Seen, deliveries, packet_of};
use quorba_base::NodeSet;
use quorba_order::{Delivery, Guarantee, Position, RingId, View, ViewKind};
use std::collections::{BTreeMap, BTreeSet};

/// What one life saw between two regular views.
struct Stay<'a> {
    life: usize,
    ring: RingId,
    regular: Vec<&'a Delivery>,
    transitional: Vec<&'a Delivery>,
    transitional_view: Option<&'a View>,
    next: Option<&'a View>,
}

fn stays(lives: &[Life]) -> Vec<Stay<'_>> {
    let mut all = Vec::new();
    for (index, life) in lives.iter().enumerate() {
        let mut current: Option<Stay<'_>> = None;
        for seen in &life.seen {
            match seen {
                Seen::View(view) if view.kind == ViewKind::Regular => {
                    if let Some(mut stay) = current.take() {
                        assert!(stay.transitional_view.is_some(), "a transitional view precedes");
                        stay.next = Some(view);
                        all.push(stay);
                    }
                    current = Some(Stay {
                        life: index,
                        ring: view.ring,
                        regular: Vec::new(),
                        transitional: Vec::new(),
                        transitional_view: None,
                        next: None,
                    });
                }
                Seen::View(view) => {
                    let stay = current.as_mut().expect("a regular view comes first");
                    assert!(stay.transitional_view.is_none(), "one transitional view per change");
                    assert_eq!(view.previous, Some(stay.ring));
                    stay.transitional_view = Some(view);
                }
                Seen::Deliver(delivery) => {
                    let stay = current.as_mut().expect("nothing is delivered before a view");
                    assert_eq!(delivery.position.ring, stay.ring, "delivered in its own ring");
                    if stay.transitional_view.is_some() {
                        stay.transitional.push(delivery);
                    } else {
                        stay.regular.push(delivery);
                    }
                }
            }
        }
        all.extend(current);
    }
    all
}

/// Everything that must hold at any time.
pub fn safety(net: &Net) {
    basic_delivery(&net.lives);
    one_order(&net.lives);
    views_agree(&net.lives);
    let stays = stays(&net.lives);
    failure_atomicity(net, &stays);
    causal_delivery(&stays);
    prefixes(&stays);
    safe_delivery(net, &stays);
    held_is_true(net);
}

/// Moser94: no spurious message, each at most once, in the order of its origin.
fn basic_delivery(lives: &[Life]) {
    for life in lives {
        let mut last: BTreeMap<_, u64> = BTreeMap::new();
        let mut position: Option<Position> = None;
        for delivery in deliveries(&life.seen) {
            let origin = lives
                .iter()
                .find(|l| l.node == delivery.origin && l.incarnation == delivery.incarnation)
                .expect("the origin's boot exists");
            let ticket = delivery.ticket.0;
            let (payload, _) = &origin.submitted[ticket as usize - 1];
            assert_eq!(*payload, delivery.payload, "what is delivered was submitted");
            let last = last.entry((delivery.origin, delivery.incarnation)).or_default();
            assert!(ticket > *last, "{} got {ticket} of {} after {last}", life.node, origin.node);
            *last = ticket;
            if let Some(before) = position.filter(|p| p.ring == delivery.position.ring) {
                assert!(before < delivery.position, "positions ascend");
            }
            position = Some(delivery.position);
        }
    }
}

/// Moser94 total order: a position names one message, and nobody has it at two positions.
fn one_order(lives: &[Life]) {
    let mut at: BTreeMap<Position, (_, u64, u64)> = BTreeMap::new();
    let mut place = BTreeMap::new();
    for life in lives {
        for d in deliveries(&life.seen) {
            let message = (d.origin, d.incarnation, d.ticket.0);
            assert_eq!(*at.entry(d.position).or_insert(message), message, "one message at a place");
            assert_eq!(*place.entry(message).or_insert(d.position), d.position, "one place");
        }
    }
}

/// Moser94 configuration changes: a ring has the same members, boots and all, for everyone.
fn views_agree(lives: &[Life]) {
    let mut rings = BTreeMap::new();
    for life in lives {
        let mut before: Option<RingId> = None;
        for seen in &life.seen {
            let Seen::View(view) = seen else { continue };
            assert!(view.members.contains(life.node), "self-inclusion");
            if view.kind == ViewKind::Regular {
                let what = (view.members, view.incarnations.clone());
                let first = rings.entry(view.ring).or_insert_with(|| what.clone());
                assert_eq!(*first, what, "one membership per ring");
                assert_eq!(view.previous, before, "views follow each other");
                assert!(before.is_none_or(|before| before.seq < view.ring.seq), "rings ascend");
                before = Some(view.ring);
            }
        }
    }
}

fn ids(deliveries: &[&Delivery]) -> Vec<Position> {
    deliveries.iter().map(|delivery| delivery.position).collect()
}

/// Moser94 failure atomicity: who moves together has delivered the same, in both halves.
fn failure_atomicity(net: &Net, stays: &[Stay<'_>]) {
    let mut together: BTreeMap<(RingId, RingId, NodeSet), &Stay<'_>> = BTreeMap::new();
    for stay in stays {
        let Some(next) = stay.next else { continue };
        let first = together.entry((stay.ring, next.ring, next.transitional)).or_insert(stay);
        let who = (net.lives[first.life].node, net.lives[stay.life].node);
        assert_eq!(ids(&first.regular), ids(&stay.regular), "{who:?} leaving {}", stay.ring);
        assert_eq!(ids(&first.transitional), ids(&stay.transitional), "{who:?} {}", stay.ring);
        let half = stay.transitional_view.expect("precedes the regular view");
        assert_eq!(half.members, next.transitional);
    }
}

/// Moser94 causal delivery, as far as it shows from outside: of each origin's messages in a ring,
/// none is left out before one that is delivered.
fn causal_delivery(stays: &[Stay<'_>]) {
    for stay in stays {
        let mut last: BTreeMap<_, u64> = BTreeMap::new();
        for d in stay.regular.iter().chain(&stay.transitional) {
            let before = last.insert((d.origin, d.incarnation), d.ticket.0);
            assert!(before.is_none_or(|before| before + 1 == d.ticket.0), "hole before {d:?}");
        }
    }
}

/// In a regular configuration everyone delivers from the first message on, without gaps.
fn prefixes(stays: &[Stay<'_>]) {
    let mut longest: BTreeMap<RingId, Vec<Position>> = BTreeMap::new();
    for stay in stays {
        let mine = ids(&stay.regular);
        let longest = longest.entry(stay.ring).or_default();
        let common = mine.len().min(longest.len());
        assert_eq!(mine[..common], longest[..common], "prefixes in {}", stay.ring);
        if mine.len() > longest.len() {
            *longest = mine;
        }
    }
}

/// Moser94 safe delivery: delivered in the regular configuration by one means delivered by every
/// member that does not fail there.
fn safe_delivery(net: &Net, stays: &[Stay<'_>]) {
    let guarantee = |d: &Delivery| {
        let origin = net
            .lives
            .iter()
            .find(|l| l.node == d.origin && l.incarnation == d.incarnation)
            .expect("checked before");
        origin.submitted[d.ticket.0 as usize - 1].1
    };
    let mut safe: BTreeMap<RingId, BTreeSet<Position>> = BTreeMap::new();
    for stay in stays {
        let positions = stay.regular.iter().filter(|d| guarantee(d) == Guarantee::Safe);
        safe.entry(stay.ring).or_default().extend(positions.map(|d| d.position));
    }
    for stay in stays.iter().filter(|stay| stay.next.is_some()) {
        let mut have: BTreeSet<Position> = ids(&stay.regular).into_iter().collect();
        have.extend(ids(&stay.transitional));
        let lacks = safe[&stay.ring].iter().find(|position| !have.contains(position));
        assert_eq!(lacks, None, "{} lacks a safe message", net.lives[stay.life].node);
    }
}

/// When `Held` was said, a majority of the domain had the message.
fn held_is_true(net: &Net) {
    let mut places = BTreeMap::new();
    let mut delivered_at: BTreeMap<(usize, Position), usize> = BTreeMap::new();
    for (index, life) in net.lives.iter().enumerate() {
        for (at, seen) in life.seen.iter().enumerate() {
            if let Seen::Deliver(d) = seen {
                delivered_at.insert((index, d.position), at);
                if d.origin == life.node && d.incarnation == life.incarnation {
                    places.insert((index, d.ticket.0), d.position);
                }
            }
        }
    }
    for claim in &net.held_claims {
        let life = &net.lives[claim.life];
        let Some(position) = places.get(&(claim.life, claim.ticket)) else {
            assert!(life.crashed, "held, and never delivered to its origin");
            continue;
        };
        // Said at a view change, of the old ring: the others may hold it behind a gap that no one
        // can fill, and deliver it when they install.
        let recovered = claim.state[claim.life].is_none_or(|(ring, _)| ring != position.ring);
        let mut have = NodeSet::EMPTY;
        for (index, state) in claim.state.iter().enumerate() {
            let received = state
                .is_some_and(|(ring, aru)| ring == position.ring && aru >= packet_of(*position));
            let delivered = delivered_at
                .get(&(index, *position))
                .is_some_and(|at| recovered || *at < claim.seen_len[index]);
            if received || delivered {
                have.insert(net.lives[index].node);
            }
        }
        assert!(
            have.len() > net.count / 2,
            "{} said {} held at {position:?}; only {have:?} had it",
            life.node,
            claim.ticket
        );
    }
}

/// Everything that must hold when the network is whole and everyone has settled.
pub fn settled(net: &Net) {
    safety(net);
    let up: Vec<usize> = (0..net.count).filter(|index| net.is_up(*index)).collect();
    for index in &up {
        let life = net.life(*index);
        let own: Vec<u64> = deliveries(&life.seen)
            .filter(|d| d.origin == life.node && d.incarnation == life.incarnation)
            .map(|d| d.ticket.0)
            .collect();
        let all: Vec<u64> = (1..=life.submitted.len() as u64).collect();
        assert_eq!(own, all, "self-delivery at {}", life.node);
        for ticket in life.held + 1..=life.submitted.len() as u64 {
            let excused =
                life.unheld.iter().any(|(first, last)| (*first..=*last).contains(&ticket));
            assert!(excused, "{}: ticket {ticket} is neither held nor given up", life.node);
        }
        let snapshot = net.snapshot(*index);
        assert_eq!(snapshot.misfits, 0, "no chunk out of place");
        assert_eq!((snapshot.queue_messages, snapshot.in_flight), (0, 0));
    }
}
