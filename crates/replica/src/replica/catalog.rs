//! Groups, and servers outside, that come, change and go while the domain works.
//!
//! A change is ordered like a request. At its place all nodes check it alike and carry it out; each
//! writes it down and tells the others how far its disk is, and whoever asked for it is answered
//! when so many disks have it that every later component has one of their nodes. So a domain
//! whose nodes have all ended comes to the same groups, whether they are durable or not.
//!
//! What a component goes on from is decided with it ([`Replica::leading_catalog`]): what a node
//! has in memory that took part in all that was ordered before; where nobody has, the newest
//! that any disk of the view has. It may tell of a change whose operator was never answered.
//!
//! What it is not: the text of definitions, which the driver reads. Invariants: the groups that
//! there are, and what they are, is a function of the catalog; while groups wait for memory
//! elsewhere ([`super::memory_groups`]) nothing changes.

use super::Replica;
use crate::group::Group;
use crate::messages::catalog::{
    Catalog, CatalogChange, CatalogChanged, CatalogMark, CatalogNews, CatalogRefused,
    DEFINITION_BYTES_MAX, DEFINITIONS_MAX, Defined, Definition, NAME_BYTES_MAX,
};
use crate::messages::envelope::Envelope;
use crate::messages::peer::PeerMessage;
use crate::output::{DefinitionNews, DriverOutput, Event, GatewayOutput, OrderOutput, Output};
use crate::primary::{Basis, Statement};
use crate::words::config::GroupConfig;
use crate::words::ids::GroupId;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::policy::Style;
use quorba_base::{Instant, NodeId, NodeSet, Position, canary};

/// A change that this node's operator waits for.
struct Awaited {
    id: u64,
    at: Position,
    changed: CatalogChanged,
}

/// See the module's text.
pub(super) struct CatalogPart {
    pub(super) catalog: Catalog,
    /// How many groups are durable.
    durable: usize,
    /// How far this node's disk is, and what the others of the component have said of theirs.
    saved: Option<Position>,
    others: BTreeMap<NodeId, Position>,
    /// Changes that this node has had ordered and that were not delivered.
    ordered: BTreeSet<u64>,
    /// Those that were, and are not on enough disks.
    awaited: Vec<Awaited>,
}

impl CatalogPart {
    pub(super) fn new(catalog: Catalog, is_on_disk: bool) -> Self {
        let saved = catalog.version().filter(|_| is_on_disk);
        Self {
            catalog,
            durable: 0,
            saved,
            others: BTreeMap::new(),
            ordered: BTreeSet::new(),
            awaited: Vec::new(),
        }
    }

    /// Everything that is applied is written down.
    pub(super) const fn is_logged(&self) -> bool {
        self.durable > 0
    }

    /// Whether this node's disk has all of it.
    pub(super) fn is_saved(&self) -> bool {
        self.saved >= self.catalog.version()
    }
}

/// What a change comes to, if it is right.
enum Checked {
    Repeated(CatalogChanged),
    Create(Defined),
    Change(Defined),
    Delete,
}

