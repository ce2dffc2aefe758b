//! Where each member of a group stands, with the sets that are asked for at every message.
//!
//! What it is not: the rules by which they change, which are the table's. Invariant: the sets are
//! those of the states, whatever was changed last.

use crate::table::{Lacks, MemberState};
use crate::words::node_map::NodeMap;
use quorba_base::{NodeId, NodeSet};

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Members {
    states: NodeMap<MemberState>,
    inside: NodeSet,
    joining: NodeSet,
    donors: NodeSet,
}

impl Members {
    pub(crate) fn get(&self, node: NodeId) -> Option<MemberState> {
        self.states.get(node).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// In ascending order of their nodes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, MemberState)> + '_ {
        self.states.iter().map(|(node, state)| (node, *state))
    }

    /// Members that are in.
    pub(crate) const fn inside(&self) -> NodeSet {
        self.inside
    }

    /// Members that join.
    pub(crate) const fn joining(&self) -> NodeSet {
        self.joining
    }

    /// Members whose servers are asked for their state.
    pub(crate) const fn donors(&self) -> NodeSet {
        self.donors
    }

    pub(crate) fn insert(&mut self, node: NodeId, state: MemberState) {
        self.states.insert(node, state);
        self.count();
    }

    /// Has exactly `nodes`; those that are new begin with `state`.
    pub(crate) fn fit(&mut self, nodes: NodeSet, state: MemberState) {
        self.states.retain(|node, _| nodes.contains(node));
        for node in nodes.iter() {
            self.states.get_or_insert_with(node, || state);
        }
        self.count();
    }

    /// Changes any of them.
    pub(crate) fn change(&mut self, mut change: impl FnMut(NodeId, &mut MemberState)) {
        for (node, state) in self.states.iter_mut() {
            change(node, state);
        }
        self.count();
    }

    fn count(&mut self) {
        (self.inside, self.joining, self.donors) = <(NodeSet, NodeSet, NodeSet)>::default();
        for (node, state) in self.states.iter() {
            match state {
                MemberState::In { .. } => self.inside.insert(node),
                MemberState::Joining { donor, lacks, .. } => {
                    self.joining.insert(node);
                    if *lacks == Lacks::State {
                        self.donors.insert(*donor);
                    }
                }
                MemberState::Down(_) | MemberState::Out { .. } => {}
            }
        }
    }
}

impl FromIterator<(NodeId, MemberState)> for Members {
    fn from_iter<I: IntoIterator<Item = (NodeId, MemberState)>>(states: I) -> Self {
        let mut members = Self { states: states.into_iter().collect(), ..Self::default() };
        members.count();
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::DownReason;
    use crate::words::ids::Attempt;

    #[test]
    fn the_sets_follow_every_change() {
        let node = |index| NodeId::new(index).unwrap();
        let set = |nodes: &[u8]| nodes.iter().map(|index| node(*index)).collect::<NodeSet>();
        let sets = |members: &Members| [members.inside(), members.joining(), members.donors()];
        let attempt = Attempt(1);
        let (down, inside) =
            (MemberState::Down(DownReason::NotStarted), MemberState::In { attempt });
        let joining = |lacks| MemberState::Joining { attempt, donor: node(0), lacks };
        let mut members: Members = [(node(0), inside), (node(1), down)].into_iter().collect();
        assert_eq!(sets(&members), [set(&[0]), set(&[]), set(&[])]);
        members.insert(node(1), joining(Lacks::Requests));
        assert_eq!(sets(&members), [set(&[0]), set(&[1]), set(&[])]);
        members.insert(node(1), joining(Lacks::State));
        assert_eq!(sets(&members), [set(&[0]), set(&[1]), set(&[0])]);
        members.change(|at, state| *state = if at == node(1) { inside } else { down });
        assert_eq!(sets(&members), [set(&[1]), set(&[]), set(&[])]);
        members.fit(set(&[0, 2]), inside);
        assert_eq!(sets(&members), [set(&[2]), set(&[]), set(&[])]);
        assert_eq!(members.get(node(0)), Some(down));
        assert_eq!((members.get(node(1)), members.len()), (None, 2));
    }
}
