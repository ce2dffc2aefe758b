//! Virtual UDP between nodes: who hears whom, how late, and how garbled; and all faults of it.
//!
//! Invariant: what happens to a datagram is drawn when it is sent.

use crate::fault::Fault;
use crate::plan::LinkPlan;
use crate::rng::Rng;
use crate::world::ms;
use bytes::{Bytes, BytesMut};
use quorba_base::{Duration, Instant};

/// Datagrams that are kept so that they can come once more.
const KEPT_MAX: usize = 64;
/// What straggles is at most so late, in microseconds.
const STRAGGLER_US_MAX: u64 = 300_000;
/// What a stream has lost comes so much later, in microseconds.
const RESENT_AFTER_US: u64 = 200_000;
/// While a partition flaps, it comes or goes this often.
const FLAP: Duration = Duration::from_millis(30);
/// How long a node is gone that changes sides: the others have to find each other meanwhile.
const GONE_OVER_MS: (u64, u64) = (300, 1_500);
/// And how long a node is gone that has heard an answer alone.
const GONE_WITH_ANSWER_MS: (u64, u64) = (50, 1_500);

/// How a datagram leaves its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leaving {
    /// To one node; otherwise to all others.
    pub(crate) alone: bool,
    /// Nothing follows it for now.
    pub(crate) last: bool,
}

/// One direction between two nodes.
#[derive(Clone, Copy, Default)]
struct Link {
    cut: bool,
    /// Further delay.
    slow_us: u64,
    /// Loss per thousand.
    loss: u64,
}

/// A link that is slow for good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowLink {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) micros: u64,
}

/// What some nodes send to others is held back for a while; a node is a bit.
#[derive(Clone, Copy, Default)]
struct Held {
    from: u64,
    to: u64,
    until: Instant,
}

impl Held {
    /// How long a datagram waits.
    fn wait(&self, now: Instant, from: usize, to: usize) -> Duration {
        let is_held = (self.from >> from) & 1 == 1 && (self.to >> to) & 1 == 1;
        if is_held { self.until.since(now) } else { Duration::ZERO }
    }
}

/// Something that lasts for a while; the strength is a chance per thousand or microseconds.
#[derive(Clone, Copy)]
struct Spell {
    strength: u64,
    until: Instant,
}

impl Spell {
    const NONE: Self = Self { strength: 0, until: Instant::ZERO };

    fn now(&self, now: Instant) -> u64 {
        if now < self.until { self.strength } else { 0 }
    }
}

/// The spells of a network.
struct Spells {
    loss: Spell,
    unicast_loss: Spell,
    multicast_loss: Spell,
    tail_loss: Spell,
    slow_us: Spell,
    reorder: Spell,
    duplicate: Spell,
    corrupt: Spell,
    /// The strength is the side, one bit per node.
    flap: Spell,
    /// The strength is a node and one. What it sends to all is lost, or late, then it is cut off.
    orphan: Spell,
    straggle: Spell,
    gone: Spell,
}

impl Spells {
    const NONE: Self = Self {
        loss: Spell::NONE,
        unicast_loss: Spell::NONE,
        multicast_loss: Spell::NONE,
        tail_loss: Spell::NONE,
        slow_us: Spell::NONE,
        reorder: Spell::NONE,
        duplicate: Spell::NONE,
        corrupt: Spell::NONE,
        flap: Spell::NONE,
        orphan: Spell::NONE,
        straggle: Spell::NONE,
        gone: Spell::NONE,
    };

    /// The spell that a fault casts, and how strong it may be.
    fn of(&mut self, fault: Fault) -> Option<(&mut Spell, (u64, u64))> {
        Some(match fault {
            Fault::LossBurst => (&mut self.loss, (200, 1000)),
            Fault::UnicastLoss => (&mut self.unicast_loss, (200, 1000)),
            Fault::MulticastLoss => (&mut self.multicast_loss, (200, 1000)),
            Fault::TailLoss => (&mut self.tail_loss, (200, 900)),
            Fault::SlowNetwork => (&mut self.slow_us, (500, 40_000)),
            Fault::Reordering => (&mut self.reorder, (100, 700)),
            Fault::Duplication => (&mut self.duplicate, (200, 1000)),
            Fault::Corruption => (&mut self.corrupt, (50, 500)),
            _ => return None,
        })
    }
}

