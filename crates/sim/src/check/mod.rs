//! The promises, one checker per file, and what they remember of a run.
//!
//! What they are not: part of the simulation; a checker looks and changes nothing. Invariant: each
//! can fail; the canaries show it.

mod acknowledged;
mod at_most_once;
mod by_application;
mod calls;
pub(crate) mod depth;
pub(crate) mod endings;
mod equality;
mod exactly_once;
#[cfg(test)]
pub(crate) mod forged;
mod linearizable;
mod liveness;
pub(crate) mod memory;
mod memory_lost;
mod moments;
mod one_order;
mod one_primary;
mod real_time;
mod replies;
mod stateless;

use crate::ledger::{Call, Outcome};
use crate::names::{group_id, index_of};
use crate::plan::{GroupPlan, Plan};
use crate::report::{INVARIANTS, Violation};
use crate::servant::{Log, Mark, Reference, Wish};
use crate::server::Server;
use crate::world::{World, ms, node_id};
use quorba_base::{Instant, NodeId, NodeSet};
use quorba_engine::replica::primary::Basis;
use quorba_engine::replica::{
    Concurrency, Event as ReplicaEvent, GroupId, GroupSnapshot, MemberState, OutReason, RingId,
    Style,
};
use quorba_engine::{Event as EngineEvent, NodeSnapshot};
use std::collections::{BTreeMap, BTreeSet};

/// More are not collected.
const VIOLATIONS_MAX: usize = 10;

/// What is remembered per group.
#[derive(Clone, Default)]
pub(crate) struct GroupFacts {
    pub(crate) positions: one_primary::Positions,
    pub(crate) order: real_time::Order,
    /// The same for each client at each gateway, where reads may miss what others were told.
    pub(crate) seen: BTreeMap<(usize, usize), real_time::Order>,
    /// There is no history; see [`stateless`].
    pub(crate) stateless: bool,
    /// Each server has a history of its own; see [`by_application`].
    pub(crate) by_application: bool,
    members: by_application::Members,
    /// What was executed by anybody, of a group without a history.
    pub(crate) executed: BTreeSet<Reference>,
    /// How much time has passed for it.
    time: memory::Time,
    /// How the history began of which something was acknowledged.
    pub(crate) first: Option<Mark>,
    /// What a fresh server executed first, last.
    pub(crate) first_executed: Option<Mark>,
    /// When state was last lost for a reason that the fault model excuses.
    pub(crate) lost_at: Option<Instant>,
    /// When a node last heard of a member that came, went, or was on its way.
    pub(crate) moved_at: Option<Instant>,
    /// Requests that it was delivered, as far as a node has shown.
    delivered: u64,
    /// No member has the state any more, and none will.
    pub(crate) dead: bool,
    /// Nobody promises that there is such a group: it is not created yet, or about to be deleted.
    pub(crate) gone: bool,
    /// Its servers may wait for such a group for ever: nobody can say what became of their calls.
    pub(crate) stuck: bool,
}

impl GroupFacts {
    fn new(plan: &GroupPlan) -> Self {
        let stateless = plan.style == Style::Stateless;
        let by_application = plan.by_application;
        Self { stateless, by_application, gone: plan.late, ..Self::default() }
    }

    /// Whether the members have one history, which replies tell of.
    pub(crate) fn has_history(&self) -> bool {
        !self.stateless && !self.by_application
    }

    /// Whether it goes on when all is quiet.
    pub(crate) fn is_alive(&self) -> bool {
        !self.dead && !self.stuck && !self.gone
    }

    /// Whether the promises hold for a call: it began after the last excused loss.
    pub(crate) fn counts(&self, call: &Call) -> bool {
        self.lost_at.is_none_or(|at| call.invoked > at)
    }
}

/// See the module's text.
pub(crate) struct Checks {
    pub(crate) violations: Vec<Violation>,
    pub(crate) groups: Vec<GroupFacts>,
    decisions: one_primary::Decisions,
    /// What groups that are not durable went on from where the domain did not.
    memory_from: BTreeMap<RingId, (NodeSet, Basis)>,
    /// A majority has lost its memory, or may have.
    majority_ended: bool,
    pub(crate) memories: memory_lost::Memories,
    moments: moments::Moments,
    pub(crate) depths: depth::Depths,
    pub(crate) endings: endings::Endings,
    pub(crate) delays: exactly_once::Delays,
    /// A majority may lose its memory in this run.
    pub(crate) catastrophe: bool,
    pub(crate) crashes: u64,
    pub(crate) server_ends: u64,
    pub(crate) losses: u64,
}

