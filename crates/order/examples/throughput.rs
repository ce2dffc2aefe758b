//! Messages per second on one core: three rings in one thread, datagrams handed over in memory.
//!
//! What it is not: a benchmark of a network. It shows what the protocol itself costs.
//! Run: `cargo run --release -p quorba-order --example throughput [seconds per case]`.

use bytes::{Bytes, BytesMut};
use quorba_base::{Instant, NodeId, NodeSet};
use quorba_order::{Boot, Config, Destination, Guarantee, Hold, Output, Ring, Timing};
use std::collections::VecDeque;

const NODES: usize = 3;
/// Messages that each sender keeps in flight.
const WINDOW: u64 = 200;

struct Bench {
    rings: Vec<Ring>,
    inboxes: Vec<VecDeque<BytesMut>>,
    start: std::time::Instant,
    delivered: Vec<u64>,
    own: Vec<u64>,
    submitted: Vec<u64>,
    datagrams: u64,
}

impl Bench {
    fn new(datagram_bytes_max: usize, encrypt: bool, accelerated: bool) -> Self {
        let start = std::time::Instant::now();
        let ring = |index: usize| {
            let config = Config {
                me: NodeId::new(index as u8).expect("in range"),
                nodes: NodeSet::first(NODES),
                domain_key: [1; 32].into(),
                domain_digest: 1,
                datagram_bytes_max,
                encrypt,
                accelerated,
                hold: Hold::default(),
                timing: Timing::default(),
            };
            let boot = Boot { incarnation: 1, salt: [index as u8; 16], ring_seq_min: 0 };
            Ring::new(config, boot, Instant::ZERO)
        };
        Self {
            rings: (0..NODES).map(ring).collect(),
            inboxes: vec![VecDeque::new(); NODES],
            start,
            delivered: vec![0; NODES],
            own: vec![0; NODES],
            submitted: vec![0; NODES],
            datagrams: 0,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    fn drain(&mut self, index: usize) {
        while let Some(output) = self.rings[index].poll() {
            match output {
                Output::Transmit { to, datagram } => {
                    self.datagrams += 1;
                    match to {
                        Destination::Node(node) => {
                            self.inboxes[usize::from(node.index())].push_back(datagram);
                        }
                        Destination::Others | Destination::Each => {
                            for other in (0..NODES).filter(|other| *other != index) {
                                self.inboxes[other].push_back(datagram.clone());
                            }
                        }
                    }
                }
                Output::Deliver(delivery) => {
                    self.delivered[index] += 1;
                    if usize::from(delivery.origin.index()) == index {
                        self.own[index] += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn turn(&mut self, senders: usize, payload: &Bytes) {
        for index in 0..NODES {
            let now = self.now();
            while let Some(datagram) = self.inboxes[index].pop_front() {
                self.rings[index].handle_datagram(now, datagram);
            }
            if self.rings[index].poll_timeout().is_some_and(|(at, _)| at <= now) {
                self.rings[index].handle_timeout(now);
            }
            if index < senders && self.rings[index].snapshot().members.len() == NODES {
                while self.submitted[index] - self.own[index] < WINDOW {
                    let _ = self.rings[index].submit(now, payload.clone(), Guarantee::Agreed);
                    self.submitted[index] += 1;
                }
            }
            self.drain(index);
        }
    }
}

fn case(
    bytes: usize,
    datagram: usize,
    encrypt: bool,
    accelerated: bool,
    senders: usize,
    secs: f64,
) {
    let mut bench = Bench::new(datagram, encrypt, accelerated);
    let payload = Bytes::from(vec![5; bytes]);
    while bench.delivered.iter().any(|count| *count < 1000) {
        bench.turn(senders, &payload);
    }
    let (before, datagrams) = (bench.delivered[0], bench.datagrams);
    let start = std::time::Instant::now();
    while start.elapsed().as_secs_f64() < secs {
        bench.turn(senders, &payload);
    }
    let seconds = start.elapsed().as_secs_f64();
    let messages = (bench.delivered[0] - before) as f64;
    println!(
        "{bytes:5} B  datagram {datagram:5}  encrypt {encrypt:5}  accelerated {accelerated:5}  \
         senders {senders}: {:9.0} msg/s, {:6.2} us/msg (3 nodes), {:5.2} datagrams/msg",
        messages / seconds,
        seconds * 1e6 / messages,
        (bench.datagrams - datagrams) as f64 / messages,
    );
}

fn main() {
    let secs = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(1.0);
    if std::env::args().nth(2).is_some() {
        return case(1024, 1400, true, false, NODES, secs); // one case, to be profiled
    }
    for encrypt in [false, true] {
        for (bytes, datagram) in
            [(64, 1400), (1024, 1400), (1024, 9000), (1024, 60_000), (8192, 1400), (8192, 60_000)]
        {
            case(bytes, datagram, encrypt, false, NODES, secs);
        }
    }
    case(1024, 1400, true, true, NODES, secs);
    case(1024, 1400, true, false, 1, secs);
}
