//! What nodes have on disk of the catalog, and the operators who create, change and delete groups.
//!
//! What it is not: the catalog, which is the replica's. Invariants: what a node was told to be on
//! its disk survives each crash; of what was not, a beginning may.

use crate::event::Event;
use crate::fault::Fault;
use crate::host::{Input, Supervisor};
use crate::names::{late_index, learn};
use crate::world::{World, ms, us};
use bytes::Bytes;
use quorba_base::{Instant, Position};
use quorba_engine::replica::{
    Catalog, CatalogChange, CatalogChanged, CatalogRecord, CatalogRefused, Definition, GroupId,
    PrimaryStatus,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// The catalog's file of one node.
#[derive(Default, Debug)]
pub(crate) struct CatalogDisk {
    records: Vec<Bytes>,
    /// What is on its way.
    writing: VecDeque<CatalogRecord>,
}

impl CatalogDisk {
    fn put(&mut self, record: CatalogRecord) -> Position {
        if record.is_whole {
            self.records.clear();
        }
        self.records.push(record.bytes);
        record.version
    }

    /// What a boot finds; none if nothing was ever written.
    pub(crate) fn found(&self) -> Option<Catalog> {
        Catalog::recover(self.records.clone()).expect("disks keep it")
    }
}

impl World {
    /// What stands before a component's record in the log must be on disk before it.
    pub(crate) fn sync_catalog(&mut self, node: usize) {
        let host = &mut self.hosts[node].catalog;
        let saved = core::mem::take(&mut host.writing).into_iter().map(|one| host.put(one)).last();
        if let Some(version) = saved {
            let boot = self.hosts[node].boot;
            self.queue.push(self.now, Event::CatalogSaved { node, boot, version });
        }
    }

    /// A node wants it written down.
    pub(crate) fn write_catalog(&mut self, node: usize, record: CatalogRecord) {
        let most = self.disk_rng.pick(&[100, 1_000, 30_000]);
        let wait = us(self.disk_rng.between(20, most));
        let host = &mut self.hosts[node];
        host.catalog.writing.push_back(record);
        self.queue.push(self.now + wait, Event::CatalogWritten { node, boot: host.boot });
    }

    /// One of them is on disk, the oldest.
    pub(crate) fn catalog_written(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot != boot || !self.hosts[node].is_up() {
            return;
        }
        let host = &mut self.hosts[node].catalog;
        let Some(record) = host.writing.pop_front() else { return };
        let version = host.put(record);
        self.deliver(node, Input::CatalogSaved(version));
    }

    /// The process of a node has ended, and perhaps its host.
    pub(crate) fn tear_catalog(&mut self, node: usize) {
        let kept = self.disk_rng.index(1 + self.hosts[node].catalog.writing.len());
        let host = &mut self.hosts[node].catalog;
        for record in core::mem::take(&mut host.writing).into_iter().take(kept) {
            host.put(record);
        }
    }
}

// -- operators ------------------------------------------------------------------------------

/// So many names are there for all groups that are created: they are used again.
const NAMES: usize = 3;
/// How often an operator repeats what it has asked for, at most.
const REPEATS_MAX: u32 = 4;

/// What a definition's text says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LateText {
    pub(crate) group: usize,
    pub(crate) members: u64,
    pub(crate) reply_ms: u64,
}

impl LateText {
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let mut numbers = std::str::from_utf8(text).ok()?.split(' ').map(str::parse);
        let mut next = || numbers.next()?.ok();
        let (group, members, reply_ms) = (next()?, next()?, next()?);
        Some(Self { group: usize::try_from(group).ok()?, members, reply_ms })
    }

    fn definition(self, name: &Arc<str>) -> Definition {
        let Self { group, members, reply_ms } = self;
        let text = format!("{group} {members} {reply_ms}").into_bytes().into();
        Definition { name: Arc::clone(name), text }
    }
}

/// What operators want, and what they were told.
#[derive(Clone, Debug)]
struct Operation {
    change: CatalogChange,
    group: usize,
    /// When it was asked for first, and what an operator was told who heard that it is done.
    begun: Instant,
    done: Option<Done>,
    tries: u32,
    /// It was refused, or is given up: it may still be carried out.
    is_over: bool,
}

/// It was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Done {
    at: Instant,
    id: GroupId,
    /// Of the catalog, where that was said.
    version: Option<Position>,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Operators {
    operations: Vec<Operation>,
    pub(crate) done: u64,
}

impl Operators {
    fn of(&self, group: usize) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(move |one| one.group == group)
    }

    /// Whether an operator has been told that there is such a group, and none has asked for its
    /// end.
    fn stands(&self, group: usize) -> bool {
        let is_delete = |one: &Operation| matches!(one.change, CatalogChange::Delete(_));
        let mut of_it = self.of(group);
        let is_created = self
            .of(group)
            .any(|one| matches!(one.change, CatalogChange::Create(_)) && one.done.is_some());
        is_created && !of_it.any(is_delete)
    }
}

