//! The gateway: client connections in, requests to the order, replies out.
//!
//! It answers by itself what needs no server: LocateRequest, heartbeats, malformed messages, and
//! calls that cannot be taken now. Invariants: a request is submitted under one identity however
//! often; a reply is released only when its request is as safe as the group asks (promise 1); no
//! request stays unanswered beyond its time.

mod books;
mod connections;
mod definitions;
mod ends;
mod identity;
mod idle;
mod intake;
mod nested;
mod poison;
mod reads;
mod replies;
mod requests;
mod room;
mod unanswered;
mod waits;

use self::books::Books;
pub use self::books::SHARED_PORT;
pub(crate) use self::reads::Read;
pub(crate) use self::waits::Wait;
use crate::access::Access;
use crate::answers;
use crate::book::Book;
use crate::config::{GatewayLimits, GroupSettings, References};
use crate::connection::Connection;
use crate::fair::{Fair, Source};
use crate::limits::Peers;
use crate::output::{CloseReason, ConnectionId, Output};
use crate::pending::Waiter;
use crate::snapshot::{GatewayCounters, GatewaySnapshot};
use crate::window::{Entered, Window};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::{Body, FrameError, Message, PassedOver};
use quorba_order::Ticket;
use quorba_replica::{Ack, Concurrency, GroupId, ReadRule, RequestNumber, Style};

/// How often unfinished messages are looked at.
const SCAN: Duration = Duration::from_secs(1);

/// How long what an ORB asks a server outside by itself waits for a primary component.
const OUTSIDE_WAIT: Duration = Duration::from_secs(3);

/// Calls that servers with threads may have side by side: as many as a member sends to one.
const SIDE_BY_SIDE: u32 = 64;

/// Something that the gateway wants to have ordered.
pub(crate) struct Submission {
    pub(crate) group: GroupId,
    pub(crate) number: RequestNumber,
    pub(crate) payload: Bytes,
}

/// What the caller of something that was ordered waits for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Awaits {
    /// That all nodes have it.
    pub(crate) all_nodes: bool,
    /// That so many members have executed it.
    pub(crate) executed_by: Option<u32>,
}

/// What the gateway has to know of a group, or of a server outside.
pub(crate) struct Rules {
    /// It is no group, but a server outside of the domain.
    pub(crate) is_outside: bool,
    pub(crate) ack: Ack,
    /// How many members must have a call whose client does not say so; 0: as `ack` says.
    pub(crate) depth: u32,
    pub(crate) durable: bool,
    pub(crate) reads: ReadRule,
    pub(crate) access: Access,
    pub(crate) unavailable_wait: Duration,
    /// Calls that its servers may execute side by side.
    pub(crate) side_by_side: u32,
    /// How long replies are remembered at least.
    pub(crate) retention: Duration,
    pub(crate) references: Option<Arc<dyn References>>,
    /// How often these have become others.
    pub(crate) references_counted: u32,
}

pub(crate) struct GroupBook {
    pub(crate) rules: Rules,
    pub(crate) book: Book,
    pub(crate) counters: GatewayCounters,
    /// Requests that wait for a primary component, a member, their turn, or room in the order.
    pub(crate) parked: Fair,
    /// How many of them may be in the order, and how many are.
    pub(crate) window: Window,
    /// Bytes of its requests that are held for clients.
    pub(crate) held: usize,
    /// Reads that wait for the first three.
    pub(crate) reads: Fair,
    /// How many reads may be with members, and how many are.
    pub(crate) read_window: Window,
    /// Those of them that nobody waits for any more.
    pub(crate) given_up: BTreeMap<RequestNumber, (Source, Entered)>,
    /// Calls of local servers that wait for the same.
    pub(crate) calls: VecDeque<RequestNumber>,
}

impl Rules {
    /// Nobody but local servers calls there, and what they call under a name waits as long as it
    /// takes.
    fn outside() -> Self {
        Self {
            is_outside: true,
            ack: Ack::Majority,
            depth: 0,
            durable: false,
            reads: ReadRule::default(),
            access: Access::open(),
            unavailable_wait: OUTSIDE_WAIT,
            side_by_side: SIDE_BY_SIDE,
            retention: Duration::ZERO,
            references: None,
            references_counted: 0,
        }
    }

    fn of(settings: GroupSettings, references_counted: u32) -> Self {
        let GroupSettings { replica, depth, unavailable_wait, access, references, .. } = settings;
        let side_by_side = match (replica.style, replica.concurrency) {
            (Style::Stateless, _) | (_, Concurrency::PerObject) => SIDE_BY_SIDE,
            (_, Concurrency::Sequential | Concurrency::Pipelined) => 1,
        };
        Self {
            is_outside: false,
            ack: replica.ack,
            depth,
            durable: replica.durable,
            reads: replica.reads,
            access,
            unavailable_wait,
            side_by_side,
            retention: replica.retention,
            references,
            references_counted,
        }
    }

