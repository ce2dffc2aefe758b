//! What a member captures of its server: for a joiner, a checkpoint, a backup, a comparison.
//!
//! What it is not: how a state travels, which is `transfers`, and what it waits for before it is
//! given, which is `settled`. Invariant: what a member remembers is frozen at the place in the
//! order where the capture was asked for, not where the server came to it.

use super::settled::Whom;
use super::{Consequence, Member, Stage};
use crate::executor::{Capture, Job};
use crate::ids::Attempt;
use crate::passive::Logged;
use bytes::Bytes;
use quorba_base::{NodeId, canary};

impl Member {
    /// This member was chosen as donor: capture the state after what was delivered so far.
    pub(crate) fn capture(&mut self, joiner: NodeId, attempt: Attempt) -> Option<Consequence> {
        if !matches!(self.stage, Stage::Serving { .. }) {
            // The server is gone already; the Down that is on its way makes the joiner start over.
            return None;
        }
        if self.archive.is_some() {
            return self.give_archive(joiner, attempt);
        }
        self.frozen.retain(|(node, _, _)| *node != joiner);
        self.give_no_more(joiner);
        self.frozen.push((joiner, attempt, self.freeze()));
        if self.executes_now() {
            self.keep_chain_at_state();
            self.executor.push(Job::Capture(Capture::Join { joiner, attempt }));
        } else if self.duty.executes() {
            self.checkpoints.break_chain(self.delivered.count);
            self.log.push(Logged::Capture { joiner, attempt });
        } else {
            return Some(Consequence::CannotGive { joiner, attempt });
        }
        None
    }

    /// The joiner is gone or started over.
    pub(crate) fn stop_giving(&mut self, joiner: NodeId) {
        self.outgoing.retain(|(node, _, _)| *node != joiner);
        self.frozen.retain(|(node, _, _)| *node != joiner);
        self.give_no_more(joiner);
    }

    /// The server has given its state, or has not.
    pub(super) fn captured(
        &mut self,
        purpose: Capture,
        state: Option<Bytes>,
    ) -> Option<Consequence> {
        match purpose {
            Capture::Join { joiner, attempt } => {
                let Some(state) = state else {
                    return Some(Consequence::CannotGive { joiner, attempt });
                };
                let index =
                    self.frozen.iter().position(|(node, a, _)| *node == joiner && *a == attempt)?;
                let (_, _, mut frozen) = self.frozen.swap_remove(index);
                if canary!(FreezesLate) {
                    frozen = self.retention.freeze();
                }
                self.give_when_settled(Whom::Joiner(joiner, attempt, frozen), state)
            }
            Capture::LogSnapshot { record } => {
                self.log_snapshot_taken(record, state);
                None
            }
            Capture::Backup { number } => self.backup_taken(number, state),
            Capture::Checkpoint { number, up_to, update, joiner } => {
                self.checkpoint_taken(number, (up_to, update), joiner, state)
            }
            Capture::Compare { number } => {
                self.compared(number, state.as_ref());
                None
            }
            Capture::Proof => {
                self.proves(state.as_ref());
                None
            }
        }
    }
}
