//! Messages of clients: what is answered at once, and requests on their way to the order.
//!
//! Invariant: a request is in the book from the moment it is taken in until it is answered.

use super::books::SHARED_PORT;
use super::identity::{ft_request, transaction_depth};
use super::{Awaits, Gateway, GroupBook, Submission, intake};
use crate::access::is_implicit;
use crate::answers;
use crate::fair::cost;
use crate::output::{CloseReason, ConnectionId, Output};
use crate::pending::{
    Client, Disks, Executed, Kind, Message as Ordered, Outcome, Pending, Stage, Waiter,
};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::context::{self, GroupVersion};
use quorba_giop::{Body, ExceptionKind, Message, MinorCode, Request};
use quorba_order::Ticket;
use quorba_replica::{
    Ack, Availability, Backlog, CODE_SETS_BYTES_MAX, FtRequest, GroupId, RequestEnvelope,
    RequestNumber,
};

/// Requests that a group submits before it is the next group's turn.
pub(super) const TURN_MAX: usize = 16;

/// When requests that wait for a slow member are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// 100 ns each.
const TICKS_PER_DAY: u128 = 24 * 3_600 * 10_000_000;

/// Whether a time is over for longer than so many ticks, and by less than a day.
pub(super) fn is_late_by(stamp: u64, expiration: u64, ticks: u128) -> bool {
    let late = u128::from(stamp.saturating_sub(expiration));
    (ticks.saturating_add(1)..TICKS_PER_DAY).contains(&late)
}

impl Gateway {
    pub(super) fn request(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &Message,
        request: &Request<'_>,
    ) {
        let Some(group) = self.count_request(now, id) else { return };
        let request_id = request.request_id();
        let awaited = request.response_expected().then_some(request_id);
        if answers::is_heartbeat(request) {
            self.charge_answer(id);
            if awaited.is_some() {
                let bytes = answers::alive(message, request_id);
                self.out.push_back(Output::ClientSend { connection: id, bytes });
            }
            return;
        }
        let (group, own_key) = match group {
            SHARED_PORT => match self.addressed(request) {
                Some((group, key)) => (group, Some(key)),
                None => return self.no_such_group(id, group, message, request),
            },
            group => (self.known_by(id, group, request), None),
        };
        match intake::plain(request, own_key) {
            Ok(None) => self.take_in(now, (id, group), message, request),
            Ok(Some(plain)) => match plain.parse() {
                Ok(Body::Request(request)) => self.take_in(now, (id, group), &plain, &request),
                _ => self.malformed(id, CloseReason::Malformed),
            },
            Err(refusal) => self.refuse(id, group, message, awaited, refusal),
        }
    }

    /// A request that servers can read.
    fn take_in(
        &mut self,
        now: Instant,
        (id, group): (ConnectionId, GroupId),
        message: &Message,
        request: &Request<'_>,
    ) {
        let request_id = request.request_id();
        let awaited = request.response_expected().then_some(request_id);
        if let Err(why) = self.may_call(id, group, request) {
            return self.refuse(id, group, message, awaited, (ExceptionKind::NoPermission, why));
        }
        if self.is_question(group, request) {
            let why = (ExceptionKind::BadOperation, MinorCode::GatewaysOnly);
            return self.refuse(id, group, message, awaited, why);
        }
        let is_outdated = self.has_newer_reference(group, request);
        let connection = self.connections.get_mut(&id).expect("looked up above");
        if connection.pending.contains_key(&request_id) {
            // Two calls under one id: nobody could tell the replies apart (GIOP §15.4.2).
            self.malformed(id, CloseReason::Malformed);
            return;
        }
        for (context, data) in request.contexts() {
            let is_news = connection.code_sets.as_deref() != Some(data);
            // One that is longer than any can be says nothing, and every request would carry it.
            if context == context::CODE_SETS && is_news && data.len() <= CODE_SETS_BYTES_MAX {
                connection.code_sets = Some(Bytes::copy_from_slice(data));
            }
        }
        let code_sets = connection.code_sets.clone();
        let caller = connection.caller;
        let client = request.response_expected().then_some(Client {
            connection: id,
            request_id,
            version: message.version(),
            endian: message.endian(),
            is_outdated,
        });
        if let Some(caller) = caller.filter(|_| !is_implicit(request.operation())) {
            return self.call(caller, group, client, code_sets, message);
        }
        let ft = ft_request(request, message.endian(), &connection.peer);
        if ft.as_ref().is_some_and(|ft| self.came_late(now, group, ft.expiration)) {
            let why = (ExceptionKind::BadContext, MinorCode::Expired);
            return self.refuse(id, group, message, awaited, why);
        }
        let origin = (id, group);
        let Some(number) = self.admit(now, origin, client, (ft, code_sets), message, request)
        else {
            return;
        };
        if let Some(connection) = self.connections.get_mut(&id)
            && connection.called.insert(group)
        {
            let address = connection.peer.address;
            self.peers.calls(address, group);
        }
        if client.is_some()
            && let Some(connection) = self.connections.get_mut(&id)
        {
            connection.pending.insert(request_id, (group, number));
        }
    }

