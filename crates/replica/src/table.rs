//! The replicated table of one group: who is in, what was delivered, what time it is.
//!
//! Every node of the primary component keeps it, members or not, and changes it only where an
//! ordered message or a decided view says so. Invariant: equal on all current nodes at the same
//! position of the order.

mod updates;

use crate::clock::OrderedClock;
use crate::config::{GroupConfig, ReplyPath, TotalLoss};
use crate::history::History;
use crate::ids::Attempt;
use crate::members::Members;
use crate::offer::Offer;
use crate::remains::{Census, Kept};
use crate::style::Style;
use crate::trail::REQUESTS_MAX;
use crate::votes::{Verdict, Votes};
use crate::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet, canary};

/// No node has this index.
const NO_NODE: u8 = u8::MAX;

/// Why a member is not in the group any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DownReason {
    /// Its server has not been started yet in this view.
    NotStarted,
    /// Its server process ended.
    ServerExited,
    /// Its server closed the connection in a way that no living server does.
    ConnectionLost,
    /// Its server did not answer in time.
    ServerHung,
    /// Its server sent what is not a GIOP reply to the request.
    ServerProtocol,
    /// Its server refused the state (`set_state`).
    StateRefused,
    /// The donor's server could not give its state (`get_state`).
    StateUnavailable,
    /// The donor left while it was giving its state.
    DonorLost,
    /// Its node left the view.
    NodeLeft,
    /// Its node missed messages while it was away.
    NodeMissedMessages,
    /// It replied something else than most members.
    Diverged,
    /// It logged more requests than it may keep: no checkpoint came for too long.
    LogOverflow,
    /// The state that it was given is not what the donor had.
    StateDamaged,
    /// The donor's state and the replies that go with it are more than is passed on.
    StateTooLarge,
    /// The group recovers by replay, and has executed more than is kept for that.
    TooMuchToReplay,
    /// The group recovers by replay, and its server has executed some of it before.
    NotFresh,
    /// The donor does not have the requests that the member lacks.
    RequestsUnknown,
    /// The requests that it lacks are more than its donor passes on where a state can be had.
    RequestsTooLong,
    /// The group was stateless, and its state may be another one than that of the member that
    /// stayed in.
    MayDiffer,
    /// It executed a request anew in which it called, and what became of the call is forgotten.
    CallsForgotten,
    /// The group was given the state of a backup, and it has another one.
    Restored,
    /// The updates since the state that it had kept are not to be had: it gets a state.
    UpdatesUnknown,
}

impl DownReason {
    const ALL: [Self; 22] = [
        Self::NotStarted,
        Self::ServerExited,
        Self::ConnectionLost,
        Self::ServerHung,
        Self::ServerProtocol,
        Self::StateRefused,
        Self::StateUnavailable,
        Self::DonorLost,
        Self::NodeLeft,
        Self::NodeMissedMessages,
        Self::LogOverflow,
        Self::StateDamaged,
        Self::StateTooLarge,
        Self::Diverged,
        Self::MayDiffer,
        Self::TooMuchToReplay,
        Self::NotFresh,
        Self::RequestsUnknown,
        Self::RequestsTooLong,
        Self::CallsForgotten,
        Self::Restored,
        Self::UpdatesUnknown,
    ];

    pub(crate) fn code(self) -> u8 {
        Self::ALL.iter().position(|reason| *reason == self).expect("ALL has every reason") as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NotStarted => "its server has not joined yet",
            Self::ServerExited => "its server process ended",
            Self::ConnectionLost => "its server dropped the connection",
            Self::ServerHung => "its server did not answer in time",
            Self::ServerProtocol => "its server answered with something that is no reply",
            Self::StateRefused => "its server refused the state",
            Self::StateUnavailable => "no state could be had from the donor's server",
            Self::DonorLost => "the member that was giving it its state left",
            Self::NodeLeft => "its node left the view",
            Self::NodeMissedMessages => "its node missed messages while it was away",
            Self::Diverged => "it replied something else than most members",
            Self::LogOverflow => "its log of requests grew too long without a checkpoint",
            Self::StateDamaged => "the state that it was given is not what the donor had",
            Self::StateTooLarge => "the donor's state, with its replies, is more than is passed on",
            Self::TooMuchToReplay => "the group has executed more than replay_bytes",
            Self::NotFresh => "its server had executed requests and must begin anew",
            Self::RequestsUnknown => "nobody has all the requests that it lacks",
            Self::RequestsTooLong => "the requests that it lacks are many: it gets a state",
            Self::MayDiffer => "its state may differ: the group was stateless",
            Self::CallsForgotten => "what became of a call that it makes anew is forgotten",
            Self::Restored => "the group was restored from a backup at another member",
            Self::UpdatesUnknown => "the updates that it lacks are not kept: it gets a state",
        }
    }
}

