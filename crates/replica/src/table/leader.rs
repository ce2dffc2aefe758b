//! Who leads, who answers, and who is spared.
//!
//! What it is not: who is in. Invariant: a member that leads does so as long as it is in, unless an
//! operator names another.

use super::GroupTable;
use crate::words::config::GroupConfig;
use quorba_base::policy::{Replication, ReplyPath};
use quorba_base::{NodeId, NodeSet};

impl GroupTable {
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
        self.lead(match self.leader {
            Some(gone) if self.opened => members.successor(gone).or(Some(gone)),
            _ => preferred.or(members.lowest()).or(self.leader),
        });
    }

    /// See [`Self::set_style`].
    pub(crate) fn promote(&mut self, node: NodeId) {
        self.lead(Some(node));
    }

    fn lead(&mut self, leader: Option<NodeId>) {
        if self.leader != leader {
            (self.leader, self.led_from) = (leader, self.history.count);
        }
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
    /// in, the next one in ring order. One whose server is giving its state may answer late, so
    /// that another does if there is one; at its own gateway both do, because a server is done
    /// long before its state has travelled, and from then on its own reply is there first.
    pub(crate) fn repliers(&self, config: &GroupConfig, gateway: NodeId) -> NodeSet {
        if self.style.has_leader() {
            return self.led_by(self.leading(), config);
        }
        let members = self.in_set();
        let first = match (config.replier, config.reply) {
            (Some(named), _) => named,
            (None, ReplyPath::Direct) => gateway,
            (None, ReplyPath::Ordered | ReplyPath::OrderedOnce) => return members,
        };
        let undisturbed = self.undisturbed(config, members);
        if undisturbed.contains(first) {
            return NodeSet::EMPTY.with(first);
        }
        let next: NodeSet = undisturbed.successor(first).into_iter().collect();
        if first == gateway && members.contains(first) { next.with(first) } else { next }
    }

    /// The leader answers. If its server is late with what others have answered, so does another
    /// member, where others execute.
    fn led_by(&self, leader: Option<NodeId>, config: &GroupConfig) -> NodeSet {
        let leads: NodeSet = leader.into_iter().collect();
        match leader.filter(|leader| self.endings.late().contains(*leader)) {
            Some(late) if !self.style.is_passive() => {
                let others = self.undisturbed(config, self.in_set());
                leads.union(others.successor(late).into_iter().collect())
            }
            _ => leads,
        }
    }

    /// The member that executes requests before the others do, if the group wants one to.
    pub(crate) fn goes_ahead(&self, config: &GroupConfig) -> Option<NodeId> {
        let all_execute = self.style.all_execute();
        let one_is_first = config.staggered || config.replication == Replication::Chain;
        if !one_is_first || !all_execute {
            return None;
        }
        let inside = self.in_set();
        let prompt = inside.difference(self.endings.late());
        let leader = self.leading().filter(|leader| prompt.contains(*leader));
        leader.or(prompt.lowest()).or(inside.lowest())
    }

    /// Of `others`, the one in front of `node` in the chain that begins with `first`: the members
    /// in ring order, those that are late behind all who are not.
    pub(crate) fn before_in_chain(
        &self,
        first: NodeId,
        node: NodeId,
        others: NodeSet,
    ) -> Option<NodeId> {
        let late = self.endings.late();
        let place = |of: NodeId| (late.contains(of), of < first, of);
        others.iter().filter(|other| place(*other) < place(node)).max_by_key(|other| place(*other))
    }

    /// Of `members`, those whose servers are neither asked for their state nor late with what
    /// others have answered; if there is none, all of them.
    pub(crate) fn undisturbed(&self, config: &GroupConfig, members: NodeSet) -> NodeSet {
        // What donors of requests give is known without their servers.
        let asks_servers = config.replay_bytes_max.is_none() && !config.by_application;
        let donors = if asks_servers { self.members.donors() } else { NodeSet::EMPTY };
        let others = members.difference(donors.union(self.endings.late()));
        if others.is_empty() { members } else { others }
    }

    /// The next member that is in, and rather not the leader: clients would wait meanwhile.
    pub(super) fn spare_donor(&self, joiner: NodeId) -> Option<NodeId> {
        let inside = self.in_set();
        let others =
            self.leading().map_or(inside, |leader| inside.difference(NodeSet::EMPTY.with(leader)));
        others.successor(joiner).or(inside.successor(joiner))
    }
}
