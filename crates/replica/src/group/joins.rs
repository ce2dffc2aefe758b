//! Members come and go: what the order says of it, and what this node's member does then.
//!
//! What it is not: who may come in, which the table knows.

use super::{Group, NodeContext};
use crate::messages::envelope::{Envelope, ProcessEnd};
use crate::output::{OrderOutput, Outbox};
use crate::server::executor::Returning;
use crate::state::catch_up_log;
use crate::table::endings::RequestEnd;
use crate::table::offer::Offer;
use crate::table::{DownReason, Lacks, MemberState, OutReason};
use crate::words::history::History;
use crate::words::ids::Attempt;
use quorba_base::policy::Concurrency;
use quorba_base::{Instant, NodeId, NodeSet};

impl Group {
    pub(crate) fn deliver_join(
        &mut self,
        now: Instant,
        node: NodeId,
        attempt: Attempt,
        offer: Offer,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let before = self.table.clone();
        let Some(state) = self.table.join(&self.config, node, attempt, offer) else { return };
        let Offer { claim, disk_state, known, .. } = offer;
        let mut refused = None;
        self.note_log(node, state, claim, disk_state);
        self.follow_revival(&before, node, here, out);
        if let Some(member) = self.member.as_deref_mut() {
            match state {
                MemberState::In { .. } if node == here.node => {
                    self.nested.forget();
                    refused = member.has_gap(attempt, self.table.history);
                    if refused.is_none() {
                        member.admitted(attempt, self.table.history);
                    }
                }
                MemberState::Joining { donor, lacks, .. } if node == here.node => {
                    let joined_at = self.table.history;
                    refused = member.must_receive(attempt, donor, lacks, joined_at);
                    self.joined_at = (here.place, self.table.history);
                }
                MemberState::Out { reason: OutReason::Removed, .. } if node == here.node => {
                    member.kept_out(attempt);
                }
                MemberState::Out { reason, .. } if node == here.node => {
                    member.refused(attempt, reason == OutReason::TotalLoss);
                    // What it said of before does not count.
                    let is_told = known == before.history && !member.has_not_looked();
                    if reason == OutReason::TotalLoss && self.config.durable && !is_told {
                        self.look_up(out);
                    }
                }
                _ => {}
            }
        }
        if matches!(state, MemberState::In { .. }) && self.table.endings.states.is_uncompared(node)
        {
            // Or behind what its server heard of another group.
            let request = self.table.endings.last_in_doubt().unwrap_or(self.table.history.count);
            self.compare_states(request);
        }
        if self.open_at.is_none() && !self.table.opened && !self.table.in_set().is_empty() {
            self.open_at = Some(now + self.config.open_after);
        }
        self.changed(now, &before, here, out);
        self.follow(refused, here, out);
        // Behind `changed`, which ends what was given to an earlier try of the same member.
        if let MemberState::Joining { donor, lacks, .. } = state
            && donor == here.node
        {
            self.give((node, attempt), lacks, offer, here, out);
        }
    }

    /// This node has what the joiner lacks.
    fn give(
        &mut self,
        (joiner, attempt): (NodeId, Attempt),
        lacks: Lacks,
        offer: Offer,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let Some(member) = &mut self.member else { return };
        match lacks {
            Lacks::Updates => {
                let from = offer.held_checkpoint.unwrap_or(History::EMPTY);
                let consequence = member.update(Returning { joiner, attempt, from });
                self.follow(consequence, here, out);
            }
            Lacks::State => {
                let consequence = member.capture(joiner, attempt);
                self.follow(consequence, here, out);
            }
            Lacks::Requests => {
                // Without another member's state there is nothing else to be had.
                let is_given_states = self.config.can_recover() && !self.config.by_application;
                let has_choice = is_given_states && !self.table.in_set().is_empty();
                let bytes_max = if has_choice { catch_up_log::SHORT_BYTES } else { usize::MAX };
                match offer.claim.and_then(|claim| self.catch_up_log.since(claim)) {
                    Some(missed) if missed.len() <= bytes_max => {
                        member.give_requests(joiner, attempt, missed);
                    }
                    Some(_) => {
                        self.submit_failed(joiner, attempt, DownReason::RequestsTooLong, out);
                    }
                    None => self.submit_failed(joiner, attempt, DownReason::RequestsUnknown, out),
                }
            }
        }
    }

    pub(crate) fn deliver_joined(
        &mut self,
        now: Instant,
        node: NodeId,
        attempt: Attempt,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let before = self.table.clone();
        if self.table.joined(&self.config, node, attempt) {
            if node == here.node {
                self.nested.forget();
            }
            let again = self.doubt_replay(node, before.state(node));
            self.changed(now, &before, here, out);
            if let Some(ended) = again {
                self.joiners_may_differ(now, ended, here, out);
            }
        }
    }

    /// A member that has come in was given requests that have no reply, by its own server or in
    /// what it executes again, and those that were in did not compare their states with its. What
    /// servers did with the calls that were with them together with such a one, nobody knows; and
    /// one that was given up it leaves out, which others may have executed. If nobody else is in,
    /// what it did with them is the group's state: the first of them.
    fn doubt_replay(
        &mut self,
        node: NodeId,
        before: Option<MemberState>,
    ) -> Option<(History, RequestEnd)> {
        let Some(MemberState::Joining { lacks, .. }) = before else { return None };
        let is_all_executed_again = lacks == Lacks::State && self.config.replay_bytes_max.is_some();
        let may_differ = is_all_executed_again
            && (self.config.concurrency != Concurrency::Sequential
                || self.table.with_electorate(&self.config, |endings, electorate| {
                    endings.may_have_executed_skipped(electorate)
                }));
        let endings = &self.table.endings;
        let is_uncompared = endings.states.is_uncompared(node);
        let behind = match endings.joined_with_count(node) {
            _ if is_uncompared || may_differ => 0,
            Some(count) => count,
            None => return None,
        };
        let heard_behind = is_uncompared.then_some(self.table.history.count);
        let last = endings.last_in_doubt().or(heard_behind);
        let request = last.filter(|request| *request > behind)?;
        self.table.endings.states.comes_with_its_own(node);
        self.compare_states(request);
        let is_alone = self.table.in_set() == NodeSet::EMPTY.with(node);
        let behind = |count, _| count > behind;
        is_alone.then(|| self.table.endings.end_again(behind)).flatten()
    }

    pub(crate) fn deliver_down(
        &mut self,
        now: Instant,
        node: NodeId,
        attempt: Attempt,
        reason: DownReason,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let before = self.table.clone();
        if self.table.down(&self.config, node, attempt, reason) {
            self.changed(now, &before, here, out);
        }
    }

    pub(super) fn submit_failed(
        &self,
        joiner: NodeId,
        attempt: Attempt,
        reason: DownReason,
        out: &mut Outbox,
    ) {
        let failed = Envelope::StateFailed { group: self.id, joiner, attempt, reason };
        out.push_back(OrderOutput::Submit(failed.encode()).into());
    }

    pub(super) fn submit_down(
        &self,
        attempt: Option<Attempt>,
        reason: DownReason,
        out: &mut Outbox,
    ) {
        if let Some(attempt) = attempt {
            let ended = ProcessEnd::default();
            let down = Envelope::Down { group: self.id, attempt, reason, ended };
            out.push_back(OrderOutput::Submit(down.encode()).into());
        }
    }
}