/// The state of the network.
pub(crate) struct Network {
    plan: LinkPlan,
    rng: Rng,
    nodes: usize,
    /// From, then to.
    links: Vec<Link>,
    spells: Spells,
    held: Held,
    kept: Vec<(usize, Bytes)>,
    /// Datagrams and their bytes; a multicast counts once.
    sent: (u64, u64),
}

/// What a fault of the network is, for people, and what it makes arrive at once.
pub(crate) struct Disturbance {
    pub(crate) text: String,
    pub(crate) arrivals: Vec<(usize, Bytes)>,
}

impl Network {
    pub(crate) fn new(nodes: usize, plan: LinkPlan, rng: Rng) -> Self {
        let links = vec![Link::default(); nodes * nodes];
        let (spells, held) = (Spells::NONE, Held::default());
        Self { plan, rng, nodes, links, spells, held, kept: Vec::new(), sent: (0, 0) }
    }

    fn link(&mut self, from: usize, to: usize) -> &mut Link {
        &mut self.links[from * self.nodes + to]
    }

    pub(crate) fn heal(&mut self) {
        self.links.fill(Link::default());
        self.spells = Spells::NONE;
        self.held = Held::default();
    }

    /// No more faults at all. What is slow for good stays slow: it is a network like others.
    pub(crate) fn make_perfect(&mut self) {
        self.heal();
        let LinkPlan { delay_us, slow, .. } = self.plan;
        self.plan = LinkPlan { delay_us, slow, ..LinkPlan::default() };
    }

    /// Cuts all links between nodes of different sides.
    fn partition(&mut self, side: impl Fn(usize) -> u64) {
        for from in 0..self.nodes {
            for to in 0..self.nodes {
                self.link(from, to).cut = side(from) != side(to);
            }
        }
    }

    /// A datagram leaves its sender, to however many.
    pub(crate) fn count(&mut self, datagram: &[u8]) {
        self.sent.0 += 1;
        self.sent.1 += datagram.len() as u64;
    }

    /// Datagrams and bytes so far; a multicast counts once.
    pub(crate) fn sent(&self) -> (u64, u64) {
        self.sent
    }

