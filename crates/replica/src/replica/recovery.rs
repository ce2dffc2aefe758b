//! A boot that goes on with what its disk remembers.
//!
//! The log is gone through as it was written: components give the group tables, messages change
//! them as they did then, and what members had to do is collected for servers that have done
//! nothing yet. Then the node is where one would be that was cut off from the others at the last
//! record: what it says of itself when a view begins ([`crate::Hello`]), and what may become of it,
//! is the same.
//!
//! What it is not: the rule by which such memories count, which is [`crate::primary`]. Invariant:
//! a log that this version cannot read as a whole is no memory at all.

use super::{Delivered, Phase, Replica};
use crate::messages::log::{Established, LogRecord, MemoryGroups, Recovered};
use crate::state::log_snapshot::LogSnapshot;
use crate::words::history::History;
use crate::words::ids::GroupId;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;

impl Replica {
    /// Takes over what the disk remembers; gives false, and is not to be used, if it cannot.
    pub(super) fn recover(&mut self, recovered: Recovered) -> bool {
        let of_boot = self.catalog().clone();
        self.is_replaying = true;
        self.groups.values_mut().for_each(crate::group::Group::begin_replay);
        for record in recovered.records {
            let is_read = match record {
                LogRecord::Component { payload, .. } => self.replay_component(payload),
                LogRecord::Message { origin, incarnation, ticket, payload, .. } => {
                    let delivered =
                        Delivered { origin, incarnation, ticket, payload, behind_gap: false };
                    self.replay_message(delivered);
                    true
                }
            };
            if !is_read {
                return false;
            }
            // Everything that came of it came of it then.
            self.out.clear();
        }
        // What was said to be on disk is: of changes behind the log's end only this tells.
        if of_boot.is_ahead_of(self.catalog()) {
            self.install_catalog(of_boot);
        }
        self.is_replaying = false;
        let here = self.here;
        let mut states: BTreeMap<GroupId, Vec<Bytes>> = BTreeMap::new();
        for (id, bytes) in recovered.states {
            states.entry(id).or_default().push(bytes);
        }
        let lacking: BTreeSet<GroupId> = recovered.lacking.into_iter().collect();
        for (id, group) in self.groups.iter_mut() {
            let of_it = states.remove(&id).unwrap_or_default().into_iter().map(LogSnapshot::decode);
            let (log_snapshots, unread): (Vec<_>, Vec<_>) = of_it.partition(Result::is_ok);
            let log_snapshots = log_snapshots.into_iter().flatten().collect();
            let is_lacking = lacking.contains(&id) || !unread.is_empty();
            let end = self.lineage.as_ref().map(|lineage| (lineage.view, self.prefix));
            let outcome = group.end_replay((log_snapshots, is_lacking), end, here, &mut self.out);
            // Whoever relied on the last boot is told when somebody can hear it.
            self.lost.extend(outcome.news);
            let is_broken = !outcome.is_whole && group.needs_state_on_disk();
            self.disk.of.change(id, |of| of.broken = is_broken.then_some(0));
        }
        self.out.clear();
        self.save_what_is_not();
        true
    }

    /// The log was looked up for [`crate::LogOutput::LookUp`]; `None`: it can tell nothing.
    pub fn handle_looked_up(
        &mut self,
        now: Instant,
        (group, number): (GroupId, u64),
        found: Option<Recovered>,
    ) {
        if !self.groups.get_mut(group).is_some_and(|group| group.waits_for_look(number)) {
            return;
        }
        let found = found.and_then(|found| {
            let catalog = self.catalog().clone();
            let mut restarted = Self::without_memory(self.config.clone(), catalog);
            restarted.recover(found).then(|| restarted.groups.remove(group)).flatten()
        });
        self.with_group(now, group, |group, _, out| group.looked_up(found, out));
    }

    /// A group, which stood there `before`, may have gone on from a member's disk.
    pub(super) fn heed_join(&mut self, id: GroupId, before: (History, u64)) {
        let in_primary = matches!(self.phase, Phase::Primary);
        let Some(group) = self.groups.get_mut(id) else { return };
        let is_whole = group.take_log_is_whole();
        if in_primary {
            self.disk.note(id, is_whole);
            if group.table().history != before.0 {
                self.disk.turn(id, self.prefix);
                // No disk will have a mark of before, and what was read is of another past.
                group.end_reads(self.here, &mut self.out);
            }
        } else {
            let view = self.lineage.as_ref().map(|lineage| lineage.view);
            group.replay_turn(before, view.map(|view| (view, self.prefix - 1)));
        }
    }

    fn replay_component(&mut self, payload: Bytes) -> bool {
        let Ok(established) = Established::decode(payload) else { return false };
        let Established { since, lineage, prefix, history, catalog, tables, calls, memory_groups } =
            established;
        if catalog.mark() != self.catalog_mark() {
            self.install_catalog(catalog);
        }
        let is_other =
            |memory_groups: &MemoryGroups| memory_groups.groups != self.living_in_memory();
        if !tables.ids().eq(self.groups.ids()) || memory_groups.as_ref().is_some_and(is_other) {
            return false;
        }
        self.disk.since = since;
        (self.calls, self.memory_groups) = (calls, memory_groups);
        let end = self.lineage.as_ref().map(|lineage| (lineage.view, self.prefix));
        (self.lineage, self.prefix, self.history) = (Some(lineage), prefix, history);
        for (id, table) in tables {
            self.groups[id].replay_table(table, end);
        }
        true
    }

    fn replay_message(&mut self, delivered: Delivered) {
        if self.lineage.is_none() {
            // The beginning of the log was given up; the next component says where it goes on.
            return;
        }
        self.apply(Instant::ZERO, delivered);
    }
}
