//! A node's part in the CPG group of its domain: CPG's events in, the order's outputs out.
//!
//! After every change of the membership each process says hello. When the hello of every process
//! in the group has been delivered, the view begins; CPG delivers hellos in one order, so it
//! begins at the same place for all who came the same way. Between the change and the view the
//! old configuration is transitional: messages of its members are still delivered, and nothing
//! new is submitted.
//!
//! What it differs in from [`quorba_order::Ring`], because CPG does not tell it:
//! - CPG delivers the last messages of an old ring before it announces the change; whether all
//!   members of the old view got them is known only from acknowledgements, which make `Held`.
//! - A process that hangs without ending holds up the next view until it goes on or ends.
//!
//! Invariants: at most [`WINDOW`] messages of this node are in CPG; outputs take effect in the
//! order of [`Group::poll`]; a view id is never used twice, because the member that mints it
//! counts up over its boots.

use bytes::Bytes;
use quorba_base::{NodeId, NodeSet};
use quorba_order::{
    Delivery, GatherReason, LeaveReason, Output as Ordered, Position, RefusedReason, RingId,
    Ticket, View, ViewKind,
};
use std::collections::{BTreeMap, VecDeque};

use crate::promise::Promises;
use crate::wire::{Hello, Message};

/// Own messages that CPG may have and has not delivered here yet.
const WINDOW: usize = 256;
/// Numbers of views that are written ahead, so that writing is rare.
const SEQ_BLOCK: u64 = 1024;

/// A process of the group, as CPG names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Corosync's node id.
    pub host: u32,
    /// Process id on that host.
    pub pid: u32,
}

/// Why a process is no longer in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It left.
    Left,
    /// It ended without leaving.
    Ended,
    /// Its host is not reached any more.
    Host,
}

/// A change of the group's membership, as CPG announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Everyone in the group from here on.
    pub members: Vec<Process>,
    /// Who left it, and how.
    pub gone: Vec<(Process, Gone)>,
}

/// What a [`Group`] is told at its start.
#[derive(Clone, Copy, Debug)]
pub struct GroupConfig {
    /// This node.
    pub me: NodeId,
    /// All nodes of the domain.
    pub nodes: NodeSet,
    /// Larger than at any earlier boot of this node.
    pub incarnation: u64,
    /// Of the domain file; a node with another one is refused.
    pub digest: u64,
    /// The highest number that [`Ordered::Persist`] ever gave to this node; 0 if none.
    pub seq_min: u64,
}

/// One thing for the driver to do or to know.
#[derive(Clone, Debug)]
pub enum Output {
    /// Multicast to the group, agreed, in this order.
    Multicast(Bytes),
    /// The order goes on.
    Ordered(Ordered),
}

/// Where the group stands.
enum State {
    /// The membership is changing; `hellos` are those said since the last change.
    Gathering { hellos: BTreeMap<Process, Option<Hello>>, reason: Reason },
    /// In the view.
    Regular,
}

/// Why the membership changed, as far as CPG says; processes become nodes when the view begins.
enum Reason {
    Boot,
    Joined,
    Gone(Process, Gone),
}

/// The last view that this node was in.
struct LastView {
    ring: RingId,
    /// Its members' processes, with their nodes and boots.
    members: BTreeMap<Process, (NodeId, u64)>,
    /// Those of them that have been in every membership since: they move together.
    together: BTreeMap<Process, (NodeId, u64)>,
}

/// See the module's text.
pub struct Group {
    config: GroupConfig,
    state: State,
    processes: Vec<Process>,
    gone: Vec<(Process, Gone)>,
    last: Option<LastView>,
    /// The number of my last hello.
    seq: u64,
    persisted: u64,
    /// Messages that wait for the window or for the view.
    queue: VecDeque<(Ticket, Bytes)>,
    in_flight: usize,
    /// Messages delivered since the view began.
    place: u64,
    /// What was received of the others in this view, and whether that is news to them.
    received: BTreeMap<NodeId, Ticket>,
    owes_ack: bool,
    promises: Promises,
    out: VecDeque<Output>,
}

