//! Backups of the group, and the way back from one.
//!
//! What it is not: the file. Invariants: what the operator waits for is told once; a restore
//! changes the table at its place in the order, alike at all nodes, and only the node that has the
//! backup knows more than that.

use super::{Group, NodeContext};
use crate::messages::backed_up::{Backup, BackupRefused};
use crate::messages::command::{Command, CommandRefused};
use crate::messages::envelope::{Envelope, ProcessEnd};
use crate::output::{DriverOutput, OrderOutput, Outbox};
use crate::server::backup::{Captured, Operation, Staged};
use crate::table::DownReason;
use crate::words::ids::{Attempt, RingId};
use alloc::boxed::Box;

/// What this node's operator waits for, or gives.
#[derive(Default)]
pub(super) struct Backups {
    operation: Option<Box<Operation>>,
    /// A backup on its way to become the group's state.
    staged: Option<Box<Staged>>,
}

impl Group {
    /// An operator wants a backup.
    pub(crate) fn begin_backup(&mut self, id: u64, here: NodeContext, out: &mut Outbox) {
        let refused = match (&self.member, &self.backups.operation) {
            (None, _) => Some(BackupRefused::NoMember),
            (Some(_), Some(_)) => Some(BackupRefused::Busy),
            (Some(_), None) => None,
        };
        if let Some(refused) = refused {
            return out.push_back(
                DriverOutput::BackedUp { group: self.id, id, result: Err(refused) }.into(),
            );
        }
        self.backups.operation = Some(Box::new(Operation::backup(id)));
        self.order_held(id, Command::Backup(here.node), out);
    }

    /// An operator wants the group to have the state of a backup.
    pub(crate) fn begin_restore(
        &mut self,
        id: u64,
        backup: Backup,
        (component, here): (RingId, NodeContext),
        out: &mut Outbox,
    ) {
        let wall = backup.wall;
        let digest = backup.history.digest;
        match self.stage(backup) {
            Ok(attempt) => {
                let operation = Operation::restore(id, self.config.durable);
                self.backups.operation = Some(Box::new(operation));
                let node = here.node;
                let command = Command::Restore { node, attempt, component, wall, digest };
                self.order_held(id, command, out);
            }
            Err(refused) => {
                out.push_back(
                    DriverOutput::Restored { group: self.id, id, result: Err(refused) }.into(),
                );
            }
        }
    }

    fn stage(&mut self, backup: Backup) -> Result<Attempt, BackupRefused> {
        let member = self.member.as_deref_mut().ok_or(BackupRefused::NoMember)?;
        if self.backups.operation.is_some() || self.backups.staged.is_some() {
            return Err(BackupRefused::Busy);
        }
        // Read before anything is promised: what is damaged must not take the group's place.
        let staged = Staged::new(Attempt(0), backup)?;
        let attempt = member.begin_restore()?;
        self.backups.staged = Some(Box::new(Staged { attempt, ..staged }));
        Ok(attempt)
    }

    fn order_held(&self, id: u64, command: Command, out: &mut Outbox) {
        let payload = Envelope::Command { group: self.id, id, command }.encode();
        out.push_back(OrderOutput::SubmitHeld { group: self.id, payload }.into());
    }

    /// A majority holds the message of the operation that is under way.
    pub(crate) fn held(&mut self, out: &mut Outbox) {
        if let Some(operation) = &mut self.backups.operation {
            operation.held();
        }
        self.finish_operation(out);
    }

    /// Whether a restore was carried out, and must be on disks before anybody is told.
    pub(crate) fn operation_awaits_disks(&self) -> bool {
        self.backups.operation.as_ref().is_some_and(|operation| operation.awaits_disks())
    }

    /// The operation that is under way is on so many disks that it is not lost any more.
    pub(crate) fn operation_logged(&mut self, out: &mut Outbox) {
        if let Some(operation) = &mut self.backups.operation {
            operation.logged();
        }
        self.finish_operation(out);
    }