    /// Whether the client's reference to the group's object is older than the group's.
    fn has_newer_reference(&self, group: GroupId, request: &Request<'_>) -> bool {
        let rules = &self.groups[group].rules;
        let Some(references) = &rules.references else { return false };
        let version = request.contexts().find(|(id, _)| *id == context::FT_GROUP_VERSION);
        let version = version.and_then(|(_, data)| GroupVersion::decode(data).ok());
        version.is_some_and(|GroupVersion(version)| version < rules.reference_version())
            && request.target().object_key() == Some(references.object_key())
    }

    /// Whether the time in which a client would repeat a request has been over for longer than the
    /// group remembers replies (FT-CORBA §23.2.8.1): then nobody can say whether it is a
    /// repetition. What is a day off is no time: some clients count from 1970, or from nothing.
    fn came_late(&self, now: Instant, group: GroupId, expiration: u64) -> bool {
        let stamp = self.wall_clock_origin.saturating_add(now.as_nanos() / 100);
        let retention = self.groups[group].rules.retention.as_nanos() / 100;
        is_late_by(stamp, expiration, retention)
    }

    /// Whether the rules of the group let the connection's client, or server, call this. The state
    /// of a group is moved by its nodes only: who could set it could undo everybody's calls, and
    /// servers may know the object that has it by more keys than one.
    fn may_call(
        &self,
        id: ConnectionId,
        group: GroupId,
        request: &Request<'_>,
    ) -> Result<(), MinorCode> {
        let Some(connection) = self.connections.get(&id) else { return Ok(()) };
        let client = connection.caller.is_none().then_some(&connection.peer);
        let called = (request.object_key(), request.operation());
        self.groups[group].rules.access.check(client, called)
    }

