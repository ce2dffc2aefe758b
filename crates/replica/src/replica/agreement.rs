//! From a view to a primary component: every node says what it has, all decide alike, and what the
//! component waits for is delivered to all.
//!
//! What it is not: the rule itself, which is [`crate::primary`]. Invariant: until a component is
//! established, nothing that is delivered counts, on any node.

use super::memory_groups::Scope;
use super::{Delivered, Phase, Replica, ReplicaView};
use crate::group::Group;
use crate::messages::catalog::Catalog;
use crate::messages::envelope::Envelope;
use crate::messages::hello::{Lineage, Record, Snapshot};
use crate::output::{DriverOutput, Event, GatewayOutput, OrderOutput, Output};
use crate::primary::disks::{ForMemory, Verdict, decide_all};
use crate::primary::dynamic::Known;
use crate::primary::{Basis, Decision, Statement, last_remembered};
use crate::words::ids::RingId;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Instant, NodeId, NodeSet, canary};

/// The catalog travels in parts of so many octets.
const CATALOG_PART_BYTES: usize = 1 << 20;

/// What stands between a decision and the primary component. Until it is delivered nothing counts,
/// on any node: who holds a message that counts, holds everything that made it count.
pub(super) struct Agreed {
    view: ReplicaView,
    /// The last component that one of its nodes remembers.
    base: Option<RingId>,
    pub(super) held_back: Vec<Delivered>,
    /// Nodes that have not said that they wrote the attempt down (dynamic rule).
    unrecorded: NodeSet,
    /// This node has not.
    owes_record: bool,
    /// What groups there are.
    catalog: Going,
    /// What the domain goes on from.
    domain: Part,
    memory: Memory,
}

/// The catalog that the component goes on from.
enum Going {
    /// That of each node, or it has been installed.
    Same,
    /// That of this node, of which these parts have come.
    Awaited(NodeId, Vec<Bytes>),
}

/// What groups go on from.
pub(super) struct Part {
    pub(super) current: NodeSet,
    pub(super) basis: Basis,
    /// The tables, if some nodes lack them.
    pub(super) tables: Tables,
}

/// What becomes of groups that are not durable; see [`ForMemory`].
enum Memory {
    Same,
    /// As all others, and what they acknowledged may be lost.
    Best,
    From(Part),
    Waits,
}

impl Memory {
    /// For which groups the domain's part is.
    fn scope_of_domain(&self) -> Scope {
        match self {
            Self::Same | Self::Best => Scope::All,
            Self::From(_) | Self::Waits => Scope::Durable,
        }
    }
}

pub(super) enum Tables {
    NotNeeded,
    Awaited,
    Delivered(Snapshot),
}

impl Part {
    fn new(view: NodeSet, current: NodeSet, basis: Basis) -> Self {
        let tables = if view == current { Tables::NotNeeded } else { Tables::Awaited };
        Self { current, basis, tables }
    }
}

impl Agreed {
    fn parts(&self) -> impl Iterator<Item = &Part> {
        let memory = match &self.memory {
            Memory::From(part) => Some(part),
            Memory::Same | Memory::Best | Memory::Waits => None,
        };
        [&self.domain].into_iter().chain(memory)
    }

    fn awaits_catalog_of(&self, node: NodeId) -> bool {
        matches!(&self.catalog, Going::Awaited(from, _) if *from == node)
    }

    fn part_mut(&mut self, of_memory_groups: bool) -> Option<&mut Part> {
        match (&mut self.memory, of_memory_groups) {
            (_, false) => Some(&mut self.domain),
            (Memory::From(part), true) => Some(part),
            (Memory::Same | Memory::Best | Memory::Waits, true) => None,
        }
    }

    fn is_complete(&self) -> bool {
        let is_recorded = self.unrecorded.is_empty() || canary!(FormsUnrecorded);
        let awaits = |part: &Part| matches!(part.tables, Tables::Awaited);
        is_recorded && matches!(self.catalog, Going::Same) && !self.parts().any(awaits)
    }
}

