//! From a view to a primary component: every node says what it has, all decide alike, and what the
//! component waits for is delivered to all.
//!
//! What it is not: the rule itself, which is [`crate::primary`]. Invariant: until a component is
//! established, nothing that is delivered counts, on any node.

use super::{Delivered, Phase, Replica, ReplicaView};
use crate::envelope::Envelope;
use crate::hello::{Lineage, Record, Snapshot};
use crate::history::History;
use crate::ids::ViewId;
use crate::nested::Calls;
use crate::output::{Event, Output};
use crate::primary::dynamic::Known;
use crate::primary::{Basis, Decision, Statement, decide, heeded, last_remembered};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorba_base::{Instant, NodeId, NodeSet, canary};

/// What stands between a decision and the primary component. Until it is delivered nothing counts,
/// on any node: who holds a message that counts, holds everything that made it count.
pub(super) struct Agreed {
    view: ReplicaView,
    current: NodeSet,
    basis: Basis,
    /// The last component that one of its nodes remembers.
    base: Option<ViewId>,
    pub(super) held_back: Vec<Delivered>,
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
        let is_recorded = self.unrecorded.is_empty() || canary!(FormsUnrecorded);
        is_recorded && !matches!(self.tables, Tables::Awaited)
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
        let statements = heeded(self.config.nodes, self.config.quorum, statements);
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
            let tables = tables.map(|group| group.table_for(*current, view.nodes())).collect();
            let (history, calls) = (self.history, self.calls.clone());
            let snapshot = Snapshot { view: view.id, history, tables, calls };
            self.out.push_back(Output::Order(Envelope::Snapshot(snapshot).encode()));
        }
        self.phase = Phase::Agreed(agreed);
    }

    /// Takes what the view waits for; all else is held back.
    pub(super) fn complete(&mut self, now: Instant, delivered: Delivered) {
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
                self.calls = snapshot.calls;
                let histories: Vec<_> = snapshot.tables.iter().map(|t| t.history).collect();
                self.break_log(&histories);
                let former: Vec<_> = self.groups.iter().map(|g| g.table().history).collect();
                for (group, table) in self.groups.iter_mut().zip(snapshot.tables) {
                    group.fell_behind();
                    if !canary!(KeepsOwnTables) {
                        group.adopt(table, &mut self.out);
                    }
                    group.bind(|caller| {
                        let caller = usize::from(caller.0);
                        former.get(caller) != histories.get(caller)
                    });
                }
            }
            Tables::NotNeeded if matches!(basis, Basis::FirstStart | Basis::ColdStart) => {
                self.history = History::EMPTY;
                self.calls = Calls::default();
                self.break_log(&alloc::vec![History::EMPTY; self.groups.len()]);
                self.groups.iter_mut().for_each(|group| group.begin_anew(&mut self.out));
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
        self.log_component();
        self.out.extend(core::mem::take(&mut self.lost).into_iter().map(Output::Order));
        self.say_reports_again();
        self.out.push_back(Output::Resubmit { group: None });
        self.settle_all(now);
    }
}
