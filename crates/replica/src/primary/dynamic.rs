//! The decision by the dynamic rule: promise 4 where the last component counts, not the domain.
//!
//! *One at a time.* A view becomes a primary component in two steps. First it attempts: it has a
//! quorum of the last component `F` that any of its nodes knows to be formed (of the domain, if
//! there was none), and of every later attempt that any of them knows; every node writes the
//! attempt to its disk, and says so. Only when all have said so is it formed, and only then does
//! anyone act in it (Yeger Lotem, Keidar and Dolev, PODC 1997). Let `A` and `B` both have a quorum
//! of `F`: they share a node, and it was in one of the views first, say in that of `A`. If it
//! wrote down `A`, the view of `B` knew `A` and has a quorum of it, so `A` can acknowledge nothing
//! more; if it did not, `A` is never formed. So formed components are in one line, each with a
//! quorum of the one before.
//!
//! *Nothing is lost.* What `C` acknowledged, a majority of `C` holds, and with it everything that
//! formed `C`, so they remember `C` as long as they live. Of the nodes of `C` that are here and
//! have lived on, at least `k = k0 + majority(C) - |C|` are among them. If `k >= 1` for the last
//! component that somebody here remembers, the k-th furthest has everything, as with the static
//! rule. For a later one, which nobody here remembers, `k >= 1` says that it acknowledged nothing;
//! `k = 0`, that it may have, and must be waited for. A node's record names them all until it has
//! formed a later one itself, for only then it has what they acknowledged.
//!
//! Invariant: pure.

use super::{
    Basis, Blocked, Decision, Quorum, Statement, holders_here, mark, most_shared, remembering,
};
use crate::messages::hello::{Hello, Lineage, Record};
use crate::words::ids::RingId;
use alloc::collections::BTreeMap;
use quorba_base::{NodeId, NodeSet};

/// The components that the nodes of a view know of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Known {
    /// The last one that is known to have been formed.
    formed: Option<Lineage>,
    /// The last one that somebody has in memory.
    remembered: Option<Lineage>,
    /// All those behind that one, formed or not.
    later: BTreeMap<RingId, Lineage>,
}

impl Known {
    /// What these say, taken together.
    pub(crate) fn of<'a>(hellos: impl Iterator<Item = &'a Hello> + Clone) -> Self {
        let remembered = hellos.clone().filter_map(|hello| hello.lineage.as_ref());
        let remembered = remembered.max_by_key(|lineage| lineage.view).cloned();
        let formed = hellos.clone().filter_map(|hello| hello.record.formed.as_ref());
        let formed = formed.chain(&remembered).max_by_key(|lineage| lineage.view).cloned();
        let after = |known: &&Lineage| remembered.as_ref().is_none_or(|r| known.view > r.view);
        let recorded =
            hellos.flat_map(|hello| hello.record.formed.iter().chain(&hello.record.attempts));
        let later = recorded.filter(after).map(|known| (known.view, known.clone())).collect();
        Self { formed, remembered, later }
    }

    /// Whether `view` may be the next component after all of these.
    pub(crate) fn has_quorum(&self, nodes: NodeSet, quorum: Quorum, view: NodeSet) -> bool {
        let base = self.formed.as_ref().map_or(nodes, Lineage::nodes);
        let formed = self.formed.as_ref().map(|formed| formed.view);
        let mut attempts = self.later.values().filter(|known| Some(known.view) > formed);
        quorum.of(base, view) && attempts.all(|attempt| quorum.of(attempt.nodes(), view))
    }

    /// What the node that said `own` writes down before it takes part in `attempt`: besides what
    /// all know, everything behind the last component that it has formed itself. Of attempts of the
    /// same boots the last one stands for all, so that the record does not grow with every try.
    pub(crate) fn with(self, own: &Hello, attempt: Lineage) -> Record {
        let Self { formed, remembered, later } = self;
        let mine = own.lineage.as_ref().map(|lineage| lineage.view);
        let recorded = own.record.formed.iter().chain(&own.record.attempts).cloned();
        let mut all = later;
        all.extend(recorded.chain(remembered).map(|known| (known.view, known)));
        all.retain(|view, known| Some(*view) > mine && known.members != attempt.members);
        if let Some(formed) = &formed {
            all.remove(&formed.view);
        }
        let attempts = all.into_values().chain([attempt]).collect();
        Record { formed, base: None, attempts, former: None }
    }
}

pub(super) fn decide(
    nodes: NodeSet,
    quorum: Quorum,
    statements: &BTreeMap<NodeId, Statement>,
) -> Decision {
    let view: NodeSet = statements.keys().copied().collect();
    let known = Known::of(statements.values().map(|statement| &statement.hello));
    if !known.has_quorum(nodes, quorum, view) {
        return Decision::NotPrimary(Blocked::NoQuorum);
    }
    let holders_min = |component: &Lineage| holders_here(nodes, quorum, statements, component);
    let acknowledged_nothing = |component: &Lineage| holders_min(component) > 0;
    let is_sure = known.later.values().all(acknowledged_nothing);
    let Some(last) = &known.remembered else {
        return match (is_sure, view == nodes) {
            (true, _) => Decision::Primary { current: view, basis: Basis::FirstStart },
            (false, true) => Decision::Primary { current: view, basis: Basis::ColdStart },
            (false, false) => Decision::NotPrimary(Blocked::MemoryAway),
        };
    };
    let here = remembering(last, statements);
    let threshold = mark(last.view, &here, holders_min(last)).filter(|_| is_sure);
    let (threshold, basis) = match threshold {
        Some(threshold) => (threshold, Basis::Continues),
        None if view == nodes => (here[0], Basis::MemoryLost),
        None => return Decision::NotPrimary(Blocked::MemoryAway),
    };
    Decision::Primary { current: most_shared(statements, threshold), basis }
}
