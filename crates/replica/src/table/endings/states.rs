//! Whether the members' states are equal behind a request that had no reply.
//!
//! What a server did with such a request cannot be seen in a reply, so the members that executed it
//! are asked for their states at one place in the order, and say what digest these have. One that
//! differs from most is rebuilt. Where there are no most, those that were in all the time count
//! more than one that has come back with what it did elsewhere: clients were told of their state.
//! If nobody can tell even so, an operator is told that they may differ.
//!
//! What it is not: it takes no state. Invariant: a member is found to differ only from more than
//! half of those that were asked, or of those of them that were in.

use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet};

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct States {
    /// Counts comparisons.
    number: u64,
    /// One is under way.
    open: bool,
    /// Members whose states may differ.
    asked: NodeSet,
    digests: BTreeMap<NodeId, Option<u64>>,
    /// Behind this request of the group; `None`: they do not.
    doubt: Option<u64>,
    /// Some state could not be had, so that it may be known later.
    is_unknown: bool,
    /// Members that were not asked for their states, or left before they could say, and that may
    /// come back with them; until it is known that these are the others'.
    uncompared: NodeSet,
}

impl States {
    /// These members have executed a request without a reply. `compare`: they can give a state.
    /// `joining`: these execute it, and are not asked yet. Gives the number of the comparison, if
    /// there is one.
    pub(crate) fn begin(
        &mut self,
        request: u64,
        (members, joining): (NodeSet, NodeSet),
        compare: bool,
    ) -> Option<u64> {
        self.uncompared = self.uncompared.union(joining);
        if members.len() < 2 {
            // Its state is the group's.
            self.uncompared = self.uncompared.difference(members);
            return None;
        }
        self.number += 1;
        self.doubt = self.doubt.or(Some(request));
        self.asked = self.asked.union(members);
        self.digests.clear();
        (self.open, self.is_unknown) = (compare, false);
        compare.then_some(self.number)
    }

    /// Whether it is worth while to compare once more, later.
    pub(crate) fn wants_another(&self) -> bool {
        self.doubt.is_some() && !self.open && self.is_unknown
    }

    /// Behind which request the members may differ.
    pub(crate) fn doubt(&self) -> Option<u64> {
        self.doubt
    }

    /// A member's word; `None`: its state could not be had.
    pub(crate) fn hear(&mut self, node: NodeId, number: u64, digest: Option<u64>) {
        if self.open && number == self.number && self.asked.contains(node) {
            self.digests.insert(node, digest);
        }
    }

    /// A member is gone. It comes back with another one's state, or is compared then.
    pub(crate) fn leave(&mut self, node: NodeId) {
        if self.asked.contains(node) {
            self.asked.remove(node);
            self.uncompared.insert(node);
        }
        self.digests.remove(&node);
    }

    /// A member that left while it was asked has come back with the state that it had.
    pub(crate) fn is_uncompared(&self, node: NodeId) -> bool {
        self.uncompared.contains(node)
    }

    /// A member has come in with what it executed while others were in.
    pub(crate) fn comes_with_its_own(&mut self, node: NodeId) {
        self.uncompared.insert(node);
    }

    /// A member comes back with another one's state.
    pub(crate) fn is_given_a_state(&mut self, node: NodeId) {
        self.uncompared.remove(node);
    }

    /// Members that differ from most, if all have spoken.
    pub(crate) fn conclude(&mut self) -> Vec<NodeId> {
        if self.asked.len() < 2 {
            // Whose state is the only one has the group's.
            let (number, uncompared) = (self.number, self.uncompared.difference(self.asked));
            *self = Self { number, uncompared, ..Self::default() };
            return Vec::new();
        }
        if !self.open || !self.asked.iter().all(|node| self.digests.contains_key(&node)) {
            return Vec::new();
        }
        self.open = false;
        self.is_unknown = self.digests.values().any(Option::is_none);
        let stayed = self.asked.difference(self.uncompared);
        let Some(most) = self.most_of(self.asked).or_else(|| self.most_of(stayed)) else {
            return Vec::new();
        };
        let differ = self.digests.iter().filter(|(_, digest)| digest.is_some_and(|d| d != most));
        let differ: Vec<NodeId> = differ.map(|(node, _)| *node).collect();
        if self.digests.values().all(Option::is_some) {
            // Those that differ come back with the state of the others.
            self.doubt = None;
            self.uncompared = self.uncompared.difference(self.asked);
            self.asked = NodeSet::EMPTY;
        }
        differ
    }

