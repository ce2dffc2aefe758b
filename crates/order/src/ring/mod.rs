//! The ring as its driver sees it: datagrams, time and submissions in; outputs out.
//!
//! What it is not: the protocol of a state. Here is decided which state hears of what, and which
//! state follows.
//!
//! Invariants: nothing from a boot that is not proven live reaches a state; a packet of another
//! ring changes nothing but, at most, starts a gather; every gather has a reason.

mod dispatch;
mod look;
mod watch;
mod withdraw;

use crate::circuit::Circuit;
use crate::commit::Commit;
use crate::config::{Boot, Config, DomainKey};
use crate::gather::{Attempt, Gather, Gathered};
use crate::ids::{Guarantee, RingId, Ticket};
use crate::install::install;
use crate::operational::Operational;
use crate::output::{
    Destination, Full, GatherReason, LeaveReason, Output, RefusedReason, TimerKind,
};
use crate::recovery::Recovery;
use crate::seal::{Dropped, InvalidKeys, KeyId};
use crate::shared::Core;
use crate::wire::{CommitToken, Dead, Join, Packet, Token};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorba_base::{Duration, Instant, NodeId, NodeSet};

/// After a pause, what queued up meanwhile is dropped for this long.
const FLUSH: Duration = Duration::from_millis(3);
/// A timer that fires later than this was late because this process did not run.
const LATE: Duration = Duration::from_millis(2);

/// A farewell is sent so often, for no one answers it.
const FAREWELLS: usize = 2;

enum State {
    Gather(Gather),
    Commit(Commit),
    Recovery(Box<Recovery>),
    Operational(Box<Operational>),
}

/// One node's part of the Totem ring: a state machine without I/O, clock or randomness.
///
/// After every `handle_*` and [`Ring::submit`], the driver calls [`Ring::poll`] until it gives
/// `None`, then waits for a datagram or for [`Ring::poll_timeout`].
pub struct Ring {
    core: Core,
    /// Only taken out while one state turns into another.
    state: Option<State>,
    reason: GatherReason,
    flush_until: Option<Instant>,
    /// The timer that was late when this process was last noticed to have stood still.
    late_timer: Option<Instant>,
    installed_at: Instant,
    departed: bool,
}

impl core::fmt::Debug for Ring {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ring").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring that looks for others.
    ///
    /// # Panics
    /// If `config.me` is not in `config.nodes`.
    #[must_use]
    pub fn new(config: Config, boot: Boot, now: Instant) -> Self {
        assert!(config.nodes.contains(config.me), "a ring's own node is a node of its domain");
        let me = NodeSet::EMPTY.with(config.me);
        let mut core = Core::new(config, boot, now);
        let attempt = Attempt::new(GatherReason::Boot, me);
        let gather = Gather::new(&mut core, None, attempt);
        let state = Some(State::Gather(gather));
        let reason = GatherReason::Boot;
        let mut ring = Self {
            core,
            state,
            reason,
            flush_until: None,
            late_timer: None,
            installed_at: now,
            departed: false,
        };
        ring.tick();
        ring
    }

    /// A datagram came in, from whomever.
    pub fn handle_datagram(&mut self, now: Instant, datagram: BytesMut) {
        self.advance(now);
        if self.departed {
            return;
        }
        if self.flush_until.is_some_and(|until| until > self.core.now) {
            self.core.counters.flushed += 1;
            return;
        }
        let accepted = match self.core.sessions.open(self.core.now, datagram) {
            Ok(accepted) => accepted,
            Err(Dropped::Silently) => {
                self.core.counters.refused += 1;
                return;
            }
            Err(Dropped::Refused(node, reason)) => return self.core.refuse(node, reason),
        };
        self.core.counters.datagrams_received += 1;
        if accepted.key != self.core.sealer.key_id() {
            self.follow_key(accepted.key);
        }
        match Packet::decode(&accepted.packet) {
            Ok(packet) => self.dispatch(&accepted, packet),
            Err(_) => self.core.refuse(accepted.from, RefusedReason::Malformed),
        }
    }

