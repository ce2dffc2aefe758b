//! The gather state: agree with everyone who can be heard on who is in the next ring
//! (Amir95, membership).
//!
//! Invariants: `fail` is a subset of `proc` without this node; both only grow, but for a failed
//! node that is back as a new boot; what this node proposes is always in the Join it sent last;
//! a commit token is accepted only for exactly the proposed membership.

use crate::circuit::Circuit;
use crate::connectivity;
use crate::output::{Destination, GatherReason, LeaveReason, TimerKind};
use crate::shared::Core;
use crate::wire::{Data, Dead, Join, Packet};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorba_base::{Duration, Instant, NODES_MAX, NodeId, NodeSet};

/// Joins are at least this far apart, whatever arrives.
const JOIN_PAUSE: Duration = Duration::from_micros(500);
/// A gather is restarted after this many consensus times, if the commit token does not come.
const COMMIT_WAIT: u32 = 2;
/// The most dead boots that a Join names.
const DEAD_MAX: usize = 16;

/// What a node has said in this gather.
#[derive(Clone, Copy, Debug)]
struct Opinion {
    proc: NodeSet,
    fail: NodeSet,
}

/// Why nodes were left out, and for how long agreement has been sought. Outlives the gather.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) reason: GatherReason,
    pub(crate) proc: NodeSet,
    pub(crate) fail: NodeSet,
    causes: Box<[Option<LeaveReason>; NODES_MAX]>,
    /// Excluded because another member does not hear them.
    adopted: NodeSet,
    pub(crate) dead: Vec<Dead>,
}

impl Attempt {
    pub(crate) fn new(reason: GatherReason, proc: NodeSet) -> Self {
        let causes = Box::new([None; NODES_MAX]);
        let (fail, adopted) = (NodeSet::EMPTY, NodeSet::EMPTY);
        Self { reason, proc, fail, causes, adopted, dead: Vec::new() }
    }

    pub(crate) fn cause(&self, node: NodeId) -> Option<LeaveReason> {
        self.causes[usize::from(node.index())]
    }

    /// Leaves `node` out.
    pub(crate) fn exclude(&mut self, node: NodeId, cause: LeaveReason) {
        self.proc.insert(node);
        self.fail.insert(node);
        self.causes[usize::from(node.index())].get_or_insert(cause);
    }

    /// `node` is back as another boot.
    fn readmit(&mut self, node: NodeId) {
        self.fail.remove(node);
        self.causes[usize::from(node.index())] = Some(LeaveReason::Restarted);
        self.dead.retain(|dead| dead.node != node);
    }

    /// The next attempt, after this one failed: what is known of the dead stays known.
    pub(crate) fn again(self, reason: GatherReason, proc: NodeSet) -> Self {
        let (fail, adopted) = (NodeSet::EMPTY, NodeSet::EMPTY);
        let mut next = Self { reason, proc, fail, adopted, ..self };
        next.bury_the_dead();
        next
    }

    /// Whoever is known to be dead and is considered again is excluded again.
    fn bury_the_dead(&mut self) {
        for dead in &self.dead {
            if self.proc.contains(dead.node) {
                self.fail.insert(dead.node);
            }
        }
    }

    /// Excludes a boot that is known to be over, or of no use, whatever others think of it.
    pub(crate) fn bury(&mut self, dead: Dead) {
        self.exclude(dead.node, dead.cause);
        let known = self.dead.iter().any(|known| known.node == dead.node);
        if !known && self.dead.len() < DEAD_MAX {
            self.dead.push(dead);
        }
    }
}

/// Agreeing on a membership.
pub(crate) struct Gather {
    /// The ring installed last.
    pub(crate) old: Option<Box<Circuit>>,
    pub(crate) attempt: Attempt,
    opinions: Box<[Option<Opinion>; NODES_MAX]>,
    started: Instant,
    join_at: Instant,
    joined_at: Option<Instant>,
    consensus_at: Instant,
    /// Silent nodes are out; who still disagrees at the next timeout is out too.
    strict: bool,
    /// Agreed, and waiting for the representative's commit token.
    pub(crate) agreed: bool,
}

/// What follows from an event in gather.
pub(crate) enum Gathered {
    /// Nothing yet.
    Waiting,
    /// All agree, and this node is the representative.
    Represent,
    /// The commit token does not come.
    Stalled,
}

impl Gather {
    pub(crate) fn new(core: &mut Core, old: Option<Box<Circuit>>, attempt: Attempt) -> Self {
        core.counters.gathers += 1;
        let consensus = Self::consensus(core, old.as_deref());
        Self {
            old,
            attempt,
            opinions: Box::new([None; NODES_MAX]),
            started: core.now,
            join_at: core.now,
            joined_at: None,
            consensus_at: core.now + consensus,
            strict: false,
            agreed: false,
        }
    }

