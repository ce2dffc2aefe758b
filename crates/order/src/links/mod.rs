//! How good the links between nodes are, measured while there are signs of trouble.
//!
//! Tokens that must be sent again, packets that are repeated in vain, rotations that are slow all
//! of a sudden: a few of them in a row, or a ring that does not come about, make a node send
//! probes, numbered datagrams, and whoever hears such probes sends some, too. Each says how many of
//! each other's it has missed. So all know how good each direction of each link is, and [`verdict`]
//! says who is to be left out. A ring without signs of trouble sends none.
//!
//! What it is not: the exclusion itself, which is a gather like others.
//!
//! Invariants: what a boot said counts for no other boot; a link of which too little was seen, or
//! not lately, is unknown, and neither good nor bad; memory is bounded by the nodes of the domain.

mod hearing;
mod verdict;

use crate::wire::{Probe, Reception};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use hearing::Hearing;
use quorba_base::{Duration, Instant, NodeId, NodeSet};

/// So many signs of trouble before one more ...
const SIGNS: usize = 2;
/// ... within this time start probes.
const SIGNS_WITHIN: Duration = Duration::from_secs(1);
/// Probes go on for so long after the last signs, and for so many of them.
const SESSION: Duration = Duration::from_secs(1);
const SESSION_PROBES: u32 = 50;
/// Probes of a node are so far apart; in large domains they are farther apart ...
const PAUSE: Duration = Duration::from_millis(10);
/// ... and where not all nodes are near.
const PAUSE_FAR: Duration = Duration::from_millis(50);
/// For each node of the domain they are at least so far apart.
const PAUSE_PER_NODE: Duration = Duration::from_millis(2);
/// What was measured or said longer ago does not count; longer where probes are farther apart.
const FRESH: Duration = Duration::from_millis(500);
/// So many probes of a good link are not lost in a row: if fewer came since the last one, what is
/// known of the link is of now.
const RECENT_PROBES: u32 = 8;
/// Nobody is left out before the measurements have said the same for so long.
const SETTLED: Duration = Duration::from_millis(100);
/// Probes of this node whose time of sending is kept.
const SENT_KEPT: usize = 32;

/// What is known of another node's links.
#[derive(Debug)]
struct Peer {
    incarnation: u64,
    hearing: Hearing,
    /// What it said of all others, and when.
    said: Vec<Reception>,
    said_at: Instant,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Links {
    nodes: NodeSet,
    /// Of the last probe that was sent.
    number: u64,
    sent: [Instant; SENT_KEPT],
    probe_at: Instant,
    /// Probes are sent until then.
    until: Instant,
    /// This node itself has seen signs of trouble lately.
    troubled_until: Instant,
    signs: [Option<Instant>; SIGNS],
    next_sign: usize,
    peers: BTreeMap<NodeId, Peer>,
    /// Nodes that once were in a quick ring with this one.
    near: NodeSet,
    /// Who is to be left out, and since when the measurements say so.
    judged: Option<(NodeSet, Instant)>,
}

impl Links {
    pub(crate) fn new(nodes: NodeSet, now: Instant) -> Self {
        Self {
            nodes,
            number: 0,
            sent: [now; SENT_KEPT],
            probe_at: now,
            until: now,
            troubled_until: now,
            signs: [None; SIGNS],
            next_sign: 0,
            peers: BTreeMap::new(),
            near: NodeSet::EMPTY,
            judged: None,
        }
    }

    /// Something had to be sent again, or came much too late.
    pub(crate) fn see_trouble(&mut self, now: Instant) {
        let oldest = self.signs[self.next_sign].replace(now);
        self.next_sign = (self.next_sign + 1) % SIGNS;
        if oldest.is_some_and(|oldest| now.since(oldest) <= SIGNS_WITHIN) {
            self.suspect(now);
        }
    }

    /// No ring comes about, or none lasts.
    pub(crate) fn suspect(&mut self, now: Instant) {
        self.troubled_until = now + self.session();
        self.probe_until(now, self.troubled_until);
    }

    /// How far apart probes are.
    fn pause(&self) -> Duration {
        let least = if self.are_near(self.nodes) { PAUSE } else { PAUSE_FAR };
        least.max(PAUSE_PER_NODE * self.nodes.len() as u32)
    }

    fn session(&self) -> Duration {
        SESSION.max(self.pause() * SESSION_PROBES)
    }

    fn probe_until(&mut self, now: Instant, until: Instant) {
        if self.until <= now {
            self.probe_at = now;
            self.judged = None;
        }
        self.until = self.until.max(until);
    }

    /// All of `members` are near: a ring of them was quick.
    pub(crate) const fn note_near(&mut self, members: NodeSet) {
        self.near = self.near.union(members);
    }

    /// Whether all of `members` were in a quick ring once.
    pub(crate) const fn are_near(&self, members: NodeSet) -> bool {
        members.is_subset(self.near)
    }

    /// A new boot of `node`.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.peers.remove(&node);
        self.near.remove(node);
    }

    fn fresh(&self) -> Duration {
        FRESH.max(self.pause() * 8)
    }

