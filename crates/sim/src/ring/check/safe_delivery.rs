//! Moser94, safe delivery: a safe message that one member of a configuration is delivered there,
//! regular or transitional, is delivered by every member of it, unless that one fails; and when it
//! is delivered in the regular configuration, every member has received it.

use super::super::life::{Got, History};
use super::super::world::RingWorld;
use crate::world::INCARNATION_STEP;
use quorba_base::NodeId;
use quorba_engine::order::{Guarantee, Position, RingId, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(history: &History<'_>) -> Result<(), String> {
    let mut safe: BTreeMap<RingId, BTreeSet<Position>> = BTreeMap::new();
    for stay in &history.stays {
        let messages = stay.regular.iter().filter(|got| history.guarantee(got) == Guarantee::Safe);
        safe.entry(stay.ring).or_default().extend(messages.map(|got| got.position));
    }
    // Of the transitional configurations: who must deliver what.
    let mut bound: BTreeMap<(RingId, NodeId, u64), BTreeSet<Position>> = BTreeMap::new();
    for stay in &history.stays {
        let Some(half) = stay.half else { continue };
        let messages =
            || stay.transitional.iter().filter(|g| history.guarantee(g) == Guarantee::Safe);
        for (node, boot) in half.incarnations.iter().filter(|(n, _)| half.members.contains(*n)) {
            let bound = bound.entry((stay.ring, *node, *boot)).or_default();
            bound.extend(messages().map(|got| got.position));
        }
    }
    for stay in history.stays.iter().filter(|stay| stay.next.is_some()) {
        let life = &history.lives[stay.life];
        let name = (stay.ring, life.node, life.incarnation);
        if let Some(bound) = bound.remove(&name) {
            let have: BTreeSet<Position> = stay.all().map(|got| got.position).collect();
            if let Some(lacking) = bound.difference(&have).next() {
                let who = history.name(stay.life);
                return Err(format!("{who} left without {lacking:?}, safe in the transition"));
            }
        }
        let have: BTreeSet<Position> = stay.all().map(|got| got.position).collect();
        if let Some(lacking) = safe[&stay.ring].difference(&have).next() {
            let who = history.name(stay.life);
            return Err(format!("{who} left {} without the safe {lacking:?}", stay.ring));
        }
    }
    Ok(())
}

/// `node` is delivered a safe message in a regular configuration just now: everyone must have it.
pub(in super::super) fn safe_now(world: &mut RingWorld, node: usize, got: Got) {
    let view = world.life(node).views.last().expect("it is in a view");
    let (ring, packet) = (got.position.ring, got.position.seq >> 16);
    let received =
        |snapshot: &Snapshot| snapshot.ring == Some(ring) && snapshot.packets[1] >= packet;
    let lacking = view.1.incarnations.iter().find(|(member, incarnation)| {
        let life = world.lives.iter().find(|l| (l.node, l.incarnation) == (*member, *incarnation));
        let Some(life) = life else { return true };
        let index = usize::from(member.index());
        let runs = world.life(index).incarnation == *incarnation;
        // Whoever ended in the middle of installing the next ring had it, or was not bound to.
        let has = life.has(got.position, life.got.len())
            || life
                .ended
                .as_ref()
                .is_some_and(|(_, last)| received(last) || last.ring > Some(ring))
            || runs && world.snapshot(index).is_some_and(|snapshot| received(&snapshot));
        !has
    });
    if let Some((member, incarnation)) = lacking {
        let boot = incarnation / INCARNATION_STEP;
        let position = got.position;
        let text = format!("n{node} is delivered {position:?}, which {member} (boot {boot}) lacks");
        world.violate("safe delivery", text);
    }
}
