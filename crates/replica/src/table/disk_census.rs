//! What is left of a durable group on the disks of its members, when none of them is in.
//!
//! A member that finds its group without anybody looks at its node's log. A *stretch* of the log is
//! whole if it begins where a state that is kept, or a fresh server, can go on from; the end of the
//! newest whole stretch is as far as the node can rebuild its member. All members say in ordered
//! messages how far that is. When so many have spoken that none who is away can hold more, the
//! group goes on from the furthest.
//!
//! Why nothing acknowledged is lost. A reply of the group leaves only when [`holders_min`] members'
//! nodes have its request in a whole stretch on disk; a member that operators took out is none. Of
//! [`speakers_min`] members with intact disks one is among those. Its newest whole stretch ends at
//! that request or behind it: a later one goes on in a component behind that, or with a state given
//! there, and what was acknowledged is part of every later component ([`crate::primary`]). Ends are
//! ordered by component and place in it, and components have rising numbers; so the furthest of
//! those that spoke has the request, too. What was ordered behind that end was not acknowledged, so
//! nobody was told of it, and whoever waits for it asks again.
//!
//! What is said must be of now. While a member waits, requests may be delivered to its group that
//! others execute, and its disk counts for them; so with each what it found before is void, and it
//! looks anew ([`DiskState::NotLooked`]). A word that gets its place behind such a request counts
//! as unsaid, which the history in it tells ([`crate::table::offer::Offer::known`]); and what a
//! look that was begun before it finds is thrown away.
//!
//! A disk that was damaged has nothing to say: it had held something, perhaps, and does not count
//! as intact until a state is on it again. Nor does one that lost a checkpoint, if a stretch went
//! on from that; what is whole on it still is said. If all members have spoken, no better word can
//! come, and the furthest of all is it.
//!
//! What it is not: the log, which is gone through in `group::replay`. Invariant: the decision is a
//! pure function of what was delivered.

use crate::words::history::History;
use crate::words::ids::{Attempt, RingId};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::BTreeMap;
use quorba_base::{NodeId, canary};

/// The end of a whole stretch: so far a member can be rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RecoveryPoint {
    /// The component in which it ends.
    pub(crate) view: RingId,
    /// Messages applied in it.
    pub(crate) prefix: u64,
    /// What the group had been delivered there.
    pub(crate) history: History,
    /// The latest time that servers can have been told there, TimeT.
    pub(crate) told: u64,
    /// Nothing that was further and whole has been damaged since.
    pub(crate) is_intact: bool,
}

/// What a member knows of its node's disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum DiskState {
    /// Nobody has looked, or the server was given what was found.
    #[default]
    NotLooked,
    /// Nothing that a server could go on from.
    Nothing,
    /// The member has been rebuilt to here.
    UpTo(RecoveryPoint),
}

/// How many members' disks must have a request before it is acknowledged.
pub(crate) fn holders_min(members: usize) -> usize {
    members.div_ceil(2)
}

/// How many members with intact disks must speak: one of them is a holder then.
pub(crate) fn speakers_min(members: usize) -> usize {
    members - holders_min(members) + 1
}

/// What members have said since nobody is in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Census(BTreeMap<NodeId, (Attempt, DiskState)>);

impl Census {
    /// A member's word.
    pub(crate) fn hear(&mut self, node: NodeId, attempt: Attempt, disk_state: DiskState) {
        self.0.insert(node, (attempt, disk_state));
    }

    /// What it said does not hold any more.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.0.remove(&node);
    }

    /// Somebody is in.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// From whom a group of so many members, of which operators took so many out, goes on, if
    /// enough have spoken. Whoever was taken out has nothing to say; at least as many are left as
    /// have to speak, so that every request that had enough holders still has one among them.
    pub(crate) fn furthest(
        &self,
        members: usize,
        removed: usize,
    ) -> Option<(NodeId, Attempt, RecoveryPoint)> {
        let point =
            |(node, (attempt, disk_state)): (&NodeId, &(Attempt, DiskState))| match disk_state {
                DiskState::UpTo(point) => Some((*point, *node, *attempt)),
                DiskState::NotLooked | DiskState::Nothing => None,
            };
        let said = self.0.iter().filter_map(point);
        let intact =
            said.filter(|(point, ..)| point.is_intact || canary!(SpoiltDisksSpeak)).count();
        let has_looked =
            |(_, disk_state): &&(Attempt, DiskState)| *disk_state != DiskState::NotLooked;
        let looked = self.0.values().filter(has_looked).count();
        let is_enough = intact >= speakers_min(members) || looked + removed == members;
        if !is_enough && !canary!(RevivesTooEarly) {
            return None;
        }
        let end = |point: &RecoveryPoint| (point.view, point.prefix);
        let best = self.0.iter().filter_map(point).max_by(|(a, m, _), (b, n, _)| {
            // Of equal ones the lowest node.
            end(a).cmp(&end(b)).then(n.cmp(m))
        });
        best.map(|(point, node, attempt)| (node, attempt, point))
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u32(self.0.len() as u32);
        for (node, (attempt, disk_state)) in &self.0 {
            w.node(*node);
            w.u64(attempt.0);
            disk_state.encode(w);
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let mut census = Self::default();
        for _ in 0..r.count(10, "census")? {
            let node = r.node("member")?;
            let attempt = Attempt(r.u64("attempt")?);
            census.hear(node, attempt, DiskState::decode(r)?);
        }
        Ok(census)
    }
}

