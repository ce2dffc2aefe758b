//! Promise 2: nothing is executed twice, however often it was repeated.
//!
//! Excused is what waited for half of the time after which its group forgets it, since its client
//! sent it last: in the order, which stood still, or in front of a server. docs/explanation/
//! retention.md has the inequality.

use super::Serving;
use crate::names::index_of;
use crate::servant::Reference;
use crate::world::{World, ms};
use quorba_base::Instant;
use quorba_engine::replica::GroupId;
use std::collections::{BTreeMap, BTreeSet};

/// Calls that waited for long before servers executed them.
#[derive(Default)]
pub(crate) struct Delays {
    sent: BTreeMap<Reference, Instant>,
    long: BTreeSet<Reference>,
}

impl World {
    /// A client sends a call, maybe once more.
    pub(crate) fn note_sent(&mut self, reference: Reference) {
        self.checks.delays.sent.insert(reference, self.now);
    }

    /// A server executes a call.
    pub(crate) fn note_executed(&mut self, group: GroupId, reference: Reference) {
        let waits_max = ms(self.plan.groups[index_of(group)].retention_ms / 2);
        let now = self.now;
        let delays = &mut self.checks.delays;
        if delays.sent.get(&reference).is_some_and(|sent| *sent + waits_max < now) {
            delays.long.insert(reference);
        }
    }
}

pub(super) fn check(
    world: &World,
    group: usize,
    member: &Serving<'_>,
) -> Vec<(&'static str, String)> {
    let mut seen = BTreeMap::new();
    let mut found = Vec::new();
    for (position, reference) in member.log.references().iter().enumerate() {
        let has_waited = world.checks.delays.long.contains(reference);
        if let Some(first) = seen.insert(reference, position).filter(|_| !has_waited) {
            let text = format!(
                "executed twice: {:x} at {} and {} on n{} (g{group}, server {})",
                reference.0,
                first + 1,
                position + 1,
                member.node,
                member.server
            );
            found.push(("exactly once", text));
        }
    }
    found.truncate(3);
    found
}
