//! The replicated table of one group: who is in, what was delivered, what time it is.
//!
//! Every node of the primary component keeps it, members or not, and changes it only where an
//! ordered message or a decided view says so. Invariant: equal on all current nodes at the same
//! position of the order.

mod codec;
pub(crate) mod disk_census;
pub(crate) mod endings;
mod joins;
mod leader;
pub(crate) mod members;
pub(crate) mod membership;
pub(crate) mod moment;
pub(crate) mod offer;
mod state;
mod updates;
pub(crate) mod votes;

pub use self::state::{DownReason, Lacks, MemberState, OutReason};

use crate::table::disk_census::Census;
use crate::table::endings::{Electorate, Endings, JoinedWith};
use crate::table::members::Members;
use crate::table::votes::{Verdict, Votes};
use crate::words::clock::OrderedClock;
use crate::words::config::GroupConfig;
use crate::words::history::History;
use crate::words::ids::Attempt;
use crate::words::node_map::NodeMap;
use alloc::vec::Vec;
use quorba_base::policy::Concurrency;
use quorba_base::policy::Style;
use quorba_base::{NodeId, NodeSet};

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupTable {
    pub(crate) members: Members,
    /// Members that operators took out; never all.
    pub(crate) removed: NodeSet,
    /// Requests that were delivered while a member was in.
    pub(crate) history: History,
    /// The group's ordered time.
    pub(crate) clock: OrderedClock,
    /// Requests are taken: all configured members were in once, or the wait for them is over.
    pub(crate) opened: bool,
    /// How the members share the work now.
    pub(crate) style: Style,
    /// Who leads, or did last.
    leader: Option<NodeId>,
    /// What the group had been delivered when it began to, or to execute alone.
    led_from: u64,
    /// For each node that is up to date: it has been delivered every request behind so many.
    known_from: NodeMap<u64>,
    /// Members that have more replies to remember than they should.
    pub(crate) full: NodeSet,
    /// What the members have replied.
    pub(crate) votes: Votes,
    /// What came of votes, and was not heeded yet.
    pub(crate) verdicts: Vec<Verdict>,
    /// Of a durable group that nobody is in: what its members have said of their disks.
    census: Census,
    /// Requests that servers did not answer.
    pub(crate) endings: Endings,
}

impl GroupTable {
    pub(crate) fn new(config: &GroupConfig) -> Self {
        let down = MemberState::Down(DownReason::NotStarted);
        Self {
            members: config.members.iter().map(|node| (node, down)).collect(),
            removed: NodeSet::EMPTY,
            history: History::EMPTY,
            clock: OrderedClock::default(),
            opened: false,
            style: config.style,
            leader: None,
            led_from: 0,
            known_from: config.members.iter().map(|node| (node, 0)).collect(),
            full: NodeSet::EMPTY,
            votes: Votes::default(),
            verdicts: Vec::new(),
            census: Census::default(),
            endings: Endings::default(),
        }
    }

    /// The table of a domain file in which the group had other members.
    pub(crate) fn fit(&mut self, config: &GroupConfig) {
        let down = MemberState::Down(DownReason::NotStarted);
        self.members.fit(config.members, down);
        self.fit_removed(config);
    }

    /// The group has other members from here on.
    pub(crate) fn change_members(&mut self, before: NodeSet, after: &GroupConfig) {
        for node in before.difference(after.members).iter() {
            if let Some(attempt) = self.attempt(node) {
                self.down(after, node, attempt, DownReason::NotMember);
            }
        }
        self.fit(after);
        // Requests are remembered where there is a member, from when there is one.
        self.known_from.retain(|node, _| before.contains(node) && after.members.contains(node));
        for node in after.members.difference(before).iter() {
            self.known_from.insert(node, self.history.count);
        }
        // Who is given requests by a node without a member waits in vain, whether that member was
        // in or not (seed 81879 of the simulator's `groups`).
        self.drop_orphans();
        self.settle_leader(after);
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (NodeId, MemberState)> + '_ {
        self.members.iter()
    }

    pub(crate) fn state(&self, node: NodeId) -> Option<MemberState> {
        self.members.get(node)
    }

    pub(crate) fn in_set(&self) -> NodeSet {
        self.members.inside()
    }

    /// New requests of clients are refused, because a member that is in has too many replies.
    pub(crate) fn is_full(&self) -> bool {
        self.full.iter().any(|node| matches!(self.state(node), Some(MemberState::In { .. })))
    }

    /// A member that is in, by that try, says how it stands with its replies.
    pub(crate) fn set_full(&mut self, node: NodeId, attempt: Attempt, is_full: bool) {
        if self.state(node) == Some(MemberState::In { attempt }) {
            if is_full {
                self.full.insert(node);
            } else {
                self.full.remove(node);
            }
        }
    }