    /// Takes a request in; one that the order cannot carry is refused at once, for it would never
    /// get its turn.
    fn admit(
        &mut self,
        now: Instant,
        (id, group): (ConnectionId, GroupId),
        client: Option<Client>,
        (ft, code_sets): (Option<FtRequest>, Option<Bytes>),
        message: &Message,
        request: &Request<'_>,
    ) -> Option<RequestNumber> {
        let stamp = self.wall_clock_origin.saturating_add(now.as_nanos() / 100);
        let deadline = now + self.limits.request;
        let payload_bytes_max = self.payload_bytes_max;
        let books = self.group(group);
        let wait_until = now + books.rules.unavailable_wait;
        let mut asked = RequestEnvelope {
            group,
            number: books.book.next(),
            released: books.book.released(),
            stamp,
            ft,
            nested: None,
            ended_process: false,
            code_sets,
            giop: message.bytes().clone(),
        };
        let wait = self.wait_of((id, group), request, asked.ft.is_some());
        let asks = wait.as_ref().is_some_and(|wait| wait.asks());
        let kind = if asks || self.is_read(group, request) {
            Kind::Read
        } else {
            Kind::Request(Ordered::new(asked.payload()))
        };
        if let Kind::Request(message) = &kind
            && message.payload.len() > payload_bytes_max
        {
            self.refuse_too_large(group, client);
            return None;
        }
        let connection = self.connections.get(&id);
        let source = connection.filter(|c| c.caller.is_none()).map(|c| c.peer.address);
        let books = self.group(group);
        let number = books.book.add(Pending {
            request: asked,
            kind,
            waiter: client.map_or(Waiter::Nobody, Waiter::Client),
            source,
            connection: id,
            charged: 0,
            entered: None,
            stage: Stage::Unsubmitted,
            depth: transaction_depth(request, &books.rules),
            demand: None,
            is_short: false,
            disks: Disks::of(books.rules.durable),
            executed: Executed::NotAsked,
            submissions: 0,
            process_ends: 0,
            outcome: Outcome::Open,
            deadline,
            wait_until,
            wait,
        });
        self.groups.begins(group);
        self.park(group, number);
        self.charge(group, number);
        self.pending += 1;
        self.deadlines.insert((deadline.min(wait_until), group, number));
        Some(number)
    }

    pub(super) fn refuse_too_large(&mut self, group: GroupId, client: Option<Client>) {
        self.group(group).counters.refused += 1;
        if let Some(client) = client {
            let bytes = answers::too_large(&client);
            self.send(&client, bytes);
        }
    }

    /// The next request that can be submitted, given what the groups can take now. Groups take
    /// turns: one with a long backlog does not keep the others waiting. In a group client addresses
    /// do, and no more is submitted than its window has room for. `behind`: what the slowest of its
    /// members has in front of it.
    pub(crate) fn next_submission(
        &mut self,
        available: impl Fn(GroupId) -> Availability,
        behind: impl Fn(GroupId) -> Backlog,
    ) -> Option<Submission> {
        if self.in_turn >= TURN_MAX {
            self.pass_turn();
        }
        if !self.groups.busy().contains(&self.turn) {
            self.pass_turn();
        }
        for _ in 0..self.groups.busy().len() {
            let group = self.turn;
            let books = &mut self.groups[group];
            if let Some((number, payload)) = books.next_call(|| available(group)) {
                self.in_turn += 1;
                return Some(Submission { group, number, payload });
            }
            if !books.parked.is_empty()
                && available(group) == Availability::Ready
                && self.has_turn(group, behind(group))
                && let Some((number, payload)) = self.next_parked(group)
            {
                self.in_turn += 1;
                return Some(Submission { group, number, payload });
            }
            self.pass_turn();
        }
        None
    }

    /// Whether the group's window has room.
    fn has_turn(&mut self, group: GroupId, behind: Backlog) -> bool {
        let has_room = self.groups[group].window.has_room(behind);
        if !has_room && behind.all > 0 {
            // If the member that is behind does not go on, nobody says so.
            self.look_again = Some(self.now + LOOK_AGAIN);
        }
        has_room
    }

