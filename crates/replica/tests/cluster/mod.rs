//! A few replicas around one perfect order, with servers that count: the stage for scenarios.
//!
//! The order is a queue that the scenario delivers from, and views are what it says they are;
//! what the ring makes of real networks is tested elsewhere.

#![allow(unreachable_pub, dead_code, reason = "shared by the test files of this folder")]

mod server;

use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId, NodeSet};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Body, Endian, Framer, FramerLimits, ResponseFlags, Version};
use quorba_replica::{
    Ack, Backup, BackupRefused, CheckpointRule, Command, CommandRefused, ComparisonRule,
    Concurrency, Delivered, DownReason, Event, FtRequest, GatewayKey, GroupConfig, GroupId,
    GroupSnapshot, LogRecord, MemberState, Output, Quorum, ReadConsistency, ReadRule, Record,
    Recovered, Replica, ReplicaConfig, ReplicaView, ReplyPath, RequestEnvelope, RequestNumber,
    ServerCommand, Style, TotalLoss, ViewId,
};
use quorba_replica::{Released, TransferProgress, TransferRule};
use std::collections::VecDeque;

pub use server::Server;

pub const GROUP: GroupId = GroupId(0);

pub struct Node {
    pub replica: Replica,
    /// What the disk knows.
    pub record: Record,
    pub server: Option<Server>,
    pub replies: Vec<(u64, String)>,
    pub dropped: Vec<u64>,
    /// What came of reads.
    pub reads: Vec<(u64, String)>,
    /// Marks that it had ordered.
    pub marks: Vec<u64>,
    pub resubmits: usize,
    pub events: Vec<Event>,
    pub restarts: Vec<DownReason>,
    /// Commands of its operator and what became of them.
    pub commanded: Vec<Result<(), CommandRefused>>,
    pub backups: Vec<Result<Backup, BackupRefused>>,
    pub restored: Vec<Result<(), BackupRefused>>,
    awaits_held: bool,
    pub alive: bool,
    pub disk: Disk,
    /// Requests that a majority has on disk.
    pub logged: Vec<u64>,
    incarnation: u64,
    ticket: u64,
    /// Replies that it had ordered, with their tickets.
    ordered: Vec<(GatewayKey, u64)>,
    released_below: u64,
}

/// What survives a crash, as far as it is synced.
#[derive(Clone, Default)]
pub struct Disk {
    pub records: Vec<LogRecord>,
    pub states: Vec<(GroupId, Bytes)>,
    /// Records that a crash does not take.
    pub synced: usize,
    /// Records that were given up at the beginning.
    pub given_up: usize,
    /// Records of earlier boots.
    begin: usize,
    /// Nothing is synced until the scenario says so.
    pub slow: bool,
}

pub struct Cluster {
    pub nodes: Vec<Node>,
    pub order: VecDeque<Delivered>,
    /// Messages from node to node: whose, for whom.
    pub peers: VecDeque<(usize, usize, Bytes)>,
    /// What nodes send each other is lost.
    pub cut: bool,
    /// Nobody says that a majority holds anything.
    pub nobody_holds: bool,
    pub now: Instant,
    view: u64,
    plan: Plan,
    members: Vec<usize>,
}

/// What the scenarios choose of the group's configuration.
#[derive(Clone, Copy)]
pub struct Plan {
    pub state_object: bool,
    pub reply: ReplyPath,
    pub replier: Option<usize>,
    pub quorum: Quorum,
    pub style: Style,
    pub checkpoint: CheckpointRule,
    pub comparison: ComparisonRule,
    pub concurrency: Concurrency,
    pub durable: bool,
    pub retention_bytes_max: usize,
    pub replay_bytes_max: Option<usize>,
    /// `tell*` changes nothing.
    pub reads: Option<ReadConsistency>,
}

impl Plan {
    pub fn plain(state_object: bool) -> Self {
        let quorum = Quorum::default();
        let (reply, concurrency) = (ReplyPath::Direct, Concurrency::Sequential);
        let style = Style::Active;
        let after = Duration::from_secs(1);
        let checkpoint = CheckpointRule { requests: 3, after, updates: false };
        let comparison = ComparisonRule { requests: 0, expel: false };
        let (replier, durable) = (None, false);
        Self {
            state_object,
            reply,
            replier,
            quorum,
            style,
            checkpoint,
            comparison,
            concurrency,
            durable,
            retention_bytes_max: 64 << 20,
            replay_bytes_max: None,
            reads: None,
        }
    }