    /// It is [`Ring::poll_timeout`]'s time, or later.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        if !self.departed {
            self.watch_links();
            self.tick();
        }
    }

    /// There is evidence that `node`'s process is dead: it is not waited for.
    pub fn handle_peer_lost(&mut self, now: Instant, node: NodeId) {
        self.advance(now);
        if node != self.core.me() && self.core.config.nodes.contains(node) && !self.departed {
            self.on_dead(node, LeaveReason::ProcessLost, GatherReason::PeerLost(node));
        }
    }

    /// The domain keys have changed, oldest first: the ring accepts these and no others, and seals
    /// with the newest as soon as every node of the domain is known to have it.
    ///
    /// # Errors
    /// [`InvalidKeys`]: the keys are what they were.
    pub fn set_domain_keys(
        &mut self,
        now: Instant,
        keys: Vec<DomainKey>,
    ) -> Result<(), InvalidKeys> {
        self.advance(now);
        self.core.replace_keys(keys)
    }

    /// A node of the domain seals with `key`, and this one with another. It has missed the switch
    /// if `key` is the newer one; who is alone has nobody to ask, and nobody who could be lost.
    fn follow_key(&mut self, key: KeyId) {
        if self.installed_circuit().is_none_or(Circuit::is_alone) {
            self.core.turn_to_key(key);
        }
    }

    /// This node leaves for good: tells the others, so that they need not wait for its silence.
    /// What is queued and not yet delivered is lost. (A boot that has sent 2^62 datagrams leaves
    /// by itself, for no nonce is used twice.) Afterwards the ring only hands out the outputs
    /// that are left and ignores everything.
    pub fn leave(&mut self, now: Instant) {
        self.core.now = self.core.now.max(now);
        let me = self.core.me();
        if self.departed {
            return;
        }
        self.departed = true;
        let alone = NodeSet::EMPTY.with(me);
        let (incarnation, cause) = (self.core.boot.incarnation, LeaveReason::Departed);
        let farewell = Packet::Join(Join {
            greeting: self.core.greeting(self.installed()),
            proc: alone,
            fail: alone,
            ring_seq: self.core.ring_seq,
            dead: alloc::vec![Dead { node: me, incarnation, cause }],
        });
        for _ in 0..FAREWELLS {
            self.core.transmit(Destination::Each, &farewell);
        }
    }

    fn on_dead(&mut self, node: NodeId, cause: LeaveReason, reason: GatherReason) {
        let incarnation = self.core.sessions.incarnation(node).unwrap_or(0);
        let dead = Dead { node, incarnation, cause };
        if let Some(State::Gather(gather)) = &mut self.state {
            let gathered = gather.on_dead(&mut self.core, dead);
            return self.after_gather(gathered);
        }
        if self.members().contains(node) {
            let mut left = self.gather_of(reason, NodeSet::EMPTY);
            left.1.bury(dead);
            self.gather(left);
            self.tick();
        }
    }

    /// Queues a message for everyone, this node included.
    ///
    /// # Errors
    /// [`Full`]: the queue's limit of messages or bytes is reached (retry after deliveries), or
    /// the payload is longer than [`crate::PAYLOAD_BYTES_MAX`] (no retry helps).
    pub fn submit(
        &mut self,
        now: Instant,
        payload: Bytes,
        guarantee: Guarantee,
    ) -> Result<Ticket, Full> {
        self.advance(now);
        self.core.queue.submit(payload, guarantee)
    }

    /// Somebody waits until everyone has the message `ticket`, which was submitted just now: those
    /// that do not say so with the token are asked when it is sent.
    pub fn await_stable(&mut self, ticket: Ticket) {
        self.core.stable_awaited = self.core.stable_awaited.max(Some(ticket));
    }

    /// This node's application does not keep up with what is delivered, or does again. As long
    /// as it does not, this node takes up what is left of the ring's window at each visit of the
    /// token, so that next to nothing new is ordered (Amir95, flow control).
    pub const fn throttle(&mut self, throttled: bool) {
        self.core.throttled = throttled;
    }

    /// The next thing to do. Packs and sends what was submitted when there is nothing else.
    pub fn poll(&mut self) -> Option<Output> {
        if self.core.outputs.is_empty()
            && !self.departed
            && let Some(State::Operational(operational)) = &mut self.state
        {
            operational.flush(&mut self.core);
        }
        self.core.outputs.pop_front()
    }

    /// When [`Ring::handle_timeout`] wants to be called, and what for.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, TimerKind)> {
        if self.departed {
            return None;
        }
        let next = match self.state.as_ref()? {
            State::Gather(gather) => Some(gather.next_timeout()),
            State::Commit(commit) => Some(commit.next_timeout()),
            State::Recovery(recovery) => recovery.next_timeout(),
            State::Operational(operational) => operational.next_timeout(&self.core),
        };
        let probe = self.core.links.next_timeout().map(|at| (at, TimerKind::Probe));
        [next, probe].into_iter().flatten().min()
    }

    /// Moves the time on, and notices if this process has stood still, or has used up its nonces.
    fn advance(&mut self, now: Instant) {
        if self.core.sealer.is_exhausted() {
            self.leave(now);
        }
        let due = self.poll_timeout().map(|(at, _)| at);
        self.core.now = self.core.now.max(now);
        let now = self.core.now;
        if self.flush_until.is_some_and(|until| until <= now) {
            self.flush_until = None;
        }
        if let Some(due) = due
            && now.since(due) > LATE
            && self.late_timer != Some(due)
        {
            self.late_timer = Some(due);
            self.stood_still(now.since(due));
        }
    }

    /// This process did not run when it should have, for so long.
    fn stood_still(&mut self, late: Duration) {
        let loss = self.installed_circuit().map_or(Duration::ZERO, |c| c.token_loss(&self.core));
        // As long as the others still wait for this node, there is nothing to repair.
        if late > self.core.config.timing.pause && late > loss {
            return self.paused();
        }
        match &mut self.state {
            Some(State::Operational(operational)) => operational.circuit.excuse(&self.core, late),
            Some(State::Recovery(recovery)) => recovery.circuit.excuse(&self.core, late),
            _ => {}
        }
    }

    /// What queued up is dropped. The others may have gone on without this node, or have stood
    /// still with it, if the whole host did: what comes now tells.
    fn paused(&mut self) {
        self.core.counters.pauses += 1;
        let until = self.core.now + FLUSH;
        self.flush_until = Some(until);
        match &mut self.state {
            Some(State::Operational(operational)) => {
                operational.circuit.put_on_probation(&self.core);
                return;
            }
            Some(State::Gather(_)) | None => {}
            Some(State::Commit(_) | State::Recovery(_)) => {
                let attempt = self.gather_of(GatherReason::Paused, NodeSet::EMPTY);
                self.gather(attempt);
            }
        }
        if let Some(State::Gather(gather)) = &mut self.state {
            gather.wait_until(&self.core, until);
        }
    }

    fn tick(&mut self) {
        let core = &mut self.core;
        match self.state.as_mut().expect("a ring is always in a state") {
            State::Gather(gather) => {
                let gathered = gather.on_timeout(core);
                self.after_gather(gathered);
            }
            State::Commit(commit) => {
                if commit.on_timeout(core) {
                    core.links.suspect(core.now);
                    core.stretch_timeouts();
                    self.regather(GatherReason::CommitTimeout, NodeSet::EMPTY);
                }
            }
            State::Recovery(recovery) => {
                if recovery.on_timeout(core) {
                    core.links.suspect(core.now);
                    core.stretch_timeouts();
                    self.regather(GatherReason::RecoveryTimeout, NodeSet::EMPTY);
                }
            }
            State::Operational(operational) => {
                if let Some(doubt) = operational.on_timeout(core) {
                    self.doubt(doubt);
                }
            }
        }
    }

    /// The ring cannot go on as it is.
    fn doubt(&mut self, reason: GatherReason) {
        // A ring whose token is lost at once may be slow rather than broken.
        let loss = self.installed_circuit().map_or(Duration::ZERO, |c| c.token_loss(&self.core));
        if self.core.now.since(self.installed_at) < loss + loss / 2 {
            self.core.stretch_timeouts();
        }
        self.core.links.see_trouble(self.core.now);
        let mut left = self.gather_of(reason, NodeSet::EMPTY);
        if let GatherReason::FailToReceive(node) = reason {
            let incarnation = self.core.sessions.incarnation(node).unwrap_or(0);
            left.1.bury(Dead { node, incarnation, cause: LeaveReason::FailedToReceive });
        }
        self.gather(left);
        self.tick();
    }

    fn regather(&mut self, reason: GatherReason, more: NodeSet) {
        let left = self.gather_of(reason, more);
        self.gather(left);
        self.tick();
    }

    /// Leaves the present state for a gather of its members and `more`.
    fn gather_of(
        &mut self,
        reason: GatherReason,
        more: NodeSet,
    ) -> (Option<Box<Circuit>>, Attempt) {
        let me = NodeSet::EMPTY.with(self.core.me());
        let (old, attempt) = match self.state.take().expect("a ring is always in a state") {
            State::Gather(Gather { old, attempt, .. }) => (old, Some(attempt)),
            State::Commit(Commit { old, attempt, .. }) => (old, Some(attempt)),
            State::Recovery(recovery) => (recovery.old, Some(recovery.attempt)),
            State::Operational(operational) => (Some(Box::new(operational.circuit)), None),
        };
        let members = match (&attempt, &old) {
            (Some(attempt), _) => attempt.proc.difference(attempt.fail),
            (None, Some(old)) => old.members,
            (None, None) => me,
        };
        let proc = members.union(more).union(me);
        let next = match attempt {
            Some(attempt) => attempt.again(reason, proc),
            None => Attempt::new(reason, proc),
        };
        (old, next)
    }

    fn gather(&mut self, left: (Option<Box<Circuit>>, Attempt)) {
        let (old, attempt) = left;
        self.reason = attempt.reason;
        self.state = Some(State::Gather(Gather::new(&mut self.core, old, attempt)));
    }

    fn after_gather(&mut self, gathered: Gathered) {
        match gathered {
            Gathered::Waiting => {}
            Gathered::Stalled => {
                self.core.links.suspect(self.core.now);
                self.core.stretch_timeouts();
                self.regather(GatherReason::CommitTimeout, NodeSet::EMPTY);
            }
            Gathered::Represent => {
                let Some(State::Gather(gather)) = self.state.take() else {
                    unreachable!("only a gather makes a representative");
                };
                let old = gather.old.as_deref();
                let token = Commit::mint(&mut self.core, old, &gather.attempt);
                self.commit(gather, token);
            }
        }
    }

    /// Enters the commit state with a token that has this node's entry.
    fn commit(&mut self, gather: Gather, token: CommitToken) {
        let Gather { old, attempt, .. } = gather;
        if token.members.len() == 1 {
            let mut recovery = Recovery::new(&mut self.core, old, attempt, &token);
            let mut first = Box::new(recovery.circuit.first_token());
            first.recovering = NodeSet::EMPTY;
            first.complete = true;
            recovery.circuit.take_token(&mut self.core, &first);
            return self.install(recovery, first);
        }
        self.state = Some(State::Commit(Commit::enter(&mut self.core, old, attempt, token)));
    }

    fn install(&mut self, recovery: Recovery, token: Box<Token>) {
        let mut operational = install(&mut self.core, recovery);
        self.installed_at = self.core.now;
        operational.visit(&mut self.core, token);
        self.state = Some(State::Operational(Box::new(operational)));
    }

    /// The ring installed last.
    fn installed(&self) -> Option<RingId> {
        self.installed_circuit().map(|circuit| circuit.ring)
    }

    fn installed_circuit(&self) -> Option<&Circuit> {
        match self.state.as_ref()? {
            State::Gather(gather) => gather.old.as_deref(),
            State::Commit(commit) => commit.old.as_deref(),
            State::Recovery(recovery) => recovery.old.as_deref(),
            State::Operational(operational) => Some(&operational.circuit),
        }
    }

    /// Members of the ring, or of the one that is being formed.
    fn members(&self) -> NodeSet {
        match self.state.as_ref().expect("a ring is always in a state") {
            State::Gather(gather) => gather.attempt.proc,
            State::Commit(commit) => commit.attempt.proc.difference(commit.attempt.fail),
            State::Recovery(recovery) => recovery.circuit.members,
            State::Operational(operational) => operational.circuit.members,
        }
    }
}

#[cfg(test)]
mod tests;
