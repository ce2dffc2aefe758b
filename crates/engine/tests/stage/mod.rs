//! One or three engines on a perfect network that a test can cut, with a server behind each that
//! echoes: the stage for what a client sees.
#![allow(unreachable_pub, dead_code, reason = "shared by the test files of this folder")]

use bytes::{Bytes, BytesMut};
use quorba_base::{Duration, Instant, NodeId, NodeSet};
use quorba_engine::order::{Boot, Config, Destination, DomainKey, Hold, Timing};
use quorba_engine::replica::{
    Ack, ChannelId, GroupConfig, GroupId, PrimaryStatus, Quorum, Record, ReplyPath, ServerCommand,
    TotalLoss,
};
use quorba_engine::{
    CloseReason, ConnectionId, GatewayLimits, GroupSettings, Node, NodeConfig, Output,
};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{
    Body, Completion, Endian, ExceptionKind, Framer, FramerLimits, Message, ReplyStatus,
    ResponseFlags, Version,
};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

pub const GROUP: GroupId = GroupId(0);
pub const CLIENT: ConnectionId = ConnectionId(1);
pub const STATE_OBJECT: &[u8] = b"state";
pub const UNAVAILABLE_WAIT: Duration = Duration::from_secs(3);

/// What a client got, in short.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Got {
    Results(u32),
    Raised(u32, ExceptionKind, Completion),
    Here(u32),
    Close,
    MessageError,
    Ended(CloseReason),
    Paused,
    Resumed,
}

pub struct Stage {
    pub nodes: Vec<Node>,
    pub now: Instant,
    datagrams: VecDeque<(usize, usize, Bytes)>,
    /// Datagrams of and to this node are lost.
    pub cut: Option<usize>,
    pub got: Vec<Vec<Got>>,
    /// Calls that the servers have received and not answered.
    pub calls: Vec<VecDeque<(ChannelId, Bytes)>>,
    pub executed: Vec<usize>,
    pub held: bool,
}

fn id(index: usize) -> NodeId {
    NodeId::new(index as u8).unwrap()
}

impl Stage {
    pub fn new(count: usize, limits: GatewayLimits) -> Self {
        Self::planned(count, limits, ReplyPath::Direct)
    }

    fn planned(count: usize, limits: GatewayLimits, reply: ReplyPath) -> Self {
        let now = Instant::ZERO;
        let node = |index| Node::new(config(index, count, limits, reply), now);
        let nodes = (0..count).map(node).collect();
        let mut stage = Self {
            nodes,
            now,
            datagrams: VecDeque::new(),
            cut: None,
            got: vec![Vec::new(); count],
            calls: vec![VecDeque::new(); count],
            executed: vec![0; count],
            held: false,
        };
        stage.settle();
        stage
    }

    /// Nodes in one primary component with a server each, and a client at node 0.
    pub fn serving(count: usize) -> Self {
        Self::serving_with(count, GatewayLimits::default())
    }

    pub fn serving_with(count: usize, limits: GatewayLimits) -> Self {
        Self::new(count, limits).with_servers()
    }

    /// The same with members that all reply, through the order.
    pub fn serving_ordered(count: usize) -> Self {
        Self::planned(count, GatewayLimits::default(), ReplyPath::Ordered).with_servers()
    }

    fn with_servers(mut self) -> Self {
        let count = self.nodes.len();
        let stage = &mut self;
        stage.pass_until(|stage| {
            stage.nodes.iter().all(|n| n.snapshot().primary == PrimaryStatus::Primary)
        });
        for index in 0..count {
            stage.nodes[index].handle_server_up(stage.now, GROUP);
        }
        stage.settle();
        stage.pass_until(|stage| stage.nodes.iter().all(|n| n.snapshot().groups[0].opened));
        stage.connect();
        self
    }

    pub fn connect(&mut self) {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        self.nodes[0].handle_client_opened(self.now, CLIENT, GROUP, peer);
        self.settle();
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.nodes[0].handle_client_bytes(self.now, CLIENT, bytes);
        self.settle();
    }

    pub fn call(&mut self, request_id: u32) {
        self.say(request(request_id, b"echo", b"key").bytes());
    }

    /// What the client at node 0 got since the last time it was asked.
    pub fn client_got(&mut self) -> Vec<Got> {
        core::mem::take(&mut self.got[0])
    }

