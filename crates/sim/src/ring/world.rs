//! All rings of one run, the network between them, and the loop that lets time pass.
//!
//! Invariant: everything that happens is an [`Event`] from the one queue.

use super::check;
use super::gray::Gray;
use super::life::{Claim, Got, HEAD_BYTES, Life, State, Submission};
use super::plan::RingPlan;
use crate::ambush::{Ambush, Occasion};
use crate::event::Queue;
use crate::machine::Machine;
use crate::network::{Leaving, Network, owned};
use crate::report::{INVARIANTS, Violation};
use crate::rng::Rng;
use crate::transcript::Transcript;
use crate::world::{BEGIN, INCARNATION_STEP, ms, node_id, us};
use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId, NodeSet};
use quorba_engine::order::{
    Boot, Config, Delivery, Destination, DomainKey, Guarantee, Hold, Output, Ring, RingId,
    Snapshot, StateName, Timing, View, ViewKind,
};
use std::collections::{BTreeMap, VecDeque};

/// How often memory is looked at.
const INSPECT_EVERY: Duration = Duration::from_millis(20);
/// Bytes of a message of many packets, at most.
const BIG_BYTES_MAX: u64 = 100_000;

/// One thing that will happen.
pub(crate) enum Event {
    Wake { node: usize, boot: u64 },
    Datagram { to: usize, bytes: Bytes },
    Boot { node: usize, boot: u64 },
    PeerLost { node: usize, boot: u64, lost: usize },
    Submit { node: usize, boot: u64 },
    Roll { node: usize, left: usize },
    Nemesis,
    Weather,
    Inspect,
}

/// Something that happens to a process.
pub(super) enum Input {
    Datagram(Bytes),
    PeerLost(NodeId),
}

/// A machine with at most one ring process.
pub(super) struct Host {
    pub(super) ring: Option<Ring>,
    pub(super) life: usize,
    pub(super) boot: u64,
    pub(super) machine: Machine,
    pub(super) inbox: VecDeque<Input>,
    pub(super) datagrams_waiting: usize,
    /// What survives.
    ring_seq: u64,
    incarnation: u64,
}

/// See the module's text.
pub(crate) struct RingWorld {
    pub(crate) plan: RingPlan,
    pub(crate) now: Instant,
    pub(super) rng: Rng,
    pub(super) queue: Queue<Event>,
    pub(super) network: Network,
    pub(super) hosts: Vec<Host>,
    pub(crate) lives: Vec<Life>,
    names: BTreeMap<(NodeId, u64), usize>,
    pub(crate) transcript: Transcript,
    pub(crate) violations: Vec<Violation>,
    pub(super) peace: bool,
    pub(crate) events: u64,
    pub(crate) crashes: u64,
    submitted: usize,
    /// A fault that lies in wait.
    pub(super) ambush: Option<Ambush>,
    /// Spells of poor links, if those are all that happens.
    pub(super) gray: Option<Gray>,
}

impl RingWorld {
    pub(crate) fn new(seed: u64, plan: RingPlan, transcript: Transcript) -> Self {
        let rng = Rng::new(seed);
        let host = || Host {
            ring: None,
            life: 0,
            boot: 0,
            machine: Machine::new(BEGIN, 0),
            inbox: VecDeque::new(),
            datagrams_waiting: 0,
            ring_seq: 0,
            incarnation: 0,
        };
        let mut world = Self {
            now: BEGIN,
            rng: rng.fork(0x3018),
            queue: Queue::default(),
            network: Network::new(plan.nodes, plan.links, rng.fork(0x0e8)),
            hosts: (0..plan.nodes).map(|_| host()).collect(),
            lives: Vec::new(),
            names: BTreeMap::new(),
            transcript,
            violations: Vec::new(),
            peace: false,
            events: 0,
            crashes: 0,
            submitted: 0,
            ambush: None,
            gray: plan.spells.then(|| Gray::new(rng.fork(0x68a7), BEGIN)),
            plan,
        };
        for node in 0..world.plan.nodes {
            let spread = world.rng.pick(&[0, 5_000, 100_000]);
            let wait = us(world.rng.below(spread + 1));
            world.plan_boot(node, wait);
        }
        world.queue.push(world.now + INSPECT_EVERY, Event::Inspect);
        world.queue.push(world.now + us(world.plan.fault_every_us), Event::Nemesis);
        if world.plan.spells {
            world.queue.push(world.now, Event::Weather);
        }
        world
    }