impl Group {
    /// A node that has not been told of any membership yet.
    #[must_use]
    pub fn new(config: GroupConfig) -> Self {
        Self {
            config,
            state: State::Gathering { hellos: BTreeMap::new(), reason: Reason::Boot },
            processes: Vec::new(),
            gone: Vec::new(),
            last: None,
            seq: config.seq_min,
            persisted: config.seq_min,
            queue: VecDeque::new(),
            in_flight: 0,
            place: 0,
            received: BTreeMap::new(),
            owes_ack: false,
            promises: Promises::default(),
            out: VecDeque::new(),
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Takes a message of this node. Tickets count up by one.
    pub fn submit(&mut self, ticket: Ticket, payload: Bytes) {
        self.queue.push_back((ticket, payload));
        self.send();
    }

    /// CPG announced another membership.
    pub fn handle_change(&mut self, change: Change) {
        let reason = match (&self.state, change.gone.first()) {
            (State::Gathering { reason: Reason::Boot, .. }, _) => Reason::Boot,
            (_, Some(&(process, how))) => Reason::Gone(process, how),
            (_, None) => Reason::Joined,
        };
        if matches!(self.state, State::Regular) {
            self.begin_transition(&reason, &change.members);
        }
        if let Some(last) = &mut self.last {
            last.together.retain(|process, _| change.members.contains(process));
        }
        self.processes = change.members;
        self.gone.extend(change.gone);
        self.state = State::Gathering { hellos: BTreeMap::new(), reason };
        self.say_hello();
    }

    /// CPG delivered a message of `from`.
    pub fn handle_message(&mut self, from: Process, message: Bytes) {
        match Message::parse(message) {
            Some(Message::Hello(hello)) => self.hello(from, Some(hello)),
            Some(Message::Payload { ticket, payload }) => self.payload(from, ticket, payload),
            Some(Message::Ack { ring, received }) => self.ack(from, ring, &received),
            // Another version of this program, or none at all: it has no part in the view.
            None => self.hello(from, None),
        }
    }

    /// Everything that CPG had to say for now has been handled: acknowledges it, all at once.
    pub fn flush(&mut self) {
        let (State::Regular, true, Some(last)) = (&self.state, self.owes_ack, &self.last) else {
            return;
        };
        self.owes_ack = false;
        let received = self.received.iter().map(|(node, ticket)| (*node, *ticket)).collect();
        let ack = Message::Ack { ring: last.ring, received };
        self.out.push_back(Output::Multicast(ack.encode()));
    }

    /// Messages that wait here.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    fn begin_transition(&mut self, reason: &Reason, members: &[Process]) {
        let Some(last) = &self.last else { return };
        let mut view = View {
            kind: ViewKind::Transitional,
            ring: last.ring,
            members: NodeSet::EMPTY,
            previous: Some(last.ring),
            transitional: NodeSet::EMPTY,
            left: Vec::new(),
            joined: NodeSet::EMPTY,
            reason: self.gather_reason(reason, NodeSet::EMPTY),
            incarnations: Vec::new(),
            unheld: None,
        };
        for process in members {
            if let Some((node, incarnation)) = last.members.get(process) {
                view.members.insert(*node);
                view.incarnations.push((*node, *incarnation));
            }
        }
        view.incarnations.sort_unstable();
        view.transitional = view.members;
        self.owes_ack = false;
        self.out.push_back(Output::Ordered(Ordered::View(view)));
    }

    fn say_hello(&mut self) {
        self.seq = self.seq.saturating_add(1);
        if self.seq > self.persisted {
            self.persisted = self.seq.saturating_add(SEQ_BLOCK);
            let ring_seq = self.persisted;
            self.out.push_back(Output::Ordered(Ordered::Persist { ring_seq }));
        }
        let GroupConfig { me: node, incarnation, digest, .. } = self.config;
        let previous = self.last.as_ref().map(|last| last.ring);
        let hello = Hello { node, incarnation, digest, seq: self.seq, previous };
        self.out.push_back(Output::Multicast(Message::Hello(hello).encode()));
    }

    fn hello(&mut self, from: Process, hello: Option<Hello>) {
        // From here on this node's numbers are higher: views that follow each other count up.
        if let Some(hello) = hello.filter(|hello| hello.digest == self.config.digest) {
            self.seq = self.seq.max(hello.seq);
        }
        let State::Gathering { hellos, .. } = &mut self.state else { return };
        if !self.processes.contains(&from) {
            return;
        }
        hellos.insert(from, hello);
        if self.processes.iter().all(|process| hellos.contains_key(process)) {
            self.begin_view();
        }
    }

    /// All have said hello.
    fn begin_view(&mut self) {
        let State::Gathering { hellos, reason } =
            std::mem::replace(&mut self.state, State::Regular)
        else {
            return;
        };
        let mut members: BTreeMap<NodeId, (Process, Hello)> = BTreeMap::new();
        for (process, hello) in hellos {
            let Some(hello) = hello else { continue };
            let refused = if !self.config.nodes.contains(hello.node) {
                Some((hello.node, RefusedReason::UnknownNode))
            } else if hello.digest != self.config.digest {
                Some((hello.node, RefusedReason::Digest))
            } else {
                // Of two processes of one node the later boot counts.
                let known = members.get(&hello.node).map(|(_, known)| known.incarnation);
                if known.is_none_or(|known| known < hello.incarnation) {
                    members.insert(hello.node, (process, hello));
                }
                known.map(|_| (hello.node, RefusedReason::Incarnation))
            };
            if let Some((node, reason)) = refused {
                self.out.push_back(Output::Ordered(Ordered::Refused { node, reason }));
            }
        }
        let is_me = |(_, hello): &(Process, Hello)| hello.incarnation == self.config.incarnation;
        if !members.get(&self.config.me).is_some_and(is_me) {
            // A later boot of this node is in the group: it is the member, and this one is not.
            self.state = State::Gathering { hellos: BTreeMap::new(), reason };
            return;
        }
        let view = self.view(&members, &reason);
        self.place = 0;
        self.received.clear();
        self.owes_ack = false;
        self.gone.clear();
        let processes: BTreeMap<_, _> = members
            .iter()
            .map(|(node, (process, hello))| (*process, (*node, hello.incarnation)))
            .collect();
        self.last =
            Some(LastView { ring: view.ring, together: processes.clone(), members: processes });
        self.out.push_back(Output::Ordered(Ordered::View(view)));
        self.send();
    }

    fn view(&mut self, members: &BTreeMap<NodeId, (Process, Hello)>, reason: &Reason) -> View {
        let set = members.keys().fold(NodeSet::EMPTY, |set, node| set.with(*node));
        let incarnations: Vec<_> =
            members.iter().map(|(node, (_, hello))| (*node, hello.incarnation)).collect();
        // Whoever said the highest number mints the id: nobody says a number twice.
        let ring = members
            .iter()
            .map(|(node, (_, hello))| RingId { seq: hello.seq, representative: *node })
            .max()
            .expect("this node is a member");
        let previous = self.last.as_ref().map(|last| last.ring);
        let came_along = |(node, (process, hello)): (&NodeId, &(Process, Hello))| {
            let last = self.last.as_ref()?;
            let is_together = last.together.contains_key(process);
            (is_together && hello.previous == Some(last.ring)).then_some(*node)
        };
        let along = members.iter().filter_map(came_along);
        let transitional = along.fold(NodeSet::EMPTY, NodeSet::with).with(self.config.me);
        let old: BTreeMap<NodeId, (Process, u64)> = self
            .last
            .iter()
            .flat_map(|last| &last.members)
            .map(|(process, (node, boot))| (*node, (*process, *boot)))
            .collect();
        let is_old =
            |(node, boot): &&(NodeId, u64)| old.get(node).map(|(_, old)| old) == Some(boot);
        let stayed = incarnations
            .iter()
            .filter(is_old)
            .fold(NodeSet::EMPTY, |set, (node, _)| set.with(*node));
        let left = old
            .iter()
            .filter(|(node, _)| !transitional.contains(**node))
            .map(|(node, (process, boot))| (*node, self.left(*process, *boot, members.get(node))))
            .collect();
        let joined = set.difference(stayed);
        View {
            kind: ViewKind::Regular,
            ring,
            members: set,
            previous,
            transitional,
            left,
            joined,
            reason: self.gather_reason(reason, joined),
            incarnations,
            unheld: self.promises.begin_view(set.len()),
        }
    }

    fn left(&self, process: Process, boot: u64, now: Option<&(Process, Hello)>) -> LeaveReason {
        let how = self.gone.iter().rev().find(|(gone, _)| *gone == process);
        match (now, how) {
            (Some((_, hello)), _) if hello.incarnation != boot => LeaveReason::Restarted,
            (Some(_), _) | (None, None) => LeaveReason::Parted,
            (None, Some((_, Gone::Left))) => LeaveReason::Departed,
            (None, Some((_, Gone::Ended))) => LeaveReason::ProcessLost,
            (None, Some((_, Gone::Host))) => LeaveReason::Silent,
        }
    }

    /// `joined` as far as known: who joins tells its name later.
    fn gather_reason(&self, reason: &Reason, joined: NodeSet) -> GatherReason {
        let node_of = |process| self.last.as_ref()?.members.get(process).map(|(node, _)| *node);
        match reason {
            Reason::Boot => GatherReason::Boot,
            Reason::Joined => GatherReason::Join(joined.lowest().unwrap_or(self.config.me)),
            Reason::Gone(process, how) => match (node_of(process), how) {
                (Some(node), Gone::Left) => GatherReason::Departed(node),
                (Some(node), Gone::Ended) => GatherReason::PeerLost(node),
                (_, _) => GatherReason::TokenLoss,
            },
        }
    }

    fn payload(&mut self, from: Process, ticket: Ticket, payload: Bytes) {
        let Some(last) = &self.last else { return };
        // Between two views, those of the old one are heard that are still with us.
        let Some(&(origin, incarnation)) = last.together.get(&from) else { return };
        let me = self.config.me;
        let is_regular = matches!(self.state, State::Regular);
        self.place += 1;
        let position = Position { ring: last.ring, seq: self.place };
        // Corosync does not tell whether something is missing before a message of the old ring.
        let behind_gap = !is_regular;
        let delivery = Delivery { position, origin, incarnation, ticket, payload, behind_gap };
        self.out.push_back(Output::Ordered(Ordered::Deliver(delivery)));
        match (origin == me, is_regular) {
            (true, true) => self.promises.delivered(me, ticket),
            (true, false) => self.promises.delivered_between(ticket),
            (false, true) => {
                self.received.insert(origin, ticket);
                self.owes_ack = true;
            }
            (false, false) => {}
        }
        if origin == me {
            self.in_flight = self.in_flight.saturating_sub(1);
            self.settle();
            self.send();
        }
    }

    fn ack(&mut self, from: Process, ring: RingId, received: &[(NodeId, Ticket)]) {
        let (State::Regular, Some(last)) = (&self.state, &self.last) else { return };
        let Some(&(by, _)) = last.members.get(&from).filter(|_| last.ring == ring) else { return };
        for (node, ticket) in received {
            if *node == self.config.me && by != self.config.me {
                self.promises.acknowledged(by, *ticket);
            }
        }
        self.settle();
    }

    /// Says what has become known to be held and to be stable.
    fn settle(&mut self) {
        let majority = self.config.nodes.len() / 2 + 1;
        if let Some(ticket) = self.promises.take_held(majority) {
            self.out.push_back(Output::Ordered(Ordered::Held(ticket)));
        }
        if let Some(ticket) = self.promises.take_stable() {
            self.out.push_back(Output::Ordered(Ordered::Stable(ticket)));
        }
    }

    fn send(&mut self) {
        while matches!(self.state, State::Regular) && self.in_flight < WINDOW {
            let Some((ticket, payload)) = self.queue.pop_front() else { return };
            self.in_flight += 1;
            let message = Message::Payload { ticket, payload };
            self.out.push_back(Output::Multicast(message.encode()));
        }
    }
}