impl Checks {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            violations: Vec::new(),
            groups: plan.groups.iter().map(GroupFacts::new).collect(),
            decisions: one_primary::Decisions::default(),
            memory_from: BTreeMap::new(),
            majority_ended: false,
            memories: memory_lost::Memories::default(),
            moments: moments::Moments::default(),
            depths: depth::Depths::default(),
            endings: endings::Endings::default(),
            delays: exactly_once::Delays::default(),
            catastrophe: plan.catastrophe,
            crashes: 0,
            server_ends: 0,
            losses: 0,
        }
    }

    pub(crate) fn violate(&mut self, invariant: &'static str, at: Instant, text: String) {
        assert!(INVARIANTS.contains(&invariant), "{invariant} is none of the checkers");
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { invariant, at_ns: at.as_nanos(), text });
        }
    }

    pub(crate) fn node_crashed(&mut self, node: usize, at: Instant) {
        self.crashes += 1;
        self.groups.iter_mut().for_each(|group| group.time.forget(node));
        self.endings.absent(node, at);
    }

    pub(crate) fn server_ended(&mut self, _server: &Server) {
        self.server_ends += 1;
    }

    /// A client got a reply. `weaker`: from which gateway, if reads of the group need not be newer
    /// than what that one has told the same client.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        reference: Reference,
        call: &Call,
        mark: Mark,
        weaker: Option<usize>,
    ) {
        let facts = &mut self.groups[call.group];
        if !facts.has_history() || !facts.counts(call) {
            return;
        }
        let seen = weaker.map(|gateway| (call.client, gateway));
        let reads_less = seen.filter(|_| call.wish == Wish::Peek);
        let conflict = facts.positions.note(reference, call, mark);
        let order = reads_less.is_none().then_some(&mut facts.order);
        let late = order.and_then(|order| order.note(now, reference, call, mark));
        let seen = seen.map(|seen| facts.seen.entry(seen).or_default());
        let less = seen.and_then(|order| order.note(now, reference, call, mark));
        for (invariant, text) in [("one primary", conflict), ("real time", late), ("session", less)]
            .into_iter()
            .filter_map(both)
        {
            self.violate(invariant, now, text);
        }
    }

    /// State was lost in a way that the fault model excuses.
    pub(crate) fn lost(&mut self, now: Instant, group: usize) {
        self.losses += 1;
        self.moments.forget(group_id(group));
        let facts = &mut self.groups[group];
        facts.lost_at = Some(now);
        facts.positions = one_primary::Positions::default();
        facts.order = real_time::Order::default();
        facts.seen.clear();
        facts.first = None;
    }
}

fn both<A, B>((a, b): (A, Option<B>)) -> Option<(A, B)> {
    b.map(|b| (a, b))
}

/// A member that is in and serves, with its log.
pub(crate) struct Serving<'a> {
    pub(crate) node: usize,
    pub(crate) server: usize,
    pub(crate) log: &'a Log,
}

impl World {
    /// An event of a node's engine.
    pub(crate) fn note_event(&mut self, node: usize, event: &EngineEvent) {
        match event {
            EngineEvent::Replica(event) => {
                self.say(|| format!("n{node} {}", describe(event)));
                self.note_replica_event(node, event);
            }
            EngineEvent::View(view) => {
                self.say(|| {
                    format!("n{node} {:?} view {} {:?}", view.kind, view.ring, view.members)
                });
            }
            EngineEvent::Unanswered { .. } | EngineEvent::TurnedAway { .. } => {}
            EngineEvent::Refused { node: other, reason } => {
                self.transcript.whisper(self.now, || {
                    format!("n{node} refuses a datagram of {other}: {reason:?}")
                });
            }
        }
    }

