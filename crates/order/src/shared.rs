//! What every state shares: identity, sealing, queues, outputs, memory of other nodes.
//!
//! What it is not: protocol. The states decide; this keeps and counts.
//!
//! Invariants: a ring number is persisted (ahead, in blocks) before a token that carries it is
//! transmitted; `ring_seq` only grows.

use crate::config::{Boot, Config, Hold};
use crate::ids::{RingId, Ticket};
use crate::limits::Limits;
use crate::links::Links;
use crate::output::{Destination, LeaveReason, Output, RefusedReason};
use crate::queue::Queue;
use crate::seal::{BootId, Sealer, SessionId, Sessions, session_id};
use crate::snapshot::{Counters, LeftOut};
use crate::typical::Typical;
use crate::wire::{CommitToken, Dead, Greeting, Packet};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use quorba_base::{Duration, Instant, NODES_MAX, NodeId, NodeSet, canary};

/// Ring numbers are persisted this many ahead, so that forming a ring waits for no disk.
const PERSIST_BLOCK: u64 = 64;
/// The same refusal is reported once in this time.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// Greetings to one node are at least this far apart.
const GREETING_PAUSE: Duration = Duration::from_millis(2);
/// A node that was left out as silent and speaks within this time was only slow.
const LATE_TALKER: Duration = Duration::from_millis(200);
/// Timeouts are stretched at most by two to this power while rings keep failing.
const PATIENCE_MAX: u32 = 5;

/// What is remembered of another node across rings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Joins of this node with a lower ring number are from before it was in that ring.
    pub(crate) ring_seq_floor: u64,
    /// Its wish to merge is ignored until then.
    pub(crate) hold_off_until: Instant,
    pub(crate) hold_off: Duration,
    /// Why it was left out, unless it has been a member since.
    pub(crate) left_out: Option<LeaveReason>,
    /// When it last became a member.
    pub(crate) joined_at: Instant,
    greeted_at: Option<Instant>,
    /// When it was left out because it was silent, unless it has spoken since.
    silent_since: Option<Instant>,
    /// The boot that the memory is about.
    incarnation: u64,
}

impl Memory {
    /// It was left out for its links.
    pub(crate) fn has_poor_links(&self) -> bool {
        self.left_out == Some(LeaveReason::PoorLinks)
    }

    pub(crate) const fn was_silent(&self) -> bool {
        self.silent_since.is_some()
    }
}

/// Shared by all states.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) limits: Limits,
    pub(crate) boot: BootId,
    pub(crate) sealer: Sealer,
    pub(crate) sessions: Sessions,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) queue: Queue,
    pub(crate) counters: Counters,
    /// How long the last rotation took that was timed here.
    pub(crate) rotation_last: Duration,
    /// From a packet of this node that asks for acknowledgements to the first of them.
    pub(crate) exchange: Typical,
    /// Packets that the ring had numbered when the token last came.
    pub(crate) visit_packets: u64,
    /// The highest ring number of a commit token that I accepted.
    pub(crate) ring_seq: u64,
    /// The highest ring number that anyone told me of.
    pub(crate) ring_seq_seen: u64,
    persisted: u64,
    pub(crate) memories: Vec<Memory>,
    refused: BTreeMap<(NodeId, u8), Instant>,
    /// Nodes that were known to have this node's newest domain key when the token was here last.
    pub(crate) keyed: NodeSet,
    /// Doublings of timeouts while rings keep failing.
    pub(crate) patience: u32,
    /// This node's application cannot keep up: nobody shall send much.
    pub(crate) throttled: bool,
    /// Somebody waits until everyone has my messages up to this one.
    pub(crate) stable_awaited: Option<Ticket>,
    /// How good the links are, while there are signs of trouble.
    pub(crate) links: Links,
    /// The others have said that this boot's links are too poor, and it has been in no ring with
    /// others since.
    pub(crate) told_out: bool,
    pub(crate) now: Instant,
}

impl Core {
    pub(crate) fn new(config: Config, boot: Boot, now: Instant) -> Self {
        let session = session_id(&boot.salt);
        let id = BootId { node: config.me, incarnation: boot.incarnation, session };
        let key = config.domain_key.clone();
        let sealer = Sealer::new(&key, id, config.encrypt);
        let sessions = Sessions::new(config.me, config.nodes, key, config.encrypt);
        let mut core = Self {
            limits: Limits::new(&config),
            boot: id,
            sealer,
            sessions,
            outputs: VecDeque::new(),
            queue: Queue::default(),
            counters: Counters::default(),
            rotation_last: Duration::ZERO,
            exchange: Typical::default(),
            visit_packets: 0,
            ring_seq: boot.ring_seq_min,
            ring_seq_seen: boot.ring_seq_min,
            persisted: boot.ring_seq_min,
            memories: vec![Memory::default(); NODES_MAX],
            refused: BTreeMap::new(),
            keyed: NodeSet::EMPTY,
            patience: 0,
            throttled: false,
            stable_awaited: None,
            links: Links::new(config.nodes, now),
            told_out: false,
            now,
            config,
        };
        core.persist(boot.ring_seq_min);
        core
    }