    /// How long silent nodes are waited for: longer where rotations are known to be slow.
    pub(crate) fn consensus(core: &Core, old: Option<&Circuit>) -> Duration {
        let measured = old.map_or(Duration::ZERO, |old| old.rotation() * 2);
        let floor = core.config.timing.consensus.max(measured);
        core.patient(floor).min(core.config.timing.token_loss_max)
    }

    /// Nothing is said or decided before `until`.
    pub(crate) fn wait_until(&mut self, core: &Core, until: Instant) {
        self.join_at = until;
        self.started = until;
        self.consensus_at = until + Self::consensus(core, self.old.as_deref());
    }

    /// Who would be in the ring.
    pub(crate) const fn target(&self) -> NodeSet {
        self.attempt.proc.difference(self.attempt.fail)
    }

    fn heard(&self) -> NodeSet {
        let spoke = |node: &NodeId| self.opinions[usize::from(node.index())].is_some();
        self.attempt.proc.iter().filter(spoke).collect()
    }

    /// A live boot has sent a Join.
    pub(crate) fn on_join(&mut self, core: &mut Core, from: NodeId, join: &Join) -> Gathered {
        let before = (self.attempt.proc, self.attempt.fail);
        if !self.attempt.proc.contains(from) && core.keeps_out(from, self.target()) {
            return Gathered::Waiting;
        }
        if self.attempt.fail.contains(from) && !self.is_reborn(core, from) {
            self.note_late(core, from);
            return Gathered::Waiting;
        }
        let opinion = Opinion { proc: join.proc, fail: join.fail };
        let news = self.opinions[usize::from(from.index())].replace(opinion).is_none();
        if join.fail.contains(core.me()) {
            core.told_out |= join.dead.iter().any(|dead| core.is_poor(dead));
            self.attempt.exclude(from, LeaveReason::Parted);
        } else {
            self.merge(core, from, join);
        }
        if (self.attempt.proc, self.attempt.fail) != before {
            self.agreed = false;
            self.hurry(core);
            if self.attempt.proc != before.0 {
                let consensus = Self::consensus(core, self.old.as_deref());
                let last = self.started + consensus * 4;
                self.consensus_at = (core.now + consensus).min(last.max(self.consensus_at));
                self.strict = false;
            }
        } else if news {
            self.hurry(core);
        }
        self.check(core)
    }

    /// `node` was excluded as silent, and speaks.
    fn note_late(&mut self, core: &mut Core, node: NodeId) {
        if self.attempt.adopted.contains(node) {
            let cause = &mut self.attempt.causes[usize::from(node.index())];
            *cause = Some(LeaveReason::Unreachable);
        } else if self.attempt.cause(node) == Some(LeaveReason::Silent) {
            // Once: it sends a Join every few milliseconds.
            self.attempt.causes[usize::from(node.index())] = Some(LeaveReason::Parted);
            core.stretch_timeouts();
        }
    }

    /// Whether `node`, excluded because its process ended, speaks as a new boot.
    fn is_reborn(&mut self, core: &Core, node: NodeId) -> bool {
        let dead = self.attempt.dead.iter().find(|dead| dead.node == node);
        let reborn =
            dead.is_some_and(|dead| core.sessions.incarnation(node) > Some(dead.incarnation));
        if reborn {
            self.attempt.readmit(node);
        }
        reborn
    }

    fn merge(&mut self, core: &Core, from: NodeId, join: &Join) {
        let attempt = &mut self.attempt;
        let others = join.proc.intersection(core.config.nodes);
        attempt.proc = attempt.proc.union(others).with(from);
        for dead in &join.dead {
            let newer = core.sessions.incarnation(dead.node) > Some(dead.incarnation);
            if dead.node != core.me() && core.config.nodes.contains(dead.node) && !newer {
                attempt.bury(*dead);
            }
        }
        attempt.bury_the_dead();
        let heard = self.heard();
        let doubted = join.fail.intersection(core.config.nodes).difference(self.attempt.fail);
        let mut disputed = false;
        for node in doubted {
            if heard.contains(node) && node != from {
                disputed = true;
            } else if !join.dead.iter().any(|dead| dead.node == node) {
                self.attempt.exclude(node, LeaveReason::Silent);
                self.attempt.adopted.insert(node);
            }
        }
        if disputed {
            self.settle_dispute(core.me());
        }
    }

