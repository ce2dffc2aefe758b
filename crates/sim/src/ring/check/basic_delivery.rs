//! Moser94, basic delivery: nothing is delivered that was not sent, nothing twice, and of each
//! sender everything in the order in which it was sent.
//!
//! That each message says what its sender submitted is checked when it is delivered.

use super::super::life::History;
use std::collections::BTreeMap;

pub(super) fn check(history: &History<'_>) -> Result<(), String> {
    for (index, life) in history.lives.iter().enumerate() {
        let mut last: BTreeMap<usize, u64> = BTreeMap::new();
        for got in &life.got {
            let before = last.insert(got.origin, got.ticket);
            if let Some(before) = before.filter(|before| *before >= got.ticket) {
                let (who, origin) = (history.name(index), history.name(got.origin));
                let ticket = got.ticket;
                return Err(format!("{who} was delivered {ticket} of {origin} after {before}"));
            }
        }
    }
    Ok(())
}