impl DiskState {
    pub(crate) fn encode(self, w: &mut Writer) {
        match self {
            Self::NotLooked => w.u8(0),
            Self::Nothing => w.u8(1),
            Self::UpTo(RecoveryPoint { view, prefix, history, told, is_intact }) => {
                w.u8(2);
                crate::words::ids::put_view(w, view);
                w.u64(prefix);
                w.u64(history.count);
                w.u64(history.digest);
                w.u64(told);
                w.u8(u8::from(is_intact));
            }
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let invalid = r.error("remains");
        match r.u8("remains")? {
            0 => Ok(Self::NotLooked),
            1 => Ok(Self::Nothing),
            2 => {
                let view = crate::words::ids::take_view(r)?;
                let prefix = r.u64("kept prefix")?;
                let history = History { count: r.u64("kept")?, digest: r.u64("kept digest")? };
                let (told, is_intact) = (r.u64("told time")?, r.bool("disk")?);
                Ok(Self::UpTo(RecoveryPoint { view, prefix, history, told, is_intact }))
            }
            _ => Err(invalid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).unwrap()
    }

    fn point(seq: u64, prefix: u64) -> DiskState {
        let view = RingId { seq, representative: node(0) };
        let history = History { count: prefix, digest: seq };
        DiskState::UpTo(RecoveryPoint { view, prefix, history, told: 0, is_intact: true })
    }

    fn said(words: &[(u8, DiskState)]) -> Census {
        let mut census = Census::default();
        words.iter().for_each(|(n, disk_state)| census.hear(node(*n), Attempt(1), *disk_state));
        census
    }

    #[test]
    fn two_of_three_intact_disks_are_enough_and_the_later_component_counts() {
        assert_eq!(said(&[(0, point(1, 9))]).furthest(3, 0), None);
        assert_eq!(said(&[(0, point(1, 9)), (1, DiskState::Nothing)]).furthest(3, 0), None);
        assert_eq!(said(&[(0, point(1, 9)), (1, DiskState::NotLooked)]).furthest(3, 0), None);
        let census = said(&[(0, point(1, 9)), (1, point(2, 3))]);
        let (best, _, point) = census.furthest(3, 0).unwrap();
        assert_eq!((best, point.history.digest), (node(1), 2));
    }

    #[test]
    fn when_all_have_spoken_what_there_is_counts_and_of_equals_the_lowest() {
        let nothing = DiskState::Nothing;
        assert_eq!(said(&[(0, nothing), (1, nothing), (2, nothing)]).furthest(3, 0), None);
        let census = said(&[(0, nothing), (1, nothing), (2, point(1, 4))]);
        assert_eq!(census.furthest(3, 0).unwrap().0, node(2));
        let census = said(&[(0, nothing), (1, point(1, 4)), (2, point(1, 4))]);
        assert_eq!(census.furthest(3, 0).unwrap().0, node(1));
    }

    #[test]
    fn a_disk_that_lost_a_checkpoint_speaks_and_is_not_counted_until_all_have() {
        let spoilt = |view, prefix| match point(view, prefix) {
            DiskState::UpTo(point) => DiskState::UpTo(RecoveryPoint { is_intact: false, ..point }),
            other => other,
        };
        assert_eq!(said(&[(0, spoilt(1, 9)), (1, point(1, 4))]).furthest(3, 0), None);
        let census = said(&[(0, spoilt(1, 9)), (1, point(1, 4)), (2, point(1, 2))]);
        assert_eq!(census.furthest(3, 0).unwrap().0, node(0));
        let census = said(&[(0, spoilt(1, 9)), (1, point(2, 4)), (2, DiskState::Nothing)]);
        assert_eq!(census.furthest(3, 0).unwrap().0, node(1));
    }

    #[test]
    fn holders_and_speakers_always_share_a_member() {
        for members in 1..=64 {
            assert!(holders_min(members) + speakers_min(members) > members);
            assert!(speakers_min(members) <= members);
        }
    }

    #[test]
    fn a_census_is_read_as_it_was_written() {
        let census = said(&[(0, DiskState::NotLooked), (1, DiskState::Nothing), (2, point(7, 4))]);
        let mut w = Writer::default();
        census.encode(&mut w);
        assert_eq!(Census::decode(&mut Reader::new(w.finish())), Ok(census));
    }
}
