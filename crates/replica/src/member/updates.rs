//! A member that comes back with the state of a checkpoint, and the leader that brings it on.
//!
//! What it is not: the chain of checkpoints, which is [`crate::state::chain`]. Invariant: what is
//! kept of a member that is not in has the state of one checkpoint and nothing behind it, in its
//! server or as a base.

use super::{BufferedDelivery, Consequence, Member, Server, Stage, Wanted};
use crate::server::executor::{Job, Restore, Returning};
use crate::state::chain;
use crate::state::transfer::TRANSFER_BYTES_MAX;
use crate::table::{DownReason, Lacks};
use crate::words::history::History;
use crate::words::ids::Attempt;
use crate::words::style::Duty;
use alloc::collections::VecDeque;
use bytes::Bytes;
use quorba_base::{Instant, canary};

impl Wanted {
    pub(super) fn lacks(&self) -> Lacks {
        match self {
            Self::State { .. } => Lacks::State,
            Self::Requests { .. } => Lacks::Requests,
            Self::Updates { .. } => Lacks::Updates,
        }
    }

    /// What the server has surely executed, while it is given nothing.
    pub(super) fn claim(&self) -> Option<History> {
        match self {
            Self::Requests { behind } => Some(*behind),
            Self::State { claim } | Self::Updates { claim } => *claim,
        }
    }
}

impl Member {
    /// The place of the checkpoint whose state base or server have, or will have in their turn.
    pub(super) fn checkpoint_held(&self) -> History {
        self.base.as_ref().map_or(self.seen, |base| base.at)
    }

    /// The same of a member that goes out of the group now, or is out of it.
    pub(super) fn held_checkpoint(&self) -> Option<History> {
        if !self.keeps {
            return None;
        }
        match self.stage {
            Stage::Serving { .. } if !self.duty.executes() => {
                let is_there = self.base.is_some() || self.server == Server::Up;
                is_there.then(|| self.checkpoint_held())
            }
            // Nothing has been given to the server since.
            Stage::Ready { .. }
            | Stage::Asked { .. }
            | Stage::Receiving { .. }
            | Stage::Out { .. } => self.held_checkpoint,
            Stage::NoServer | Stage::Restoring { .. } | Stage::Serving { .. } => None,
        }
    }

    /// As `forget`, but for what has the state of that checkpoint.
    pub(super) fn forget_but(&mut self, held_checkpoint: Option<History>) {
        let base = self.base.take().filter(|_| held_checkpoint.is_some());
        self.forget();
        (self.base, self.held_checkpoint) = (base, held_checkpoint);
    }

    // -- the leader -------------------------------------------------------------------------

    /// Its state is taken here, for a joiner or to be compared. The next update goes on from it, so
    /// all others are brought here by an update, too.
    pub(super) fn keep_chain_at_state(&mut self) {
        if self.can_update() && !canary!(JoinSplitsUpdates) {
            self.ask_checkpoint(true, None);
        } else if !canary!(JoinSplitsUpdates) {
            self.checkpoints.break_chain(self.delivered.count);
        }
    }

    /// Whether an update that is taken now will go on from what all members have.
    fn can_update(&self) -> bool {
        let c = &self.checkpoints;
        let goes_on = c.chain.end().is_some() || !c.asked.is_empty();
        c.rule.updates && self.duty == Duty::Lead && self.executes_now() && goes_on
    }

    /// A member joins that has kept a state: it is given the updates since.
    pub(crate) fn update(&mut self, returning: Returning) -> Option<Consequence> {
        if !matches!(self.stage, Stage::Serving { .. }) {
            // The server is gone already; the Down that is on its way makes the joiner start over.
            return None;
        }
        if !self.can_update() || !self.checkpoints.chain.knows(returning.from) {
            return Some(Consequence::CannotUpdate(returning));
        }
        let Returning { joiner, attempt, .. } = returning;
        self.giving.freeze(joiner, attempt, self.retention.freeze());
        self.ask_checkpoint(true, Some(returning));
        None
    }

    /// The update that leads to the joiner's place was taken. False if the others are not all there
    /// any more.
    pub(super) fn give_updates(&mut self, returning: Returning, up_to: History) -> bool {
        let Returning { joiner, attempt, from } = returning;
        let Some(frozen) = self.giving.take_frozen(joiner, attempt) else {
            // It is gone, or started over.
            return true;
        };
        let Some(updates) = self.checkpoints.chain.since(from) else { return false };
        let retention = (&self.retention, &frozen);
        let (head, updates) = chain::pack(retention, (from, up_to), &updates);
        if (head.len() + updates.len()) as u64 > TRANSFER_BYTES_MAX {
            return false;
        }
        self.giving.send(joiner, attempt, (head, updates));
        true
    }

    // -- the joiner -------------------------------------------------------------------------

    /// The updates are here; `whole` is all that the leader gave.
    pub(super) fn updated(
        &mut self,
        (attempt, joined_at): (Attempt, History),
        whole: Bytes,
        buffer: VecDeque<BufferedDelivery>,
    ) -> Consequence {
        let held_checkpoint = self
            .held_checkpoint
            .take()
            .filter(|_| self.base.is_some() || self.server == Server::Up);
        let unpacked =
            held_checkpoint.map(|held_checkpoint| chain::unpack(whole, held_checkpoint, joined_at));
        let Some(Ok((retention, updates))) = unpacked else {
            self.stage = Stage::Ready { claim: None, not_before: Instant::ZERO };
            return Consequence::Lost(Some(attempt), DownReason::StateDamaged);
        };
        self.delivered = joined_at;
        if let Some(base) = &mut self.base {
            base.at = joined_at;
            base.updates.extend(updates);
        } else {
            self.seen = joined_at;
            let purpose = Restore::Update;
            let jobs = updates.into_iter().map(|state| Job::Restore { state, purpose });
            self.executor.extend(jobs);
        }
        self.stage = Stage::Serving { attempt };
        self.retention.replace_by(retention);
        // Its server may have come up meanwhile, and may be to execute what came behind (seed
        // 800046 of the simulator's `styles`).
        self.go_on();
        self.go_on_with(attempt, buffer)
    }
}
