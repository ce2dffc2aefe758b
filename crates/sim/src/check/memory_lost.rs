//! Promise 4, its other half: a domain gives up acknowledged requests only if it had to.
//!
//! Under the static rule that is when a majority lost its memory at once, which only a plan that
//! is a catastrophe lets happen. Under the dynamic rule the last component may be small, and its
//! memory with it. So what all disks ever said of components is remembered here, and who formed
//! which: memory is lost if, of the last component that somebody up remembers, or of a later one,
//! not one node is up that is sure to hold what it acknowledged.

use quorba_base::NodeId;
use quorba_engine::replica::{Lineage, Quorum, Record, RingId};
use std::collections::{BTreeMap, BTreeSet};

/// See the module's text.
#[derive(Clone, Default)]
pub(crate) struct Memories {
    components: BTreeMap<RingId, Lineage>,
    /// The last component that each node formed, and in which boot.
    formed: BTreeMap<NodeId, (u64, RingId)>,
    judged: BTreeSet<RingId>,
}

impl Memories {
    /// A node writes this down.
    pub(crate) fn note_record(&mut self, record: &Record) {
        for component in record.formed.iter().chain(&record.attempts) {
            self.components.insert(component.view, component.clone());
        }
    }

    /// A node is in a primary component.
    pub(super) fn note_formed(&mut self, node: NodeId, incarnation: u64, view: RingId) {
        self.formed.insert(node, (incarnation, view));
    }

    /// Whether the first node that decides so for `view` is right; `up` are the nodes with their
    /// boots.
    pub(super) fn is_lost(
        &mut self,
        nodes: usize,
        quorum: Quorum,
        view: RingId,
        up: &[(NodeId, u64)],
    ) -> bool {
        if !self.judged.insert(view) {
            return true;
        }
        let remembered = up.iter().filter_map(|(node, boot)| {
            let (formed_in, formed) = self.formed.get(node)?;
            (formed_in == boot).then_some(*formed)
        });
        let last = remembered.max();
        let in_doubt = |component: &Lineage| {
            let here = component.members.iter().filter(|member| up.contains(member)).count();
            let size = component.members.len();
            here + quorum.holders_min(nodes, size) <= size
        };
        let mut later = self.components.range(..view).filter(|(id, _)| Some(**id) >= last);
        later.any(|(_, component)| in_doubt(component))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::node_id;
    use quorba_engine::replica::QuorumRule;

    #[test]
    fn memory_is_lost_with_the_last_holder_and_not_before() {
        let quorum = Quorum { rule: QuorumRule::DynamicLinear, tie_breaker: None };
        let (a, b, c) = (node_id(0), node_id(1), node_id(2));
        let view = |seq| RingId { seq, representative: a };
        let component = |seq, members: &[(NodeId, u64)]| Record {
            formed: Some(Lineage { view: view(seq), members: members.to_vec() }),
            ..Record::default()
        };
        let mut memories = Memories::default();
        memories.note_record(&component(1, &[(a, 1), (b, 1), (c, 1)]));
        memories.note_record(&component(2, &[(a, 1), (b, 1)]));
        for node in [a, b] {
            memories.note_formed(node, 1, view(2));
        }
        memories.note_formed(c, 1, view(1));
        let mut is_lost = |seq, up: &[_]| memories.is_lost(3, quorum, view(seq), up);
        assert!(!is_lost(7, &[(a, 1), (b, 2), (c, 1)]), "one of two holders is left");
        assert!(!is_lost(8, &[(a, 1), (b, 1), (c, 2)]), "c had no part in the last one");
        assert!(is_lost(9, &[(a, 2), (b, 2), (c, 1)]), "nobody of the last one is left");
    }
}
