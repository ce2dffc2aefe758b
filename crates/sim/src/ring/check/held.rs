//! What promise 1 rests on: when a message is said to be held, a majority of the domain's nodes
//! has it; and every message is held in the end, or the view said that nobody knows.

use super::super::life::{Claim, History, Life};
use quorba_base::NodeSet;
use quorba_engine::order::Position;
use std::collections::BTreeMap;

pub(super) fn check(history: &History<'_>) -> Result<(), String> {
    for (index, life) in history.lives.iter().enumerate() {
        let own = life.got.iter().filter(|got| got.origin == index);
        let places: BTreeMap<u64, Position> = own.map(|got| (got.ticket, got.position)).collect();
        for claim in &life.claims {
            let Some(position) = places.get(&claim.ticket) else {
                if life.ended.is_some() {
                    continue;
                }
                let who = history.name(index);
                return Err(format!("{who}: {} is held, but never delivered here", claim.ticket));
            };
            let have = who_has(history, index, claim, *position);
            if have.len() <= history.nodes / 2 {
                return Err(format!(
                    "{} said that {} at {position:?} is held; only {have:?} had it",
                    history.name(index),
                    claim.ticket
                ));
            }
        }
    }
    Ok(())
}

/// Whether everything is held, or given up.
pub(super) fn all_are_held(life: &Life) -> Result<(), String> {
    for ticket in life.held + 1..=life.submitted.len() as u64 {
        let excused = life.unheld.iter().any(|(first, last)| (*first..=*last).contains(&ticket));
        if !excused {
            return Err(format!("{}: {ticket} is neither held nor given up", life.node));
        }
    }
    Ok(())
}

/// The nodes that had the message at `position` when `claim` was made.
fn who_has(history: &History<'_>, me: usize, claim: &Claim, position: Position) -> NodeSet {
    let mut have = NodeSet::EMPTY;
    let packet = position.seq >> 16;
    let mine = claim.states.iter().find(|state| state.life == me);
    // Said at a change of view, of the old ring: those who come along hold it, maybe behind a gap
    // that no one can fill, and are delivered it when they install; or end before.
    let installed = mine.and_then(|state| state.received);
    let of_old_ring = installed.is_none_or(|(ring, _)| ring != position.ring);
    let came_along = |node| {
        let change = history.lives[me].regular_views().find(|v| v.previous == Some(position.ring));
        change.is_some_and(|view| view.transitional.contains(node))
    };
    for state in &claim.states {
        let life = &history.lives[state.life];
        let received =
            state.received.is_some_and(|(ring, aru)| ring == position.ring && aru >= packet);
        let recovers = of_old_ring
            && came_along(life.node)
            && (life.has(position, life.got.len()) || life.ended.is_some());
        if received || recovers || life.has(position, state.delivered) {
            have.insert(life.node);
        }
    }
    for life in history.lives {
        let Some((_, last)) = life.ended.as_ref().filter(|(at, _)| *at <= claim.at) else {
            continue;
        };
        // In the middle of an installation it is in the next ring already (seed 401398).
        let stood = [Some(last), life.before.as_ref()];
        let received = stood
            .iter()
            .flatten()
            .any(|stood| stood.ring == Some(position.ring) && stood.packets[1] >= packet);
        if received || life.has(position, life.got.len()) {
            have.insert(life.node);
        }
    }
    have
}
