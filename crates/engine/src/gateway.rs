//! The gateway: client connections in, requests to the order, replies out.
//!
//! It answers by itself what needs no server: LocateRequest, heartbeats, malformed messages, and
//! calls that cannot be taken now. Invariants: a request is submitted under one identity however
//! often; a reply is released only when its request is as safe as the group asks (promise 1); no
//! request stays unanswered beyond its time.

mod identity;
mod idle;
mod intake;
mod nested;
mod reads;
mod replies;
mod requests;
mod unanswered;

pub(crate) use self::reads::Read;
use crate::access::{Access, ClientPeer};
use crate::answers;
use crate::config::{GatewayLimits, GroupSettings};
use crate::connection::Connection;
use crate::limits::Peers;
use crate::output::{CloseReason, ConnectionId, Output};
use crate::pending::Book;
use crate::snapshot::{GatewayCounters, GatewaySnapshot};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::{Body, Message};
use quorba_order::Ticket;
use quorba_replica::{Ack, GroupId, ReadRule, RequestNumber};

/// How often unfinished messages are looked at.
const SCAN: Duration = Duration::from_secs(1);

/// How long what an ORB asks a server outside by itself waits for a primary component.
const OUTSIDE_WAIT: Duration = Duration::from_secs(3);

/// Something that the gateway wants to have ordered.
pub(crate) struct Submission {
    pub(crate) group: GroupId,
    pub(crate) number: RequestNumber,
    pub(crate) payload: Bytes,
}

/// What the gateway has to know of a group, or of a server outside.
pub(crate) struct Rules {
    pub(crate) ack: Ack,
    pub(crate) durable: bool,
    pub(crate) reads: ReadRule,
    pub(crate) access: Access,
    pub(crate) unavailable_wait: Duration,
}

pub(crate) struct GroupBook {
    pub(crate) rules: Rules,
    pub(crate) book: Book,
    pub(crate) counters: GatewayCounters,
    /// Requests that wait for a primary component, a member, or room in the order.
    pub(crate) parked: VecDeque<RequestNumber>,
    /// Reads that wait for the first two.
    pub(crate) reads: VecDeque<RequestNumber>,
    /// Calls of local servers that wait for the same.
    pub(crate) calls: VecDeque<RequestNumber>,
}

impl Rules {
    /// Nobody but local servers calls there, and what they call under a name waits as long as it
    /// takes.
    fn outside() -> Self {
        Self {
            ack: Ack::Majority,
            durable: false,
            reads: ReadRule::default(),
            access: Access::open(),
            unavailable_wait: OUTSIDE_WAIT,
        }
    }

