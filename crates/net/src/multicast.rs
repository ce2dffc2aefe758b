//! Whether IP multicast reaches the other nodes: asked of the network, again and again.
//!
//! Every node multicasts probes; whoever gets one by multicast answers by unicast. A node that has
//! answered lately is reached by multicast; the others get datagrams of their own, so nothing ever
//! depends on what switches between the nodes do with multicast.
//!
//! What it is not: a sign of life of a node. Silence here only means unicast.
//!
//! Invariants: a probe and its answer are authenticated with a key derived from a domain key, and
//! an answer counts only with the nonce of my latest probes, so neither forgeries nor recordings
//! make a node rely on multicast; a probe is answered at most once in [`ANSWER_PAUSE`] per node.

use crate::keys::derived;
use quorba_base::{NODES_MAX, NodeId, NodeSet};
use ring::hmac;
use std::time::{Duration, Instant};

const MAGIC: &[u8; 3] = b"QM\x01";
const PROBE: u8 = 1;
const ANSWER: u8 = 2;
const NONCE_BYTES: usize = 16;
const MAC_BYTES: usize = 16;
/// Kind, sender and addressee follow the magic, then nonce and code.
const BYTES: usize = 3 + 1 + 2 + NONCE_BYTES + MAC_BYTES;
const ANSWER_PAUSE: Duration = Duration::from_millis(20);
/// The first probes come in a quick row.
const QUICK_PROBES: u32 = 5;
const QUICK_PAUSE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_secs(2);
/// While nothing is multicast, so that nodes at rest are let sleep.
const IDLE_PAUSE: Duration = Duration::from_secs(10);
/// A node that has not answered so many probes in a row is not reached by multicast.
const MISSES_MAX: u32 = 3;

type Nonce = [u8; NONCE_BYTES];

/// A node's probing.
pub(crate) struct Prober {
    me: NodeId,
    keys: Vec<hmac::Key>,
    /// Of my latest probes, the newest last.
    nonces: Vec<Nonce>,
    probes: u32,
    /// When the last probe was sent, or the first is to be.
    probed_at: Instant,
    /// The number of the probe that each node answered last; 0: none.
    answered: [u32; NODES_MAX],
    answered_to: [Option<Instant>; NODES_MAX],
}

/// Something for the socket to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Send this to that node, by unicast.
    Answer(NodeId, Vec<u8>),
    /// A node answered my probe.
    Reached(NodeId),
}

/// Whether a datagram is a probe or an answer to one, and not the ring's.
pub(crate) fn is_probe(datagram: &[u8]) -> bool {
    datagram.len() == BYTES && datagram.starts_with(MAGIC)
}

impl Prober {
    /// `keys`: the domain keys, the newest last.
    pub(crate) fn new<'a>(
        me: NodeId,
        keys: impl Iterator<Item = &'a [u8; 32]>,
        now: Instant,
    ) -> Self {
        let mut prober = Self {
            me,
            keys: Vec::new(),
            nonces: Vec::new(),
            probes: 0,
            probed_at: now,
            answered: [0; NODES_MAX],
            answered_to: [None; NODES_MAX],
        };
        prober.set_keys(keys);
        prober
    }

    /// The domain keys have changed.
    pub(crate) fn set_keys<'a>(&mut self, keys: impl Iterator<Item = &'a [u8; 32]>) {
        self.keys = derived(b"quorba multicast probe v1", keys);
    }

    /// When the next probe is due; `in_use`: something was multicast since the last one.
    pub(crate) fn next_at(&self, in_use: bool) -> Instant {
        self.probed_at
            + match self.probes {
                0 => Duration::ZERO,
                1..QUICK_PROBES => QUICK_PAUSE,
                _ if in_use => PAUSE,
                _ => IDLE_PAUSE,
            }
    }

    /// The next probe, to be multicast; `nonce` is fresh and random.
    pub(crate) fn probe(&mut self, now: Instant, nonce: Nonce) -> Vec<u8> {
        self.probes += 1;
        self.probed_at = now;
        if self.nonces.len() == MISSES_MAX as usize {
            self.nonces.remove(0);
        }
        self.nonces.push(nonce);
        self.sealed(PROBE, self.me, &nonce)
    }

    /// Nodes that multicast reaches.
    pub(crate) fn reached(&self) -> NodeSet {
        let mut reached = NodeSet::EMPTY;
        for node in NodeSet::first(NODES_MAX) {
            let last = self.answered[usize::from(node.index())];
            if last > 0 && self.probes - last < MISSES_MAX {
                reached.insert(node);
            }
        }
        reached
    }

    /// A probe or an answer has come, from whomever.
    pub(crate) fn handle(&mut self, now: Instant, bytes: &[u8], multicast: bool) -> Option<Reply> {
        let (head, code) = bytes.split_at_checked(BYTES - MAC_BYTES)?;
        let (kind, from, to) = (head[3], NodeId::new(head[4])?, NodeId::new(head[5])?);
        if from == self.me || !self.keys.iter().any(|key| matches(key, head, code)) {
            return None;
        }
        let nonce: Nonce = head[6..].try_into().ok()?;
        let index = usize::from(from.index());
        match kind {
            PROBE if multicast => {
                let recent = |at: Instant| now.duration_since(at) < ANSWER_PAUSE;
                if self.answered_to[index].is_some_and(recent) {
                    return None;
                }
                self.answered_to[index] = Some(now);
                Some(Reply::Answer(from, self.sealed(ANSWER, from, &nonce)))
            }
            ANSWER if to == self.me => {
                let age = self.nonces.iter().rev().position(|mine| *mine == nonce)? as u32;
                let probe = self.probes - age;
                self.answered[index] = self.answered[index].max(probe);
                Some(Reply::Reached(from))
            }
            _ => None,
        }
    }

    fn sealed(&self, kind: u8, to: NodeId, nonce: &Nonce) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[kind, self.me.index(), to.index()]);
        bytes.extend_from_slice(nonce);
        if let Some(key) = self.keys.last() {
            let code = hmac::sign(key, &bytes);
            bytes.extend_from_slice(&code.as_ref()[..MAC_BYTES]);
        }
        bytes
    }
}

