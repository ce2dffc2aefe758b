//! Where a group's leader should be, by what nodes measure: from two looks at a group to what a
//! call costs with each leader.
//!
//! What it is not: the model; that is `quorba-placement`. Nor the one who moves a leader.
//!
//! Invariant: only differences of counters count, so that what was before the first look counts
//! for nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use quorba_base::NodeId;
use quorba_config::{Domain, Engine, Group};
use quorba_engine::replica::GroupSnapshot;
use quorba_placement::{Clients, Ring, Times, Token, predict};
pub use quorba_placement::{GAIN_PERCENT_MIN, Part, Prediction};

use quorba_admin::status::{CallTimingsStatus, Status};

/// Pauses longer than so many rotations, and the server's time, are the clients' own.
const ROTATIONS_OF_A_CALL: u32 = 4;

/// What a group's clients and its server did between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Time between the looks.
    pub over: Duration,
    /// Ordered requests of each node's gateway.
    pub callers: BTreeMap<NodeId, u64>,
    /// Mean time of the server for a request; zero if it had none.
    pub service: Duration,
    /// Time of a rotation of the token, as the ring's timers have it; zero if none was measured.
    pub rotation: Duration,
    /// Usual time for a message to another node and its answer, where the token rests; zero if
    /// none was measured.
    pub exchange: Duration,
    /// Mean time between two visits of the token, messages on the way included; zero if there was
    /// none. Of a token that rests it says nothing.
    pub circulation: Duration,
    /// Nodes on the ring, in its order.
    pub ring: Vec<NodeId>,
    /// What was measured of a token that goes round; `None` if nothing was.
    pub call_timings: Option<CallTimings>,
}

/// What decides on a ring whose token goes round always. Of the tenths that nodes show the slowest
/// is left out: it is the host's that had something else to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTimings {
    /// A rotation without a message, under load if there was any.
    pub rotation: Duration,
    /// What a message makes a rotation longer.
    pub message: Duration,
    /// What the leader's server takes: equally likely times.
    pub server: Vec<Duration>,
    /// What clients take between a reply and the next request, by the node of their gateway.
    pub clients: BTreeMap<NodeId, Vec<Duration>>,
}

impl CallTimings {
    /// Of what the node says of itself that leads `group`; `None` if it has measured nothing.
    #[must_use]
    pub fn of_status(domain: &Domain, leader: &Status, group: &str) -> Option<Self> {
        let index = leader.groups.iter().position(|one| one.name == group)?;
        let status = leader.call_timings.as_ref()?;
        let mut call_timings = Self::new(status, status.servers_us.get(index)?)?;
        call_timings.hear(domain, leader);
        Some(call_timings)
    }

    /// `server_us`: what the leader's server takes.
    pub(crate) fn new(status: &CallTimingsStatus, server_us: &[f64]) -> Option<Self> {
        Some(Self {
            rotation: of_us(status.rotation_us?),
            message: of_us(status.message_us.unwrap_or(0.0)),
            server: of_all_us(server_us),
            clients: BTreeMap::new(),
        })
    }

    /// Takes in what another node says of its clients.
    pub fn hear(&mut self, domain: &Domain, status: &Status) {
        let times =
            status.call_timings.as_ref().map(|call_timings| of_all_us(&call_timings.client_us));
        if let (Some(node), Some(times)) = (domain.node_id(&status.node), times)
            && !times.is_empty()
        {
            self.clients.insert(node, times);
        }
    }
}

/// Times of which the last, the longest, is left out.
fn of_all_us(all_us: &[f64]) -> Vec<Duration> {
    let without_slowest = all_us.len().saturating_sub(1);
    all_us[..without_slowest].iter().copied().map(of_us).collect()
}

/// What is no time counts as none: it comes from elsewhere.
fn of_us(us: f64) -> Duration {
    Duration::try_from_secs_f64(us / 1e6).unwrap_or_default()
}

/// Times of a ring as one node knows them; zero is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingTimes {
    /// See [`Load::rotation`].
    pub rotation: Duration,
    /// See [`Load::exchange`].
    pub exchange: Duration,
}

/// A group's counters at a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    callers: BTreeMap<NodeId, u64>,
    served: u64,
    served_for: Duration,
    token_visits: u64,
}

impl Counters {
    /// Of what a node says of itself; `None` if it does not know the group.
    #[must_use]
    pub fn of_status(domain: &Domain, status: &Status, group: &str) -> Option<Self> {
        let group = status.groups.iter().find(|one| one.name == group)?;
        let caller =
            |one: &quorba_admin::status::Caller| Some((domain.node_id(&one.node)?, one.requests));
        Some(Self {
            callers: group.callers.iter().filter_map(caller).collect(),
            served: group.served,
            served_for: Duration::from_micros(group.served_us),
            token_visits: status.ring.token_visits,
        })
    }

    pub(crate) fn of_snapshot(group: &GroupSnapshot, token_visits: u64) -> Self {
        Self {
            callers: group.callers.iter().copied().collect(),
            served: group.served.requests,
            served_for: group.served.time,
            token_visits,
        }
    }

