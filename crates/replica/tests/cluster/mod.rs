//! A few replicas around one perfect order, with servers that count: the stage for scenarios.
//!
//! The order is a queue that the scenario delivers from, and views are what it says they are;
//! what the ring makes of real networks is tested elsewhere.

#![allow(unreachable_pub, dead_code, reason = "shared by the test files of this folder")]

mod clients;
mod effects;
mod node;
mod plan;
mod server;

use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId};
use quorba_replica::{
    Command, Delivered, DownReason, GroupId, GroupSnapshot, MemberState, Quorum, Record,
    ReplicaView, RequestEnd, RingId, TransferProgress,
};
use std::collections::VecDeque;

pub use node::{Disk, Node};
pub use plan::Plan;
pub use server::Server;

pub const GROUP: GroupId = GroupId(5);

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
    pub plan: Plan,
    members: Vec<usize>,
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

    /// A durable group that has executed "a", and whose servers are all held at "poison".
    pub fn held_at_poison() -> Self {
        let mut cluster = Self::whole_planned(Plan { durable: true, ..Plan::plain(true) });
        cluster.request(0, 1, "a");
        cluster.settle();
        (0..3).for_each(|index| cluster.server(index).held = true);
        cluster.request(0, 2, "poison");
        cluster.settle();
        cluster
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
            id: RingId { seq: self.view, representative: id(members[0]) },
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
        let mut server = Server::default();
        server.odd = std::mem::take(&mut self.nodes[index].next_odd);
        self.nodes[index].server = Some(server);
        self.nodes[index].replica.handle_server_up(self.now, GROUP);
        self.drain(index);
    }

    /// A view of these nodes, whose servers come up then.
    pub fn start(&mut self, nodes: &[usize]) {
        self.install(nodes);
        self.settle();
        nodes.iter().for_each(|index| self.start_server(*index));
        self.settle();
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
        let leader = self.nodes[index].replica.group_snapshots()[GROUP].leader;
        leader.map(|node| usize::from(node.index()))
    }

    pub fn logged(&self, index: usize) -> usize {
        self.nodes[index].replica.group_snapshots()[GROUP].logged
    }

    /// The server of a node, which has one.
    pub fn server(&mut self, index: usize) -> &mut Server {
        self.nodes[index].server.as_mut().expect("a server")
    }

    /// Every server ends the connection at this text.
    pub fn make_odd(&mut self, text: &str) {
        let servers = self.nodes.iter_mut().filter_map(|node| node.server.as_mut());
        servers.for_each(|server| server.odd.push(text.into()));
    }

    /// No server ever answers it.
    pub fn make_silent(&mut self, text: &str) {
        let servers = self.nodes.iter_mut().filter_map(|node| node.server.as_mut());
        servers.for_each(|server| server.silent.push(text.into()));
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
        disk.unsynced.clear();
        self.nodes[index] = Node::new(index, count, incarnation, self.plan, record, disk);
    }

    /// What the disk remembers is lost.
    pub fn lose_disk(&mut self, index: usize) {
        self.nodes[index].disk = Disk::default();
    }

    /// The log is long: whether it can be made shorter.
    pub fn compact_log(&mut self, index: usize) -> bool {
        let is_begun = self.nodes[index].replica.handle_compact(self.now);
        self.drain(index);
        is_begun
    }

    /// What stands before a record is given up.
    fn compact(&mut self, index: usize, record: u64) {
        let disk = &mut self.nodes[index].disk;
        let first = disk.begin + record as usize - 1;
        assert!(first < disk.synced, "the record itself is not on disk");
        disk.records.drain(..first - disk.given_up);
        disk.given_up = first;
    }

    /// A look at the disk is over, the first that was begun.
    pub fn look(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let (look, found) = node.looks.pop_front().expect("a look was begun");
        node.replica.handle_looked_up(self.now, look, Some(found));
        self.drain(index);
    }

    /// A state is on disk, the first that was begun.
    pub fn save(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let (group, record, state) = node.saves.pop_front().expect("a state is being written");
        node.disk.states.push((group, state));
        node.replica.handle_saved(group, record);
        self.drain(index);
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

    pub fn snapshot(&self, index: usize) -> GroupSnapshot {
        self.nodes[index].replica.group_snapshots().remove(GROUP).expect("there")
    }

    /// The transfer of the member at `index`.
    pub fn transfers(&self, index: usize) -> TransferProgress {
        self.nodes[index].replica.group_snapshots()[GROUP].transfers[0]
    }

    /// The states of all members as node `index` knows them.
    pub fn states(&self, index: usize) -> Vec<&'static str> {
        let snapshot = &self.nodes[index].replica.group_snapshots()[GROUP];
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

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Lets time pass in small steps, with all that comes of it.
pub fn pass(c: &mut Cluster, duration: Duration) {
    let until = c.now + duration;
    while c.now < until {
        c.pass(Duration::from_millis(50));
        c.settle();
    }
}

/// All members are in, none was restarted, and all have executed this.
pub fn are_well(c: &Cluster, executed: &[&str]) {
    for index in 0..3 {
        assert_eq!(c.states(index), ["in", "in", "in"]);
        assert_eq!(c.executed(index), executed, "member {index}");
        assert!(c.nodes[index].restarts.is_empty(), "member {index}");
    }
}

/// How requests have ended that have no reply, by their numbers.
pub fn ends(c: &Cluster, index: usize) -> Vec<(u64, RequestEnd)> {
    let ended = c.snapshot(index).endings.ended;
    ended.into_iter().map(|(number, end, _)| (number, end)).collect()
}