    /// The version of the group's references as they are now.
    pub(crate) fn reference_version(&self) -> u32 {
        let counted = self.references_counted;
        self.references.as_ref().map_or(counted, |references| references.version(counted))
    }
}

impl GroupBook {
    fn new(rules: Rules) -> Self {
        Self {
            window: Window::new(rules.side_by_side),
            read_window: Window::new(rules.side_by_side),
            rules,
            book: Book::default(),
            counters: GatewayCounters::default(),
            held: 0,
            parked: Fair::default(),
            reads: Fair::default(),
            given_up: BTreeMap::new(),
            calls: VecDeque::new(),
        }
    }
}

/// See the module's text.
pub(crate) struct Gateway {
    limits: GatewayLimits,
    /// What the order carries.
    payload_bytes_max: usize,
    wall_clock_origin: u64,
    connections: BTreeMap<ConnectionId, Connection>,
    peers: Peers,
    /// Of groups, and of servers outside.
    pub(crate) groups: Books,
    /// The ids of groups, for clients of the port that they share.
    names: BTreeMap<Arc<str>, GroupId>,
    /// The keys of objects by which clients begin, and whose they are.
    initial: Vec<(Bytes, GroupId)>,
    /// Which group submits next, and how much it has submitted in its turn.
    turn: GroupId,
    in_turn: usize,
    /// Messages whose safety is awaited, oldest first.
    awaiting_held: VecDeque<(Ticket, GroupId, RequestNumber)>,
    awaiting_stable: VecDeque<(Ticket, GroupId, RequestNumber)>,
    /// The last message that a majority holds, and the last one that every node of its
    /// configuration holds; a configuration may be less than a majority.
    held: Option<Ticket>,
    stable: Option<Ticket>,
    marks: reads::Marks,
    poison: poison::Poison,
    servers: nested::Servers,
    deadlines: BTreeSet<(Instant, GroupId, RequestNumber)>,
    /// Calls that are held until then.
    waiting: BTreeSet<(Instant, GroupId, RequestNumber)>,
    pending: usize,
    buffered_bytes: usize,
    next_scan: Instant,
    stopping: bool,
    /// Connections that are not read now.
    paused: BTreeSet<ConnectionId>,
    /// Of these, the one that was read on last.
    resumed_last: ConnectionId,
    /// Replies are kept at members that nobody told them to forget.
    has_unreleased: bool,
    /// When requests that wait for a slow member are looked at again.
    look_again: Option<Instant>,
    /// When what happens now happens.
    now: Instant,
    pub(crate) out: VecDeque<Output>,
}

impl Gateway {
    pub(crate) fn new(
        limits: GatewayLimits,
        payload_bytes_max: usize,
        wall_clock_origin: u64,
    ) -> Self {
        Self {
            limits,
            payload_bytes_max,
            wall_clock_origin,
            connections: BTreeMap::new(),
            peers: Peers::new(limits),
            turn: GroupId(0),
            groups: Books::new(GroupBook::new(Rules::outside())),
            names: BTreeMap::new(),
            initial: Vec::new(),
            in_turn: 0,
            awaiting_held: VecDeque::new(),
            awaiting_stable: VecDeque::new(),
            held: None,
            stable: None,
            marks: reads::Marks::default(),
            poison: poison::Poison::default(),
            servers: nested::Servers::default(),
            deadlines: BTreeSet::new(),
            waiting: BTreeSet::new(),
            pending: 0,
            buffered_bytes: 0,
            next_scan: Instant::FAR_FUTURE,
            stopping: false,
            paused: BTreeSet::new(),
            resumed_last: ConnectionId(0),
            has_unreleased: false,
            look_again: None,
            now: Instant::ZERO,
            out: VecDeque::new(),
        }
    }

    /// What follows happens at `now`.
    pub(crate) fn at(&mut self, now: Instant) {
        self.now = now;
    }

    fn group(&mut self, group: GroupId) -> &mut GroupBook {
        &mut self.groups[group]
    }

    pub(crate) fn snapshot(&self) -> GatewaySnapshot {
        self.snapshot_of(self.groups.iter().map(|(id, _)| id))
    }

