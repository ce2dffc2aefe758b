//! Engines on a perfect network that a test can cut, with a server behind each that remembers what
//! it was told: the stage for what a client sees.
#![allow(unreachable_pub, dead_code, reason = "shared by the test files of this folder")]

mod plan;
mod server;

pub use plan::Plan;
pub use server::Server;

use bytes::{Bytes, BytesMut};
use quorba_base::{Duration, Instant, NodeId, NodeSet};
use quorba_engine::order::Destination;
use quorba_engine::replica::{
    ChannelId, DriverOutput, GroupId, PrimaryStatus, ReplyPath, ServerCommand,
};
use quorba_engine::{ClientPeer, CloseReason, ConnectionId, GatewayLimits, Node, Output};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::Reader;
use quorba_giop::ior::Ior;
use quorba_giop::{
    Body, Completion, Endian, ExceptionKind, Framer, FramerLimits, LocateStatus, Message,
    ReplyStatus, ResponseFlags, Version, context,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

pub const GROUP: GroupId = GroupId(0);
/// A second group, for those who ask for it.
pub const OTHER: GroupId = GroupId(1);
pub const CLIENT: ConnectionId = ConnectionId(1);
/// A client of [`OTHER`].
pub const OTHER_CLIENT: ConnectionId = ConnectionId(2);
pub const STATE_OBJECT: &[u8] = b"state";
pub const UNAVAILABLE_WAIT: Duration = Duration::from_secs(3);

/// What a client got, in short.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Got {
    Results(u32),
    /// The reply behind has a reference to the group, of that version.
    Newer(u32),
    Raised(u32, ExceptionKind, Completion),
    /// An exception of the interface.
    User(u32),
    Here(u32),
    Nowhere(u32),
    Close,
    MessageError,
    Ended(CloseReason),
    Paused,
    Resumed,
}

pub struct Stage {
    plan: Plan,
    pub nodes: Vec<Node>,
    pub now: Instant,
    datagrams: VecDeque<(usize, usize, Bytes)>,
    /// Messages on links.
    peers: VecDeque<(usize, usize, Bytes)>,
    /// On which side each node is; datagrams between sides are lost.
    sides: Vec<usize>,
    /// What clients at each node got.
    pub got: Vec<Vec<Got>>,
    readers: BTreeMap<(usize, ConnectionId), Framer>,
    /// Calls that the servers have received and not answered.
    pub calls: Vec<VecDeque<(GroupId, ChannelId, Bytes)>>,
    /// Per node and group.
    pub servers: Vec<Vec<Server>>,
    /// Calls that the servers of each node have executed.
    pub executed: Vec<usize>,
    pub held: bool,
    /// Nodes whose servers execute nothing meanwhile.
    pub waits: NodeSet,
}

pub fn id(index: usize) -> NodeId {
    NodeId::new(index as u8).unwrap()
}

impl Stage {
    pub fn of(plan: Plan) -> Self {
        let now = Instant::ZERO;
        let count = plan.nodes;
        let mut stage = Self {
            plan,
            nodes: (0..count).map(|index| Node::new(plan.config(index), now)).collect(),
            now,
            datagrams: VecDeque::new(),
            peers: VecDeque::new(),
            sides: vec![0; count],
            got: vec![Vec::new(); count],
            readers: BTreeMap::new(),
            calls: vec![VecDeque::new(); count],
            servers: vec![vec![Server::default(); plan.groups]; count],
            executed: vec![0; count],
            held: false,
            waits: NodeSet::EMPTY,
        };
        stage.settle();
        stage
    }

    pub fn new(nodes: usize, limits: GatewayLimits) -> Self {
        Self::of(Plan { nodes, limits, ..Plan::default() })
    }

    /// Nodes in one primary component with a server each, and a client at node 0.
    pub fn serving(nodes: usize) -> Self {
        Self::serving_with(nodes, GatewayLimits::default())
    }

    pub fn serving_with(nodes: usize, limits: GatewayLimits) -> Self {
        Self::new(nodes, limits).with_servers()
    }

    /// The same with members that all reply, through the order.
    pub fn serving_ordered(nodes: usize) -> Self {
        let plan = Plan { nodes, reply: ReplyPath::Ordered, ..Plan::default() };
        Self::of(plan).with_servers()
    }

    pub fn with_servers(mut self) -> Self {
        let stage = &mut self;
        stage.pass_until(|stage| stage.statuses().iter().all(|s| *s == PrimaryStatus::Primary));
        for index in 0..stage.plan.members.unwrap_or(stage.nodes.len()) {
            for group in 0..stage.plan.groups {
                stage.nodes[index].handle_server_up(stage.now, GroupId(group as u64));
            }
        }
        stage.settle();
        let opened = |node: &Node| node.snapshot().groups.values().all(|group| group.opened);
        stage.pass_until(|stage| stage.nodes.iter().all(opened));
        stage.connect();
        self
    }

