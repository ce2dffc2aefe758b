//! The replica of one node: views, the decision after each, and the groups.
//!
//! Invariants: messages are applied in a primary component only, in delivery order; what is
//! applied of one is always a beginning of its order, so that "up to here" says what a node has,
//! and a message behind a gap counts nowhere; a view in which nodes are behind is a primary
//! component from the delivery of the group tables on, for all.

use crate::config::ReplicaConfig;
use crate::envelope::Envelope;
use crate::group::{Group, GroupSnapshot, Here};
use crate::hello::{Hello, Lineage, Record, Snapshot};
use crate::history::History;
use crate::ids::{ChannelId, GroupId, ViewId};
use crate::output::{Availability, Event, Outbox, Output};
use crate::primary::dynamic::Known;
use crate::primary::{Basis, Blocked, Decision, Statement, decide, last_remembered};
use crate::table::DownReason;
use crate::transfer::Piece;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Instant, NodeId, NodeSet, canary};

/// A regular view of the ordering layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicaView {
    /// Its name.
    pub id: ViewId,
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
    Agreed(Agreed),
    Blocked(Blocked),
}

/// What stands between a decision and the primary component. Until it is delivered nothing counts,
/// on any node: who holds a message that counts, holds everything that made it count.
struct Agreed {
    view: ReplicaView,
    current: NodeSet,
    basis: Basis,
    /// The last component that one of its nodes remembers.
    base: Option<ViewId>,
    held_back: Vec<Delivered>,
    /// Nodes that have not said that they wrote the attempt down (dynamic rule).
    unrecorded: NodeSet,
    /// The tables, if some nodes lack them.
    tables: Tables,
}

enum Tables {
    NotNeeded,
    Awaited,
    Delivered(Snapshot),
}

impl Agreed {
    fn is_complete(&self) -> bool {
        self.unrecorded.is_empty() && !matches!(self.tables, Tables::Awaited)
    }
}

/// See the crate's text.
pub struct Replica {
    config: ReplicaConfig,
    here: Here,
    phase: Phase,
    groups: Vec<Group>,
    /// What is on disk.
    record: Record,
    lineage: Option<Lineage>,
    /// Messages applied since `lineage` was decided.
    prefix: u64,
    history: History,
    /// This node's own messages that were delivered where they do not count; those that concern
    /// its members are sent again when they do.
    lost: Vec<Bytes>,
    out: Outbox,
}

impl Replica {
    /// A replica that has seen no view.
    #[must_use]
    pub fn new(config: ReplicaConfig) -> Self {
        let here = Here { node: config.me, incarnation: config.incarnation };
        let groups = config
            .groups
            .iter()
            .enumerate()
            .map(|(index, group)| {
                let bootstrapped = config.record.latest().is_some();
                Group::new(GroupId(index as u16), group.clone(), here, bootstrapped)
            })
            .collect();
        Self {
            record: config.record.clone(),
            config,
            here,
            phase: Phase::Forming,
            groups,
            lineage: None,
            prefix: 0,
            history: History::EMPTY,
            lost: Vec::new(),
            out: Outbox::new(),
        }
    }

