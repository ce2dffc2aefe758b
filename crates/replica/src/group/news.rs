//! The table changed: people, the local member and the gateway are told.
//!
//! What it is not: the change itself, which was made in the order.

use super::{Group, NodeContext};
use crate::output::{DriverOutput, Event, GatewayOutput, Outbox, Output, ServerCommand};
use crate::table::{DownReason, GroupTable, MemberState, OutReason};
use quorba_base::Instant;

impl Group {
    /// The table changed from `before`: tell people, the member, and the gateway.
    pub(super) fn changed(
        &mut self,
        now: Instant,
        before: &GroupTable,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        self.tell_of_change(now, before, here, out);
        self.heed_verdicts(now, here, out);
    }

    fn tell_of_change(
        &mut self,
        now: Instant,
        before: &GroupTable,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        for (node, state) in self.table.members() {
            if before.state(node) != Some(state) {
                let is_down = matches!(state, MemberState::Down(_));
                let ended = before.last_try(node).filter(|_| is_down);
                out.push_back(Output::Event(Event::Member { group: self.id, node, state, ended }));
            }
        }
        if self.table.leading() != before.leading() {
            let leader = self.table.leading();
            out.push_back(Output::Event(Event::Leader { group: self.id, leader }));
        }
        if self.table.opened && !before.opened {
            self.open_at = None;
            out.push_back(Output::Event(Event::Opened { group: self.id }));
        }
        let repliers = |table: &GroupTable| table.repliers(&self.config, here.node);
        // In a group without an order what was with who went is given back, one by one. To submit
        // the rest as well would have it executed twice, and with what ends processes no member is
        // to be at before the last end is counted (seed 625 of the simulator's `styles`).
        let gives_back = self.is_stateless() && before.style == self.table.style;
        if repliers(&self.table) != repliers(before) && !gives_back {
            out.push_back(GatewayOutput::Resubmit { group: Some(self.id) }.into());
        }
        self.assign(out);
        self.tell_member(now, before, here, out);
    }

    /// The local member hears who is in, who needs nothing of it any more, and what became of it.
    fn tell_member(
        &mut self,
        now: Instant,
        before: &GroupTable,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let strangers = self.table.has_strangers(before, self.here);
        let Some(member) = &mut self.member else { return };
        let members = (self.table.joining(), self.table.in_set());
        if members != (before.joining(), before.in_set()) || strangers {
            member.members_changed(self.table.history.count, members, strangers);
        }
        for (node, state) in before.members() {
            let was_joining = matches!(state, MemberState::Joining { .. });
            if was_joining && self.table.state(node) != Some(state) && node != here.node {
                member.stop_giving(node);
            }
        }
        match self.table.state(here.node) {
            Some(MemberState::Down(reason))
                if before.state(here.node) != self.table.state(here.node) =>
            {
                let judged = before.attempt(here.node).is_some_and(|by| member.is_in_by(by));
                member.start_over(now, reason);
                if reason == DownReason::Diverged || judged && reason.is_of_server() {
                    // What it knows is wrong, or it does what no other does: another process begins
                    // with another member's state.
                    let _ = member.server_lost(reason);
                    let command = ServerCommand::Restart(reason);
                    out.push_back(DriverOutput::Server { group: self.id, command }.into());
                }
            }
            Some(MemberState::Out { reason: OutReason::TooMuchToReplay, .. }) => {
                member.shut_out();
            }
            Some(MemberState::Out { reason: OutReason::TotalLoss, .. })
                if self
                    .table
                    .members()
                    .all(|(_, state)| matches!(state, MemberState::Out { .. })) =>
            {
                member.is_out_in_vain();
            }
            Some(MemberState::Out { reason: OutReason::TotalLoss, .. })
                if !self.table.in_set().is_empty() || before.joining() != self.table.joining() =>
            {
                member.reconsider();
            }
            _ => {}
        }
    }
}
