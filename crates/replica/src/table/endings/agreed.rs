//! What state the members had in common when the group was quiet last.
//!
//! Servers that somebody else starts outlive connections, and nobody can see whether the process
//! behind the next connection is the one that had the group's state. So members say from time to
//! time, at one place in the order, what digest their states have. Whoever has that digest later,
//! while the group has been delivered nothing since, has the group's state still.
//!
//! What it is not: a search for members that differ, which is [`super::states`]'s. Invariant: a
//! digest is agreed on only if more than half of those that were asked, and are in, have it.

use crate::words::history::{History, put_history, take_history};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::BTreeMap;
use quorba_base::{NodeId, NodeSet};

/// Numbers from here on are those of rounds of this room; this one asks for a round.
pub(crate) const ROUNDS: u64 = 1 << 63;

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Agreed {
    /// Counts rounds.
    number: u64,
    /// Who is asked in the round that is under way.
    asked: NodeSet,
    digests: BTreeMap<NodeId, Option<u64>>,
    /// What the group had been delivered when they were asked.
    at: History,
    /// What they agreed on last.
    state: Option<(History, u64)>,
}

impl Agreed {
    /// These members are asked. Gives the number of the round.
    pub(crate) fn begin(&mut self, at: History, members: NodeSet) -> u64 {
        self.number = (self.number + 1) % ROUNDS;
        (self.asked, self.at) = (members, at);
        self.digests.clear();
        ROUNDS + self.number
    }

    /// What the group had been delivered when its members' states had this digest.
    pub(crate) fn state(&self) -> Option<(History, u64)> {
        self.state
    }

    /// A member's word; `None`: its state could not be had.
    pub(crate) fn hear(&mut self, node: NodeId, number: u64, digest: Option<u64>) {
        if number == ROUNDS + self.number && self.asked.contains(node) {
            self.digests.insert(node, digest);
            self.conclude();
        }
    }

    /// A member is gone.
    pub(crate) fn leave(&mut self, node: NodeId) {
        if self.asked.contains(node) {
            self.asked.remove(node);
            self.digests.remove(&node);
            self.conclude();
        }
    }

    fn conclude(&mut self) {
        if self.asked.is_empty() || self.digests.len() < self.asked.len() {
            return;
        }
        let has = |digest: u64| self.digests.values().filter(|of| **of == Some(digest)).count();
        let mut all = self.digests.values().flatten();
        let most = all.find(|digest| has(**digest) * 2 > self.asked.len());
        if let Some(most) = most {
            self.state = Some((self.at, *most));
        }
        self.asked = NodeSet::EMPTY;
        self.digests.clear();
    }

    pub(super) fn encode(&self, w: &mut Writer) {
        w.u64(self.number);
        w.u64(self.asked.bits());
        put_history(w, self.at);
        w.u8(u8::from(self.state.is_some()));
        let (at, digest) = self.state.unwrap_or((History::EMPTY, 0));
        put_history(w, at);
        w.u64(digest);
        w.u32(self.digests.len() as u32);
        for (node, digest) in &self.digests {
            w.node(*node);
            w.u8(u8::from(digest.is_some()));
            w.u64(digest.unwrap_or_default());
        }
    }

    pub(super) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let (number, asked) = (r.u64("round")?, NodeSet::from_bits(r.u64("members asked")?));
        let (at, some) = (take_history(r)?, r.bool("agreed flag")?);
        let (of, digest) = (take_history(r)?, r.u64("agreed digest")?);
        let state = some.then_some((of, digest));
        let mut digests = BTreeMap::new();
        for _ in 0..r.count(10, "digests")? {
            let node = r.node("member")?;
            let some = r.bool("digest flag")?;
            digests.insert(node, Some(r.u64("digest")?).filter(|_| some));
        }
        Ok(Self { number: number % ROUNDS, asked, digests, at, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).unwrap()
    }

    fn at(count: u64) -> History {
        History { count, digest: count }
    }

    #[test]
    fn what_most_of_those_have_that_were_asked_is_agreed_on() {
        let mut agreed = Agreed::default();
        let number = agreed.begin(at(3), NodeSet::first(3));
        agreed.hear(node(0), number, Some(7));
        agreed.hear(node(1), number, Some(8));
        assert_eq!(agreed.state(), None, "one has not spoken");
        agreed.hear(node(2), number, Some(7));
        assert_eq!(agreed.state(), Some((at(3), 7)));
        let late = agreed.begin(at(4), NodeSet::first(3));
        agreed.hear(node(0), number, Some(9));
        agreed.hear(node(0), late, Some(1));
        agreed.hear(node(1), late, None);
        agreed.hear(node(2), late, Some(2));
        assert_eq!(agreed.state(), Some((at(3), 7)), "nothing new was agreed on");
    }

    #[test]
    fn who_leaves_is_not_waited_for_and_nobody_agrees_on_nothing() {
        let mut agreed = Agreed::default();
        let number = agreed.begin(at(3), NodeSet::first(2));
        agreed.hear(node(0), number, Some(7));
        agreed.leave(node(1));
        assert_eq!(agreed.state(), Some((at(3), 7)));
        agreed.begin(at(4), NodeSet::first(1));
        agreed.leave(node(0));
        assert_eq!(agreed.state(), Some((at(3), 7)));
    }

    #[test]
    fn it_is_written_and_read() {
        let mut agreed = Agreed::default();
        let number = agreed.begin(at(3), NodeSet::first(1));
        agreed.hear(node(0), number, Some(7));
        let number = agreed.begin(at(5), NodeSet::first(3));
        agreed.hear(node(2), number, None);
        let mut w = Writer::default();
        agreed.encode(&mut w);
        let bytes = w.finish();
        let mut r = Reader::new(bytes);
        assert_eq!(Agreed::decode(&mut r).ok(), Some(agreed));
    }
}