    /// The try of a member that is in, or joins.
    pub(crate) fn attempt(&self, node: NodeId) -> Option<Attempt> {
        match self.state(node)? {
            MemberState::In { attempt } | MemberState::Joining { attempt, .. } => Some(attempt),
            MemberState::Down(_) | MemberState::Out { .. } => None,
        }
    }

    /// The same, and of one that cannot take part.
    pub(crate) fn last_try(&self, node: NodeId) -> Option<Attempt> {
        match self.state(node)? {
            MemberState::In { attempt }
            | MemberState::Joining { attempt, .. }
            | MemberState::Out { attempt, .. } => Some(attempt),
            MemberState::Down(_) => None,
        }
    }

    pub(crate) fn joining(&self) -> NodeSet {
        self.members.joining()
    }

    /// Carries out what [`crate::Command`] asks for and has been checked.
    pub(crate) fn set_style(&mut self, style: Style) {
        if self.style == Style::Stateless && style != Style::Stateless {
            self.keep_one();
        }
        if self.style != style {
            self.led_from = self.history.count;
            // Some may have executed what was delivered before without a vote.
            self.votes.begin_behind(self.history.count);
        }
        self.style = style;
        self.opened |= style == Style::Stateless && !self.in_set().is_empty();
    }

    /// One member's state is the group's from here on; the others get it. Nobody can claim to have
    /// what the group has: what a member of a stateless group has executed, only it knows.
    fn keep_one(&mut self) {
        let members = self.in_set();
        let leader = self.leader.filter(|leader| members.contains(*leader));
        let Some(kept) = leader.or(members.lowest()) else { return };
        self.leader = Some(kept);
        self.history = self.history.extended(kept, 0, self.history.count);
        self.members.change(|node, state| {
            let is_inside = matches!(*state, MemberState::In { .. } | MemberState::Joining { .. });
            if is_inside && node != kept {
                *state = MemberState::Down(DownReason::MayDiffer);
            }
        });
    }

    /// What the group was delivered, and the time that servers were told last, TimeT.
    pub(crate) fn position(&self) -> (History, u64) {
        (self.history, self.clock.wall())
    }

    /// The state transfer of `attempt` is done. False if that try is not under way any more.
    pub(crate) fn joined(&mut self, config: &GroupConfig, node: NodeId, attempt: Attempt) -> bool {
        match self.state(node) {
            Some(MemberState::Joining { attempt: joining, .. }) if joining == attempt => {
                self.members.insert(node, MemberState::In { attempt });
                self.settle_leader(config);
                self.open_if_whole(config);
                true
            }
            _ => false,
        }
    }

    /// The member of `attempt` is gone; what depended on it is gone too. Returns what changed.
    pub(crate) fn down(
        &mut self,
        config: &GroupConfig,
        node: NodeId,
        attempt: Attempt,
        reason: DownReason,
    ) -> bool {
        let current = match self.state(node) {
            // Of an earlier try, perhaps; operators have the last word (seed 500460 of `backups`).
            Some(MemberState::Out { reason: OutReason::Removed, .. }) => return false,
            Some(
                MemberState::Joining { attempt, .. }
                | MemberState::In { attempt }
                | MemberState::Out { attempt, .. },
            ) => attempt,
            _ => return false,
        };
        if current != attempt {
            return false;
        }
        if let (DownReason::RequestsUnknown, Some(MemberState::Joining { donor, .. })) =
            (reason, self.state(node))
        {
            // It is not asked again for what it does not have.
            self.known_from.insert(donor, self.history.count);
        }
        let state = match reason {
            DownReason::TooMuchToReplay => {
                MemberState::Out { attempt, reason: OutReason::TooMuchToReplay }
            }
            reason => MemberState::Down(reason),
        };
        self.members.insert(node, state);
        self.census.forget(node);
        self.lets_go_of(config, node);
        self.drop_orphans();
        self.settle_leader(config);
        true
    }

    /// A member that was in, or was about to be, is not any more: what it said counts no more.
    pub(crate) fn lets_go_of(&mut self, config: &GroupConfig, node: NodeId) {
        let members = (self.in_set(), config.comparison.requests.into());
        self.verdicts.extend(self.votes.leave(node, members));
        self.endings.leave(node);
        self.endings.states.leave(node);
        self.endings.agreed.leave(node);
    }

