//! What a group's part is in the calls of its servers.
//!
//! What it is not: which calls wait for which, which is [`crate::calls::nested`].

use super::Group;
use crate::member::CallerState;
use crate::messages::envelope::Envelope;
use crate::output::{OrderOutput, Outbox};
use crate::table::GroupTable;
use crate::words::history::History;
use crate::words::ids::{Attempt, CallKey, GroupId, RequestKey};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorba_base::{Instant, NodeId};

/// Ends of a group's requests without a reply that this node was not delivered.
#[derive(Default)]
pub(crate) struct EndsUnheardOf {
    /// Of calls: who called, and in which of its requests.
    calls: Vec<(GroupId, History)>,
    /// The group, if requests of it were given up.
    skipping: Option<GroupId>,
}

/// What the local member knows of nested calls that other members may not know.
#[derive(Default)]
pub(super) struct NestedCalls {
    /// Behind what the group has, this member was delivered calls of groups that may know nothing
    /// of the requests in which they were made, or that were refused meanwhile: the group cannot
    /// go on from there.
    is_bound: bool,
    /// A call of its server has ended otherwise than this node knew.
    heard_otherwise: bool,
    /// Of groups that call this one: in which request each made a call that has ended, though
    /// somebody had answered it.
    in_doubt: Vec<(GroupId, History)>,
}

impl NestedCalls {
    pub(super) const fn is_bound(&self) -> bool {
        self.is_bound
    }

    pub(super) const fn has_heard_otherwise(&self) -> bool {
        self.heard_otherwise
    }

    /// Replicas of that caller may have heard different things in one of its requests.
    pub(super) fn heard_in_doubt(&mut self, caller: GroupId, during: History) {
        self.in_doubt.push((caller, during));
    }

    /// The local member begins anew.
    pub(super) fn forget(&mut self) {
        *self = Self { in_doubt: core::mem::take(&mut self.in_doubt), ..Self::default() };
    }
}

impl Group {
    /// Whether its servers may call that group.
    pub(crate) fn may_call(&self, target: GroupId) -> bool {
        self.config.calls.contains(&target)
    }

    /// Its server calls: in which request, which of its calls it is, and under which try.
    pub(crate) fn begin_call(&mut self) -> Option<(History, u32, Attempt)> {
        self.member.as_deref_mut()?.begin_call()
    }

    /// How the local member stands with calls in that request.
    pub(crate) fn caller_state(&self, during: History) -> CallerState {
        self.member.as_deref().map_or(CallerState::Gone, |member| member.caller_state(during))
    }

    /// A call that its server made in that request has ended.
    pub(crate) fn end_call(&mut self, now: Instant, during: History) {
        if let Some(member) = &mut self.member {
            member.end_call(now, during);
        }
    }

    /// Says which of its requests the local member will not execute again.
    pub(crate) fn say_floor(&self, out: &mut Outbox) {
        let Some((attempt, up_to)) = self.member.as_deref().and_then(|member| member.floor())
        else {
            return;
        };
        out.push_back(
            OrderOutput::Submit(Envelope::Floor { group: self.id, attempt, up_to }.encode()).into(),
        );
    }

    /// This node was not up to date. `has_split`: whether what a group was delivered here is not
    /// all and nothing but what it was delivered.
    pub(crate) fn bind(&mut self, has_split: impl Fn(GroupId) -> bool) {
        let callers = self.catch_up_log.callers_behind(self.table.history);
        self.nested.is_bound |= callers.into_iter().any(has_split);
    }

    /// Calls are refused for good while nobody is in: whoever has executed one of them behind what
    /// the group has cannot bring that (seed 9800374 of the simulator's `calls`).
    pub(crate) fn mind_refused(&mut self, is_refused: impl Fn(CallKey) -> bool) {
        if !self.nested.is_bound && self.table.in_set().is_empty() {
            self.nested.is_bound =
                self.catch_up_log.calls_behind(self.table.history).any(is_refused);
        }
    }

    /// Which calls of other groups have ended without a reply, as `table` knows and this node did
    /// not: for each caller, in which of its requests. Of what was given up no name is known.
    pub(crate) fn ends_unheard_of(&self, table: &GroupTable) -> EndsUnheardOf {
        let known = &self.table.endings;
        if known.count() == table.endings.count() {
            return EndsUnheardOf::default();
        }
        let heard_of: BTreeSet<&RequestKey> = known.ends().map(|(key, _, _)| key).collect();
        let news = table.endings.ends().filter(|(key, _, _)| !heard_of.contains(key));
        let calls = news.filter_map(|(key, _, _)| match key {
            RequestKey::Nested(call) => Some((call.caller, call.during)),
            RequestKey::Gateway(_) | RequestKey::Client { .. } => None,
        });
        let given_up: Vec<History> = known.skipped().collect();
        let any_skipped = table.endings.skipped().any(|at| !given_up.contains(&at));
        EndsUnheardOf { calls: calls.collect(), skipping: any_skipped.then_some(self.id) }
    }

    /// This node was not up to date, and knew nothing of these ends: the server may have been told
    /// of replies.
    pub(crate) fn doubt_what_was_heard(&mut self, ends: &[EndsUnheardOf]) {
        let Some(member) = &self.member else { return };
        let is_heard = |(caller, during): &(GroupId, History)| {
            *caller == self.id && member.has_heard_in(*during)
        };
        let is_skipped = |ends: &EndsUnheardOf| {
            let callee = ends.skipping.filter(|group| self.may_call(*group));
            callee.is_some() && member.has_heard_in(History::EMPTY)
        };
        let is_concerned =
            ends.iter().any(|ends| is_skipped(ends) || ends.calls.iter().any(is_heard));
        self.nested.heard_otherwise |= is_concerned;
    }

    /// Its local member may have been told what did not happen.
    pub(crate) const fn is_in_doubt(&self) -> bool {
        self.nested.has_heard_otherwise()
    }

    /// Replies of these groups are in doubt. Whether that is news to a local member that was told
    /// any.
    pub(crate) fn doubt_replies_of(&mut self, in_doubt: &[GroupId]) -> bool {
        let Some(member) = &self.member else { return false };
        let is_news = !self.nested.heard_otherwise
            && in_doubt.iter().any(|group| self.may_call(*group))
            && member.has_heard_in(History::EMPTY);
        self.nested.heard_otherwise |= is_news;
        is_news
    }

    /// Groups whose replicas may have heard different things of this one, and in which of their
    /// requests; once.
    pub(crate) fn take_callers_in_doubt(&mut self) -> Vec<(GroupId, History)> {
        core::mem::take(&mut self.nested.in_doubt)
    }

    /// Members that are in, or join, with their tries.
    pub(crate) fn present(&self) -> Vec<(NodeId, Attempt)> {
        let (inside, joining) = (self.table.in_set(), self.table.joining());
        let nodes = inside.union(joining);
        nodes.iter().filter_map(|node| Some((node, self.table.attempt(node)?))).collect()
    }
}
