//! The node's status, for whoever asks: put together a few groups at a time, so that no call waits
//! while thousands of groups are looked at.
//!
//! What it is not: one moment of all groups. Each group is as it was when it was looked at, and all
//! of them after it was asked. Invariant: between two turns of the loop no more than
//! [`GROUPS_AT_A_TIME`] groups are looked at; who asks meanwhile is answered by the next look.

use super::DataPlane;
use crate::log::Log;
use quorba_admin::status::{GroupStatus, Status};
use quorba_engine::replica::{GroupId, LogHold};
use tokio::sync::oneshot;

/// Some ten microseconds each.
const GROUPS_AT_A_TIME: usize = 64;

type Asker = oneshot::Sender<Status>;

/// Who waits for a status, and how far the look at the groups is.
#[derive(Default)]
pub(super) struct Statuses {
    look: Option<Look>,
    /// They asked when the look had begun.
    next: Vec<Asker>,
}

struct Look {
    askers: Vec<Asker>,
    /// Not looked at yet, the next one last.
    left: Vec<GroupId>,
    seen: Vec<GroupId>,
    groups: Vec<GroupStatus>,
    holds: Vec<(String, LogHold)>,
    lacks: Vec<String>,
}

impl Statuses {
    /// Whether there is something to be done at once.
    pub(super) const fn is_under_way(&self) -> bool {
        self.look.is_some()
    }
}

impl Look {
    fn begin(askers: Vec<Asker>, groups: impl DoubleEndedIterator<Item = GroupId>) -> Self {
        let (seen, groups, left) = (Vec::new(), Vec::new(), groups.rev().collect());
        Self { askers, left, seen, groups, holds: Vec::new(), lacks: Vec::new() }
    }

    /// What is looked at now.
    fn take(&mut self) -> Vec<GroupId> {
        let from = self.left.len().saturating_sub(GROUPS_AT_A_TIME);
        self.left.drain(from..).rev().collect()
    }
}

impl DataPlane {
    pub(super) fn ask_status(&mut self, asker: Asker) {
        if self.statuses.is_under_way() {
            self.statuses.next.push(asker);
            return;
        }
        self.statuses.look = Some(Look::begin(vec![asker], self.reporter.groups().ids()));
        // Where there are few groups, that is all.
        self.look_at_groups();
    }

    /// Goes on with the status that was asked for, if one was.
    pub(super) fn look_at_groups(&mut self) {
        let Some(mut look) = self.statuses.look.take() else { return };
        let ids = look.take();
        let snapshot = self.engine.snapshot_of(&ids);
        self.look_whose_waits(&snapshot);
        let (servers, uptime) = (self.supervisors.status_of(&ids), self.started.elapsed());
        let seen = self.reporter.groups_status(&snapshot, &ids, servers, uptime);
        let (seen, mut groups): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
        self.tell_who_waits(&mut groups);
        look.seen.extend(seen);
        look.groups.append(&mut groups);
        let holds = self.reporter.log_holds(&snapshot).into_iter();
        look.holds.extend(holds.map(|(name, hold)| (name.to_owned(), hold)));
        look.lacks.extend(self.reporter.log_lacks(&snapshot).into_iter().map(str::to_owned));
        if !look.left.is_empty() {
            self.statuses.look = Some(look);
            return;
        }
        self.answer_status(look);
        let next = std::mem::take(&mut self.statuses.next);
        if !next.is_empty() {
            self.statuses.look = Some(Look::begin(next, self.reporter.groups().ids()));
        }
    }

    /// What is said besides the groups, and all of it to whoever asked.
    fn answer_status(&mut self, look: Look) {
        let Look { mut askers, seen, groups, holds, lacks, .. } = look;
        let snapshot = self.engine.snapshot_of(&[]);
        let fanout = self.transport.fanout();
        let ways = (&fanout, &self.transport.linked().collect());
        let mut status = self.reporter.status(&snapshot, ways, groups, self.started.elapsed());
        status.call_timings = self
            .call_timings
            .as_ref()
            .map(|call_timings| call_timings.status(seen.iter().copied()));
        status.log = self.log.as_ref().map(Log::status);
        let differs = self.file_differs();
        let holds: Vec<_> = holds.iter().map(|(name, hold)| (name.as_str(), *hold)).collect();
        let lacks: Vec<_> = lacks.iter().map(String::as_str).collect();
        status.warnings.extend(self.store.warning());
        status.warnings.extend(differs);
        status.warnings.extend(self.unreadable());
        status.warnings.extend(self.descriptors.shortcoming.clone());
        status.warnings.extend(self.clients.failures());
        let log = self.log.iter();
        status.warnings.extend(log.flat_map(|log| log.warnings(&holds, &lacks)));
        let last = askers.pop();
        // Whoever asked may have given up.
        for asker in askers {
            let _ = asker.send(status.clone());
        }
        if let Some(asker) = last {
            let _ = asker.send(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_taken_once_in_order_and_so_many_at_a_time() {
        let count = 2 * GROUPS_AT_A_TIME as u64 + 7;
        let mut look = Look::begin(Vec::new(), (0..count).map(GroupId));
        let mut all = Vec::new();
        while !look.left.is_empty() {
            let taken = look.take();
            assert!((1..=GROUPS_AT_A_TIME).contains(&taken.len()));
            all.extend(taken);
        }
        assert_eq!(all, (0..count).map(GroupId).collect::<Vec<_>>());
        assert_eq!(look.take(), []);
    }
}