    fn note_replica_event(&mut self, node: usize, event: &ReplicaEvent) {
        if let ReplicaEvent::Member { group, .. } = event {
            self.checks.groups[index_of(*group)].moved_at = Some(self.now);
        }
        self.note_absences(node, event);
        match event {
            ReplicaEvent::Primary { view, members, current, basis } => {
                let plan = (self.plan.nodes, self.plan.quorum);
                let broken = self.checks.decisions.note(plan, *view, *members, *current, *basis);
                if let Some(text) = broken {
                    self.checks.violate("one primary", self.now, format!("n{node}: {text}"));
                }
                if matches!(basis, Basis::MemoryLost | Basis::ColdStart) {
                    self.memory_lost(node, *view, *basis);
                }
                let (who, boot) = (node_id(node), self.hosts[node].disk.incarnation);
                self.checks.memories.note_formed(who, boot, *view);
            }
            ReplicaEvent::MemoryFrom { view, current, basis } => {
                self.note_memory_from(node, *view, *current, *basis);
            }
            // Replicas are deterministic here, so nobody differs unless it was made to.
            ReplicaEvent::Diverged { group, node: other, request, .. }
                if !self.plan.lies && !self.differs(*other, *group) =>
            {
                let text =
                    format!("n{node} says that {other} differs at {request}, and it does not");
                self.checks.violate("divergence", self.now, text);
            }
            // With two in, one that lies is enough.
            ReplicaEvent::Disagreement { group, request, .. }
                if !self.plan.lies && !self.any_differs(*group) =>
            {
                let text = format!("n{node} says that replies differ at {request}");
                self.checks.violate("divergence", self.now, text);
            }
            ReplicaEvent::Member {
                group,
                state: MemberState::Out { reason: OutReason::TotalLoss, .. },
                ..
            } => {
                // The state of a durable group is on disks, whoever says that it is lost.
                let group = index_of(*group);
                self.checks.groups[group].dead = !self.plan.groups[group].durable;
                self.note_total_loss(group);
                self.note_lost(group);
                self.strand_callers(group);
            }
            ReplicaEvent::Member {
                group,
                node: member,
                state: MemberState::Out { reason: OutReason::Removed, .. },
                ..
            } if *member == node_id(node) => self.membership.is_removed(node, *group),
            ReplicaEvent::Changed { group, command } => {
                self.membership.changed(node, *group, *command);
                self.note_restore(node, index_of(*group), *command);
            }
            ReplicaEvent::Member { group, node: member, state: MemberState::In { .. }, .. } => {
                self.note_in(node, *member, index_of(*group));
            }
            _ => {}
        }
    }

    /// A member is in, as a node sees it.
    fn note_in(&mut self, node: usize, member: NodeId, group: usize) {
        self.note_state_of(node, member, group);
        self.note_member_in(node, member, group);
        self.checks.groups[group].dead = false;
        self.checks.endings.goes_on(group);
        if self.plan.groups[group].fresh_after_loss {
            self.note_fresh_member(node, group);
        }
    }

    /// A member is in, and perhaps the first of a new history.
    fn note_fresh_member(&mut self, node: usize, group: usize) {
        let Some(engine) = self.hosts[node].node.as_ref() else { return };
        let snapshot = engine.snapshot();
        let Some(table) = snapshot.groups.get(group_id(group)) else { return };
        let is_in = |(_, state): &&(NodeId, MemberState)| matches!(state, MemberState::In { .. });
        // Requests may have been delivered to it in the same step.
        let is_alone = table.members.iter().filter(is_in).count() == 1;
        if is_alone {
            self.checks.moments.begins(self.now, group_id(group));
        }
        // Or so many that the beginning is not to be seen any more (seed 2064 of `groups`).
        let delivered = &mut self.checks.groups[group].delivered;
        if table.history.count == 0 || is_alone && table.history.count < *delivered {
            *delivered = table.history.count;
            self.begins_anew(group);
        }
    }

    /// A group is dead: whoever calls it, or calls one that calls it, may wait for ever.
    fn strand_callers(&mut self, group: usize) {
        for caller in 0..self.plan.groups.len() {
            let calls = self.plan.groups[caller].calls.contains(&group);
            if calls && !std::mem::replace(&mut self.checks.groups[caller].stuck, true) {
                self.strand_callers(caller);
            }
        }
    }