    pub fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let next = self.nodes.iter().filter_map(Node::poll_timeout).min();
            let Some(next) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            for index in 0..self.nodes.len() {
                self.nodes[index].handle_timeout(self.now);
            }
            self.settle();
        }
        self.now = end;
    }

    pub fn pass_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..2000 {
            if done(self) {
                return;
            }
            self.pass(Duration::from_millis(5));
        }
        panic!("it does not happen within 10 s of virtual time");
    }

    pub fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for index in 0..self.nodes.len() {
                while let Some(output) = self.nodes[index].poll() {
                    quiet = false;
                    self.carry_out(index, output);
                }
            }
            while let Some((from, to, datagram)) = self.datagrams.pop_front() {
                quiet = false;
                if self.cut != Some(from) && self.cut != Some(to) {
                    let datagram = BytesMut::from(datagram.as_ref());
                    self.nodes[to].handle_datagram(self.now, datagram);
                }
            }
            for index in 0..self.nodes.len() {
                quiet &= !self.serve(index);
            }
            if quiet {
                return;
            }
        }
    }

    fn serve(&mut self, index: usize) -> bool {
        if self.held {
            return false;
        }
        let Some((channel, bytes)) = self.calls[index].pop_front() else { return false };
        let message = Message::from_bytes(bytes).unwrap();
        let Ok(Body::Request(request)) = message.parse() else { panic!("no request") };
        self.executed[index] += 1;
        let status = ReplyStatus::NoException;
        let (version, endian) = (message.version(), message.endian());
        let reply = build::reply(version, endian, request.request_id(), status, |_| {});
        self.nodes[index].handle_server_bytes(self.now, GROUP, channel, reply.bytes());
        true
    }

    fn carry_out(&mut self, index: usize, output: Output) {
        match output {
            Output::Datagram { to: Destination::Node(node), datagram } => {
                self.datagrams.push_back((index, usize::from(node.index()), datagram.freeze()));
            }
            Output::Datagram { to: Destination::Others | Destination::Each, datagram } => {
                let datagram = datagram.freeze();
                for to in (0..self.nodes.len()).filter(|to| *to != index) {
                    self.datagrams.push_back((index, to, datagram.clone()));
                }
            }
            Output::ClientSend { bytes, .. } => {
                let got = read(&bytes);
                self.got[index].extend(got);
            }
            Output::ClientPause { .. } => self.got[index].push(Got::Paused),
            Output::ClientResume { .. } => self.got[index].push(Got::Resumed),
            Output::ClientClose { reason, .. } => self.got[index].push(Got::Ended(reason)),
            Output::Server { group, command } => match command {
                ServerCommand::Connect(channel) => {
                    self.nodes[index].handle_server_connected(self.now, group, channel);
                }
                ServerCommand::Send(channel, bytes) => {
                    self.calls[index].push_back((channel, bytes));
                }
                ServerCommand::Close(_) | ServerCommand::Restart(_) => {}
            },
            Output::Submit { .. } => unreachable!("the order is made by the ring"),
            Output::PersistRing { .. } | Output::PersistPrimary(_) | Output::Event(_) => {}
        }
    }
}

fn config(index: usize, count: usize, limits: GatewayLimits, reply: ReplyPath) -> NodeConfig {
    let group = GroupConfig {
        members: NodeSet::first(count),
        state_object: Some(Bytes::from_static(STATE_OBJECT)),
        foreign: false,
        ack: Ack::Majority,
        reply,
        replier: None,
        on_total_loss: TotalLoss::Stop,
        open_after: Duration::from_secs(15),
        server_reply: Duration::from_secs(300),
        retention: Duration::from_secs(60),
        message_bytes_max: 1 << 20,
    };
    NodeConfig {
        order: Config {
            me: id(index),
            nodes: NodeSet::first(count),
            domain_key: DomainKey::new([7; 32]),
            domain_digest: 1,
            datagram_bytes_max: 1400,
            encrypt: true,
            accelerated: true,
            hold: Hold::default(),
            timing: Timing::default(),
        },
        boot: Boot { incarnation: 1, salt: [index as u8; 16], ring_seq_min: 0 },
        quorum: Quorum::default(),
        record: Record::default(),
        groups: vec![GroupSettings { replica: group, unavailable_wait: UNAVAILABLE_WAIT }],
        limits,
        wall_clock_origin: 0,
    }
}

pub fn request(request_id: u32, operation: &[u8], object_key: &[u8]) -> Message {
    request_with(request_id, operation, object_key, ResponseFlags::WithTarget)
}

pub fn request_with(
    request_id: u32,
    operation: &[u8],
    object_key: &[u8],
    response_flags: ResponseFlags,
) -> Message {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags,
        object_key,
        operation,
        contexts: &[],
    };
    build::request(&head, |cdr| cdr.write_u32(1))
}

fn read(bytes: &Bytes) -> Vec<Got> {
    let limits = FramerLimits {
        message_bytes_max: 1 << 20,
        fragmented_requests_max: 1,
        buffered_bytes_max: 1 << 20,
    };
    let mut framer = Framer::new(limits);
    framer.push(bytes);
    let mut got = Vec::new();
    while let Some(message) = framer.next().unwrap() {
        got.push(match message.parse().unwrap() {
            Body::Reply(reply) => match reply.system_exception() {
                Some(exception) => {
                    let exception = exception.unwrap();
                    Got::Raised(reply.request_id(), exception.kind, exception.completed)
                }
                None => Got::Results(reply.request_id()),
            },
            Body::LocateReply(reply) => Got::Here(reply.request_id()),
            Body::CloseConnection => Got::Close,
            Body::MessageError => Got::MessageError,
            other => panic!("a client gets no {other:?}"),
        });
    }
    got
}