    /// The next request of the group's clients, and of its servers, that waits for its turn.
    fn next_parked(&mut self, group: GroupId) -> Option<(RequestNumber, Bytes)> {
        loop {
            let (books, peers) = (&mut self.groups[group], &self.peers);
            let window = &books.window;
            let (_, number) =
                books.parked.pop(|source, call_cost| peers.let_in(window, source, call_cost))?;
            let Some(pending) = books.book.get(number) else { continue };
            let Some(message) = pending.message() else { continue };
            let (payload, id) = (message.payload.clone(), pending.connection);
            if !self.leaves_replies(id) {
                return Some((number, payload));
            }
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.aside.push((group, number));
            }
        }
    }

    fn pass_turn(&mut self) {
        self.turn = self.groups.next_busy(self.turn).unwrap_or(self.turn);
        self.in_turn = 0;
    }

    /// The order has no room: the submission goes back to the front.
    pub(crate) fn put_back(&mut self, submission: Submission) {
        let books = self.group(submission.group);
        let Some(pending) = books.book.get(submission.number) else { return };
        if pending.goes_with_calls() {
            return books.calls.push_front(submission.number);
        }
        let (source, cost) = (pending.source, cost(submission.payload.len()));
        books.parked.put_back(source, submission.number, cost);
    }

    /// The order cannot carry the submission, now or later.
    pub(crate) fn too_large(&mut self, submission: &Submission) {
        if let Some(pending) = self.forget(submission.group, submission.number) {
            self.refuse_too_large(submission.group, pending.waiter.client());
        }
    }

    /// The request that it is of.
    pub(crate) fn pending_of(&self, submission: &Submission) -> Option<&Pending> {
        self.groups.get(submission.group)?.book.get(submission.number)
    }

    /// Fewer members are in than its caller demands. Whether it is refused: what this gateway has
    /// submitted before is not. `is_new`: no other gateway can have had it executed.
    pub(crate) fn too_deep(&mut self, submission: &Submission, is_new: bool) -> bool {
        let Submission { group, number, .. } = *submission;
        let Some(pending) = self.group(group).book.get(number) else { return false };
        if pending.may_be_executed() {
            return false;
        }
        let is_asked = pending.depth.is_asked;
        let pending = self.forget(group, number);
        self.group(group).counters.refused += 1;
        if let Some(client) = pending.and_then(|pending| pending.waiter.client()) {
            let bytes = match (is_new, is_asked) {
                (true, true) => answers::too_deep(&client),
                (true, false) => answers::too_few(&client),
                (false, _) => answers::depth_not_met(&client),
            };
            self.send(&client, bytes);
        }
        true
    }

    /// It must be as safe as this before its caller goes on, and as safe as its group asks.
    /// `is_short`: fewer members are in than its caller demands, so that its reply is not one to
    /// give.
    pub(crate) fn demand(
        &mut self,
        submission: &Submission,
        ack: Ack,
        is_short: bool,
        executed: Executed,
    ) {
        if let Some(pending) = self.group(submission.group).book.get_mut(submission.number) {
            (pending.demand, pending.is_short) = (Some(ack), is_short);
            pending.executed = executed;
        }
    }

    /// The order took it. What its caller waits for besides.
    pub(crate) fn submitted(&mut self, submission: &Submission, ticket: Ticket) -> Awaits {
        let Submission { group, number, .. } = *submission;
        self.enters(group, number);
        let ack = self.group(group).rules.ack;
        let Some(pending) = self.group(group).book.get_mut(number) else {
            return Awaits::default();
        };
        pending.submissions += 1;
        pending.stage = Stage::Submitted(ticket);
        let is_awaited = pending.executed == Executed::Awaited;
        let executed_by = is_awaited.then_some(pending.depth.members);
        let ack = pending.demand.map_or(ack, |demand| ack.or_safer(demand));
        match ack {
            Ack::Majority => self.awaiting_held.push_back((ticket, group, number)),
            Ack::Safe => self.awaiting_stable.push_back((ticket, group, number)),
            Ack::Agreed => pending.stage = Stage::Safe,
        }
        Awaits { all_nodes: ack == Ack::Safe, executed_by }
    }

    /// The request takes a place in its group's window.
    pub(super) fn enters(&mut self, group: GroupId, number: RequestNumber) {
        let now = self.now;
        let GroupBook { book, window, read_window, parked, reads, .. } = self.group(group);
        let Some(pending) = book.get_mut(number).filter(|one| !one.goes_with_calls()) else {
            return;
        };
        let is_read = pending.is_read();
        let (window, queue) = if is_read { (read_window, reads) } else { (window, parked) };
        let call_cost = queue.call_cost(pending.source);
        let entered = window.enter(now, pending.source, pending.bytes(), call_cost);
        let before = pending.entered.replace(entered);
        if let Some(before) = before {
            window.leave(before);
        }
    }

    /// It gives that back: it was executed, with a reply of so many bytes.
    pub(super) fn ends(&mut self, group: GroupId, number: RequestNumber, reply_bytes: usize) {
        let now = self.now;
        let GroupBook { book, window, read_window, given_up, parked, reads, .. } =
            self.group(group);
        let Some(pending) = book.get_mut(number) else {
            if let Some((source, entered)) = given_up.remove(&number) {
                reads.took(source, read_window.end_read(now, entered), reply_bytes);
            }
            return;
        };
        let Some(entered) = pending.entered.take() else { return };
        if pending.is_read() {
            reads.took(pending.source, read_window.end_read(now, entered), reply_bytes);
        } else {
            parked.took(pending.source, window.end(now, entered), reply_bytes);
        }
    }

    /// A majority of the domain holds all messages up to `ticket`.
    pub(crate) fn held(&mut self, ticket: Ticket) {
        while let Some((_, group, number)) =
            self.awaiting_held.pop_front_if(|(awaited, _, _)| *awaited <= ticket)
        {
            self.reached(group, number, ticket);
        }
        self.held = Some(ticket);
        self.held_by_all();
        self.judge_marks();
    }

    /// Every node of the view holds all messages up to `ticket`.
    pub(crate) fn stable(&mut self, ticket: Ticket) {
        self.stable = Some(ticket);
        self.held_by_all();
        self.judge_marks();
    }

    fn held_by_all(&mut self) {
        let Some(ticket) = self.held.min(self.stable) else { return };
        while let Some((_, group, number)) =
            self.awaiting_stable.pop_front_if(|(awaited, _, _)| *awaited <= ticket)
        {
            self.reached(group, number, ticket);
        }
    }

    fn reached(&mut self, group: GroupId, number: RequestNumber, ticket: Ticket) {
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        if matches!(pending.stage, Stage::Submitted(awaited) if awaited <= ticket) {
            pending.stage = Stage::Safe;
            let entered = pending.entered;
            if let Some(entered) = entered {
                let now = self.now;
                self.group(group).window.is_ordered(now, entered);
            }
            self.note_safe_call(group, number);
            self.release(group, number);
        }
    }

    /// The view changed: what was not known to be safe must be submitted again to become so.
    pub(crate) fn view_changed(&mut self) {
        self.awaiting_held.clear();
        self.awaiting_stable.clear();
        self.begin_nothing_of_before();
        self.forget_marks();
    }

    /// Submit again what is unanswered: of one group, or of all.
    pub(crate) fn resubmit(&mut self, group: Option<GroupId>) {
        for (id, books) in self.groups.iter_mut() {
            if group.is_some_and(|group| group != id) {
                continue;
            }
            // In the order in which they came, so that a client's calls keep their order.
            // Reads are the replica's business until it gives them back.
            let ordered = |pending: &Pending| !pending.is_read();
            let requests = books.book.iter().filter(|(_, pending)| ordered(pending));
            let is_call = |(_, pending): &(RequestNumber, &Pending)| pending.goes_with_calls();
            let (calls, parked): (Vec<_>, Vec<_>) = requests.partition(is_call);
            books.calls = calls.into_iter().map(|(number, _)| number).collect();
            books.parked.clear();
            for (number, pending) in parked {
                books.parked.push(pending.source, number, cost(pending.bytes()));
            }
            for (_, pending) in books.book.iter_mut().filter(|(_, pending)| ordered(pending)) {
                if let Some(entered) = pending.entered.take() {
                    books.window.leave(entered);
                }
                pending.begin_again();
                // It may come from an execution that this node has to forget; the group has
                // logged what counts and answers the repetition.
                pending.outcome = Outcome::Open;
            }
        }
    }
}
