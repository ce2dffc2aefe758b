//! The groups whose leader moves by itself (`placement = "auto"`).
//!
//! What it is not: the decision, which is [`Pilot`]'s. Invariant: without such a group nothing is
//! looked at.

use std::time::{Duration, Instant as Clock};

use quorba_base::{Instant, NodeId};
use quorba_config::{Domain, Group, Placement};
use quorba_engine::NodeSnapshot;
use quorba_engine::replica::GroupId;
use quorba_placement::{Pilot, Seen};

use crate::names::index_of;
use crate::placement::{Counters, Pace, RingTimes};
use crate::status::PaceStatus;

/// Looks in the time for which another leader must be better.
const LOOKS_PER_WATCH: u32 = 6;

/// See the module's text.
pub(crate) struct Pilots {
    domain: Domain,
    all: Vec<Own>,
}

/// A group that moves its leader by itself.
struct Own {
    id: GroupId,
    pilot: Pilot,
    before: Counters,
    looked: Clock,
    look_every: Duration,
}

impl Pilots {
    pub(crate) fn new(domain: Domain, me: NodeId) -> Self {
        let groups = (0..).map(GroupId).zip(&domain.groups);
        let own = |(id, group): (GroupId, &Group)| match group.placement {
            Placement::Manual => None,
            Placement::Auto(watch) => Some(Own {
                id,
                pilot: Pilot::new(me, watch),
                before: Counters::default(),
                looked: Clock::now(),
                look_every: watch / LOOKS_PER_WATCH,
            }),
        };
        let all = groups.filter_map(own).collect();
        Self { domain, all }
    }

    /// When to look next; never without such a group.
    pub(crate) fn due(&self) -> Option<Clock> {
        self.all.iter().map(|own| own.looked + own.look_every).min()
    }

    /// Takes a look; which groups want which leader.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        node: &NodeSnapshot,
        pace: Option<&PaceStatus>,
    ) -> Vec<(GroupId, NodeId)> {
        let ring: Vec<NodeId> = node.order.members.iter().collect();
        let (rotation, exchange) = (node.order.rotation, node.order.exchange);
        let times = RingTimes { rotation, exchange };
        let mut wanted = Vec::new();
        for Own { id, pilot, before, looked, look_every } in &mut self.all {
            let over = looked.elapsed();
            if over < *look_every {
                continue;
            }
            *looked = Clock::now();
            let Some(snapshot) = node.groups.get(*id) else { continue };
            let counters = Counters::of_snapshot(snapshot, node.order.counters.token_visits);
            let mut load = counters.since(before, over, times, ring.clone());
            *before = counters;
            // What clients at other gateways take, this node does not know.
            load.pace = pace.and_then(|pace| Pace::new(pace, index_of(*id)));
            let predictions = load.predict(&self.domain, &self.domain.groups[index_of(*id)]);
            let leader = snapshot.leader;
            let seen = Seen { leader, calls: load.calls(), predictions: &predictions };
            wanted.extend(pilot.look(now, &seen).map(|node| (*id, node)));
        }
        wanted
    }
}
