//! Calls that local servers make while they execute a request of their own group.
//!
//! Such a call gets its name from the replica and goes through the order like a request of a
//! client. It differs in what it may not depend on: how busy this gateway is, or how long it has
//! waited. All replicas of the caller make the call and must get the same answer, so nothing is
//! refused here that another gateway might let in, and no time runs out.
//!
//! What it is not: what a call is when it is delivered. Invariants: a call is given a name once,
//! in the order in which the calls of a server come; each name that was begun is ended.

use super::{Gateway, GroupBook};
use crate::access::ClientPeer;
use crate::answers;
use crate::connection::Connection;
use crate::output::{CloseReason, ConnectionId, Output};
use crate::pending::{
    Client, Depth, Disks, Executed, Kind, Message as Ordered, Named, Outcome, Pending, Stage,
    Waiter,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::IpAddr;
use quorba_base::{Instant, canary};
use quorba_giop::Message;
use quorba_replica::{
    Attempt, Availability, CallKey, ENVELOPE_BYTES_MAX, GroupId, History, NestedCall,
    RequestEnvelope, RequestNumber,
};

/// Connections of all local servers together.
const CONNECTIONS_MAX: usize = 1024;

/// What local servers have with this gateway.
#[derive(Default)]
pub(super) struct Servers {
    pub(super) connections: usize,
    pub(super) pending: usize,
    /// Calls that have no name yet.
    unnamed: VecDeque<Call>,
    /// Calls that their server does not wait for any more.
    ended: VecDeque<CallKey>,
    /// Calls to the outside that may be made now.
    safe: VecDeque<ExternalCalls>,
    /// Such calls that nobody here waits for any more, and that were not begun.
    given_up: VecDeque<(CallKey, u32)>,
}

/// A call that this node makes to a server outside.
pub(crate) struct ExternalCalls {
    pub(crate) key: CallKey,
    pub(crate) tries: u32,
    pub(crate) envelope: RequestEnvelope,
}

/// A call of a local server.
pub(crate) struct Call {
    pub(crate) caller: GroupId,
    /// The whole message.
    pub(crate) giop: Bytes,
    target: GroupId,
    client: Client,
    code_sets: Option<Bytes>,
}

impl Servers {
    /// Connections and calls of local servers, and of these how many lie here for the replica.
    #[cfg(test)]
    pub(super) fn holdings(&self) -> [usize; 6] {
        let Self { connections, pending, unnamed, ended, safe, given_up } = self;
        [*connections, *pending, unnamed.len(), ended.len(), safe.len(), given_up.len()]
    }

    pub(super) fn forget(&mut self, pending: &Pending) {
        if let Kind::Nested(_, Named { key, is_external, .. }) = pending.kind {
            self.pending -= 1;
            self.ended.push_back(key);
            self.given_up.extend(is_external.map(|tries| (key, tries)));
        }
    }
}

impl Gateway {
    /// The local server of `caller` has connected to the port on which it calls `target`.
    pub(crate) fn opened_by_server(
        &mut self,
        now: Instant,
        id: ConnectionId,
        (caller, target): (GroupId, GroupId),
        peer: IpAddr,
    ) {
        if self.servers.connections >= CONNECTIONS_MAX {
            self.group(target).counters.refused += 1;
            let reason = CloseReason::TooMany;
            let close = Output::ClientClose { connection: id, reason, linger: true };
            return self.out.push_back(close);
        }
        self.servers.connections += 1;
        let mut connection = Connection::new(now, target, ClientPeer::at(peer), &self.limits);
        connection.caller = Some(caller);
        self.connections.insert(id, connection);
        self.next_scan = self.next_scan.min(now + super::SCAN);
    }

    /// The server is gone, or waits no more: nobody else will ask for these answers.
    pub(super) fn server_closed(&mut self, connection: &Connection) {
        self.servers.connections -= 1;
        for (group, number) in connection.pending.values() {
            self.forget(*group, *number);
        }
    }

    /// A request on a connection of a local server.
    pub(super) fn call(
        &mut self,
        caller: GroupId,
        target: GroupId,
        client: Option<Client>,
        code_sets: Option<Bytes>,
        message: &Message,
    ) {
        let Some(client) = client else {
            // Its server may end the request in which it made the call before the call is here.
            self.group(target).counters.refused += 1;
            return;
        };
        let giop = message.bytes().clone();
        if giop.len() + ENVELOPE_BYTES_MAX > self.payload_bytes_max {
            return self.refuse_too_large(target, Some(client));
        }
        self.servers.unnamed.push_back(Call { caller, giop, target, client, code_sets });
    }

    /// The next call that wants a name.
    pub(crate) fn next_call(&mut self) -> Option<Call> {
        self.servers.unnamed.pop_front()
    }

    /// A name that was begun and is ended.
    pub(crate) fn next_ended_call(&mut self) -> Option<CallKey> {
        self.servers.ended.pop_front()
    }

    // -- to the outside ---------------------------------------------------------------------

    /// This node is to make the call, as soon as its copy of it is safe.
    pub(crate) fn will_call_outside(&mut self, target: GroupId, key: CallKey, tries: u32) {
        let found = self.group(target).book.iter_mut().find_map(|(number, pending)| {
            let Kind::Nested(_, named) = &mut pending.kind else { return None };
            (named.key == key).then_some((number, named))
        });
        let Some((number, named)) = found else {
            return self.servers.given_up.push_back((key, tries));
        };
        named.is_external = Some(tries);
        self.note_safe_call(target, number);
    }

    pub(super) fn note_safe_call(&mut self, target: GroupId, number: RequestNumber) {
        let Some(pending) = self.groups[target].book.get_mut(number) else { return };
        if pending.is_safe() || canary!(OutsideCallsAtOnce) {
            let Some((key, tries)) = pending.take_external() else { return };
            let envelope = pending.request.clone();
            self.servers.safe.push_back(ExternalCalls { key, tries, envelope });
        }
    }

    /// The view is over, and perhaps what made this node the one that calls: who that is is decided
    /// anew for calls that were not begun.
    pub(super) fn begin_nothing_of_before(&mut self) {
        let Servers { given_up, .. } = &mut self.servers;
        for (_, books) in self.groups.iter_mut().filter(|(_, books)| books.rules.is_outside) {
            given_up.extend(books.book.iter_mut().filter_map(|(_, one)| one.take_external()));
        }
    }

    /// The next call to make outside.
    pub(crate) fn next_external_call(&mut self) -> Option<ExternalCalls> {
        self.servers.safe.pop_front()
    }

    /// A call that this node was to make, and that was not begun.
    pub(crate) fn next_given_up(&mut self) -> Option<(CallKey, u32)> {
        self.servers.given_up.pop_front()
    }

    /// There is an answer to the call, before the place that its next copy gets in the order; or it
    /// counts from now on, by another try of its member than before.
    pub(crate) fn order_again(
        &mut self,
        group: GroupId,
        number: RequestNumber,
        attempt: Option<Attempt>,
    ) {
        let books = self.group(group);
        let Some(pending) = books.book.get_mut(number) else { return };
        if let Some(attempt) = attempt {
            pending.by(attempt);
        }
        pending.begin_again();
        if !books.calls.contains(&number) {
            books.calls.push_back(number);
        }
    }

    /// Its server executes no request that counts.
    pub(crate) fn refuse_call(&mut self, call: &Call) {
        self.group(call.target).counters.refused += 1;
        let bytes = answers::no_call(&call.client);
        self.send(&call.client, bytes);
    }

    /// The request of `caller` in which its server made them is given up: it waits no more.
    pub(crate) fn end_calls(&mut self, caller: GroupId, during: History) {
        let is_of_it = |pending: &Pending| {
            pending.key().is_some_and(|key| key.caller == caller && key.during == during)
        };
        let busy: Vec<GroupId> = self.groups.busy().iter().copied().collect();
        for group in busy {
            let of_it = self.groups[group].book.iter().filter(|(_, pending)| is_of_it(pending));
            let of_it: Vec<RequestNumber> = of_it.map(|(number, _)| number).collect();
            for number in of_it {
                let client = self.forget(group, number).and_then(|pending| pending.waiter.client());
                if let Some(client) = client {
                    self.send(&client, answers::no_call(&client));
                }
            }
        }
    }

    /// Takes a call in, under its name.
    pub(crate) fn take_call(&mut self, now: Instant, call: Call, name: NestedCall) {
        let Call { caller, target: group, client, code_sets, giop } = call;
        let stamp = self.wall_clock_origin.saturating_add(now.as_nanos() / 100);
        // What comes of a call to the outside is as safe as the caller is.
        let is_outside = self.group(group).rules.is_outside;
        let decides = if is_outside { caller } else { group };
        let durable = self.group(decides).rules.durable;
        let Some(connection) = self.connections.get_mut(&client.connection) else {
            self.servers.ended.push_back(name.key);
            return;
        };
        let books = &mut self.groups[group];
        let wait_until = now + books.rules.unavailable_wait;
        let number = books.book.next();
        connection.pending.insert(client.request_id, (group, number));
        let released = books.book.released();
        let nested = Some(name);
        let mut request = RequestEnvelope {
            group,
            number,
            released,
            stamp,
            ft: None,
            nested,
            ended_process: false,
            code_sets,
            giop,
        };
        let message = Ordered::new(request.payload());
        let named = Named { key: name.key, is_external: None };
        books.book.add(Pending {
            request,
            kind: Kind::Nested(message, named),
            waiter: Waiter::Client(client),
            source: None,
            connection: client.connection,
            charged: 0,
            entered: None,
            stage: Stage::Unsubmitted,
            depth: Depth::default(),
            demand: None,
            is_short: false,
            disks: Disks::of(durable),
            executed: Executed::NotAsked,
            submissions: 0,
            process_ends: 0,
            outcome: Outcome::Open,
            deadline: Instant::FAR_FUTURE,
            wait_until,
            wait: None,
        });
        books.calls.push_back(number);
        self.groups.begins(group);
        self.pending += 1;
        self.servers.pending += 1;
        self.deadlines.insert((wait_until, group, number));
    }
}

impl GroupBook {
    /// The next call that may be submitted. Where there is nobody to take it, it is in the end
    /// ordered all the same, so that all replicas of the caller hear the same.
    pub(super) fn next_call(
        &mut self,
        available: impl Fn() -> Availability,
    ) -> Option<(RequestNumber, Bytes)> {
        while let Some(number) = self.calls.front().copied() {
            let Some(message) = self.book.get(number).and_then(Pending::message) else {
                self.calls.pop_front();
                continue;
            };
            let may_go = match available() {
                Availability::Ready => true,
                Availability::NoMember | Availability::Starting | Availability::Waits => {
                    message.insists
                }
                Availability::NoPrimary(_) => false,
            };
            let payload = message.payload.clone();
            return may_go.then(|| {
                self.calls.pop_front();
                (number, payload)
            });
        }
        None
    }
}
