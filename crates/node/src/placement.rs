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
use quorba_config::{Domain, Engine, Group, Reply};
use quorba_engine::replica::GroupSnapshot;
use quorba_placement::{Clients, ReplyPath, Ring, Times, Token, predict};
pub use quorba_placement::{Part, Prediction};

use crate::status::Status;

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
    /// Mean time between two visits of the token, messages on the way included; zero if there was
    /// none. Of a token that rests it says nothing.
    pub circulation: Duration,
    /// Nodes on the ring, in its order.
    pub ring: Vec<NodeId>,
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
        let caller = |one: &crate::status::Caller| Some((domain.node_id(&one.node)?, one.requests));
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
        rotation: Duration,
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
        Load { over, callers, service, rotation, circulation, ring }
    }
}

impl Load {
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
        let ring = Ring {
            order: self.ring.clone(),
            hop: if rests { self.rotation } else { self.circulation } / nodes,
            token: if rests { Token::Rests } else { Token::Circulates },
            reply: match group.reply {
                Reply::Direct => ReplyPath::Direct,
                Reply::Ordered => ReplyPath::Ordered,
            },
        };
        // What a message takes more than the token alone is not measured, and the same for all.
        let times = Times { server: self.service, request: Duration::ZERO, reply: Duration::ZERO };
        let clients: Vec<Clients> = (self.ring.iter())
            .map(|gateway| {
                let calls = self.callers.get(gateway).copied().unwrap_or(0);
                Clients { gateway: *gateway, calls, think: self.think(calls) }
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