    /// The view is over: whether a majority holds what was ordered in it will not be known, and a
    /// restore that has not come will not count.
    pub(crate) fn give_up_operation(&mut self, out: &mut Outbox) {
        if let (Some(staged), Some(member)) = (self.backups.staged.take(), &mut self.member) {
            member.end_restore(staged.attempt);
        }
        out.extend(self.backups.operation.take().map(|operation| operation.give_up(self.id)));
    }

    /// At its place: the local member is asked, if it is meant and somebody still waits.
    pub(super) fn back_up(
        &mut self,
        id: u64,
        result: Result<(), CommandRefused>,
        out: &mut Outbox,
    ) {
        let Some(operation) = self.backups.operation.as_mut().filter(|operation| operation.is(id))
        else {
            return;
        };
        let asked = result.map_err(BackupRefused::Group);
        let asked = asked.and_then(|()| match &mut self.member {
            Some(member) => member.back_up(),
            None => Err(BackupRefused::NoMember),
        });
        match asked {
            Ok(()) => operation.placed(Backup {
                history: self.table.history,
                time: self.table.clock.time(),
                wall: self.table.clock.wall(),
                style: self.table.style,
                requests: 0,
                replies: bytes::Bytes::new(),
                state: bytes::Bytes::new(),
            }),
            Err(refused) => operation.fail(refused),
        }
        self.finish_operation(out);
    }

    /// The server was asked, and this is what came of it.
    pub(super) fn backed_up(&mut self, captured: Captured, out: &mut Outbox) {
        if let Some(operation) = &mut self.backups.operation {
            operation.captured(captured);
        }
        self.finish_operation(out);
    }

    /// A server that was asked and is gone will not answer.
    pub(super) fn mind_backup(&mut self, out: &mut Outbox) {
        let asks = self.member.as_deref().is_some_and(crate::member::Member::is_backing_up);
        if let Some(operation) =
            self.backups.operation.as_mut().filter(|o| o.is_capturing() && !asks)
        {
            operation.fail(BackupRefused::Interrupted);
            self.finish_operation(out);
        }
    }

    /// A restore at its place: one member comes in with what it was given, and the others will have
    /// it from that one.
    pub(super) fn restore(&mut self, command: Command, here: NodeContext, out: &mut Outbox) {
        let Command::Restore { node, attempt, wall, digest, .. } = command else { return };
        self.table.restore(node, attempt, wall, digest);
        let is_whole = self.needs_state_on_disk().then_some(false);
        self.log_looks.set_whole(is_whole);
        let (history, now) = (self.table.history, self.table.clock.time());
        let Some(member) = self.member.as_deref_mut().filter(|_| self.replay.is_none()) else {
            return;
        };
        if node != here.node {
            return member.reconsider();
        }
        let Some(staged) = self.backups.staged.take_if(|staged| staged.attempt == attempt) else {
            // It was this node's last boot that had it.
            let down = Envelope::Down {
                group: self.id,
                attempt,
                reason: DownReason::StateUnavailable,
                ended: ProcessEnd::default(),
            };
            return out.push_back(OrderOutput::Submit(down.encode()).into());
        };
        member.restore(*staged, (history, now));
        self.joined_at = (here.place, history);
        self.save_state(out);
    }

    /// A restore has its place, and was carried out or refused.
    pub(super) fn restore_is_over(
        &mut self,
        (id, attempt): (u64, Attempt),
        result: Result<(), CommandRefused>,
        out: &mut Outbox,
    ) {
        self.backups.staged.take_if(|staged| staged.attempt == attempt);
        if let Some(member) = &mut self.member {
            member.end_restore(attempt);
        }
        if let Some(operation) =
            self.backups.operation.as_mut().filter(|operation| operation.is(id))
        {
            operation.restored(result);
        }
        self.finish_operation(out);
    }

    fn finish_operation(&mut self, out: &mut Outbox) {
        let id = self.id;
        if let Some(told) =
            self.backups.operation.as_mut().and_then(|operation| operation.finish(id))
        {
            self.backups.operation = None;
            out.push_back(told);
        }
    }
}