/// Compares in constant time.
fn matches(key: &hmac::Key, head: &[u8], code: &[u8]) -> bool {
    let right = hmac::sign(key, head);
    let differs = right.as_ref()[..MAC_BYTES].iter().zip(code).fold(0, |all, (a, b)| all | (a ^ b));
    code.len() == MAC_BYTES && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn node(index: u8) -> NodeId {
        NodeId::new(index).expect("in range")
    }

    fn reach(asker: &mut Prober, other: &mut Prober, now: Instant, nonce: u8) -> Vec<u8> {
        let probe = asker.probe(now, [nonce; 16]);
        match other.handle(now, &probe, true) {
            Some(Reply::Answer(to, answer)) => {
                assert_eq!(to, asker.me);
                answer
            }
            reply => panic!("no answer but {reply:?}"),
        }
    }

    #[test]
    fn a_node_that_answers_is_reached_until_it_falls_silent() {
        let mut now = Instant::now();
        let (mut a, mut b) =
            (Prober::new(node(0), [KEY].iter(), now), Prober::new(node(1), [KEY].iter(), now));
        let answer = reach(&mut a, &mut b, now, 1);
        assert!(a.reached().is_empty());
        assert_eq!(a.handle(now, &answer, false), Some(Reply::Reached(node(1))));
        for nonce in 2..2 + MISSES_MAX as u8 {
            assert!(a.reached().contains(node(1)));
            now = a.next_at(true);
            a.probe(now, [nonce; 16]);
        }
        assert!(a.reached().is_empty());
    }

    #[test]
    fn a_probe_by_unicast_shows_nothing() {
        let now = Instant::now();
        let (mut a, mut b) =
            (Prober::new(node(0), [KEY].iter(), now), Prober::new(node(1), [KEY].iter(), now));
        let probe = a.probe(now, [1; 16]);
        assert_eq!(b.handle(now, &probe, false), None);
    }

    #[test]
    fn forgeries_and_recordings_do_not_count() {
        let mut now = Instant::now();
        let (mut a, mut b) =
            (Prober::new(node(0), [KEY].iter(), now), Prober::new(node(1), [KEY].iter(), now));
        let mut stranger = Prober::new(node(1), [[8; 32]].iter(), now);
        let probe = a.probe(now, [1; 16]);
        assert_eq!(stranger.handle(now, &probe, true), None);
        let old = match b.handle(now, &probe, true) {
            Some(Reply::Answer(_, answer)) => answer,
            reply => panic!("no answer but {reply:?}"),
        };
        assert_eq!(b.handle(now, &probe, true), None, "answered a moment ago");
        for cut in 0..old.len() {
            assert_eq!(a.handle(now, &old[..cut], false), None);
        }
        let mut bent = old.clone();
        bent[7] ^= 1;
        assert_eq!(a.handle(now, &bent, false), None);
        for nonce in 2..2 + MISSES_MAX as u8 {
            now = a.next_at(true);
            a.probe(now, [nonce; 16]);
        }
        assert_eq!(a.handle(now, &old, false), None, "an answer to a probe of long ago");
        assert!(a.reached().is_empty());
    }

    #[test]
    fn while_keys_change_both_are_understood() {
        let now = Instant::now();
        let next = [9; 32];
        let mut a = Prober::new(node(0), [KEY].iter(), now);
        let mut b = Prober::new(node(1), [KEY, next].iter(), now);
        let probe = a.probe(now, [1; 16]);
        assert!(b.handle(now, &probe, true).is_some(), "the old key still opens");
        a.set_keys([KEY, next].iter());
        let answer = reach(&mut a, &mut b, now + ANSWER_PAUSE, 2);
        assert_eq!(a.handle(now, &answer, false), Some(Reply::Reached(node(1))));
    }
}
