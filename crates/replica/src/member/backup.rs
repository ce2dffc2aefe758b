//! What an operator is given of the member, and gives it.
//!
//! What it is not: ordered; the group has said at which place. Invariant: a backup is of exactly
//! what was delivered before its place, or there is none.

use super::{Consequence, Member, Recipient, Stage};
use crate::messages::backed_up::BackupRefused;
use crate::server::backup::{self, Staged};
use crate::server::executor::{Capture, Job};
use crate::state::passive::Base;
use crate::state::retention::Frozen;
use crate::words::history::History;
use crate::words::ids::Attempt;
use bytes::Bytes;
use quorba_base::canary;

/// What operators are given, and give.
#[derive(Default)]
pub(super) struct Backups {
    /// What was known when a backup was asked for, until the state is there.
    wanted: Option<(u64, Frozen)>,
    /// Backups that were asked for.
    asked: u64,
    /// A restore by this try is on its way through the order.
    restoring: Option<Attempt>,
}

impl Backups {
    /// Whether a restore is on its way: until then the member does not ask to join.
    pub(super) const fn is_restoring(&self) -> bool {
        self.restoring.is_some()
    }

    /// The server gives no state any more.
    pub(super) fn forget(&mut self) {
        self.wanted = None;
    }
}

impl Member {
    /// The state after what was delivered so far is wanted.
    pub(crate) fn back_up(&mut self) -> Result<(), BackupRefused> {
        if !matches!(self.stage, Stage::Serving { .. }) || !self.executes_now() {
            return Err(BackupRefused::NotExecuting);
        }
        // One that nobody wants any more may still be asked for in front of it (seed 53 of the
        // simulator's `backups`).
        self.backups.asked += 1;
        let number = self.backups.asked;
        self.backups.wanted = Some((number, self.freeze()));
        self.executor.push(Job::Capture(Capture::Backup { number }));
        if !canary!(BackupSplitsUpdates) {
            // Its next update goes on from the state that it gives now, which no other member has.
            self.checkpoints.break_chain(self.delivered.count);
        }
        Ok(())
    }

    /// The server is still to give the state that [`Self::back_up`] asked for.
    pub(crate) fn is_backing_up(&self) -> bool {
        self.backups.wanted.is_some()
    }

    /// The server has given it, or cannot.
    pub(super) fn backup_taken(
        &mut self,
        number: u64,
        state: Option<Bytes>,
    ) -> Option<Consequence> {
        match state {
            Some(state) => self.give_when_settled(Recipient::Operator(number), state),
            None => {
                self.backups.wanted.take_if(|(wanted, _)| *wanted == number)?;
                Some(Consequence::BackedUp(Err(BackupRefused::NoState)))
            }
        }
    }

    /// Nothing that goes with that state is voted on any more.
    pub(super) fn back_up_with(&mut self, number: u64, state: Bytes) -> Option<Consequence> {
        let (_, frozen) = self.backups.wanted.take_if(|(wanted, _)| *wanted == number)?;
        Some(Consequence::BackedUp(backup::pack(&self.retention, &frozen, state)))
    }

    /// A try of its own for a restore. Until that is over the member does not ask to join: what it
    /// asks before the restore must not be answered behind it.
    pub(crate) fn begin_restore(&mut self) -> Result<Attempt, BackupRefused> {
        if matches!(self.stage, Stage::Asked { .. }) {
            return Err(BackupRefused::Joining);
        }
        self.next_attempt = Attempt(self.next_attempt.0 + 1);
        self.backups.restoring = Some(self.next_attempt);
        Ok(self.next_attempt)
    }

    /// It may ask again.
    pub(crate) fn end_restore(&mut self, attempt: Attempt) {
        self.backups.restoring.take_if(|restoring| *restoring == attempt);
    }

    /// The group has the state of a backup from here on, and this member brings it; `history`
    /// is in it. What the server has executed, it has executed for nothing.
    pub(crate) fn restore(&mut self, staged: Staged, (history, now): (History, u64)) {
        self.executor.abandon();
        self.forget();
        let attempt = staged.attempt;
        let (retention, state, whole) = staged.take_effect(now, self.durable);
        self.retention.replace_by(retention);
        self.states.keep(whole);
        (self.delivered, self.seen) = (history, history);
        self.voting.begin_anew(history.count);
        self.base = Some(Base { at: history, state: Some(state), updates: alloc::vec::Vec::new() });
        self.stage = Stage::Serving { attempt };
        self.go_on();
    }
}
