//! What changes in a group while it works, and what keeps its members alike: commands, duties,
//! checkpoints.
//!
//! What it is not: membership. Invariant: the local member's duty is what the table says.

use super::{Group, NodeContext};
use crate::command::Command;
use crate::config::GroupConfig;
use crate::endings::RequestEnd;
use crate::envelope::Envelope;
use crate::member::Comparison;
use crate::output::{DriverOutput, Event, OrderOutput, Outbox, Output, ServerCommand};
use crate::passive::{CheckpointPiece, Source};
use crate::style::Duty;
use crate::table::{DownReason, GroupTable, MemberState};
use quorba_base::policy::Style;
use quorba_base::{Instant, NodeId, NodeSet};

/// How the replies of a group with this style are compared.
fn comparison_of(style: Style, config: &GroupConfig) -> Comparison {
    match style {
        Style::ActiveWithVoting => Comparison::Before,
        Style::Active | Style::SemiActive if config.comparison.requests > 0 => {
            Comparison::Behind(config.comparison.requests.into())
        }
        _ => Comparison::Off,
    }
}

impl Group {
    /// The table for nodes that are not up to date, as it will be in a view.
    pub(crate) fn table_for(&self, current: NodeSet, view: NodeSet) -> GroupTable {
        self.table.kept_only(&self.config, current, view)
    }

    /// What keeps the members alike, or changes how they work, at its place in the order.
    pub(crate) fn deliver_other(
        &mut self,
        now: Instant,
        by: (NodeId, u64),
        envelope: Envelope,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let (origin, _) = by;
        match envelope {
            Envelope::Reply { to, giop, .. } => self.deliver_reply(origin, to, giop, here, out),
            Envelope::Joined { attempt, .. } => {
                self.deliver_joined(now, origin, attempt, here, out);
            }
            Envelope::Down { attempt, reason, ended, .. } => {
                self.note_process_end(origin, attempt, &ended);
                self.deliver_down(now, origin, attempt, reason, here, out);
            }
            Envelope::Ending { attempt, request, report, .. } => {
                self.deliver_ending(now, (origin, attempt), request, report, here, out);
            }
            Envelope::StateDigest { attempt, number, digest, .. } => {
                self.deliver_digest(now, (origin, attempt), (number, digest), here, out);
            }
            Envelope::StateFailed { joiner, attempt, reason, .. } => {
                self.deliver_down(now, joiner, attempt, reason, here, out);
            }
            Envelope::Full { attempt, is_full, .. } => {
                self.deliver_full(origin, attempt, is_full, out);
            }
            Envelope::Open { .. } => self.deliver_open(out),
            Envelope::Checkpoint { attempt, number, piece, .. } => {
                let source = Source { leader: origin, attempt, number };
                self.deliver_checkpoint(source, &piece, here, out);
            }
            Envelope::Votes { attempt, votes, .. } => {
                self.deliver_votes(now, origin, attempt, &votes, here, out);
            }
            Envelope::Released { released, .. } => self.deliver_released(by, &released),
            Envelope::ReadMark { number, .. } => self.deliver_mark(by, number, here, out),
            Envelope::Command { id, command, .. } => {
                self.deliver_command(now, by, id, command, here, out);
            }
            Envelope::Request(_)
            | Envelope::Join { .. }
            | Envelope::Floor { .. }
            | Envelope::Outside { .. } => unreachable!("the replica delivers them by itself"),
            Envelope::Define { .. }
            | Envelope::Catalog { .. }
            | Envelope::Hello(_)
            | Envelope::Snapshot(_)
            | Envelope::Recorded { .. } => {
                unreachable!("they have no group")
            }
        }
    }

    /// An operator's command, at its place in the order.
    pub(crate) fn deliver_command(
        &mut self,
        now: Instant,
        (origin, incarnation): (NodeId, u64),
        id: u64,
        command: Command,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let result = command.check(&self.config, &self.table);
        let is_mine = (origin, incarnation) == (here.node, here.incarnation);
        if let Command::Backup(_) = command {
            if is_mine && self.replay.is_none() {
                self.back_up(id, result, out);
            }
            return;
        }
        if result.is_ok() {
            let before = self.table.clone();
            let may_differ = self.is_stateless();
            match command {
                Command::SetStyle(style) => self.table.set_style(style),
                Command::Promote(node) => self.table.promote(node),
                Command::Add(node) => self.table.add(node),
                Command::Remove(node) => self.table.remove(&self.config, node),
                Command::Skip(at) | Command::SkipAnswered(at) => {
                    self.table.endings.skip(at);
                    self.request_ended(at, RequestEnd::Skipped, out);
                    self.joiners_may_differ(now, (at, RequestEnd::Skipped), here, out);
                }
                // Its node says so when it asks.
                Command::Adopt(_) => {}
                Command::Backup(_) => unreachable!("it changes nothing"),
                Command::Restore { .. } => self.restore(command, here, out),
            }
            if may_differ
                && !self.is_stateless()
                && let Some(member) = &mut self.member
            {
                member.begins_at(self.table.history);
            }
            out.push_back(Output::Event(Event::Changed { group: self.id, command }));
            self.changed(now, &before, here, out);
            self.heed_change(command, &before, here, out);
        }
        if let Command::Restore { attempt, .. } = command {
            if is_mine {
                self.restore_is_over((id, attempt), result, out);
            }
        } else if is_mine {
            out.push_back(DriverOutput::Commanded { id, result }.into());
        }
    }