    /// Lets time pass until `until`, or until something is found to be wrong.
    pub(crate) fn run_until(&mut self, until: Instant) {
        while self.violations.is_empty() {
            let Some((at, event)) = self.queue.pop(until) else { break };
            self.now = self.now.max(at);
            self.events += 1;
            self.transcript.mix(at.as_nanos());
            match event {
                Event::Wake { node, boot } => self.wake(node, boot),
                Event::Datagram { to, bytes } => self.datagram(to, bytes),
                Event::Boot { node, boot } => self.boot(node, boot),
                Event::PeerLost { node, boot, lost } => self.peer_lost(node, boot, lost),
                Event::Submit { node, boot } => self.submit_some(node, boot),
                Event::Roll { node, left } => self.roll(node, left),
                Event::Nemesis => self.nemesis(),
                Event::Weather => self.weather(),
                Event::Inspect => {
                    check::inspect(self);
                    self.queue.push(self.now + INSPECT_EVERY, Event::Inspect);
                }
            }
        }
        self.now = self.now.max(until);
    }

    /// A line of the transcript.
    pub(super) fn say(&mut self, line: impl FnOnce() -> String) {
        self.transcript.say(self.now, line);
    }

    /// A property does not hold.
    pub(crate) fn violate(&mut self, invariant: &'static str, text: String) {
        assert!(INVARIANTS.contains(&invariant), "{invariant} is none of the checkers");
        self.violations.push(Violation { invariant, at_ns: self.now.as_nanos(), text });
    }

    pub(super) fn is_up(&self, node: usize) -> bool {
        self.hosts[node].ring.is_some()
    }

    pub(crate) fn snapshot(&self, node: usize) -> Option<Snapshot> {
        self.hosts[node].ring.as_ref().map(Ring::snapshot)
    }

    pub(super) fn life(&self, node: usize) -> &Life {
        &self.lives[self.hosts[node].life]
    }

    /// Events that wait.
    pub(super) fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// Datagrams and bytes that the network was given so far; a multicast counts once.
    pub(crate) fn sent(&self) -> (u64, u64) {
        self.network.sent()
    }

    // -- processes --------------------------------------------------------------------------

    pub(super) fn plan_boot(&mut self, node: usize, wait: Duration) {
        self.hosts[node].boot += 1;
        let boot = self.hosts[node].boot;
        self.queue.push(self.now + wait, Event::Boot { node, boot });
    }

    fn boot(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot != boot || self.is_up(node) {
            return;
        }
        let mut salt = [0; 16];
        salt[..8].copy_from_slice(&self.rng.next().to_be_bytes());
        salt[8..].copy_from_slice(&self.rng.next().to_be_bytes());
        let drift = self.plan.drift_ppm;
        let drift = self.rng.below(2 * drift + 1) as i64 - drift as i64;
        let mut timing = Timing::default();
        if self.plan.circulates {
            timing.rest_max = Duration::ZERO;
        }
        let config = Config {
            me: node_id(node),
            nodes: NodeSet::first(self.plan.nodes),
            domain_key: DomainKey::new([7; 32]),
            domain_digest: 42,
            datagram_bytes_max: self.plan.datagram_bytes_max,
            encrypt: self.plan.encrypt,
            accelerated: self.plan.accelerated,
            hold: Hold::default(),
            timing,
        };
        let life = self.lives.len();
        let host = &mut self.hosts[node];
        host.incarnation += INCARNATION_STEP;
        let incarnation = host.incarnation;
        let start = Boot { incarnation, salt, ring_seq_min: host.ring_seq };
        host.machine = Machine::new(self.now, drift);
        host.inbox.clear();
        host.datagrams_waiting = 0;
        host.life = life;
        host.ring = Some(Ring::new(config, start, Instant::ZERO));
        self.lives.push(Life::new(node_id(node), incarnation));
        self.names.insert((node_id(node), incarnation), life);
        self.say(|| format!("n{node} starts (boot {boot})"));
        self.drain(node);
        self.arm(node);
        let wait = us(self.rng.below(2 * self.plan.submit_every_us));
        self.queue.push(self.now + wait, Event::Submit { node, boot });
    }

