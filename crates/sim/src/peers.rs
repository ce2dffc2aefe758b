//! Virtual links between nodes, on which they send each other messages: in order, while both
//! processes live and the network lets them through; a link that ends loses what was on its way.
//!
//! What it is not: the connections themselves; that each direction has one of its own shows in
//! nothing but when each side is told.
//!
//! Invariants: what a side is told is "up", messages and "down", in turns; messages of a boot come
//! under its name; what waits for a node is bounded, and who is told that it is full is told when
//! there is room.

use crate::event::Event;
use crate::fault::Fault;
use crate::host::Input;
use crate::plan::PeerPlan;
use crate::rng::Rng;
use crate::world::{World, ms, node_id, us};
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_engine::replica::Lane;
use std::collections::VecDeque;

/// A link that cannot be made is tried again.
const RETRY: Duration = Duration::from_millis(150);
/// How often bytes that do not get through are sent again.
const RESEND: Duration = Duration::from_millis(30);
/// A link ends if nothing gets through for so long.
const SILENCE: Duration = Duration::from_secs(10);

/// Something about the link between two nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerEvent {
    /// Try to make it.
    Connect { pair: (usize, usize) },
    /// `node` is told that it is there.
    Up { node: usize, other: usize, life: u64 },
    /// `node` is told that it has ended.
    Down { node: usize, other: usize, life: u64, ended: bool },
    /// The next message arrives.
    Flow { from: usize, to: usize, life: u64 },
}

/// What one node sends to another.
#[derive(Default)]
struct Side {
    /// Its process has been told that this life of the link is there.
    open: Option<u64>,
    control: VecDeque<Bytes>,
    bulk: VecDeque<Bytes>,
    /// Per lane.
    queued_bytes: [usize; 2],
    was_full: bool,
    is_flowing: bool,
    /// Nothing gets through since then.
    blocked_since: Option<Instant>,
    stalled_until: Instant,
}

impl Side {
    fn clear(&mut self) {
        let stalled_until = self.stalled_until;
        *self = Self { open: self.open, stalled_until, ..Self::default() };
    }

    fn push(&mut self, lane: Lane, bytes: Bytes, most: usize) -> bool {
        let queued = &mut self.queued_bytes[usize::from(lane == Lane::Bulk)];
        // One message always fits, so that every plan is possible.
        if *queued > 0 && *queued + bytes.len() > most {
            self.was_full = true;
            return false;
        }
        *queued += bytes.len();
        match lane {
            Lane::Control => self.control.push_back(bytes),
            Lane::Bulk => self.bulk.push_back(bytes),
        }
        true
    }

    fn pop(&mut self) -> Option<Bytes> {
        let (lane, bytes) = match self.control.pop_front() {
            Some(bytes) => (0, bytes),
            None => (1, self.bulk.pop_front()?),
        };
        self.queued_bytes[lane] -= bytes.len();
        Some(bytes)
    }

    fn is_empty(&self) -> bool {
        self.control.is_empty() && self.bulk.is_empty()
    }

    fn has_room_again(&mut self, most: usize) -> bool {
        let has_room = self.was_full && self.queued_bytes.iter().all(|bytes| *bytes <= most / 4);
        self.was_full &= !has_room;
        has_room
    }
}

/// The link between two nodes, of which the first has the lower number.
#[derive(Default)]
struct Pair {
    /// Counts how often it was made.
    life: u64,
    is_alive: bool,
    is_connecting: bool,
    /// The boots that it connects, as the hosts count them, and as their disks do.
    boots: [u64; 2],
    incarnations: [u64; 2],
    sides: [Side; 2],
    /// It ends after so many more messages.
    ends_after: Option<u64>,
}

/// See the module's text.
pub(crate) struct Peers {
    plan: PeerPlan,
    rng: Rng,
    nodes: usize,
    pairs: Vec<Pair>,
}

