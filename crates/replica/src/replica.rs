//! The replica of one node: views, the decision after each, and the groups.
//!
//! Invariants: messages are applied in a primary component only, in delivery order; what is
//! applied of one is always a beginning of its order, so that "up to here" says what a node has,
//! and a message behind a gap counts nowhere; a view in which nodes are behind is a primary
//! component from the delivery of the group tables on, for all.

mod agreement;
mod backup;
mod catalog;
mod compaction;
pub(crate) mod config;
mod deferred;
mod disk;
mod groups;
mod held;
mod log_repair;
mod memory_groups;
mod nested;
mod operators;
mod outside;
mod peers;
mod reads;
mod recovery;
mod reentrant;

use self::agreement::Agreed;
use self::groups::{Groups, Mode};
pub use self::operators::Reach;
use crate::calls::nested::Calls;
use crate::group::{Group, GroupSnapshot};
use crate::messages::catalog::Catalog;
use crate::messages::envelope::Envelope;
use crate::messages::hello::{Hello, Lineage, Record};
use crate::messages::log::MemoryGroups;
use crate::output::{Availability, Event, OrderOutput, Outbox, Output};
use crate::primary::{Blocked, Statement};
use crate::replica::config::ReplicaConfig;
use crate::table::DownReason;
use crate::words::group_map::GroupMap;
use crate::words::history::History;
use crate::words::ids::{ChannelId, GroupId, RingId};
use crate::words::place::{NodeContext, Place};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Instant, NodeId, NodeSet, canary};

/// Room for so many outputs is kept.
const OUTPUTS_KEPT: usize = 1024;

/// A regular view of the ordering layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicaView {
    /// Its name.
    pub id: RingId,
    /// Its nodes with the boot in which they take part.
    pub members: Vec<(NodeId, u64)>,
}

impl ReplicaView {
    fn nodes(&self) -> NodeSet {
        self.members.iter().map(|(node, _)| *node).collect()
    }
}

/// A message in its agreed place.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Who sent it.
    pub origin: NodeId,
    /// In which boot.
    pub incarnation: u64,
    /// The origin's count of its messages.
    pub ticket: u64,
    /// What it says.
    pub payload: Bytes,
    /// Messages before it are missing here, at the end of a ring, and at all who move together.
    pub behind_gap: bool,
}

/// Where the node stands, for status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrimaryStatus {
    /// No view yet, or its nodes have not all spoken.
    Forming,
    /// In a primary component, up to date.
    Primary,
    /// In a primary component, waiting for the group tables.
    CatchingUp,
    /// In a component that must not serve.
    Blocked(Blocked),
}

enum Phase {
    Forming,
    Syncing {
        view: ReplicaView,
        statements: BTreeMap<NodeId, Statement>,
        held_back: Vec<Delivered>,
    },
    Primary,
    /// The view is to be a primary component as soon as the group tables, which some of its nodes
    /// lack, and what else it waits for, are delivered.
    Agreed(Box<Agreed>),
    Blocked(Blocked),
}

/// See the crate's text.
pub struct Replica {
    config: ReplicaConfig,
    here: NodeContext,
    phase: Phase,
    groups: Groups,
    /// Which there are.
    catalog: catalog::CatalogPart,
    /// Nodes that messages pass to.
    linked: NodeSet,
    /// The log is gone through.
    is_replaying: bool,
    calls: Calls,
    outside: outside::Part,
    held: held::Held,
    /// What is on disk.
    record: Record,
    lineage: Option<Lineage>,
    /// Messages applied since `lineage` was decided.
    prefix: u64,
    history: History,
    /// Where groups that are not durable stand, if that is not where the domain does.
    memory_groups: Option<MemoryGroups>,
    /// This node's own messages that were delivered where they do not count; those that concern
    /// its members are sent again when they do.
    lost: Vec<Bytes>,
    disk: disk::Disk,
    out: Outbox,
}

impl Replica {
    /// A replica that has seen no view.
    #[must_use]
    pub fn new(mut config: ReplicaConfig) -> Self {
        let (recovered, catalog) = (config.recovered.take(), core::mem::take(&mut config.catalog));
        if let Some(recovered) = recovered {
            let mut replica = Self::without_memory(config.clone(), catalog.clone());
            if replica.recover(recovered) {
                return replica;
            }
        }
        Self::without_memory(config, catalog)
    }

    fn without_memory(config: ReplicaConfig, catalog: Catalog) -> Self {
        let (node, incarnation) = (config.me, config.incarnation);
        let here = NodeContext { node, incarnation, place: Place::begin(node) };
        let mut replica = Self {
            record: config.record.clone(),
            disk: disk::Disk::new(&config),
            outside: outside::Part::new(config.outside.clone()),
            config,
            here,
            phase: Phase::Forming,
            groups: Groups::default(),
            catalog: catalog::CatalogPart::new(catalog, true),
            linked: NodeSet::EMPTY,
            is_replaying: false,
            calls: Calls::default(),
            held: held::Held::default(),
            lineage: None,
            prefix: 0,
            history: History::EMPTY,
            memory_groups: None,
            lost: Vec::new(),
            out: Outbox::new(),
        };
        replica.define_all();
        replica
    }

