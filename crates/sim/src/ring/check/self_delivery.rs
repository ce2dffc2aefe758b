//! Moser94, self-delivery: a node is delivered every message of its own, unless it fails before.
//! Here: one after the other without a hole, and at the end all of them.

use super::super::life::History;

pub(super) fn check(history: &History<'_>) -> Result<(), String> {
    for (index, life) in history.lives.iter().enumerate() {
        let mut last = 0;
        for ticket in life.own_deliveries(index) {
            if ticket != last + 1 {
                let who = history.name(index);
                return Err(format!("{who} was delivered its {ticket} behind its {last}"));
            }
            last = ticket;
        }
        let all = life.submitted.len() as u64;
        if life.ended.is_none() && last != all {
            return Err(format!("{} was delivered {last} of its {all}", history.name(index)));
        }
    }
    Ok(())
}