impl Replica {
    /// What the domain's groups are now.
    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog.catalog
    }

    /// An operator wants to change the catalog; [`DriverOutput::CatalogChanged`] with the same `id`
    /// says what became of it. `operation` is the operator's own name for it, of at most
    /// [`NAME_BYTES_MAX`] octets: under one name one change is carried out once, whoever asks
    /// again.
    pub fn handle_define(&mut self, id: u64, operation: Bytes, change: CatalogChange) {
        let refused = if self.is_primary() {
            self.too_long(&operation, &change)
        } else {
            Some(CatalogRefused::NoPrimary)
        };
        if let Some(refused) = refused {
            return self
                .out
                .push_back(DriverOutput::CatalogChanged { id, result: Err(refused) }.into());
        }
        self.catalog.ordered.insert(id);
        let envelope = Envelope::Define { id, operation, change };
        self.out.push_back(OrderOutput::Submit(envelope.encode()).into());
    }

    fn too_long(&self, operation: &Bytes, change: &CatalogChange) -> Option<CatalogRefused> {
        let name = change.name();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Some(CatalogRefused::TooLong("name"));
        }
        if operation.is_empty() || operation.len() > NAME_BYTES_MAX {
            return Some(CatalogRefused::TooLong("name of the operation"));
        }
        match change {
            CatalogChange::Create(Definition { text, .. })
            | CatalogChange::Change(Definition { text, .. })
                if text.len() > DEFINITION_BYTES_MAX =>
            {
                Some(CatalogRefused::TooLong("text of the definition"))
            }
            _ => None,
        }
    }

    /// The disk has the catalog as it was at that place of the order.
    pub fn handle_catalog_saved(&mut self, version: Position) {
        self.catalog.saved = self.catalog.saved.max(Some(version));
        self.tell_catalog();
        self.mind_recorded();
    }

    /// A change, at its place in the order.
    pub(super) fn deliver_define(
        &mut self,
        now: Instant,
        by: (NodeId, u64),
        id: u64,
        (operation, change): (Bytes, CatalogChange),
    ) {
        let result = self.carry_out_change(now, &operation, &change);
        let is_mine = by == (self.here.node, self.here.incarnation);
        if !is_mine || !self.catalog.ordered.remove(&id) {
            return;
        }
        match (result, self.catalog.catalog.version()) {
            (Ok(changed), Some(at)) if !canary!(CreatesBeforeSaved) => {
                self.catalog.awaited.push(Awaited { id, at, changed });
                self.release_changes();
            }
            (result, _) => self.out.push_back(DriverOutput::CatalogChanged { id, result }.into()),
        }
    }

    fn carry_out_change(
        &mut self,
        now: Instant,
        operation: &Bytes,
        change: &CatalogChange,
    ) -> Result<CatalogChanged, CatalogRefused> {
        let checked = self.check_change(operation, change)?;
        if let Checked::Repeated(changed) = checked {
            return Ok(changed);
        }
        let lineage = self.lineage.as_ref().expect("messages are applied in a component");
        let at = Position { component: lineage.view, prefix: self.prefix };
        let operation = Bytes::copy_from_slice(operation);
        let record = Catalog::record_of(at, &operation, change);
        let id = self.catalog.catalog.apply(at, operation.clone(), change);
        let definition = self.catalog.catalog.get(id).cloned();
        match checked {
            Checked::Create(defined) => self.add_defined(id, defined, true),
            Checked::Change(defined) => self.change_defined(now, id, defined),
            Checked::Delete => self.remove_defined(id),
            Checked::Repeated(_) => unreachable!("it was looked for"),
        }
        self.out.push_back(DriverOutput::Catalog(record).into());
        self.tell_news(id, &checked_news(change), (definition, Some(operation)));
        self.mind_logging();
        self.begin_group(now, id, change);
        Ok(CatalogChanged { id, is_repeated: false })
    }

    /// A group that is new takes part in the component that there is.
    fn begin_group(&mut self, now: Instant, id: GroupId, change: &CatalogChange) {
        let nodes =
            self.lineage.as_ref().map(crate::messages::hello::Lineage::nodes).unwrap_or_default();
        let (here, is_primary) = (self.here, self.is_primary());
        if let (Some(group), CatalogChange::Create(_)) = (self.groups.get_mut(id), change) {
            group.decided(now, nodes, nodes, here, &mut self.out);
        }
        if is_primary && self.groups.contains(id) {
            self.settle(now, id);
        }
    }

    fn check_change(
        &self,
        operation: &Bytes,
        change: &CatalogChange,
    ) -> Result<Checked, CatalogRefused> {
        let catalog = &self.catalog.catalog;
        if !canary!(ForgetsOperations) {
            let reused = |_| CatalogRefused::OperationReused;
            if let Some(changed) = catalog.repeated(operation, change).map_err(reused)? {
                return Ok(Checked::Repeated(changed));
            }
        }
        if self.memory_groups.is_some() {
            return Err(CatalogRefused::Waits);
        }
        let name = change.name();
        let known = catalog.id_of(name);
        match (change, known) {
            (CatalogChange::Create(_), Some(_)) => Err(CatalogRefused::Exists(Arc::clone(name))),
            (CatalogChange::Create(_), None) if catalog.len() >= DEFINITIONS_MAX => {
                Err(CatalogRefused::TooMany)
            }
            (CatalogChange::Create(definition), None) => {
                let defined = self.define(definition).map_err(CatalogRefused::Invalid)?;
                if let Defined::Group(config) = &defined {
                    self.check_callees(config)?;
                }
                Ok(Checked::Create(defined))
            }
            (_, None) => Err(CatalogRefused::Unknown(Arc::clone(name))),
            (CatalogChange::Change(definition), Some(id)) => {
                let defined = self.define(definition).map_err(CatalogRefused::Invalid)?;
                match (&defined, self.groups.get(id)) {
                    (Defined::Group(config), Some(group)) => group.check_config(config)?,
                    (Defined::Outside(_), None) if self.is_outside(id) => {}
                    // This version could not read what is there.
                    (_, None) if !self.is_outside(id) => {}
                    _ => return Err(CatalogRefused::OtherKind(Arc::clone(name))),
                }
                Ok(Checked::Change(defined))
            }
            (CatalogChange::Delete(_), Some(id)) => match self.caller_of(id) {
                Some(caller) => Err(CatalogRefused::IsCalled(caller)),
                None => Ok(Checked::Delete),
            },
        }
    }

    /// Stateless groups neither call nor are called.
    fn check_callees(&self, config: &GroupConfig) -> Result<(), CatalogRefused> {
        let is_stateless = |id: GroupId| {
            self.groups.get(id).is_some_and(|group| group.style() == Style::Stateless)
        };
        let callee =
            config.calls.iter().find(|id| config.style == Style::Stateless || is_stateless(**id));
        match callee.and_then(|id| self.catalog.catalog.get(*id)) {
            Some(definition) => Err(CatalogRefused::CallsStateless(Arc::clone(&definition.name))),
            None => Ok(()),
        }
    }

    /// The name of a group that calls this one.
    fn caller_of(&self, id: GroupId) -> Option<Arc<str>> {
        let (caller, _) = self.groups.iter().find(|(_, group)| group.calls().contains(&id))?;
        self.catalog.catalog.get(caller).map(|definition| Arc::clone(&definition.name))
    }

    /// What a definition means, as long as it names nothing that there is not.
    fn define(&self, definition: &Definition) -> Result<Defined, String> {
        let catalog = &self.catalog.catalog;
        self.config.definitions.define(definition, &|name| catalog.id_of(name))
    }

    // -- what the catalog means -------------------------------------------------------------

    /// All that the catalog has, in a replica that has nothing yet.
    pub(super) fn define_all(&mut self) {
        let ids: Vec<GroupId> = self.catalog.catalog.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.define_here(id, false);
        }
        self.mark_called();
        self.mind_logged();
    }

    fn define_here(&mut self, id: GroupId, is_new: bool) {
        let Some(definition) = self.catalog.catalog.get(id) else { return };
        match self.define(definition) {
            Ok(defined) => self.add_defined(id, defined, is_new),
            // All nodes of a version read alike; this is one that another version wrote.
            Err(reason) => {
                let name = Arc::clone(&definition.name);
                self.out.push_back(Output::Event(Event::Unreadable { name, reason }));
            }
        }
    }

    fn add_defined(&mut self, id: GroupId, defined: Defined, is_new: bool) {
        let config = match defined {
            Defined::Group(config) => *config,
            Defined::Outside(server) => return self.outside.define(id, server),
        };
        let is_logged = self.catalog.is_logged();
        let config = GroupConfig { logged: is_logged, is_called: false, ..config };
        self.catalog.durable += usize::from(config.durable);
        config.calls.iter().for_each(|callee| self.set_called(*callee, true));
        let bootstrapped = !is_new && self.config.record.latest().is_some();
        let mut group = Group::new(id, config, self.here, bootstrapped);
        if self.is_replaying {
            group.begin_replay();
        }
        for node in self.linked.iter() {
            group.peer_up(node, &mut self.out);
        }
        self.groups.insert(id, group);
    }

    fn set_called(&mut self, callee: GroupId, is_called: bool) {
        if let Some(group) = self.groups.get_mut(callee) {
            group.set_called(is_called);
        }
    }

    fn mark_called(&mut self) {
        let callers = self.groups.values().filter(|group| !group.calls().is_empty());
        let called: BTreeSet<GroupId> = callers.flat_map(|group| group.calls().to_vec()).collect();
        for (id, group) in self.groups.iter_mut() {
            group.set_called(called.contains(&id));
        }
    }

    fn change_defined(&mut self, now: Instant, id: GroupId, next: Defined) {
        let (here, out) = (self.here, &mut self.out);
        match next {
            Defined::Outside(server) => self.outside.define(id, server),
            Defined::Group(config) => {
                if let Some(group) = self.groups.get_mut(id) {
                    group.set_config(now, *config, here, out);
                }
            }
        }
    }

    fn remove_defined(&mut self, id: GroupId) {
        self.outside.forget(id);
        self.disk.forget(id);
        self.calls.reset(id);
        self.lost.retain(|payload| super::memory_groups::concerned(payload) != Some(id));
        let Some(group) = self.groups.remove(id) else { return };
        self.catalog.durable -= usize::from(group.is_durable());
        let calls_others = !group.calls().is_empty();
        group.dissolve(&mut self.out);
        if calls_others {
            self.mark_called();
        }
    }

    /// The domain writes down what it applies from here on, or does so no more.
    fn mind_logging(&mut self) {
        let is_logged = self.catalog.is_logged();
        if self.mind_logged() && !self.is_replaying {
            if is_logged {
                self.begin_log();
            } else {
                self.disk.end_log();
            }
        }
    }

    /// Whether groups heard something new.
    fn mind_logged(&mut self) -> bool {
        let is_logged = self.catalog.is_logged();
        let is_news = self.groups.values().any(|group| group.config().logged != is_logged);
        if is_news {
            self.groups.values_mut().for_each(|group| group.set_logged(is_logged));
        }
        is_news
    }

    fn tell_news(
        &mut self,
        id: GroupId,
        news: &DefinitionNews,
        (definition, operation): (Option<Definition>, Option<Bytes>),
    ) {
        self.out.push_back(DriverOutput::Defined { id, news: *news, definition, operation }.into());
    }

    // -- what a component goes on from ------------------------------------------------------

    /// What this node says of its catalog when a view begins.
    pub(super) fn catalog_mark(&self) -> CatalogMark {
        self.catalog.catalog.mark()
    }

    /// The node whose catalog the component goes on from, if some of its nodes have another one.
    pub(super) fn leading_catalog(
        statements: &BTreeMap<NodeId, Statement>,
        (current, basis): (NodeSet, Basis),
    ) -> Option<NodeId> {
        let living = |(node, statement): &(&NodeId, &Statement)| {
            basis == Basis::Continues && current.contains(**node) && !statement.is_restored(**node)
        };
        let mark = |statement: &Statement| statement.hello.catalog;
        let of_living = statements.iter().find(living).map(|(_, statement)| mark(statement));
        let found = of_living.or_else(|| {
            let newest = statements.values().map(mark).max_by_key(|mark| mark.version)?;
            // Of what files say, what the first node has.
            statements.values().map(mark).find(|mark| mark.version == newest.version)
        })?;
        // Of two of one version, the one that counts.
        let counts = |mark: &CatalogMark| mark.version == found.version && mark.counts();
        let leading = statements.values().map(mark).find(counts).unwrap_or(found);
        if statements.values().all(|statement| mark(statement) == leading) {
            return None;
        }
        statements.iter().find(|(_, statement)| mark(statement) == leading).map(|(node, _)| *node)
    }

    /// The component goes on from this catalog. Tables are those of the nodes that are up to date;
    /// what has none begins.
    pub(super) fn install_catalog(&mut self, next: Catalog) {
        let difference = self.catalog.catalog.changes_to(&next);
        self.catalog.catalog = next;
        for id in difference.deleted {
            self.remove_defined(id);
            self.tell_news(id, &DefinitionNews::Deleted, (None, None));
        }
        for id in difference.created {
            self.define_here(id, false);
            let definition = self.catalog.catalog.get(id).cloned();
            self.tell_news(id, &DefinitionNews::Created, (definition, None));
        }
        for id in difference.changed {
            let Some(definition) = self.catalog.catalog.get(id).cloned() else { continue };
            match self.define(&definition) {
                // Tables are fitted when all nodes have the same.
                Ok(Defined::Group(config)) => {
                    let here = self.here;
                    if let Some(group) = self.groups.get_mut(id) {
                        group.take_config(*config, here);
                    }
                }
                Ok(Defined::Outside(server)) => self.outside.define(id, server),
                Err(reason) => {
                    let name = Arc::clone(&definition.name);
                    self.out.push_back(Output::Event(Event::Unreadable { name, reason }));
                }
            }
            self.tell_news(id, &DefinitionNews::Changed, (Some(definition), None));
        }
        // Versions may have risen without a change of what they are of.
        self.out.push_back(GatewayOutput::References.into());
        self.mark_called();
        self.mind_logged();
        if let Some(memory_groups) = &mut self.memory_groups {
            let groups = self.groups.iter().filter(|(_, group)| group.lives_in_memory());
            memory_groups.groups = groups.map(|(id, _)| id).collect();
        }
        self.save_catalog();
    }

    /// A component is established: what a file says counts from here on, and so do the versions of
    /// references.
    pub(super) fn establish_catalog(&mut self, component: crate::words::ids::RingId) {
        let at = Position { component, prefix: 0 };
        match self.catalog.catalog.establish(at, self.config.gateways) {
            CatalogNews::Same => {}
            CatalogNews::Begun => self.save_catalog(),
            CatalogNews::Moved => {
                self.out.push_back(GatewayOutput::References.into());
                self.save_catalog();
            }
        }
        self.catalog.others.clear();
        self.tell_catalog();
    }

    /// The tables that a component goes on from have the members of its catalog.
    pub(super) fn fit_tables(&mut self, now: Instant) {
        let here = self.here;
        for group in self.groups.values_mut() {
            group.fit_table(now, here, &mut self.out);
        }
    }

    /// What the log has and the catalog's own file has not.
    pub(super) fn save_what_is_not(&mut self) {
        if !self.catalog.is_saved() {
            self.save_catalog();
        }
    }

    fn save_catalog(&mut self) {
        self.out.extend(self.catalog.catalog.record().map(DriverOutput::Catalog).map(Output::from));
    }

    // -- what is on disks -------------------------------------------------------------------

    fn tell_catalog(&mut self) {
        let Some(saved) = self.catalog.saved.filter(|_| self.is_primary()) else { return };
        let nodes =
            self.lineage.as_ref().map(crate::messages::hello::Lineage::nodes).unwrap_or_default();
        let me = self.here.node;
        for to in nodes.iter().filter(|node| *node != me) {
            self.send_catalog(to, saved);
        }
        self.release_changes();
    }

    /// Messages pass to a node again: it may not have heard the last one.
    pub(super) fn tell_catalog_to(&mut self, to: NodeId) {
        if let Some(saved) = self.catalog.saved.filter(|_| self.is_primary()) {
            self.send_catalog(to, saved);
        }
    }

    fn send_catalog(&mut self, to: NodeId, saved: Position) {
        let message = PeerMessage::CatalogSaved { version: saved };
        self.out.push_back(
            DriverOutput::Peer { to, lane: message.lane(), bytes: message.encode() }.into(),
        );
    }

    /// Another node says how far its disk is.
    pub(super) fn hear_catalog(&mut self, from: NodeId, version: Position) {
        let mine = self.lineage.as_ref().map(|lineage| lineage.view);
        if Some(version.component) > mine {
            // It has gone on without this node, and what waits here may not be in that (seed 301442
            // of the simulator's `groups`). Once this node is there, too, it is told anew.
            return;
        }
        let said = self.catalog.others.entry(from).or_insert(version);
        *said = (*said).max(version);
        self.release_changes();
    }

    /// Answers operators whose changes are on so many disks that every later component has one.
    fn release_changes(&mut self) {
        if self.catalog.awaited.is_empty() {
            return;
        }
        let nodes =
            self.lineage.as_ref().map(crate::messages::hello::Lineage::nodes).unwrap_or_default();
        let me = self.here.node;
        let part = &self.catalog;
        let said = |node| if node == me { part.saved } else { part.others.get(&node).copied() };
        let holders = if self.config.quorum.is_dynamic() {
            nodes.len()
        } else {
            self.config.quorum.holders_min(self.config.nodes.len(), nodes.len())
        };
        let mut saved: Vec<_> = nodes.iter().map(said).collect();
        saved.sort_unstable_by(|a, b| b.cmp(a));
        let reach = holders.checked_sub(1).and_then(|last| saved.get(last).copied()).flatten();
        let out = &mut self.out;
        self.catalog.awaited.retain(|awaited| {
            let is_safe = Some(awaited.at) <= reach;
            if is_safe {
                let Awaited { id, changed, .. } = *awaited;
                out.push_back(DriverOutput::CatalogChanged { id, result: Ok(changed) }.into());
            }
            !is_safe
        });
    }

    /// The view is over: nobody will say what is on disks because of it.
    pub(super) fn interrupt_changes(&mut self) {
        let ordered = core::mem::take(&mut self.catalog.ordered);
        let awaited = core::mem::take(&mut self.catalog.awaited);
        let ids = ordered.into_iter().chain(awaited.into_iter().map(|awaited| awaited.id));
        let result = Err(CatalogRefused::Interrupted);
        let tell = |id| DriverOutput::CatalogChanged { id, result: result.clone() };
        self.out.extend(ids.map(tell).map(Output::from));
    }
}

fn checked_news(change: &CatalogChange) -> DefinitionNews {
    match change {
        CatalogChange::Create(_) => DefinitionNews::Created,
        CatalogChange::Change(_) => DefinitionNews::Changed,
        CatalogChange::Delete(_) => DefinitionNews::Deleted,
    }
}