    /// The copies of a datagram that arrive: how long each takes, and its bytes.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        (from, to): (usize, usize),
        leaving: Leaving,
        bytes: &Bytes,
        mut arrive: impl FnMut(Duration, Bytes),
    ) {
        let link = *self.link(from, to);
        let spells = &self.spells;
        let loss = self.plan.loss
            + link.loss
            + spells.loss.now(now)
            + if leaving.alone { &spells.unicast_loss } else { &spells.multicast_loss }.now(now)
            + if leaving.last { spells.tail_loss.now(now) } else { 0 };
        let cut =
            link.cut || self.is_flapped(now, from, to) || self.is_orphaned(now, from, to, leaving);
        if cut || self.rng.per_mille(loss) {
            return;
        }
        if self.rng.per_mille(20) {
            let kept = (to, bytes.clone());
            if self.kept.len() < KEPT_MAX {
                self.kept.push(kept);
            } else {
                let index = self.rng.index(KEPT_MAX);
                self.kept[index] = kept;
            }
        }
        let spells = &self.spells;
        let slow = self.plan.slow.filter(|slow| (slow.from, slow.to) == (from, to));
        let slow_us = link.slow_us + spells.slow_us.now(now) + slow.map_or(0, |slow| slow.micros);
        let held = self.held.wait(now, from, to);
        let straggles = !leaving.alone && spells.straggle.now(now) == from as u64 + 1;
        let (reorder, corrupt) = (spells.reorder.now(now), spells.corrupt.now(now));
        let duplicate = self.plan.duplicate + spells.duplicate.now(now);
        let copies = 1 + u64::from(self.rng.per_mille(duplicate));
        for _ in 0..copies {
            let (low, high) = self.plan.delay_us;
            let mut delay = self.rng.between(low * 1000, high * 1000) + slow_us * 1000;
            if self.rng.per_mille(self.plan.late + reorder) {
                delay += self.rng.below(self.plan.late_us * 1000);
            }
            if straggles {
                delay += self.rng.below(STRAGGLER_US_MAX * 1000);
            }
            if self.rng.per_mille(self.plan.corrupt + corrupt) {
                arrive(held + Duration::from_nanos(delay), self.garbled(bytes));
            } else {
                arrive(held + Duration::from_nanos(delay), bytes.clone());
            }
        }
    }

    /// How long bytes of a stream take now; `None` if none get through. What is lost on the way
    /// is sent again after a while.
    pub(crate) fn stream_delay(
        &self,
        now: Instant,
        (from, to): (usize, usize),
        rng: &mut Rng,
    ) -> Option<Duration> {
        let link = self.links[from * self.nodes + to];
        let leaving = Leaving { alone: true, last: false };
        let (spells, cut) = (&self.spells, self.is_orphaned(now, from, to, leaving));
        let held = self.held.wait(now, from, to);
        if link.cut || cut || self.is_flapped(now, from, to) || held > Duration::ZERO {
            return None;
        }
        let slow = self.plan.slow.filter(|slow| (slow.from, slow.to) == (from, to));
        let slow_us = link.slow_us + spells.slow_us.now(now) + slow.map_or(0, |slow| slow.micros);
        let loss = self.plan.loss
            + link.loss
            + spells.loss.now(now)
            + spells.unicast_loss.now(now)
            + self.plan.corrupt
            + spells.corrupt.now(now);
        let (low, high) = self.plan.delay_us;
        let again_us = if rng.per_mille(loss) { RESENT_AFTER_US } else { 0 };
        Some(Duration::from_micros(rng.between(low, high) + slow_us + again_us))
    }

    fn is_flapped(&self, now: Instant, from: usize, to: usize) -> bool {
        let side = self.spells.flap.now(now);
        side != 0
            && (side >> from) & 1 != (side >> to) & 1
            && (now.as_nanos() / FLAP.as_nanos() as u64).is_multiple_of(2)
    }

    fn is_orphaned(&self, now: Instant, from: usize, to: usize, leaving: Leaving) -> bool {
        let Spells { orphan, straggle, gone, .. } = &self.spells;
        match (orphan.now(now), gone.now(now)) {
            (0, 0) => false,
            (0, node) if straggle.now(now) == 0 => node == from as u64 + 1 || node == to as u64 + 1,
            (node, _) => node == from as u64 + 1 && !leaving.alone,
        }
    }

    fn garbled(&mut self, bytes: &[u8]) -> Bytes {
        let mut bytes = BytesMut::from(bytes);
        match self.rng.below(4) {
            0 => {
                let keep = self.rng.index(bytes.len().max(1));
                bytes.truncate(keep);
            }
            1 => bytes.extend_from_slice(&self.rng.next().to_le_bytes()),
            _ if bytes.is_empty() => {}
            _ => {
                for _ in 0..self.rng.between(1, 4) {
                    let at = self.rng.index(bytes.len());
                    bytes[at] ^= 1 << self.rng.below(8);
                }
            }
        }
        bytes.freeze()
    }

    // -- faults -----------------------------------------------------------------------------

    /// Makes a fault of the network happen, which lay in wait for the nodes of the bits `whom`.
    pub(crate) fn spring(&mut self, now: Instant, fault: Fault, whom: u64) -> Disturbance {
        let text = match fault {
            Fault::CutAtInstall => {
                self.part(whom);
                format!("FAULT partition {} while a ring is installed", self.sides(whom))
            }
            Fault::Defection => {
                self.heal();
                let text = self.leave_gaps(now, whom.trailing_zeros() as usize, GONE_OVER_MS);
                format!("{text}, and the others hear each other")
            }
            Fault::HeldAtCommit => self.hold_back(now, whom),
            Fault::SecretAnswer => {
                self.leave_gaps(now, whom.trailing_zeros() as usize, GONE_WITH_ANSWER_MS)
            }
            _ => return self.disturb(now, fault),
        };
        Disturbance { text, arrivals: Vec::new() }
    }

    /// Cuts the links between two sides; who is parted already stays so.
    pub(crate) fn part(&mut self, side: u64) {
        for from in 0..self.nodes {
            for to in 0..self.nodes {
                self.link(from, to).cut |= (side >> from) & 1 != (side >> to) & 1;
            }
        }
    }

    /// What `node` sends to all is lost for a moment, then it is gone.
    pub(crate) fn leave_gaps(&mut self, now: Instant, node: usize, gone_ms: (u64, u64)) -> String {
        let (lost, gone) = (self.rng.between(1, 10), self.rng.between(gone_ms.0, gone_ms.1));
        let strength = node as u64 + 1;
        self.spells.orphan = Spell { strength, until: now + ms(lost) };
        self.spells.gone = Spell { strength, until: now + ms(lost + gone) };
        format!("FAULT n{node} leaves gaps for {lost} ms, then is gone for {gone} ms")
    }

    /// Holds back what the nodes `from` send, to all or to one.
    fn hold_back(&mut self, now: Instant, from: u64) -> String {
        let to = if self.rng.per_mille(400) { u64::MAX } else { 1 << self.rng.index(self.nodes) };
        let time = self.rng.between(1, 250);
        self.held = Held { from, to, until: now + ms(time) };
        let (from, to) = (self.sides(from), self.sides(to));
        format!("FAULT what {from} sends to {to} is held back for {time} ms")
    }

    /// Makes a fault of the network happen.
    pub(crate) fn disturb(&mut self, now: Instant, fault: Fault) -> Disturbance {
        let mut arrivals = Vec::new();
        let one = self.rng.index(self.nodes);
        let other = (one + 1 + self.rng.index(self.nodes.max(2) - 1)) % self.nodes;
        let text = match fault {
            Fault::Heal => {
                self.heal();
                "the network is whole".to_owned()
            }
            Fault::Replay => {
                arrivals = self.replayed();
                format!("FAULT {} old datagrams come once more", arrivals.len())
            }
            Fault::Forged => {
                arrivals = (0..self.rng.between(1, 20)).map(|_| self.forged()).collect();
                format!("FAULT {} forged datagrams", arrivals.len())
            }
            Fault::LossyLink => {
                let loss = self.rng.between(100, 900);
                format!("FAULT {}", self.make_deaf(one, other, loss))
            }
            Fault::PoorNode => {
                let loss = self.rng.between(250, 900);
                let (hears, is_heard) = self.rng.pick(&[(0, loss), (loss, 0), (loss, loss)]);
                format!("FAULT {}", self.make_lossy(one, hears, is_heard))
            }
            Fault::DistantNode => {
                let micros = self.rng.pick(&[60_000, 100_000]);
                format!("FAULT {}", self.make_distant(one, micros))
            }
            Fault::SlowLink => {
                let micros = self.rng.pick(&[500, 5_000, 30_000, 100_000]);
                self.link(one, other).slow_us = micros;
                format!("FAULT n{one} to n{other} takes {micros} us more")
            }
            _ if self.spells.of(fault).is_some() => self.cast(now, fault),
            _ => self.cut(now, fault, one, other),
        };
        // Without it partitions would be the rule and not the exception.
        if self.rng.per_mille(300) {
            self.heal();
        }
        Disturbance { text, arrivals }
    }

    /// Much of what goes to `node`, or comes from it, is lost from now on.
    pub(crate) fn make_lossy(&mut self, node: usize, hears: u64, is_heard: u64) -> String {
        for other in 0..self.nodes {
            self.link(other, node).loss = hears;
            self.link(node, other).loss = is_heard;
        }
        format!("n{node} loses {hears} of 1000 that come and {is_heard} that go")
    }

    /// What goes to `node`, and comes from it, takes longer from now on.
    pub(crate) fn make_distant(&mut self, node: usize, micros: u64) -> String {
        for other in 0..self.nodes {
            self.link(node, other).slow_us = micros;
            self.link(other, node).slow_us = micros;
        }
        format!("n{node} is {micros} us farther away")
    }

    /// Much of what goes from `from` to `to` is lost from now on.
    pub(crate) fn make_deaf(&mut self, from: usize, to: usize, loss: u64) -> String {
        self.link(from, to).loss = loss;
        format!("{loss} of 1000 datagrams from n{from} to n{to} are lost")
    }

    /// Much is lost on all links from now on.
    pub(crate) fn make_all_lossy(&mut self, loss: u64) -> String {
        self.links.iter_mut().for_each(|link| link.loss = loss);
        format!("{loss} of 1000 datagrams are lost everywhere")
    }

    fn cast(&mut self, now: Instant, fault: Fault) -> String {
        let time = self.rng.between(5, 400);
        let (_, (low, high)) = self.spells.of(fault).expect("the caller looked");
        let strength = self.rng.between(low, high);
        let (spell, _) = self.spells.of(fault).expect("the caller looked");
        *spell = Spell { strength, until: now + ms(time) };
        format!("FAULT {fault:?} of {strength} for {time} ms")
    }

    fn cut(&mut self, now: Instant, fault: Fault, one: usize, other: usize) -> String {
        match fault {
            Fault::Partition => {
                let side = self.rng.next();
                self.partition(|node| (side >> node) & 1);
                format!("FAULT partition {}", self.sides(side))
            }
            Fault::ThreeWay => {
                let sides: Vec<u64> = (0..self.nodes).map(|_| self.rng.below(3)).collect();
                self.partition(|node| sides[node]);
                format!("FAULT partition {sides:?}")
            }
            Fault::CutAtCommit | Fault::CutAtRecovery => {
                // One node goes, or two sides do; who is parted already stays so.
                let side = if self.rng.per_mille(500) { 1 << one } else { self.rng.next() };
                self.part(side);
                format!("FAULT further partition {}", self.sides(side))
            }
            Fault::Orphans => self.leave_gaps(now, one, (20, 300)),
            Fault::Stragglers => {
                let (late, gone) = (self.rng.between(1, 10), self.rng.between(150, 400));
                let strength = one as u64 + 1;
                self.spells.straggle = Spell { strength, until: now + ms(late) };
                self.spells.gone = Spell { strength, until: now + ms(late + gone) };
                format!("FAULT n{one} leaves stragglers for {late} ms, then is gone for {gone} ms")
            }
            Fault::Isolate => {
                self.partition(|node| u64::from(node == one));
                format!("FAULT n{one} is isolated")
            }
            Fault::Deaf | Fault::Mute => {
                for peer in (0..self.nodes).filter(|peer| *peer != one) {
                    let (from, to) = if fault == Fault::Deaf { (peer, one) } else { (one, peer) };
                    self.link(from, to).cut = true;
                }
                format!("FAULT n{one} is {fault:?}")
            }
            Fault::OneWay => {
                self.link(one, other).cut = true;
                format!("FAULT n{other} does not hear n{one}")
            }
            Fault::Link => {
                self.link(one, other).cut = true;
                self.link(other, one).cut = true;
                format!("FAULT n{one} and n{other} do not hear each other")
            }
            _ => {
                let (side, time) = (self.rng.next(), self.rng.between(60, 1_000));
                self.spells.flap = Spell { strength: side, until: now + ms(time) };
                format!("FAULT partition {} comes and goes for {time} ms", self.sides(side))
            }
        }
    }

    fn sides(&self, side: u64) -> String {
        (0..self.nodes).map(|node| if (side >> node) & 1 == 1 { '1' } else { '0' }).collect()
    }

    /// Old datagrams and whom they were for.
    fn replayed(&mut self) -> Vec<(usize, Bytes)> {
        let count = if self.kept.is_empty() { 0 } else { self.rng.between(1, 8) };
        (0..count).map(|_| self.kept[self.rng.index(self.kept.len())].clone()).collect()
    }

    /// A datagram that nobody sent: noise, or an old one with changes.
    fn forged(&mut self) -> (usize, Bytes) {
        if self.rng.per_mille(500) && !self.kept.is_empty() {
            let (to, bytes) = self.kept[self.rng.index(self.kept.len())].clone();
            return (to, self.garbled(&bytes));
        }
        let length = self.rng.index(300);
        let bytes = (0..length).map(|_| self.rng.next() as u8).collect::<Vec<_>>();
        (self.rng.index(self.nodes), Bytes::from(bytes))
    }
}

/// What a node is handed: its own copy, because it decrypts in place.
pub(crate) fn owned(bytes: Bytes) -> BytesMut {
    bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]))
}