    pub fn style(style: Style) -> Self {
        Self { style, ..Self::plain(true) }
    }
}

fn group_config(plan: Plan, nodes: NodeSet) -> GroupConfig {
    GroupConfig {
        members: nodes,
        concurrency: plan.concurrency,
        reads: plan.reads.map_or_else(ReadRule::default, |consistency| ReadRule {
            operations: [Bytes::from_static(b"tell*")].into(),
            consistency,
        }),
        state_object: plan.state_object.then(|| Bytes::from_static(b"log")),
        foreign: false,
        ack: Ack::Majority,
        reply: plan.reply,
        replier: plan.replier.map(id),
        style: plan.style,
        leader: None,
        checkpoint: plan.checkpoint,
        comparison: plan.comparison,
        on_total_loss: TotalLoss::Stop,
        durable: plan.durable,
        logged: false,
        open_after: Duration::from_secs(15),
        server_reply: Duration::from_secs(30),
        retention: Duration::from_secs(60),
        retention_bytes_max: plan.retention_bytes_max,
        replay_bytes_max: plan.replay_bytes_max,
        reply_bytes_max: 1 << 20,
        state_bytes_max: 4 << 20,
        transfer: TransferRule { chunk_bytes: 50, bytes_per_second: None },
        calls: Vec::new(),
        is_called: false,
    }
}

fn id(index: usize) -> NodeId {
    NodeId::new(index as u8).unwrap()
}

impl Cluster {
    pub fn new(count: usize, state_object: bool) -> Self {
        Self::planned(count, Plan::plain(state_object))
    }

    pub fn planned(count: usize, plan: Plan) -> Self {
        let nodes = (0..count)
            .map(|index| Node::new(index, count, 1, plan, Record::default(), Disk::default()));
        Self {
            nodes: nodes.collect(),
            order: VecDeque::new(),
            peers: VecDeque::new(),
            cut: false,
            nobody_holds: false,
            now: Instant::ZERO,
            view: 0,
            plan,
            members: Vec::new(),
        }
    }

    /// As [`Self::whole`], under another rule for the primary component.
    pub fn whole_under(quorum: Quorum) -> Self {
        Self::whole_planned(Plan { quorum, ..Plan::plain(true) })
    }

    /// A cluster of three whose group is whole and takes requests.
    pub fn whole(state_object: bool) -> Self {
        Self::whole_planned(Plan::plain(state_object))
    }

    pub fn whole_planned(plan: Plan) -> Self {
        let mut cluster = Self::planned(3, plan);
        cluster.install(&[0, 1, 2]);
        for index in 0..3 {
            cluster.start_server(index);
        }
        cluster.settle();
        for index in 0..3 {
            assert_eq!(cluster.states(index), ["in", "in", "in"]);
        }
        cluster
    }

    /// Installs a regular view at `members`, which came together from the last one.
    pub fn install(&mut self, members: &[usize]) {
        self.view += 1;
        self.members = members.to_vec();
        let incarnations = |index: &usize| (id(*index), self.nodes[*index].incarnation);
        let view = ReplicaView {
            id: ViewId { seq: self.view, representative: id(members[0]) },
            members: members.iter().map(incarnations).collect(),
        };
        // What the old ring had not delivered is delivered by those who move together.
        while let Some(delivered) = self.order.pop_front() {
            self.deliver_one(&delivered);
        }
        for index in members.iter().copied() {
            self.nodes[index].replica.handle_view(view.clone());
            self.drain(index);
        }
    }

    /// Delivers everything, and lets the servers that are not held answer, until all is quiet.
    pub fn settle(&mut self) {
        loop {
            while let Some(delivered) = self.order.pop_front() {
                self.deliver_one(&delivered);
            }
            let mut quiet = !self.hold();
            while let Some((from, to, bytes)) = self.peers.pop_front() {
                quiet = false;
                self.deliver_peer(from, to, bytes);
            }
            for index in 0..self.nodes.len() {
                quiet &= !self.serve(index);
            }
            if quiet && self.order.is_empty() {
                return;
            }
        }
    }

