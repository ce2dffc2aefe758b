//! The gateway: client connections in, requests to the order, replies out.
//!
//! It answers by itself what needs no server: LocateRequest, heartbeats, malformed messages, and
//! calls that cannot be taken now. Invariants: a request is submitted under one identity however
//! often; a reply is released only when its request is as safe as the group asks (promise 1); no
//! request stays unanswered beyond its time.

use crate::answers;
use crate::config::{GatewayLimits, GroupSettings};
use crate::connection::Connection;
use crate::limits::Peers;
use crate::output::{CloseReason, ConnectionId, Output};
use crate::pending::{Book, Client, Pending, Safety};
use crate::snapshot::{GatewayCounters, GatewaySnapshot};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::IpAddr;
use quorba_base::{Duration, Instant};
use quorba_giop::{Body, FtRequest as FtContext, Message, Request, context};
use quorba_order::Ticket;
use quorba_replica::{Ack, Availability, FtRequest, GroupId, RequestEnvelope, RequestNumber};

/// How often unfinished messages are looked at.
const SCAN: Duration = Duration::from_secs(1);

/// Something that the gateway wants to have ordered.
pub(crate) struct Submission {
    pub(crate) group: GroupId,
    pub(crate) number: RequestNumber,
    pub(crate) payload: Bytes,
}

pub(crate) struct GroupBook {
    pub(crate) settings: GroupSettings,
    pub(crate) book: Book,
    pub(crate) counters: GatewayCounters,
    /// Requests that wait for a primary component, a member, or room in the order.
    pub(crate) parked: VecDeque<RequestNumber>,
}