    /// What a command that was carried out means for the local member.
    fn heed_change(
        &mut self,
        command: Command,
        before: &GroupTable,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        match command {
            Command::Add(node) if node == here.node => self.come_back(),
            Command::Remove(node) if node == here.node => self.go_out(before, out),
            Command::Adopt(node) if node == here.node && self.replay.is_none() => {
                if let Some(member) = &mut self.member {
                    member.adopt(self.table.history);
                }
            }
            _ => {}
        }
        if before.style == Style::ActiveWithVoting && before.style != self.table.style {
            self.let_all_go(here, out);
        }
        if self.is_stateless()
            && let Some(member) = &mut self.member
        {
            // It needs no state.
            member.reconsider();
        }
        if !before.style.is_passive()
            && self.table.style.is_passive()
            && self.replay.is_none()
            && let (Some(member), Some(request)) = (&mut self.member, self.table.odd_unshared())
        {
            member.leads_in_doubt(request);
        }
        if command == Command::SetStyle(Style::ColdPassive)
            && let Some(member) = &mut self.member
        {
            // Servers run on until a state is kept elsewhere.
            member.want_checkpoint();
        }
    }

    /// The local member takes no part from here on. What its server knows gets old: another process
    /// waits for the day on which it is added.
    fn go_out(&mut self, before: &GroupTable, out: &mut Outbox) {
        let Some(member) = self.member.as_deref_mut().filter(|_| self.replay.is_none()) else {
            return;
        };
        if matches!(before.state(self.here), Some(MemberState::Down(_)) | None) {
            return;
        }
        if member.withdraw() {
            let command = ServerCommand::Restart(DownReason::ServerExited);
            out.push_back(DriverOutput::Server { group: self.id, command }.into());
        }
    }

    /// The local member may ask again.
    fn come_back(&mut self) {
        if let Some(member) = &mut self.member {
            member.reconsider();
        }
    }

    /// From here on replies are compared as the table's style wants it.
    pub(super) fn compare(&mut self) {
        self.compare_behind(self.table.history.count);
    }

    /// As [`Self::compare`], if that is another way than before, from that request on.
    pub(super) fn compare_behind(&mut self, index: u64) {
        let comparison = comparison_of(self.table.style, &self.config);
        if let Some(member) = &mut self.member {
            member.compare(comparison, self.config.comparison, index);
        }
    }

    /// Whether replies, and calls, that differ only in what looks like padding are alike.
    pub(crate) const fn ignores_padding(&self) -> bool {
        self.config.comparison.ignore_padding
    }

    /// Gives the local member the duty that the table says it has.
    pub(super) fn assign(&mut self, out: &mut Outbox) {
        self.compare();
        let Some(member) = &self.member else { return };
        let me = self.here;
        let duty = Duty::of(self.table.style, self.table.leading() == Some(me));
        let others = self.table.in_set().union(self.table.joining());
        let audience = others.iter().any(|node| node != me);
        if self.replay.is_none() && self.config.can_recover() && member.may_differ_as(duty) {
            let attempt = self.table.attempt(me);
            self.lost(attempt, DownReason::MayDiffer, out);
        }
        let Some(member) = &mut self.member else { return };
        for (joiner, attempt) in member.take_duty(duty, audience) {
            self.submit_failed(joiner, attempt, DownReason::StateUnavailable, out);
        }
    }

    /// A piece of a checkpoint; it counts if the one who sent it leads.
    pub(crate) fn deliver_checkpoint(
        &mut self,
        source: Source,
        piece: &CheckpointPiece,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let Source { leader, attempt, number } = source;
        let is_leaders = self.table.leading() == Some(leader)
            && self.table.state(leader) == Some(MemberState::In { attempt });
        let Some(member) = self.member.as_deref_mut().filter(|_| is_leaders) else { return };
        if let Some(replay) = &mut self.replay {
            return replay.piece(source, piece.clone());
        }
        if leader != here.node {
            member.take_checkpoint(source, piece, self.table.odd_behind_join(here.node));
        } else if piece.is_last() {
            member.checkpoint_sent(number);
            self.send_checkpoint(None, out);
        } else {
            self.send_checkpoint(Some(number), out);
        }
    }

    pub(super) fn send_checkpoint(&mut self, delivered: Option<u64>, out: &mut Outbox) {
        let Some(member) = &mut self.member else { return };
        let Some((source, pieces)) = member.checkpoint_pieces(delivered) else { return };
        let Source { attempt, number, .. } = source;
        for piece in pieces {
            let piece = Envelope::Checkpoint { group: self.id, attempt, number, piece };
            out.push_back(OrderOutput::Submit(piece.encode()).into());
        }
    }
}
