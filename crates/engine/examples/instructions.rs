//! Calls through three engines in one thread, without sockets: how many instructions a call takes
//! at the node of its gateway, and at another one.
//!
//! What it is not: a measurement of time. Run it where instructions are counted, and look at the
//! inclusive cost of `at_gateway` and `poll_gateway`, and of `at_others` and `poll_others`, which
//! are two nodes:
//!
//! ```sh
//! cargo build --release -p quorba-engine --example instructions
//! valgrind --tool=callgrind target/release/examples/instructions [calls [batch]]
//! callgrind_annotate --inclusive=yes callgrind.out.*
//! ```

#[allow(dead_code, unreachable_pub, reason = "shared with tests that want more")]
#[path = "../tests/stage/plan.rs"]
mod plan;

use bytes::{Bytes, BytesMut};
use plan::Plan;
use quorba_base::{Duration, Instant, NodeId};
use quorba_engine::order::Destination;
use quorba_engine::replica::{ChannelId, Concurrency, DriverOutput, GroupId, ServerCommand};
use quorba_engine::{ConnectionId, GatewayLimits, Node, Output};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Body, Endian, Message, ReplyStatus, ResponseFlags, Version};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

const NODES: usize = 3;
const CLIENTS: usize = 16;
const GROUP: GroupId = GroupId(0);
/// As the plan wants it.
const STATE_OBJECT: &[u8] = b"state";
const UNAVAILABLE_WAIT: Duration = Duration::from_secs(3);
/// Of a request and of a reply.
const BODY: [u8; 1024] = [7; 1024];

fn id(index: usize) -> NodeId {
    NodeId::new(index as u8).expect("in range")
}

