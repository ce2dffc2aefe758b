//! The durable log, as far as the replica is concerned: what is on which disk.
//!
//! What it is not: what is found there at the next boot, which is `recovery`. Invariants: a node
//! says of its disk only what is true of it: everything up to there is in the log without a gap,
//! and, but for the groups that it names, the states that the log goes on from are beside it. Its
//! disk counts for no more than what the node's member would say of it, were nobody left
//! ([`crate::table::disk_census`]).

use super::compaction::Compaction;
use super::log_repair::LogRepair;
use super::memory_groups::Scope;
use super::{Phase, Replica};
use crate::group::Group;
use crate::messages::hello::Lineage;
use crate::messages::log::{Established, LogRecord};
use crate::messages::peer::PeerMessage;
use crate::output::{DriverOutput, GatewayOutput, LogOutput};
use crate::replica::config::ReplicaConfig;
use crate::table::GroupTable;
use crate::table::disk_census::holders_min;
use crate::words::group_map::GroupMap;
use crate::words::history::History;
use crate::words::ids::{GroupId, RequestNumber, RingId};
use crate::words::place::Place;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use quorba_base::{NodeId, Position, canary};

/// How far a node is with its disk.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct DiskProgress {
    pub(super) view: RingId,
    pub(super) prefix: u64,
    /// By group: what was applied up to there cannot be made again from the log.
    pub(super) gaps: Vec<(GroupId, u64)>,
}

impl DiskProgress {
    /// Where the log is of no use to a group without a state that is not on disk.
    const WHOLE: u64 = u64::MAX;

    fn gap(&self, group: GroupId) -> u64 {
        let of_it = self.gaps.iter().find(|(of, _)| *of == group);
        of_it.map_or(0, |(_, up_to)| *up_to)
    }

    /// Of a group's requests.
    fn reaches(&self, group: GroupId) -> u64 {
        if self.gap(group) == Self::WHOLE { 0 } else { self.prefix }
    }
}

/// What is safe only when it is on enough disks.
#[derive(Clone, Copy)]
pub(super) enum Awaited {
    /// A request: its reply waits.
    Request(RequestNumber),
    /// A read mark: so do the replies of reads.
    Mark(u64),
    /// A restore: so does its operator.
    Restore,
    /// What came of a call of its server to the outside.
    Outside(GroupId, RequestNumber),
}

/// What the disk has, and lacks, of one group.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct OfGroup {
    /// The record from which on the log needs a state that is not on disk yet.
    pub(super) broken: Option<u64>,
    /// Such a state has come, or the doubt has gone, while what this node's member said, or looks
    /// up, is of before.
    withheld: bool,
    /// What was done because such a state is lacking.
    pub(super) log_repair: LogRepair,
    /// Where in the component it went on from what disks have. What was applied before is in the
    /// log, but not in the history that goes on.
    turned: u64,
}

impl OfGroup {
    /// What of the component's order the disk does not have.
    fn gap(&self) -> u64 {
        if self.broken.is_some() || self.withheld { DiskProgress::WHOLE } else { self.turned }
    }
}

/// The groups of which the disk lacks something, or did; of all others, it is as it begins. Few as
/// a rule, however many groups there are.
#[derive(Default)]
pub(super) struct Lacking(GroupMap<OfGroup>);

