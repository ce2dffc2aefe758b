//! The recovery state: members that come from one old ring exchange what some of them lack, in
//! packets of the new ring (Amir95, recovery).
//!
//! Invariants: nothing is delivered here; a member installs the new ring only when every member
//! has every recovered packet; once this node has said that it has them all, it is bound to what
//! the others may deliver on the strength of that, even if the attempt fails (`obligation`).

use crate::circuit::Circuit;
use crate::commit::{Commit, CommitResend};
use crate::gather::Attempt;
use crate::ids::Guarantee;
use crate::log::Held;
use crate::output::{Destination, TimerKind};
use crate::shared::Core;
use crate::wire::{CommitToken, Data, Inner, Packet, Token};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorba_base::{Instant, NodeId, NodeSet, canary};

/// What the members that come from my old ring have of it, together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Those members, me included.
    pub(crate) transitional: NodeSet,
    /// All of them have everything up to here.
    low: u64,
    /// Some of them has something up to here.
    high: u64,
    /// Some of them has delivered up to here.
    pub(crate) delivered: u64,
    /// Members whose messages all of them deliver: those of them, and whose one of them must,
    /// because of a recovery that failed for it (Moser94: the obligation set is extended by those
    /// of all that move together; seed 200679 of the simulator's rings).
    pub(crate) senders: NodeSet,
}

impl Plan {
    fn new(core: &Core, old: &Circuit, commit: &CommitToken) -> Self {
        let me = core.me();
        let (aru, high) = (old.log.aru(), old.log.high());
        let transitional = NodeSet::EMPTY.with(me);
        let (delivered, senders) = (old.delivered, old.obligation);
        let mut plan = Self { transitional, low: aru, high, delivered, senders };
        for node in commit.members {
            let state = commit.state_of(node).expect("the commit token is full");
            let Some(other) = state.old else { continue };
            let same_boot =
                old.members.contains(node) && state.incarnation == old.incarnation(node);
            if (other.ring == old.ring || canary!(MovesWithStrangers)) && same_boot {
                plan.transitional.insert(node);
                plan.low = plan.low.min(other.aru);
                plan.high = plan.high.max(other.high);
                plan.delivered = plan.delivered.max(other.delivered);
                plan.senders = plan.senders.union(other.obligation);
            }
        }
        plan.senders = plan.senders.union(plan.transitional);
        plan
    }
}

/// Whether what a commit token says can be true for this node.
pub(crate) fn is_plausible(core: &Core, old: Option<&Circuit>, commit: &CommitToken) -> bool {
    let Some(old) = old else { return true };
    let plan = Plan::new(core, old, commit);
    plan.high - plan.low <= core.limits.log_packets && plan.delivered <= plan.high
}

/// Exchanging what members of the same old ring lack.
pub(crate) struct Recovery {
    pub(crate) old: Option<Box<Circuit>>,
    pub(crate) attempt: Attempt,
    pub(crate) circuit: Circuit,
    pub(crate) plan: Option<Plan>,
    resend: Option<CommitResend>,
    /// The next packet of the old ring to look at.
    cursor: u64,
    /// Packets of the old ring that have been sent in the new one.
    seen: BTreeSet<u64>,
    /// At the token's last visit nobody had anything left to send: by now all have seen that.
    nobody_recovers: bool,
}

impl Recovery {
    /// Begins with a full commit token.
    pub(crate) fn new(
        core: &mut Core,
        mut old: Option<Box<Circuit>>,
        attempt: Attempt,
        token: &CommitToken,
    ) -> Self {
        assert!(token.is_full(), "recovery begins when all have said where they stand");
        for node in token.members {
            core.memory(node).ring_seq_floor = token.ring.seq;
        }
        let circuit = Circuit::new(core, token);
        let plan = old.as_mut().map(|old| {
            let plan = Plan::new(core, old, token);
            old.log.widen(plan.high);
            plan
        });
        let cursor = plan.map_or(1, |plan| plan.low + 1);
        let (seen, nobody_recovers) = (BTreeSet::new(), false);
        Self { old, attempt, circuit, plan, resend: None, cursor, seen, nobody_recovers }
    }

    /// Follows from `commit` on the second visit of its token, and passes that on.
    pub(crate) fn follow(core: &mut Core, commit: Commit, token: CommitToken) -> Self {
        let mut recovery = Self::new(core, commit.old, commit.attempt, &token);
        recovery.resend = Some(CommitResend::pass(core, recovery.old.as_deref(), token));
        recovery
    }

    /// The representative's commit token has come home: gives the new ring's first token.
    pub(crate) fn on_commit(&mut self, core: &Core, token: &CommitToken) -> Option<Token> {
        let resend = self.resend.as_ref()?;
        let home = self.circuit.ring.representative == core.me()
            && token.ring == self.circuit.ring
            && token.hop > resend.hop();
        if !home {
            return None;
        }
        self.resend = None;
        Some(self.circuit.first_token())
    }