    /// Groups that are not durable go on from other nodes than the domain.
    fn note_memory_from(&mut self, node: usize, view: RingId, current: NodeSet, basis: Basis) {
        let decided = *self.checks.memory_from.entry(view).or_insert((current, basis));
        if decided != (current, basis) {
            let text = format!("n{node} of memory in {view:?}: {decided:?}, {current:?} {basis:?}");
            self.checks.violate("one primary", self.now, text);
        }
        if matches!(basis, Basis::MemoryLost | Basis::ColdStart) {
            if !self.checks.catastrophe && !self.checks.majority_ended {
                let text = format!("n{node} decided {basis:?} of memory, and only a few ended");
                self.checks.violate("one primary", self.now, text);
            }
            self.memory_lost(node, view, basis);
        }
    }

    /// A majority ends at once.
    pub(crate) fn lose_what_is_not_durable(&mut self) {
        self.checks.majority_ended = true;
        for group in 0..self.plan.groups.len() {
            if self.plan.disk.is_some() && !self.plan.groups[group].durable {
                self.checks.lost(self.now, group);
            }
        }
    }

    fn memory_lost(&mut self, node: usize, view: RingId, basis: Basis) {
        let up = self.hosts.iter().enumerate().filter(|(_, host)| host.is_up());
        let up: Vec<_> = up.map(|(index, host)| (node_id(index), host.disk.incarnation)).collect();
        let Plan { nodes, quorum, .. } = self.plan;
        // Whether durable groups have lost something is seen in what they have.
        let may_be = self.checks.catastrophe
            || self.plan.disk.is_some()
            || quorum.is_dynamic() && self.checks.memories.is_lost(nodes, quorum, view, &up);
        if !may_be {
            let text = format!("n{node} decided {basis:?}, but enough nodes kept their memory");
            self.checks.violate("one primary", self.now, text);
        }
        for group in 0..self.plan.groups.len() {
            if !self.plan.groups[group].durable {
                self.checks.lost(self.now, group);
                self.note_return(node, group);
            }
        }
    }

    /// A group whose state nobody had any more may be back from logs, and nobody comes in then: its
    /// members are in as they were when all nodes ended. It is judged, and waited for, like others
    /// (seed 430149 of `groups`).
    fn note_return(&mut self, node: usize, group: usize) {
        let engine = self.hosts[node].node.as_ref();
        let Some(snapshot) = engine.map(|engine| engine.snapshot()) else { return };
        let Some(table) = snapshot.groups.get(group_id(group)) else { return };
        let mut states = table.members.iter().map(|(_, state)| state);
        if states.any(|state| matches!(state, MemberState::In { .. })) {
            self.checks.groups[group].dead = false;
        }
    }

    /// A gateway has answered a call: the group's time has come so far.
    pub(crate) fn note_time(&mut self, call: &Call, gateway: usize) {
        let kept = ms(self.plan.groups[call.group].retention_ms);
        self.checks.groups[call.group].time.advance(gateway, call.invoked, kept);
    }

    /// Remembers how the history began that a reply speaks of.
    pub(crate) fn note_beginning(&mut self, group: usize, mark: Mark) {
        if !self.checks.groups[group].has_history() {
            return;
        }
        if self.checks.groups[group].first.is_some() {
            if mark.length == 0 && self.plan.groups[group].fresh_after_loss {
                // Somebody sees an empty log again.
                self.begins_anew(group);
            }
            return;
        }
        if mark.length == 1 {
            // Whoever said so may be gone already.
            self.checks.groups[group].first = Some(mark);
            return;
        }
        let live = self.live_servers(group_id(group));
        let mut logs = live.into_iter().map(|server| &self.servers[server].log);
        let log = logs.find(|log| log.len() >= mark.length && log.mark(mark.length) == mark);
        self.checks.groups[group].first = log.filter(|log| log.len() > 0).map(|log| log.mark(1));
    }

    /// A request was executed. With `on_total_loss = "fresh"` a group may begin again after its
    /// last member: everything before is lost, as configured. If a member with the state is left
    /// beside the new one, the comparison of the members' logs finds it.
    pub(crate) fn note_fresh_start(&mut self, group: GroupId, end: Mark) {
        let index = index_of(group);
        if !self.checks.groups[index].has_history() {
            return;
        }
        if end.length != 1 || !self.plan.groups[index].fresh_after_loss {
            return;
        }
        // Replies of the former life may still come, also if none has come so far.
        let before = self.checks.groups[index].first_executed.replace(end);
        if before.is_some_and(|before| before != end) {
            self.say(|| format!("g{index} begins anew"));
            self.checks.lost(self.now, index);
        }
    }