impl Lacking {
    pub(super) fn get(&self, group: GroupId) -> Option<&OfGroup> {
        self.0.get(group)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (GroupId, &OfGroup)> {
        self.0.iter()
    }

    /// Changes what there is of a group, which must be one of the domain.
    pub(super) fn change<T>(
        &mut self,
        group: GroupId,
        change: impl FnOnce(&mut OfGroup) -> T,
    ) -> T {
        let mut of = self.0.get(group).copied().unwrap_or_default();
        let result = change(&mut of);
        if of == OfGroup::default() {
            self.0.remove(group);
        } else {
            self.0.insert(group, of);
        }
        result
    }

    fn change_all(&mut self, change: impl Fn(&mut OfGroup)) {
        let groups: Vec<_> = self.0.ids().collect();
        groups.into_iter().for_each(|group| self.change(group, &change));
    }
}

/// See the module's text.
pub(super) struct Disk {
    /// A group is durable, so everything is written down.
    is_used: bool,
    /// The boot in which the memory began that goes on in this log.
    pub(super) since: u64,
    /// Records that were handed out in this boot.
    written: u64,
    /// Of these, those that are on disk.
    pub(super) synced: u64,
    /// The last component and its record.
    component: Option<(RingId, u64)>,
    /// Messages of it that were applied before that record.
    before: u64,
    /// The last of its messages that was no read mark: what is read finds no later one.
    changed: u64,
    /// Records behind it that are no messages.
    cuts: Vec<u64>,
    /// The last one, until the log begins there.
    pub(super) cut: Option<Compaction>,
    /// One is to be made as soon as it can be.
    pub(super) wants_cut: bool,
    /// How far each other node was when it said so last.
    others: BTreeMap<NodeId, DiskProgress>,
    /// What the others were told last.
    told: Option<DiskProgress>,
    /// What the disk has of each group.
    pub(super) of: Lacking,
    /// What of this node's no majority has on disk yet, by places.
    awaiting: VecDeque<(u64, GroupId, Awaited)>,
    /// What this boot writes is found by the next one.
    is_trusted: bool,
    is_rebuilt: bool,
}

impl Disk {
    pub(super) fn new(config: &ReplicaConfig) -> Self {
        Self {
            is_used: false,
            since: config.incarnation,
            written: 0,
            synced: 0,
            component: None,
            before: 0,
            changed: 0,
            cuts: Vec::new(),
            cut: None,
            wants_cut: false,
            others: BTreeMap::new(),
            told: None,
            of: Lacking::default(),
            awaiting: VecDeque::new(),
            is_trusted: !config.in_doubt,
            is_rebuilt: false,
        }
    }

    /// How far this node's disk is in the last component.
    fn own(&self) -> Option<DiskProgress> {
        let (view, record) = self.component.filter(|_| self.is_trusted)?;
        let records = self.synced.checked_sub(record)?;
        let cuts = self.cuts.iter().filter(|cut| **cut <= self.synced).count() as u64;
        let prefix = if canary!(CutsAreMessages) { records } else { records - cuts };
        let prefix = prefix + self.before;
        let gaps = self.of.iter().map(|(group, of)| (group, of.gap()));
        let gaps = gaps.filter(|(_, up_to)| *up_to > 0).collect();
        Some(DiskProgress { view, prefix, gaps })
    }

    /// From here on the log alone has what this node's member of a group has, or not.
    pub(super) fn note(&mut self, group: GroupId, is_whole: Option<bool>) {
        let record = self.written;
        let Some(is_whole) = is_whole else { return };
        self.of.change(group, |of| {
            of.broken = (!is_whole).then_some(record);
            of.withheld = false;
        });
    }

    /// A group went on from what disks have, at that place of the component: of what was ordered
    /// before, nobody may be told that it is safe.
    pub(super) fn turn(&mut self, group: GroupId, prefix: u64) {
        self.of.change(group, |of| of.turned = prefix);
        self.awaiting.retain(|(_, of, _)| *of != group);
    }

    /// A message was applied that may change something.
    pub(super) fn note_change(&mut self, prefix: u64) {
        self.changed = prefix;
    }

    /// Everything that is applied is written down from the next record on, which says what the
    /// component is behind so many messages.
    fn begin(&mut self, view: RingId, prefix: u64) {
        self.is_used = true;
        self.written += 1;
        (self.component, self.before) = (Some((view, self.written)), prefix);
        self.changed = prefix;
        self.cuts.clear();
        self.told = None;
    }

    /// Nothing is written down any more.
    pub(super) fn end_log(&mut self) {
        (self.is_used, self.component, self.cut) = (false, None, None);
        self.wants_cut = false;
        self.awaiting.clear();
    }

    /// The domain is one that writes down what it applies, or is not.
    pub(super) fn use_log(&mut self, is_used: bool) {
        self.is_used = is_used;
    }

