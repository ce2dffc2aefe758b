//! What the members have replied, compared.
//!
//! Members say in ordered messages what digest their replies have, for one request or for a window
//! of them. More than half of those that must have executed it decide; whoever says something else
//! is wrong. All nodes count alike, because they count delivered messages.
//!
//! What it is not: it does not know what follows from a verdict. Invariants: part of the replicated
//! table; a ballot is decided at most once; who joined behind a window has no say in it, but is
//! found if it differs.

mod runs;

use self::runs::Runs;
use crate::words::node_map::NodeMap;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet};

/// Decided windows that are remembered for members that are slower than the others.
const DECIDED_MAX: usize = 4096;
/// Windows that may be open; the oldest is given up.
const OPEN_MAX: usize = 65_536;

/// What is voted on: a request, or a window of them. Ordered by the last request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Subject {
    /// The last request, counted from the group's first.
    pub(crate) last: u64,
    /// It is a window, whose replies have gone already.
    pub(crate) behind: bool,
}

impl Subject {
    pub(crate) fn encode(self) -> u64 {
        self.last << 1 | u64::from(self.behind)
    }

    pub(crate) fn decode(code: u64) -> Self {
        Self { last: code >> 1, behind: code & 1 == 1 }
    }

    /// What was delivered before its first request; a window has `window_requests`.
    pub(crate) fn begins(self, window_requests: u64) -> u64 {
        let requests = if self.behind { window_requests.max(1) } else { 1 };
        self.last.saturating_sub(requests)
    }
}

