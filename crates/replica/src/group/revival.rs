//! A durable group that nobody is in, and that goes on from its members' disks.
//!
//! What it is not: the decision, which is [`crate::table::disk_census`], and the log, which is
//! `replay`. Invariant: a member comes in by what its disk had only if its server has seen none of
//! it.

use super::{Group, NodeContext};
use crate::output::{DriverOutput, LogOutput, Outbox, ServerCommand};
use crate::table::disk_census::DiskState;
use crate::table::{DownReason, GroupTable, MemberState, OutReason};
use crate::words::history::History;
use crate::words::ids::Attempt;
use quorba_base::NodeId;

/// How often this node's log was looked up for the group, and what came of it.
#[derive(Default)]
pub(super) struct LogLooks {
    count: u64,
    /// The look that is under way, unless what it finds is of before.
    under_way: Option<u64>,
    /// A join changed whether the log alone has what the member has: so it is from here on.
    is_whole: Option<bool>,
}

impl LogLooks {
    /// What the look that is under way finds is of before.
    pub(super) const fn outdate(&mut self) {
        self.under_way = None;
    }

    /// Whether the log alone has what the member has, if that changed.
    pub(super) const fn set_whole(&mut self, is_whole: Option<bool>) {
        self.is_whole = is_whole;
    }
}

impl Group {
    /// The member on `node` said what its disk has. If it comes in with that, the log alone has all
    /// that it has, whether or not the disk was damaged before.
    pub(super) fn note_log(
        &mut self,
        node: NodeId,
        state: MemberState,
        claim: Option<History>,
        disk_state: DiskState,
    ) {
        let is_in = matches!(state, MemberState::In { .. });
        let by_log = matches!(disk_state, DiskState::UpTo(point) if Some(point.history) == claim);
        // Nor is there anything that it could lack before the first request.
        let is_first = self.table.history == History::EMPTY;
        if node == self.here && is_in && (by_log || is_first) {
            self.log_looks.is_whole = Some(true);
        }
    }

    /// The group may go on from what a member's disk has, and that need not be the one that joins,
    /// `node`: no log of another member has all then.
    pub(super) fn follow_revival(
        &mut self,
        before: &GroupTable,
        node: NodeId,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if self.table.history == before.history || !self.needs_state_on_disk() {
            return;
        }
        let is_in = self.table.in_set().contains(here.node);
        self.log_looks.is_whole = Some(is_in);
        let Some(MemberState::In { attempt }) = self.table.state(here.node) else { return };
        if node != here.node {
            self.come_in(attempt, out);
        }
    }

    fn come_in(&mut self, attempt: Attempt, out: &mut Outbox) {
        let history = self.table.history;
        let Some(member) = &mut self.member else { return };
        // Its server may have ended since it spoke, and taken with it what was given to it.
        if self.replay.is_none() && !member.revived(attempt, history) {
            self.submit_down(Some(attempt), DownReason::ServerExited, out);
        }
    }

    /// Whether the log alone has all that the member has, if that has changed.
    pub(crate) fn take_log_is_whole(&mut self) -> Option<bool> {
        self.log_looks.is_whole.take()
    }

    /// What does this node's log have? A look that is under way, and not of before, finds it.
    pub(super) fn look_up(&mut self, out: &mut Outbox) {
        if let Some(member) = &mut self.member {
            member.outdate_disk_state();
        }
        if self.log_looks.under_way.is_none() {
            self.log_looks.count += 1;
            self.log_looks.under_way = Some(self.log_looks.count);
            out.push_back(
                LogOutput::LookUp { group: self.id, number: self.log_looks.count }.into(),
            );
        }
    }

    /// The group was delivered something that counts: what the local member has said of its disk,
    /// or what is being looked up, is of before. The disk may count for it, so the member's word
    /// must not be that it ends in front of it.
    pub(crate) fn outdate_disk_state(&mut self) {
        self.log_looks.under_way = None;
        if let Some(member) = &mut self.member {
            member.outdate_disk_state();
        }
    }

    /// The disk has more than the local member could have said: it looks anew.
    pub(crate) fn disk_has_more(&mut self) {
        self.outdate_disk_state();
        self.reconsider();
    }

    /// Whether the local member says nothing of its disk, and has nothing said that is under way.
    pub(crate) fn has_no_word(&self) -> bool {
        let state = self.table.state(self.here);
        let takes_part =
            matches!(state, Some(MemberState::In { .. } | MemberState::Joining { .. }));
        takes_part && self.member.as_deref().is_none_or(|member| !member.asks())
    }

    /// Whether the member waits for what that look at its node's log has found.
    pub(crate) fn waits_for_look(&mut self, number: u64) -> bool {
        self.log_looks.under_way.take_if(|look| *look == number).is_some() && self.waits_for_log()
    }

    /// Whether the member waits for what its node's log has.
    fn waits_for_log(&self) -> bool {
        let total_loss = Some(OutReason::TotalLoss);
        let reason = match self.table.state(self.here) {
            Some(MemberState::Out { reason, .. }) => Some(reason),
            _ => None,
        };
        let member = self.member.as_deref();
        let waits = member.is_some_and(|member| member.is_out() && member.has_not_looked());
        self.config.durable && reason == total_loss && waits
    }

    /// The log was looked up: this is what the group would be after a start of the node.
    pub(crate) fn looked_up(&mut self, found: Option<Self>, out: &mut Outbox) {
        let Some(member) = &mut self.member else { return };
        let found = found.and_then(|group| group.member);
        if member.take_over(found) {
            let command = ServerCommand::Restart(DownReason::NotStarted);
            out.push_back(DriverOutput::Server { group: self.id, command }.into());
        }
    }
}