    /// There is no such group any more.
    pub(super) fn forget(&mut self, group: GroupId) {
        self.of.0.remove(group);
        self.awaiting.retain(|(_, of, _)| *of != group);
        if let Some(cut) = &mut self.cut {
            cut.saved(group, u64::MAX);
        }
    }

    /// Whether the log may be compacted: it has a component, and is not in doubt.
    pub(super) fn takes_cuts(&self) -> bool {
        self.is_used && self.is_trusted && self.component.is_some()
    }

    /// A record is about to be written that is no message: its place.
    pub(super) fn note_cut(&mut self, node: NodeId, prefix: u64) -> Place {
        self.written += 1;
        self.cuts.push(self.written);
        self.place(node, prefix)
    }

    fn place(&self, node: NodeId, prefix: u64) -> Place {
        let view = self.component.map_or(Place::begin(node).view, |(view, _)| view);
        Place { record: self.written, view, prefix }
    }
}

impl Replica {
    /// Records up to this one, counted from the first of this boot, are on disk.
    pub fn handle_logged(&mut self, records: u64) {
        self.disk.synced = self.disk.synced.max(records);
        self.tell_disk();
        self.finish_cut();
    }

    /// The disk is in doubt no more, after [`LogOutput::Rebuilt`].
    pub fn handle_log_rebuilt(&mut self) {
        self.disk.is_trusted = true;
        let groups: Vec<_> = self.groups.ids().collect();
        groups.into_iter().for_each(|group| self.disk_has_more(group));
        self.tell_disk();
    }

    /// A state that [`LogOutput::Save`] asked for is on disk, and so is the log up to its place.
    pub fn handle_saved(&mut self, group: GroupId, place: u64) {
        let has_come = self.disk.of.change(group, |of| {
            let has_come = of.broken.take_if(|needed| *needed <= place).is_some();
            if has_come {
                of.log_repair = LogRepair::default();
            }
            has_come
        });
        if has_come {
            self.disk_has_more(group);
        }
        if let Some(cut) = &mut self.disk.cut {
            cut.saved(group, place);
        }
        self.tell_disk();
        self.finish_cut();
    }

    /// The disk has more for a group than its member could have said until now.
    fn disk_has_more(&mut self, id: GroupId) {
        if let Some(group) = self.groups.get_mut(id) {
            self.disk.of.change(id, |of| of.withheld = group.needs_state_on_disk());
            group.disk_has_more();
        }
    }

    /// Who is in, or about to be, says nothing of the disk but what is looked up anew.
    fn count_withheld(&mut self) {
        let withheld = self.disk.of.iter().filter(|(_, of)| of.withheld).map(|(id, _)| id);
        let groups = &self.groups;
        let is_silent = |id: &GroupId| groups.get(*id).is_some_and(Group::has_no_word);
        let silent: Vec<GroupId> = withheld.filter(is_silent).collect();
        for id in silent {
            self.disk.of.change(id, |of| of.withheld = false);
            self.groups[id].outdate_disk_state();
        }
    }

    /// A message is applied: it is written down.
    pub(super) fn log_message(&mut self, delivered: &super::Delivered) {
        if !self.disk.is_used {
            return;
        }
        let Some((view, _)) = self.disk.component else { return };
        self.disk.written += 1;
        self.here.place = self.disk.place(self.here.node, self.prefix);
        let position = Position { component: view, prefix: self.prefix };
        self.out.push_back(
            LogOutput::Append(LogRecord::Message {
                position,
                origin: delivered.origin,
                incarnation: delivered.incarnation,
                ticket: delivered.ticket,
                payload: delivered.payload.clone(),
            })
            .into(),
        );
    }

    /// A component was established: it is written down, with what it goes on from.
    pub(super) fn log_component(&mut self) {
        self.disk.awaiting.clear();
        self.disk.of.change_all(|of| of.turned = 0);
        self.disk.use_log(self.catalog.is_logged());
        let Some(lineage) = self.lineage.clone().filter(|_| self.disk.is_used) else {
            return self.disk.end_log();
        };
        let view = lineage.view;
        self.disk.written += 1;
        (self.disk.component, self.disk.before) = (Some((view, self.disk.written)), 0);
        self.disk.changed = 0;
        self.disk.cuts.clear();
        self.disk.told = None;
        self.here.place = self.disk.place(self.here.node, 0);
        let payload = self.established(lineage, 0).encode();
        self.out
            .push_back(LogOutput::Append(LogRecord::Component { component: view, payload }).into());
        self.tell_disk();
    }

