//! Moser94, causal delivery: whoever is delivered a message was delivered before it everything of
//! its configuration that its sender had sent or been delivered when it sent it.

use super::super::life::History;
use quorba_engine::order::{Position, RingId};
use std::collections::BTreeMap;

pub(super) fn check(history: &History<'_>) -> Result<(), String> {
    // What each life was delivered of each ring.
    let mut seen: BTreeMap<(usize, RingId), Vec<Position>> = BTreeMap::new();
    for stay in &history.stays {
        seen.insert((stay.life, stay.ring), stay.all().map(|got| got.position).collect());
    }
    for stay in &history.stays {
        let mine = &seen[&(stay.life, stay.ring)];
        // Up to where what its senders had seen is known to be there.
        let mut checked: BTreeMap<usize, usize> = BTreeMap::new();
        let mut tickets: BTreeMap<usize, u64> = BTreeMap::new();
        for got in stay.all() {
            let last = tickets.insert(got.origin, got.ticket);
            if last.is_some_and(|last| last + 1 != got.ticket) {
                let (who, origin) = (history.name(stay.life), history.name(got.origin));
                return Err(format!("{who} lacks what {origin} sent before its {}", got.ticket));
            }
            let saw = history.lives[got.origin].submitted[got.ticket as usize - 1].saw;
            let Some(saw) = saw.filter(|saw| saw.ring == stay.ring) else { continue };
            let Some(causes) = seen.get(&(got.origin, stay.ring)) else { continue };
            let from = checked.entry(got.origin).or_default();
            let until = causes.partition_point(|cause| *cause <= saw).max(*from);
            let lacking = causes[*from..until].iter().find(|c| mine.binary_search(c).is_err());
            if let Some(cause) = lacking {
                let (who, origin) = (history.name(stay.life), history.name(got.origin));
                return Err(format!(
                    "{who} was delivered {:?} without {cause:?}, which {origin} had seen",
                    got.position
                ));
            }
            *from = until;
        }
    }
    Ok(())
}
