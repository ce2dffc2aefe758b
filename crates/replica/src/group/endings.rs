//! Requests that servers did not answer: what members say of them, and what follows for the group.
//!
//! What it is not: the conclusions, which are [`crate::table::endings`]'s. Invariant: every node
//! comes to the same ones at the same place of the order; what the local server did leads to
//! messages only.

use super::{Group, NodeContext};
use crate::member::{Member, Word};
use crate::messages::envelope::{Envelope, ProcessEnd, RequestEnvelope};
use crate::output::{Event, GatewayOutput, OrderOutput, Outbox, Output};
use crate::table::endings::{
    Conclusion, Electorate, Endings, REPLAYED, ROUNDS, Report, RequestEnd,
};
use crate::table::{DownReason, Lacks, MemberState};
use crate::words::config::GroupConfig;
use crate::words::history::History;
use crate::words::ids::{Attempt, RequestKey};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorba_base::policy::Style;
use quorba_base::{Duration, Instant, NodeId, NodeSet};

/// Not the number of a comparison, which count from 1: one more is wanted.
const COMPARE_AGAIN: u64 = 0;
/// How long after one that came to nothing; twice as long each time, up to the second.
const COMPARE_AFTER: Duration = Duration::from_secs(5);
const COMPARE_AFTER_MAX: Duration = Duration::from_secs(300);
/// The longest that a server may take longer than another one for what is kept.
const KEPT_MAX: Duration = Duration::from_secs(24 * 3600);

/// How often a server was ended because it did not answer what others, who are gone, have answered.
/// It may take as long as it took them, and nobody knows how long that was.
#[derive(Default)]
pub(super) struct Hung {
    at: Option<History>,
    times: u32,
}

impl Hung {
    /// So much longer than another server it may take: twice as long after each time.
    fn patience(&self, at: History, config: &GroupConfig) -> Duration {
        let times = if self.at == Some(at) { self.times } else { 0 };
        let longer = config.server_reply.saturating_mul(3 << times.min(16));
        longer.min(KEPT_MAX)
    }

    fn ended(&mut self, at: History) {
        if self.at == Some(at) {
            self.times = self.times.saturating_add(1);
        } else {
            *self = Self { at: Some(at), times: 1 };
        }
    }
}

impl Group {
    /// Whether requests have ended without a reply, in an order that all have.
    pub(crate) fn has_ends(&self) -> bool {
        self.table.endings.count() > 0 && !self.is_stateless()
    }

    /// Whether nobody executes this request, whoever be in.
    pub(crate) fn knows_end(&self, request: &RequestEnvelope, by: (NodeId, u64)) -> bool {
        self.has_ends() && self.table.endings.end_of(&request.key(by.0, by.1)).is_some()
    }

    /// What the member on `origin` says of a request.
    pub(super) fn deliver_ending(
        &mut self,
        now: Instant,
        (origin, attempt): (NodeId, Attempt),
        request: (RequestKey, History),
        report: Report,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if self.table.attempt(origin) != Some(attempt) {
            return;
        }
        let before = self.table.clone();
        self.table.endings.hear(origin, request, report);
        self.changed(now, &before, here, out);
    }

    /// What the state of the member on `origin` is, in short.
    pub(super) fn deliver_digest(
        &mut self,
        now: Instant,
        (origin, attempt): (NodeId, Attempt),
        (number, digest): (u64, Option<u64>),
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if self.table.attempt(origin) != Some(attempt) {
            return;
        }
        if number >= ROUNDS {
            return self.deliver_agreed(origin, number, digest);
        }
        if number == REPLAYED {
            if let Some(request) = self.table.endings.last_in_doubt() {
                self.compare_states(request);
                if self.table.in_set() == NodeSet::EMPTY.with(origin) {
                    self.table.endings.end_again(|_, _| true);
                }
            }
            return;
        }
        let states = &mut self.table.endings.states;
        if number == COMPARE_AGAIN {
            if let Some(request) = states.doubt().filter(|_| states.wants_another()) {
                self.compare_states(request);
            }
            return;
        }
        states.hear(origin, number, digest);
        self.heed_verdicts(now, here, out);
    }

    /// States that could not be had are asked for again, ever more seldom: a server that hung may
    /// have come back.
    pub(super) fn mind_doubt(&mut self, now: Instant, in_primary: bool, out: &mut Outbox) {
        let inside = self.table.in_set();
        let is_mine = inside.lowest() == Some(self.here) && in_primary;
        if !is_mine || !self.table.endings.states.wants_another() {
            if self.table.endings.states.doubt().is_none() {
                self.comparisons = 0;
            }
            self.compare_at = None;
            return;
        }
        let wait = COMPARE_AFTER.saturating_mul(1 << self.comparisons.min(16));
        let at = *self.compare_at.get_or_insert(now + wait.min(COMPARE_AFTER_MAX));
        if at > now {
            return;
        }
        self.compare_at = None;
        self.comparisons = self.comparisons.saturating_add(1);
        if let Some(attempt) = self.table.attempt(self.here) {
            let (group, number, digest) = (self.id, COMPARE_AGAIN, None);
            let again = Envelope::StateDigest { group, attempt, number, digest };
            out.push_back(OrderOutput::Submit(again.encode()).into());
        }
    }

