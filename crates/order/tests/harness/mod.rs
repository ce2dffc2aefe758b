//! A small deterministic network around real rings: virtual time, seeded faults, and checkers.
//!
//! What it is not: the simulator of whole nodes; it knows only this crate.
//!
//! Invariants: a run is a function of its seed; every fault is injected between rings, none
//! inside of one.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod check;
mod quiet;
pub mod scenario;

use bytes::{Bytes, BytesMut};
use quorba_base::{Duration, Instant, NodeId, NodeSet};
use quorba_order::{
    Boot, Config, Delivery, Destination, Guarantee, Hold, Output, Position, Progress, Ring,
    Snapshot, StateName, Ticket, Timing, View,
};
use std::collections::BTreeMap;

pub fn node(index: usize) -> NodeId {
    NodeId::new(index as u8).expect("in range")
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// Adjusts the configuration of a node.
pub type Configure = dyn Fn(usize, &mut Config);
/// When, from, to, what: whether it is dropped.
pub type Filter = dyn FnMut(Instant, usize, usize, &BytesMut) -> bool;

/// SplitMix64.
#[derive(Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }
}

/// What a node's application saw, in order.
#[derive(Clone, Debug)]
pub enum Seen {
    View(View),
    Deliver(Delivery),
}

/// One boot of one node, running or over.
pub struct Life {
    pub node: NodeId,
    pub incarnation: u64,
    pub seen: Vec<Seen>,
    /// Ticket n's payload is at n - 1.
    pub submitted: Vec<(Bytes, Guarantee)>,
    pub held: u64,
    pub stable: u64,
    pub unheld: Vec<(u64, u64)>,
    pub refused: Vec<(NodeId, quorba_order::RefusedReason)>,
    pub last: Option<Snapshot>,
    pub crashed: bool,
}

struct Running {
    ring: Ring,
    life: usize,
    paused_until: Option<Instant>,
    wake: Option<Instant>,
}

#[derive(Clone)]
enum Event {
    Datagram { from: usize, to: usize, bytes: BytesMut },
    Wake(usize),
}

/// What the network does to datagrams.
#[derive(Clone, Debug)]
pub struct Faults {
    pub loss: u64,
    pub duplicate: u64,
    pub slow: u64,
    pub delay_us: (u64, u64),
    pub slow_us: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self { loss: 0, duplicate: 0, slow: 0, delay_us: (20, 60), slow_us: 5_000 }
    }
}

pub struct Net {
    pub now: Instant,
    pub rng: Rng,
    pub count: usize,
    pub faults: Faults,
    /// `cut[a][b]`: what a sends does not reach b.
    pub cut: Vec<Vec<bool>>,
    pub lives: Vec<Life>,
    pub config: Box<Configure>,
    running: Vec<Option<Running>>,
    events: BTreeMap<(Instant, u64), Event>,
    serial: u64,
    disk: Vec<u64>,
    pub transmitted: u64,
    /// Kind, by length only; for tests that count datagrams.
    pub trace: Vec<(Instant, usize, Destination, usize)>,
    pub recordings: Vec<(usize, BytesMut)>,
    pub record: bool,
    /// Sees each datagram before it is sent; true drops it.
    pub filter: Option<Box<Filter>>,
    /// From, to: by how many more microseconds it is late.
    pub late: fn(usize, usize) -> u64,
    held_claims: Vec<HeldClaim>,
}

struct HeldClaim {
    life: usize,
    ticket: u64,
    /// Of each life: installed ring and aru at the time of the claim.
    state: Vec<Option<(quorba_order::RingId, u64)>>,
    seen_len: Vec<usize>,
}

pub const KEY: [u8; 32] = [7; 32];

impl Net {
    pub fn new(count: usize, seed: u64) -> Self {
        Self::with_config(count, seed, |_, _| {})
    }

    pub fn with_config(
        count: usize,
        seed: u64,
        config: impl Fn(usize, &mut Config) + 'static,
    ) -> Self {
        let mut net = Self::unstarted(count, seed, config);
        for index in 0..count {
            net.boot(index);
        }
        net
    }

