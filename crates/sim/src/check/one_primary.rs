//! Promise 4: one primary component at a time.
//!
//! Seen from inside: what is decided for a view is decided alike by all, and for a majority. Seen
//! from outside: replies of two components would pin conflicting histories.

use crate::ledger::Call;
use crate::servant::{Mark, Reference};
use quorba_base::NodeSet;
use quorba_engine::replica::primary::Basis;
use quorba_engine::replica::{Quorum, ViewId};
use std::collections::BTreeMap;

/// Which history was acknowledged up to each position.
#[derive(Clone, Default)]
pub(crate) struct Positions(BTreeMap<u64, (u64, Reference)>);

impl Positions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn note(&mut self, reference: Reference, call: &Call, mark: Mark) -> Option<String> {
        let (digest, first) = *self.0.entry(mark.length).or_insert((mark.digest, reference));
        (digest != mark.digest).then(|| {
            format!(
                "two histories were acknowledged: {:x} and {:x} of c{}, both up to {}",
                first.0, reference.0, call.client, mark.length
            )
        })
    }
}

/// What was decided for each view.
#[derive(Clone, Default)]
pub(crate) struct Decisions(BTreeMap<ViewId, (NodeSet, NodeSet, Basis)>);

impl Decisions {
    pub(super) fn note(
        &mut self,
        (nodes, quorum): (usize, Quorum),
        view: ViewId,
        members: NodeSet,
        current: NodeSet,
        basis: Basis,
    ) -> Option<String> {
        // What the dynamic rule asks for depends on the past; its own tests walk all of that.
        let enough = quorum.is_dynamic() || quorum.of(NodeSet::first(nodes), members);
        if !enough || current.is_empty() || !current.is_subset(members) {
            return Some(format!("view {view:?} of {members:?} is primary with {current:?}"));
        }
        let decided = *self.0.entry(view).or_insert((members, current, basis));
        (decided != (members, current, basis))
            .then(|| format!("view {view:?}: {decided:?}, and {:?}", (members, current, basis)))
    }
}