    /// The server process of the member on `node`, in by that try, has ended.
    pub(super) fn note_process_end(&mut self, node: NodeId, attempt: Attempt, ended: &ProcessEnd) {
        if self.table.attempt(node) == Some(attempt) && self.table.style != Style::Stateless {
            self.table.endings.process_ended(&ended.at, ended.answered);
        }
    }

    /// A process may have ended at a request before it was ordered.
    pub(super) fn note_ended_before(
        &mut self,
        request: &RequestEnvelope,
        (origin, incarnation): (NodeId, u64),
    ) {
        if request.ended_process {
            let named = (request.key(origin, incarnation), self.table.history);
            self.table.endings.process_ended(&[named], 0);
        }
    }

    /// Does what follows from all that was said of requests. Whether anything did.
    pub(super) fn heed_endings(
        &mut self,
        now: Instant,
        here: NodeContext,
        out: &mut Outbox,
    ) -> bool {
        let found = if self.table.endings.is_settled() {
            Vec::new()
        } else {
            self.table
                .with_electorate(&self.config, |endings, electorate| endings.conclude(electorate))
        };
        let differ = self.table.endings.states.conclude();
        let any = !found.is_empty() || !differ.is_empty();
        for conclusion in found {
            match conclusion {
                Conclusion::Ended { key, at, end } => {
                    self.request_ended(at, end, out);
                    self.joiners_may_differ(now, (at, end), here, out);
                    if self.table.in_set().is_empty() && self.replay.is_none() {
                        out.push_back(GatewayOutput::Ended { group: self.id, key, end }.into());
                    }
                }
                Conclusion::AtFault { node, reason, at } => {
                    self.at_fault(now, (node, at), reason, here, out);
                }
                Conclusion::CallersMayDiffer { caller, during } => {
                    self.nested.heard_in_doubt(caller, during);
                }
            }
        }
        for node in differ {
            let (group, request) = (self.id, self.table.history.count);
            let expelled = !self.is_last(node);
            let first = request;
            out.push_back(Output::Event(Event::Diverged { group, node, first, request, expelled }));
            if expelled && let Some(attempt) = self.table.attempt(node) {
                self.deliver_down(now, node, attempt, DownReason::Diverged, here, out);
            }
        }
        any
    }

    /// Whether nobody else has the state, so that it is never at fault.
    pub(super) fn is_last(&self, node: NodeId) -> bool {
        let mut others = self.table.in_set();
        others.remove(node);
        others.is_empty() && !self.config.durable
    }

    fn at_fault(
        &mut self,
        now: Instant,
        (node, at): (NodeId, History),
        reason: DownReason,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let by = self.table.attempt(node);
        // Whatever comes of it, what it said was heeded.
        self.table.endings.leave(node);
        let Some(attempt) = by else { return };
        if self.is_last(node) {
            if node == self.here && self.table.endings.is_handed_over(at) {
                self.try_once_more(reason, out);
            }
            return;
        }
        if reason == DownReason::Diverged && self.config.state_object.is_none() {
            // It would execute the same anew, and differ again.
            return;
        }
        let (group, request) = (self.id, at.count);
        out.push_back(Output::Event(Event::AtFault { group, node, request, reason }));
        self.deliver_down(now, node, attempt, reason, here, out);
    }

    /// The server of the local member, which leads alone, did not answer what the leader before it
    /// may have answered: the next one tries once. If it cannot, it is the request.
    fn try_once_more(&mut self, reason: DownReason, out: &mut Outbox) {
        let Some(member) = self.member.as_deref_mut().filter(|_| self.replay.is_none()) else {
            return;
        };
        if member.begins_anew() {
            self.replace_server(reason, out);
        } else {
            member.says_again();
        }
    }

    /// A request has ended without a reply of a server, for all.
    pub(super) fn request_ended(&mut self, at: History, end: RequestEnd, out: &mut Outbox) {
        let (group, request) = (self.id, at.count);
        self.recent.ended(request, end);
        out.push_back(Output::Event(Event::RequestEnded { group, request, end }));
        if end == RequestEnd::Skipped && !self.config.calls.is_empty() && self.replay.is_none() {
            out.push_back(GatewayOutput::EndCalls { caller: self.id, during: at }.into());
        }
        if end == RequestEnd::Skipped
            && let Some(member) = &mut self.member
        {
            member.gives_up(at);
        }
        if end == RequestEnd::EndsServers || self.table.style == Style::Stateless {
            // Who executed it is gone, and the others did not.
            return;
        }
        if self.table.style.is_passive()
            && let Some(member) = &mut self.member
        {
            member.leader_had_no_reply(at);
        }
        if self.config.durable && self.replay.is_none() {
            self.log_snapshots.want();
        }
        self.compare_states(request);
    }