    /// The next effect to carry out.
    pub fn poll(&mut self) -> Option<Output> {
        let next = self.out.pop_front();
        if next.is_none() {
            let mode = self.mode();
            if !self.groups.is_quiet(mode) {
                self.groups.look(mode);
            }
            // Where all groups said something at the same time.
            if self.out.capacity() > OUTPUTS_KEPT {
                self.out.shrink_to(OUTPUTS_KEPT);
            }
        }
        next
    }

    /// When [`Self::handle_timeout`] is wanted.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let groups = self.groups.deadline(self.mode());
        groups.into_iter().chain(self.mending_deadline()).min()
    }

    /// Whether `group` can take a request now.
    #[must_use]
    pub fn availability(&self, group: GroupId) -> Availability {
        match &self.phase {
            Phase::Primary if self.is_outside(group) => Availability::Ready,
            Phase::Primary if self.stands_elsewhere(group) => Availability::Waits,
            Phase::Primary => {
                let Some(group) = self.groups.get(group) else {
                    return Availability::NoMember;
                };
                if group.table().in_set().is_empty() {
                    let starting = !group.table().opened;
                    if starting { Availability::Starting } else { Availability::NoMember }
                } else if group.is_stateless() && group.callee().is_none() {
                    Availability::NoMember
                } else if group.table().opened {
                    Availability::Ready
                } else {
                    Availability::Starting
                }
            }
            Phase::Blocked(reason) => Availability::NoPrimary(Some(*reason)),
            _ => Availability::NoPrimary(None),
        }
    }

    /// Where the node stands.
    #[must_use]
    pub fn status(&self) -> PrimaryStatus {
        match &self.phase {
            Phase::Forming | Phase::Syncing { .. } => PrimaryStatus::Forming,
            Phase::Primary => PrimaryStatus::Primary,
            Phase::Agreed(_) => PrimaryStatus::CatchingUp,
            Phase::Blocked(reason) => PrimaryStatus::Blocked(*reason),
        }
    }

    /// Figures of every group.
    #[must_use]
    pub fn group_snapshots(&self) -> GroupMap<GroupSnapshot> {
        self.groups.iter().map(|(id, group)| (id, self.snapshot_of(id, group))).collect()
    }

    /// Figures of those of these groups that there are.
    #[must_use]
    pub fn group_snapshots_of(&self, groups: &[GroupId]) -> GroupMap<GroupSnapshot> {
        let known = groups.iter().filter_map(|id| Some((*id, self.groups.get(*id)?)));
        known.map(|(id, group)| (id, self.snapshot_of(id, group))).collect()
    }

    fn snapshot_of(&self, id: GroupId, group: &Group) -> GroupSnapshot {
        let waits = self.is_primary() && self.stands_elsewhere(id);
        group.snapshot(self.lacks_state(id), waits)
    }

    /// The digest of everything applied so far: equal on nodes that are in step.
    #[must_use]
    pub fn history(&self) -> History {
        self.history
    }

    /// A regular view: every node says what it has, and the last word decides.
    pub fn handle_view(&mut self, view: ReplicaView) {
        self.end_reads();
        self.give_up_operations();
        self.interrupt_changes();
        let hello = Hello {
            view: view.id,
            record: self.record.clone(),
            since: self.disk.since,
            lineage: self.lineage.clone(),
            prefix: self.prefix,
            branch: self.history.digest,
            memory_groups: self.memory_position(),
            catalog: self.catalog_mark(),
        };
        self.out.push_back(OrderOutput::Submit(Envelope::Hello(hello).encode()).into());
        let statements = BTreeMap::new();
        let syncing = Phase::Syncing { view, statements, held_back: Vec::new() };
        match core::mem::replace(&mut self.phase, syncing) {
            // The view ended before it was decided: nobody applied any of it.
            Phase::Syncing { held_back, .. } => self.disregard(held_back),
            Phase::Agreed(agreed) => self.disregard(agreed.held_back),
            Phase::Forming | Phase::Primary | Phase::Blocked(_) => {}
        }
    }

    /// Messages that do not count here.
    fn disregard(&mut self, messages: Vec<Delivered>) {
        if canary!(LostStaysLost) {
            return;
        }
        let me = (self.here.node, self.here.incarnation);
        let mine = messages.into_iter().filter(|d| (d.origin, d.incarnation) == me);
        let groups = &self.groups;
        let is_awaited = |payload: &Bytes| match Envelope::decode(payload.clone()) {
            Ok(Envelope::Reply { group, to, .. }) => {
                groups.get(group).is_some_and(|group| group.says_again(&to))
            }
            _ => concerns_members(payload),
        };
        self.lost.extend(mine.map(|d| d.payload).filter(is_awaited));
    }

    /// The next message of the order.
    pub fn handle_delivery(&mut self, now: Instant, delivered: Delivered) {
        match &mut self.phase {
            Phase::Primary if delivered.behind_gap => self.disregard([delivered].into()),
            Phase::Primary => self.apply(now, delivered),
            // What makes a component counts behind a gap, too: all of it was delivered, and what is
            // missing did not count.
            Phase::Syncing { .. } => self.sync(now, delivered),
            Phase::Agreed(_) => self.complete(now, delivered),
            Phase::Forming | Phase::Blocked(_) => self.disregard([delivered].into()),
        }
    }

    /// Applies a message in a primary component.
    fn apply(&mut self, now: Instant, delivered: Delivered) {
        self.history = extend(self.history, &delivered);
        self.prefix += 1;
        self.log_message(&delivered);
        if self.memory_groups.is_some() && self.leaves_out(&delivered) {
            return;
        }
        let Delivered { origin, incarnation, payload, .. } = delivered;
        let Ok(envelope) = Envelope::decode(payload) else {
            return self.out.push_back(Output::Event(Event::Skipped { origin }));
        };
        if !matches!(envelope, Envelope::ReadMark { .. }) {
            self.disk.note_change(self.prefix);
        }
        let by = (origin, incarnation);
        if let Envelope::Define { id, operation, change } = envelope {
            self.deliver_define(now, by, id, (operation, change));
            return self.mind_callers(now);
        }
        let Some(id) = target(&envelope).filter(|_| !self.is_void(&envelope)) else { return };
        let in_primary = matches!(self.phase, Phase::Primary);
        let Some(calls_below) = self.admit(by, &envelope) else {
            if in_primary {
                // Its server may have a read to answer beside what it waits for.
                self.with_group(now, id, |_, _, _| {});
                // A server outside is no group: its calls that are held are looked at here.
                self.mind_held();
            }
            return;
        };
        if let Envelope::Outside { group, key, tries, report } = &envelope {
            return self.deliver_report(by, (*group, *key), *tries, report);
        }
        if self.groups.get(id).is_none() {
            return self.out.push_back(Output::Event(Event::Skipped { origin }));
        }
        let taken = self.deliver(now, by, id, envelope, calls_below);
        if in_primary {
            self.with_group(now, id, |_, _, _| {});
        }
        self.mind_callers_of(now, id);
        if let Some(awaited) = taken {
            self.await_disk(id, awaited);
        }
        if in_primary {
            self.mind_reentrant_reads();
        }
    }

    /// Delivers it to its group, which is there; gives what has to be on disks before anybody hears
    /// of it.
    fn deliver(
        &mut self,
        now: Instant,
        by: (NodeId, u64),
        id: GroupId,
        envelope: Envelope,
        calls_below: Option<(GroupId, u64)>,
    ) -> Option<disk::Awaited> {
        let ((origin, _), here) = (by, self.here);
        let in_primary = matches!(self.phase, Phase::Primary);
        let mine = by == (here.node, here.incarnation);
        let mut taken = None;
        let (group, out) = (&mut self.groups[id], &mut self.out);
        match envelope {
            Envelope::Request(request) => {
                let awaited = disk::Awaited::Request(request.number);
                let counts = group.takes_requests() || group.knows_end(&request, by);
                taken = Some(awaited).filter(|_| mine && counts);
                group.deliver_request(now, by, request, calls_below, here, out);
            }
            Envelope::Join { attempt, offer, .. } => {
                let before = group.table().position();
                group.deliver_join(now, origin, attempt, offer, here, out);
                if group.table().history.count < before.0.count {
                    self.calls.reset(id);
                }
                self.heed_join(id, before);
            }
            Envelope::ReadMark { number, .. } => {
                taken = Some(disk::Awaited::Mark(number)).filter(|_| mine);
                group.deliver_mark(by, number, here, out);
            }
            Envelope::Floor { attempt, up_to, .. } => {
                let members = group.present();
                self.calls.floor(id, (origin, attempt, up_to), &members);
            }
            other => {
                let before = group.table().position();
                group.deliver_other(now, by, other, here, out);
                if group.table().history != before.0 {
                    let awaits_disks = in_primary && group.operation_awaits_disks();
                    taken = awaits_disks.then_some(disk::Awaited::Restore);
                    self.heed_join(id, before);
                }
            }
        }
        taken
    }

    // -- the local servers ------------------------------------------------------------------

    /// The server of `group` accepts connections.
    pub fn handle_server_up(&mut self, now: Instant, group: GroupId) {
        self.with_group(now, group, |group, _, out| group.server_up(out));
    }

    /// The server of `group` is gone.
    pub fn handle_server_down(&mut self, now: Instant, group: GroupId, reason: DownReason) {
        self.with_group(now, group, |group, here, out| group.server_down(reason, here, out));
    }

    /// A connection that [`crate::ServerCommand::Connect`] asked for is there.
    pub fn handle_connected(&mut self, now: Instant, group: GroupId, channel: ChannelId) {
        self.with_group(now, group, |group, _, out| group.connected(channel, out));
    }

    /// A connection to the server ended, or could not be made.
    pub fn handle_disconnected(&mut self, now: Instant, group: GroupId, channel: ChannelId) {
        self.with_group(now, group, |group, here, out| group.disconnected(channel, here, out));
    }

    /// Bytes from the server.
    pub fn handle_server_bytes(
        &mut self,
        now: Instant,
        group: GroupId,
        channel: ChannelId,
        bytes: &[u8],
    ) {
        let came = (channel, bytes);
        self.with_group(now, group, |group, here, out| group.received(Some(now), came, here, out));
    }

    /// An [`OrderOutput::SubmitReply`] of `group` was taken back before it left.
    pub fn handle_withdrawn(&mut self, group: GroupId) {
        if let Some(group) = self.groups.get_mut(group) {
            group.withdrawn();
        }
    }

    /// The time that [`Self::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.groups.look(self.mode());
        let mut due = self.groups.due(now);
        due.extend(self.mends_by(now));
        due.into_iter().for_each(|group| self.settle(now, group));
        self.mind_held();
        self.mind_cut(now);
    }

    fn with_group(
        &mut self,
        now: Instant,
        group: GroupId,
        act: impl FnOnce(&mut Group, NodeContext, &mut Outbox),
    ) {
        if let Some(of) = self.groups.get_mut(group) {
            act(of, self.here, &mut self.out);
            self.settle(now, group);
            self.mind_held();
            self.mind_cut(now);
        }
    }

    fn is_primary(&self) -> bool {
        matches!(self.phase, Phase::Primary)
    }

    fn mode(&self) -> Mode {
        Mode { is_primary: self.is_primary(), memory_groups_wait: self.memory_groups.is_some() }
    }

    fn settle_all(&mut self, now: Instant) {
        let mut next = self.groups.next_id(None);
        while let Some(group) = next {
            self.settle(now, group);
            next = self.groups.next_id(Some(group));
        }
        self.mind_held();
        self.mind_cut(now);
    }

    fn settle(&mut self, now: Instant, id: GroupId) {
        let (here, in_primary) = (self.here, self.is_active(id));
        self.groups[id].settle(now, in_primary, here, &mut self.out);
        if self.repair_log(now, id) {
            self.groups[id].settle(now, in_primary, here, &mut self.out);
        }
        self.disk.wants_cut |= self.groups[id].takes_wish_for_log_snapshot();
        self.groups.is_settled(id);
    }
}