    fn datagram(&mut self, to: usize, bytes: Bytes) {
        let host = &self.hosts[to];
        let full = host.datagrams_waiting >= host.machine.socket_datagrams;
        if !(full && host.machine.is_blocked(self.now)) {
            self.input(to, Input::Datagram(bytes));
        }
    }

    /// Hands an input to a process, now or when it looks again.
    pub(super) fn input(&mut self, node: usize, input: Input) {
        let host = &mut self.hosts[node];
        if host.ring.is_none() {
            return;
        }
        if host.machine.is_blocked(self.now) || !host.inbox.is_empty() {
            host.datagrams_waiting += usize::from(matches!(input, Input::Datagram(_)));
            host.inbox.push_back(input);
            return;
        }
        self.handle(node, input);
        self.arm(node);
    }

    /// A node that ends midway may end while it installs a ring, and hands out what it has of the
    /// one before.
    fn note_before(&mut self, node: usize) {
        let host = &self.hosts[node];
        if let Some(ring) = host.ring.as_ref().filter(|_| host.machine.crash_after.is_some()) {
            self.lives[host.life].before = Some(Box::new(ring.snapshot()));
        }
    }

    fn handle(&mut self, node: usize, input: Input) {
        self.note_before(node);
        let host = &mut self.hosts[node];
        let Some(ring) = &mut host.ring else { return };
        let now = host.machine.clock.local(self.now);
        match input {
            Input::Datagram(bytes) => ring.handle_datagram(now, owned(bytes)),
            Input::PeerLost(lost) => ring.handle_peer_lost(now, lost),
        }
        self.drain(node);
        self.hosts[node].machine.worked(self.now);
        self.spring(node, Occasion::Handled);
    }

    /// A timer, or the end of a pause: look at everything that has come.
    fn wake(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot != boot || !self.is_up(node) {
            return;
        }
        self.hosts[node].machine.armed.take_if(|armed| *armed <= self.now);
        while !self.hosts[node].machine.is_blocked(self.now) {
            let host = &mut self.hosts[node];
            let Some(input) = host.inbox.pop_front() else { break };
            host.datagrams_waiting -= usize::from(matches!(input, Input::Datagram(_)));
            self.handle(node, input);
        }
        self.note_before(node);
        let host = &mut self.hosts[node];
        let now = host.machine.clock.local(self.now);
        if !host.machine.is_blocked(self.now)
            && let Some(ring) = &mut host.ring
            && ring.poll_timeout().is_some_and(|(at, _)| at <= now)
        {
            host.machine.woke();
            ring.handle_timeout(now);
            self.drain(node);
        }
        self.arm(node);
    }

    fn arm(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        let Some(ring) = &host.ring else { return };
        let (due, waiting) = (ring.poll_timeout().map(|(at, _)| at), !host.inbox.is_empty());
        match host.machine.arm(self.now, due, waiting) {
            Ok(None) => {}
            Ok(Some(at)) => self.queue.push(at, Event::Wake { node, boot: host.boot }),
            Err(()) => {
                let text = format!("n{node} asks to be woken at a time that has passed, for ever");
                self.violate("liveness", text);
            }
        }
    }

    // -- what goes in and comes out ----------------------------------------------------------