    /// What happened since `before`, which was `over` ago.
    #[must_use]
    pub fn since(
        &self,
        before: &Self,
        over: Duration,
        times: RingTimes,
        ring: Vec<NodeId>,
    ) -> Load {
        let earlier = |node: &NodeId| before.callers.get(node).copied().unwrap_or(0);
        let calls = |(node, now): (&NodeId, &u64)| (*node, now.saturating_sub(earlier(node)));
        let served = self.served.saturating_sub(before.served);
        let served_for = self.served_for.saturating_sub(before.served_for);
        let count = u32::try_from(served).unwrap_or(u32::MAX);
        let service = served_for.checked_div(count).unwrap_or_default();
        let callers = self.callers.iter().map(calls).collect();
        let visits = self.token_visits.saturating_sub(before.token_visits);
        let visits = u32::try_from(visits).unwrap_or(u32::MAX);
        let circulation = over.checked_div(visits).unwrap_or_default();
        let RingTimes { rotation, exchange } = times;
        Load { over, callers, service, rotation, exchange, circulation, ring, call_timings: None }
    }
}

impl Load {
    /// Of what the nodes said of themselves at two looks `over` apart, and who leads. `None` if no
    /// node that knows the group has answered both times.
    #[must_use]
    pub fn between(
        domain: &Domain,
        group: &str,
        (before, after): (&[Status], &[Status]),
        over: Duration,
    ) -> Option<(Self, Option<NodeId>)> {
        let of = |status: &Status| status.groups.iter().find(|one| one.name == group).cloned();
        // The leader's node knows what its server takes; any other, what it sees of the callers.
        let leads =
            |status: &&Status| of(status).is_some_and(|g| g.leader.as_ref() == Some(&status.node));
        let works = |status: &&Status| of(status).is_some_and(|group| group.served > 0);
        let primary = |status: &&Status| status.ring.primary;
        let now = (after.iter().find(leads))
            .or_else(|| after.iter().find(works))
            .or_else(|| after.iter().find(primary))
            .or(after.first())?;
        let then = before.iter().find(|one| one.node == now.node && one.pid == now.pid)?;
        let ring = now.ring.members.iter().filter_map(|name| domain.node_id(name)).collect();
        let times = RingTimes {
            rotation: of_us(now.ring.rotation_us.unwrap_or(0.0)),
            exchange: of_us(now.ring.exchange_us.unwrap_or(0.0)),
        };
        let counters = |status| Counters::of_status(domain, status, group);
        let mut load = counters(now)?.since(&counters(then)?, over, times, ring);
        load.call_timings = CallTimings::of_status(domain, now, group);
        if let Some(call_timings) = &mut load.call_timings {
            after.iter().for_each(|status| call_timings.hear(domain, status));
        }
        let leader = of(now)?.leader.and_then(|name| domain.node_id(&name));
        Some((load, leader))
    }

    /// Calls of all gateways.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.callers.values().sum()
    }

    /// What a call costs with each member of `group` on the ring as the leader, the cheapest first.
    /// Without any call all gateways count alike.
    #[must_use]
    pub fn predict(&self, domain: &Domain, group: &Group) -> Vec<Prediction> {
        let nodes = u32::try_from(self.ring.len()).unwrap_or(u32::MAX).max(1);
        let rests = domain.ring.token_rests && domain.ring.engine == Engine::Totem;
        let call_timings = self.call_timings.as_ref().filter(|_| !rests);
        let circulation =
            call_timings.map_or(self.circulation, |call_timings| call_timings.rotation);
        let hop = match rests {
            false => circulation / nodes,
            true if self.exchange.is_zero() => self.rotation / nodes,
            true => self.exchange / 2,
        };
        let ring = Ring {
            order: self.ring.clone(),
            hop,
            token: if rests { Token::Rests } else { Token::Circulates },
            reply: group.reply,
        };
        // Of a token that rests it is not measured, and the same for all.
        let message = call_timings.map_or(Duration::ZERO, |call_timings| call_timings.message);
        let server =
            call_timings.map(|call_timings| &call_timings.server).filter(|times| !times.is_empty());
        let server = server.cloned().unwrap_or_else(|| vec![self.service]);
        let times = Times { server, request: message, reply: message };
        let clients: Vec<Clients> = (self.ring.iter())
            .map(|gateway| {
                let calls = self.callers.get(gateway).copied().unwrap_or(0);
                let think = call_timings
                    .and_then(|call_timings| call_timings.clients.get(gateway))
                    .cloned();
                let think = think.unwrap_or_else(|| vec![self.think(calls)]);
                Clients { gateway: *gateway, calls, think }
            })
            .collect();
        let candidates: Vec<NodeId> =
            self.ring.iter().copied().filter(|node| group.members.contains(*node)).collect();
        predict(&ring, &clients, &times, &candidates)
    }

    /// From a reply to the next request at a gateway: all of the time between two calls if that is
    /// longer than calls take, else what a client's own work takes, for which the server's stands.
    fn think(&self, calls: u64) -> Duration {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let between = self.over.checked_div(calls).unwrap_or(self.over);
        let call = self.rotation * ROTATIONS_OF_A_CALL + self.service;
        if between > call { between } else { self.service }
    }
}
