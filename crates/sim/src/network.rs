//! Virtual UDP between nodes: who hears whom, how late, and how garbled.
//!
//! Invariant: what happens to a datagram is drawn when it is sent.

use crate::plan::LinkPlan;
use crate::rng::Rng;
use bytes::BytesMut;
use quorba_base::Duration;

/// Datagrams that are kept so that they can come once more.
const KEPT_MAX: usize = 64;

/// The state of the network.
pub(crate) struct Network {
    pub(crate) plan: LinkPlan,
    pub(crate) rng: Rng,
    nodes: usize,
    /// `cut[from][to]`.
    cut: Vec<Vec<bool>>,
    /// Further delay in microseconds, `slow_us[from][to]`.
    slow_us: Vec<Vec<u64>>,
    /// Loss per thousand that is added for a while.
    pub(crate) burst: u64,
    kept: Vec<(usize, BytesMut)>,
}

impl Network {
    pub(crate) fn new(nodes: usize, plan: LinkPlan, rng: Rng) -> Self {
        Self {
            plan,
            rng,
            nodes,
            cut: vec![vec![false; nodes]; nodes],
            slow_us: vec![vec![0; nodes]; nodes],
            burst: 0,
            kept: Vec::new(),
        }
    }

    pub(crate) fn heal(&mut self) {
        for from in 0..self.nodes {
            self.cut[from].fill(false);
            self.slow_us[from].fill(0);
        }
        self.burst = 0;
    }

    /// No more faults at all.
    pub(crate) fn make_perfect(&mut self) {
        self.heal();
        self.plan = LinkPlan { delay_us: self.plan.delay_us, ..LinkPlan::default() };
    }

    pub(crate) fn partition(&mut self, side: u64) {
        for from in 0..self.nodes {
            for to in 0..self.nodes {
                self.cut[from][to] = (side >> from) & 1 != (side >> to) & 1;
            }
        }
    }

    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.cut[from][to] = true;
    }

    pub(crate) fn slow_down(&mut self, from: usize, to: usize, micros: u64) {
        self.slow_us[from][to] = micros;
    }

    /// The copies of a datagram that arrive: how long each takes, and its bytes.
    pub(crate) fn send(
        &mut self,
        from: usize,
        to: usize,
        bytes: &[u8],
        mut arrive: impl FnMut(Duration, BytesMut),
    ) {
        if self.cut[from][to] || self.rng.per_mille(self.plan.loss + self.burst) {
            return;
        }
        if self.rng.per_mille(20) {
            let kept = (to, BytesMut::from(bytes));
            if self.kept.len() < KEPT_MAX {
                self.kept.push(kept);
            } else {
                let index = self.rng.index(KEPT_MAX);
                self.kept[index] = kept;
            }
        }
        let copies = 1 + u64::from(self.rng.per_mille(self.plan.duplicate));
        for _ in 0..copies {
            let (low, high) = self.plan.delay_us;
            let mut delay = self.rng.between(low * 1000, high * 1000);
            delay += self.slow_us[from][to] * 1000;
            if self.rng.per_mille(self.plan.late) {
                delay += self.rng.below(self.plan.late_us * 1000);
            }
            let mut copy = BytesMut::from(bytes);
            if self.rng.per_mille(self.plan.corrupt) {
                self.garble(&mut copy);
            }
            arrive(Duration::from_nanos(delay), copy);
        }
    }

    fn garble(&mut self, bytes: &mut BytesMut) {
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
    }

    /// An old datagram and whom it was for.
    pub(crate) fn replayed(&mut self) -> Option<(usize, BytesMut)> {
        if self.kept.is_empty() {
            return None;
        }
        let index = self.rng.index(self.kept.len());
        Some(self.kept[index].clone())
    }

    /// A datagram that nobody sent: noise, or an old one with changes.
    pub(crate) fn forged(&mut self) -> (usize, BytesMut) {
        if self.rng.per_mille(500)
            && let Some((to, mut bytes)) = self.replayed()
        {
            self.garble(&mut bytes);
            return (to, bytes);
        }
        let length = self.rng.index(300);
        let bytes = (0..length).map(|_| self.rng.next() as u8).collect::<Vec<_>>();
        (self.rng.index(self.nodes), BytesMut::from(&bytes[..]))
    }
}