impl World {
    /// An operator comes in a while.
    pub(crate) fn plan_cataloguer(&mut self) {
        let most = self.catalog_rng.pick(&[40, 300, 2_000]);
        let wait = ms(self.catalog_rng.between(1, most));
        self.queue.push(self.now + wait, Event::Cataloguer);
    }

    /// An operator asks for something new, or again for what it asked for before.
    pub(crate) fn cataloguer_comes(&mut self) {
        if self.peace {
            return;
        }
        let rng = &mut self.catalog_rng;
        let (repeats, node) = (rng.per_mille(400), rng.index(self.plan.nodes));
        let open = self.operators.operations.iter().enumerate().filter(|(_, one)| {
            !one.is_over && one.tries < REPEATS_MAX && (one.done.is_none() || rng_even(one.tries))
        });
        let open: Vec<usize> = open.map(|(index, _)| index).collect();
        let again = (repeats && !open.is_empty()).then(|| open[rng.index(open.len())]);
        if let Some(operation) = again.or_else(|| self.draw_operation()) {
            self.ask_for(node, operation);
        }
        self.plan_cataloguer();
    }

    fn draw_operation(&mut self) -> Option<usize> {
        let late: Vec<usize> = self.late_groups().collect();
        let group = late[self.catalog_rng.index(late.len())];
        let name: Arc<str> = format!("late{}", group % NAMES).into();
        let is_new = self.operators.of(group).next().is_none();
        if is_new && !self.is_free(group) || !is_new && !self.operators.stands(group) {
            return None;
        }
        let all = (1 << self.plan.nodes) - 1;
        let plan = &self.plan.groups[group];
        let (mut members, mut reply_ms) = (plan.members, plan.server_reply_ms);
        let change = if is_new {
            CatalogChange::Create(LateText { group, members, reply_ms }.definition(&name))
        } else if self.catalog_rng.per_mille(300) {
            // What is not durable may lose the members that have its state.
            self.checks.lost(self.now, group);
            self.checks.groups[group].gone = true;
            CatalogChange::Delete(name)
        } else {
            let with = 1 << self.catalog_rng.index(self.plan.nodes);
            members = if plan.durable { members } else { (members ^ with) & all };
            reply_ms += self.catalog_rng.below(50);
            if members == 0 {
                return None;
            }
            CatalogChange::Change(LateText { group, members, reply_ms }.definition(&name))
        };
        let begun = self.now;
        let operation = Operation { change, group, begun, done: None, tries: 0, is_over: false };
        self.operators.operations.push(operation);
        Some(self.operators.operations.len() - 1)
    }

    /// Whether no operator has anything open about a group that has, or had, the same name.
    fn is_free(&self, group: usize) -> bool {
        let is_namesake = |other: &usize| *other != group && *other % NAMES == group % NAMES;
        self.late_groups().filter(is_namesake).all(|other| {
            let is_open = |one: &Operation| one.done.is_none() && !one.is_over;
            !self.operators.stands(other) && !self.operators.of(other).any(is_open)
        })
    }

    fn ask_for(&mut self, node: usize, operation: usize) {
        let asked = &mut self.operators.operations[operation];
        asked.tries += 1;
        let change = asked.change.clone();
        self.say(|| format!("OPERATOR at n{node}: operation {operation}: {change:?}"));
        self.deliver(node, Input::Define(operation as u64, change));
    }