    /// What a node must know to go on from here.
    pub(super) fn established(&self, lineage: Lineage, prefix: u64) -> Established {
        Established {
            since: self.disk.since,
            lineage,
            prefix,
            history: self.history,
            catalog: self.catalog().clone(),
            tables: self.tables(),
            calls: self.calls.clone(),
            memory_groups: self.memory_groups.clone(),
        }
    }

    /// The first durable group was created in the middle of a component: from here on everything
    /// that is applied is written down.
    pub(super) fn begin_log(&mut self) {
        let Some(lineage) = self.lineage.clone() else { return };
        let view = lineage.view;
        self.disk.begin(view, self.prefix);
        self.here.place = self.disk.place(self.here.node, self.prefix);
        let payload = self.established(lineage, self.prefix).encode();
        self.out
            .push_back(LogOutput::Append(LogRecord::Component { component: view, payload }).into());
        self.tell_disk();
    }

    /// The group tables are about to be replaced: a log that lacks what is in them needs the state
    /// of the member that goes on from there.
    pub(super) fn break_log(&mut self, histories: &GroupMap<History>, scope: Scope) {
        let next = self.disk.written + 1;
        for (id, group) in self.groups.iter().filter(|(_, group)| scope.has(group)) {
            let Some(history) = histories.get(id) else { continue };
            if *history == History::EMPTY {
                self.disk.of.change(id, |of| (of.broken, of.withheld) = (None, false));
            } else if group.table().history != *history && group.needs_state_on_disk() {
                self.disk.of.change(id, |of| of.broken = Some(next));
            }
        }
    }

    /// The tables of all groups as they are now.
    pub(super) fn tables(&self) -> GroupMap<GroupTable> {
        self.groups.iter().map(|(id, group)| (id, group.table().clone())).collect()
    }

    /// A request of this node's gateway was delivered to a group that took it, or a read mark of
    /// its members.
    pub(super) fn await_disk(&mut self, group: GroupId, awaited: Awaited) {
        let Some(of) = self.groups.get(group).filter(|group| group.is_durable()) else { return };
        // Where nothing else says that a majority holds a mark, its disks do.
        let is_of_a_mark = matches!(awaited, Awaited::Mark(_)) && of.awaits_holders();
        if !is_of_a_mark {
            return self.disk.awaiting.push_back((self.prefix, group, awaited));
        }
        // What was read is not lost if all before the mark is kept. Place 0 is no message: that a
        // component has begun must be on disks, too.
        let at = self.disk.changed.max(1);
        if matches!(self.phase, Phase::Primary) && at <= self.on_majority(group) {
            self.is_logged(group, awaited);
        } else {
            self.disk.awaiting.push_back((at, group, awaited));
        }
    }

    /// Another node says how far its disk is.
    pub(super) fn hear_disk(&mut self, from: NodeId, said: DiskProgress) {
        self.disk.others.insert(from, said);
        self.release_logged();
    }

    /// Messages pass to a node again: it may not have heard the last one.
    pub(super) fn tell_disk_to(&mut self, node: NodeId) {
        if let Some(told) = self.disk.told.clone() {
            self.send_disk(node, told);
        }
    }

    /// Tells the others of the component how far this disk is, if that is news.
    pub(super) fn tell_disk(&mut self) {
        let has_component = self.disk.component.is_some_and(|(_, at)| at <= self.disk.synced);
        // Only with the states that the log goes on from it has what was lost. A member that was
        // taken out is given none; if it is added again, the log lacks its state as before.
        let me = self.here.node;
        let is_whole = self.disk.of.iter().all(|(id, of)| {
            let is_out = self.groups.get(id).is_some_and(|it| it.table().removed().contains(me));
            of.broken.is_none() || is_out
        });
        let waits = has_component && is_whole && !self.disk.is_trusted;
        if waits && !core::mem::replace(&mut self.disk.is_rebuilt, true) {
            self.out.push_back(LogOutput::Rebuilt.into());
        }
        self.count_withheld();
        let Some(own) = self.disk.own() else { return };
        if self.disk.told.as_ref() == Some(&own) {
            return;
        }
        self.disk.told = Some(own.clone());
        let nodes =
            self.lineage.as_ref().map(crate::messages::hello::Lineage::nodes).unwrap_or_default();
        for node in nodes.iter().filter(|node| *node != me) {
            self.send_disk(node, own.clone());
        }
        self.release_logged();
    }