    pub(crate) const fn me(&self) -> NodeId {
        self.config.me
    }

    /// A majority of the domain's nodes.
    pub(crate) const fn majority(&self) -> usize {
        self.config.nodes.len() / 2 + 1
    }

    /// How many nodes must have a message of `ring` before it is held.
    pub(crate) const fn holders_min(&self, ring: NodeSet) -> usize {
        let majority = self.majority();
        match self.config.hold {
            Hold::Domain => majority,
            Hold::DomainOrAll if ring.len() < majority => ring.len(),
            Hold::DomainOrAll => majority,
            Hold::Members => ring.len() / 2 + 1,
        }
    }

    /// `duration`, stretched while rings keep failing.
    pub(crate) fn patient(&self, duration: Duration) -> Duration {
        duration.saturating_mul(1 << self.patience)
    }

    pub(crate) fn stretch_timeouts(&mut self) {
        self.patience = (self.patience + 1).min(PATIENCE_MAX);
    }

    pub(crate) fn memory(&mut self, node: NodeId) -> &mut Memory {
        &mut self.memories[usize::from(node.index())]
    }

    fn persist(&mut self, ring_seq: u64) {
        if ring_seq >= self.persisted && !canary!(ForgetsRingNumbers) {
            self.persisted = ring_seq + PERSIST_BLOCK;
            self.outputs.push_back(Output::Persist { ring_seq: self.persisted });
        }
    }

    /// A ring id that was never used: above all numbers that I used or heard of.
    pub(crate) fn mint_ring(&mut self) -> RingId {
        let seq = self.ring_seq.max(self.ring_seq_seen) + 1;
        self.persist(seq);
        self.use_ring(seq);
        RingId { seq, representative: self.me() }
    }

    /// A commit token with this number was accepted: no lower one counts any more.
    pub(crate) fn use_ring(&mut self, seq: u64) {
        if !canary!(ReusesRingNumbers) {
            self.ring_seq = self.ring_seq.max(seq);
        }
    }

    /// Seals and queues `packet`.
    pub(crate) fn transmit(&mut self, to: Destination, packet: &Packet) {
        let bytes = match packet {
            Packet::Data(data) => data.encoded_bytes(),
            _ => 256,
        };
        let mut datagram = Sealer::start(bytes);
        packet.encode(&mut datagram);
        self.sealer.seal(&mut datagram);
        self.counters.datagrams_sent += 1;
        self.outputs.push_back(Output::Transmit { to, datagram });
    }

    /// Reports a refusal, unless the same was reported within a second.
    pub(crate) fn refuse(&mut self, node: NodeId, reason: RefusedReason) {
        self.counters.refused += 1;
        let key = (node, reason as u8);
        let now = self.now;
        if self.refused.get(&key).is_some_and(|at| now.since(*at) < REFUSED_PAUSE) {
            return;
        }
        self.refused.insert(key, now);
        self.outputs.push_back(Output::Refused { node, reason });
    }

    /// Who I am and whom I hear.
    pub(crate) fn greeting(&self, ring: Option<RingId>) -> Greeting {
        let echoes: Vec<(NodeId, SessionId)> = self.sessions.heard().collect();
        Greeting { domain_digest: self.config.domain_digest, ring, echoes }
    }

    /// Greets `node`, unless that was done a moment ago.
    pub(crate) fn greet(&mut self, node: NodeId, ring: Option<RingId>) {
        let now = self.now;
        let memory = self.memory(node);
        if memory.greeted_at.is_some_and(|at| now.since(at) < GREETING_PAUSE) {
            return;
        }
        memory.greeted_at = Some(now);
        let hello = Packet::Hello(self.greeting(ring));
        self.transmit(Destination::Node(node), &hello);
    }

    /// Whether every other member is proven live to this node, in the boot that it states. Without
    /// that its packets would not be accepted here, and the ring could not work.
    pub(crate) fn knows_boots_of(&self, commit: &CommitToken) -> bool {
        commit.members.iter().filter(|node| *node != self.me()).all(|node| {
            let known = self.sessions.incarnation(node);
            known.is_some_and(|known| {
                commit.state_of(node).is_none_or(|state| state.incarnation == known)
            })
        })
    }