    /// Messages pass on the links between all nodes.
    pub fn linked(mut self) -> Self {
        let count = self.nodes.len();
        for index in 0..count {
            for other in (0..count).filter(|other| *other != index) {
                self.nodes[index].handle_peer_up(self.now, id(other), 1);
            }
        }
        self.settle();
        self
    }

    /// What the member of a group at a node is doing.
    pub fn local(&self, group: GroupId, index: usize) -> Option<&'static str> {
        self.nodes[index].snapshot().groups[group].local
    }

    pub fn statuses(&self) -> Vec<PrimaryStatus> {
        self.nodes.iter().map(|node| node.snapshot().primary).collect()
    }

    // -- the network ------------------------------------------------------------------------

    /// These nodes and the others do not hear each other any more.
    pub fn cut_off(&mut self, nodes: &[usize]) {
        self.sides = (0..self.nodes.len()).map(|index| nodes.contains(&index).into()).collect();
    }

    /// Every node hears only those of its own side.
    pub fn split(&mut self, sides: &[&[usize]]) {
        let side = |index| sides.iter().position(|side| side.contains(&index)).unwrap();
        self.sides = (0..self.nodes.len()).map(side).collect();
    }

    pub fn heal(&mut self) {
        self.cut_off(&[]);
    }

    /// Whether every node knows who is on its side.
    pub fn views_are_right(&self) -> bool {
        let side = |of| (0..self.nodes.len()).filter(move |at| self.sides[*at] == self.sides[of]);
        let is_right = |(index, node): (usize, &Node)| {
            node.snapshot().order.members == side(index).map(id).collect()
        };
        self.nodes.iter().enumerate().all(is_right)
    }

    // -- clients ----------------------------------------------------------------------------

    pub fn connect(&mut self) {
        self.connect_at(0);
    }

    /// A client of each group connects to the gateways of a node.
    pub fn connect_at(&mut self, index: usize) {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        self.nodes[index].handle_client_opened(self.now, CLIENT, GROUP, peer);
        if self.plan.groups > 1 {
            self.nodes[index].handle_client_opened(self.now, OTHER_CLIENT, OTHER, peer);
        }
        self.settle();
    }

    /// Another client takes the place of the first one at the gateway of a node.
    pub fn connect_from(&mut self, index: usize, peer: impl Into<ClientPeer>) {
        self.nodes[index].handle_client_closed(self.now, CLIENT);
        self.nodes[index].handle_client_opened(self.now, CLIENT, GROUP, peer);
        self.settle();
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.say_as(0, CLIENT, bytes);
    }

    pub fn say_as(&mut self, index: usize, client: ConnectionId, bytes: &[u8]) {
        self.nodes[index].handle_client_bytes(self.now, client, bytes);
        self.settle();
    }

    pub fn call(&mut self, request_id: u32) {
        self.call_as(0, CLIENT, request_id);
    }

    pub fn call_as(&mut self, index: usize, client: ConnectionId, request_id: u32) {
        self.say_as(index, client, request(request_id, b"echo", b"key").bytes());
    }

    /// What the clients at node 0 got since the last time they were asked.
    pub fn client_got(&mut self) -> Vec<Got> {
        self.got_at(0)
    }

    pub fn got_at(&mut self, index: usize) -> Vec<Got> {
        core::mem::take(&mut self.got[index])
    }

    /// What the servers of a group have executed or were told to have executed, by request id.
    pub fn logs(&self, group: GroupId) -> Vec<&[u32]> {
        self.servers.iter().map(|node| node[group.0 as usize].log.as_slice()).collect()
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
        panic!("it does not happen within 10 s of virtual time: {:?}", self.statuses());
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
                if self.sides[from] == self.sides[to] {
                    let datagram = BytesMut::from(datagram.as_ref());
                    self.nodes[to].handle_datagram(self.now, datagram);
                }
            }
            while let Some((from, to, bytes)) = self.peers.pop_front() {
                quiet = false;
                if self.sides[from] == self.sides[to] {
                    self.nodes[to].handle_peer_message(self.now, id(from), 1, bytes);
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
        if self.held || self.waits.contains(id(index)) {
            return false;
        }
        let Some((group, channel, bytes)) = self.calls[index].pop_front() else {
            return false;
        };
        let limits = FramerLimits {
            message_bytes_max: 64 << 20,
            fragmented_requests_max: 1,
            buffered_bytes_max: 64 << 20,
        };
        let mut reader = Framer::new(limits);
        reader.push(&bytes);
        // A long message comes in fragments.
        let message = loop {
            if let Some(message) = reader.next().unwrap() {
                break message;
            }
            let (_, _, rest) = self.calls[index].pop_front().expect("the rest of a message");
            reader.push(&rest);
        };
        let server = &mut self.servers[index][group.0 as usize];
        let before = server.executions;
        let reply = server.serve(&message);
        self.executed[index] += server.executions - before;
        self.nodes[index].handle_server_bytes(self.now, group, channel, &reply);
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
            Output::ClientSend { connection, bytes } => {
                let limits = FramerLimits {
                    message_bytes_max: 64 << 20,
                    fragmented_requests_max: 1,
                    buffered_bytes_max: 64 << 20,
                };
                let new = || Framer::new(limits);
                let reader = self.readers.entry((index, connection)).or_insert_with(new);
                self.got[index].extend(read(reader, &bytes));
            }
            Output::ClientPause { .. } => self.got[index].push(Got::Paused),
            Output::ClientResume { .. } => self.got[index].push(Got::Resumed),
            Output::ClientClose { reason, .. } => self.got[index].push(Got::Ended(reason)),
            Output::Replica(output) => self.carry_out_of_replica(index, output),
            Output::Submit { .. } => unreachable!("the order is made by the ring"),
            Output::PersistRing { .. } | Output::Event(_) => {}
            Output::ExternalCalls { .. } => unreachable!("no group calls to the outside"),
        }
    }

    fn carry_out_of_replica(&mut self, index: usize, output: DriverOutput) {
        match output {
            DriverOutput::Catalog(record) => {
                self.nodes[index].handle_catalog_saved(self.now, record.version);
            }
            DriverOutput::Server { group, command } => match command {
                ServerCommand::Connect(channel) => {
                    self.nodes[index].handle_server_connected(self.now, group, channel);
                }
                ServerCommand::Send(channel, bytes) => {
                    self.calls[index].push_back((group, channel, bytes));
                }
                ServerCommand::SendAll(channel, pieces) => {
                    let calls = pieces.into_iter().map(|bytes| (group, channel, bytes));
                    self.calls[index].extend(calls);
                }
                ServerCommand::Close(_)
                | ServerCommand::Restart(_)
                | ServerCommand::Start
                | ServerCommand::Stop => {}
            },
            DriverOutput::Peer { to, bytes, .. } => {
                self.peers.push_back((index, usize::from(to.index()), bytes));
            }
            DriverOutput::PersistPrimary(_)
            | DriverOutput::Log(_)
            | DriverOutput::FreeLater(_)
            | DriverOutput::Defined { .. }
            | DriverOutput::CatalogChanged { .. }
            | DriverOutput::Commanded { .. }
            | DriverOutput::BackedUp { .. }
            | DriverOutput::Restored { .. } => {}
        }
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
    build::request(&head, |cdr| cdr.write_u32(request_id))
}

