//! What a fuzzer does with the decoder of the ring's packets, and on the way between two rings
//! (`fuzz/`).
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise panics.

use crate::config::{Boot, Config, Hold, Timing};
use crate::ids::Guarantee;
use crate::output::{Destination, Output};
use crate::ring::Ring;
use crate::seal::HEADER_BYTES;
use crate::wire::Packet;
use alloc::collections::VecDeque;
use alloc::vec;
use bytes::{Bytes, BytesMut};
use quorba_base::{Duration, Instant, NodeId, NodeSet};

/// The plaintext of a datagram: what can be read is read as the same after it was written.
///
/// # Panics
/// If it is not.
pub fn packet(input: &[u8]) {
    let Ok(packet) = Packet::decode(&Bytes::copy_from_slice(input)) else { return };
    let mut written = BytesMut::new();
    packet.encode(&mut written);
    assert_eq!(Packet::decode(&written.freeze()), Ok(packet), "read, written and read");
}

/// Two rings that hear each other, and what the input puts between them. Four octets are a step:
/// what, and how. Datagrams are sealed, so whatever is changed or made up on the way is refused,
/// and what is lost, late, early or repeated makes no promise break.
///
/// # Panics
/// If a ring delivers something that was not sent, twice, or in another order than the other one.
pub fn datagrams(input: &[u8]) {
    let mut net = Net::new();
    for step in input.chunks_exact(4) {
        net.step([step[0], step[1], step[2], step[3]]);
    }
    // Peace, and both must find together again.
    let until = net.now + PEACE;
    while !net.is_together() {
        net.deliver(usize::MAX);
        let next = net.rings.iter().filter_map(|ring| ring.poll_timeout()).min();
        let next = next.map(|(at, _)| at).filter(|at| *at <= until);
        let next = next.expect("they are together in time after the last disturbance");
        net.pass(next.since(net.now));
    }
}

/// Virtual time in which two rings surely form one: patience that grew in between runs out first.
const PEACE: Duration = Duration::from_secs(25);
/// Datagrams on their way.
const WAY_MAX: usize = 64;

/// A node of a small ring, as tests from the inside want it too.
pub(crate) fn config(me: NodeId, nodes: NodeSet) -> Config {
    Config {
        me,
        nodes,
        domain_key: [7; 32].into(),
        domain_digest: 1,
        datagram_bytes_max: 1400,
        encrypt: true,
        accelerated: false,
        hold: Hold::default(),
        timing: Timing::default(),
    }
}

struct Net {
    now: Instant,
    rings: [Ring; 2],
    /// To whom, and what.
    way: VecDeque<(usize, BytesMut)>,
    last: BytesMut,
    /// Messages that were sent by each, and those of the other that each was delivered.
    sent: [u64; 2],
    seen: [u64; 2],
}

impl Net {
    fn new() -> Self {
        let now = Instant::ZERO + Duration::from_millis(1);
        let ring = |index: u8| {
            let me = NodeId::new(index).expect("in range");
            let config = config(me, NodeSet::first(2));
            let boot = Boot { incarnation: 1, salt: [index + 3; 16], ring_seq_min: 0 };
            Ring::new(config, boot, now)
        };
        let rings = [ring(0), ring(1)];
        let (way, last) = (VecDeque::new(), BytesMut::new());
        let mut net = Self { now, rings, way, last, sent: [0; 2], seen: [0; 2] };
        net.poll();
        net
    }

    fn is_together(&self) -> bool {
        self.rings.iter().all(|ring| ring.snapshot().members == NodeSet::first(2))
    }

    fn poll(&mut self) {
        for (index, ring) in self.rings.iter_mut().enumerate() {
            while let Some(output) = ring.poll() {
                match output {
                    Output::Transmit { to, datagram } => {
                        let is_his = !matches!(to, Destination::Node(node)
                            if usize::from(node.index()) == index);
                        if is_his && self.way.len() < WAY_MAX {
                            self.way.push_back((1 - index, datagram));
                        }
                    }
                    Output::Deliver(delivery) => {
                        let from = usize::from(delivery.origin.index());
                        let number = delivery.payload.first_chunk::<8>().expect("as it was sent");
                        let number = u64::from_be_bytes(*number);
                        assert!(number <= self.sent[from], "only what was sent is delivered");
                        if from != index {
                            assert!(number > self.seen[index], "once, and in its order");
                            self.seen[index] = number;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        for ring in &mut self.rings {
            if ring.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                ring.handle_timeout(self.now);
            }
        }
        self.poll();
    }

    fn hear(&mut self, to: usize, datagram: &[u8]) {
        self.rings[to].handle_datagram(self.now, BytesMut::from(datagram));
        self.poll();
    }

    fn deliver(&mut self, most: usize) {
        for _ in 0..most.min(4 * WAY_MAX) {
            let Some((to, datagram)) = self.way.pop_front() else { return };
            self.last = datagram.clone();
            self.hear(to, &datagram);
        }
    }

    fn step(&mut self, [what, a, b, c]: [u8; 4]) {
        match what % 10 {
            0..=2 => self.deliver(1 + usize::from(a % 8)),
            3 => self.pass(Duration::from_micros(u64::from(a) * 200)),
            4 => self.submit(usize::from(a % 2), usize::from(u16::from_be_bytes([b, c]) % 4000)),
            5 => drop(self.way.pop_front()),
            6 => {
                let last = self.last.clone();
                self.hear(usize::from(a % 2), &last);
            }
            7 => {
                if let Some(first) = self.way.pop_front() {
                    self.way.push_back(first);
                }
            }
            // Its header or what is sealed behind it is another one.
            8 => {
                let Some((to, mut datagram)) = self.way.pop_front() else { return };
                let at = usize::from(u16::from_be_bytes([a, b])) % datagram.len();
                datagram[at] ^= c | 1;
                self.hear(to, &datagram);
            }
            // Somebody has made it up behind a header that is right, or cut it off.
            _ => {
                let header = self.last.len().min(HEADER_BYTES);
                let mut made = BytesMut::from(&self.last[..header]);
                made.resize(header + usize::from(b), c);
                self.hear(usize::from(a % 2), &made);
            }
        }
    }

    fn submit(&mut self, from: usize, bytes: usize) {
        self.sent[from] += 1;
        let number = self.sent[from].to_be_bytes();
        let payload = Bytes::from([&number[..], &vec![0; bytes]].concat());
        let taken = self.rings[from].submit(self.now, payload, Guarantee::Agreed);
        assert!(taken.is_ok(), "a few messages have room");
        self.poll();
    }
}

#[cfg(test)]
#[path = "../../../fuzz/inputs.rs"]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octets_harm_the_decoder_of_packets() {
        inputs::run(200_000, packet);
    }

    #[test]
    fn no_octets_on_the_way_harm_two_rings() {
        inputs::run(300, datagrams);
    }
}