    pub fn deliver_one(&mut self, delivered: &Delivered) {
        for index in self.members.clone() {
            if self.nodes[index].alive {
                self.nodes[index].replica.handle_delivery(self.now, delivered.clone());
                self.drain(index);
            }
        }
    }

    pub fn deliver_peer(&mut self, from: usize, to: usize, bytes: Bytes) {
        if self.nodes[from].alive && self.nodes[to].alive && !self.cut {
            let incarnation = self.nodes[from].incarnation;
            self.nodes[to].replica.handle_peer_message(self.now, id(from), incarnation, bytes);
            self.drain(to);
        }
    }

    /// Links between all nodes were down, and are there again.
    pub fn relink(&mut self) {
        self.cut = false;
        for at in 0..self.nodes.len() {
            for other in (0..self.nodes.len()).filter(|other| *other != at) {
                let incarnation = self.nodes[other].incarnation;
                let replica = &mut self.nodes[at].replica;
                replica.handle_peer_down(self.now, id(other));
                replica.handle_peer_up(self.now, id(other), incarnation);
                self.drain(at);
            }
        }
    }

    /// One node is cut off, and no view says so yet: it alone is delivered what it orders.
    pub fn only_at(&mut self, index: usize, act: impl FnOnce(&mut Self)) {
        let members = core::mem::replace(&mut self.members, vec![index]);
        act(self);
        self.settle();
        self.members = members;
    }

    pub fn start_server(&mut self, index: usize) {
        self.nodes[index].server = Some(Server::default());
        self.nodes[index].replica.handle_server_up(self.now, GROUP);
        self.drain(index);
    }

    /// The operator at `index` changes the group.
    pub fn command_group(&mut self, index: usize, command: Command) {
        self.nodes[index].replica.handle_command(GROUP, 1, command);
        self.drain(index);
        self.settle();
    }

    pub fn promote(&mut self, index: usize) {
        self.command_group(0, Command::Promote(id(index)));
    }

    pub fn leader(&self, index: usize) -> Option<usize> {
        let leader = self.nodes[index].replica.group_snapshots()[0].leader;
        leader.map(|node| usize::from(node.index()))
    }

    pub fn logged(&self, index: usize) -> usize {
        self.nodes[index].replica.group_snapshots()[0].logged
    }

    pub fn crash_server(&mut self, index: usize) {
        self.nodes[index].server = None;
        self.nodes[index].replica.handle_server_down(self.now, GROUP, DownReason::ServerExited);
        self.drain(index);
    }

    pub fn crash(&mut self, index: usize) {
        self.nodes[index].alive = false;
        self.nodes[index].server = None;
        // What it had submitted and nobody received is lost with it.
        self.order.retain(|delivered| delivered.origin != id(index));
    }

    pub fn restart(&mut self, index: usize) {
        let incarnation = self.nodes[index].incarnation + 1000;
        let count = self.nodes.len();
        let record = self.nodes[index].record.clone();
        let mut disk = self.nodes[index].disk.clone();
        disk.records.truncate(disk.synced - disk.given_up);
        (disk.begin, disk.slow) = (disk.synced, false);
        self.nodes[index] = Node::new(index, count, incarnation, self.plan, record, disk);
    }

    /// What the disk remembers is lost.
    pub fn lose_disk(&mut self, index: usize) {
        self.nodes[index].disk = Disk::default();
    }

    /// The log is long: whether it can be made shorter.
    pub fn shorten_log(&mut self, index: usize) -> bool {
        let is_begun = self.nodes[index].replica.handle_shorten(self.now);
        self.drain(index);
        is_begun
    }

    /// What stands before a record is given up.
    fn shorten(&mut self, index: usize, record: u64) {
        let disk = &mut self.nodes[index].disk;
        let first = disk.begin + record as usize - 1;
        assert!(first < disk.synced, "the record itself is not on disk");
        disk.records.drain(..first - disk.given_up);
        disk.given_up = first;
    }

    /// A slow disk has done what it was told.
    pub fn sync(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.disk.synced = node.disk.given_up + node.disk.records.len();
        node.replica.handle_logged((node.disk.synced - node.disk.begin) as u64);
        self.drain(index);
    }

    pub fn pass(&mut self, duration: Duration) {
        self.now = self.now + duration;
        for index in 0..self.nodes.len() {
            self.nodes[index].replica.handle_timeout(self.now);
            self.drain(index);
        }
    }

