//! How far behind the slowest member is, so that gateways do not have more ordered than it can do.
//!
//! A member that has several requests in front of it says on the links how far it is, every few
//! requests, until it has caught up. Nothing is said where nothing waits.
//!
//! What it is not: replicated, or a reason to wait for ever: who does not go on is not waited for.
//! Invariant: nothing that is executed, nor its order, changes because of it.

use super::Group;
use crate::output::{Outbox, Output};
use crate::peer::PeerMessage;
use crate::released::Released;
use alloc::collections::BTreeMap;
use quorba_base::{Duration, Instant, NodeId};

/// So many requests are executed between two words, and so many wait before the first.
const STEP: u64 = 16;
/// Who has not gone on for so long is stuck.
const STUCK: Duration = Duration::from_millis(250);

/// What was said and heard of it.
#[derive(Default)]
pub(super) struct Progress {
    /// The local member has more in front of it than it should, and was there last.
    told: Option<u64>,
    /// Members that have, how far they were, and when that was heard.
    heard: BTreeMap<NodeId, (u64, Instant)>,
    /// The local one: how far it is, and since when.
    own: (u64, Instant),
}

impl Group {
    /// Says how far the local member is, if that is of interest.
    pub(super) fn mind_progress(&mut self, now: Instant, out: &mut Outbox) {
        let Some(up_to) = self.member.as_ref().and_then(|member| member.through()) else {
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
            out.push_back(Output::Peer { to, lane, bytes });
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

    /// How many requests the slowest member that is in and goes on has in front of it.
    pub(crate) fn behind(&self, now: Instant) -> u64 {
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
        slowest.map_or(0, |up_to| delivered.saturating_sub(up_to))
    }

    /// The gateway at `node` will not ask again for these.
    pub(super) fn deliver_released(
        &mut self,
        (node, incarnation): (NodeId, u64),
        released: &Released,
    ) {
        if let Some(member) = self.member.as_mut().filter(|_| self.replay.is_none()) {
            member.release(node, incarnation, released);
        }
    }
}