    fn submit_some(&mut self, node: usize, boot: u64) {
        if self.peace || self.hosts[node].boot != boot || !self.is_up(node) {
            return;
        }
        if !self.hosts[node].machine.is_blocked(self.now) {
            for _ in 0..self.rng.between(1, self.plan.burst) {
                self.submit(node);
            }
            self.drain(node);
            self.arm(node);
        }
        let wait = us(self.rng.between(1, 2 * self.plan.submit_every_us));
        self.queue.push(self.now + wait, Event::Submit { node, boot });
    }

    fn submit(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        let Some(ring) = host.ring.as_mut().filter(|_| self.submitted < self.plan.messages_max)
        else {
            return;
        };
        let most =
            if self.rng.per_mille(self.plan.big) { BIG_BYTES_MAX } else { self.plan.bytes_max };
        let bytes = HEAD_BYTES + self.plan.bytes_more + self.rng.below(most) as usize;
        let safe = self.rng.per_mille(self.plan.safe);
        let guarantee = if safe { Guarantee::Safe } else { Guarantee::Agreed };
        let life = &mut self.lives[host.life];
        let saw = life.got.last().map(|got| got.position);
        let submission = Submission { bytes, guarantee, saw };
        let ticket = life.submitted.len() as u64 + 1;
        let now = host.machine.clock.local(self.now);
        let taken = ring.submit(now, submission.payload(host.life, ticket), guarantee);
        let Ok(given) = taken else { return };
        life.submitted.push(submission);
        self.submitted += 1;
        if given.0 != ticket {
            let text = format!("n{node} names its message {ticket} {given:?}");
            self.violate("basic delivery", text);
        }
    }

    pub(super) fn drain(&mut self, node: usize) {
        let mut pending: Option<(Destination, Bytes)> = None;
        loop {
            if self.hosts[node].machine.crash_after == Some(0) {
                self.crash(node, false);
                let wait = ms(self.rng.between(1, 200));
                return self.plan_boot(node, wait);
            }
            let host = &mut self.hosts[node];
            let output = host.ring.as_mut().and_then(Ring::poll);
            if let Some((to, datagram)) = pending.take() {
                self.transmit(node, to, &datagram, output.is_none());
            }
            let Some(output) = output else { return };
            let host = &mut self.hosts[node];
            if let Some(left) = &mut host.machine.crash_after {
                *left -= 1;
            }
            if host.machine.crash_at_view && matches!(output, Output::View(_)) {
                host.machine.crash_after = Some(self.rng.below(6));
                host.machine.crash_at_view = false;
            }
            match output {
                Output::Transmit { to, datagram } => pending = Some((to, datagram.freeze())),
                output => self.carry_out(node, output),
            }
        }
    }

    fn carry_out(&mut self, node: usize, output: Output) {
        let life = self.hosts[node].life;
        match output {
            Output::Transmit { .. } => unreachable!("the caller sends them"),
            Output::View(view) => self.note_view(node, view),
            Output::Deliver(delivery) => self.note_delivery(node, &delivery),
            Output::Held(ticket) => self.note_held(life, ticket.0),
            Output::Stable(ticket) => {
                if ticket.0 <= self.lives[life].stable {
                    self.violate("held", format!("n{node}: Stable goes back to {ticket:?}"));
                }
                self.lives[life].stable = ticket.0;
            }
            Output::Persist { ring_seq } => {
                let host = &mut self.hosts[node];
                host.ring_seq = host.ring_seq.max(ring_seq);
            }
            Output::Refused { node: other, reason } => {
                self.transcript
                    .whisper(self.now, || format!("n{node} refuses {other}: {reason:?}"));
            }
        }
    }

    fn transmit(&mut self, from: usize, to: Destination, datagram: &Bytes, last: bool) {
        self.transcript.mix_bytes(datagram);
        self.network.count(datagram);
        let (now, queue) = (self.now, &mut self.queue);
        let (targets, alone) = match to {
            Destination::Node(node) => {
                (usize::from(node.index())..usize::from(node.index()) + 1, true)
            }
            Destination::Others | Destination::Each => (0..self.plan.nodes, false),
        };
        for to in targets.filter(|to| *to != from) {
            self.network.send(
                now,
                (from, to),
                Leaving { alone, last },
                datagram,
                |delay, bytes| {
                    queue.push(now + delay, Event::Datagram { to, bytes });
                },
            );
        }
    }

