//! The log is made shorter while the node works.
//!
//! The node writes down what it would need of the log's beginning: a record like that of a new
//! component, with the tables of all groups as they are at that place, and a log snapshot of each
//! member of its own as it is there. When all of it is on disk, what stands before the record is
//! given up.
//!
//! Why nothing is lost. A start goes through what is left, and finds at the record what it would
//! have found by going through the beginning; and of each group the stretch of the log that has the
//! record is whole from the record on, because of the log snapshot. A stretch that ended before is
//! older, so a start would have used it only if that one were not whole (see `group::replay`); so
//! it is not missed. Until the log snapshots are on disk nothing is given up, and a crash leaves
//! the log with one record more.
//!
//! What it is not: the decision that the log is long, which is the node's. Invariant: a group whose
//! member can neither be captured nor be spared holds the log back as a whole.

use super::{Phase, Replica};
use crate::group::{Group, LogHold, SnapshotState};
use crate::ids::GroupId;
use crate::log::{LogRecord, Place};
use crate::output::LogOutput;
use alloc::collections::BTreeSet;
use quorba_base::{Instant, canary};

/// A place at which the log is to begin.
pub(super) struct Compaction {
    record: u64,
    /// Groups whose log snapshot is not on disk.
    waits: BTreeSet<GroupId>,
}

impl Compaction {
    /// A state of this group is on disk, as of this record.
    pub(super) fn saved(&mut self, group: GroupId, record: u64) {
        if record >= self.record {
            self.waits.remove(&group);
        }
    }
}

impl Replica {
    /// The log is long: [`LogOutput::Compact`] says what of it may go, as soon as that is so. False
    /// if it cannot be now; to be tried again later. An attempt that did not come to its end is
    /// forgotten.
    pub fn handle_compact(&mut self, now: Instant) -> bool {
        let is_primary = matches!(self.phase, Phase::Primary);
        if !is_primary || !self.disk.takes_cuts() {
            return false;
        }
        // A group that waits for memory elsewhere may be given up here.
        let holds = |(id, group): (GroupId, &Group)| match group.snapshot_state() {
            SnapshotState::No(LogHold::NotIn) => !self.stands_elsewhere(id),
            SnapshotState::No(LogHold::NoState) => true,
            SnapshotState::NotNeeded | SnapshotState::Yes => false,
        };
        if self.groups.iter().any(holds) {
            return false;
        }
        let Some(place) = self.log_cut() else { return false };
        let mut waits = BTreeSet::new();
        for (id, group) in self.groups.iter_mut() {
            if group.snapshot_state() == SnapshotState::Yes && !canary!(ShortensTooEarly) {
                group.take_snapshot(place);
                waits.insert(id);
            }
        }
        self.disk.cut = Some(Compaction { record: place.record, waits });
        self.settle_all(now);
        self.finish_cut();
        true
    }

    /// A group wants a state on disk, as soon as that is possible.
    pub(super) fn mind_cut(&mut self, now: Instant) {
        if core::mem::take(&mut self.disk.wants_cut) && !self.handle_compact(now) {
            self.disk.wants_cut = true;
        }
    }

    /// Writes down what the node is at this place.
    fn log_cut(&mut self) -> Option<Place> {
        let lineage = self.lineage.clone()?;
        let view = lineage.view;
        let place = self.disk.note_cut(self.here.node, self.prefix);
        let payload = self.established(lineage, self.prefix).encode();
        self.out
            .push_back(LogOutput::Append(LogRecord::Component { component: view, payload }).into());
        Some(place)
    }

    /// What stands before the cut is given up, if everything is on disk.
    pub(super) fn finish_cut(&mut self) {
        let synced = self.disk.synced;
        let is_done = |cut: &mut Compaction| cut.waits.is_empty() && cut.record <= synced;
        if let Some(Compaction { record, .. }) = self.disk.cut.take_if(is_done) {
            self.out.push_back(LogOutput::Compact { record }.into());
        }
    }
}
