//! How far behind the slowest member is, so that gateways do not have more ordered than it can do.
//!
//! A member that has several requests in front of it says on the links how far it is, every few
//! requests, until it has caught up. Nothing is said where nothing waits.
//!
//! What it is not: replicated, or a reason to wait for ever: who does not go on is not waited for.
//! Invariant: nothing that is executed, nor its order, changes because of it.

use super::Group;
use crate::messages::peer::PeerMessage;
use crate::output::{DriverOutput, Outbox};
use crate::words::released::Released;
use alloc::collections::{BTreeMap, VecDeque};
use quorba_base::{Duration, Instant, NodeId, NodeSet};

/// So many requests are executed between two words, and so many wait before the first.
const STEP: u64 = 16;
/// Who has not gone on for so long is stuck.
const STUCK: Duration = Duration::from_millis(250);

/// Requests that it is remembered of at whose gateways they came in: more than any member that is
/// waited for has in front of it.
const ORIGINS_MAX: usize = 1024;

/// What the slowest member that is in and goes on has in front of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Requests.
    pub all: u64,
    /// Of these, those that came in at this node's gateway.
    pub own: u64,
    /// Gateways at which they came in, and this one.
    pub gateways: u64,
}

/// What was said and heard of it.
#[derive(Default)]
pub(super) struct Progress {
    /// The local member has more in front of it than it should, and was there last.
    told: Option<u64>,
    /// Members that have, how far they were, and when that was heard.
    heard: BTreeMap<NodeId, (u64, Instant)>,
    /// The local one: how far it is, and since when.
    own: (u64, Instant),
    /// At whose gateways the last requests came in, the newest last.
    origins: VecDeque<NodeId>,
}

impl Progress {
    /// A request that came in at the gateway of `origin` was delivered.
    pub(super) fn note_origin(&mut self, origin: NodeId) {
        if self.origins.len() >= ORIGINS_MAX {
            self.origins.pop_front();
        }
        self.origins.push_back(origin);
    }

    /// Whose the last `all` requests are, as seen from `here`.
    fn share_out(&self, all: u64, here: NodeId) -> Backlog {
        let last = self.origins.iter().rev().take(usize::try_from(all).unwrap_or(usize::MAX));
        let (mut own, mut gateways) = (0, NodeSet::EMPTY.with(here));
        for origin in last {
            own += u64::from(*origin == here);
            gateways.insert(*origin);
        }
        Backlog { all, own, gateways: gateways.len() as u64 }
    }
}

impl Group {
    /// Says how far the local member is, if that is of interest.
    pub(super) fn mind_progress(&mut self, now: Instant, out: &mut Outbox) {
        let Some((_, up_to)) = self.member.as_deref().and_then(|member| member.through()) else {
            self.progress.told = None;
            return;
        };
        if self.progress.own.0 != up_to {
            self.progress.own = (up_to, now);
        }
        let behind = self.table.history.count.saturating_sub(up_to);
        let told = match self.progress.told {
            None if behind < STEP => return,
            Some(told) if behind > 0 && up_to < told + STEP => return,
            told => told,
        };
        if told == Some(up_to) && behind > 0 {
            return;
        }
        self.progress.told = (behind > 0).then_some(up_to);
        let message = PeerMessage::Progress { group: self.id, up_to, caught_up: behind == 0 };
        for to in self.reads.links().iter() {
            let (lane, bytes) = (message.lane(), message.encode());
            out.push_back(DriverOutput::Peer { to, lane, bytes }.into());
        }
    }

    /// A member has said how far it is.
    pub(super) fn hear_progress(
        &mut self,
        now: Instant,
        from: NodeId,
        up_to: u64,
        caught_up: bool,
    ) {
        if caught_up {
            self.progress.heard.remove(&from);
        } else {
            self.progress.heard.insert(from, (up_to, now));
        }
    }

    /// What the slowest member that is in and goes on has in front of it.
    pub(crate) fn behind(&self, now: Instant) -> Backlog {
        let delivered = self.table.history.count;
        let members = self.table.in_set();
        let goes_on = |since: Instant| now.since(since) < STUCK;
        let others = self.progress.heard.iter();
        let others =
            others.filter(|(node, (_, heard))| members.contains(**node) && goes_on(*heard));
        let slowest = others.map(|(_, (up_to, _))| *up_to).min();
        let (own, since) = self.progress.own;
        let counts = members.contains(self.here) && self.progress.told.is_some();
        let own = Some(own).filter(|_| counts && goes_on(since));
        let slowest = slowest.into_iter().chain(own).min();
        let all = slowest.map_or(0, |up_to| delivered.saturating_sub(up_to));
        self.progress.share_out(all, self.here)
    }

    /// The gateway at `node` will not ask again for these.
    pub(super) fn deliver_released(
        &mut self,
        (node, incarnation): (NodeId, u64),
        released: &Released,
    ) {
        if let Some(member) = self.member.as_deref_mut().filter(|_| self.replay.is_none()) {
            member.release(node, incarnation, released);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_known_by_the_gateway_at_which_it_came_in() {
        let node = |index| NodeId::new(index).expect("a node");
        let mut progress = Progress::default();
        for index in 0..2 * ORIGINS_MAX {
            progress.note_origin(node(u8::from(index % 10 == 0)));
        }
        let seen = |all, here| progress.share_out(all, node(here));
        let behind = |all, own, gateways| Backlog { all, own, gateways };
        assert_eq!(seen(20, 0), behind(20, 18, 2));
        assert_eq!(seen(20, 1), behind(20, 2, 2));
        assert_eq!(seen(5, 2), behind(5, 0, 2), "one, and this one");
        assert_eq!(seen(0, 2), behind(0, 0, 1));
        assert_eq!(progress.origins.len(), ORIGINS_MAX);
    }
}
