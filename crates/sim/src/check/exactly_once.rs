//! Promise 2: nothing is executed twice, however often it was repeated.
//!
//! Excused is what waited for half of the time after which its group forgets it, since its client
//! sent it last: in the order, which stood still, or in front of a server. docs/explanation/
//! retention.md has the inequality. What servers call in such a request has another name each time
//! that it is executed, for it is another request then; so a call may be executed as often as the
//! one in which it is made stands in its group's history, and no oftener.

use super::Serving;
use crate::names::index_of;
use crate::servant::{Log, Reference};
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

impl World {
    /// How often a call may be executed, under one name or several (seed 430139 of `calls`).
    pub(super) fn executions_max(&self, call: Reference) -> usize {
        if self.checks.delays.long.contains(&call) {
            return usize::MAX;
        }
        let outer = self.hearsay.made_in.get(&call).copied();
        let outer = outer.filter(|outer| self.executions_max(*outer) > 1);
        outer.map_or(1, |outer| self.executions_of(outer).max(1))
    }

    /// How often a call stands in the history of the group that it is for.
    fn executions_of(&self, call: Reference) -> usize {
        let Some(group) = self.ledger.calls.get(&call).map(|call| call.group) else { return 0 };
        let servers = self.servers.iter().filter(|server| index_of(server.group) == group);
        let count = |log: &Log| log.references().iter().filter(|of| **of == call).count();
        servers.map(|server| count(&server.log)).max().unwrap_or(0)
    }
}

pub(super) fn check(
    world: &World,
    group: usize,
    member: &Serving<'_>,
) -> Vec<(&'static str, String)> {
    let mut seen: BTreeMap<&Reference, Vec<usize>> = BTreeMap::new();
    let mut found = Vec::new();
    for (position, reference) in member.log.references().iter().enumerate() {
        let before = seen.entry(reference).or_default();
        let first = before.first().copied();
        before.push(position);
        let times = before.len();
        if let Some(first) = first.filter(|_| times > world.executions_max(*reference)) {
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