/// Something follows from a vote, or from the end of a voter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// More than half agree.
    Decided {
        /// On what.
        window: Subject,
        /// Who has said so up to now.
        supporters: NodeSet,
    },
    /// What this member says need not be waited for any more: it is what was decided, or nothing
    /// was.
    Settled {
        /// Whose.
        node: NodeId,
        /// On what.
        window: Subject,
    },
    /// All have spoken, and nothing has a majority.
    Tied {
        /// On what.
        window: Subject,
    },
    /// This member says something else than the majority.
    Differs {
        /// Whose.
        node: NodeId,
        /// On what.
        window: Subject,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Ballot {
    electorate: NodeSet,
    votes: BTreeMap<NodeId, u64>,
}

impl Ballot {
    fn majority(&self) -> Option<u64> {
        let electors = self.electorate.len();
        let has_most = |digest: &u64| self.supporters(*digest).len() * 2 > electors;
        self.votes.values().copied().find(|digest| has_most(digest))
    }

    fn supporters(&self, digest: u64) -> NodeSet {
        let votes = self.votes.iter().filter(|(_, vote)| **vote == digest);
        let nodes: NodeSet = votes.map(|(node, _)| *node).collect();
        nodes.intersection(self.electorate)
    }

    fn is_complete(&self) -> bool {
        self.electorate.iter().all(|node| self.votes.contains_key(&node))
    }
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Votes {
    open: BTreeMap<Subject, Ballot>,
    /// What was decided, `None` if nothing could be; the newest.
    decided: BTreeMap<Subject, Option<u64>>,
    /// Up to here all windows that are voted on behind the replies are over; `None`: none is.
    forgotten: Option<Subject>,
    /// Requests that nobody has to vote on any more. Some may take longer than thousands of later
    /// ones, so nothing follows for one from what became of those.
    over: Runs,
    /// Those of them of which nothing could be decided; the newest.
    tied: BTreeSet<u64>,
    /// Requests of the group when a member joined last.
    joined: NodeMap<u64>,
}

impl Votes {
    /// Nothing is voted on that was delivered up to `index`.
    pub(crate) fn beginning_behind(index: u64) -> Self {
        let mut votes = Self::default();
        votes.begin_behind(index);
        votes
    }

    /// Nobody waits any more for votes on what was delivered up to `index`, nor casts them.
    pub(crate) fn begin_behind(&mut self, index: u64) {
        self.over.insert_up_to(index);
        self.open.retain(|window, _| window.behind || window.last > index);
    }

    /// A member came in, or joins, with everything up to `index`.
    pub(crate) fn join(&mut self, node: NodeId, index: u64) {
        self.joined.insert(node, index);
        for ballot in self.open.values_mut() {
            ballot.votes.remove(&node);
        }
    }

    /// Requests of the group when this member joined last: it has a say in later ones.
    pub(crate) fn joined(&self, node: NodeId) -> u64 {
        self.joined.get(node).copied().unwrap_or(0)
    }

    /// A member votes; `members`: those that are in, and the requests of a window.
    pub(crate) fn vote(
        &mut self,
        members: (NodeSet, u64),
        node: NodeId,
        window: Subject,
        digest: u64,
    ) -> Vec<Verdict> {
        let settled = Verdict::Settled { node, window };
        if let Some(decided) = self.decision(window) {
            let differs = decided.is_some_and(|decided| decided != digest);
            return [if differs { Verdict::Differs { node, window } } else { settled }].into();
        }
        if !self.open.contains_key(&window) {
            let electorate = self.electors(members, window);
            if self.is_over(window) || electorate.is_empty() {
                self.give_up(window);
                return [settled].into();
            }
            self.open.insert(window, Ballot { electorate, votes: BTreeMap::new() });
        }
        let ballot = self.open.get_mut(&window).expect("it is open");
        ballot.votes.insert(node, digest);
        let mut verdicts = self.count(window);
        while self.open.len() > OPEN_MAX {
            let (window, _) = self.open.pop_first().expect("there are many");
            self.decide(window, None);
            if !window.behind {
                verdicts.push(Verdict::Tied { window });
            }
        }
        verdicts
    }

    /// Those of the members that must have executed all of it. Whoever came in with a part of it
    /// casts no vote.
    fn electors(&self, (members, window_requests): (NodeSet, u64), window: Subject) -> NodeSet {
        let begins = window.begins(window_requests);
        members.iter().filter(|node| self.joined(*node) <= begins).collect()
    }

    /// Nobody has a say in it. Whoever has spoken waits no more, and is not to be waited for by
    /// those who speak later.
    fn give_up(&mut self, window: Subject) {
        if !window.behind {
            self.over.insert(window.last);
        }
    }

    fn is_over(&self, window: Subject) -> bool {
        if window.behind { Some(window) <= self.forgotten } else { self.over.contains(window.last) }
    }

    /// A member is not in any more: it has no say from here on. `members`: those that are still in,
    /// and the requests of a window.
    pub(crate) fn leave(&mut self, node: NodeId, members: (NodeSet, u64)) -> Vec<Verdict> {
        let windows: Vec<Subject> = self.open.keys().copied().collect();
        let mut verdicts = Vec::new();
        for window in windows {
            let ballot = self.open.get_mut(&window).expect("just listed");
            ballot.electorate.remove(node);
            ballot.votes.remove(&node);
            if !ballot.electorate.is_empty() {
                verdicts.extend(self.count(window));
                continue;
            }
            // Who came in after the first vote takes the place of those who have gone since.
            let mut ballot = self.open.remove(&window).expect("just listed");
            ballot.electorate = self.electors(members, window);
            if ballot.electorate.is_empty() {
                self.give_up(window);
                let waiting = ballot.votes.into_keys();
                verdicts.extend(waiting.map(|node| Verdict::Settled { node, window }));
            } else {
                self.open.insert(window, ballot);
                verdicts.extend(self.count(window));
            }
        }
        verdicts
    }

    fn count(&mut self, window: Subject) -> Vec<Verdict> {
        let ballot = &self.open[&window];
        let majority = ballot.majority();
        if majority.is_none() && !ballot.is_complete() {
            return Vec::new();
        }
        let ballot = self.open.remove(&window).expect("just looked up");
        self.decide(window, majority);
        let Some(digest) = majority else { return [Verdict::Tied { window }].into() };
        let supporters = ballot.supporters(digest);
        // Who was not in yet when the first voted has no say, but may have spoken.
        let follows = |(node, vote): (&NodeId, &u64)| match (*vote == digest, *node) {
            (true, node) if supporters.contains(node) => None,
            (true, node) => Some(Verdict::Settled { node, window }),
            (false, node) => Some(Verdict::Differs { node, window }),
        };
        let others = ballot.votes.iter().filter_map(follows);
        [Verdict::Decided { window, supporters }].into_iter().chain(others).collect()
    }

    fn decide(&mut self, window: Subject, digest: Option<u64>) {
        self.decided.insert(window, digest);
        while self.decided.len() > DECIDED_MAX {
            let (first, digest) = self.decided.pop_first().expect("not empty");
            if first.behind {
                self.forgotten = self.forgotten.max(Some(first));
                continue;
            }
            self.over.insert(first.last);
            if digest.is_none() {
                self.tied.insert(first.last);
            }
            if self.tied.len() > DECIDED_MAX {
                self.tied.pop_first();
            }
        }
    }

    /// What was decided of a window: `None`: nothing yet, or it is forgotten; `Some(None)`: nothing
    /// could be.
    pub(crate) fn decision(&self, window: Subject) -> Option<Option<u64>> {
        let is_tied = !window.behind && self.tied.contains(&window.last);
        self.decided.get(&window).copied().or(is_tied.then_some(None))
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u64(self.forgotten.map_or(u64::MAX, Subject::encode));
        self.over.encode(w);
        w.u32(self.tied.len() as u32);
        self.tied.iter().for_each(|number| w.u64(*number));
        w.u32(self.joined.len() as u32);
        for (node, index) in self.joined.iter() {
            w.node(node);
            w.u64(*index);
        }
        w.u32(self.decided.len() as u32);
        for (window, digest) in &self.decided {
            w.u64(window.encode());
            w.u8(u8::from(digest.is_some()));
            w.u64(digest.unwrap_or_default());
        }
        w.u32(self.open.len() as u32);
        for (window, ballot) in &self.open {
            w.u64(window.encode());
            w.u64(ballot.electorate.bits());
            w.u32(ballot.votes.len() as u32);
            for (node, digest) in &ballot.votes {
                w.node(*node);
                w.u64(*digest);
            }
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let forgotten = Some(r.u64("votes")?).filter(|code| *code != u64::MAX);
        let mut votes = Self { forgotten: forgotten.map(Subject::decode), ..Self::default() };
        votes.over = Runs::decode(r)?;
        for _ in 0..r.count(8, "ties")? {
            votes.tied.insert(r.u64("tie")?);
        }
        for _ in 0..r.count(9, "joined")? {
            votes.joined.insert(r.node("joined")?, r.u64("joined")?);
        }
        for _ in 0..r.count(17, "decided")? {
            let window = Subject::decode(r.u64("window")?);
            let some = r.bool("decision")?;
            let digest = r.u64("decision")?;
            votes.decided.insert(window, some.then_some(digest));
        }
        for _ in 0..r.count(20, "ballots")? {
            let window = Subject::decode(r.u64("window")?);
            let electorate = NodeSet::from_bits(r.u64("electorate")?);
            let mut ballot = Ballot { electorate, votes: BTreeMap::new() };
            for _ in 0..r.count(9, "votes")? {
                ballot.votes.insert(r.node("voter")?, r.u64("vote")?);
            }
            votes.open.insert(window, ballot);
        }
        Ok(votes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn at(last: u64) -> Subject {
        Subject { last, behind: false }
    }

    /// Nothing is compared in windows.
    fn alone(members: NodeSet) -> (NodeSet, u64) {
        (members, 0)
    }

    fn node(index: u8) -> NodeId {
        NodeId::new(index).unwrap()
    }

    #[test]
    fn more_than_half_decide_and_whoever_says_something_else_is_named_whenever_it_speaks() {
        let all = NodeSet::first(3);
        let mut votes = Votes::default();
        assert_eq!(votes.vote(alone(all), node(0), at(7), 1), vec![]);
        assert_eq!(votes.vote(alone(all), node(1), at(7), 2), vec![]);
        let differs = |node| Verdict::Differs { node, window: at(7) };
        let supporters = NodeSet::from_bits(0b101);
        let decided = Verdict::Decided { window: at(7), supporters };
        assert_eq!(votes.vote(alone(all), node(2), at(7), 1), vec![decided, differs(node(1))]);
        assert_eq!(votes.decision(at(7)), Some(Some(1)));
        assert_eq!(
            votes.vote(alone(all), node(3), at(7), 9),
            vec![differs(node(3))],
            "too late to decide"
        );
        let settled = Verdict::Settled { node: node(3), window: at(7) };
        assert_eq!(votes.vote(alone(all), node(3), at(7), 1), vec![settled]);
    }

    #[test]
    fn two_that_differ_decide_nothing() {
        let both = NodeSet::first(2);
        let mut votes = Votes::default();
        votes.vote(alone(both), node(0), at(1), 1);
        assert_eq!(
            votes.vote(alone(both), node(1), at(1), 2),
            vec![Verdict::Tied { window: at(1) }]
        );
        assert_eq!(votes.decision(at(1)), Some(None));
    }

    #[test]
    fn who_is_gone_is_not_waited_for_and_who_came_later_has_no_say() {
        let all = NodeSet::first(3);
        let mut votes = Votes::default();
        votes.join(node(2), 5);
        votes.vote(alone(all), node(0), at(5), 1);
        let decided = Verdict::Decided { window: at(5), supporters: NodeSet::first(1) };
        assert_eq!(
            votes.leave(node(1), alone(NodeSet::first(1))),
            vec![decided],
            "one of one; the third joined behind it"
        );
        votes.vote(alone(all), node(0), at(6), 1);
        assert_eq!(votes.leave(node(0), alone(NodeSet::EMPTY)), vec![]);
        assert_eq!(votes.decision(at(6)), None);
    }

    /// It casts no vote, and the others would wait for it until it is gone.
    #[test]
    fn who_came_in_with_a_part_of_a_window_is_not_waited_for() {
        let (all, window) = ((NodeSet::first(3), 64), Subject { last: 128, behind: true });
        let mut votes = Votes::default();
        votes.join(node(2), 100);
        assert_eq!(votes.vote(all, node(0), window, 1), vec![]);
        assert_eq!(votes.vote(all, node(1), window, 2), vec![Verdict::Tied { window }]);
        let next = Subject { last: 192, behind: true };
        votes.vote(all, node(0), next, 1);
        assert_eq!(votes.vote(all, node(1), next, 2), vec![], "it has executed all of that one");
        votes.join(node(1), 192);
        let whole = Subject { last: 256, behind: true };
        votes.vote(all, node(0), whole, 1);
        let decided = Verdict::Decided { window: whole, supporters: NodeSet::first(2) };
        assert_eq!(votes.vote(all, node(1), whole, 1), vec![decided], "its first was the next");
    }

    /// A member that is about to come in may be faster than those that are (seed 100129 of the
    /// simulator's `styles`): its reply must not be held for ever.
    #[test]
    fn who_voted_without_a_say_hears_that_it_was_right() {
        let two = NodeSet::first(2);
        let mut votes = Votes::default();
        votes.join(node(2), 5);
        votes.vote(alone(two), node(2), at(6), 1);
        votes.vote(alone(two), node(0), at(6), 1);
        let decided = Verdict::Decided { window: at(6), supporters: two };
        let settled = Verdict::Settled { node: node(2), window: at(6) };
        assert_eq!(votes.vote(alone(two), node(1), at(6), 1), vec![decided, settled]);
    }

    /// Its reply would be held for ever.
    #[test]
    fn who_voted_without_a_say_waits_for_nobody_who_is_gone() {
        let mut votes = Votes::default();
        votes.join(node(1), 5);
        votes.vote(alone(NodeSet::first(2)), node(1), at(5), 1);
        let settled = Verdict::Settled { node: node(1), window: at(5) };
        assert_eq!(votes.leave(node(0), alone(NodeSet::from_bits(0b10))), vec![settled]);
    }

    /// calls 1870726: it was told to wait for nobody, and then waited for by others without end.
    #[test]
    fn who_came_in_after_the_first_vote_has_a_say_when_the_electors_are_gone() {
        let (two, third) = (NodeSet::first(2), NodeSet::from_bits(0b100));
        let mut votes = Votes::default();
        votes.join(node(2), 1);
        votes.vote(alone(two), node(0), at(3), 7);
        assert_eq!(votes.vote(alone(NodeSet::first(3)), node(2), at(3), 7), vec![], "no say yet");
        assert_eq!(votes.leave(node(0), alone(NodeSet::from_bits(0b110))), vec![]);
        let decided = Verdict::Decided { window: at(3), supporters: third };
        assert_eq!(votes.leave(node(1), alone(third)), vec![decided]);
        // Another comes back with what it has executed.
        votes.join(node(0), 8);
        let members = NodeSet::from_bits(0b101);
        let settled = Verdict::Settled { node: node(0), window: at(3) };
        assert_eq!(votes.vote(alone(members), node(0), at(3), 7), vec![settled]);
        let differs = Verdict::Differs { node: node(0), window: at(3) };
        assert_eq!(votes.vote(alone(members), node(0), at(3), 8), vec![differs]);
    }

    #[test]
    fn who_waits_no_more_is_not_waited_for() {
        let mut votes = Votes::default();
        // It serves already, but that it is in was not delivered.
        let settled = |number| vec![Verdict::Settled { node: node(number), window: at(3) }];
        assert_eq!(votes.vote(alone(NodeSet::EMPTY), node(1), at(3), 1), settled(1));
        votes.join(node(2), 8);
        assert_eq!(votes.vote(alone(NodeSet::from_bits(0b110)), node(2), at(3), 1), settled(2));
    }

    /// A call of one object may take longer than thousands of calls of others.
    #[test]
    fn what_takes_long_is_compared_like_anything_else() {
        let all = NodeSet::first(3);
        let mut votes = Votes::default();
        assert_eq!(votes.vote(alone(all), node(0), at(2), 7), vec![]);
        for last in 3..DECIDED_MAX as u64 + 10 {
            all.iter().for_each(|node| drop(votes.vote(alone(all), node, at(last), 1)));
        }
        // The first of all was not begun by then, the second was.
        for last in [1, 2] {
            votes.vote(alone(all), node(0), at(last), 7);
            assert_eq!(votes.vote(alone(all), node(1), at(last), 8), vec![]);
            let differs = Verdict::Differs { node: node(0), window: at(last) };
            let supporters = NodeSet::from_bits(0b110);
            let decided = Verdict::Decided { window: at(last), supporters };
            assert_eq!(votes.vote(alone(all), node(2), at(last), 8), vec![decided, differs]);
        }
        let settled = Verdict::Settled { node: node(2), window: at(4) };
        assert_eq!(votes.vote(alone(all), node(2), at(4), 1), vec![settled], "that is over");
    }

    #[test]
    fn a_tie_stays_one_when_it_is_old() {
        let both = NodeSet::first(2);
        let mut votes = Votes::default();
        both.iter().for_each(|n| drop(votes.vote(alone(both), n, at(1), u64::from(n.index()))));
        for last in 2..DECIDED_MAX as u64 + 10 {
            both.iter().for_each(|node| drop(votes.vote(alone(both), node, at(last), 1)));
        }
        assert_eq!(votes.decision(at(2)), None, "forgotten");
        assert_eq!(votes.decision(at(1)), Some(None));
    }

    #[test]
    fn what_is_given_up_is_a_tie_for_those_who_wait() {
        let both = NodeSet::first(2);
        let mut votes = Votes::default();
        for last in 1..=OPEN_MAX as u64 {
            assert_eq!(votes.vote(alone(both), node(0), at(last), 1), vec![]);
        }
        let tied = Verdict::Tied { window: at(1) };
        assert_eq!(votes.vote(alone(both), node(0), at(OPEN_MAX as u64 + 1), 1), vec![tied]);
        let settled = Verdict::Settled { node: node(1), window: at(1) };
        assert_eq!(votes.vote(alone(both), node(1), at(1), 1), vec![settled]);
        assert_eq!(votes.decision(at(1)), Some(None));
    }

    #[test]
    fn on_what_was_delivered_before_the_comparison_began_nobody_waits_for_votes() {
        let all = NodeSet::first(3);
        let mut votes = Votes::beginning_behind(5);
        let settled = |last| vec![Verdict::Settled { node: node(0), window: at(last) }];
        assert_eq!(votes.vote(alone(all), node(0), at(5), 1), settled(5));
        assert_eq!(votes.vote(alone(all), node(0), at(6), 1), vec![]);
        votes.begin_behind(9);
        assert_eq!(votes.vote(alone(all), node(0), at(9), 1), settled(9));
        assert_eq!(votes.vote(alone(all), node(0), at(6), 1), settled(6), "though that was begun");
        for each in all.iter() {
            votes.join(each, 20);
        }
        assert_eq!(
            votes.vote(alone(all), node(0), at(20), 1),
            settled(20),
            "nobody else has a say"
        );
    }

    #[test]
    fn travels_with_the_tables() {
        let mut votes = Votes::beginning_behind(2);
        votes.tied.insert(1);
        votes.join(node(2), 5);
        votes.vote(alone(NodeSet::first(3)), node(0), at(9), 1);
        votes.vote(alone(NodeSet::first(1)), node(0), at(4), 1);
        let mut w = Writer::default();
        votes.encode(&mut w);
        assert_eq!(Votes::decode(&mut Reader::new(w.finish())), Ok(votes));
    }
}