/// See the module's text.
pub(crate) struct Gateway {
    limits: GatewayLimits,
    wall_clock_origin: u64,
    connections: BTreeMap<ConnectionId, Connection>,
    peers: Peers,
    pub(crate) groups: Vec<GroupBook>,
    /// Messages whose safety is awaited, oldest first.
    awaiting_held: VecDeque<(Ticket, GroupId, RequestNumber)>,
    awaiting_stable: VecDeque<(Ticket, GroupId, RequestNumber)>,
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
        wall_clock_origin: u64,
        groups: Vec<GroupSettings>,
    ) -> Self {
        let groups = groups
            .into_iter()
            .map(|settings| GroupBook {
                settings,
                book: Book::default(),
                counters: GatewayCounters::default(),
                parked: VecDeque::new(),
            })
            .collect();
        Self {
            limits,
            wall_clock_origin,
            connections: BTreeMap::new(),
            peers: Peers::new(limits.connections_per_peer, limits.requests_per_second_per_peer),
            groups,
            awaiting_held: VecDeque::new(),
            awaiting_stable: VecDeque::new(),
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

    pub(crate) fn snapshot(&self) -> GatewaySnapshot {
        let groups = self.groups.iter().enumerate().map(|(index, group)| {
            let id = GroupId(index as u16);
            let connections = self.connections.values().filter(|c| c.group == id).count();
            GatewayCounters { connections, pending: group.book.len(), ..group.counters }
        });
        GatewaySnapshot {
            groups: groups.collect(),
            connections: self.connections.len(),
            buffered_bytes: self.buffered_bytes,
        }
    }

    pub(crate) fn connection_count(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending
    }

    // -- connections ------------------------------------------------------------------------

    pub(crate) fn opened(&mut self, now: Instant, id: ConnectionId, group: GroupId, peer: IpAddr) {
        let full = self.connections.len() >= self.limits.connections;
        if full || self.stopping || !self.peers.connect(now, peer) {
            self.group(group).counters.refused += 1;
            let reason = if self.stopping { CloseReason::Stopping } else { CloseReason::TooMany };
            self.out.push_back(Output::ClientClose { connection: id, reason });
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
        self.peers.disconnect(connection.peer);
        self.paused -= usize::from(connection.paused);
        self.buffered_bytes -= connection.framer.buffered_bytes();
        for number in connection.pending.into_values() {
            if let Some(pending) = self.group(connection.group).book.get_mut(number) {
                pending.client = None;
            }
        }
    }

    fn close(&mut self, id: ConnectionId, reason: CloseReason) {
        self.out.push_back(Output::ClientClose { connection: id, reason });
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
        let Some(connection) = self.connections.get_mut(&id) else { return true };
        let crowded = connection.pending.len() >= self.limits.pending_per_connection
            || self.pending >= self.limits.pending;
        let throttled = connection.throttled_until.is_some_and(|until| until > now);
        let wait = crowded || throttled || self.stopping;
        if wait != connection.paused {
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
        }
        match message.parse() {
            Ok(Body::Request(request)) => self.request(now, id, message, &request),
            Ok(Body::LocateRequest(request)) => {
                let bytes = answers::located(message, request.request_id());
                self.out.push_back(Output::ClientSend { connection: id, bytes });
            }
            Ok(Body::CancelRequest { request_id }) => self.cancel(id, request_id),
            Ok(Body::CloseConnection) => self.close(id, CloseReason::ByClient),
            // A MessageError must not be answered by another one.
            Ok(Body::MessageError) => self.close(id, CloseReason::Malformed),
            Ok(_) | Err(_) => self.malformed(id, CloseReason::Malformed),
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

    // -- requests ---------------------------------------------------------------------------

    fn request(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &Message,
        request: &Request<'_>,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let group = connection.group;
        let peer = connection.peer;
        let request_id = request.request_id();
        if let Err(wait) = self.peers.request(now, peer) {
            // The request that broke the limit is still served; what follows waits.
            connection.throttled_until = Some(now + wait);
        }
        self.group(group).counters.requests += 1;
        if answers::is_heartbeat(request) {
            if request.response_expected() {
                let bytes = answers::alive(message, request_id);
                self.out.push_back(Output::ClientSend { connection: id, bytes });
            }
            return;
        }
        if self.is_protected(group, request) {
            if request.response_expected() {
                let bytes = answers::forbidden(message, request_id);
                self.out.push_back(Output::ClientSend { connection: id, bytes });
            }
            return;
        }
        let connection = self.connections.get_mut(&id).expect("looked up above");
        if connection.pending.contains_key(&request_id) {
            // Two calls under one id: nobody could tell the replies apart (GIOP §15.4.2).
            self.malformed(id, CloseReason::Malformed);
            return;
        }
        for (context, data) in request.contexts() {
            if context == context::CODE_SETS && connection.code_sets.as_deref() != Some(data) {
                connection.code_sets = Some(Bytes::copy_from_slice(data));
            }
        }
        let code_sets = connection.code_sets.clone();
        let client = request.response_expected().then_some(Client {
            connection: id,
            request_id,
            version: message.version(),
            endian: message.endian(),
        });
        let number = self.admit(now, group, client, code_sets, message, request);
        if client.is_some()
            && let Some(connection) = self.connections.get_mut(&id)
        {
            connection.pending.insert(request_id, number);
        }
    }

    /// The state of a group is moved by its nodes only: a client that could set it could undo
    /// every other client's calls.
    fn is_protected(&mut self, group: GroupId, request: &Request<'_>) -> bool {
        let state_object = self.group(group).settings.replica.state_object.as_deref();
        state_object.is_some()
            && request.object_key() == state_object
            && matches!(
                request.operation(),
                b"get_state" | b"set_state" | b"get_update" | b"set_update"
            )
    }

    fn admit(
        &mut self,
        now: Instant,
        group: GroupId,
        client: Option<Client>,
        code_sets: Option<Bytes>,
        message: &Message,
        request: &Request<'_>,
    ) -> RequestNumber {
        let stamp = self.wall_clock_origin.saturating_add(now.as_nanos() / 100);
        let deadline = now + self.limits.request;
        self.pending += 1;
        let books = self.group(group);
        let wait_until = now + books.settings.unavailable_wait;
        let envelope = RequestEnvelope {
            group,
            number: books.book.next(),
            released_below: books.book.lowest(),
            stamp,
            ft: ft_request(request),
            code_sets,
            giop: message.bytes().clone(),
        };
        let number = books.book.add(Pending {
            oneway: client.is_none(),
            client,
            payload: envelope.into_payload(),
            safety: Safety::Unsubmitted,
            submissions: 0,
            reply: None,
            deadline,
            wait_until,
        });
        books.parked.push_back(number);
        self.deadlines.insert((deadline.min(wait_until), group, number));
        number
    }

    /// The next request that can be submitted, given what the groups can take now.
    pub(crate) fn next_submission(
        &mut self,
        available: impl Fn(GroupId) -> Availability,
    ) -> Option<Submission> {
        for index in 0..self.groups.len() {
            let group = GroupId(index as u16);
            if self.groups[index].parked.is_empty() || available(group) != Availability::Ready {
                continue;
            }
            while let Some(number) = self.groups[index].parked.pop_front() {
                let Some(pending) = self.groups[index].book.get_mut(number) else { continue };
                let payload = pending.payload.clone();
                return Some(Submission { group, number, payload });
            }
        }
        None
    }

    /// The order has no room: the submission goes back to the front.
    pub(crate) fn put_back(&mut self, submission: Submission) {
        self.group(submission.group).parked.push_front(submission.number);
    }

    /// The order took it.
    pub(crate) fn submitted(&mut self, submission: &Submission, ticket: Ticket) {
        let Submission { group, number, .. } = *submission;
        let ack = self.group(group).settings.replica.ack;
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        pending.submissions += 1;
        if pending.oneway {
            self.forget(group, number);
            return;
        }
        pending.safety = Safety::Awaiting(ticket);
        match ack {
            Ack::Majority => self.awaiting_held.push_back((ticket, group, number)),
            Ack::Safe => self.awaiting_stable.push_back((ticket, group, number)),
            Ack::Agreed => pending.safety = Safety::Reached,
        }
    }

    /// A majority of the domain holds all messages up to `ticket`.
    pub(crate) fn held(&mut self, ticket: Ticket) {
        while let Some((_, group, number)) =
            self.awaiting_held.pop_front_if(|(awaited, _, _)| *awaited <= ticket)
        {
            self.reached(group, number, ticket);
        }
    }

    /// Every node of the view holds all messages up to `ticket`.
    pub(crate) fn stable(&mut self, ticket: Ticket) {
        while let Some((_, group, number)) =
            self.awaiting_stable.pop_front_if(|(awaited, _, _)| *awaited <= ticket)
        {
            self.reached(group, number, ticket);
        }
    }

    fn reached(&mut self, group: GroupId, number: RequestNumber, ticket: Ticket) {
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        if matches!(pending.safety, Safety::Awaiting(awaited) if awaited <= ticket) {
            pending.safety = Safety::Reached;
            self.release(group, number);
        }
    }

    /// The view changed: what was not known to be safe must be submitted again to become so.
    pub(crate) fn view_changed(&mut self) {
        self.awaiting_held.clear();
        self.awaiting_stable.clear();
    }

    /// Submit again what is unanswered: of one group, or of all.
    pub(crate) fn resubmit(&mut self, group: Option<GroupId>) {
        for (index, books) in self.groups.iter_mut().enumerate() {
            if group.is_some_and(|group| usize::from(group.0) != index) {
                continue;
            }
            // In the order in which they came, so that a client's calls keep their order.
            books.parked = books.book.iter().map(|(number, _)| number).collect();
            for (_, pending) in books.book.iter_mut() {
                pending.safety = Safety::Unsubmitted;
                // It may come from an execution that this node has to forget; the group has
                // logged what counts and answers the repetition.
                pending.reply = None;
            }
        }
    }

    // -- replies ----------------------------------------------------------------------------

    /// The group's reply, under the server's request id.
    pub(crate) fn replied(&mut self, group: GroupId, number: RequestNumber, giop: Option<Bytes>) {
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        let Some(giop) = giop else {
            // The client of a oneway waits for nothing.
            self.forget(group, number);
            return;
        };
        pending.reply = Some(giop);
        self.release(group, number);
    }

    /// The request was delivered while no member was in: this submission of it was executed
    /// nowhere. It waits for a member again.
    pub(crate) fn dropped(&mut self, now: Instant, group: GroupId, number: RequestNumber) {
        let books = self.group(group);
        let wait_until = now + books.settings.unavailable_wait;
        let Some(pending) = books.book.get_mut(number) else { return };
        pending.submissions = pending.submissions.saturating_sub(1);
        pending.safety = Safety::Unsubmitted;
        pending.wait_until = wait_until;
        let deadline = pending.deadline.min(wait_until);
        if !books.parked.contains(&number) {
            books.parked.push_back(number);
        }
        self.deadlines.insert((deadline, group, number));
    }

    fn release(&mut self, group: GroupId, number: RequestNumber) {
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        if pending.safety != Safety::Reached || pending.reply.is_none() {
            return;
        }
        let pending = self.forget(group, number).expect("just looked up");
        let Some(client) = pending.client else { return };
        let giop = pending.reply.expect("just checked");
        self.group(group).counters.replies += 1;
        for bytes in answers::reply_pieces(giop, &client) {
            self.send(&client, bytes);
        }
    }

    fn send(&mut self, client: &Client, bytes: Bytes) {
        if let Some(connection) = self.connections.get_mut(&client.connection) {
            connection.pending.remove(&client.request_id);
            self.out.push_back(Output::ClientSend { connection: client.connection, bytes });
        }
    }

    fn forget(&mut self, group: GroupId, number: RequestNumber) -> Option<Pending> {
        let pending = self.group(group).book.remove(number)?;
        self.pending -= 1;
        self.deadlines.remove(&(pending.deadline, group, number));
        self.deadlines.remove(&(pending.wait_until.min(pending.deadline), group, number));
        Some(pending)
    }

    // -- time -------------------------------------------------------------------------------

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let deadline = self.deadlines.first().map(|(at, _, _)| *at);
        let throttle = if self.limits.requests_per_second_per_peer == 0 {
            None
        } else {
            self.connections.values().filter_map(|c| c.throttled_until).min()
        };
        let scan = (!self.connections.is_empty()).then_some(self.next_scan);
        [deadline, throttle, scan].into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        available: impl Fn(GroupId) -> Availability,
    ) {
        while let Some((at, group, number)) = self.deadlines.first().copied() {
            if at > now {
                break;
            }
            self.deadlines.pop_first();
            self.overdue(now, group, number, available(group));
        }
        self.resume(now);
        if self.next_scan <= now {
            self.scan(now);
        }
    }

    fn overdue(
        &mut self,
        now: Instant,
        group: GroupId,
        number: RequestNumber,
        available: Availability,
    ) {
        let books = self.group(group);
        let Some(pending) = books.book.get_mut(number) else { return };
        let waiting = !pending.may_be_executed() && pending.deadline > now;
        if waiting && available == Availability::Ready {
            // It got its turn, and only the order is crowded: wait on for the reply.
            let deadline = pending.deadline;
            self.deadlines.insert((deadline, group, number));
            return;
        }
        if pending.may_be_executed() && pending.deadline > now {
            let deadline = pending.deadline;
            self.deadlines.insert((deadline, group, number));
            return;
        }
        let pending = self.forget(group, number).expect("just looked up");
        self.group(group).parked.retain(|parked| *parked != number);
        self.group(group).counters.refused += 1;
        if let Some(client) = pending.client {
            let bytes = if pending.may_be_executed() {
                answers::timed_out(&client)
            } else {
                answers::unavailable(&client, available)
            };
            self.send(&client, bytes);
        }
    }

    /// Connections that waited for room or for their rate are read on.
    pub(crate) fn resume(&mut self, now: Instant) {
        let paused: Vec<ConnectionId> =
            self.connections.iter().filter(|(_, c)| c.paused).map(|(id, _)| *id).collect();
        for id in paused {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.throttled_until = connection.throttled_until.filter(|at| *at > now);
            }
            self.read_on(now, id);
        }
    }

    fn scan(&mut self, now: Instant) {
        let mut ended = Vec::new();
        for (id, connection) in &self.connections {
            if connection.is_too_slow(now, &self.limits) {
                ended.push((*id, CloseReason::TooSlow));
            } else if connection.is_idle(now, self.limits.idle) {
                ended.push((*id, CloseReason::Idle));
            }
        }
        for (id, reason) in ended {
            if reason == CloseReason::Idle {
                self.say_goodbye(id);
            }
            self.close(id, reason);
        }
        let partial = self.connections.values().any(Connection::has_partial);
        let wait = if partial { SCAN } else { (self.limits.idle / 4).max(SCAN) };
        self.next_scan = now + wait;
    }

    fn say_goodbye(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id) {
            let bytes = answers::close_connection(connection.version);
            self.out.push_back(Output::ClientSend { connection: id, bytes });
        }
    }

    /// The node stops: connections without open calls get CloseConnection, which makes clients go
    /// elsewhere without an exception; the others follow when their calls are answered. The
    /// driver has closed its listeners before, else clients would come back at once.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        let quiet: Vec<ConnectionId> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.pending.is_empty())
            .map(|(id, _)| *id)
            .collect();
        for id in quiet {
            self.say_goodbye(id);
            self.close(id, CloseReason::Stopping);
        }
    }

    /// Whether a connection waits for room.
    pub(crate) fn is_crowded(&self) -> bool {
        self.paused > 0 && !self.stopping
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }
}

fn ft_request(request: &Request<'_>) -> Option<FtRequest> {
    let (_, data) = request.contexts().find(|(id, _)| *id == context::FT_REQUEST)?;
    // A context that does not parse names nothing: the request is one like any other.
    let context = FtContext::decode(data).ok()?;
    Some(FtRequest {
        client_id: Bytes::from(context.client_id),
        retention_id: context.retention_id,
        expiration: context.expiration_time,
    })
}