    fn of(settings: GroupSettings) -> Self {
        let GroupSettings { replica, unavailable_wait, access } = settings;
        Self {
            ack: replica.ack,
            durable: replica.durable,
            reads: replica.reads,
            access,
            unavailable_wait,
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
    pub(crate) groups: Vec<GroupBook>,
    /// Of these, groups; behind them stand servers outside.
    group_count: usize,
    /// Which group submits next, and how much it has submitted in its turn.
    turn: usize,
    in_turn: usize,
    /// Messages whose safety is awaited, oldest first.
    awaiting_held: VecDeque<(Ticket, GroupId, RequestNumber)>,
    awaiting_stable: VecDeque<(Ticket, GroupId, RequestNumber)>,
    /// The last message that a majority holds, and the last one that every node of its
    /// configuration holds; a configuration may be less than a majority.
    held: Option<Ticket>,
    stable: Option<Ticket>,
    marks: reads::Marks,
    servers: nested::Servers,
    deadlines: BTreeSet<(Instant, GroupId, RequestNumber)>,
    pending: usize,
    buffered_bytes: usize,
    next_scan: Instant,
    stopping: bool,
    /// Connections that are not read now.
    paused: usize,
    pub(crate) out: VecDeque<Output>,
}

impl Gateway {
    pub(crate) fn new(
        limits: GatewayLimits,
        payload_bytes_max: usize,
        wall_clock_origin: u64,
        groups: Vec<GroupSettings>,
        outside: usize,
    ) -> Self {
        let group_count = groups.len();
        let groups =
            groups.into_iter().map(Rules::of).chain((0..outside).map(|_| Rules::outside()));
        let groups = groups
            .map(|rules| GroupBook {
                rules,
                book: Book::default(),
                counters: GatewayCounters::default(),
                parked: VecDeque::new(),
                reads: VecDeque::new(),
                calls: VecDeque::new(),
            })
            .collect();
        Self {
            limits,
            payload_bytes_max,
            wall_clock_origin,
            connections: BTreeMap::new(),
            peers: Peers::new(limits.connections_per_peer, limits.requests_per_second_per_peer),
            groups,
            group_count,
            turn: 0,
            in_turn: 0,
            awaiting_held: VecDeque::new(),
            awaiting_stable: VecDeque::new(),
            held: None,
            stable: None,
            marks: reads::Marks::default(),
            servers: nested::Servers::default(),
            deadlines: BTreeSet::new(),
            pending: 0,
            buffered_bytes: 0,
            next_scan: Instant::FAR_FUTURE,
            stopping: false,
            paused: 0,
            out: VecDeque::new(),
        }
    }

    fn group(&mut self, group: GroupId) -> &mut GroupBook {
        &mut self.groups[usize::from(group.0)]
    }

    /// Servers outside are numbered from here on.
    pub(crate) const fn group_count(&self) -> usize {
        self.group_count
    }

    pub(crate) fn snapshot(&self) -> GatewaySnapshot {
        let groups = self.groups.iter().take(self.group_count).enumerate();
        let groups = groups.map(|(index, group)| {
            let id = GroupId(index as u16);
            let of_clients = |c: &&Connection| c.group == id && c.caller.is_none();
            let connections = self.connections.values().filter(of_clients).count();
            GatewayCounters { connections, pending: group.book.len(), ..group.counters }
        });
        GatewaySnapshot {
            groups: groups.collect(),
            connections: self.connections.len(),
            buffered_bytes: self.buffered_bytes,
        }
    }

    pub(crate) fn connection_count(&self) -> usize {
        self.connections.len() - self.servers.connections
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending - self.servers.pending
    }

    // -- connections ------------------------------------------------------------------------

    pub(crate) fn opened(
        &mut self,
        now: Instant,
        id: ConnectionId,
        group: GroupId,
        peer: ClientPeer,
    ) {
        let refused = self.stopping || !self.peers.connect(now, peer.address);
        // Only for who may come in is anybody asked to go.
        let is_full = self.connections.len() >= self.limits.connections;
        let no_room = !refused && is_full && !self.make_room(now);
        if no_room {
            self.peers.disconnect(peer.address);
        }
        if refused || no_room {
            self.group(group).counters.refused += 1;
            let reason = if self.stopping { CloseReason::Stopping } else { CloseReason::TooMany };
            let close = Output::ClientClose { connection: id, reason, linger: true };
            self.out.push_back(close);
            return;
        }
        let connection = Connection::new(now, group, peer, &self.limits);
        self.connections.insert(id, connection);
        self.next_scan = self.next_scan.min(now + SCAN);
    }

    /// The client is gone. Its calls run on, because they may be executed already, but nobody
    /// waits for their replies.
    pub(crate) fn closed(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        if connection.caller.is_some() {
            self.server_closed(&connection);
        } else {
            self.peers.disconnect(connection.peer.address);
        }
        self.paused -= usize::from(connection.paused);
        self.buffered_bytes -= connection.framer.buffered_bytes();
        self.leaves_calls(&connection);
    }

    fn close(&mut self, id: ConnectionId, reason: CloseReason) {
        // Without last words there is nothing to wait for, and a call that the client writes now
        // must fail rather than vanish.
        let linger = !self.leaves_without_words(id, reason);
        self.out.push_back(Output::ClientClose { connection: id, reason, linger });
        self.closed(id);
    }

    pub(crate) fn received(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.heard(now, bytes.len());
        connection.framer.push(bytes);
        self.buffered_bytes += bytes.len();
        if self.buffered_bytes > self.limits.buffered_bytes {
            self.malformed(id, CloseReason::TooLarge);
            return;
        }
        self.read_on(now, id);
    }

    /// Takes messages out of a connection's framer as far as its limits allow.
    fn read_on(&mut self, now: Instant, id: ConnectionId) {
        let mut completed = false;
        loop {
            if self.must_wait(now, id) {
                break;
            }
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let before = connection.framer.buffered_bytes();
            let next = connection.framer.next();
            self.buffered_bytes -= before - connection.framer.buffered_bytes();
            match next {
                Ok(None) => break,
                Ok(Some(message)) => {
                    completed = true;
                    self.message(now, id, &message);
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
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.note_partial(now, completed);
            if connection.has_partial() {
                self.next_scan = self.next_scan.min(now + SCAN);
            }
        }
    }

    /// Whether the connection may not be read on now; pauses it if so, lets it go on if not.
    fn must_wait(&mut self, now: Instant, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.get(&id) else { return true };
        // Clients may wait for what a server calls: its calls must not wait for theirs.
        let is_client = connection.caller.is_none();
        let crowded = connection.pending.len() >= self.limits.pending_per_connection
            || is_client && !self.has_room(connection.group);
        let throttled = connection.throttled_until.is_some_and(|until| until > now);
        let wait = crowded || throttled || is_client && self.stopping;
        if wait != connection.paused
            && let Some(connection) = self.connections.get_mut(&id)
        {
            connection.paused = wait;
            if wait {
                self.paused += 1;
                self.out.push_back(Output::ClientPause { connection: id });
            } else {
                self.paused -= 1;
                self.out.push_back(Output::ClientResume { connection: id });
            }
        }
        wait
    }

    /// Whether one more request of `group` may wait. Half of the room belongs to the groups, in
    /// equal shares, and the rest to whoever comes first: a group that takes in more than it
    /// answers leaves the others theirs.
    fn has_room(&self, group: GroupId) -> bool {
        if self.pending < self.limits.pending / 2 {
            return true;
        }
        let share = self.limits.pending / 2 / self.groups.len();
        let kept = |book: &GroupBook| share.saturating_sub(book.book.len());
        self.pending < self.limits.pending
            && (kept(&self.groups[usize::from(group.0)]) > 0
                || self.pending + self.groups.iter().map(kept).sum::<usize>() < self.limits.pending)
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
        }
        match message.parse() {
            Ok(Body::Request(request)) => self.request(now, id, message, &request),
            Ok(Body::LocateRequest(request)) => {
                let object_key = request.target().object_key();
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
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let group = connection.group;
        if let Some(number) = connection.pending.remove(&request_id)
            && let Some(pending) = self.group(group).book.get_mut(number)
        {
            pending.client = None;
        }
    }
}

#[cfg(test)]
mod tests;
