//! Which packet concerns which state.
//!
//! Invariants: nothing from a boot that is not proven live reaches a state; a packet of another
//! ring changes nothing but, at most, starts a gather.

use super::{Ring, State};
use crate::commit::own_state;
use crate::gather::take_old_data;
use crate::ids::RingId;
use crate::operational::Operational;
use crate::output::{GatherReason, LeaveReason, RefusedReason};
use crate::recovery::{Recovery, is_plausible};
use crate::seal::Accepted;
use crate::shared::Core;
use crate::wire::{CommitToken, Data, Greeting, Join, Packet, Token};
use alloc::boxed::Box;
use quorba_base::{NodeId, NodeSet, canary};

impl Ring {
    pub(super) fn dispatch(&mut self, accepted: &Accepted, packet: Packet) {
        let from = accepted.from;
        match &packet {
            Packet::Hello(greeting) | Packet::Join(Join { greeting, .. })
                if !self.admit(accepted, greeting) =>
            {
                return;
            }
            Packet::Hello(_) | Packet::Join(_) => {}
            _ if !accepted.proven => return,
            _ => {}
        }
        match packet {
            Packet::Data(data) => self.on_data(from, data),
            Packet::Token(token) => self.on_token(from, token),
            Packet::Join(join) => self.on_join(from, &join),
            Packet::Commit(commit) => self.on_commit(commit),
            Packet::Hello(greeting) if self.is_deserted(from, &greeting) => {
                self.regather(GatherReason::ForeignMessage(from), NodeSet::EMPTY.with(from));
            }
            Packet::Hello(_) => {
                self.answer_from_commit(from);
                self.on_foreign(from);
            }
            Packet::Request(request) => {
                if let Some((operational, core)) = self.operational(request.ring) {
                    operational.on_request(core, from);
                }
            }
            Packet::Ack(ack) => {
                if let Some((operational, core)) = self.operational(ack.ring) {
                    operational.on_ack(core, from, ack);
                }
            }
            Packet::Probe(probe) => {
                let (now, me) = (self.core.now, self.core.me());
                let boot = (from, accepted.boot.incarnation);
                self.core.links.on_probe(now, boot, me, probe);
            }
            Packet::Settled(settled) => {
                if let Some((operational, core)) = self.operational(settled.ring) {
                    operational.on_settled(core, settled);
                }
            }
        }
    }

    fn operational(&mut self, ring: RingId) -> Option<(&mut Operational, &mut Core)> {
        match &mut self.state {
            Some(State::Operational(operational)) if operational.circuit.ring == ring => {
                Some((operational, &mut self.core))
            }
            _ => None,
        }
    }

    /// Whether a greeting's sender is live and of this domain.
    fn admit(&mut self, accepted: &Accepted, greeting: &Greeting) -> bool {
        let from = accepted.from;
        if greeting.domain_digest != self.core.config.domain_digest {
            self.core.refuse(from, RefusedReason::Digest);
            return false;
        }
        if accepted.proven {
            return true;
        }
        if !greeting.echoes(self.core.me(), &self.core.boot.session) {
            let ring = self.installed();
            self.core.greet(from, ring);
            return false;
        }
        self.core.sessions.prove(accepted);
        self.core.meet_boot(from, accepted.boot.incarnation);
        if let Some(State::Gather(gather)) = &mut self.state {
            gather.on_proven(&self.core);
        }
        true
    }

    fn on_data(&mut self, from: NodeId, data: Data) {
        let core = &mut self.core;
        match &mut self.state {
            Some(State::Operational(operational)) if operational.circuit.ring == data.ring => {
                if operational.circuit.members.contains(data.origin) {
                    operational.on_data(core, from, data);
                }
            }
            Some(State::Recovery(recovery)) if recovery.circuit.ring == data.ring => {
                if recovery.has_member(data.origin) {
                    recovery.on_data(core, data);
                }
            }
            Some(State::Gather(gather)) => take_old_data(core, &mut gather.old, data),
            Some(State::Commit(commit)) if canary!(HearsOldRingInCommit) => {
                take_old_data(core, &mut commit.old, data);
            }
            _ => self.on_foreign(from),
        }
    }

    fn on_token(&mut self, from: NodeId, token: Token) {
        let core = &mut self.core;
        match &mut self.state {
            Some(State::Operational(operational)) if operational.circuit.ring == token.ring => {
                if let Some(doubt) = operational.on_token(core, token) {
                    self.doubt(doubt);
                }
            }
            Some(State::Recovery(recovery)) if recovery.circuit.ring == token.ring => {
                if let Some(token) = recovery.on_token(core, token) {
                    self.install_recovered(token);
                }
            }
            _ => self.on_foreign(from),
        }
    }

    fn install_recovered(&mut self, token: Box<Token>) {
        let Some(State::Recovery(recovery)) = self.state.take() else {
            unreachable!("only recovery installs");
        };
        self.install(*recovery, token);
    }

