//! A disk that lacks its member's state is given it while the member works.
//!
//! A member whose server has all that its group was delivered comes in without a state, also behind
//! a gap in its node's log. The disk does not count for the group then until it has a state from
//! behind the gap. So the member is captured as soon as it can be.
//!
//! What it is not: a place from which on the log is enough, which is `compact`; here nothing is
//! given up. Invariant: one log snapshot at a time, and none while one from behind the gap is on
//! its way.

use super::Replica;
use crate::group::SnapshotState;
use crate::ids::GroupId;
use quorba_base::{Duration, Instant};

/// A server that cannot give its state is asked again after so long, and then after twice as long
/// each time, until it is [`AGAIN_AFTER_MAX`].
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(64);

/// What was tried for one group.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct LogRepair {
    not_before: Instant,
    wait: Option<Duration>,
}

impl LogRepair {
    /// One more try.
    fn begin(&mut self, now: Instant) {
        let wait = self.wait.map_or(AGAIN_AFTER, |wait| (wait * 2).min(AGAIN_AFTER_MAX));
        (self.not_before, self.wait) = (now + wait, Some(wait));
    }
}

impl Replica {
    /// Has the member of a group captured whose disk lacks its state. True if that was begun.
    pub(super) fn repair_log(&mut self, now: Instant, group: GroupId) -> bool {
        if self.mends_at(group).is_none_or(|at| at > now) {
            return false;
        }
        self.disk.of.change(group, |of| of.log_repair.begin(now));
        self.groups[group].take_snapshot(self.here.place);
        true
    }

    /// When a disk that lacks a state is to be given it.
    pub(super) fn mending_deadline(&self) -> Option<Instant> {
        self.disk.of.iter().filter_map(|(group, _)| self.mends_at(group)).min()
    }

    /// The groups whose disks are to be given a state by now.
    pub(super) fn mends_by(&self, now: Instant) -> impl Iterator<Item = GroupId> + '_ {
        let is_due = move |group: &GroupId| self.mends_at(*group).is_some_and(|at| at <= now);
        self.disk.of.iter().map(|(group, _)| group).filter(is_due)
    }

    /// Whether this node's disk does not count for a group that its member is in.
    pub(super) fn lacks_state(&self, group: GroupId) -> bool {
        let is_broken = self.disk.of.get(group).is_some_and(|of| of.broken.is_some());
        is_broken && self.groups[group].snapshot_state() == SnapshotState::Yes
    }

    fn mends_at(&self, group: GroupId) -> Option<Instant> {
        let of = self.disk.of.get(group)?;
        let needed = of.broken?;
        let is_able = self.is_primary() && self.lacks_state(group);
        let waits = is_able && !self.groups[group].has_log_snapshot_behind(needed);
        waits.then_some(of.log_repair.not_before)
    }
}