    /// Who is being given requests leaves out one that was given up, and that others may have
    /// executed; and it may have replied itself, before it was cut off, to one that has no reply
    /// (seed 9310373 of the simulator's `calls`): it is to be given a state. So is who stands by
    /// and came in with a request that was given up since: it may have executed that when it led
    /// (seed 401357 of `calls`).
    pub(super) fn joiners_may_differ(
        &mut self,
        now: Instant,
        (at, end): (History, RequestEnd),
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if end == RequestEnd::EndsServers || !self.config.can_recover() {
            return;
        }
        let endings = &self.table.endings;
        let may_differ = |node| {
            let has_it = endings.joined_with_count(node).is_some_and(|count| count >= at.count);
            (has_it, end == RequestEnd::Skipped)
        };
        let stands_by = |node| self.table.style.is_passive() && self.table.leading() != Some(node);
        let goes = |(node, state): (NodeId, MemberState)| {
            let (has_it, is_given_up) = may_differ(node);
            match state {
                MemberState::Joining { attempt, lacks: Lacks::Requests, .. } => {
                    (has_it || is_given_up).then_some((node, attempt))
                }
                MemberState::In { attempt } if stands_by(node) => {
                    (has_it && is_given_up).then_some((node, attempt))
                }
                _ => None,
            }
        };
        let going: Vec<_> = self.table.members().filter_map(goes).collect();
        for (node, attempt) in going {
            self.deliver_down(now, node, attempt, DownReason::MayDiffer, here, out);
        }
    }

    /// The members that have executed this request are asked for their states, if they can give
    /// them.
    pub(crate) fn compare_states(&mut self, request: u64) {
        if self.config.by_application {
            // They need not be alike.
            return;
        }
        let executing =
            self.table.with_electorate(&self.config, |_, electorate| electorate.executing);
        let can_give = self.config.state_object.is_some() && !self.table.style.is_passive();
        let joining = self.table.joining();
        let begin = self.table.endings.states.begin(request, (executing, joining), can_give);
        let is_in = matches!(self.table.state(self.here), Some(MemberState::In { .. }));
        if let (Some(number), Some(member)) = (begin, self.member.as_deref_mut())
            && is_in
            && self.replay.is_none()
        {
            member.learn(&self.table.endings);
            member.compare_states(number);
        }
    }

    /// The local member hears what the group knows of requests, and says what it must.
    pub(super) fn mind_endings(&mut self, now: Instant, in_primary: bool, out: &mut Outbox) {
        let stateless = self.is_stateless();
        let Some(member) = &mut self.member else { return };
        let mut others = self.table.in_set();
        others.remove(self.here);
        member.mind_others(!others.is_empty(), stateless);
        let endings = &self.table.endings;
        member.learn(endings);
        member.mind_lateness(endings.late().contains(self.here));
        if endings.has_questions() {
            let here = self.here;
            if let Some(waiting) = member.waiting() {
                let at = waiting.at;
                let (is_answered, is_kept) =
                    self.table.with_electorate(&self.config, |endings, electorate| {
                        let is_answered = endings.is_answered_elsewhere(here, at, electorate);
                        (is_answered, endings.is_kept(at, electorate))
                    });
                if is_answered {
                    member.answered_elsewhere(now, at);
                } else if is_kept {
                    member.answered_elsewhere(now + self.hung.patience(at, &self.config), at);
                } else {
                    member.forgive();
                }
            }
            let asked = self.table.with_electorate(&self.config, |endings, electorate| {
                endings.asked_of(here, electorate)
            });
            member.hold(self.table.endings.held());
            member.inquire(&asked);
        } else {
            member.hold(BTreeSet::new());
            member.inquire(&[]);
        }
        if !in_primary {
            return;
        }
        let group = self.id;
        while let Some(word) = member.next_word() {
            let word = match word {
                Word::Report(attempt, request, report) => {
                    Envelope::Ending { group, attempt, request, report }
                }
                Word::Digest(attempt, number, digest) => {
                    Envelope::StateDigest { group, attempt, number, digest }
                }
            };
            out.push_back(OrderOutput::Submit(word.encode()).into());
        }
    }

    /// The server has had for too long what others have answered. It is given up, unless they are
    /// gone, and what they had with them.
    pub(super) fn overdue(&mut self, in_primary: bool, out: &mut Outbox) {
        let mut others = self.table.in_set();
        others.remove(self.here);
        let waiting = self.member.as_deref().and_then(Member::waiting);
        let is_kept = waiting.is_some_and(|waiting| {
            let kept = |e: &mut Endings, all: &Electorate<'_>| e.is_kept(waiting.at, all);
            self.table.with_electorate(&self.config, kept)
        });
        if others.is_empty() && !is_kept || !in_primary {
            return;
        }
        if let Some(waiting) = waiting.filter(|_| is_kept) {
            self.hung.ended(waiting.at);
        }
        let consequence =
            self.member.as_deref_mut().and_then(|m| m.server_lost(DownReason::ServerHung));
        if let Some(crate::member::Consequence::Lost(attempt, reason)) = consequence {
            self.lost(attempt, reason, out);
        }
    }
}