fn extend(history: History, delivered: &Delivered) -> History {
    history.extended(delivered.origin, delivered.incarnation, delivered.ticket)
}

fn concerns_members(payload: &Bytes) -> bool {
    matches!(
        Envelope::decode(payload.clone()),
        Ok(Envelope::Join { .. }
            | Envelope::Joined { .. }
            | Envelope::Down { .. }
            | Envelope::StateFailed { .. }
            | Envelope::Checkpoint { .. }
            | Envelope::Votes { .. }
            | Envelope::Ending { .. }
            | Envelope::StateDigest { .. }
            | Envelope::Command { .. }
            | Envelope::Define { .. }
            | Envelope::Full { .. }
            | Envelope::Open { .. })
    )
}

fn target(envelope: &Envelope) -> Option<GroupId> {
    match envelope {
        Envelope::Request(request) => Some(request.group),
        Envelope::Reply { group, .. }
        | Envelope::Join { group, .. }
        | Envelope::Joined { group, .. }
        | Envelope::Down { group, .. }
        | Envelope::StateFailed { group, .. }
        | Envelope::Checkpoint { group, .. }
        | Envelope::Votes { group, .. }
        | Envelope::Ending { group, .. }
        | Envelope::StateDigest { group, .. }
        | Envelope::Command { group, .. }
        | Envelope::Full { group, .. }
        | Envelope::ReadMark { group, .. }
        | Envelope::Released { group, .. }
        | Envelope::Floor { group, .. }
        | Envelope::Outside { group, .. }
        | Envelope::Open { group } => Some(*group),
        Envelope::Define { .. }
        | Envelope::Catalog { .. }
        | Envelope::Hello(_)
        | Envelope::Snapshot(_)
        | Envelope::Recorded { .. } => None,
    }
}