    /// A packet of the new ring has come.
    pub(crate) fn on_data(&mut self, core: &mut Core, data: Data) {
        self.resend = None;
        let inner = data.inner.map(|inner| (inner, data.body.clone()));
        self.circuit.take_packet(core, data);
        if let Some((inner, body)) = inner {
            self.absorb(inner, body);
        }
        self.consume();
    }

    /// Takes a recovered packet to the old ring, if it is mine.
    fn absorb(&mut self, inner: Inner, body: bytes::Bytes) {
        let (Some(old), Some(plan)) = (&mut self.old, &self.plan) else { return };
        if inner.ring == old.ring && inner.seq > plan.low && inner.seq <= plan.high {
            let Inner { seq, origin, guarantee, .. } = inner;
            old.log.insert(seq, Held { origin, guarantee, inner: None, body });
            self.seen.insert(seq);
        }
    }

    /// Recovered packets are done with as soon as everyone has them.
    fn consume(&mut self) {
        let circuit = &mut self.circuit;
        while circuit.log.packet(circuit.delivered + 1).is_some_and(|held| held.inner.is_some()) {
            circuit.delivered += 1;
        }
        let done = circuit.delivered.min(circuit.all_received());
        circuit.log.release(done);
    }

    /// A token of the new ring has come. Gives it back when the new ring is in force.
    pub(crate) fn on_token(&mut self, core: &mut Core, token: Token) -> Option<Box<Token>> {
        if !self.circuit.take_token(core, &token) {
            return None;
        }
        self.resend = None;
        self.visit(core, Box::new(token))
    }

    fn visit(&mut self, core: &mut Core, mut token: Box<Token>) -> Option<Box<Token>> {
        let repeated = self.circuit.serve_requests(core, &mut token);
        token.sent = token.sent.saturating_sub(self.circuit.my_sent);
        let batch = self.number_recovered(core, &mut token, repeated);
        let sent = repeated + batch.len() as u32;
        token.sent = token.sent.saturating_add(sent);
        self.circuit.my_sent = sent;
        if self.plan.is_none_or(|plan| self.cursor > plan.high) {
            token.recovering.remove(core.me());
        }
        let nobody_recovers = token.recovering.is_empty();
        let all_know = core::mem::replace(&mut self.nobody_recovers, nobody_recovers);
        self.circuit.report(core, &mut token);
        self.consume();
        if nobody_recovers && self.circuit.log.aru() >= token.seq {
            self.oblige();
            // Who has not seen that nobody recovers is not bound yet.
            let all_are_bound = all_know && self.circuit.all_received() >= token.seq;
            if !token.complete && (all_are_bound || canary!(InstallsTooEarly)) {
                token.complete = true;
                self.circuit.start_rotation(core, &mut token);
            }
        }
        if token.complete {
            return Some(token);
        }
        for data in batch {
            core.transmit(Destination::Others, &Packet::Data(data));
        }
        self.circuit.pass(core, token);
        None
    }

    fn number_recovered(&mut self, core: &mut Core, token: &mut Token, repeated: u32) -> Vec<Data> {
        let mut batch = Vec::new();
        let (Some(old), Some(plan)) = (&self.old, &self.plan) else { return batch };
        if canary!(RecoversNothing) {
            self.cursor = plan.high + 1;
        }
        let allowed = self.circuit.allowance(core, token, u32::MAX, repeated) as usize;
        while self.cursor <= plan.high && batch.len() < allowed {
            let seq = self.cursor;
            self.cursor += 1;
            let Some(held) = old.log.packet(seq).filter(|_| !self.seen.contains(&seq)) else {
                continue;
            };
            let inner =
                Inner { ring: old.ring, seq, origin: held.origin, guarantee: held.guarantee };
            let held = Held {
                origin: core.me(),
                guarantee: Guarantee::Agreed,
                inner: Some(inner),
                body: held.body.clone(),
            };
            self.seen.insert(seq);
            batch.push(self.circuit.number(core, token, held));
        }
        batch
    }

    /// From here on others may install, and deliver what this node has said to have.
    fn oblige(&mut self) {
        if canary!(ForgetsObligation) {
            return;
        }
        if let (Some(old), Some(plan)) = (&mut self.old, &self.plan) {
            old.obligation = old.obligation.union(plan.senders);
        }
    }

    /// Whether the new ring's token is lost.
    pub(crate) fn on_timeout(&mut self, core: &mut Core) -> bool {
        if let Some(resend) = &mut self.resend {
            resend.on_timeout(core);
        }
        self.circuit.resend_if_due(core);
        self.circuit.is_lost(core)
    }

    pub(crate) fn next_timeout(&self) -> Option<(Instant, TimerKind)> {
        let resend = self.resend.as_ref().map(|resend| (resend.at(), TimerKind::CommitResend));
        [resend, self.circuit.next_timeout()].into_iter().flatten().min()
    }

    /// Whether `node` is in the new ring.
    pub(crate) fn has_member(&self, node: NodeId) -> bool {
        self.circuit.members.contains(node)
    }
}

#[cfg(test)]
mod tests;
