//! Requests that servers do not answer, with names and the addresses of this node's clients.
//!
//! Invariant: of addresses the last few are remembered, and each once.

use super::Reporter;
use crate::recent::{escaped, escaped_key};
use quorba_admin::requests::EndKind;
use quorba_admin::status::{
    EndedStatus, EndsBehindStatus, RequestStatus, ServerStatus, StateRefusedStatus, StuckStatus,
    millis,
};
use quorba_config::Group;
use quorba_engine::replica::{
    EndingsSnapshot, GroupId, GroupSnapshot, NoReply, RecentOutcome, RecentRequest, RequestEnd,
    StateRefused,
};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// So many addresses are remembered.
const CLIENTS_MAX: usize = 64;

/// So many requests of clients are told that somebody may be at.
const WAITING_TOLD: usize = 16;

/// Whose requests those were that have no reply, by group and by number at this node's gateway.
#[derive(Default)]
pub(super) struct Clients(VecDeque<(GroupId, u64, IpAddr)>);

impl Clients {
    fn remember(&mut self, group: GroupId, number: u64, client: IpAddr) {
        self.0.retain(|(of, it, _)| (*of, *it) != (group, number));
        self.0.push_back((group, number, client));
        if self.0.len() > CLIENTS_MAX {
            self.0.pop_front();
        }
    }

    pub(super) fn forget(&mut self, group: GroupId) {
        self.0.retain(|(of, _, _)| *of != group);
    }

    fn find(&self, group: GroupId, number: u64) -> Option<IpAddr> {
        let found = self.0.iter().find(|(of, it, _)| (*of, *it) == (group, number));
        found.map(|(_, _, client)| *client)
    }
}

/// How a request ended.
pub(crate) const fn end_kind(end: RequestEnd) -> EndKind {
    match end {
        RequestEnd::NoReply(NoReply::ConnectionEnded | NoReply::NotAReply) => EndKind::NoReply,
        RequestEnd::NoReply(NoReply::Rejected) => EndKind::Rejected,
        RequestEnd::NoReply(NoReply::NeverTaken) => EndKind::NeverTaken,
        RequestEnd::EndsServers => EndKind::EndsServers,
        RequestEnd::Skipped => EndKind::Skipped,
    }
}

impl Reporter {
    /// Whose request this is, by its number at this node's gateway.
    pub(crate) fn remember_client(&mut self, group: GroupId, number: u64, client: IpAddr) {
        self.clients.remember(group, number, client);
    }

    /// The number of the request that the local server is at, if this node's gateway took it in.
    pub(crate) fn own_waiting(&self, endings: &EndingsSnapshot) -> Option<u64> {
        let (_, _, request) = endings.waiting.as_ref()?;
        self.own_number(request.as_ref()?)
    }

    fn own_number(&self, request: &RecentRequest) -> Option<u64> {
        let (node, boot, number) = request.gateway;
        ((node, boot) == (self.me, self.incarnation)).then_some(number)
    }

    /// The address of its client, if that is known here.
    pub(crate) fn client(&self, group: GroupId, request: &RecentRequest) -> Option<IpAddr> {
        self.clients.find(group, self.own_number(request)?)
    }

    /// Requests of this node's clients that were not answered in `stuck_ms`: their numbers at its
    /// gateway.
    pub(crate) fn unanswered(&self, group: GroupId) -> Vec<u64> {
        let numbers = self.clients.0.iter().filter(|(of, _, _)| *of == group);
        numbers.map(|(_, number, _)| *number).collect()
    }

    /// Of these, those that may be what another node's server is at; the last ones.
    pub(crate) fn waiting(
        &self,
        now: quorba_base::Instant,
        group: GroupId,
        requests: Vec<RecentRequest>,
    ) -> Vec<RequestStatus> {
        let is_stuck = |request: &RecentRequest| {
            let since = Duration::from_nanos(now.since(request.at).as_nanos() as u64);
            request.outcome == RecentOutcome::Open && since >= self.stuck_after(group)
        };
        let mut stuck: Vec<_> = requests.into_iter().filter(is_stuck).collect();
        let stuck = stuck.split_off(stuck.len().saturating_sub(WAITING_TOLD));
        stuck.iter().map(|one| self.request(group, one.index, Some(one))).collect()
    }

    pub(crate) fn request(
        &self,
        group: GroupId,
        number: u64,
        request: Option<&RecentRequest>,
    ) -> RequestStatus {
        let Some(request) = request else {
            return RequestStatus { number, ..RequestStatus::default() };
        };
        RequestStatus {
            number,
            operation: escaped(&request.operation),
            key: escaped_key(&request.object_key),
            bytes: request.request_bytes.into(),
            gateway: self.name_of(request.gateway.0).into(),
            client: self.client(group, request).map(|client| client.to_string()),
        }
    }

    pub(super) fn ends_behind(
        &self,
        group: GroupId,
        endings: &EndingsSnapshot,
    ) -> Option<EndsBehindStatus> {
        let (number, ends, request) = endings.ends_behind.as_ref()?;
        let request = self.request(group, *number, request.as_ref());
        Some(EndsBehindStatus { request, ends: *ends })
    }

    pub(super) fn ended(&self, group: GroupId, endings: &EndingsSnapshot) -> Vec<EndedStatus> {
        let ended = endings.ended.iter().map(|(number, end, request)| EndedStatus {
            request: self.request(group, *number, request.as_ref()),
            end: end_kind(*end),
            how: end.text().into(),
        });
        ended.collect()
    }

    /// `uptime`: since the beginning of the engine's time.
    pub(super) fn stuck(
        &self,
        (group, config): (GroupId, &Group),
        endings: &EndingsSnapshot,
        uptime: Duration,
    ) -> Vec<StuckStatus> {
        let Some((number, since, request)) = &endings.waiting else { return Vec::new() };
        let since = uptime.saturating_sub(Duration::from_nanos(since.as_nanos()));
        if since < config.stuck {
            return Vec::new();
        }
        let request = self.request(group, *number, request.as_ref());
        let since_ms = millis(since);
        vec![StuckStatus { request, since_ms }]
    }
}

pub(super) fn refused(state: Option<&StateRefused>) -> Option<StateRefusedStatus> {
    let StateRefused { times, refusal, bytes } = state?.clone();
    Some(StateRefusedStatus { times, reason: refusal.said, minor: refusal.minor, bytes })
}

/// What the supervisor says of a server, and what the engine has seen of it.
pub(super) fn server(replica: &GroupSnapshot, server: ServerStatus) -> ServerStatus {
    let figures = replica.endings.server;
    ServerStatus {
        reconnects: figures.reconnects,
        dropped: figures.dropped,
        refused_calls: figures.refused_calls,
        closes: figures.closes.into(),
        ..server
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn of_many_addresses_the_last_ones_are_remembered_each_once() {
        let mut clients = Clients::default();
        let client = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        clients.remember(GroupId(0), 1, client(1));
        clients.remember(GroupId(1), 1, client(9));
        for _ in 0..CLIENTS_MAX {
            clients.remember(GroupId(0), 2, client(2));
        }
        assert_eq!(clients.find(GroupId(0), 1), Some(client(1)));
        assert_eq!(clients.find(GroupId(1), 1), Some(client(9)));
        for number in 3..3 + CLIENTS_MAX as u64 {
            clients.remember(GroupId(0), number, client(3));
        }
        assert_eq!(clients.find(GroupId(0), 1), None);
        assert_eq!(clients.find(GroupId(0), 3), Some(client(3)));
    }
}