impl Replica {
    /// Takes what every node says of itself; the last word decides.
    pub(super) fn sync(&mut self, now: Instant, delivered: Delivered) {
        let Phase::Syncing { view, statements, held_back } = &mut self.phase else {
            unreachable!("the caller matched");
        };
        let hello = match Envelope::decode(delivered.payload.clone()) {
            Ok(Envelope::Hello(hello)) => hello,
            _ => {
                held_back.push(delivered);
                return;
            }
        };
        let spoke = (delivered.origin, delivered.incarnation);
        if hello.view != view.id || !view.members.contains(&spoke) {
            return;
        }
        let statement = Statement { incarnation: delivered.incarnation, hello };
        statements.insert(delivered.origin, statement);
        if statements.len() < view.members.len() {
            return;
        }
        let phase = core::mem::replace(&mut self.phase, Phase::Forming);
        let Phase::Syncing { view, statements, held_back } = phase else {
            unreachable!("the caller matched");
        };
        let verdict = decide_all(self.config.nodes, self.config.quorum, statements);
        let Verdict { decision, memory, statements } = verdict;
        match decision {
            Decision::NotPrimary(reason) => {
                self.out.push_back(Output::Event(Event::Blocked { view: view.id, reason }));
                self.disregard(held_back);
                self.phase = Phase::Blocked(reason);
            }
            Decision::Primary { current, basis } => {
                let unrecorded = self.attempt(&view, &statements);
                let nodes = view.nodes();
                let domain = Part::new(nodes, current, basis);
                let memory = match memory {
                    _ if !self.groups.values().any(Group::lives_in_memory) => Memory::Same,
                    ForMemory::From(current, basis) => {
                        Memory::From(Part::new(nodes, current, basis))
                    }
                    ForMemory::Waits => Memory::Waits,
                    ForMemory::Same => Memory::Same,
                    ForMemory::Best => Memory::Best,
                };
                let base = last_remembered(&statements).map(|last| last.view);
                let from = Self::leading_catalog(&statements, (current, basis));
                let agreed = Agreed {
                    view,
                    base,
                    held_back,
                    owes_record: !unrecorded.is_empty(),
                    unrecorded,
                    catalog: from.map_or(Going::Same, |from| Going::Awaited(from, Vec::new())),
                    domain,
                    memory,
                };
                self.go_on(now, agreed);
            }
        }
    }

    /// With the dynamic rule, every node writes down what is about to be; gives who has to.
    fn attempt(&mut self, view: &ReplicaView, statements: &BTreeMap<NodeId, Statement>) -> NodeSet {
        if !self.config.quorum.is_dynamic() {
            return NodeSet::EMPTY;
        }
        let known = Known::of(statements.values().map(|statement| &statement.hello));
        let own = &statements.get(&self.here.node).expect("all nodes have spoken").hello;
        let attempt = Lineage { view: view.id, members: view.members.clone() };
        self.record = known.with(own, attempt);
        self.out.push_back(DriverOutput::PersistPrimary(self.record.clone()).into());
        view.nodes()
    }

    /// The view may go on, as soon as all have what they need for it.
    fn go_on(&mut self, now: Instant, agreed: Agreed) {
        if agreed.is_complete() {
            return self.establish(now, agreed);
        }
        let nodes = agreed.view.nodes();
        if let Going::Awaited(from, _) = agreed.catalog
            && from == self.here.node
        {
            self.send_whole_catalog(agreed.view.id);
        }
        for (part, of_memory_groups) in agreed.parts().zip([false, true]) {
            let Part { current, tables, .. } = part;
            let is_awaited = matches!(tables, Tables::Awaited);
            if !is_awaited || current.lowest() != Some(self.here.node) {
                continue;
            }
            let tables = self.groups.iter();
            let tables = tables.map(|(id, group)| (id, group.table_for(*current, nodes))).collect();
            let (view, history, calls) = (agreed.view.id, self.history, self.calls.clone());
            let snapshot = Snapshot { view, of_memory_groups, history, tables, calls };
            self.out.push_back(OrderOutput::Submit(Envelope::Snapshot(snapshot).encode()).into());
        }
        self.phase = Phase::Agreed(Box::new(agreed));
        self.mind_recorded();
    }

    /// The others lack what this node has of the catalog.
    fn send_whole_catalog(&mut self, view: RingId) {
        let whole = self.catalog().to_bytes();
        let parts = whole.len().div_ceil(CATALOG_PART_BYTES).max(1);
        for part in 0..parts {
            let end = whole.len().min((part + 1) * CATALOG_PART_BYTES);
            let bytes = whole.slice(part * CATALOG_PART_BYTES..end);
            let part = (part as u32, parts as u32);
            self.out.push_back(
                OrderOutput::Submit(Envelope::Catalog { view, part, bytes }.encode()).into(),
            );
        }
    }

    /// With the dynamic rule, this node says that it has written down what the component goes on
    /// from, as soon as it has.
    pub(super) fn mind_recorded(&mut self) {
        let is_saved = self.catalog.is_saved();
        let Phase::Agreed(agreed) = &mut self.phase else { return };
        let is_known = matches!(agreed.catalog, Going::Same);
        if is_known && is_saved && core::mem::take(&mut agreed.owes_record) {
            let recorded = Envelope::Recorded { view: agreed.view.id };
            self.out.push_back(OrderOutput::Submit(recorded.encode()).into());
        }
    }

