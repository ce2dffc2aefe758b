//! The groups whose leader moves by itself (`placement = "auto"`).
//!
//! What it is not: the decision, which is [`Pilot`]'s. Invariant: without such a group nothing is
//! looked at.

use std::time::{Duration, Instant as Clock};

use quorba_base::{Instant, NodeId};
use quorba_config::{Domain, Placement};
use quorba_engine::NodeSnapshot;
use quorba_engine::replica::GroupId;
use quorba_placement::{Pilot, Seen};

use crate::placement::Counters;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// See the module's text.
pub(crate) struct Pilots {
    domain: Domain,
    all: Vec<(GroupId, Pilot, Counters)>,
    looked: Clock,
}

impl Pilots {
    pub(crate) fn new(domain: Domain, me: NodeId) -> Self {
        let groups = (0..).map(GroupId).zip(&domain.groups);
        let own = groups.filter(|(_, group)| group.placement == Placement::Auto);
        let all = own.map(|(id, _)| (id, Pilot::new(me), Counters::default())).collect();
        Self { domain, all, looked: Clock::now() }
    }

    /// When to look next; never without such a group.
    pub(crate) fn due(&self) -> Option<Clock> {
        (!self.all.is_empty()).then(|| self.looked + LOOK_EVERY)
    }

    /// Takes a look; which groups want which leader.
    pub(crate) fn look(&mut self, now: Instant, node: &NodeSnapshot) -> Vec<(GroupId, NodeId)> {
        let over = self.looked.elapsed();
        self.looked = Clock::now();
        let ring: Vec<NodeId> = node.order.members.iter().collect();
        let mut wanted = Vec::new();
        for (id, pilot, before) in &mut self.all {
            let Some(snapshot) = node.groups.get(usize::from(id.0)) else { continue };
            let counters = Counters::of_snapshot(snapshot, node.order.counters.token_visits);
            let load = counters.since(before, over, node.order.rotation, ring.clone());
            *before = counters;
            let predictions = load.predict(&self.domain, &self.domain.groups[usize::from(id.0)]);
            let leader = snapshot.leader;
            let seen = Seen { leader, calls: load.calls(), predictions: &predictions };
            wanted.extend(pilot.look(now, &seen).map(|node| (*id, node)));
        }
        wanted
    }
}
