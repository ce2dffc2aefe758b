//! Moser94, failure atomicity: who goes from one configuration to the next together was delivered
//! the same messages, in the regular and in the transitional configuration; and in a regular
//! configuration everyone is delivered a beginning of the same sequence. At the end, when all is
//! quiet, those in the last one have all of it.

use super::super::life::{Got, History, Stay};
use quorba_base::NodeSet;
use quorba_engine::order::RingId;
use std::collections::BTreeMap;

pub(super) fn check(history: &History<'_>) -> Result<(), String> {
    let mut together: BTreeMap<(RingId, RingId, NodeSet), &Stay<'_>> = BTreeMap::new();
    let mut longest: BTreeMap<RingId, &[Got]> = BTreeMap::new();
    let mut last: Vec<&Stay<'_>> = Vec::new();
    for stay in &history.stays {
        let known = longest.entry(stay.ring).or_default();
        let common = known.len().min(stay.regular.len());
        if known[..common] != stay.regular[..common] {
            let who = history.name(stay.life);
            return Err(format!("{who} was delivered another beginning of {}", stay.ring));
        }
        if stay.regular.len() > known.len() {
            *known = stay.regular;
        }
        let Some(next) = stay.next else {
            if history.lives[stay.life].ended.is_none() {
                last.push(stay);
            }
            continue;
        };
        let first = together.entry((stay.ring, next.ring, next.transitional)).or_insert(stay);
        for (part, one, other) in [
            ("regular", first.regular, stay.regular),
            ("transitional", first.transitional, stay.transitional),
        ] {
            if one != other {
                return Err(format!(
                    "{} and {} go from {} to {}, and were delivered {} and {} messages in the \
                     {part} configuration",
                    history.name(first.life),
                    history.name(stay.life),
                    stay.ring,
                    next.ring,
                    one.len(),
                    other.len(),
                ));
            }
        }
    }
    let lacks = |stay: &&&Stay<'_>| stay.regular.len() < longest[&stay.ring].len();
    last.iter().find(lacks).map_or(Ok(()), |stay| {
        let (who, ring) = (history.name(stay.life), stay.ring);
        let (got, all) = (stay.regular.len(), longest[&ring].len());
        Err(format!("{who} was delivered {got} of the {all} messages of {ring}, and all is quiet"))
    })
}
