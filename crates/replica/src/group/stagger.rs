//! Which members wait for which, and what they say of how far they are: see
//! [`crate::server::executor`]'s gate.
//!
//! Of a staggered group one member executes each request first. Of a chain each begins when the one
//! in front of it is through (Huang05 §3.4). Where callers want so many members to have executed
//! their calls, all members tell all nodes.
//!
//! What it is not: replicated; that is who goes ahead, which the table says. Invariant: nothing is
//! waited for that cannot be heard.

use super::Group;
use crate::messages::peer::PeerMessage;
use crate::output::{DriverOutput, Outbox};
use crate::words::ids::Attempt;
use alloc::collections::BTreeMap;
use quorba_base::policy::Replication;
use quorba_base::{NODES_MAX, NodeId, NodeSet};

/// How far members are.
#[derive(Default)]
pub(super) struct Through {
    /// What was heard last of others, each by the try that brought it in.
    heard: BTreeMap<NodeId, (Attempt, u64)>,
    /// What was said of the local member, to those that messages pass to.
    told: Option<(Attempt, u64, NodeSet)>,
}

impl Through {
    /// How far the member is that was brought in by that try.
    fn of(&self, node: NodeId, attempt: Option<Attempt>) -> u64 {
        match self.heard.get(&node) {
            Some((by, up_to)) if Some(*by) == attempt => *up_to,
            Some(_) | None => 0,
        }
    }
}

impl Group {
    /// A member is through all requests up to this one.
    pub(super) fn hear_through(&mut self, from: NodeId, attempt: Attempt, up_to: u64) {
        let through = self.through.get_or_insert_default();
        let known = through.heard.entry(from).or_insert((attempt, up_to));
        // Of two tries the later one counts, and of one the furthest.
        *known = (*known).max((attempt, up_to));
    }

    /// Messages may have been lost: everything is said again.
    pub(super) fn repeat_through(&mut self) {
        if let Some(through) = &mut self.through {
            through.told = None;
        }
    }

    /// How far another member is, as far as is known here.
    fn through_of(&self, node: NodeId) -> u64 {
        let attempt = self.table.attempt(node);
        self.through.as_deref().map_or(0, |through| through.of(node, attempt))
    }

    /// Has the local member wait for whom it is to, and says how far it is to whom that concerns.
    pub(super) fn mind_stagger(&mut self, out: &mut Outbox) {
        if self.member.is_none() {
            return;
        }
        if !self.config.staggered && !self.config.replication.counts_executed() {
            if self.through.take().is_some()
                && let Some(member) = &mut self.member
            {
                // It was so until the group was changed.
                member.follow(None);
            }
            return;
        }
        // Whoever follows knows somebody, or nobody yet.
        self.through.get_or_insert_default();
        let through = self.in_front().map(|node| self.through_of(node));
        if let Some(member) = &mut self.member {
            member.follow(through);
        }
        let listeners = self.listeners();
        if listeners.is_empty() {
            return self.repeat_through();
        }
        let known = self.member.as_deref().and_then(|member| member.through());
        let Some((attempt, up_to)) = known else { return };
        let told = Some((attempt, up_to, listeners));
        let through = self.through.get_or_insert_default();
        if through.told == told {
            return;
        }
        through.told = told;
        let message = PeerMessage::Through { group: self.id, attempt, up_to };
        for to in listeners.iter() {
            let (lane, bytes) = (message.lane(), message.encode());
            out.push_back(DriverOutput::Peer { to, lane, bytes }.into());
        }
    }

    /// The member whose end of a request the local one waits for, if it can be heard.
    fn in_front(&self) -> Option<NodeId> {
        if !self.config.staggered && self.config.replication != Replication::Chain {
            return None;
        }
        let first = self.table.goes_ahead(&self.config).filter(|first| *first != self.here)?;
        // Who is joining says nothing of itself.
        let mut others = self.through_links(self.table.in_set());
        others.remove(self.here);
        if self.config.replication == Replication::Chain {
            return self.table.before_in_chain(first, self.here, others);
        }
        others.contains(first).then_some(first)
    }

    /// Those who are told how far the local member is.
    fn listeners(&self) -> NodeSet {
        let mut listeners = if self.counts_executed() {
            self.reads.links()
        } else if self.config.staggered && self.table.goes_ahead(&self.config) == Some(self.here) {
            self.through_links(self.table.in_set().union(self.table.joining()))
        } else {
            NodeSet::EMPTY
        };
        listeners.remove(self.here);
        listeners
    }

    fn through_links(&self, nodes: NodeSet) -> NodeSet {
        self.reads.linked(nodes, self.here)
    }

    /// Whether members are counted that have executed a request, in the style that the group has
    /// now.
    pub(crate) fn counts_executed(&self) -> bool {
        self.config.replication.counts_executed() && self.table.style.all_execute()
    }

    /// Up to which request each member that is in is through, as far as is known here; the furthest
    /// first.
    pub(super) fn how_far<'n>(&self, numbers: &'n mut [u64; NODES_MAX]) -> &'n [u64] {
        let members = self.table.in_set();
        for (number, node) in numbers.iter_mut().zip(members.iter()) {
            *number = if node == self.here { self.own_through() } else { self.through_of(node) };
        }
        let numbers = &mut numbers[..members.len()];
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers
    }

    fn own_through(&self) -> u64 {
        let own = self.member.as_deref().and_then(|member| member.through());
        let attempt = self.table.attempt(self.here);
        own.filter(|(by, _)| Some(*by) == attempt).map_or(0, |(_, up_to)| up_to)
    }
}