    /// What more than half of these members have.
    fn most_of(&self, members: NodeSet) -> Option<u64> {
        let of = |node: NodeId| self.digests.get(&node).copied().flatten();
        let has = |digest: u64| members.iter().filter(|node| of(*node) == Some(digest)).count();
        members.iter().filter_map(of).find(|digest| has(*digest) * 2 > members.len())
    }

    pub(super) fn encode(&self, w: &mut Writer) {
        w.u64(self.number);
        w.u8(u8::from(self.open));
        w.u8(u8::from(self.is_unknown));
        w.u64(self.asked.bits());
        w.u64(self.uncompared.bits());
        w.u8(u8::from(self.doubt.is_some()));
        w.u64(self.doubt.unwrap_or_default());
        w.u32(self.digests.len() as u32);
        for (node, digest) in &self.digests {
            w.node(*node);
            w.u8(u8::from(digest.is_some()));
            w.u64(digest.unwrap_or_default());
        }
    }

    pub(super) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let (number, open) = (r.u64("comparison")?, r.bool("open flag")?);
        let is_unknown = r.bool("unknown flag")?;
        let asked = NodeSet::from_bits(r.u64("members asked")?);
        let uncompared = NodeSet::from_bits(r.u64("members not compared")?);
        let some = r.bool("doubt flag")?;
        let doubt = Some(r.u64("doubt")?).filter(|_| some);
        let mut digests = BTreeMap::new();
        for _ in 0..r.count(10, "digests")? {
            let node = r.node("member")?;
            let some = r.bool("digest flag")?;
            digests.insert(node, Some(r.u64("digest")?).filter(|_| some));
        }
        Ok(Self { number, open, asked, digests, doubt, is_unknown, uncompared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).unwrap()
    }

    #[test]
    fn who_differs_from_most_is_named_and_the_doubt_ends_when_it_is_gone() {
        let mut states = States::default();
        let number = states
            .begin(7, (NodeSet::first(3), NodeSet::EMPTY), true)
            .expect("three can be compared");
        states.hear(node(0), number, Some(1));
        states.hear(node(1), number, Some(2));
        assert_eq!(states.conclude(), vec![]);
        states.hear(node(2), number, Some(1));
        assert_eq!(states.conclude(), vec![node(1)]);
        assert_eq!(states.conclude(), vec![], "once");
        assert_eq!(states.doubt(), None, "the others are equal");
        states.leave(node(1));
        let number =
            states.begin(9, (NodeSet::from_bits(0b101), NodeSet::EMPTY), true).expect("again");
        states.hear(node(0), number, Some(5));
        states.hear(node(2), number, Some(5));
        assert_eq!((states.conclude(), states.doubt()), (vec![], None));
    }

    #[test]
    fn where_nobody_can_tell_the_doubt_stays_until_one_state_is_everybodys() {
        for words in [[Some(1), Some(2), Some(3)], [Some(1), None, Some(2)]] {
            let mut states = States::default();
            let number = states.begin(7, (NodeSet::first(3), NodeSet::EMPTY), true).expect("three");
            for (index, digest) in words.into_iter().enumerate() {
                states.hear(node(index as u8), number, digest);
            }
            assert_eq!((states.conclude(), states.doubt()), (vec![], Some(7)));
            states.leave(node(0));
            states.conclude();
            assert_eq!(states.doubt(), Some(7));
            states.leave(node(2));
            states.conclude();
            assert_eq!(states.doubt(), None, "the others come back with the state of one");
        }
        assert_eq!(
            States::default().begin(1, (NodeSet::first(1), NodeSet::EMPTY), true),
            None,
            "one has no other"
        );
    }

