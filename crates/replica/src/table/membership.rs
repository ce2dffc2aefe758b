//! Which of a group's members take part: operators take them out and put them back.
//!
//! The members of the domain file are those that may take part, and all do at the beginning. What
//! operators change is a part of the replicated table: it goes to nodes that were away and to those
//! that are started anew, and with the durable log to the next life of the domain; the file is
//! not changed, and does not undo it.
//!
//! What it is not: a way to move a group to a node that the file does not name for it. Invariants:
//! a member that is taken out is not in and gets no state; one that is in stays, so that nothing
//! is lost.

use crate::table::{DownReason, GroupTable, MemberState, OutReason};
use crate::words::config::GroupConfig;
use crate::words::ids::Attempt;
use quorba_base::{NodeId, NodeSet, canary};

impl GroupTable {
    /// Members that operators took out.
    pub(crate) fn removed(&self) -> NodeSet {
        self.removed
    }

    /// Carries out what [`crate::Command`] asks for and has been checked.
    pub(crate) fn remove(&mut self, config: &GroupConfig, node: NodeId) {
        self.removed.insert(node);
        match self.state(node) {
            Some(
                MemberState::In { attempt }
                | MemberState::Joining { attempt, .. }
                | MemberState::Out { attempt, .. },
            ) => {
                let state = MemberState::Out { attempt, reason: OutReason::Removed };
                self.members.insert(node, state);
            }
            // It hears of it when it asks.
            Some(MemberState::Down(_)) | None => {}
        }
        self.lets_go_of(config, node);
        self.drop_orphans();
        self.settle_leader(config);
        self.open_if_whole(config);
    }

    /// See [`Self::remove`].
    pub(crate) fn add(&mut self, node: NodeId) {
        self.removed.remove(node);
        if let Some(MemberState::Out { reason: OutReason::Removed, .. }) = self.state(node) {
            self.members.insert(node, MemberState::Down(DownReason::NotStarted));
        }
    }

    /// A member that was taken out asks to come in.
    pub(crate) fn keep_out(&mut self, node: NodeId, attempt: Attempt) -> Option<MemberState> {
        self.state(node)?;
        let state = MemberState::Out { attempt, reason: OutReason::Removed };
        self.members.insert(node, state);
        Some(state)
    }

    /// The group has another state from here on: that of the member on `node`, which comes in with
    /// it, whatever was before. Nobody else has any of it, and nothing of what was is known behind
    /// it; `digest`, with the try, tells this history from all others.
    pub(crate) fn restore(&mut self, node: NodeId, attempt: Attempt, wall: u64, digest: u64) {
        self.history = self.history.extended(node, attempt.0, digest);
        self.clock.was_told(wall);
        self.members.change(|other, state| {
            *state = match *state {
                kept if other != node && canary!(RestoreKeepsOthers) => kept,
                _ if other == node => MemberState::In { attempt },
                out @ MemberState::Out { reason: OutReason::Removed, .. } => out,
                MemberState::Down(reason) => MemberState::Down(reason),
                MemberState::In { .. } | MemberState::Joining { .. } | MemberState::Out { .. } => {
                    MemberState::Down(DownReason::Restored)
                }
            };
        });
        self.begin_behind(node);
    }

    /// The domain file names other members than before.
    pub(crate) fn fit_removed(&mut self, config: &GroupConfig) {
        self.removed = self.removed.intersection(config.members);
        if self.removed == config.members {
            self.removed = NodeSet::EMPTY;
        }
    }
}
