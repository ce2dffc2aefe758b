//! A member asks to come in: what it lacks, who gives it that, and what a group that nobody is in
//! goes on from.
//!
//! What it is not: how it travels, which is `transfer`. Invariant: nobody comes in without all that
//! the group was delivered.

use super::{GroupTable, Lacks, MemberState, OutReason};
use crate::table::disk_census::{DiskState, RecoveryPoint};
use crate::table::endings::JoinedWith;
use crate::table::offer::Offer;
use crate::table::votes::Votes;
use crate::table::{CATCH_UP_REQUESTS_MAX, DownReason};
use crate::words::config::GroupConfig;
use crate::words::history::History;
use crate::words::ids::Attempt;
use quorba_base::policy::OnTotalLoss;
use quorba_base::policy::Style;
use quorba_base::{NodeId, NodeSet, canary};

/// A server that somebody else runs may have a past of its own: that it has executed nothing of the
/// group's does not make it equal to the others.
fn may_have_a_past(config: &GroupConfig, claim: History) -> bool {
    let others_have_it = config.can_recover() && !config.by_application;
    config.foreign && others_have_it && claim == History::EMPTY
}

impl GroupTable {
    /// A member asks to come in with what `offer` says.
    pub(crate) fn join(
        &mut self,
        config: &GroupConfig,
        node: NodeId,
        attempt: Attempt,
        offer: Offer,
    ) -> Option<MemberState> {
        let offer = self.beyond_doubt(config, node, offer);
        let Offer { claim, disk_state, known, .. } = offer;
        if self.removed.contains(node) {
            return self.keep_out(node, attempt);
        }
        self.end_earlier_try(config, node, attempt);
        // Of a passive group only the leader has the whole state; whoever follows one that is gone
        // leads when the state is asked for.
        let leading = self.leading().filter(|leader| self.style.is_passive() && *leader != node);
        let donor = leading.or_else(|| self.spare_donor(node)).filter(|donor| *donor != node);
        let claim = claim.filter(|claim| donor.is_none() || !may_have_a_past(config, *claim));
        let may_lack = |claim: History| self.endings.is_any_skipped_behind(claim.count);
        let may_lack = config.can_recover() && claim.is_some_and(may_lack);
        let requests_from = self.knows_since(config, node, claim).filter(|_| !may_lack);
        // A member that is given what it missed has the group's state, although it is not in yet.
        let is_expected = self.joining().iter().any(|other| other != node);
        let goes_on = !is_expected && self.goes_on_ahead(config, node, offer);
        let updates_from = self.updates_since(config, node, offer.held_checkpoint);
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
        } else if config.on_total_loss == OnTotalLoss::Fresh && fresh && !is_expected {
            self.history = History::EMPTY;
            self.votes = Votes::beginning_behind(0);
            self.endings.begin_anew();
            MemberState::In { attempt }
        } else if config.by_application && !is_expected {
            // Whatever its server has: the application knows. Its place is here, so that those
            // whose servers have all of the past go on with it.
            self.votes = Votes::beginning_behind(self.history.count);
            self.endings.begin_anew();
            MemberState::In { attempt }
        } else {
            MemberState::Out { attempt, reason: OutReason::TotalLoss }
        };
        self.members.insert(node, state);
        match state {
            MemberState::Out { .. } => self.hear_disk(config, (node, attempt), disk_state, known),
            _ => self.comes_in(node, (state, offer)),
        }
        if !self.in_set().is_empty() {
            self.census.clear();
        }
        self.settle_leader(config);
        self.open_if_whole(config);
        self.state(node)
    }

    /// Who does not come in says what is on its disk.
    fn hear_disk(
        &mut self,
        config: &GroupConfig,
        (node, attempt): (NodeId, Attempt),
        disk_state: DiskState,
        known: History,
    ) {
        // What was delivered since may be on its disk, too.
        let is_valid = known == self.history;
        let disk_state = if is_valid { disk_state } else { DiskState::NotLooked };
        self.census.hear(node, attempt, disk_state);
        self.revive(config);
    }

    /// Where others are in, nobody comes in with a server that may have replied to what ended
    /// without a reply meanwhile, or that was told of a reply to such a call of its own (seed
    /// 9600085 of the simulator's `calls`).
    fn beyond_doubt(&self, config: &GroupConfig, node: NodeId, offer: Offer) -> Offer {
        let knows_less = |claim: &History| {
            offer.heard_otherwise || self.endings.has_ended_since(offer.ends, claim.count)
        };
        let others = self.in_set().difference(NodeSet::EMPTY.with(node));
        let counts = !others.is_empty() && self.style != Style::Stateless;
        if counts && config.can_recover() && offer.claim.is_some_and(|claim| knows_less(&claim)) {
            return Offer { claim: None, ..offer };
        }
        offer
    }

    /// It is in, or is being given what it lacks.
    fn comes_in(&mut self, node: NodeId, (state, offer): (MemberState, Offer)) {
        self.votes.join(node, self.history.count);
        self.counts_anew(node, (state, offer));
        let is_given = matches!(state, MemberState::Joining { lacks: Lacks::State, .. });
        self.endings.join(node, self.joined_with(state, offer), is_given);
    }

    /// Nobody else is in, so that what its server did with requests that ended without a reply
    /// since it was in last is the group's.
    fn counts_anew(&mut self, node: NodeId, (state, offer): (MemberState, Offer)) {
        let others = self.in_set().difference(NodeSet::EMPTY.with(node));
        let lacks_state =
            matches!(state, MemberState::Joining { lacks: Lacks::State | Lacks::Updates, .. });
        if let Some(claim) = offer.claim.filter(|_| others.is_empty() && !lacks_state) {
            self.endings.end_again(|count, number| count <= claim.count && number > offer.ends);
        }
    }

    /// What the server of a member that comes in has been given, or is.
    fn joined_with(&self, state: MemberState, offer: Offer) -> JoinedWith {
        let Offer { claim, is_through, .. } = offer;
        let count = match (state, claim) {
            (MemberState::Joining { lacks: Lacks::Requests, .. }, Some(claim)) => claim.count,
            (MemberState::Joining { .. }, _) => return JoinedWith::State(self.history.count),
            _ => self.history.count,
        };
        // Of a group without a state nobody has what was executed elsewhere.
        let has_all = is_through && self.style != Style::Stateless;
        if has_all { JoinedWith::State(count) } else { JoinedWith::Requests(count) }
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
            self.known_from = [(node, self.history.count)].into_iter().collect();
            self.history = claim;
            self.votes = Votes::beginning_behind(claim.count);
            self.endings.begin_anew();
            // Time goes on from what was told with them (seed 600127 of the simulator's `styles`).
            self.clock.was_told(offer.told);
        }
        is_fit
    }

    /// A member that asks again without having said that it was down: a group can have gone on from
    /// what it had told of its disk before (seed 114467 of the simulator's `styles`). Nobody waits
    /// for its former server any more.
    fn end_earlier_try(&mut self, config: &GroupConfig, node: NodeId, attempt: Attempt) {
        let (Some(MemberState::In { attempt: former })
        | Some(MemberState::Joining { attempt: former, .. })) = self.state(node)
        else {
            return;
        };
        if former != attempt {
            self.members.insert(node, MemberState::Down(DownReason::ServerExited));
            self.lets_go_of(config, node);
            self.drop_orphans();
        }
    }

    /// A durable group that nobody is in goes on from what is on disks, if enough is known of them:
    /// see [`crate::table::disk_census`].
    fn revive(&mut self, config: &GroupConfig) {
        if !config.durable || !self.in_set().is_empty() {
            return;
        }
        let Some((node, attempt, RecoveryPoint { history, told, .. })) =
            self.census.furthest(config.members.len(), self.removed.len())
        else {
            return;
        };
        self.history = history;
        // As it was there, earlier or later: who asks again is to come to the same history only at
        // the same time (seeds 702869 and 722965 of the simulator's `backups`).
        self.clock.goes_on_at(told);
        self.votes = Votes::beginning_behind(history.count);
        self.votes.join(node, history.count);
        self.endings.begin_anew();
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
        if missed == 0 || missed > CATCH_UP_REQUESTS_MAX {
            return None;
        }
        let knows = |(other, from): (NodeId, &u64)| {
            (other != node && *from <= claim.count).then_some(other)
        };
        let able: NodeSet = self.known_from.iter().filter_map(knows).collect();
        able.intersection(self.in_set()).successor(node).or(able.successor(node))
    }
}