    /// A part of the catalog that the view goes on from.
    fn take_catalog_part(&mut self, (part, parts): (u32, u32), bytes: Bytes) {
        let Phase::Agreed(agreed) = &mut self.phase else { return };
        let Going::Awaited(from, taken) = &mut agreed.catalog else { return };
        if taken.len() as u32 != part || part >= parts {
            return;
        }
        taken.push(bytes);
        if taken.len() as u32 != parts {
            return;
        }
        let (from, taken) = (*from, core::mem::take(taken));
        agreed.catalog = Going::Same;
        if from != self.here.node {
            match Catalog::from_bytes(taken.concat().into()) {
                Ok(catalog) if catalog.mark() != self.catalog_mark() => {
                    self.install_catalog(catalog);
                }
                Ok(_) => {}
                Err(_) => self.out.push_back(Output::Event(Event::Skipped { origin: from })),
            }
        }
        self.mind_recorded();
    }

    /// Takes what the view waits for; all else is held back.
    pub(super) fn complete(&mut self, now: Instant, delivered: Delivered) {
        let Phase::Agreed(agreed) = &mut self.phase else {
            unreachable!("the caller matched");
        };
        let spoke = (delivered.origin, delivered.incarnation);
        match Envelope::decode(delivered.payload.clone()) {
            Ok(Envelope::Catalog { view, part, bytes })
                if view == agreed.view.id && agreed.awaits_catalog_of(spoke.0) =>
            {
                self.take_catalog_part(part, bytes);
            }
            Ok(Envelope::Snapshot(snapshot))
                if snapshot.view == agreed.view.id
                    && agreed.part_mut(snapshot.of_memory_groups).is_some() =>
            {
                if let Some(part) = agreed.part_mut(snapshot.of_memory_groups) {
                    part.tables = Tables::Delivered(snapshot);
                }
            }
            Ok(Envelope::Recorded { view })
                if view == agreed.view.id && agreed.view.members.contains(&spoke) =>
            {
                agreed.unrecorded.remove(delivered.origin);
            }
            _ => return agreed.held_back.push(delivered),
        }
        if matches!(&self.phase, Phase::Agreed(agreed) if agreed.is_complete()) {
            let phase = core::mem::replace(&mut self.phase, Phase::Forming);
            let Phase::Agreed(agreed) = phase else { unreachable!("matched above") };
            self.establish(now, *agreed);
        }
    }

    /// From here on the view is a primary component, and this node is up to date in it.
    fn establish(&mut self, now: Instant, agreed: Agreed) {
        let Agreed { view, base, held_back, mut domain, mut memory, .. } = agreed;
        let waits = matches!(memory, Memory::Waits);
        if waits {
            self.set_memory_groups_aside();
        }
        if let Some(history) = self.take_over(&mut domain, memory.scope_of_domain()) {
            self.history = history;
        }
        if let Memory::From(part) = &mut memory {
            self.take_over(part, Scope::Memory);
        }
        self.memory_groups.take_if(|_| !waits);
        // Ordered before what made the component: nobody counts it, and who sent it says it again.
        self.disregard(held_back);
        let members = view.nodes();
        let lineage = Lineage { view: view.id, members: view.members };
        let former = waits.then(|| self.former());
        let attempts = Vec::new();
        self.record = Record { formed: Some(lineage.clone()), base, attempts, former };
        self.out.push_back(DriverOutput::PersistPrimary(self.record.clone()).into());
        let (current, basis) = (domain.current, domain.basis);
        let event = Event::Primary { view: view.id, members, current, basis };
        self.out.push_back(Output::Event(event));
        self.lineage = Some(lineage);
        self.prefix = 0;
        let of_memory = match &memory {
            Memory::Same | Memory::Best => Some(&domain),
            Memory::From(part) => Some(part),
            Memory::Waits => None,
        };
        self.say_of_memory(&memory, (view.id, current));
        for group in self.groups.values_mut() {
            let part = if group.lives_in_memory() { of_memory } else { Some(&domain) };
            let Some(Part { current, .. }) = part else { continue };
            group.decided(now, *current, members, self.here, &mut self.out);
        }
        self.mind_callers(now);
        self.fit_tables(now);
        self.phase = Phase::Primary;
        self.establish_catalog(view.id);
        self.log_component();
        self.out.extend(
            core::mem::take(&mut self.lost).into_iter().map(OrderOutput::Submit).map(Output::from),
        );
        self.say_reports_again();
        self.out.push_back(GatewayOutput::Resubmit { group: None }.into());
        self.settle_all(now);
    }

    /// What became of groups that are not durable, where that is another question.
    fn say_of_memory(&mut self, memory: &Memory, (view, domain): (RingId, NodeSet)) {
        let event = match memory {
            Memory::Same => return,
            Memory::Best => Event::MemoryFrom { view, current: domain, basis: Basis::MemoryLost },
            Memory::From(Part { current, basis, .. }) => {
                Event::MemoryFrom { view, current: *current, basis: *basis }
            }
            Memory::Waits => Event::MemoryWaits { view },
        };
        self.out.push_back(Output::Event(event));
    }
}