    /// Calls `with` those who have a say in what became of requests.
    pub(crate) fn with_electorate<T>(
        &mut self,
        config: &GroupConfig,
        with: impl FnOnce(&mut Endings, &Electorate<'_>) -> T,
    ) -> T {
        let inside = self.in_set();
        let executing =
            if self.style.is_passive() { self.leading().into_iter().collect() } else { inside };
        let votes = self.style == Style::ActiveWithVoting;
        let joined_with = self.endings.all_joined_with();
        let endings = &mut self.endings;
        let joined = |node| joined_with.get(node).copied().unwrap_or(JoinedWith::Requests(0));
        let durable = config.durable;
        let led_from = self.led_from;
        let in_sequence = config.concurrency == Concurrency::Sequential;
        let begins_anew = self.style == Style::ColdPassive && !durable && !config.foreign;
        let joined = &joined;
        let electorate = Electorate {
            inside,
            executing,
            joined,
            votes,
            durable,
            led_from,
            in_sequence,
            begins_anew,
        };
        with(endings, &electorate)
    }

    /// The last request without a reply that is behind what a member joins with: it has not seen
    /// what others did with it.
    pub(crate) fn odd_behind_join(&self, node: NodeId) -> Option<u64> {
        let joined_with = self.endings.joined_with_count(node)?;
        let joins = matches!(self.state(node), Some(MemberState::Joining { .. }));
        self.endings.last_in_doubt().filter(|request| joins && *request > joined_with)
    }

    /// The last request without a reply, if some member's state behind it may be another one than
    /// that of those that have executed it.
    pub(crate) fn odd_unshared(&self) -> Option<u64> {
        let joins_before = self.joining().iter().any(|node| self.odd_behind_join(node).is_some());
        let is_unshared = joins_before || self.endings.states.doubt().is_some();
        self.endings.last_in_doubt().filter(|_| is_unshared)
    }

    /// Whether a request can be given up.
    pub(crate) fn may_skip(&self, config: &GroupConfig, at: History) -> bool {
        let may = |endings: &mut Endings, e: &Electorate<'_>| endings.may_skip(at, e);
        self.clone().with_electorate(config, may)
    }

    /// A new primary component: members on other nodes than `current` are down.
    pub(crate) fn keep_only(&mut self, config: &GroupConfig, current: NodeSet, view: NodeSet) {
        let staying = self.in_set().intersection(current);
        let window_requests = config.comparison.requests.into();
        self.members.change(|node, state| {
            if !current.contains(node) {
                self.verdicts.extend(self.votes.leave(node, (staying, window_requests)));
                self.endings.leave(node);
                self.endings.states.leave(node);
                self.endings.agreed.leave(node);
                self.known_from.remove(node);
                if view.contains(node) {
                    // It takes over this table.
                    self.known_from.insert(node, self.history.count);
                }
                self.census.forget(node);
                *state = MemberState::Down(if view.contains(node) {
                    DownReason::NodeMissedMessages
                } else {
                    DownReason::NodeLeft
                });
            }
        });
        self.drop_orphans();
        self.settle_leader(config);
    }

    /// What [`Self::keep_only`] would make of the table.
    pub(crate) fn kept_only(&self, config: &GroupConfig, current: NodeSet, view: NodeSet) -> Self {
        let mut table = self.clone();
        table.keep_only(config, current, view);
        table
    }

    /// Joiners whose donor cannot give any more start over.
    pub(crate) fn drop_orphans(&mut self) {
        let inside = self.in_set();
        let known_from = &self.known_from;
        self.members.change(|_, state| {
            let MemberState::Joining { donor, lacks, .. } = *state else { return };
            let can_give = match lacks {
                Lacks::State | Lacks::Updates => inside.contains(donor),
                // Its member need not be in; but what it has, it must still have.
                Lacks::Requests => {
                    known_from.get(donor).is_some_and(|from| *from < self.history.count)
                }
            };
            if !can_give {
                *state = MemberState::Down(DownReason::DonorLost);
            }
        });
    }

    /// What was known of members, requests and votes is of the past; `node` leads.
    pub(crate) fn begin_behind(&mut self, node: NodeId) {
        let count = self.history.count;
        self.known_from.iter_mut().for_each(|(_, from)| *from = count);
        self.full = NodeSet::EMPTY;
        (self.votes, self.verdicts) = (Votes::beginning_behind(count), Vec::new());
        self.votes.join(node, count);
        self.census.clear();
        self.endings.begin_anew();
        self.endings.join(node, JoinedWith::State(count), false);
        (self.leader, self.led_from) = (Some(node), count);
        self.opened = true;
    }

    pub(crate) fn open_if_whole(&mut self, config: &GroupConfig) {
        self.opened |= self.in_set() == config.members.difference(self.removed);
    }
}

/// The most requests that are kept; who missed more is given a state.
pub(crate) const CATCH_UP_REQUESTS_MAX: u64 = 4_096;