    /// A probe of a live boot has come.
    pub(crate) fn on_probe(
        &mut self,
        now: Instant,
        (from, incarnation): (NodeId, u64),
        me: NodeId,
        probe: Probe,
    ) {
        let fresh = self.fresh();
        let round_trip = probe.receptions.iter().find(|said| said.node == me).and_then(|said| {
            let sent = self.sent[(said.last % SENT_KEPT as u64) as usize];
            let kept = said.last <= self.number && said.last + SENT_KEPT as u64 > self.number;
            let away = now.since(sent).saturating_sub(Duration::from_micros(said.held_us.into()));
            (kept && said.last > 0).then_some(away)
        });
        let peer = self.peers.entry(from).or_insert_with(|| Peer {
            incarnation,
            hearing: Hearing::new(),
            said: Vec::new(),
            said_at: now,
        });
        if peer.incarnation != incarnation {
            *peer = Peer { incarnation, hearing: Hearing::new(), said: Vec::new(), said_at: now };
        }
        if peer.hearing.hear(now, probe.number, fresh) {
            (peer.said, peer.said_at) = (probe.receptions, now);
        }
        if let Some(round_trip) = round_trip {
            peer.hearing.note_round_trip(now, round_trip);
        }
        if probe.troubled {
            let session = self.session();
            self.probe_until(now, now + session / 2);
        }
    }

    /// When the next probe is due, if one is.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        (self.probe_at < self.until).then_some(self.probe_at)
    }

    /// The probe that is due, if one is.
    pub(crate) fn probe(&mut self, now: Instant) -> Option<Probe> {
        if self.next_timeout().is_none_or(|at| at > now) {
            return None;
        }
        self.probe_at = now + self.pause();
        self.number += 1;
        self.sent[(self.number % SENT_KEPT as u64) as usize] = now;
        // How long probes take there and back is measured before anything is known of losses.
        let heard = self.peers.iter().filter(|(_, peer)| peer.hearing.is_fresh(now, self.fresh()));
        let receptions = heard.map(|(node, peer)| Reception {
            node: *node,
            missed: self.missed_of(*node, peer, now),
            last: peer.hearing.last(),
            held_us: peer.hearing.held_us(now),
        });
        let receptions = receptions.collect();
        Some(Probe { number: self.number, troubled: self.troubled_until > now, receptions })
    }

    fn missed_of(&self, node: NodeId, peer: &Peer, now: Instant) -> Option<u8> {
        peer.hearing.missed(now, self.fresh(), self.near.contains(node))
    }

    /// How many of `other`'s last 32 probes `node` has missed, if that is known.
    fn missed(&self, now: Instant, me: NodeId, node: NodeId, other: NodeId) -> Option<u8> {
        if node == me {
            return self.missed_of(other, self.peers.get(&other)?, now);
        }
        let peer = self.peers.get(&node)?;
        if now.since(peer.said_at) > self.fresh() {
            return None;
        }
        peer.said.iter().find(|said| said.node == other)?.missed
    }

    /// Whether all links between `other` and `members` are known to be good now, or not much worse
    /// than those among `members`: where all lose a little, nobody is kept out for it (seed 2455 of
    /// the simulator's `backups`).
    pub(crate) fn are_good(
        &self,
        now: Instant,
        me: NodeId,
        members: NodeSet,
        other: NodeId,
    ) -> bool {
        let missed = |node, other| self.missed(now, me, node, other);
        let within = members.iter().flat_map(|node| {
            let others = members.iter().filter(move |other| *other != node);
            others.filter_map(move |other| missed(node, other))
        });
        let limit = verdict::good_below(within.max().unwrap_or(0));
        let is_good = |node, other| missed(node, other).is_some_and(|missed| missed < limit);
        members.iter().all(|member| is_good(member, other) && is_good(other, member))
    }

    /// Nodes outside of `members` whose probes come, and come badly.
    fn bad_outside(&self, now: Instant, members: NodeSet) -> NodeSet {
        let is_bad = |(node, peer): &(&NodeId, &Peer)| {
            !members.contains(**node)
                && self.missed_of(**node, peer, now).is_some_and(|missed| missed >= verdict::BAD)
        };
        self.peers.iter().filter(is_bad).map(|(node, _)| *node).collect()
    }

    /// Whether all that is known of links among `members` is of now. What was measured a while ago
    /// may be good where what has just been measured is bad because all links became bad between
    /// (seed 330462 of the simulator's `ring`).
    fn are_recent(&self, now: Instant, me: NodeId, members: NodeSet) -> bool {
        let limit = self.pause() * RECENT_PROBES;
        let others = || members.iter().filter(move |other| *other != me);
        let is_recent = |peer: &Peer, from: NodeId| {
            let held = peer.said.iter().find(|said| said.node == from).map(|said| said.held_us);
            held.is_some_and(|held_us| Duration::from_micros(held_us.into()) <= limit)
        };
        others().all(|node| {
            let Some(peer) = self.peers.get(&node) else { return false };
            let mut from = members.iter().filter(|from| *from != node);
            peer.hearing.is_fresh(now, limit) && from.all(|from| is_recent(peer, from))
        })
    }

    /// Who is to be left out of a ring of `members`, and kept out, as long as `majority` of them
    /// are well connected; once the measurements have said so for long enough.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        me: NodeId,
        members: NodeSet,
        majority: usize,
    ) -> Option<NodeSet> {
        let all = members.union(self.bad_outside(now, members));
        let missed = |node, other| self.missed(now, me, node, other);
        let out = verdict::verdict(all, majority, missed);
        let recent = |out: &NodeSet| self.are_recent(now, me, all.difference(*out));
        let out = out.filter(|out| !out.contains(me) && recent(out));
        let Some(out) = out else {
            self.judged = None;
            return None;
        };
        let since = self.judged.filter(|(before, _)| *before == out).map_or(now, |(_, at)| at);
        self.judged = Some((out, since));
        (now.since(since) >= SETTLED).then_some(out)
    }
}

#[cfg(test)]
mod tests;