fn sorted(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

impl Peers {
    pub(crate) fn new(nodes: usize, plan: PeerPlan, rng: Rng) -> Self {
        let pairs = (0..nodes * nodes).map(|_| Pair::default()).collect();
        Self { plan, rng, nodes, pairs }
    }

    fn pair(&mut self, one: usize, other: usize) -> &mut Pair {
        let (low, high) = sorted(one, other);
        &mut self.pairs[low * self.nodes + high]
    }

    fn side(&mut self, from: usize, to: usize) -> &mut Side {
        &mut self.pair(from, to).sides[usize::from(from > to)]
    }

    pub(crate) fn make_peace(&mut self) {
        for pair in &mut self.pairs {
            pair.ends_after = None;
            pair.sides.iter_mut().for_each(|side| side.stalled_until = Instant::ZERO);
        }
    }
}

impl World {
    /// A node has started: it makes its links.
    pub(crate) fn link_up_soon(&mut self, node: usize) {
        for other in (0..self.plan.nodes).filter(|other| *other != node) {
            self.connect_peers_soon(node, other);
        }
    }

    fn connect_peers_soon(&mut self, one: usize, other: usize) {
        let wait = us(self.peers.rng.between(200, 60_000));
        if !std::mem::replace(&mut self.peers.pair(one, other).is_connecting, true) {
            let pair = sorted(one, other);
            self.queue.push(self.now + wait, Event::Peer(PeerEvent::Connect { pair }));
        }
    }

    /// A process has ended, and its kernel says so unless that is gone, too.
    pub(crate) fn unlink(&mut self, node: usize, silent: bool) {
        for other in (0..self.plan.nodes).filter(|other| *other != node) {
            self.peers.side(node, other).open = None;
            let wait = if silent { SILENCE } else { us(self.peers.rng.between(50, 2_000)) };
            // Evidence of the death is told elsewhere.
            self.end_link(node, other, wait, false);
        }
    }

    /// What is on its way between two nodes is lost; each side is told after `wait`, and maybe that
    /// the other process has `ended`.
    fn end_link(&mut self, one: usize, other: usize, wait: Duration, ended: bool) {
        let pair = self.peers.pair(one, other);
        let life = pair.life;
        pair.is_alive = false;
        pair.ends_after = None;
        pair.sides.iter_mut().for_each(Side::clear);
        for (node, other) in [(one, other), (other, one)] {
            if self.peers.side(node, other).open.is_some() {
                let more = us(self.peers.rng.between(0, 500));
                let down = PeerEvent::Down { node, other, life, ended };
                self.queue.push(self.now + wait + more, Event::Peer(down));
            }
        }
    }

    pub(crate) fn peer_event(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Connect { pair } => self.connect_peers(pair),
            PeerEvent::Up { node, other, life } => self.peer_up(node, other, life),
            PeerEvent::Down { node, other, life, ended } => {
                if self.peers.side(node, other).open == Some(life) {
                    self.peer_down(node, other);
                    if ended && self.peers.rng.per_mille(500) {
                        self.deliver(node, Input::PeerLost(node_id(other)));
                    }
                }
                self.connect_peers_soon(node, other);
            }
            PeerEvent::Flow { from, to, life } => self.flow(from, to, life),
        }
    }

    fn connect_peers(&mut self, (low, high): (usize, usize)) {
        self.peers.pair(low, high).is_connecting = false;
        // Whoever starts tries again.
        if !self.hosts[low].is_up() || !self.hosts[high].is_up() {
            return;
        }
        let boots = [low, high].map(|node| self.hosts[node].boot);
        let incarnations = [low, high].map(|node| self.hosts[node].disk.incarnation);
        let pair = self.peers.pair(low, high);
        if pair.is_alive && pair.boots == boots {
            return;
        }
        let (now, network, rng) = (self.now, &self.network, &mut self.peers.rng);
        let there = network.stream_delay(now, (low, high), rng);
        let back = network.stream_delay(now, (high, low), rng);
        let (Some(there), Some(back)) = (there, back) else {
            self.peers.pair(low, high).is_connecting = true;
            let connect = PeerEvent::Connect { pair: (low, high) };
            return self.queue.push(now + RETRY, Event::Peer(connect));
        };
        let pair = self.peers.pair(low, high);
        pair.life += 1;
        pair.is_alive = true;
        pair.boots = boots;
        pair.incarnations = incarnations;
        let life = pair.life;
        for (node, other, wait) in [(low, high, there + back + there), (high, low, there + back)] {
            let up = PeerEvent::Up { node, other, life };
            self.queue.push(now + wait, Event::Peer(up));
        }
    }

    fn peer_up(&mut self, node: usize, other: usize, life: u64) {
        let pair = self.peers.pair(node, other);
        let (mine, its) = (usize::from(node > other), usize::from(node < other));
        let (boot, incarnation) = (pair.boots[mine], pair.incarnations[its]);
        if pair.life != life || self.hosts[node].boot != boot || !self.hosts[node].is_up() {
            return;
        }
        if self.peers.side(node, other).open.is_some() {
            self.peer_down(node, other);
        }
        self.peers.side(node, other).open = Some(life);
        if !self.peers.pair(node, other).is_alive {
            // It has ended meanwhile.
            let down = PeerEvent::Down { node, other, life, ended: false };
            self.queue.push(self.now + us(100), Event::Peer(down));
        }
        self.deliver(node, Input::PeerUp(node_id(other), incarnation));
    }

    fn peer_down(&mut self, node: usize, other: usize) {
        self.peers.side(node, other).open = None;
        self.deliver(node, Input::PeerDown(node_id(other)));
    }

    /// A bit of it flips in the sender's memory, if the plan says so.
    fn bend(&mut self, bytes: Bytes) -> Bytes {
        let bent = self.peers.plan.bent;
        if bent == 0 || bytes.is_empty() || !self.peers.rng.per_mille(bent) {
            return bytes;
        }
        let mut bytes = bytes.to_vec();
        let half = bytes.len() / 2;
        let at = half + self.peers.rng.index(bytes.len() - half);
        bytes[at] ^= 1 << self.peers.rng.below(8);
        bytes.into()
    }

    /// A node sends another a message.
    pub(crate) fn send_peer(&mut self, from: usize, to: usize, lane: Lane, bytes: Bytes) {
        self.transcript.mix_bytes(&bytes);
        let most = self.peers.plan.lane_bytes_max;
        let bytes = if lane == Lane::Bulk && !self.peace { self.bend(bytes) } else { bytes };
        let pair = self.peers.pair(from, to);
        let (life, is_alive) = (pair.life, pair.is_alive);
        let side = self.peers.side(from, to);
        if side.open.is_none() || side.open != Some(life) || !is_alive {
            return;
        }
        if !side.push(lane, bytes.clone(), most) {
            // It hears of it when it is done with what it does.
            self.hosts[from].inbox.push_back(Input::PeerFull(node_id(to), bytes));
            let boot = self.hosts[from].boot;
            self.queue.push(self.now, Event::Wake { node: from, boot });
            return;
        }
        if !std::mem::replace(&mut side.is_flowing, true) {
            let (now, network, rng) = (self.now, &self.network, &mut self.peers.rng);
            let wait = network.stream_delay(now, (from, to), rng).unwrap_or(RESEND);
            self.queue.push(now + wait, Event::Peer(PeerEvent::Flow { from, to, life }));
        }
    }

    /// A message arrives, if it gets through.
    fn flow(&mut self, from: usize, to: usize, life: u64) {
        let now = self.now;
        let pair = self.peers.pair(from, to);
        if pair.life != life || !pair.is_alive {
            return;
        }
        let is_cut = self.network.stream_delay(now, (from, to), &mut self.peers.rng).is_none();
        let plan = self.peers.plan;
        let side = self.peers.side(from, to);
        if is_cut || side.stalled_until > now {
            let since = *side.blocked_since.get_or_insert(now);
            if now.since(since) > SILENCE {
                return self.end_link(from, to, Duration::ZERO, false);
            }
            return self.queue.push(now + RESEND, Event::Peer(PeerEvent::Flow { from, to, life }));
        }
        side.blocked_since = None;
        let Some(bytes) = side.pop() else {
            side.is_flowing = false;
            return;
        };
        let took = us(1 + bytes.len() as u64 * 1_000 / plan.bytes_per_ms);
        side.is_flowing = !side.is_empty();
        if side.is_flowing {
            self.queue.push(now + took, Event::Peer(PeerEvent::Flow { from, to, life }));
        }
        if side.has_room_again(plan.lane_bytes_max) {
            self.deliver(from, Input::PeerRoom(node_id(to)));
        }
        self.arrive(from, to, bytes);
    }

    fn arrive(&mut self, from: usize, to: usize, bytes: Bytes) {
        let pair = self.peers.pair(from, to);
        let incarnation = pair.incarnations[usize::from(from > to)];
        if let Some(left) = &mut pair.ends_after {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.end_link(from, to, us(100), true);
            }
        }
        self.deliver(to, Input::PeerMessage(node_id(from), incarnation, bytes));
    }

    /// A fault of a link.
    pub(crate) fn hurt_peers(&mut self, fault: Fault) {
        let nodes = self.plan.nodes;
        let one = self.peers.rng.index(nodes);
        let other = (one + 1 + self.peers.rng.index(nodes - 1)) % nodes;
        match fault {
            Fault::PeerReset => {
                self.say(|| format!("FAULT the link between n{one} and n{other} ends"));
                let wait = us(self.peers.rng.between(20, 2_000));
                self.end_link(one, other, wait, true);
            }
            Fault::PeerHalf => {
                let left = self.peers.rng.between(1, 30);
                self.say(|| format!("FAULT n{one} and n{other}: the end after {left} messages"));
                self.peers.pair(one, other).ends_after = Some(left);
            }
            _ => {
                let time = self.peers.rng.between(10, 3_000);
                self.say(|| format!("FAULT n{one} to n{other}: no message for {time} ms"));
                self.peers.side(one, other).stalled_until = self.now + ms(time);
            }
        }
    }
}
