//! The operational state: order messages (Amir95, ordering), keep the token where it is used.
//!
//! What it is not: membership; whatever casts doubt on the ring is answered with a [`Doubt`].
//!
//! Invariants: messages are numbered only while the token is here; the token rests only if nobody
//! is known to need it, and never longer than its budget; what is sent from a resting token asks
//! for the acknowledgements that the next rotation would otherwise bring.

use crate::circuit::{Circuit, Place};
use crate::ids::Guarantee;
use crate::log::Held;
use crate::output::{Destination, GatherReason, TimerKind};
use crate::shared::Core;
use crate::wire::{Ack, Data, Packet, Settled, Token};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorba_base::{Duration, Instant, NodeId, NodeSet, canary};

/// Data packets that leave before an accelerated token; the rest of the visit's follow it.
const BEFORE_TOKEN: usize = 4;
/// A member whose reception does not advance for so many token visits ...
const FAIL_TO_RECEIVE_VISITS: u32 = 20;
/// ... and for so long is excluded.
const FAIL_TO_RECEIVE_AFTER: Duration = Duration::from_secs(2);
/// The others are told what is stable so long after this node has delivered it: its driver hands
/// that out first, and what is sent next tells them as well.
const SETTLED_PAUSE: Duration = Duration::from_micros(1);
/// A ring that has lasted this long gives the timeouts their usual length back.
const STEADY: Duration = Duration::from_secs(2);

/// Why the ring cannot go on as it is.
pub(crate) type Doubt = GatherReason;

/// Acknowledgements that were asked for.
#[derive(Clone, Copy, Debug)]
struct AckWait {
    seq: u64,
    /// When they were asked for; none if nobody was asked, or somebody has answered.
    asked: Option<Instant>,
    deadline: Instant,
}

/// A member that lags behind.
#[derive(Clone, Copy, Debug)]
struct Laggard {
    node: NodeId,
    aru: u64,
    visits: u32,
    since: Instant,
}

/// An installed ring at work.
pub(crate) struct Operational {
    pub(crate) circuit: Circuit,
    since: Instant,
    ack_wait: Option<AckWait>,
    /// When the others are told what is stable, unless a packet has told them by then.
    settled_at: Option<Instant>,
    laggard: Option<Laggard>,
    presence_at: Instant,
    presence_pause: Duration,
}

impl Operational {
    pub(crate) fn new(core: &Core, circuit: Circuit) -> Self {
        let pause = core.config.timing.presence_min;
        Self {
            circuit,
            since: core.now,
            ack_wait: None,
            settled_at: None,
            laggard: None,
            presence_at: core.now + pause,
            presence_pause: pause,
        }
    }

    /// A token has come.
    pub(crate) fn on_token(&mut self, core: &mut Core, token: Token) -> Option<Doubt> {
        if !self.circuit.take_token(core, &token) {
            return None;
        }
        if let Some(node) = self.find_laggard(core, &token) {
            return Some(GatherReason::FailToReceive(node));
        }
        self.visit(core, Box::new(token));
        None
    }

    /// What is done whenever the token is here.
    pub(crate) fn visit(&mut self, core: &mut Core, mut token: Box<Token>) {
        let me = core.me();
        let circuit = &mut self.circuit;
        let repeated = circuit.serve_requests(core, &mut token);
        let all_have_all = circuit.all_received() >= token.seq;
        token.sent = token.sent.saturating_sub(circuit.my_sent);
        token.backlog = token.backlog.saturating_sub(circuit.my_backlog);
        let batch = Self::number_batch(circuit, core, &mut token, repeated);
        let backlog = core.queue.packets(core.limits.body_bytes);
        let mut sent = repeated + batch.len() as u32;
        if core.throttled {
            sent = sent.max(core.limits.window_packets.saturating_sub(token.sent));
        }
        token.sent = token.sent.saturating_add(sent);
        token.backlog = token.backlog.saturating_add(backlog);
        (circuit.my_sent, circuit.my_backlog) = (sent, backlog);
        if !batch.is_empty() {
            token.rest_owner = me;
            circuit.rest_owner = me;
            self.settled_at = None;
        }
        circuit.report(core, &mut token);
        core.show_keys(&mut token);
        token.wanted = token.wanted.union(circuit.heard_wanted).intersection(circuit.members);
        circuit.heard_wanted = NodeSet::EMPTY;
        token.wanted.remove(me);
        // What all have is delivered at the end of this visit.
        let waits = circuit.delivered.max(circuit.all_received()) < circuit.log.aru();
        if waits && !circuit.is_alone() {
            token.safe_pending.insert(me);
        } else {
            token.safe_pending.remove(me);
        }
        if all_have_all && token.rest_owner == me && token.wanted.is_empty() {
            self.tell_those_who_wait(core, &mut token, batch.is_empty());
        }
        if self.may_rest(core, &token) {
            self.rest(core, token, batch);
        } else {
            self.send_and_pass(core, token, batch);
        }
        self.settle(core);
    }

