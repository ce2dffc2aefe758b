//! Promise 4: one primary component at a time.
//!
//! Seen from inside: what is decided for a view is decided alike by all, and for a majority: of the
//! domain, or under the dynamic rule, of the component formed before it. Seen from outside: replies
//! of two components would pin conflicting histories.

use crate::ledger::Call;
use crate::servant::{Mark, Reference};
use quorba_base::NodeSet;
use quorba_engine::replica::primary::Basis;
use quorba_engine::replica::{Quorum, RingId};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

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
pub(crate) struct Decisions(BTreeMap<RingId, (NodeSet, NodeSet, Basis)>);

impl Decisions {
    pub(super) fn note(
        &mut self,
        (nodes, quorum): (usize, Quorum),
        view: RingId,
        members: NodeSet,
        current: NodeSet,
        basis: Basis,
    ) -> Option<String> {
        let enough = quorum.is_dynamic() || quorum.of(NodeSet::first(nodes), members);
        if !enough || current.is_empty() || !current.is_subset(members) {
            return Some(format!("view {view:?} of {members:?} is primary with {current:?}"));
        }
        let decided = *self.0.entry(view).or_insert((members, current, basis));
        if decided != (members, current, basis) {
            let other = (members, current, basis);
            return Some(format!("view {view:?}: {decided:?}, and {other:?}"));
        }
        if quorum.is_dynamic() { self.beside_the_line(nodes, quorum, view, members) } else { None }
    }

    /// Formed components are in one line, each with a quorum of the one before; the first one has
    /// a quorum of the domain. Whoever lost all memory is in this line as well: then, all nodes are
    /// there. A node may say late that it formed one, so both neighbours are looked at.
    fn beside_the_line(
        &self,
        nodes: usize,
        quorum: Quorum,
        view: RingId,
        members: NodeSet,
    ) -> Option<String> {
        let before = self.0.range(..view).next_back();
        let base = before.map_or(NodeSet::first(nodes), |(_, (members, ..))| *members);
        if !quorum.of(base, members) {
            return Some(format!("view {view:?} of {members:?} has no quorum of {base:?}"));
        }
        let (after, (later, ..)) = self.0.range((Excluded(view), Unbounded)).next()?;
        let text = || format!("view {after:?} of {later:?} has no quorum of {members:?}");
        (!quorum.of(members, *later)).then(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::node_id;
    use quorba_engine::replica::QuorumRule;

    fn set(nodes: &[usize]) -> NodeSet {
        nodes.iter().map(|node| node_id(*node)).collect()
    }

    #[test]
    fn a_component_beside_the_line_is_found_however_late_it_is_told() {
        let quorum = Quorum { rule: QuorumRule::DynamicLinear, tie_breaker: None };
        let line: [(u64, &[usize]); 3] = [(1, &[0, 1, 2]), (4, &[0, 1]), (6, &[0])];
        let told = |decisions: &mut Decisions, seq, nodes: &[usize]| {
            let view = RingId { seq, representative: node_id(nodes[0]) };
            let members = set(nodes);
            decisions.note((3, quorum), view, members, members, Basis::Continues)
        };
        let mut decisions = Decisions::default();
        for (seq, nodes) in line {
            assert_eq!(told(&mut decisions, seq, nodes), None);
            assert_eq!(told(&mut decisions, seq, nodes), None, "by another node");
        }
        assert_eq!(told(&mut decisions.clone(), 9, &[0, 1, 2]), None);
        assert!(told(&mut decisions.clone(), 9, &[1, 2]).is_some(), "no quorum of the last one");
        assert!(told(&mut decisions, 5, &[1]).is_some(), "the half that is not distinguished");
        let mut decisions = Decisions::default();
        assert!(told(&mut decisions.clone(), 1, &[0]).is_some(), "no quorum of the domain");
        assert_eq!(told(&mut decisions, 1, &[0, 1]), None);
        assert_eq!(told(&mut decisions, 7, &[0]), None);
        assert!(told(&mut decisions, 3, &[1, 2, 0]).is_some(), "a later one has no quorum of it");
    }
}