    fn send_disk(&mut self, to: NodeId, said: DiskProgress) {
        let DiskProgress { view, prefix, gaps } = said;
        let message = PeerMessage::Logged { view, prefix, gaps };
        self.out.push_back(
            DriverOutput::Peer { to, lane: message.lane(), bytes: message.encode() }.into(),
        );
    }

    /// Releases what a majority has on disk.
    fn release_logged(&mut self) {
        if !matches!(self.phase, Phase::Primary) || self.disk.awaiting.is_empty() {
            return;
        }
        let mut reach: BTreeMap<GroupId, u64> = BTreeMap::new();
        let mut awaiting = core::mem::take(&mut self.disk.awaiting);
        awaiting.retain(|(prefix, group, awaited)| {
            let reach = reach.entry(*group).or_insert_with(|| self.on_majority(*group));
            let is_safe = *prefix <= *reach || canary!(RepliesBeforeLogged);
            if is_safe {
                self.is_logged(*group, *awaited);
            }
            !is_safe
        });
        self.disk.awaiting = awaiting;
    }

    fn is_logged(&mut self, group: GroupId, awaited: Awaited) {
        match awaited {
            Awaited::Restore => {
                let out = &mut self.out;
                self.groups[group].operation_logged(out);
            }
            Awaited::Request(number) => {
                self.out.push_back(GatewayOutput::Logged { group, number }.into())
            }
            Awaited::Outside(group, number) => {
                self.out.push_back(GatewayOutput::Logged { group, number }.into());
            }
            Awaited::Mark(mark) => {
                let (here, out) = (self.here, &mut self.out);
                self.groups[group].mark_logged(mark, here, out);
            }
        }
    }

    /// How far so many disks are, for a group, that every later majority has one of them.
    fn on_majority(&self, group: GroupId) -> u64 {
        let (Some((view, _)), Some(lineage)) = (self.disk.component, &self.lineage) else {
            return 0;
        };
        let nodes = lineage.nodes();
        let own = self.disk.own();
        let said = |node: NodeId| {
            if node == self.here.node { own.as_ref() } else { self.disk.others.get(&node) }
        };
        let said = |node| said(node).filter(|said| said.view == view);
        let of = |node| said(node).map_or(0, |said| said.prefix);
        let of_members = |node| said(node).map_or(0, |said| said.reaches(group));
        // Where the group turns, this node forgets what it waits for; a disk from which the group
        // went on says nothing of what was ordered before.
        let is_ahead =
            |said: &DiskProgress| (self.prefix + 1..DiskProgress::WHOLE).contains(&said.gap(group));
        if nodes.iter().filter_map(said).any(is_ahead) {
            return 0;
        }
        let holders = self.config.quorum.holders_min(self.config.nodes.len(), nodes.len());
        let on_disks = furthest(nodes.iter().map(of), holders);
        // And so many members, that the group can go on from one of them.
        let Some(group) = self.groups.get(group) else { return 0 };
        let members = group.members();
        // Whoever was taken out has nothing to say when all nodes have ended.
        let removed = group.table().removed();
        let staying = members.iter().filter(|member| !removed.contains(*member)).collect();
        let at_members = nodes.intersection(staying).iter().map(of_members);
        on_disks.min(furthest(at_members, holders_min(members.len())))
    }
}

/// How far so many of these are.
fn furthest(reach: impl Iterator<Item = u64>, count: usize) -> u64 {
    let mut reach: Vec<u64> = reach.collect();
    reach.sort_unstable_by(|a, b| b.cmp(a));
    reach.get(count.saturating_sub(1)).copied().unwrap_or(0)
}