    /// The token need not go round for those who wait to deliver what all have: they learn it from
    /// the packets that are sent now, or are told.
    fn tell_those_who_wait(&mut self, core: &Core, token: &mut Token, sends_nothing: bool) {
        let own = NodeSet::EMPTY.with(core.me());
        if sends_nothing && !token.safe_pending.difference(own).is_empty() {
            self.settled_at.get_or_insert(core.now + SETTLED_PAUSE);
        }
        token.safe_pending = token.safe_pending.intersection(own);
    }

    fn number_batch(
        circuit: &mut Circuit,
        core: &mut Core,
        token: &mut Token,
        repeated: u32,
    ) -> Vec<Data> {
        let body_bytes = core.limits.body_bytes;
        let backlog = core.queue.packets(body_bytes);
        let mut batch = Vec::new();
        if backlog == 0 {
            return batch;
        }
        let allowed = if circuit.is_alone() {
            core.limits.visit_packets
        } else {
            circuit.allowance(core, token, backlog, repeated)
        };
        let allowed = if core.throttled { allowed.min(1) } else { allowed };
        while batch.len() < allowed as usize {
            let Some(packed) = core.queue.pack(body_bytes) else { break };
            let held = Held {
                origin: core.me(),
                guarantee: packed.guarantee,
                inner: None,
                body: packed.body,
            };
            let data = circuit.number(core, token, held);
            if let Some((first, through)) = packed.ends {
                circuit.promises.note_sent(token.seq, first, through);
            }
            batch.push(data);
        }
        core.counters.packets_sent += batch.len() as u64;
        batch
    }

    fn may_rest(&self, core: &Core, token: &Token) -> bool {
        self.circuit.is_alone()
            || token.rest_owner == core.me()
                && token.wanted.is_empty()
                && !self.circuit.must_circulate(core, token)
    }

    fn rest(&mut self, core: &mut Core, token: Box<Token>, mut batch: Vec<Data>) {
        let mut budget = Duration::from_micros(u64::from(token.rest_budget_us));
        if !batch.is_empty() {
            budget = budget.min(core.config.timing.rest_max);
        }
        if !self.circuit.is_alone() {
            if let Some(last) = batch.last_mut() {
                last.acks_wanted = self.acks_wanted(core, last.guarantee);
                if last.acks_wanted > 0 && self.ack_wait.is_none() {
                    let deadline = core.now + self.circuit.ack_wait(core);
                    let asked = Some(core.now);
                    self.ack_wait = Some(AckWait { seq: last.seq, asked, deadline });
                }
            }
            for data in batch {
                core.transmit(Destination::Others, &Packet::Data(data));
            }
        }
        let unheld = self.circuit.promises.has_unheld()
            && self.circuit.members.len() >= core.holders_min(self.circuit.members);
        if (unheld || self.awaits_all(core)) && self.ack_wait.is_none() {
            // Nobody was asked to say so: another rotation will tell.
            let deadline = core.now + self.circuit.ack_wait(core);
            let seq = self.circuit.log.high();
            self.ack_wait = Some(AckWait { seq, asked: None, deadline });
        }
        self.circuit.place = Place::Resting { token, until: core.now + budget };
    }

    /// How many successors must say at once that they have a packet.
    fn acks_wanted(&self, core: &Core, guarantee: Guarantee) -> u8 {
        let members = self.circuit.members;
        let others = members.len() - 1;
        let wanted = match guarantee {
            Guarantee::Safe => others,
            Guarantee::Agreed if self.awaits_all(core) => others,
            Guarantee::Agreed if others + 1 < core.holders_min(members) => 0,
            Guarantee::Agreed => core.holders_min(members) - 1,
        };
        wanted as u8
    }

