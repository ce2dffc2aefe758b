//! What operators want of a node.

use super::Node;
use quorba_base::Instant;
use quorba_replica::{Backup, Command, GroupId, Moment, RecentPage, RecentQuery};

impl Node {
    /// An operator wants to change `group`; [`Output::Commanded`] with the same `id` says what
    /// became of it, unless this node is thrown out of the primary component before.
    pub fn handle_command(&mut self, now: Instant, group: GroupId, id: u64, command: Command) {
        self.replica.handle_command(group, id, command);
        self.unsettled = Some(now);
    }

    /// An operator gives up the request of `group` with this number, counted from its first; the
    /// local server has it, or it waits for it. Else as [`Self::handle_command`].
    pub fn handle_skip(&mut self, now: Instant, group: GroupId, id: u64, number: u64) {
        self.replica.handle_skip(group, id, number);
        self.unsettled = Some(now);
    }

    /// An operator wants the state of `group` as its local member has it at a place of its own in
    /// the order; [`Output::BackedUp`] with the same `id` gives it, or says why not.
    pub fn handle_backup(&mut self, now: Instant, group: GroupId, id: u64) {
        self.replica.handle_backup(group, id);
        self.unsettled = Some(now);
    }

    /// An operator wants `group` to have the state of a backup, whatever it has now;
    /// [`Output::Restored`] with the same `id` says what became of it.
    pub fn handle_restore(&mut self, now: Instant, group: GroupId, id: u64, backup: Backup) {
        self.replica.handle_restore(group, id, backup);
        self.unsettled = Some(now);
    }

    /// What the server of `group` may know of the request that it executes.
    #[must_use]
    pub fn moment(&self, group: GroupId) -> Option<Moment> {
        self.replica.moment(group)
    }

    /// What `group` was delivered lately, and whole messages if they are recorded.
    pub fn recent(&mut self, now: Instant, group: GroupId, query: &RecentQuery) -> RecentPage {
        self.replica.recent(now, group, query)
    }
}
