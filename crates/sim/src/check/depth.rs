//! Depth: whose call was answered, and wanted so many members to have executed it, so many had.
//!
//! It counts servers that have executed the call, and those that were given a state in which it is,
//! whatever became of them since. What it leaves out: groups whose states the application keeps,
//! where who comes in is given no state, and counts as one that has all before it.

use crate::ledger::Call;
use crate::servant::{Reference, Wish};
use crate::world::{World, node_id};
use quorba_base::NodeSet;
use std::collections::BTreeMap;

/// What is remembered for it.
#[derive(Default)]
pub(crate) struct Depths {
    /// Which servers have had a call.
    had: BTreeMap<Reference, NodeSet>,
    /// Calls that were looked at.
    pub(crate) checked: u64,
}

impl World {
    fn has_depths(&self) -> bool {
        self.plan.clients.iter().any(|client| client.depths > 0)
    }

    /// A server has executed a call.
    pub(crate) fn note_had(&mut self, node: usize, reference: Reference) {
        if self.has_depths() {
            self.checks.depths.had.entry(reference).or_default().insert(node_id(node));
        }
    }

    /// A server was given a state.
    pub(crate) fn note_state(&mut self, server: usize) {
        if !self.has_depths() {
            return;
        }
        let node = node_id(self.servers[server].node);
        for reference in self.servers[server].log.references() {
            self.checks.depths.had.entry(*reference).or_default().insert(node);
        }
    }

    /// A client was answered.
    pub(crate) fn check_depth(&mut self, reference: Reference, call: &Call, depth: u32) {
        let group = &self.plan.groups[call.group];
        let counts = group.replication.counts_executed() && group.style.all_execute();
        if depth < 2 || !counts || group.by_application || call.wish != Wish::Append {
            return;
        }
        self.checks.depths.checked += 1;
        let had = self.checks.depths.had.get(&reference).map_or(0, |had| had.len());
        if had < depth as usize {
            let text = format!(
                "{:x} was answered when {had} members had executed it, and {depth} were wanted",
                reference.0
            );
            self.checks.violate("depth", self.now, text);
        }
    }
}