    /// Whether somebody waits until everyone has a message of mine that is sent.
    fn awaits_all(&self, core: &Core) -> bool {
        !self.circuit.is_alone()
            && core.stable_awaited.is_some()
            && !self.circuit.promises.is_empty()
    }

    fn send_and_pass(&mut self, core: &mut Core, mut token: Box<Token>, batch: Vec<Data>) {
        if !batch.is_empty() {
            // Everyone shall say whether they have it.
            self.circuit.start_rotation(core, &mut token);
        }
        self.ack_wait = None;
        let early = if core.config.accelerated { BEFORE_TOKEN } else { usize::MAX };
        let mut batch = batch.into_iter();
        for data in batch.by_ref().take(early) {
            core.transmit(Destination::Others, &Packet::Data(data));
        }
        self.circuit.pass(core, token);
        for data in batch {
            core.transmit(Destination::Others, &Packet::Data(data));
        }
    }

    fn settle(&mut self, core: &mut Core) {
        let before = self.circuit.delivered;
        let safe = self.circuit.settle(core);
        let resting = matches!(self.circuit.place, Place::Resting { .. });
        if safe && resting && !self.circuit.is_alone() && self.circuit.delivered > before {
            self.settled_at.get_or_insert(core.now + SETTLED_PAUSE);
        }
        self.renew_ack_wait(core);
    }

    /// Tells the others what is stable, if it is time. One who has passed the token on need not.
    fn tell_settled(&mut self, core: &mut Core) {
        if self.settled_at.take_if(|at| *at <= core.now).is_some()
            && matches!(self.circuit.place, Place::Resting { .. })
        {
            let stable = self.circuit.all_received();
            let settled = Settled { ring: self.circuit.ring, stable };
            core.transmit(Destination::Others, &Packet::Settled(settled));
        }
    }

    fn renew_ack_wait(&mut self, core: &Core) {
        let Some(wait) = self.ack_wait else { return };
        let circuit = &self.circuit;
        let of_all = circuit.delivered < circuit.log.aru() || self.awaits_all(core);
        let known = if of_all {
            circuit.all_received()
        } else {
            circuit.received_by(core.holders_min(circuit.members)).unwrap_or(u64::MAX)
        };
        if known < wait.seq {
            return;
        }
        let more = of_all || circuit.promises.has_unheld();
        let deadline = core.now + self.circuit.ack_wait(core);
        let seq = circuit.log.high();
        self.ack_wait = more.then_some(AckWait { seq, asked: None, deadline });
    }

    /// A packet of this ring has come from `from`.
    pub(crate) fn on_data(&mut self, core: &mut Core, from: NodeId, data: Data) {
        let (seq, wanted, origin) = (data.seq, data.acks_wanted, data.origin);
        self.circuit.take_packet(core, data);
        let has_all = self.circuit.log.aru() >= seq || canary!(AcknowledgesAcrossGap);
        if wanted > 0 && from == origin && has_all {
            self.acknowledge(core, origin, wanted);
        }
        self.settle(core);
    }

    fn acknowledge(&self, core: &mut Core, origin: NodeId, wanted: u8) {
        let mut node = origin;
        for _ in 0..wanted {
            node = self.circuit.members.successor(node).expect("a ring has members");
            if node == core.me() {
                let log = &self.circuit.log;
                let aru = if canary!(AcknowledgesAcrossGap) { log.high() } else { log.aru() };
                let ack = Ack { ring: self.circuit.ring, aru };
                core.transmit(Destination::Node(origin), &Packet::Ack(ack));
                return;
            }
        }
    }

    pub(crate) fn on_ack(&mut self, core: &mut Core, from: NodeId, ack: Ack) {
        if ack.ring == self.circuit.ring && ack.aru <= self.circuit.log.high() {
            self.circuit.learn(from, ack.aru);
            if let Some(wait) = self.ack_wait.as_mut().filter(|wait| wait.seq <= ack.aru)
                && let Some(asked) = wait.asked.take()
            {
                core.exchange.see(core.now.since(asked));
            }
            self.settle(core);
        }
    }

    pub(crate) fn on_settled(&mut self, core: &mut Core, settled: Settled) {
        if settled.ring == self.circuit.ring {
            self.circuit.learn_stable(settled.stable);
            self.settle(core);
        }
    }

    /// `from` asks for the token.
    pub(crate) fn on_request(&mut self, core: &mut Core, from: NodeId) {
        self.circuit.hear_request(core, from);
        if let Some(token) = self.lift(core) {
            self.visit(core, token);
        }
    }

