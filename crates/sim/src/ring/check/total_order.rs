//! Moser94, total order: every message has one place, the same for all, in all components; and
//! everyone is delivered in the order of the places.

use super::super::life::History;
use quorba_engine::order::Position;
use std::collections::BTreeMap;

pub(super) fn check(history: &History<'_>) -> Result<(), String> {
    let mut messages: BTreeMap<Position, (usize, u64)> = BTreeMap::new();
    let mut places: BTreeMap<(usize, u64), Position> = BTreeMap::new();
    for (index, life) in history.lives.iter().enumerate() {
        let mut last: Option<Position> = None;
        for got in &life.got {
            let message = (got.origin, got.ticket);
            let who = || history.name(index);
            let first = *messages.entry(got.position).or_insert(message);
            if first != message {
                return Err(format!("{}: {first:?} and {message:?} are {:?}", who(), got.position));
            }
            let place = *places.entry(message).or_insert(got.position);
            if place != got.position {
                let other = got.position;
                return Err(format!("{}: {message:?} is both {place:?} and {other:?}", who()));
            }
            if let Some(before) = last.replace(got.position).filter(|b| *b >= got.position) {
                return Err(format!("{}: {:?} comes after {before:?}", who(), got.position));
            }
        }
    }
    Ok(())
}