/// What is asked of a node. Everything that it does for it is done in these calls.
enum Input<'a> {
    Datagram(BytesMut),
    Client(usize, &'a [u8]),
    Server(ChannelId, &'a [u8]),
    Timeout,
}

#[inline(never)]
fn at_gateway(node: &mut Node, now: Instant, input: Input<'_>) {
    // Two functions that do the same would be made one.
    black_box(1);
    give(node, now, input);
}

#[inline(never)]
fn at_others(node: &mut Node, now: Instant, input: Input<'_>) {
    black_box(2);
    give(node, now, input);
}

#[inline(always)]
fn give(node: &mut Node, now: Instant, input: Input<'_>) {
    match input {
        Input::Datagram(datagram) => node.handle_datagram(now, datagram),
        Input::Client(client, bytes) => {
            node.handle_client_bytes(now, ConnectionId(client as u64), bytes);
        }
        Input::Server(channel, bytes) => node.handle_server_bytes(now, GROUP, channel, bytes),
        Input::Timeout => node.handle_timeout(now),
    }
}

#[inline(never)]
fn poll_gateway(node: &mut Node) -> Option<Output> {
    black_box(1);
    node.poll()
}

#[inline(never)]
fn poll_others(node: &mut Node) -> Option<Output> {
    black_box(2);
    node.poll()
}

struct Bench {
    nodes: Vec<Node>,
    now: Instant,
    datagrams: Vec<Vec<BytesMut>>,
    /// What each server was sent and has not answered.
    asked: Vec<Vec<(ChannelId, Bytes)>>,
    /// Kept for its room.
    replies: Vec<u8>,
    /// Clients that have their answers.
    answered: Vec<usize>,
}

impl Bench {
    fn new() -> Self {
        let plan = Plan {
            nodes: NODES,
            datagram_bytes_max: 16 << 10,
            limits: GatewayLimits::default(),
            concurrency: Concurrency::Pipelined,
            ..Plan::default()
        };
        let config = |index| plan.config(index);
        let mut bench = Self {
            nodes: (0..NODES).map(|index| Node::new(config(index), Instant::ZERO)).collect(),
            now: Instant::ZERO,
            datagrams: vec![Vec::new(); NODES],
            asked: vec![Vec::new(); NODES],
            replies: Vec::new(),
            answered: Vec::new(),
        };
        for _ in 0..20 {
            bench.pass(Duration::from_millis(50));
        }
        for node in &mut bench.nodes {
            node.handle_server_up(bench.now, GROUP);
        }
        for _ in 0..20 {
            bench.pass(Duration::from_millis(50));
        }
        let opened = |node: &Node| node.snapshot().groups[GROUP].opened;
        assert!(bench.nodes.iter().all(opened), "the group serves");
        for client in 0..CLIENTS {
            let (id, peer) = (ConnectionId(client as u64), IpAddr::V4(Ipv4Addr::LOCALHOST));
            bench.nodes[0].handle_client_opened(bench.now, id, GROUP, peer);
        }
        bench.settle();
        bench
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let next = self.nodes.iter().filter_map(Node::poll_timeout).min();
            let Some(next) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            for index in 0..NODES {
                self.give(index, Input::Timeout);
            }
            self.settle();
        }
        self.now = end;
    }

    fn give(&mut self, index: usize, input: Input<'_>) {
        match index {
            0 => at_gateway(&mut self.nodes[0], self.now, input),
            _ => at_others(&mut self.nodes[index], self.now, input),
        }
    }

    /// Until nothing is under way.
    fn settle(&mut self) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for index in 0..NODES {
                for datagram in core::mem::take(&mut self.datagrams[index]) {
                    quiet = false;
                    self.give(index, Input::Datagram(datagram));
                }
                quiet &= !self.carry_out_all(index);
                quiet &= !self.serve(index);
            }
        }
    }

    fn carry_out_all(&mut self, index: usize) -> bool {
        let mut any = false;
        loop {
            let output = match index {
                0 => poll_gateway(&mut self.nodes[0]),
                _ => poll_others(&mut self.nodes[index]),
            };
            let Some(output) = output else { return any };
            any = true;
            self.carry_out(index, output);
        }
    }

    fn carry_out(&mut self, index: usize, output: Output) {
        match output {
            Output::Datagram { to: Destination::Node(node), datagram } => {
                self.datagrams[usize::from(node.index())].push(datagram);
            }
            Output::Datagram { datagram, .. } => {
                for to in (0..NODES).filter(|to| *to != index) {
                    self.datagrams[to].push(BytesMut::from(&datagram[..]));
                }
            }
            Output::ClientSend { connection, bytes } => {
                self.answered.push(connection.0 as usize);
                black_box(bytes);
            }
            Output::Replica(DriverOutput::Server { command, .. }) => match command {
                ServerCommand::Connect(channel) => {
                    self.nodes[index].handle_server_connected(self.now, GROUP, channel);
                }
                ServerCommand::Send(channel, bytes) => self.asked[index].push((channel, bytes)),
                ServerCommand::SendAll(..) => unreachable!("these requests are short"),
                _ => {}
            },
            _ => {}
        }
    }

    /// The server executes all that it was sent, and its replies come together.
    fn serve(&mut self, index: usize) -> bool {
        let mut replies = core::mem::take(&mut self.replies);
        let mut on = None;
        let mut bytes = BytesMut::new();
        for (channel, sent) in self.asked[index].drain(..) {
            on = Some(channel);
            bytes.extend_from_slice(&sent);
            while let Some(message) = cut(&mut bytes) {
                replies.extend_from_slice(&reply(&message));
            }
        }
        let Some(channel) = on else {
            self.replies = replies;
            return false;
        };
        self.give(index, Input::Server(channel, &replies));
        replies.clear();
        self.replies = replies;
        true
    }

    /// So many clients call at one time. Returns when all have their answers.
    fn call(&mut self, clients: core::ops::Range<usize>, request_id: u32) {
        let bytes = request(request_id);
        self.answered.clear();
        let count = clients.len();
        for client in clients {
            self.give(0, Input::Client(client, &bytes));
        }
        self.settle();
        self.pass(Duration::from_micros(100));
        while self.answered.len() < count {
            self.pass(Duration::from_millis(1));
        }
    }
}

/// The next whole message, if it is there.
fn cut(bytes: &mut BytesMut) -> Option<Message> {
    let size = bytes.get(8..12)?;
    let size = u32::from_le_bytes(size.try_into().expect("four octets")) as usize + 12;
    (bytes.len() >= size)
        .then(|| Message::from_bytes(bytes.split_to(size).freeze()).expect("what nodes send"))
}

fn request(request_id: u32) -> Bytes {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"echo",
        operation: b"echo",
        contexts: &[],
    };
    build::request(&head, |cdr| cdr.write_octets(&BODY)).bytes().clone()
}

fn reply(message: &Message) -> Bytes {
    let Ok(Body::Request(request)) = message.parse() else { panic!("nodes send requests") };
    let results: &[u8] = if request.object_key() == Some(STATE_OBJECT) { &[] } else { &BODY };
    let (status, id) = (ReplyStatus::NoException, request.request_id());
    let reply = build::reply(message.version(), message.endian(), id, status, |cdr| {
        cdr.write_octets(results);
    });
    reply.bytes().clone()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let calls: usize = arguments.next().unwrap_or(4000);
    let batch: usize = arguments.next().unwrap_or(4);
    assert!((1..=CLIENTS).contains(&batch), "a batch is of 1 to {CLIENTS} calls");
    let mut bench = Bench::new();
    let mut done = 0;
    let mut first = 0;
    while done < calls {
        let last = (first + batch).min(CLIENTS);
        bench.call(first..last, done as u32 + 1);
        done += last - first;
        first = last % CLIENTS;
    }
    println!("{done} calls in batches of up to {batch}");
}
