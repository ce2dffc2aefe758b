//! What is held for clients, and who is read, waits or loses because of it.
//!
//! What it is not: how much each may, which is [`crate::limits`]. Invariants: a client is refused
//! or slowed in front of the order only; what is ordered is charged until it is executed, and its
//! reply until it is sent or dropped; who holds less than its share is read.

use super::Gateway;
use crate::answers;
use crate::fair::cost;
use crate::limits::Held;
use crate::output::{CloseReason, ConnectionId, Output};
use crate::pending::Pending;
use core::net::IpAddr;
use quorba_base::Instant;
use quorba_replica::{GroupId, RequestNumber};

/// What a request takes besides its bytes, about.
pub(super) const CALL_BYTES: usize = 512;

impl Gateway {
    /// Whether the connection may not be read on now.
    pub(super) fn must_wait(&mut self, now: Instant, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return true };
        if connection.caller.is_some() {
            // Clients may wait for what a server calls: its calls must not wait for theirs.
            return connection.pending.len() >= self.limits.pending_per_connection;
        }
        let (group, peer) = (connection.group, connection.peer.address);
        let throttled = connection.throttled_until.filter(|until| *until > now);
        connection.throttled_until = throttled.or_else(|| self.peers.owes_until(now, peer));
        let is_crowded = connection.throttled_until.is_some()
            || connection.calls >= self.limits.pending_per_connection
            || connection.unsent > self.limits.unsent_bytes;
        let begun = connection.framer.waiting_since_partial();
        if self.stopping || is_crowded || !(self.has_room(group) || self.peers.has_few(peer)) {
            return true;
        }
        let group_held = self.groups[group].held;
        self.peers.is_full(peer, group_held) && !(begun && self.peers.leads(peer, id))
    }

    pub(super) fn set_paused(&mut self, id: ConnectionId, wait: bool) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if wait == connection.paused {
            return;
        }
        connection.paused = wait;
        self.out.push_back(if wait {
            self.paused.insert(id);
            Output::ClientPause { connection: id }
        } else {
            self.paused.remove(&id);
            Output::ClientResume { connection: id }
        });
    }

    /// Whether one more request of `group` may wait. Half of the room belongs to the groups, in
    /// equal shares, and the rest to whoever comes first: a group that takes in more than it
    /// answers leaves the others theirs.
    fn has_room(&self, group: GroupId) -> bool {
        if self.pending < self.limits.pending / 2 {
            return true;
        }
        let share = self.limits.pending / 2 / self.groups.len().max(1);
        let holdings = |book: &super::GroupBook| share.saturating_sub(book.book.len());
        let busy = self.groups.busy();
        let of_idle = (self.groups.len() - busy.len()) * share;
        let of_busy = || busy.iter().map(|id| holdings(&self.groups[*id])).sum::<usize>();
        self.pending < self.limits.pending
            && (holdings(&self.groups[group]) > 0
                || self.pending + of_idle + of_busy() < self.limits.pending)
    }

    // -- what is charged --------------------------------------------------------------------

    /// What the connection's framer holds has changed.
    pub(super) fn count_unread(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.caller.is_some() {
            return;
        }
        let (before, after) = (connection.unread, connection.framer.buffered_bytes());
        connection.unread = after;
        let peer = connection.peer.address;
        if !connection.framer.waiting_since_partial() {
            self.peers.leads_no_more(peer, id);
        }
        self.peers.recount(peer, Held::Unread, before, after);
    }

    /// A request is taken in. Local servers are charged nothing.
    pub(super) fn charge(&mut self, group: GroupId, number: RequestNumber) {
        let books = &mut self.groups[group];
        let Some(pending) = books.book.get_mut(number) else { return };
        pending.charged = pending.bytes() + CALL_BYTES;
        books.held += pending.charged;
        let (charged, id) = (pending.charged, pending.connection);
        let Some(peer) = pending.source else { return };
        self.peers.pending(peer, false);
        self.peers.recount(peer, Held::Call, 0, charged);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.calls += 1;
        }
    }

    /// Its reply is there and has to wait.
    pub(super) fn charge_reply(&mut self, group: GroupId, number: RequestNumber, bytes: usize) {
        let books = &mut self.groups[group];
        let Some(pending) = books.book.get_mut(number) else { return };
        pending.charged += bytes;
        books.held += bytes;
        if let Some(peer) = pending.source {
            self.peers.recount(peer, Held::Call, 0, bytes);
        }
    }

    /// It is over.
    pub(super) fn discharge(&mut self, group: GroupId, pending: &Pending) {
        self.group(group).held -= pending.charged;
        let Some(peer) = pending.source else { return };
        self.peers.pending(peer, true);
        self.peers.recount(peer, Held::Call, pending.charged, 0);
        if let Some(connection) = self.connections.get_mut(&pending.connection) {
            connection.calls -= 1;
        }
    }

    /// The driver says how much of what was sent to a client it has not taken. Without a word it
    /// has taken all.
    pub(crate) fn unsent(&mut self, now: Instant, id: ConnectionId, bytes: usize) {
        self.now = now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (before, peer) = (connection.unsent, connection.peer.address);
        connection.note_unsent(now, bytes);
        let is_client = connection.caller.is_none();
        if is_client {
            self.peers.recount(peer, Held::Unsent, before, bytes);
        }
        if bytes <= self.limits.unsent_bytes {
            self.order_aside(id);
        }
        if is_client && self.peers.holds_too_much(peer) {
            self.lose_connection_of(peer);
        }
        self.shed();
        let waits = self.must_wait(now, id);
        if waits {
            self.set_paused(id, true);
        } else if self.paused.contains(&id) {
            self.read_on(now, id);
        }
    }

    /// Whether what the connection has asked is not ordered now, because it does not take replies.
    pub(super) fn leaves_replies(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_some_and(|c| c.unsent > self.limits.unsent_bytes)
    }

    /// What was set aside waits for its turn again.
    pub(super) fn order_aside(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.aside.is_empty() {
            return;
        }
        for (group, number) in core::mem::take(&mut connection.aside) {
            let pending = self.group(group).book.get(number);
            // Since then all may have been ordered anew.
            if pending.is_some_and(|pending| pending.entered.is_none()) {
                self.park(group, number);
            }
        }
    }

    /// The request waits for its turn, at its place; if it is still wanted.
    pub(super) fn park(&mut self, group: GroupId, number: RequestNumber) {
        let books = self.group(group);
        if let Some(pending) = books.book.get(number) {
            let (source, cost) = (pending.source, cost(pending.bytes()));
            let queue = if pending.is_read() { &mut books.reads } else { &mut books.parked };
            queue.push(source, number, cost);
        }
    }

    // -- who loses --------------------------------------------------------------------------

    /// While there is more than the node may hold, whoever holds the most loses something: first
    /// requests that nobody has been given, then a connection.
    pub(super) fn shed(&mut self) {
        while self.peers.is_overfull() {
            let Some(peer) = self.peers.largest() else { return };
            if !self.refuse_last_of(peer) && !self.lose_connection_of(peer) {
                // What is left of it is ordered: that ends by itself.
                return;
            }
        }
    }

    fn refuse_last_of(&mut self, peer: IpAddr) -> bool {
        let last = |books: &super::GroupBook| {
            books.parked.last_of(Some(peer)).max(books.reads.last_of(Some(peer)))
        };
        let busy = self.groups.busy().iter();
        let found = busy.filter_map(|id| Some((*id, last(&self.groups[*id])?)));
        let longest = found.max_by_key(|(id, _)| self.groups[*id].held);
        let Some((group, number)) = longest else { return false };
        let Some(pending) = self.forget(group, number) else { return false };
        self.group(group).counters.refused += 1;
        if let Some(client) = pending.waiter.client() {
            self.send(&client, answers::over_budget(&client));
        }
        true
    }

    /// Closes the connection of this address that most is held for; false if there is none.
    fn lose_connection_of(&mut self, peer: IpAddr) -> bool {
        let of_it =
            self.connections.iter().filter(|(_, c)| c.peer.address == peer && c.caller.is_none());
        let held = |c: &crate::connection::Connection| c.unread + c.unsent;
        let Some((id, connection)) = of_it.max_by_key(|(_, c)| held(c)) else { return false };
        if held(connection) == 0 {
            return false;
        }
        let (id, group) = (*id, connection.group);
        self.group(group).counters.refused += 1;
        self.close(id, CloseReason::OverBudget);
        true
    }
}
