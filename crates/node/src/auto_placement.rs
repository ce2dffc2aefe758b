//! The groups whose leader moves by itself (`placement = "auto"`).
//!
//! What it is not: the decision, which is [`AutoPlacement`]'s. Invariant: without such a group
//! nothing is looked at.

use std::time::{Duration, Instant as Clock};

use quorba_base::{Instant, NodeId};
use quorba_config::{Domain, Group, Placement};
use quorba_engine::NodeSnapshot;
use quorba_engine::replica::{GroupId, GroupMap};
use quorba_placement::{AutoPlacement, Seen};

use crate::call_timings;
use crate::placement::{CallTimings, Counters, RingTimes};
use std::sync::Arc;

/// Looks in the time for which another leader must be better.
const LOOKS_PER_WATCH: u32 = 6;

/// See the module's text.
pub(crate) struct AutoPlacements {
    domain: Arc<Domain>,
    me: NodeId,
    all: GroupMap<Own>,
    /// When to look next; no later than any group wants.
    due: Option<Clock>,
}

/// A group that moves its leader by itself.
struct Own {
    group: Arc<Group>,
    auto_placement: AutoPlacement,
    before: Counters,
    looked: Clock,
    look_every: Duration,
}

impl AutoPlacements {
    /// Of the groups that were opened, for node `me`.
    pub(crate) fn new(domain: Arc<Domain>, me: NodeId) -> Self {
        Self { domain, me, all: GroupMap::new(), due: None }
    }

    /// There is such a group from now on, or it is another one.
    pub(crate) fn open(&mut self, id: GroupId, group: &Arc<Group>) {
        let Placement::Auto(watch) = group.placement else { return self.close(id) };
        let look_every = watch / LOOKS_PER_WATCH;
        let same = |own: &&mut Own| own.look_every == look_every;
        if let Some(own) = self.all.get_mut(id).filter(same) {
            own.group = Arc::clone(group);
            return;
        }
        let own = Own {
            group: Arc::clone(group),
            auto_placement: AutoPlacement::new(self.me, watch),
            before: Counters::default(),
            looked: Clock::now(),
            look_every,
        };
        let due = own.looked + look_every;
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
        self.all.insert(id, own);
    }

    /// There is no such group any more.
    pub(crate) fn close(&mut self, id: GroupId) {
        self.all.remove(id);
    }

    /// When to look next; never without such a group.
    pub(crate) fn due(&self) -> Option<Clock> {
        self.due
    }

    /// The groups whose leaders may move by themselves.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        self.all.ids().collect()
    }

    /// Takes a look; which groups want which leader.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        node: &NodeSnapshot,
        call_timings: Option<&call_timings::CallTimings>,
    ) -> Vec<(GroupId, NodeId)> {
        let of_ring = call_timings.map(call_timings::CallTimings::of_ring);
        let ring: Vec<NodeId> = node.order.members.iter().collect();
        let (rotation, exchange) = (node.order.rotation, node.order.exchange);
        let times = RingTimes { rotation, exchange };
        let mut wanted = Vec::new();
        for (id, own) in self.all.iter_mut() {
            let Own { group, auto_placement, before, looked, look_every } = own;
            let over = looked.elapsed();
            if over < *look_every {
                continue;
            }
            *looked = Clock::now();
            let Some(snapshot) = node.groups.get(id) else { continue };
            let counters = Counters::of_snapshot(snapshot, node.order.counters.token_visits);
            let mut load = counters.since(before, over, times, ring.clone());
            *before = counters;
            // What clients at other gateways take, this node does not know.
            let measured = of_ring.as_ref().zip(call_timings);
            load.call_timings = measured.and_then(|(ring, call_timings)| {
                CallTimings::new(ring, &call_timings.server_us(id))
            });
            let predictions = load.predict(&self.domain, group);
            let leader = snapshot.leader;
            let seen = Seen { leader, calls: load.calls(), predictions: &predictions };
            wanted.extend(auto_placement.look(now, &seen).map(|node| (id, node)));
        }
        self.due = self.all.values().map(|own| own.looked + own.look_every).min();
        wanted
    }
}
