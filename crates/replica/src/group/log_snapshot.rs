//! What the node writes down of its member, so that it needs less of its log.
//!
//! What it is not: when; that is for all groups together. Invariant: nothing here changes the
//! table.

use super::Group;
use crate::output::{LogOutput, Outbox};
use crate::table::MemberState;
use crate::words::place::Place;

/// Whether the log can go on, for a group, from now on alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SnapshotState {
    /// It has nothing of it, or nothing that a start would use.
    NotNeeded,
    /// With a log snapshot of the member.
    Yes,
    /// Not now, or never.
    No(LogHold),
}

/// Why a node's log is not compacted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogHold {
    /// The member here is not in, and only the log has what it had.
    NotIn,
    /// The group has no state that the log could go on from.
    NoState,
}

impl LogHold {
    /// One sentence for people, of a group that they know.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NotIn => "its member here is not in",
            Self::NoState => {
                "it has no state to go on from (no state_object, or recovery by replay)"
            }
        }
    }
}

/// The log snapshots of the local member.
#[derive(Default)]
pub(super) struct LogSnapshots {
    /// The record that the last state stands behind which was sent to the disk.
    saved_at: Option<u64>,
    /// What servers did with a request that has no reply is in no log: the disk is to have a state.
    is_wanted: bool,
}

impl LogSnapshots {
    /// The disk has a state behind that record.
    pub(super) const fn saved(&mut self, record: u64) {
        self.saved_at = Some(record);
    }

    /// The disk is to have a state.
    pub(super) const fn want(&mut self) {
        self.is_wanted = true;
    }
}

impl Group {
    /// See [`SnapshotState`].
    pub(crate) fn snapshot_state(&self) -> SnapshotState {
        let Some(member) = self.member.as_deref().filter(|_| !self.config.foreign) else {
            return SnapshotState::NotNeeded;
        };
        if self.is_stateless() || self.config.by_application {
            return SnapshotState::NotNeeded;
        }
        let can = match self.table.state(self.here) {
            Some(MemberState::In { attempt }) => member.can_be_captured(attempt),
            // What was lost with all nodes of a group that is not durable was never promised.
            _ if !self.config.durable => return SnapshotState::NotNeeded,
            _ => false,
        };
        let has_state =
            self.config.state_object.is_some() && self.config.replay_bytes_max.is_none();
        match (has_state, can) {
            (false, _) => SnapshotState::No(LogHold::NoState),
            (true, false) => SnapshotState::No(LogHold::NotIn),
            (true, true) => SnapshotState::Yes,
        }
    }

    /// Why the log of this node cannot be compacted now, as far as it is because of this group.
    pub(super) fn holds_log(&self) -> Option<LogHold> {
        match self.snapshot_state() {
            SnapshotState::No(hold) if self.config.logged => Some(hold),
            _ => None,
        }
    }

    /// Whether the log is to begin with a state of now: what has been replied since may have seen
    /// what a start that goes through the log leaves out (seed 9101274 of the simulator's
    /// `styles`).
    pub(crate) fn takes_wish_for_log_snapshot(&mut self) -> bool {
        core::mem::take(&mut self.log_snapshots.is_wanted)
    }

    /// Has the member captured as it is now.
    pub(crate) fn take_snapshot(&mut self, place: Place) {
        let history = self.table.history;
        if let Some(member) = &mut self.member {
            member.begin_log_snapshot(place, history);
        }
    }

    /// Whether a state that has this record is on its way to the disk, or being made.
    pub(crate) fn has_log_snapshot_behind(&self, record: u64) -> bool {
        let pending_snapshot_record =
            self.member.as_deref().and_then(crate::member::Member::pending_snapshot_record);
        [pending_snapshot_record, self.log_snapshots.saved_at]
            .into_iter()
            .flatten()
            .any(|at| at >= record)
    }

    /// A log snapshot that is complete goes to disk.
    pub(super) fn save_log_snapshot(&mut self, out: &mut Outbox) {
        let log_snapshot =
            self.member.as_deref_mut().and_then(crate::member::Member::take_log_snapshot);
        let Some((place, parts)) = log_snapshot else { return };
        self.log_snapshots.saved_at = Some(place.record);
        out.push_back(LogOutput::Save { group: self.id, place, parts }.into());
    }
}