    fn late_groups(&self) -> impl Iterator<Item = usize> + '_ {
        let groups = self.plan.groups.iter().enumerate();
        groups.filter(|(_, group)| group.late).map(|(index, _)| index)
    }

    /// An operator is told what became of it.
    pub(crate) fn operation_answered(
        &mut self,
        node: usize,
        operation: u64,
        result: &Result<CatalogChanged, CatalogRefused>,
    ) {
        self.say(|| format!("n{node} answers operation {operation}: {result:?}"));
        let now = self.now;
        let asked = &mut self.operators.operations[operation as usize];
        match result {
            Ok(CatalogChanged { id, .. }) => {
                let engine = self.hosts[node].node.as_ref();
                let version = engine.and_then(|engine| engine.catalog().version());
                let done = Done { at: now, id: *id, version };
                let before = *asked.done.get_or_insert(done);
                if before.id != *id {
                    let text =
                        format!("operation {operation} is about {id:?}, and {:?}", before.id);
                    self.checks.violate("catalog", now, text);
                }
                self.operators.done += 1;
                if self.plan.faults.contains(&Fault::Blackout) && self.catalog_rng.per_mille(150) {
                    let wait = us(self.catalog_rng.between(1, 300));
                    self.queue.push(now + wait, Event::Blackout);
                }
            }
            Err(refused) => asked.is_over |= !refused.may_be_repeated(),
        }
        let group = self.operators.operations[operation as usize].group;
        if self.operators.stands(group) {
            self.checks.groups[group].gone = false;
        }
    }

    // -- what nodes make of it --------------------------------------------------------------

    /// A node has a group, or has it no more.
    pub(crate) fn defined(&mut self, node: usize, id: GroupId, definition: Option<&Definition>) {
        let Some(definition) = definition else {
            let Some(group) = late_index(id) else { return };
            self.end_supervision(node, id, false);
            self.close_channels(node, id);
            self.hosts[node].supervisors[group] = None;
            return;
        };
        let Some(text) = LateText::read(&definition.text) else { return };
        learn(id, text.group);
        let is_member = (text.members >> node) & 1 == 1;
        let supervisor = &self.hosts[node].supervisors[text.group];
        if is_member && supervisor.is_none() {
            let backoff_ms = self.plan.groups[text.group].backoff_ms;
            // News of a supervisor of before are none of this one's.
            self.hosts[node].lives += 1;
            let stops = self.hosts[node].lives << 16;
            let supervisor = Supervisor { stops, ..Supervisor::new(backoff_ms) };
            self.hosts[node].supervisors[text.group] = Some(supervisor);
            self.begin_supervision(node, id);
        } else if !is_member && supervisor.is_some() {
            self.end_supervision(node, id, false);
            self.close_channels(node, id);
            self.hosts[node].supervisors[text.group] = None;
        }
    }

    /// What is wrong with the catalogs of nodes that work together: what an operator was told is
    /// done is, also after the end of all nodes, and is done once.
    pub(crate) fn check_catalogs(&self) -> Option<String> {
        let serves = |node: &usize| {
            let engine = self.hosts[*node].node.as_ref()?;
            let is_primary = engine.snapshot().primary == PrimaryStatus::Primary;
            is_primary.then_some((*node, engine.catalog()))
        };
        for (node, catalog) in (0..self.plan.nodes).filter_map(|node| serves(&node)) {
            let texts = catalog.iter().filter_map(|(_, one)| LateText::read(&one.text));
            let mut groups: Vec<usize> = texts.map(|text| text.group).collect();
            groups.sort_unstable();
            if let Some([group, _]) =
                groups.windows(2).map(|two| [two[0], two[1]]).find(|two| two[0] == two[1])
            {
                return Some(format!("n{node} has g{group} twice"));
            }
            for one in &self.operators.operations {
                let Some(Done { id, version, .. }) = one.done else { continue };
                let group = one.group;
                if catalog.version() < version {
                    // It has not heard of it yet.
                    continue;
                }
                match &one.change {
                    CatalogChange::Delete(_) if groups.contains(&group) => {
                        return Some(format!("n{node} has g{group} again, which was deleted"));
                    }
                    CatalogChange::Create(_) | CatalogChange::Change(_)
                        if self.operators.stands(group) && catalog.get(id).is_none() =>
                    {
                        return Some(format!("n{node} lacks g{group}, which was created"));
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// At peace all nodes have the same, and the last change that was asked for alone is in it.
    pub(crate) fn check_catalogs_at_peace(&self) -> Option<String> {
        let catalogs: Vec<_> =
            self.hosts.iter().filter_map(|host| Some(host.node.as_ref()?.catalog())).collect();
        let first = catalogs.first()?;
        if let Some(node) = catalogs.iter().position(|catalog| catalog != first) {
            return Some(format!("n{node} has another catalog than n0: {catalogs:?}"));
        }
        for group in self.late_groups().filter(|group| self.operators.stands(*group)) {
            let changes: Vec<_> = self
                .operators
                .of(group)
                .filter(|one| matches!(one.change, CatalogChange::Change(_)))
                .collect();
            // What overlaps may come in any order, and what was not answered at any time.
            let [.., last] = changes.as_slice() else { continue };
            let (Some(Done { id, .. }), CatalogChange::Change(wanted)) = (last.done, &last.change)
            else {
                continue;
            };
            let overlaps = |one: &&Operation| one.done.is_none_or(|done| done.at >= last.begun);
            if changes[..changes.len() - 1].iter().any(overlaps) {
                continue;
            }
            if first.get(id) != Some(wanted) {
                return Some(format!("g{group} is not what it was changed to: {wanted:?}"));
            }
        }
        None
    }
}

fn rng_even(tries: u32) -> bool {
    tries.is_multiple_of(2)
}
