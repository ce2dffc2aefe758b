//! What operators want of a node.

use super::Node;
use crate::output::{Event, Output};
use core::net::IpAddr;
use quorba_base::{Duration, Instant};
#[cfg(doc)]
use quorba_replica::DriverOutput;
use quorba_replica::{
    Backup, Command, Event as ReplicaEvent, GroupId, Moment, RecentPage, RecentQuery,
    RecentRequest, RequestNumber,
};

impl Node {
    /// An operator wants to change `group`; [`DriverOutput::Commanded`] with the same `id` says
    /// what became of it, unless this node is thrown out of the primary component before.
    pub fn handle_command(&mut self, now: Instant, group: GroupId, id: u64, command: Command) {
        self.replica.handle_command(group, id, command);
        self.unsettled = Some(now);
    }

    /// An operator gives up the request of `group` with this number, counted from its first; the
    /// local server has it, or it waits for it. Else as [`Self::handle_command`].
    pub fn handle_skip(&mut self, now: Instant, group: GroupId, id: u64, number: u64) {
        self.replica.handle_skip(group, id, number);
        self.unsettled = Some(now);
    }

    /// The same of a request that was answered, and behind which servers end.
    pub fn handle_skip_answered(&mut self, now: Instant, group: GroupId, id: u64, number: u64) {
        self.replica.handle_skip_answered(group, id, number);
        self.unsettled = Some(now);
    }

    /// An operator wants the state of `group` as its local member has it at a place of its own in
    /// the order; [`DriverOutput::BackedUp`] with the same `id` gives it, or says why not.
    pub fn handle_backup(&mut self, now: Instant, group: GroupId, id: u64) {
        self.replica.handle_backup(group, id);
        self.unsettled = Some(now);
    }

    /// An operator wants `group` to have the state of a backup, whatever it has now;
    /// [`DriverOutput::Restored`] with the same `id` says what became of it.
    pub fn handle_restore(&mut self, now: Instant, group: GroupId, id: u64, backup: Backup) {
        self.replica.handle_restore(group, id, backup);
        self.unsettled = Some(now);
    }

    /// What the server of `group` may know of the request that it executes.
    #[must_use]
    pub fn moment(&self, group: GroupId) -> Option<Moment> {
        self.replica.moment(group)
    }

    /// Whose request that is: the same number for all that one client, or one gateway, asks.
    #[must_use]
    pub fn caller(&self, group: GroupId) -> Option<u64> {
        self.replica.caller(group)
    }

    /// What `group` was delivered lately, and whole messages if they are recorded.
    pub fn recent(&mut self, now: Instant, group: GroupId, query: &RecentQuery) -> RecentPage {
        self.replica.recent(now, group, query)
    }

    /// What is remembered of the request of `group` with this number, counted from its first.
    #[must_use]
    pub fn request(&self, group: GroupId, number: u64) -> Option<RecentRequest> {
        self.replica.request(group, number)
    }

    /// The address of the client that waits for a request; its `number` is that of this node's
    /// gateway in this boot, as in [`RecentRequest::gateway`].
    #[must_use]
    pub fn client_of(&self, group: GroupId, number: u64) -> Option<IpAddr> {
        self.gateway.client_of(group, RequestNumber(number))
    }

    /// The request of `group` that a client of this node's gateway has waited for the longest, for
    /// how long, and its address; named as for [`Self::client_of`].
    #[must_use]
    pub fn longest_wait(&self, now: Instant, group: GroupId) -> Option<(u64, Duration, IpAddr)> {
        let (number, time, client) = self.gateway.longest_wait(now, group)?;
        Some((number.0, time, client))
    }

    /// What is remembered of the request of `group` that this node's gateway took in, in this boot,
    /// under this number.
    #[must_use]
    pub fn own_request(&self, group: GroupId, number: u64) -> Option<RecentRequest> {
        self.replica.own_request(group, number)
    }

    /// Tells what the replica tells, and of a request that has ended without a reply first whose it
    /// was, if that is known here.
    pub(super) fn tell(&mut self, event: ReplicaEvent) {
        if let ReplicaEvent::RequestEnded { group, request, .. } = event
            && let Some(one) = self.request(group, request)
            && (one.gateway.0, one.gateway.1) == self.me
            && let Some(peer) = self.client_of(group, one.gateway.2)
        {
            let number = one.gateway.2;
            self.out.push_back(Output::Event(Event::Unanswered { group, number, peer }));
        }
        self.out.push_back(Output::Event(Event::Replica(event)));
    }
}