    /// A request of the gateway at `index` under a number of its own.
    pub fn request(&mut self, index: usize, number: u64, text: &str) {
        self.submit(index, number, text, None);
    }

    /// A request that its client has named itself, and that is remembered as short as can be.
    pub fn ft_request(&mut self, index: usize, number: u64, text: &str, retention_id: i32) {
        let client_id = Bytes::from_static(b"client");
        let ft = FtRequest { client_id, retention_id, expiration: 0 };
        self.submit(index, number, text, Some(ft));
    }

    /// The gateway at `index` has all replies below `number`.
    pub fn release_below(&mut self, index: usize, number: u64) {
        self.nodes[index].released_below = number;
    }

    /// A call to a stateless group.
    pub fn call(&mut self, index: usize, number: u64, text: &str) {
        let payload = self.payload(index, number, text, None);
        self.nodes[index].replica.handle_call(self.now, payload, false);
        self.drain(index);
    }

    fn submit(&mut self, index: usize, number: u64, text: &str, ft: Option<FtRequest>) {
        let payload = self.payload(index, number, text, ft);
        self.enqueue(index, payload);
    }

    fn payload(&self, index: usize, number: u64, text: &str, ft: Option<FtRequest>) -> Bytes {
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id: 77,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"log",
            operation: b"append",
            contexts: &[],
        };
        let giop = build::request(&head, |cdr| cdr.write_string(text.as_bytes()));
        let request = RequestEnvelope {
            group: GROUP,
            number: RequestNumber(number),
            released: Released::below(RequestNumber(self.nodes[index].released_below)),
            stamp: self.now.as_nanos() / 100,
            ft,
            nested: None,
            code_sets: None,
            giop: giop.bytes().clone(),
        };
        request.into_payload()
    }

    pub fn snapshot(&self, index: usize) -> GroupSnapshot {
        self.nodes[index].replica.group_snapshots().remove(0)
    }

    /// A read of the gateway at `index`.
    pub fn read(&mut self, index: usize, number: u64) {
        self.read_padded(index, number, 0);
    }

    pub fn read_padded(&mut self, index: usize, number: u64, padding: usize) {
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id: 78,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"log",
            operation: b"tell",
            contexts: &[],
        };
        let giop = build::request(&head, |cdr| cdr.write_octets(&vec![0; padding]));
        let (number, giop) = (RequestNumber(number), giop.bytes().clone());
        self.nodes[index].replica.handle_read(self.now, GROUP, number, giop, None);
        self.drain(index);
    }

    /// A majority holds all that the node at `index` has had ordered.
    pub fn hold_marks(&mut self, index: usize) {
        for mark in core::mem::take(&mut self.nodes[index].marks) {
            self.nodes[index].replica.handle_mark_safe(self.now, GROUP, mark);
            self.drain(index);
        }
    }

    fn enqueue_held(&mut self, index: usize, payload: Bytes) {
        self.enqueue(index, payload);
        self.nodes[index].awaits_held = true;
    }

    /// A majority holds what was ordered, unless the scenario says otherwise.
    fn hold(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.nodes.len() {
            if !self.nobody_holds && core::mem::take(&mut self.nodes[index].awaits_held) {
                any = true;
                self.nodes[index].replica.handle_held(self.now, GROUP);
                self.drain(index);
            }
        }
        any
    }

    /// Carries out what the nodes ask for.
    pub fn drain_all(&mut self) {
        (0..self.nodes.len()).for_each(|index| self.drain(index));
    }

    /// The operator at `index` takes a backup.
    pub fn back_up(&mut self, index: usize) -> Result<Backup, BackupRefused> {
        self.nodes[index].replica.handle_backup(GROUP, 1);
        self.drain(index);
        self.settle();
        self.nodes[index].backups.pop().expect("the operator is told")
    }

    /// The operator at `index` gives it back.
    pub fn restore(&mut self, index: usize, backup: Backup) -> Result<(), BackupRefused> {
        self.begin_restore(index, backup);
        self.nodes[index].restored.pop().expect("the operator is told")
    }

    /// The same, and the operator still waits.
    pub fn begin_restore(&mut self, index: usize, backup: Backup) {
        self.nodes[index].replica.handle_restore(GROUP, 1, backup);
        self.drain(index);
        self.settle();
    }

    fn enqueue(&mut self, index: usize, payload: Bytes) {
        let node = &mut self.nodes[index];
        node.ticket += 1;
        self.order.push_back(Delivered {
            origin: id(index),
            incarnation: node.incarnation,
            ticket: node.ticket,
            payload,
            behind_gap: false,
        });
    }

    /// Here nothing has left before it is delivered.
    fn withdraw(&mut self, index: usize, to: GatewayKey) {
        let node = &mut self.nodes[index];
        let of = |(name, _): &&(GatewayKey, u64)| *name == to;
        let (_, ticket) = *node.ordered.iter().rev().find(of).expect("it was given before");
        let before = self.order.len();
        self.order.retain(|d| (d.origin, d.ticket) != (id(index), ticket));
        if self.order.len() < before {
            node.replica.handle_withdrawn(GROUP);
        }
    }

    fn drain(&mut self, index: usize) {
        while let Some(output) = self.nodes[index].replica.poll() {
            match output {
                Output::Order(payload) => self.enqueue(index, payload),
                Output::OrderHeld { payload, .. } => self.enqueue_held(index, payload),
                Output::BackedUp { result, .. } => self.nodes[index].backups.push(result),
                Output::Restored { result, .. } => self.nodes[index].restored.push(result),
                Output::OrderReply { to, payload, .. } => {
                    self.enqueue(index, payload);
                    let ticket = self.nodes[index].ticket;
                    self.nodes[index].ordered.push((to, ticket));
                }
                Output::Withdraw { to, .. } => self.withdraw(index, to),
                Output::Server { command, .. } => self.command(index, command),
                Output::Peer { to, bytes, .. } => {
                    self.peers.push_back((index, usize::from(to.index()), bytes));
                }
                Output::Reply { number, giop, .. } => {
                    let text = giop.map_or_else(String::new, |giop| reply_text(&giop));
                    self.nodes[index].replies.push((number.0, text));
                }
                Output::Mark { number, payload, .. } => {
                    self.nodes[index].marks.push(number);
                    self.enqueue(index, payload);
                }
                Output::Read { number, giop, .. } => {
                    let text = giop.map_or_else(|| "order it".into(), |giop| reply_text(&giop));
                    self.nodes[index].reads.push((number.0, text));
                }
                Output::Dropped { number, .. } => self.nodes[index].dropped.push(number.0),
                Output::Resubmit { .. } => self.nodes[index].resubmits += 1,
                Output::Record(record) => self.nodes[index].record = record,
                Output::Event(event) => self.nodes[index].events.push(event),
                Output::Commanded { result, .. } => self.nodes[index].commanded.push(result),
                Output::Log(record) => {
                    self.nodes[index].disk.records.push(record);
                    if !self.nodes[index].disk.slow {
                        self.sync(index);
                    }
                }
                Output::Save { group, place, parts } => {
                    let node = &mut self.nodes[index];
                    node.disk.states.push((group, parts.concat().into()));
                    node.replica.handle_saved(group, place.record);
                }
                Output::Logged { number, .. } => self.nodes[index].logged.push(number.0),
                Output::Rebuilt => {}
                Output::Shorten { record } => self.shorten(index, record),
                Output::CallOutside { .. } | Output::OrderAgain { .. } => {
                    unreachable!("no group calls to the outside")
                }
                Output::LookUp { group } => {
                    let now = self.now;
                    let node = &mut self.nodes[index];
                    let Disk { records, states, .. } = &node.disk;
                    let (records, states) = (records.clone(), states.clone());
                    let found = Some(Recovered { records, states, ..Recovered::default() });
                    node.replica.handle_looked_up(now, group, found);
                }
            }
        }
    }

    fn command(&mut self, index: usize, command: ServerCommand) {
        let node = &mut self.nodes[index];
        match command {
            ServerCommand::Connect(channel) => {
                let Some(server) = &mut node.server else { return };
                server.channels.push((channel, framer()));
                node.replica.handle_connected(self.now, GROUP, channel);
            }
            ServerCommand::Send(channel, bytes) => {
                let Some(server) = &mut node.server else { return };
                server.waiting.push_back((channel, bytes));
            }
            ServerCommand::Close(channel) => {
                let Some(server) = &mut node.server else { return };
                server.channels.retain(|(id, _)| *id != channel);
            }
            ServerCommand::Restart(reason) => {
                node.restarts.push(reason);
                node.server = None;
            }
            ServerCommand::Start => self.start_server(index),
            ServerCommand::Stop => node.server = None,
        }
    }

    /// One call of the server at `index`.
    pub fn serve_once(&mut self, index: usize) -> bool {
        self.serve(index)
    }

    /// Lets the server at `index` answer its calls. Whether it did anything.
    pub fn serve(&mut self, index: usize) -> bool {
        let now = self.now;
        let Some(server) = self.nodes[index].server.as_mut().filter(|server| !server.held) else {
            return false;
        };
        let Some((channel, bytes)) = server.waiting.pop_front() else { return false };
        let Some((_, framer)) = server.channels.iter_mut().find(|(id, _)| *id == channel) else {
            return true;
        };
        framer.push(&bytes);
        // A long one comes in pieces.
        let Some(message) = framer.next().unwrap() else { return true };
        let Ok(Body::Request(request)) = message.parse() else { panic!("no request") };
        let reply = server.execute(&request);
        self.nodes[index].replica.handle_server_bytes(now, GROUP, channel, &reply);
        self.drain(index);
        true
    }

    /// The transfer of the member at `index`.
    pub fn transfers(&self, index: usize) -> TransferProgress {
        self.nodes[index].replica.group_snapshots()[0].transfers[0]
    }

    /// The states of all members as node `index` knows them.
    pub fn states(&self, index: usize) -> Vec<&'static str> {
        let snapshot = &self.nodes[index].replica.group_snapshots()[0];
        snapshot
            .members
            .iter()
            .map(|(_, state)| match state {
                MemberState::In { .. } => "in",
                MemberState::Joining { .. } => "joining",
                MemberState::Down(_) => "down",
                MemberState::Out { .. } => "out",
            })
            .collect()
    }

    pub fn executed(&self, index: usize) -> Vec<&str> {
        let server = self.nodes[index].server.as_ref().expect("a server");
        server.executed.iter().map(String::as_str).collect()
    }
}