/// The version of the reference that a reply carries.
fn newer_reference(message: &Message) -> Option<u32> {
    let Ok(Body::Reply(reply)) = message.parse() else { return None };
    let (_, data) = reply.contexts().find(|(id, _)| *id == context::FT_FORWARD)?;
    let ior = Ior::read(&mut Reader::new(data, message.endian())).expect("a reference");
    Some(ior.ft_group().expect("a group's").reference_version)
}

fn read(framer: &mut Framer, bytes: &Bytes) -> Vec<Got> {
    framer.push(bytes);
    let mut got = Vec::new();
    while let Some(message) = framer.next().unwrap() {
        got.extend(newer_reference(&message).map(Got::Newer));
        got.push(match message.parse().unwrap() {
            Body::Reply(reply) => match reply.system_exception() {
                Some(exception) => {
                    let exception = exception.unwrap();
                    Got::Raised(reply.request_id(), exception.kind, exception.completed)
                }
                None if reply.status() == ReplyStatus::UserException => {
                    Got::User(reply.request_id())
                }
                None => Got::Results(reply.request_id()),
            },
            Body::LocateReply(reply) if reply.status() == LocateStatus::UnknownObject => {
                Got::Nowhere(reply.request_id())
            }
            Body::LocateReply(reply) => Got::Here(reply.request_id()),
            Body::CloseConnection => Got::Close,
            Body::MessageError => Got::MessageError,
            other => panic!("a client gets no {other:?}"),
        });
    }
    got
}