    fn note_view(&mut self, node: usize, view: View) {
        self.say(|| {
            let (kind, ring, members) = (view.kind, view.ring, view.members);
            format!("n{node} {kind:?} view {ring} {members:?}, from {:?}", view.previous)
        });
        self.judge_left_out(node, &view);
        let life = &mut self.lives[self.hosts[node].life];
        life.unheld.extend(view.unheld.map(|(first, last)| (first.0, last.0)));
        let installs = view.kind == ViewKind::Regular;
        life.views.push((life.got.len(), view));
        if installs {
            self.spring(node, Occasion::Installs);
        }
    }

    fn note_delivery(&mut self, node: usize, delivery: &Delivery) {
        let Delivery { position, origin, incarnation, ticket, .. } = *delivery;
        self.transcript.mix(position.seq);
        self.transcript.whisper(self.now, || {
            format!("n{node} delivers {ticket:?} of {origin} at {position:?}")
        });
        let sent = self.names.get(&(origin, incarnation)).copied().filter(|life| {
            let known = ticket.0.checked_sub(1).map(|index| index as usize);
            let submission = known.and_then(|index| self.lives[*life].submitted.get(index));
            submission.is_some_and(|s| s.is(*life, ticket.0, &delivery.payload))
        });
        let Some(origin) = sent else {
            let text =
                format!("n{node} was delivered {ticket:?} of {origin}, which nobody sent so");
            return self.violate("basic delivery", text);
        };
        let me = self.hosts[node].life;
        let got = Got { position, origin, ticket: ticket.0 };
        self.lives[me].got.push(got);
        let is_safe = self.lives[origin].submitted[ticket.0 as usize - 1].guarantee;
        let regular = self.lives[me].views.last().map(|(_, view)| view.kind);
        if is_safe == Guarantee::Safe && regular == Some(ViewKind::Regular) {
            check::safe_now(self, node, got);
        }
    }

    fn note_held(&mut self, life: usize, ticket: u64) {
        if ticket <= self.lives[life].held {
            let text = format!("{}: Held goes back to {ticket}", self.lives[life].node);
            self.violate("held", text);
        }
        let states = self.hosts.iter().filter_map(|host| {
            let snapshot = host.ring.as_ref()?.snapshot();
            let received = snapshot.ring.map(|ring| (ring, snapshot.packets[1]));
            let delivered = self.lives[host.life].got.len();
            Some(State { life: host.life, received, delivered })
        });
        let claim = Claim { ticket, states: states.collect(), at: self.now };
        self.lives[life].held = ticket;
        self.lives[life].claims.push(claim);
    }

    /// The ring that the first node has installed.
    pub(super) fn ring(&self) -> Option<RingId> {
        self.snapshot(0)?.ring
    }

    /// What is missing until everyone is in one ring and has everything, if anything is.
    pub(crate) fn unsettled(&self) -> Option<String> {
        let mut first = None;
        for node in 0..self.plan.nodes {
            let Some(snapshot) = self.snapshot(node) else {
                return Some(format!("n{node} does not run"));
            };
            if snapshot.state != StateName::Operational {
                return Some(format!("n{node} is in state {:?}", snapshot.state));
            }
            if snapshot.members != NodeSet::first(self.plan.nodes) {
                return Some(format!("n{node} is in a ring of {:?}", snapshot.members));
            }
            if *first.get_or_insert(snapshot.ring) != snapshot.ring {
                return Some(format!("n{node} is in another ring than n0"));
            }
            let (life, me) = (self.life(node), self.hosts[node].life);
            let own = life.own_deliveries(me).count();
            if own < life.submitted.len() {
                let all = life.submitted.len();
                return Some(format!("n{node} was delivered {own} of its {all} messages"));
            }
        }
        check::restless(self)
    }
}
