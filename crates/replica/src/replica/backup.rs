//! Backups and restores, as far as a node's operator and its driver are concerned.
//!
//! What it is not: it changes no group; ordered commands do.

use super::Replica;
use crate::messages::backed_up::{Backup, BackupRefused};
use crate::messages::command::{Command, CommandRefused};
use crate::messages::envelope::Envelope;
use crate::output::DriverOutput;
use crate::words::ids::GroupId;
use quorba_base::Instant;

impl Replica {
    /// An operator wants the group's state, as the local member has it at a place of its own in the
    /// order; [`DriverOutput::BackedUp`] with the same `id` gives it, or says why not.
    pub fn handle_backup(&mut self, group: GroupId, id: u64) {
        let (refused, here) = (self.refusal(group), self.here);
        let out = &mut self.out;
        match (refused, self.groups.get_mut(group)) {
            (None, Some(group)) => group.begin_backup(id, here, out),
            (refused, _) => {
                let result = Err(refused.unwrap_or(BackupRefused::Group(CommandRefused::NoGroup)));
                out.push_back(DriverOutput::BackedUp { group, id, result }.into());
            }
        }
    }

    /// An operator wants the group to have the state of a backup, whatever it has now, from the
    /// local member on; [`DriverOutput::Restored`] with the same `id` says what became of it. A
    /// node that ends before that may have done it.
    pub fn handle_restore(&mut self, group: GroupId, id: u64, backup: Backup) {
        let component = self.lineage.as_ref().map(|lineage| lineage.view);
        let (refused, here) = (self.refusal(group), self.here);
        let out = &mut self.out;
        match (refused, component, self.groups.get_mut(group)) {
            (None, Some(component), Some(group)) => {
                group.begin_restore(id, backup, (component, here), out);
            }
            (refused, _, _) => {
                let result =
                    Err(refused.unwrap_or(BackupRefused::Group(CommandRefused::NoPrimary)));
                out.push_back(DriverOutput::Restored { group, id, result }.into());
            }
        }
    }

    /// A majority holds the last [`crate::OrderOutput::SubmitHeld`] of the group.
    pub fn handle_held(&mut self, now: Instant, group: GroupId) {
        self.with_group(now, group, |group, _, out| group.held(out));
    }

    fn refusal(&self, group: GroupId) -> Option<BackupRefused> {
        if self.groups.get(group).is_none() {
            return Some(BackupRefused::Group(CommandRefused::NoGroup));
        }
        let refused = match (self.is_primary(), self.stands_elsewhere(group)) {
            (false, _) => CommandRefused::NoPrimary,
            (true, true) => CommandRefused::Waits,
            (true, false) => return None,
        };
        Some(BackupRefused::Group(refused))
    }

    /// Whether the message is a restore of an earlier component: its operator has been told that
    /// nobody knows what comes of it, and what it was to bring may be gone.
    pub(super) fn is_void(&self, envelope: &Envelope) -> bool {
        let Envelope::Command { command: Command::Restore { component, .. }, .. } = envelope else {
            return false;
        };
        self.lineage.as_ref().is_none_or(|lineage| lineage.view != *component)
    }

    /// The view is over: nobody will say what a majority holds of it.
    pub(super) fn give_up_operations(&mut self) {
        for group in self.groups.values_mut() {
            group.give_up_operation(&mut self.out);
        }
    }
}
