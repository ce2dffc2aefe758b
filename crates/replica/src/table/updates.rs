//! Who is brought to where the next update of a passive group's leader goes on from.
//!
//! What it is not: the updates, which are the leader's (see [`crate::chain`]). Invariant: as for
//! the table, a pure function of what was delivered.

use super::{GroupTable, Lacks, MemberState};
use crate::config::GroupConfig;
use crate::history::History;
use quorba_base::NodeId;

impl GroupTable {
    /// The leader, which has the updates since a checkpoint, if it still leads. They go in front of
    /// all other ways: whoever comes in by another one has not seen the last checkpoint, and the
    /// next one has to be a whole state for everybody.
    pub(super) fn updates_since(
        &self,
        config: &GroupConfig,
        node: NodeId,
        held_checkpoint: Option<History>,
    ) -> Option<NodeId> {
        let held_checkpoint = held_checkpoint
            .filter(|held_checkpoint| held_checkpoint.count <= self.history.count)?;
        let is_kept = config.checkpoint.updates && !config.logged && held_checkpoint.count > 0;
        let leader = self.leading().filter(|_| is_kept && self.style.is_passive());
        leader.filter(|leader| *leader != node)
    }

    /// Whether members came, since the table was as `before`, that are not where the next update of
    /// the leader `here` goes on from.
    pub(crate) fn has_strangers(&self, before: &Self, here: NodeId) -> bool {
        let is_brought = |state: Option<MemberState>| match state {
            Some(MemberState::Joining { donor, lacks, .. }) => {
                donor == here && matches!(lacks, Lacks::State | Lacks::Updates)
            }
            _ => false,
        };
        let is_stranger = |(node, state): (NodeId, MemberState)| match state {
            _ if node == here || before.state(node) == Some(state) => false,
            MemberState::Joining { .. } => !is_brought(Some(state)),
            MemberState::In { attempt } => {
                before.attempt(node) != Some(attempt) || !is_brought(before.state(node))
            }
            MemberState::Down(_) | MemberState::Out { .. } => false,
        };
        self.members().any(is_stranger)
    }
}
