//! Whose calls those are that nobody answers: only this gateway knows its clients' addresses.
//!
//! What it is not: kept here. Invariant: nothing of this is on the way of a call that is answered.

use super::Gateway;
use crate::connection::Connection;
use crate::output::{ConnectionId, Event, Output};
use crate::pending::{Pending, Waiter};
use core::net::IpAddr;
use quorba_base::{Duration, Instant};
use quorba_replica::{GroupId, RequestNumber};

impl Gateway {
    /// The address of the client that waits for this request.
    pub(crate) fn client_of(&self, group: GroupId, number: RequestNumber) -> Option<IpAddr> {
        let pending = self.groups.get(group)?.book.get(number)?;
        self.peer_of(pending)
    }

    /// The request that a client has waited for the longest, for how long, and its address.
    pub(crate) fn longest_wait(
        &self,
        now: Instant,
        group: GroupId,
    ) -> Option<(RequestNumber, Duration, IpAddr)> {
        let book = &self.groups.get(group)?.book;
        let (number, pending, peer) = book
            .iter()
            .filter(|(_, pending)| !pending.is_held())
            .find_map(|(number, pending)| Some((number, pending, self.peer_of(pending)?)))?;
        let left = pending.deadline.since(now);
        Some((number, self.limits.request.saturating_sub(left), peer))
    }

    /// Of a client, not of a server that calls.
    fn peer_of(&self, pending: &Pending) -> Option<IpAddr> {
        let connection = self.connections.get(&pending.waiter.client()?.connection)?;
        connection.caller.is_none().then_some(connection.peer.address)
    }

    /// Says whose request it is that the gateway does not wait for any more.
    pub(super) fn name_client(&mut self, group: GroupId, number: RequestNumber, pending: &Pending) {
        if let Some(peer) = self.peer_of(pending) {
            let number = number.0;
            self.out.push_back(Output::Event(Event::Unanswered { group, number, peer }));
        }
    }

    /// The same of all for which a client waits that has ended its sending: it may be gone.
    pub(super) fn name_calls(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(&id) else { return };
        let peer = connection.peer.address;
        for (group, number) in connection.pending.values() {
            let group = *group;
            if self.groups[group].book.get(*number).is_some_and(Pending::may_be_executed) {
                let number = number.0;
                self.out.push_back(Output::Event(Event::Unanswered { group, number, peer }));
            }
        }
    }

    /// The same of all for which a client waited whose connection has ended.
    pub(super) fn leaves_calls(&mut self, connection: &Connection) {
        let peer = connection.peer.address;
        let is_told = connection.half_closed || connection.caller.is_some();
        for (group, number) in connection.pending.values() {
            let group = *group;
            let Some(pending) = self.group(group).book.get_mut(*number) else { continue };
            pending.waiter = Waiter::Gone;
            let was_given = pending.may_be_executed() || pending.entered.is_some();
            if !was_given && !pending.is_nested() {
                // Nobody was given it, and nobody waits for it.
                self.forget(group, *number);
                continue;
            }
            if pending.may_be_executed() && !is_told {
                let number = number.0;
                self.out.push_back(Output::Event(Event::Unanswered { group, number, peer }));
            }
        }
    }
}