    /// A packet of another ring, or of none: its sender may want to merge.
    fn on_foreign(&mut self, from: NodeId) {
        if let Some(State::Operational(operational)) = &self.state
            && !operational.circuit.members.contains(from)
            && !self.core.is_held_off(from, operational.circuit.members)
        {
            self.regather(GatherReason::ForeignMessage(from), NodeSet::EMPTY.with(from));
        }
    }

    /// A ring whose members do not know of this node: they hear of it as soon as the ring that it
    /// waits for should have been there. Else they would be heard of each other only when waiting
    /// ends, which takes long where rings have failed before.
    fn answer_from_commit(&mut self, from: NodeId) {
        if let Some(State::Commit(commit)) = &self.state
            && commit.is_slow(&self.core)
        {
            let ring = self.installed();
            self.core.greet(from, ring);
        }
    }

    /// Whether the ring that is being formed comes to nothing, because one of its members is in
    /// another: ring numbers only grow, so it never takes part in this one, or does not any more.
    /// Waiting for it would end, too, but takes long where rings have failed before.
    fn is_deserted(&self, from: NodeId, greeting: &Greeting) -> bool {
        let (members, ring) = match &self.state {
            Some(State::Commit(commit)) => {
                (commit.attempt.proc.difference(commit.attempt.fail), commit.ring)
            }
            Some(State::Recovery(recovery)) => (recovery.circuit.members, recovery.circuit.ring),
            _ => return false,
        };
        let is_past = |other: RingId| other != ring && other.seq >= ring.seq;
        members.contains(from) && greeting.ring.is_some_and(is_past)
    }

    fn on_join(&mut self, from: NodeId, join: &Join) {
        if join.fail.contains(from) {
            return self.on_dead(from, LeaveReason::Departed, GatherReason::Departed(from));
        }
        self.core.ring_seq_seen = self.core.ring_seq_seen.max(join.ring_seq);
        let floor = self.core.memory(from).ring_seq_floor;
        let stale = join.ring_seq < floor && !canary!(HeedsStaleJoins);
        let excludes_me = join.fail.contains(self.core.me());
        let boot = self.core.sessions.incarnation(from);
        let react = match self.state.as_ref().expect("a ring is always in a state") {
            State::Gather(_) => !stale,
            State::Commit(commit) => {
                let members = commit.attempt.proc.difference(commit.attempt.fail);
                members.contains(from) && join.ring_seq >= commit.ring.seq
            }
            State::Recovery(recovery) => {
                let circuit = &recovery.circuit;
                let reborn = boot != Some(circuit.incarnation(from));
                circuit.members.contains(from) && (reborn || join.ring_seq >= circuit.ring.seq)
            }
            State::Operational(operational) => {
                let circuit = &operational.circuit;
                let member =
                    circuit.members.contains(from) && boot == Some(circuit.incarnation(from));
                !stale && !excludes_me && (member || !self.core.is_held_off(from, circuit.members))
            }
        };
        if self.core.memory(from).was_silent() {
            self.core.note_late(from);
        }
        if !react {
            return;
        }
        if !matches!(self.state, Some(State::Gather(_))) {
            let left = self.gather_of(GatherReason::Join(from), NodeSet::EMPTY.with(from));
            self.gather(left);
        }
        if let Some(State::Gather(gather)) = &mut self.state {
            let gathered = gather.on_join(&mut self.core, from, join);
            self.after_gather(gathered);
        }
        if matches!(self.state, Some(State::Gather(_))) {
            self.tick();
        }
    }

    fn on_commit(&mut self, mut token: CommitToken) {
        let me = self.core.me();
        match self.state.take().expect("a ring is always in a state") {
            State::Gather(gather) => {
                let fresh = token.ring.seq > self.core.ring_seq
                    && token.members == gather.target()
                    && token.members.contains(me)
                    && token.state_of(me).is_none()
                    && self.core.knows_boots_of(&token)
                    && usize::from(token.hop) < token.members.len();
                if fresh {
                    token.fill(me, own_state(&self.core, gather.old.as_deref()));
                    self.commit(gather, token);
                } else {
                    self.state = Some(State::Gather(gather));
                }
            }
            State::Commit(commit) => {
                let accepts = commit.accepts(&self.core, &mut token)
                    && self.core.knows_boots_of(&token)
                    && is_plausible(&self.core, commit.old.as_deref(), &token);
                self.state = Some(if accepts {
                    State::Recovery(Box::new(Recovery::follow(&mut self.core, commit, token)))
                } else {
                    State::Commit(commit)
                });
            }
            State::Recovery(mut recovery) => {
                let first = recovery.on_commit(&self.core, &token);
                self.state = Some(State::Recovery(recovery));
                if let Some(first) = first {
                    self.on_token(me, first);
                }
            }
            operational @ State::Operational(_) => self.state = Some(operational),
        }
    }
}