    /// Takes the token from its rest.
    fn lift(&mut self, core: &Core) -> Option<Box<Token>> {
        match core::mem::replace(&mut self.circuit.place, Place::Away) {
            Place::Away => None,
            Place::Resting { mut token, until } => {
                let left = until.since(core.now).as_micros();
                token.rest_budget_us = u32::try_from(left).unwrap_or(u32::MAX);
                if canary!(KeepsRestingToken) {
                    self.circuit.place = Place::Resting { token: token.clone(), until };
                }
                Some(token)
            }
        }
    }

    /// Sends what was submitted, or asks for the token to do so.
    pub(crate) fn flush(&mut self, core: &mut Core) {
        let to_send = !core.queue.is_empty();
        if to_send && let Some(token) = self.lift(core) {
            self.visit(core, token);
            // A ring of one has neither the token's next visit nor a timer to go on with the rest.
            while self.circuit.is_alone()
                && core.outputs.is_empty()
                && !core.queue.is_empty()
                && let Some(token) = self.lift(core)
            {
                self.visit(core, token);
            }
        } else if !self.circuit.is_alone() {
            self.circuit.ask_for_token(core, to_send);
        }
    }

    fn find_laggard(&mut self, core: &Core, token: &Token) -> Option<NodeId> {
        let behind = token.members.iter().zip(&token.arus).min_by_key(|(_, aru)| **aru);
        let (node, aru) = behind.map(|(node, aru)| (node, *aru))?;
        if aru >= token.seq || node == core.me() {
            self.laggard = None;
            return None;
        }
        match &mut self.laggard {
            Some(laggard) if laggard.node == node && laggard.aru == aru => {
                laggard.visits += 1;
                let long = core.now.since(laggard.since) > FAIL_TO_RECEIVE_AFTER;
                (laggard.visits > FAIL_TO_RECEIVE_VISITS && long).then_some(node)
            }
            _ => {
                self.laggard = Some(Laggard { node, aru, visits: 0, since: core.now });
                None
            }
        }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) -> Option<Doubt> {
        if self.circuit.is_lost(core) {
            return Some(match self.circuit.is_on_probation() {
                true => GatherReason::Paused,
                false => GatherReason::TokenLoss,
            });
        }
        if core.now.since(self.since) > STEADY {
            core.patience = 0;
        }
        self.circuit.resend_if_due(core);
        let rested = match &self.circuit.place {
            Place::Resting { until, .. } if !self.circuit.is_alone() && *until <= core.now => {
                // If this process was late to pass it on, the others have had to wait.
                let late = core.now.since(*until);
                if late > self.circuit.rotation() {
                    self.circuit.note_rotation(core, late);
                }
                true
            }
            _ => false,
        };
        let unacked = self.ack_wait.is_some_and(|wait| wait.deadline <= core.now);
        if (rested || unacked)
            && let Some(mut token) = self.lift(core)
        {
            self.ack_wait = None;
            self.circuit.start_rotation(core, &mut token);
            self.visit(core, token);
        }
        self.tell_settled(core);
        self.show_presence(core);
        None
    }

    /// Greets the nodes outside of the view, so that parted rings find each other.
    fn show_presence(&mut self, core: &mut Core) {
        if !self.is_present(core) || self.presence_at > core.now {
            return;
        }
        for node in core.outside(self.circuit.members) {
            core.try_again(node);
            if !core.is_held_off(node, self.circuit.members) {
                core.greet(node, Some(self.circuit.ring));
            }
        }
        self.presence_pause = (self.presence_pause * 2).min(core.config.timing.presence_max);
        self.presence_at = core.now + self.presence_pause;
    }

    /// Whether it is on this node to greet those outside.
    fn is_present(&self, core: &Core) -> bool {
        let lowest = self.circuit.members.lowest() == Some(core.me());
        lowest && !core.outside(self.circuit.members).is_empty()
    }

    pub(crate) fn next_timeout(&self, core: &Core) -> Option<(Instant, TimerKind)> {
        let presence = self.is_present(core).then_some((self.presence_at, TimerKind::Presence));
        let ack = self.ack_wait.map(|wait| (wait.deadline, TimerKind::AckWait));
        let settled = self.settled_at.map(|at| (at, TimerKind::Settled));
        [self.circuit.next_timeout(), presence, ack, settled].into_iter().flatten().min()
    }
}