    pub fn unstarted(
        count: usize,
        seed: u64,
        config: impl Fn(usize, &mut Config) + 'static,
    ) -> Self {
        Self {
            now: Instant::from_nanos(1_000_000_000),
            rng: Rng(seed),
            count,
            faults: Faults::default(),
            cut: vec![vec![false; count]; count],
            lives: Vec::new(),
            config: Box::new(config),
            running: (0..count).map(|_| None).collect(),
            events: BTreeMap::new(),
            serial: 0,
            disk: vec![0; count],
            transmitted: 0,
            trace: Vec::new(),
            recordings: Vec::new(),
            record: false,
            filter: None,
            late: |_, _| 0,
            held_claims: Vec::new(),
        }
    }

    pub fn boot(&mut self, index: usize) {
        assert!(self.running[index].is_none(), "crash it first");
        let mut config = Config {
            me: node(index),
            nodes: NodeSet::first(self.count),
            domain_key: KEY.into(),
            domain_digest: 42,
            datagram_bytes_max: 1400,
            encrypt: false,
            accelerated: false,
            hold: Hold::default(),
            timing: Timing::default(),
        };
        (self.config)(index, &mut config);
        let incarnation = self.now.as_nanos();
        let mut salt = [0; 16];
        salt[..8].copy_from_slice(&self.rng.next().to_be_bytes());
        salt[8..].copy_from_slice(&self.rng.next().to_be_bytes());
        let boot = Boot { incarnation, salt, ring_seq_min: self.disk[index] };
        let ring = Ring::new(config, boot, self.now);
        self.lives.push(Life {
            node: node(index),
            incarnation,
            seen: Vec::new(),
            submitted: Vec::new(),
            held: 0,
            stable: 0,
            unheld: Vec::new(),
            refused: Vec::new(),
            last: None,
            crashed: false,
        });
        let life = self.lives.len() - 1;
        self.running[index] = Some(Running { ring, life, paused_until: None, wake: None });
        self.drain(index);
    }

    pub fn is_up(&self, index: usize) -> bool {
        self.running[index].is_some()
    }

    pub fn is_paused(&self, index: usize) -> bool {
        self.running[index].as_ref().is_some_and(|r| r.paused_until.is_some())
    }

    pub fn crash(&mut self, index: usize) {
        if let Some(running) = self.running[index].take() {
            let life = &mut self.lives[running.life];
            life.last = Some(running.ring.snapshot());
            life.crashed = true;
        }
    }

    pub fn pause(&mut self, index: usize, until: Instant) {
        if let Some(running) = &mut self.running[index] {
            running.paused_until = Some(until);
            running.wake = None;
            self.push(until, Event::Wake(index));
        }
    }

    /// Tells every other node that `index`'s process is dead.
    pub fn report_lost(&mut self, index: usize) {
        for other in 0..self.count {
            if other != index && self.is_up(other) && !self.is_paused(other) {
                let now = self.now;
                self.ring(other).handle_peer_lost(now, node(index));
                self.drain(other);
            }
        }
    }

    pub fn partition(&mut self, side: u64) {
        for a in 0..self.count {
            for b in 0..self.count {
                self.cut[a][b] = (side >> a) & 1 != (side >> b) & 1;
            }
        }
    }

    pub fn heal(&mut self) {
        self.partition(0);
    }

    pub fn ring(&mut self, index: usize) -> &mut Ring {
        &mut self.running[index].as_mut().expect("node is up").ring
    }

    pub fn progress(&self, index: usize) -> Progress {
        self.running[index].as_ref().expect("node is up").ring.progress()
    }

    pub fn snapshot(&self, index: usize) -> Snapshot {
        self.running[index].as_ref().expect("node is up").ring.snapshot()
    }

    /// Which life runs there.
    pub fn life_number(&self, index: usize) -> Option<usize> {
        self.running[index].as_ref().map(|running| running.life)
    }

    pub fn life(&self, index: usize) -> &Life {
        &self.lives[self.running[index].as_ref().expect("node is up").life]
    }

    pub fn submit(&mut self, index: usize, bytes: usize, guarantee: Guarantee) -> Option<Ticket> {
        let life = self.running[index].as_ref()?.life;
        let number = self.lives[life].submitted.len() as u64 + 1;
        let mut payload = vec![number as u8; bytes];
        for (slot, byte) in payload.iter_mut().zip(number.to_be_bytes()) {
            *slot = byte;
        }
        self.submit_payload(index, payload.into(), guarantee)
    }