    /// Members disagree on whom they hear: links decide, the same way at every node.
    fn settle_dispute(&mut self, me: NodeId) {
        let target = self.target();
        let mut links = [NodeSet::EMPTY; NODES_MAX];
        for node in target {
            links[usize::from(node.index())] = match &self.opinions[usize::from(node.index())] {
                Some(opinion) => target.difference(opinion.fail),
                None => target,
            };
        }
        links[usize::from(me.index())] = target;
        for node in connectivity::to_drop(target, &links) {
            if node != me {
                self.attempt.exclude(node, LeaveReason::Unreachable);
            }
        }
    }

    /// A boot is over, by evidence.
    pub(crate) fn on_dead(&mut self, core: &mut Core, dead: Dead) -> Gathered {
        let node = dead.node;
        if self.attempt.fail.contains(node) || !self.attempt.proc.contains(node) {
            return Gathered::Waiting;
        }
        self.attempt.bury(dead);
        self.agreed = false;
        self.hurry(core);
        self.check(core)
    }

    /// Send the Join as soon as the pacing allows.
    fn hurry(&mut self, core: &Core) {
        let earliest = self.joined_at.map_or(core.now, |at| at + JOIN_PAUSE);
        self.join_at = self.join_at.min(earliest.max(core.now));
    }

    /// A node that has just been proven live shall hear from me.
    pub(crate) fn on_proven(&mut self, core: &Core) {
        self.hurry(core);
    }

    /// Whether all that are left agree.
    fn check(&mut self, core: &mut Core) -> Gathered {
        let target = self.target();
        let me = core.me();
        if self.agreed {
            return Gathered::Waiting;
        }
        if target.len() == 1 && !self.strict && self.attempt.proc.len() == 1 {
            return Gathered::Waiting; // Somebody may be about to speak.
        }
        let agrees = |node: &NodeId| match &self.opinions[usize::from(node.index())] {
            Some(said) => said.proc == self.attempt.proc && said.fail == self.attempt.fail,
            None => false,
        };
        if !target.iter().filter(|node| *node != me).all(|node| agrees(&node)) {
            return Gathered::Waiting;
        }
        self.agreed = true;
        if target.len() > 1 {
            // The others may not have my last word yet.
            self.send_join(core);
        }
        let wait = Self::consensus(core, self.old.as_deref()) * COMMIT_WAIT;
        self.consensus_at = core.now + wait;
        if target.lowest() == Some(me) { Gathered::Represent } else { Gathered::Waiting }
    }

    fn send_join(&mut self, core: &mut Core) {
        let ring = self.old.as_ref().map(|old| old.ring);
        let join = Join {
            greeting: core.greeting(ring),
            proc: self.attempt.proc,
            fail: self.attempt.fail,
            ring_seq: core.ring_seq,
            dead: self.attempt.dead.clone(),
        };
        core.transmit(Destination::Each, &Packet::Join(join));
        self.joined_at = Some(core.now);
        // Several in the time in which an answer can come, in case one is lost.
        let known = self.old.as_ref().map_or(Duration::ZERO, |old| old.round_trip() / 4);
        self.join_at = core.now + core.patient(core.config.timing.join_interval).max(known);
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) -> Gathered {
        if self.consensus_at <= core.now {
            if self.agreed {
                return Gathered::Stalled;
            }
            self.give_up_waiting(core);
        }
        let gathered = self.check(core);
        if self.join_at <= core.now {
            self.send_join(core);
        }
        gathered
    }

    fn give_up_waiting(&mut self, core: &mut Core) {
        let me = core.me();
        let target = self.target();
        let silent = target.difference(self.heard().with(me));
        for node in silent {
            self.attempt.exclude(node, LeaveReason::Silent);
        }
        if silent.is_empty() && self.strict {
            for node in target {
                let said = self.opinions[usize::from(node.index())];
                let agrees = said.is_some_and(|said| {
                    said.proc == self.attempt.proc && said.fail == self.attempt.fail
                });
                if node != me && !agrees {
                    self.attempt.exclude(node, LeaveReason::Parted);
                }
            }
        }
        self.strict = true;
        self.consensus_at = core.now + Self::consensus(core, self.old.as_deref());
        self.hurry(core);
    }

    pub(crate) fn next_timeout(&self) -> (Instant, TimerKind) {
        (self.join_at, TimerKind::Join).min((self.consensus_at, TimerKind::Consensus))
    }
}

/// The old ring's packets still count, until this node has said where it stands.
pub(crate) fn take_old_data(core: &mut Core, old: &mut Option<Box<Circuit>>, data: Data) {
    if let Some(old) = old
        && old.ring == data.ring
        && old.members.contains(data.origin)
    {
        old.take_packet(core, data);
        old.settle(core);
    }
}