/// Why a member whose server runs cannot take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutReason {
    /// It missed requests, and the group names no `state_object` to fetch them from.
    NoStateObject,
    /// No member is left that has the state.
    TotalLoss,
    /// The group recovers by replay, and has executed more than is kept for that.
    TooMuchToReplay,
    /// An operator took it out.
    Removed,
}

impl OutReason {
    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NoStateObject => "it missed requests and the group names no state_object",
            Self::TotalLoss => "no member is left that has the group's state",
            Self::TooMuchToReplay => "the group has executed more than replay_bytes",
            Self::Removed => "an operator removed it",
        }
    }
}

/// What a joining member is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lacks {
    /// A state, and the replies that clients may still ask for.
    State,
    /// The requests behind those that its server has executed.
    Requests,
    /// What has changed since the checkpoint whose state it has, and the replies.
    Updates,
}

impl Lacks {
    /// The word for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Requests => "requests",
            Self::Updates => "updates",
        }
    }
}

/// Where a member stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// No server, or its node is away.
    Down(DownReason),
    /// Being brought up to date by `donor`.
    Joining {
        /// Which try this is.
        attempt: Attempt,
        /// Who gives it what it lacks.
        donor: NodeId,
        /// What that is.
        lacks: Lacks,
    },
    /// Executes requests and may answer.
    In {
        /// The try that brought it in.
        attempt: Attempt,
    },
    /// Has a server that cannot take part.
    Out {
        /// The try that was refused.
        attempt: Attempt,
        /// Why.
        reason: OutReason,
    },
}

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
    /// For each node that is up to date: it has been delivered every request behind so many.
    known_from: BTreeMap<NodeId, u64>,
    /// Members that have more replies to remember than they should.
    pub(crate) full: NodeSet,
    /// What the members have replied.
    pub(crate) votes: Votes,
    /// What came of votes, and was not heeded yet.
    pub(crate) verdicts: Vec<Verdict>,
    /// Of a durable group that nobody is in: what its members have said of their disks.
    census: Census,
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
            known_from: config.members.iter().map(|node| (node, 0)).collect(),
            full: NodeSet::EMPTY,
            votes: Votes::default(),
            verdicts: Vec::new(),
            census: Census::default(),
        }
    }

    /// The table of a domain file in which the group had other members.
    pub(crate) fn fit(&mut self, config: &GroupConfig) {
        let down = MemberState::Down(DownReason::NotStarted);
        self.members.fit(config.members, down);
        self.fit_removed(config);
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

    pub(crate) fn joining(&self) -> NodeSet {
        self.members.joining()
    }

    /// The member that answers all clients, if the style has one and it is in.
    pub(crate) fn leading(&self) -> Option<NodeId> {
        self.leader.filter(|leader| self.style.has_leader() && self.in_set().contains(*leader))
    }

    /// A member leads as long as it is in, so that nothing moves without need; the next one in ring
    /// order follows it. Until the group takes requests the one that is preferred may still come.
    pub(crate) fn settle_leader(&mut self, config: &GroupConfig) {
        let members = self.in_set();
        let leads = |node: &NodeId| members.contains(*node);
        if self.opened && self.leader.is_some_and(|leader| leads(&leader)) {
            return;
        }
        let preferred = config.leader.filter(leads);
        self.leader = match self.leader {
            Some(gone) if self.opened => members.successor(gone).or(Some(gone)),
            _ => preferred.or(members.lowest()).or(self.leader),
        };
    }

    /// Carries out what [`crate::Command`] asks for and has been checked.
    pub(crate) fn set_style(&mut self, style: Style) {
        if self.style == Style::Stateless && style != Style::Stateless {
            self.keep_one();
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

    /// See [`Self::set_style`].
    pub(crate) fn promote(&mut self, node: NodeId) {
        self.leader = Some(node);
    }

    /// Of `members`, the one that answers requests of the gateway on `gateway`.
    pub(crate) fn replier_among(
        &self,
        config: &GroupConfig,
        gateway: NodeId,
        members: NodeSet,
    ) -> Option<NodeId> {
        let first = config.replier.unwrap_or(gateway);
        if members.contains(first) { Some(first) } else { members.successor(first) }
    }

    /// The members that answer requests of the gateway on `gateway`. Unless all do: the named one,
    /// or the one on the same node, so that the reply needs no second hop; and if that one is not
    /// in, the next one in ring order. One whose server is giving its state answers late, so that
    /// another does if there is one.
    pub(crate) fn repliers(&self, config: &GroupConfig, gateway: NodeId) -> NodeSet {
        if self.style.has_leader() {
            return self.leading().into_iter().collect();
        }
        let members = self.in_set();
        let first = match (config.replier, config.reply) {
            (Some(named), _) => named,
            (None, ReplyPath::Direct) => gateway,
            (None, ReplyPath::Ordered | ReplyPath::OrderedOnce) => return members,
        };
        let members = self.undisturbed(config, members);
        let next = || members.successor(first);
        let one = if members.contains(first) { Some(first) } else { next() };
        one.into_iter().collect()
    }

    /// Of `members`, those whose servers are not asked for their state; if all are, all of them.
    pub(crate) fn undisturbed(&self, config: &GroupConfig, members: NodeSet) -> NodeSet {
        if config.replay_bytes_max.is_some() {
            // What these give is known without their servers.
            return members;
        }
        let others = members.difference(self.members.donors());
        if others.is_empty() { members } else { others }
    }

    /// The next member that is in, and rather not the leader: clients would wait meanwhile.
    fn spare_donor(&self, joiner: NodeId) -> Option<NodeId> {
        let inside = self.in_set();
        let others =
            self.leading().map_or(inside, |leader| inside.difference(NodeSet::EMPTY.with(leader)));
        others.successor(joiner).or(inside.successor(joiner))
    }

    /// A member asks to come in with what `offer` says.
    pub(crate) fn join(
        &mut self,
        config: &GroupConfig,
        node: NodeId,
        attempt: Attempt,
        offer: Offer,
    ) -> Option<MemberState> {
        let Offer { claim, remains, .. } = offer;
        if self.removed.contains(node) {
            return self.keep_out(node, attempt);
        }
        self.end_earlier_try(node, attempt);
        // Of a passive group only the leader has the whole state; whoever follows one that is gone
        // leads when the state is asked for.
        let leading = self.leading().filter(|_| self.style.is_passive());
        let donor = leading.filter(|leader| *leader != node);
        let donor = donor.or_else(|| self.spare_donor(node)).filter(|donor| *donor != node);
        let requests_from = self.knows_since(config, node, claim);
        // A member that is given what it missed has the group's state, although it is not in yet.
        let is_expected = self.joining().iter().any(|other| other != node);
        let goes_on = !is_expected && self.goes_on_ahead(config, node, offer);
        let updates_from = self.updates_since(config, node, offer.kept);
        self.state(node)?;
        let fresh = claim == Some(History::EMPTY);
        let is_near = |claim: History| claim.count > 0 && claim.count + 3 > self.history.count;
        let is_near = canary!(AdmitsStaleMember) && claim.is_some_and(is_near);
        let needs_none = self.style == Style::Stateless;
        self.opened |= needs_none;
        let state = if let Some(donor) = updates_from {
            MemberState::Joining { attempt, donor, lacks: Lacks::Updates }
        } else if claim == Some(self.history) || is_near || needs_none || goes_on {
            MemberState::In { attempt }
        } else if let Some(donor) = requests_from {
            MemberState::Joining { attempt, donor, lacks: Lacks::Requests }
        } else if let Some(donor) = donor {
            if config.can_recover() {
                MemberState::Joining { attempt, donor, lacks: Lacks::State }
            } else {
                MemberState::Out { attempt, reason: OutReason::NoStateObject }
            }
        } else if config.on_total_loss == TotalLoss::Fresh && fresh && !is_expected {
            self.history = History::EMPTY;
            self.votes = Votes::default();
            MemberState::In { attempt }
        } else {
            MemberState::Out { attempt, reason: OutReason::TotalLoss }
        };
        self.members.insert(node, state);
        if matches!(state, MemberState::Out { .. }) {
            self.census.hear(node, attempt, remains);
            self.revive(config);
        } else {
            self.votes.join(node, self.history.count);
        }
        if !self.in_set().is_empty() {
            self.census.clear();
        }
        self.open_if_whole(config);
        self.settle_leader(config);
        self.state(node)
    }

    /// Nobody is in, and the server of `node` has all that the group was delivered and some
    /// requests more: the group goes on from there. Nobody was told of those, which no majority
    /// had; whoever waits for them asks again, and is given the replies of then.
    fn goes_on_ahead(&mut self, config: &GroupConfig, node: NodeId, offer: Offer) -> bool {
        let (Some(claim), true) = (offer.claim, offer.ahead_of == Some(self.history)) else {
            return false;
        };
        // What a log has decides for durable groups.
        let nobody_is_in = self.in_set().is_empty() || canary!(AheadOfOthers);
        let is_fit = nobody_is_in && !config.durable;
        if is_fit {
            // Others lack those requests.
            self.known_from = [(node, self.history.count)].into();
            self.history = claim;
            self.votes = Votes::default();
            // Time goes on from what was told with them (seed 600127 of the simulator's `styles`).
            self.clock.was_told(offer.told);
        }
        is_fit
    }

    /// A member that asks again without having said that it was down: a group can have gone on from
    /// what it had told of its disk before (seed 114467 of the simulator's `styles`). Nobody waits
    /// for its former server any more.
    fn end_earlier_try(&mut self, node: NodeId, attempt: Attempt) {
        let (Some(MemberState::In { attempt: former })
        | Some(MemberState::Joining { attempt: former, .. })) = self.state(node)
        else {
            return;
        };
        if former != attempt {
            self.members.insert(node, MemberState::Down(DownReason::ServerExited));
            self.verdicts.extend(self.votes.leave(node));
            self.drop_orphans();
        }
    }

    /// What the group was delivered, and the time that servers were told last, TimeT.
    pub(crate) fn standing(&self) -> (History, u64) {
        (self.history, self.clock.wall())
    }

    /// A durable group that nobody is in goes on from what is on disks, if enough is known of them:
    /// see [`crate::remains`].
    fn revive(&mut self, config: &GroupConfig) {
        if !config.durable || !self.in_set().is_empty() {
            return;
        }
        let Some((node, attempt, Kept { history, told, .. })) =
            self.census.furthest(config.members.len(), self.removed.len())
        else {
            return;
        };
        self.history = history;
        // As it was there, earlier or later: who asks again is to come to the same history only at
        // the same time (seeds 702869 and 722965 of the simulator's `backups`).
        self.clock.goes_on_at(told);
        self.votes = Votes::default();
        self.votes.join(node, history.count);
        self.members.insert(node, MemberState::In { attempt });
    }

    /// Another node that has every request behind what the server of `node` has executed; one whose
    /// member is in, if there is one. Where there is a log it must have no gap, so that a member
    /// needs a state, which its disk keeps.
    fn knows_since(
        &self,
        config: &GroupConfig,
        node: NodeId,
        claim: Option<History>,
    ) -> Option<NodeId> {
        let claim = claim.filter(|claim| claim.count > 0 && !config.logged)?;
        let missed = self.history.count.checked_sub(claim.count)?;
        if missed == 0 || missed > REQUESTS_MAX {
            return None;
        }
        let knows = |(other, from): (&NodeId, &u64)| {
            (*other != node && *from <= claim.count).then_some(*other)
        };
        let able: NodeSet = self.known_from.iter().filter_map(knows).collect();
        able.intersection(self.in_set()).successor(node).or(able.successor(node))
    }

    /// The state transfer of `attempt` is done. False if that try is not under way any more.
    pub(crate) fn joined(&mut self, config: &GroupConfig, node: NodeId, attempt: Attempt) -> bool {
        match self.state(node) {
            Some(MemberState::Joining { attempt: joining, .. }) if joining == attempt => {
                self.members.insert(node, MemberState::In { attempt });
                self.open_if_whole(config);
                self.settle_leader(config);
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
        self.verdicts.extend(self.votes.leave(node));
        self.drop_orphans();
        self.settle_leader(config);
        true
    }

    /// A new primary component: members on other nodes than `current` are down.
    pub(crate) fn keep_only(&mut self, config: &GroupConfig, current: NodeSet, view: NodeSet) {
        self.members.change(|node, state| {
            if !current.contains(node) {
                self.verdicts.extend(self.votes.leave(node));
                self.known_from.remove(&node);
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
                    known_from.get(&donor).is_some_and(|from| *from < self.history.count)
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
        self.known_from.values_mut().for_each(|from| *from = count);
        self.full = NodeSet::EMPTY;
        (self.votes, self.verdicts) = (Votes::default(), Vec::new());
        self.votes.join(node, count);
        self.census.clear();
        self.leader = Some(node);
        self.opened = true;
    }

    pub(crate) fn open_if_whole(&mut self, config: &GroupConfig) {
        self.opened |= self.in_set() == config.members.difference(self.removed);
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u64(self.history.count);
        writer.u64(self.history.digest);
        self.clock.encode(writer);
        writer.u8(u8::from(self.opened));
        writer.u8(self.style.code());
        writer.u8(self.leader.map_or(NO_NODE, NodeId::index));
        writer.u64(self.full.bits());
        writer.u32(self.known_from.len() as u32);
        for (node, from) in &self.known_from {
            writer.node(*node);
            writer.u64(*from);
        }
        writer.u32(self.members.len() as u32);
        for (node, state) in self.members() {
            writer.node(node);
            let (kind, attempt, detail) = match state {
                MemberState::Down(reason) => (0, 0, reason.code()),
                MemberState::Joining { attempt, donor, lacks: Lacks::State } => {
                    (1, attempt.0, donor.index())
                }
                MemberState::Joining { attempt, donor, lacks: Lacks::Requests } => {
                    (4, attempt.0, donor.index())
                }
                MemberState::Joining { attempt, donor, lacks: Lacks::Updates } => {
                    (5, attempt.0, donor.index())
                }
                MemberState::In { attempt } => (2, attempt.0, 0),
                MemberState::Out { attempt, reason: OutReason::NoStateObject } => (3, attempt.0, 0),
                MemberState::Out { attempt, reason: OutReason::TotalLoss } => (3, attempt.0, 1),
                MemberState::Out { attempt, reason: OutReason::TooMuchToReplay } => {
                    (3, attempt.0, 2)
                }
                MemberState::Out { attempt, reason: OutReason::Removed } => (3, attempt.0, 3),
            };
            writer.u8(kind);
            writer.u64(attempt);
            writer.u8(detail);
        }
        writer.u64(self.removed.bits());
        self.votes.encode(writer);
        self.census.encode(writer);
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let history =
            History { count: reader.u64("history")?, digest: reader.u64("history digest")? };
        let clock = OrderedClock::decode(reader)?;
        let opened = reader.bool("opened")?;
        let invalid = reader.error("style");
        let style = Style::from_code(reader.u8("style")?).ok_or(invalid)?;
        let leader = NodeId::new(reader.u8("leader")?);
        let full = NodeSet::from_bits(reader.u64("full members")?);
        let mut known_from = BTreeMap::new();
        for _ in 0..reader.count(9, "node count")? {
            known_from.insert(reader.node("node")?, reader.u64("known from")?);
        }
        let mut members = Vec::new();
        for _ in 0..reader.count(11, "member count")? {
            let node = reader.node("member")?;
            let kind = reader.u8("member state")?;
            let attempt = Attempt(reader.u64("attempt")?);
            let detail = reader.u8("state detail")?;
            let invalid = reader.error("member state");
            let state = match (kind, detail) {
                (0, code) => MemberState::Down(DownReason::from_code(code).ok_or(invalid)?),
                (1 | 4 | 5, donor) => MemberState::Joining {
                    attempt,
                    donor: NodeId::new(donor).ok_or(invalid)?,
                    lacks: match kind {
                        1 => Lacks::State,
                        4 => Lacks::Requests,
                        _ => Lacks::Updates,
                    },
                },
                (2, _) => MemberState::In { attempt },
                (3, 0) => MemberState::Out { attempt, reason: OutReason::NoStateObject },
                (3, 1) => MemberState::Out { attempt, reason: OutReason::TotalLoss },
                (3, 2) => MemberState::Out { attempt, reason: OutReason::TooMuchToReplay },
                (3, 3) => MemberState::Out { attempt, reason: OutReason::Removed },
                _ => return Err(invalid),
            };
            members.push((node, state));
        }
        let removed = NodeSet::from_bits(reader.u64("removed members")?);
        let removed = if canary!(ForgetsTheRemoved) { NodeSet::EMPTY } else { removed };
        let votes = Votes::decode(reader)?;
        let (verdicts, census) = (Vec::new(), Census::decode(reader)?);
        Ok(Self {
            members: members.into_iter().collect(),
            removed,
            history,
            clock,
            opened,
            style,
            leader,
            known_from,
            full,
            votes,
            verdicts,
            census,
        })
    }
}