impl Node {
    /// Why members went down, as far as this node was told.
    pub fn downs(&self) -> Vec<DownReason> {
        let down = |event: &Event| match event {
            Event::Member { state: MemberState::Down(reason), .. } => Some(*reason),
            _ => None,
        };
        self.events.iter().filter_map(down).collect()
    }

    fn new(
        index: usize,
        count: usize,
        incarnation: u64,
        plan: Plan,
        record: Record,
        disk: Disk,
    ) -> Self {
        let nodes = NodeSet::first(count);
        let group = group_config(plan, nodes);
        let me = id(index);
        let groups = vec![group];
        let config = ReplicaConfig {
            me,
            incarnation,
            nodes,
            quorum: plan.quorum,
            record: record.clone(),
            groups,
            outside: Vec::new(),
            serves_circles: true,
            in_doubt: false,
            recovered: (!disk.records.is_empty()).then(|| Recovered {
                records: disk.records.clone(),
                states: disk.states.clone(),
                ..Recovered::default()
            }),
        };
        Self {
            replica: Replica::new(config),
            record,
            server: None,
            replies: Vec::new(),
            dropped: Vec::new(),
            ordered: Vec::new(),
            reads: Vec::new(),
            marks: Vec::new(),
            resubmits: 0,
            events: Vec::new(),
            restarts: Vec::new(),
            commanded: Vec::new(),
            backups: Vec::new(),
            restored: Vec::new(),
            awaits_held: false,
            alive: true,
            disk,
            logged: Vec::new(),
            incarnation,
            ticket: 0,
            released_below: 1,
        }
    }
}

fn framer() -> Framer {
    Framer::new(FramerLimits {
        message_bytes_max: 4 << 20,
        fragmented_requests_max: 1,
        buffered_bytes_max: 8 << 20,
    })
}

fn reply_text(giop: &Bytes) -> String {
    let message = quorba_giop::Message::from_bytes(giop.clone()).unwrap();
    let Ok(Body::Reply(reply)) = message.parse() else { panic!("no reply") };
    if let Some(exception) = reply.system_exception() {
        return format!("exception {exception:?}");
    }
    let text = reply.reader().read_string(1 << 20, "text").unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}