    pub fn submit_payload(
        &mut self,
        index: usize,
        payload: Bytes,
        guarantee: Guarantee,
    ) -> Option<Ticket> {
        let now = self.now;
        let life = self.running[index].as_ref()?.life;
        if self.is_paused(index) {
            return None;
        }
        let ticket = self.ring(index).submit(now, payload.clone(), guarantee).ok()?;
        let number = self.lives[life].submitted.len() as u64 + 1;
        assert_eq!(ticket.0, number, "tickets count up by one");
        self.lives[life].submitted.push((payload, guarantee));
        Some(ticket)
    }

    /// Submits and lets the ring send at once.
    pub fn send(&mut self, index: usize, bytes: usize, guarantee: Guarantee) -> Option<Ticket> {
        let ticket = self.submit(index, bytes, guarantee);
        if ticket.is_some() {
            self.drain(index);
        }
        ticket
    }

    /// As [`Net::send`], by somebody who waits until all have it.
    pub fn send_to_all(&mut self, index: usize, bytes: usize) -> Option<Ticket> {
        let ticket = self.submit(index, bytes, Guarantee::Agreed)?;
        self.ring(index).await_stable(ticket);
        self.drain(index);
        Some(ticket)
    }

    fn push(&mut self, at: Instant, event: Event) {
        self.serial += 1;
        self.events.insert((at, self.serial), event);
    }

    /// Hands a datagram to `index`, as if it came from the network.
    pub fn inject(&mut self, index: usize, bytes: BytesMut) {
        let now = self.now;
        self.ring(index).handle_datagram(now, bytes);
        self.drain(index);
    }

    pub fn drain(&mut self, index: usize) {
        loop {
            let Some(running) = &mut self.running[index] else { return };
            let life = running.life;
            let Some(output) = running.ring.poll() else { break };
            match output {
                Output::Transmit { to, datagram } => self.transmit(index, to, datagram),
                Output::View(view) => {
                    if let Some((first, last)) = view.unheld {
                        self.lives[life].unheld.push((first.0, last.0));
                    }
                    self.lives[life].seen.push(Seen::View(view));
                }
                Output::Deliver(delivery) => self.lives[life].seen.push(Seen::Deliver(delivery)),
                Output::Held(ticket) => self.note_held(life, ticket.0),
                Output::Stable(ticket) => {
                    assert!(ticket.0 > self.lives[life].stable, "Stable only grows");
                    self.lives[life].stable = ticket.0;
                }
                Output::Persist { ring_seq } => self.disk[index] = ring_seq,
                Output::Refused { node, reason } => self.lives[life].refused.push((node, reason)),
            }
        }
        self.arm(index);
    }

    fn arm(&mut self, index: usize) {
        let Some(running) = &mut self.running[index] else { return };
        if running.paused_until.is_some() {
            return;
        }
        let Some((at, _)) = running.ring.poll_timeout() else { return };
        let at = at.max(self.now);
        if running.wake != Some(at) {
            running.wake = Some(at);
            self.push(at, Event::Wake(index));
        }
    }

    fn transmit(&mut self, from: usize, to: Destination, datagram: BytesMut) {
        assert!(datagram.len() <= 65_000, "datagram of {} bytes", datagram.len());
        self.trace.push((self.now, from, to, datagram.len()));
        let targets: Vec<usize> = match to {
            Destination::Node(node) => vec![usize::from(node.index())],
            Destination::Others | Destination::Each => {
                (0..self.count).filter(|other| *other != from).collect()
            }
        };
        for to in targets {
            self.transmitted += 1;
            assert_ne!(to, from, "nobody sends to itself");
            let now = self.now;
            if let Some(filter) = &mut self.filter
                && filter(now, from, to, &datagram)
            {
                continue;
            }
            if self.record {
                self.recordings.push((to, datagram.clone()));
            }
            if self.cut[from][to] || self.rng.per_mille(self.faults.loss) {
                continue;
            }
            let copies = 1 + u64::from(self.rng.per_mille(self.faults.duplicate));
            for _ in 0..copies {
                let (low, high) = self.faults.delay_us;
                let mut delay = (self.late)(from, to) + low + self.rng.below(high - low + 1);
                if self.rng.per_mille(self.faults.slow) {
                    delay += self.rng.below(self.faults.slow_us);
                }
                let at = self.now + us(delay);
                self.push(at, Event::Datagram { from, to, bytes: datagram.clone() });
            }
        }
    }