    /// A new boot of `node` is a new node: what was remembered of the old one is void.
    pub(crate) fn meet_boot(&mut self, node: NodeId, incarnation: u64) {
        let memory = self.memory(node);
        if memory.incarnation != incarnation {
            *memory = Memory { incarnation, greeted_at: memory.greeted_at, ..Memory::default() };
            self.links.forget(node);
        }
    }

    /// `node` was left out of a ring that it might have been in: wait before merging with it.
    pub(crate) fn hold_off(&mut self, node: NodeId, cause: LeaveReason) {
        let (first, most) = match cause {
            LeaveReason::PoorLinks => (1_000, 10_000),
            LeaveReason::Unreachable | LeaveReason::FailedToReceive => (500, 10_000),
            LeaveReason::Silent | LeaveReason::Parted => (20, 320),
            LeaveReason::ProcessLost | LeaveReason::Departed | LeaveReason::Restarted => return,
        };
        let now = self.now;
        let memory = self.memory(node);
        let again = cause == LeaveReason::PoorLinks && memory.hold_off_until <= now;
        if memory.has_poor_links() && !again {
            return; // It is kept out until its links are good.
        }
        // Who is kept out has not been in meanwhile.
        let was_in = !memory.has_poor_links();
        if was_in && now.since(memory.joined_at) > Duration::from_secs(30) {
            memory.hold_off = Duration::ZERO;
        }
        let doubled = memory.hold_off.saturating_mul(2);
        memory.hold_off = doubled.clamp(Duration::from_millis(first), Duration::from_millis(most));
        // Two that were left out at once do not come back at once.
        let more = u32::from(node.index()) * 5 % 8;
        memory.left_out = Some(cause);
        let jitter = match memory.has_poor_links() {
            true => memory.hold_off * more / 32,
            false => Duration::ZERO,
        };
        memory.hold_off_until = now + memory.hold_off + jitter;
        memory.silent_since = (cause == LeaveReason::Silent).then_some(now);
    }

    /// `node`, left out as silent a moment ago, speaks: it was slow, and my timeouts are too short.
    pub(crate) fn note_late(&mut self, node: NodeId) {
        let (now, recent) = (self.now, self.patient(LATE_TALKER));
        let silent = self.memory(node).silent_since.take();
        if silent.is_none_or(|since| now.since(since) < recent) {
            self.stretch_timeouts();
        }
    }

    /// Whether a ring of `members` does not merge with `node` yet.
    pub(crate) fn is_held_off(&self, node: NodeId, members: NodeSet) -> bool {
        let memory = &self.memories[usize::from(node.index())];
        if memory.has_poor_links() {
            return self.keeps_out(node, members);
        }
        memory.hold_off_until > self.now
    }

    /// Whether `node` is kept out because its links are poor: not if they have just been measured,
    /// and are good, or if `members` without it are no majority.
    pub(crate) fn keeps_out(&self, node: NodeId, members: NodeSet) -> bool {
        let others = members.difference(NodeSet::EMPTY.with(node));
        let enough = others.len() >= self.majority() || canary!(KeepsOutTheNeeded);
        let is_poor = self.memories[usize::from(node.index())].has_poor_links();
        enough && is_poor && !self.links.are_good(self.now, self.me(), others, node)
    }

    /// Measures the links of a node that was left out for them, if it is time: it is taken in if
    /// they are good, and tried again later if they are not.
    pub(crate) fn try_again(&mut self, node: NodeId) {
        let memory = &self.memories[usize::from(node.index())];
        if memory.has_poor_links() && memory.hold_off_until <= self.now {
            self.links.suspect(self.now);
            self.hold_off(node, LeaveReason::PoorLinks);
        }
    }

    /// Who was left out of a ring of `members`, and is not taken in yet.
    pub(crate) fn left_out(&self, members: NodeSet) -> Vec<LeftOut> {
        let outside = self.outside(members).iter();
        let left_out = outside.filter_map(|node| {
            let memory = &self.memories[usize::from(node.index())];
            let until = memory.hold_off_until;
            let cause = memory.left_out.filter(|_| until > self.now || memory.has_poor_links())?;
            Some(LeftOut { node, cause, again_in: until.since(self.now) })
        });
        left_out.collect()
    }

    /// Whether `dead` names this very boot as one with poor links.
    pub(crate) fn is_poor(&self, dead: &Dead) -> bool {
        let this = dead.node == self.me() && dead.incarnation == self.boot.incarnation;
        this && dead.cause == LeaveReason::PoorLinks
    }

    /// Nodes of the domain that are not in `members`.
    pub(crate) const fn outside(&self, members: NodeSet) -> NodeSet {
        self.config.nodes.difference(members)
    }
}

#[cfg(test)]
mod tests;