    /// The next effect to carry out.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When [`Self::handle_timeout`] is wanted.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let in_primary = matches!(self.phase, Phase::Primary);
        self.groups.iter().filter_map(|group| group.deadline(in_primary)).min()
    }

    /// Whether `group` can take a request now.
    #[must_use]
    pub fn availability(&self, group: GroupId) -> Availability {
        match &self.phase {
            Phase::Primary => {
                let Some(group) = self.groups.get(usize::from(group.0)) else {
                    return Availability::NoMember;
                };
                if group.table().in_set().is_empty() {
                    let starting = !group.table().opened;
                    if starting { Availability::Starting } else { Availability::NoMember }
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

    /// Figures of every group, in the order of the domain file.
    #[must_use]
    pub fn group_snapshots(&self) -> Vec<GroupSnapshot> {
        self.groups.iter().map(Group::snapshot).collect()
    }

    /// The digest of everything applied so far: equal on nodes that are in step.
    #[must_use]
    pub fn history(&self) -> History {
        self.history
    }

    /// A regular view: every node says what it has, and the last word decides.
    pub fn handle_view(&mut self, view: ReplicaView) {
        let hello = Hello {
            view: view.id,
            record: self.record.clone(),
            lineage: self.lineage.clone(),
            prefix: self.prefix,
            branch: self.history.digest,
        };
        self.out.push_back(Output::Order(Envelope::Hello(hello).encode()));
        let statements = BTreeMap::new();
        let syncing = Phase::Syncing { view, statements, held_back: Vec::new() };
        match core::mem::replace(&mut self.phase, syncing) {
            // The view ended before it was decided: nobody applied any of it.
            Phase::Syncing { held_back, .. } | Phase::Agreed(Agreed { held_back, .. }) => {
                self.disregard(held_back);
            }
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
        self.lost.extend(mine.map(|d| d.payload).filter(concerns_members));
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

    fn sync(&mut self, now: Instant, delivered: Delivered) {
        let Phase::Syncing { view, statements, held_back, .. } = &mut self.phase else {
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
        let is_of_view = hello.view == view.id || canary!(TakesAnyHello);
        if !is_of_view || !view.members.contains(&spoke) {
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
        match decide(self.config.nodes, self.config.quorum, &statements) {
            Decision::NotPrimary(reason) => {
                self.out.push_back(Output::Event(Event::Blocked { view: view.id, reason }));
                self.disregard(held_back);
                self.phase = Phase::Blocked(reason);
            }
            Decision::Primary { current, basis } => {
                let unrecorded = self.attempt(&view, &statements);
                let tables =
                    if view.nodes() == current { Tables::NotNeeded } else { Tables::Awaited };
                let base = last_remembered(&statements).map(|last| last.view);
                let agreed = Agreed { view, current, basis, base, held_back, unrecorded, tables };
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
        self.out.push_back(Output::Record(self.record.clone()));
        self.out.push_back(Output::Order(Envelope::Recorded { view: view.id }.encode()));
        view.nodes()
    }

    /// The view may go on, as soon as all have what they need for it.
    fn go_on(&mut self, now: Instant, agreed: Agreed) {
        if agreed.is_complete() {
            return self.establish(now, agreed);
        }
        let Agreed { view, current, .. } = &agreed;
        if *current != view.nodes() && current.lowest() == Some(self.here.node) {
            let tables = self.groups.iter();
            let tables = tables.map(|g| g.table().kept_only(*current, view.nodes())).collect();
            let snapshot = Snapshot { view: view.id, history: self.history, tables };
            self.out.push_back(Output::Order(Envelope::Snapshot(snapshot).encode()));
        }
        self.phase = Phase::Agreed(agreed);
    }

    /// Takes what the view waits for; all else is held back.
    fn complete(&mut self, now: Instant, delivered: Delivered) {
        let Phase::Agreed(agreed) = &mut self.phase else {
            unreachable!("the caller matched");
        };
        let spoke = (delivered.origin, delivered.incarnation);
        match Envelope::decode(delivered.payload.clone()) {
            Ok(Envelope::Snapshot(snapshot))
                if snapshot.view == agreed.view.id
                    && snapshot.tables.len() == self.groups.len() =>
            {
                agreed.tables = Tables::Delivered(snapshot);
            }
            Ok(Envelope::Recorded { view })
                if view == agreed.view.id && agreed.view.members.contains(&spoke) =>
            {
                agreed.unrecorded.remove(delivered.origin);
            }
            _ => return agreed.held_back.push(delivered),
        }
        if agreed.is_complete() {
            let phase = core::mem::replace(&mut self.phase, Phase::Forming);
            let Phase::Agreed(agreed) = phase else { unreachable!("matched above") };
            self.establish(now, agreed);
        }
    }

    /// From here on the view is a primary component, and this node is up to date in it.
    fn establish(&mut self, now: Instant, agreed: Agreed) {
        let Agreed { view, current, basis, base, held_back, tables, .. } = agreed;
        match tables {
            Tables::Delivered(snapshot) if !current.contains(self.here.node) => {
                // The members start over, so what was said of them before is void.
                self.lost.clear();
                self.history = snapshot.history;
                for (group, table) in self.groups.iter_mut().zip(snapshot.tables) {
                    group.fell_behind();
                    group.adopt(table);
                }
            }
            Tables::NotNeeded if matches!(basis, Basis::FirstStart | Basis::ColdStart) => {
                self.history = History::EMPTY;
                self.groups.iter_mut().for_each(Group::begin_anew);
            }
            _ => {}
        }
        // Ordered before what made the component: nobody counts it, and who sent it says it again.
        self.disregard(held_back);
        let members = view.nodes();
        let lineage = Lineage { view: view.id, members: view.members };
        self.record = Record { formed: Some(lineage.clone()), base, attempts: Vec::new() };
        self.out.push_back(Output::Record(self.record.clone()));
        let event = Event::Primary { view: view.id, members, current, basis };
        self.out.push_back(Output::Event(event));
        for group in &mut self.groups {
            group.decided(now, current, members, self.here, &mut self.out);
        }
        self.lineage = Some(lineage);
        self.prefix = 0;
        self.phase = Phase::Primary;
        self.out.extend(core::mem::take(&mut self.lost).into_iter().map(Output::Order));
        self.out.push_back(Output::Resubmit { group: None });
        self.settle_all(now);
    }

    /// Applies a message in a primary component.
    fn apply(&mut self, now: Instant, delivered: Delivered) {
        self.history = extend(self.history, &delivered);
        self.prefix += 1;
        let Delivered { origin, incarnation, payload, .. } = delivered;
        let Ok(envelope) = Envelope::decode(payload) else {
            self.out.push_back(Output::Event(Event::Skipped { origin }));
            return;
        };
        let here = self.here;
        let Some(id) = target(&envelope) else { return };
        let Some(group) = self.groups.get_mut(usize::from(id.0)) else {
            self.out.push_back(Output::Event(Event::Skipped { origin }));
            return;
        };
        let out = &mut self.out;
        match envelope {
            Envelope::Request(request) => {
                group.deliver_request(origin, incarnation, request, here, out);
            }
            Envelope::Reply { to, giop, .. } => {
                group.deliver_reply(origin, to, giop, here, out);
            }
            Envelope::Join { attempt, claim, .. } => {
                group.deliver_join(now, origin, attempt, claim, here, out);
            }
            Envelope::Joined { attempt, .. } => {
                group.deliver_joined(now, origin, attempt, here, out);
            }
            Envelope::Down { attempt, reason, .. } => {
                group.deliver_down(now, origin, attempt, reason, here, out);
            }
            Envelope::State { joiner, attempt, offset, total, bytes, .. } => {
                let piece = Piece { joiner, attempt, offset, total, bytes };
                group.deliver_state(origin, &piece, here, out);
            }
            Envelope::StateFailed { joiner, attempt, .. } => {
                let reason = DownReason::StateUnavailable;
                group.deliver_down(now, joiner, attempt, reason, here, out);
            }
            Envelope::Open { .. } => group.deliver_open(out),
            Envelope::Hello(_) | Envelope::Snapshot(_) | Envelope::Recorded { .. } => {
                unreachable!("they have no group")
            }
        }
        group.settle(now, true, here, out);
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
        self.with_group(now, group, |group, here, out| group.received(channel, bytes, here, out));
    }

    /// The time that [`Self::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.settle_all(now);
    }

    fn with_group(
        &mut self,
        now: Instant,
        group: GroupId,
        act: impl FnOnce(&mut Group, Here, &mut Outbox),
    ) {
        let in_primary = matches!(self.phase, Phase::Primary);
        if let Some(group) = self.groups.get_mut(usize::from(group.0)) {
            act(group, self.here, &mut self.out);
            group.settle(now, in_primary, self.here, &mut self.out);
        }
    }

    fn settle_all(&mut self, now: Instant) {
        let in_primary = matches!(self.phase, Phase::Primary);
        for group in &mut self.groups {
            group.settle(now, in_primary, self.here, &mut self.out);
        }
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
            | Envelope::State { .. }
            | Envelope::StateFailed { .. }
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
        | Envelope::State { group, .. }
        | Envelope::StateFailed { group, .. }
        | Envelope::Open { group } => Some(*group),
        Envelope::Hello(_) | Envelope::Snapshot(_) | Envelope::Recorded { .. } => None,
    }
}