    /// Handles the next event, if it is due by `until`.
    fn step(&mut self, until: Instant) -> bool {
        let Some(entry) = self.events.first_entry() else { return false };
        if entry.key().0 > until {
            return false;
        }
        let ((at, _), event) = entry.remove_entry();
        self.now = self.now.max(at);
        let now = self.now;
        match event {
            Event::Datagram { from, to, bytes } => {
                let Some(running) = &mut self.running[to] else { return true };
                if let Some(until) = running.paused_until {
                    // Socket buffers keep what comes while a process stands still.
                    self.push(until + us(1), Event::Datagram { from, to, bytes });
                    return true;
                }
                running.ring.handle_datagram(now, bytes);
                self.drain(to);
            }
            Event::Wake(index) => {
                let Some(running) = &mut self.running[index] else { return true };
                match running.paused_until {
                    Some(until) if until > now => return true,
                    Some(_) => running.paused_until = None,
                    None if running.wake != Some(at) => return true,
                    None => {}
                }
                running.wake = None;
                if running.ring.poll_timeout().is_some_and(|(due, _)| due <= now) {
                    running.ring.handle_timeout(now);
                }
                self.drain(index);
            }
        }
        true
    }

    pub fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
        self.now = until;
    }

    pub fn run_for(&mut self, duration: Duration) {
        let until = self.now + duration;
        self.run_until(until);
    }

    /// Runs until `done`, looking every 100 µs of virtual time; false if that takes over `limit`.
    pub fn run_till(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + limit;
        while !done(self) {
            if self.now >= end {
                return false;
            }
            self.run_for(us(100));
        }
        true
    }

    /// All running nodes are operational in one ring of exactly them.
    pub fn is_whole(&self) -> bool {
        let up: NodeSet = (0..self.count).filter(|i| self.is_up(*i)).map(node).collect();
        let mut rings = (0..self.count).filter(|i| self.is_up(*i)).map(|i| {
            let snapshot = self.snapshot(i);
            (snapshot.state == StateName::Operational && snapshot.members == up)
                .then_some(snapshot.ring)
        });
        match rings.next() {
            Some(Some(first)) => rings.all(|ring| ring == Some(first)),
            _ => false,
        }
    }

    pub fn delivered(&self, index: usize) -> Vec<&Delivery> {
        deliveries(&self.life(index).seen).collect()
    }

    pub fn views(&self, index: usize) -> Vec<&View> {
        self.life(index)
            .seen
            .iter()
            .filter_map(|seen| match seen {
                Seen::View(view) => Some(view),
                Seen::Deliver(_) => None,
            })
            .collect()
    }

    /// Every running node has delivered all of its own messages.
    pub fn is_drained(&self) -> bool {
        (0..self.count).filter(|i| self.is_up(*i)).all(|i| {
            let life = self.life(i);
            let own = deliveries(&life.seen)
                .filter(|d| d.origin == life.node && d.incarnation == life.incarnation);
            own.count() == life.submitted.len()
        })
    }

    fn note_held(&mut self, life: usize, ticket: u64) {
        assert!(ticket > self.lives[life].held, "Held only grows");
        self.lives[life].held = ticket;
        let mut state = vec![None; self.lives.len()];
        for running in self.running.iter().flatten() {
            let snapshot = running.ring.snapshot();
            state[running.life] = snapshot.ring.map(|ring| (ring, snapshot.packets[1]));
        }
        for (index, life) in self.lives.iter().enumerate() {
            if let Some(last) = life.last.as_ref() {
                state[index] = last.ring.map(|ring| (ring, last.packets[1]));
            }
        }
        let seen_len = self.lives.iter().map(|life| life.seen.len()).collect();
        self.held_claims.push(HeldClaim { life, ticket, state, seen_len });
    }
}

pub fn deliveries(seen: &[Seen]) -> impl Iterator<Item = &Delivery> {
    seen.iter().filter_map(|seen| match seen {
        Seen::Deliver(delivery) => Some(delivery),
        Seen::View(_) => None,
    })
}

pub fn packet_of(position: Position) -> u64 {
    position.seq >> 16
}