    // Seed 430631 of the simulator's `domain`: clients were told what the one that was in did.
    #[test]
    fn who_was_in_all_the_time_counts_more_than_who_comes_back_where_there_are_no_most() {
        let compare = |words: &[Option<u64>], joining: NodeSet| {
            let mut states = States::default();
            let all = NodeSet::first(words.len());
            assert_eq!(states.begin(7, (all.difference(joining), joining), false), None);
            let number = states.begin(7, (all, NodeSet::EMPTY), true).expect("they are several");
            for (index, digest) in words.iter().enumerate() {
                states.hear(node(index as u8), number, *digest);
            }
            let is_uncompared = (0..words.len()).any(|i| states.is_uncompared(node(i as u8)));
            (states.conclude(), states.doubt(), is_uncompared)
        };
        let second = NodeSet::EMPTY.with(node(1));
        assert_eq!(compare(&[Some(1), Some(2)], second), (vec![node(1)], None, true));
        assert_eq!(compare(&[Some(1), Some(1)], second), (vec![], None, true));
        assert_eq!(compare(&[None, Some(2)], second), (vec![], Some(7), true));
        assert_eq!(compare(&[Some(1), None], second), (vec![], Some(7), true));
        let last = NodeSet::EMPTY.with(node(2)).with(node(3));
        let differ = compare(&[Some(1), Some(1), Some(2), Some(2)], last);
        assert_eq!(differ, (vec![node(2), node(3)], None, true));
        let differ = compare(&[Some(1), Some(2), Some(2)], second.with(node(2)));
        assert_eq!(differ.0, vec![node(0)], "they are most");
    }

    #[test]
    fn who_is_known_to_have_the_others_state_counts_as_much() {
        let mut states = States::default();
        let all = NodeSet::first(2);
        let _ = states.begin(7, (NodeSet::first(1), NodeSet::EMPTY.with(node(1))), true);
        let number = states.begin(7, (all, NodeSet::EMPTY), true).expect("they are two");
        (0..2).for_each(|index| states.hear(node(index), number, Some(1)));
        assert_eq!((states.conclude(), states.doubt()), (vec![], None));
        assert!(!states.is_uncompared(node(1)));
        // The one that stays has the group's state, whatever it was before.
        let _ = states.begin(9, (all, NodeSet::EMPTY), false);
        states.leave(node(0));
        assert_eq!((states.conclude(), states.doubt()), (vec![], None));
        assert_eq!([0, 1].map(|index| states.is_uncompared(node(index))), [true, false]);
    }

    #[test]
    fn most_are_more_than_half_of_those_that_were_asked() {
        let differ = |digests: &[u64]| {
            let mut states = States::default();
            let all = NodeSet::first(digests.len());
            let number = states.begin(7, (all, NodeSet::EMPTY), true).expect("they are several");
            for (index, digest) in digests.iter().enumerate() {
                states.hear(node(index as u8), number, Some(*digest));
            }
            (states.conclude(), states.doubt())
        };
        assert_eq!(differ(&[1, 2]), (vec![], Some(7)));
        assert_eq!(differ(&[1, 2, 1, 2]), (vec![], Some(7)));
        assert_eq!(differ(&[1, 2, 1, 1]), (vec![node(1)], None));
        assert_eq!(differ(&[1, 2, 1, 3, 1]), (vec![node(1), node(3)], None));
    }

    // Seed 9100081 of the simulator's `domain`: it had executed what the others gave up.
    #[test]
    fn who_left_before_it_was_compared_is_compared_when_it_comes_back_with_its_state() {
        let mut states = States::default();
        let number = states
            .begin(7, (NodeSet::first(3), NodeSet::EMPTY), true)
            .expect("three can be compared");
        states.leave(node(0));
        states.hear(node(1), number, Some(1));
        states.hear(node(2), number, Some(1));
        assert_eq!((states.conclude(), states.doubt()), (vec![], None));
        assert_eq!([0, 1].map(|index| states.is_uncompared(node(index))), [true, false]);
        let again = states.begin(7, (NodeSet::first(3), NodeSet::EMPTY), true).expect("it is back");
        for (index, digest) in [2, 1, 1].into_iter().enumerate() {
            states.hear(node(index as u8), again, Some(digest));
        }
        assert_eq!(states.conclude(), vec![node(0)]);
        states.leave(node(0));
        assert!(!states.is_uncompared(node(0)), "that is known");
        let _ = states.begin(9, (NodeSet::first(3), NodeSet::EMPTY), true);
        states.leave(node(2));
        states.is_given_a_state(node(2));
        assert!(!states.is_uncompared(node(2)));
        // Seed 9100178 of `styles`: it had executed it while it joined, and left.
        let _ = states.begin(11, (NodeSet::first(2), NodeSet::EMPTY.with(node(2))), true);
        assert!(states.is_uncompared(node(2)));
    }
}