    /// A group lost its state and went on without, as configured.
    fn begins_anew(&mut self, group: usize) {
        let facts = &mut self.checks.groups[group];
        // Something may have been acknowledged although nobody who lived on knew how it began, and
        // a reply to what was executed may be on its way (seed 71208 of `styles`).
        let was_executed = facts.first_executed.take().is_some();
        if was_executed || facts.first.is_some() || !facts.positions.is_empty() {
            self.say(|| format!("g{group} begins anew"));
            self.checks.lost(self.now, group);
        }
    }

    /// Compares the nodes with each other, in the middle of a run.
    pub(crate) fn inspect(&mut self) {
        self.note_memory();
        let snapshots = self.snapshots();
        for (id, table) in snapshots.iter().flatten().flat_map(|node| node.groups.iter()) {
            let delivered = &mut self.checks.groups[index_of(id)].delivered;
            *delivered = (*delivered).max(table.history.count);
        }
        let mut found = Vec::new();
        found.extend(one_order::check(self, &snapshots));
        found.extend(memory::check(self, &snapshots));
        found.extend(self.check_catalogs().map(|text| ("catalog", text)));
        for (invariant, text) in found {
            self.checks.violate(invariant, self.now, text);
        }
    }

    /// Everything that must hold when all is quiet again.
    pub(crate) fn conclude(&mut self) {
        let snapshots = self.snapshots();
        let mut found = Vec::new();
        for group in 0..self.plan.groups.len() {
            if self.checks.groups[group].stuck || self.checks.groups[group].gone {
                continue;
            }
            found.extend(self.too_many_deaths(group).map(|text| ("endings", text)));
            if self.checks.groups[group].stateless {
                found.extend(stateless::check(self, group));
                continue;
            }
            if self.checks.groups[group].by_application {
                found.extend(stateless::check(self, group));
                found.extend(by_application::check(self, &snapshots, group));
                continue;
            }
            let broken = linearizable::check(self, group);
            found.extend(broken.map(|text| ("linearizability", text)));
            let serving = self.serving(&snapshots, group);
            // Between two objects, whose calls run side by side, there is no order to compare.
            let in_parts = self.plan.groups[group].concurrency == Concurrency::PerObject;
            // Nobody can tell whose state is right where half of them has executed something.
            let mut nodes = snapshots.iter().flatten();
            let is_split = nodes.any(|node| self.is_split(node, group));
            if !is_split {
                found.extend(equality::check(&serving, in_parts));
            }
            // Where no state can be given, those that come in execute all again, and the doubt may
            // be younger than what the member before them has replied (seed 101098 of `styles`).
            let may_differ = is_split && !self.plan.groups[group].state_object;
            found.extend(self.restored_wrongly(group).map(|text| ("restore", text)));
            found.extend(self.backed_up_wrongly(group).map(|text| ("backup", text)));
            for member in &serving {
                found.extend(exactly_once::check(self, group, member));
                found.extend(at_most_once::check(self, group, member));
                if self.checks.groups[group].dead && !self.plan.groups[group].durable {
                    continue;
                }
                found.extend(acknowledged::check(self, group, member));
                if !in_parts && !may_differ {
                    found.extend(replies::check(self, group, member));
                }
            }
        }
        let alive = |group: usize| {
            let facts = &self.checks.groups[group];
            let counts = facts.is_alive() && facts.lost_at.is_none();
            if counts { self.serving(&snapshots, group) } else { Vec::new() }
        };
        let all: Vec<_> = (0..self.plan.groups.len()).map(alive).collect();
        if all.iter().all(|serving| !serving.is_empty()) {
            found.extend(calls::check(self, &all));
        }
        found.extend(memory::check_quiet(self, &snapshots));
        found.extend(self.check_catalogs_at_peace().map(|text| ("catalog", text)));
        for (invariant, text) in found {
            self.checks.violate(invariant, self.now, text);
        }
    }

    pub(crate) fn snapshots(&self) -> Vec<Option<NodeSnapshot>> {
        self.hosts.iter().map(|host| host.node.as_ref().map(|node| node.snapshot())).collect()
    }

