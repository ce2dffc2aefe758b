//! What a group's part is in the calls of its servers.
//!
//! What it is not: which calls wait for which, which is [`crate::nested`].

use super::Group;
use crate::envelope::Envelope;
use crate::history::History;
use crate::ids::{Attempt, GroupId};
use crate::member::Standing;
use crate::output::{Outbox, Output};
use alloc::vec::Vec;
use quorba_base::{Instant, NodeId};

impl Group {
    /// Whether its servers may call that group.
    pub(crate) fn may_call(&self, target: GroupId) -> bool {
        self.config.calls.contains(&target)
    }

    /// Its server calls: in which request, which of its calls it is, and under which try.
    pub(crate) fn begin_call(&mut self) -> Option<(History, u32, Attempt)> {
        self.member.as_mut()?.begin_call()
    }

    /// How the local member stands with calls in that request.
    pub(crate) fn standing(&self, during: History) -> Standing {
        self.member.as_ref().map_or(Standing::Gone, |member| member.standing(during))
    }

    /// A call that its server made in that request has ended.
    pub(crate) fn end_call(&mut self, now: Instant, during: History) {
        if let Some(member) = &mut self.member {
            member.end_call(now, during);
        }
    }

    /// Says which of its requests the local member will not execute again.
    pub(crate) fn say_floor(&self, out: &mut Outbox) {
        let Some((attempt, up_to)) = self.member.as_ref().and_then(|member| member.floor()) else {
            return;
        };
        out.push_back(Output::Order(Envelope::Floor { group: self.id, attempt, up_to }.encode()));
    }

    /// This node was not up to date. `has_split`: whether what a group was delivered here is not
    /// all and nothing but what it was delivered.
    pub(crate) fn bind(&mut self, has_split: impl Fn(GroupId) -> bool) {
        let callers = self.trail.callers_behind(self.table.history);
        self.is_bound |= callers.into_iter().any(has_split);
    }

    /// Members that are in, or join, with their tries.
    pub(crate) fn present(&self) -> Vec<(NodeId, Attempt)> {
        let (inside, joining) = (self.table.in_set(), self.table.joining());
        let nodes = inside.union(joining);
        nodes.iter().filter_map(|node| Some((node, self.table.attempt(node)?))).collect()
    }
}
