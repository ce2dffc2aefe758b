//! How connections of clients come and go.
//!
//! What it is not: what is said on them. Invariants: who is turned away is told so in the answer to
//! its first request, which was not executed; a client that has ended its sending gets what it is
//! owed.

use super::{Gateway, SCAN, SHARED_PORT};
use crate::access::ClientPeer;
use crate::answers;
use crate::connection::Connection;
use crate::limits::{Held, Welcome};
use crate::output::{CloseReason, ConnectionId, Event, Output};
use quorba_base::Instant;
use quorba_giop::{Body, Message};
use quorba_replica::GroupId;

impl Gateway {
    pub(crate) fn opened(
        &mut self,
        now: Instant,
        id: ConnectionId,
        group: GroupId,
        peer: ClientPeer,
    ) {
        let address = peer.address;
        self.now = now;
        if self.stopping {
            self.group(group).counters.refused += 1;
            let reason = CloseReason::Stopping;
            let close = Output::ClientClose { connection: id, reason, linger: true };
            return self.out.push_back(close);
        }
        if group != SHARED_PORT && self.groups.get(group).is_none() {
            // It was deleted while the client connected.
            let reason = CloseReason::Deleted;
            let close = Output::ClientClose { connection: id, reason, linger: true };
            return self.out.push_back(close);
        }
        let connections = self.connections.len() - self.peers.turned_away();
        let is_full = connections >= self.limits.connections;
        // Only for who may come in is anybody asked to go.
        let is_full = is_full && !(self.peers.may_connect(address) && self.make_room(now));
        let welcome = self.peers.connect(now, address, is_full);
        if welcome != Welcome::Come {
            self.group(group).counters.refused += 1;
            if let Some((connections, refused)) = self.peers.say_refused(now, address) {
                let event = Event::TurnedAway { peer: address, connections, refused };
                self.out.push_back(Output::Event(event));
            }
        }
        if welcome == Welcome::Close {
            let reason = CloseReason::TooMany;
            let close = Output::ClientClose { connection: id, reason, linger: true };
            return self.out.push_back(close);
        }
        let mut connection = Connection::new(now, group, peer, &self.limits);
        connection.turned_away = welcome == Welcome::TurnAway;
        self.connections.insert(id, connection);
        self.next_scan = self.next_scan.min(now + SCAN);
    }

    /// A message on a connection that is one too many. Its first request is answered: it was not
    /// executed, and another gateway may have room.
    pub(super) fn turn_away(&mut self, now: Instant, id: ConnectionId, message: &Message) {
        match message.parse() {
            Ok(Body::Request(request)) => {
                if request.response_expected() {
                    let bytes = answers::too_many_connections(message, request.request_id());
                    self.out.push_back(Output::ClientSend { connection: id, bytes });
                }
                self.say_goodbye(id);
                self.close(id, CloseReason::TooMany);
            }
            // ORBs ask this before their first request.
            Ok(Body::LocateRequest(request)) => {
                let object_key = request.target().object_key();
                self.charge_rate(now, id);
                self.locate(id, message, request.request_id(), object_key);
            }
            Ok(Body::CancelRequest { .. }) => self.charge_answer(id),
            Ok(Body::CloseConnection) => self.close(id, CloseReason::ByClient),
            _ => self.malformed(id, CloseReason::Malformed),
        }
    }

    /// The client is gone. Its calls run on, because they may be executed already, but nobody
    /// waits for their replies.
    pub(crate) fn closed(&mut self, id: ConnectionId) {
        self.order_aside(id);
        let Some(connection) = self.connections.remove(&id) else { return };
        self.paused.remove(&id);
        self.buffered_bytes -= connection.framer.buffered_bytes();
        if connection.caller.is_some() {
            self.server_closed(&connection);
        } else {
            self.leave(id, &connection);
        }
        self.leaves_calls(&connection);
    }

    /// What its address had because of it.
    fn leave(&mut self, id: ConnectionId, connection: &Connection) {
        let peer = connection.peer.address;
        self.peers.leads_no_more(peer, id);
        self.peers.recount(peer, Held::Unread, connection.unread, 0);
        self.peers.recount(peer, Held::Unsent, connection.unsent, 0);
        if connection.turned_away {
            self.peers.turned_away_gone(peer);
        } else {
            self.peers.disconnect(peer);
        }
        if !self.peers.has_connections(peer) {
            for id in self.peers.called_by(peer) {
                if let Some(books) = self.groups.get_mut(id) {
                    books.parked.forget(Some(peer));
                    books.reads.forget(Some(peer));
                }
            }
            self.next_scan = self.next_scan.min(self.now + SCAN);
        }
    }

    pub(super) fn close(&mut self, id: ConnectionId, reason: CloseReason) {
        // Without last words there is nothing to wait for, and a call that the client writes now
        // must fail rather than vanish.
        let silent = self.leaves_without_words(id, reason);
        let linger = !silent && reason != CloseReason::OverBudget;
        self.out.push_back(Output::ClientClose { connection: id, reason, linger });
        self.closed(id);
    }

    /// Nothing more comes from the client, but it may still read: the connection ends when it has
    /// been sent all that it waits for.
    pub(crate) fn half_closed(&mut self, now: Instant, id: ConnectionId) {
        self.now = now;
        self.end_held_of(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.half_closed = true;
        let is_owed = !connection.pending.is_empty();
        if connection.caller.is_some() || connection.turned_away || !is_owed {
            return self.close(id, CloseReason::ByClient);
        }
        self.name_calls(id);
    }

    /// Closes the connection if its client has ended its sending and is owed nothing.
    pub(super) fn end_if_owed_nothing(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(&id) else { return };
        let has_more = connection.framer.waiting_since_partial() && connection.paused;
        if connection.half_closed && connection.pending.is_empty() && !has_more {
            self.close(id, CloseReason::ByClient);
        }
    }
}