    /// Whether everything runs again; if not, why.
    pub(crate) fn unsettled(&self) -> Option<String> {
        liveness::unsettled(self, &self.snapshots())
    }

    /// Members beside the one of `node` that are in, in their own node's opinion, each with its
    /// node and its server.
    fn others_in<'a>(
        &'a self,
        snapshots: &'a [Option<NodeSnapshot>],
        group: usize,
        node: usize,
    ) -> impl Iterator<Item = (usize, &'a GroupSnapshot, Option<&'a Server>)> {
        let tables = snapshots.iter().enumerate().filter_map(move |(other, snapshot)| {
            Some((other, snapshot.as_ref()?.groups.get(group_id(group))?))
        });
        let others = tables.filter(move |(other, table)| *other != node && is_in(table, *other));
        others.map(move |(other, table)| {
            (other, table, self.server_of(other, group).map(|server| &self.servers[server]))
        })
    }

    /// Whether somebody beside `node` has the group's state, and a server that works or none.
    pub(crate) fn has_other_member(
        &self,
        snapshots: &[Option<NodeSnapshot>],
        group: usize,
        node: usize,
    ) -> bool {
        self.others_in(snapshots, group, node).any(|(other, table, server)| {
            let hangs = server.is_some_and(|server| server.hangs || server.is_strange());
            let has_state =
                matches!(table.local, Some("serving" | "standing by" | "starting its server"));
            has_state && !hangs && self.membership.stays(group, other)
        })
    }

    /// The members of `group` that are in and serve, in their own node's opinion; with those that
    /// stand by, whose servers have executed a beginning of what the others have. None of a group
    /// whose members need not be alike.
    pub(crate) fn serving(
        &self,
        snapshots: &[Option<NodeSnapshot>],
        group: usize,
    ) -> Vec<Serving<'_>> {
        let has_history = self.checks.groups[group].has_history();
        if has_history { self.members_in(snapshots, group) } else { Vec::new() }
    }

    /// The same, whatever they need have alike.
    fn members_in(&self, snapshots: &[Option<NodeSnapshot>], group: usize) -> Vec<Serving<'_>> {
        let mut serving = Vec::new();
        for (node, snapshot) in snapshots.iter().enumerate() {
            let Some(snapshot) = snapshot else { continue };
            let Some(table) = snapshot.groups.get(group_id(group)) else { continue };
            let has_state = matches!(table.local, Some("serving" | "standing by"));
            let has_state = has_state && !table.waits_for_memory;
            let supervisor = self.hosts[node].supervisors[group].as_ref();
            let Some(server) = supervisor.and_then(|s| s.server) else { continue };
            if is_in(table, node) && has_state && self.servers[server].alive {
                serving.push(Serving { node, server, log: &self.servers[server].log });
            }
        }
        serving
    }
}

fn is_in(table: &GroupSnapshot, node: usize) -> bool {
    table.members.iter().any(|(member, state)| {
        usize::from(member.index()) == node && matches!(state, MemberState::In { .. })
    })
}

fn describe(event: &ReplicaEvent) -> String {
    match event {
        ReplicaEvent::Primary { view, members, current, basis } => {
            let (seq, by) = (view.seq, view.representative);
            format!("primary {seq}:{by} of {members:?}, up to date {current:?} ({basis:?})")
        }
        ReplicaEvent::Blocked { view, reason } => {
            format!("blocked {}:{}: {}", view.seq, view.representative, reason.text())
        }
        ReplicaEvent::Member { group, node, state, .. } => {
            let group = index_of(*group);
            format!("g{group} member {node} {state:?}")
        }
        ReplicaEvent::Opened { group } => format!("g{} takes requests", index_of(*group)),
        other => format!("{other:?}"),
    }
}

/// Replies that still count, by call.
pub(crate) fn acknowledged_calls(
    world: &World,
    group: usize,
) -> impl Iterator<Item = (Reference, &Call, Mark)> {
    let facts = &world.checks.groups[group];
    world.ledger.calls.iter().filter_map(move |(reference, call)| match call.outcome {
        Outcome::Acknowledged { mark, .. } if call.group == group && facts.counts(call) => {
            Some((*reference, call, mark))
        }
        _ => None,
    })
}