    /// Of these groups only.
    pub(crate) fn snapshot_of(&self, groups: impl Iterator<Item = GroupId>) -> GatewaySnapshot {
        let known = groups.filter_map(|id| Some((id, self.groups.get(id)?)));
        let groups = known.filter(|(_, group)| !group.rules.is_outside);
        let mut clients: BTreeMap<GroupId, usize> = BTreeMap::new();
        for connection in self.connections.values().filter(|c| c.caller.is_none()) {
            *clients.entry(connection.group).or_default() += 1;
        }
        let groups = groups.map(|(id, group)| {
            let connections = clients.get(&id).copied().unwrap_or_default();
            let (pending, reference_version) = (group.book.len(), group.rules.reference_version());
            (id, GatewayCounters { connections, pending, reference_version, ..group.counters })
        });
        GatewaySnapshot {
            groups: groups.collect(),
            shared: GatewayCounters {
                connections: clients.get(&SHARED_PORT).copied().unwrap_or_default(),
                ..self.groups.shared().counters
            },
            connections: self.connections.len(),
            buffered_bytes: self.buffered_bytes,
            held_bytes: self.peers.held(),
            most_refused: self.peers.most_refused(),
        }
    }

    pub(crate) fn connection_count(&self) -> usize {
        self.connections.len() - self.servers.connections
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending - self.servers.pending
    }

    pub(crate) fn received(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.now = now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.heard(now, bytes.len());
        let before = connection.framer.buffered_bytes();
        connection.framer.push(bytes);
        self.buffered_bytes += connection.framer.buffered_bytes() - before;
        self.read_on(now, id);
    }

    /// Takes messages out of a connection's framer as far as its limits allow.
    fn read_on(&mut self, now: Instant, id: ConnectionId) {
        let mut completed = false;
        let waits = loop {
            if self.must_wait(now, id) {
                break true;
            }
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let before = connection.framer.buffered_bytes();
            let next = connection.framer.next();
            self.buffered_bytes -= before - connection.framer.buffered_bytes();
            match next {
                Ok(None) => break false,
                Ok(Some(message)) => {
                    completed = true;
                    self.message(now, id, &message);
                }
                Err(FrameError::TooLarge { .. }) if !connection.turned_away => {
                    match self.pass_over(id) {
                        PassedOver::NotYet => break false,
                        PassedOver::Request { .. } => completed = true,
                        PassedOver::Unreadable => {
                            return self.malformed(id, CloseReason::TooLarge);
                        }
                    }
                }
                Err(error) => {
                    let reason = if error.is_too_large() {
                        CloseReason::TooLarge
                    } else {
                        CloseReason::Malformed
                    };
                    self.malformed(id, reason);
                    return;
                }
            }
        };
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.note_partial(now, completed);
            if connection.has_partial() {
                self.next_scan = self.next_scan.min(now + SCAN);
            }
        }
        self.count_unread(id);
        let waits = waits || self.must_wait(now, id);
        self.set_paused(id, waits);
        self.shed();
    }

    fn malformed(&mut self, id: ConnectionId, reason: CloseReason) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (group, version) = (connection.group, connection.version);
        self.group(group).counters.malformed += 1;
        let bytes = answers::message_error(version);
        self.out.push_back(Output::ClientSend { connection: id, bytes });
        self.close(id, reason);
    }

    fn message(&mut self, now: Instant, id: ConnectionId, message: &Message) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.version = message.version();
            connection.endian = message.endian();
            if connection.turned_away {
                return self.turn_away(now, id, message);
            }
        }
        match message.parse() {
            Ok(Body::Request(request)) => self.request(now, id, message, &request),
            Ok(Body::LocateRequest(request)) => {
                let object_key = request.target().object_key();
                self.charge_rate(now, id);
                self.locate(id, message, request.request_id(), object_key);
            }
            Ok(Body::CancelRequest { request_id }) => self.cancel(id, request_id),
            Ok(Body::CloseConnection) => self.close(id, CloseReason::ByClient),
            // A MessageError must not be answered by another one.
            Ok(Body::MessageError) => self.close(id, CloseReason::Malformed),
            Ok(_) => self.malformed(id, CloseReason::Malformed),
            Err(_) => match message.unaddressed() {
                Some(asked) => self.unaddressed(now, id, message, asked),
                None => self.malformed(id, CloseReason::Malformed),
            },
        }
    }

    /// The client does not want the reply any more; the call itself may run already.
    fn cancel(&mut self, id: ConnectionId, request_id: u32) {
        self.charge_answer(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Some((group, number)) = connection.pending.remove(&request_id)
            && let Some(pending) = self.group(group).book.get_mut(number)
        {
            pending.waiter = Waiter::Gone;
            self.cancel_held(group, number);
        }
    }
}

#[cfg(test)]
mod holdings;
#[cfg(test)]
mod tests;
