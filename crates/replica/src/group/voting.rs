//! Votes on replies, and what follows from them for the group: answers, and members that go.
//!
//! What it is not: the count. Invariant: every node comes to the same verdicts at the same place of
//! the order, and only the table's state decides who answers.

use super::{Group, NodeContext};
use crate::member::Member;
use crate::output::{Event, GatewayOutput, Outbox, Output};
use crate::table::DownReason;
use crate::table::votes::{Subject, Verdict};
use crate::words::ids::{Attempt, GatewayKey};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::policy::ReplyPath;
use quorba_base::policy::Style;
use quorba_base::{Instant, NodeId, NodeSet};

impl Group {
    /// What the member on `origin` has replied.
    pub(crate) fn deliver_votes(
        &mut self,
        now: Instant,
        origin: NodeId,
        attempt: Attempt,
        votes: &[(Subject, u64)],
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if origin == here.node
            && let Some(member) = &mut self.member
        {
            member.votes_were_cast();
        }
        if self.table.attempt(origin) != Some(attempt) {
            return;
        }
        let members = (self.table.in_set(), self.config.comparison.requests.into());
        for (window, digest) in votes {
            let verdicts = self.table.votes.vote(members, origin, *window, *digest);
            self.table.verdicts.extend(verdicts);
        }
        self.heed_verdicts(now, here, out);
    }

    /// Does what verdicts ask for; members that go because of them may lead to others.
    pub(crate) fn heed_verdicts(&mut self, now: Instant, here: NodeContext, out: &mut Outbox) {
        while self.heed_endings(now, here, out) || !self.table.verdicts.is_empty() {
            for verdict in core::mem::take(&mut self.table.verdicts) {
                match verdict {
                    Verdict::Decided { window, supporters } => {
                        if supporters.contains(here.node) {
                            self.let_go(window, supporters, here, out);
                        }
                    }
                    Verdict::Settled { node, window } => {
                        if node == here.node {
                            if self.table.votes.decision(window) == Some(None) {
                                self.disagree(window);
                            }
                            self.let_go(window, NodeSet::EMPTY, here, out);
                        }
                    }
                    Verdict::Tied { window } => {
                        let (group, first, request) = (self.id, self.first_of(window), window.last);
                        out.push_back(Output::Event(Event::Disagreement { group, first, request }));
                        self.look_for_padding();
                        self.disagree(window);
                        self.let_go(window, NodeSet::EMPTY, here, out);
                    }
                    Verdict::Differs { node, window } => self.differs(now, node, window, here, out),
                }
            }
        }
    }

    /// The first request of a window.
    fn first_of(&self, window: Subject) -> u64 {
        window.begins(self.config.comparison.requests.into()) + 1
    }

    fn look_for_padding(&mut self) {
        if let Some(member) = &mut self.member {
            member.look_for_padding();
        }
    }

    fn disagree(&mut self, window: Subject) {
        if !window.behind
            && let Some(member) = &mut self.member
        {
            member.replace_reply(window.last);
        }
    }

    fn differs(
        &mut self,
        now: Instant,
        node: NodeId,
        window: Subject,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let expels = self.table.style == Style::ActiveWithVoting || self.config.comparison.expel;
        let expelled = expels && !self.is_last(node);
        let (group, first, request) = (self.id, self.first_of(window), window.last);
        out.push_back(Output::Event(Event::Diverged { group, node, first, request, expelled }));
        self.look_for_padding();
        if expelled && let Some(attempt) = self.table.attempt(node) {
            self.deliver_down(now, node, attempt, DownReason::Diverged, here, out);
        } else if node == here.node {
            // It stays, with a reply that is known to be wrong: nobody waits for that any more.
            self.disagree(window);
            self.let_go(window, NodeSet::EMPTY, here, out);
        }
    }

    /// The reply that was held may go; of `supporters` one answers each gateway, and whoever
    /// answers it anyhow does too, because it may have been slower than those who decided.
    fn let_go(
        &mut self,
        window: Subject,
        supporters: NodeSet,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let Some(member) = self.member.as_deref_mut().filter(|_| !window.behind) else { return };
        let Some((waiters, reply)) = member.release_reply(window.last) else { return };
        let chosen = |to: &GatewayKey| {
            self.table.replier_among(&self.config, to.node, supporters) == Some(here.node)
                || self.table.repliers(&self.config, to.node).contains(here.node)
        };
        let chosen: Vec<GatewayKey> = waiters.into_iter().filter(chosen).collect();
        self.send_replies(chosen.iter(), reply, here, out);
    }

    pub(super) fn let_all_go(&mut self, here: NodeContext, out: &mut Outbox) {
        let held = self.member.as_deref_mut().map(Member::release_all).unwrap_or_default();
        for last in held {
            let window = Subject { last, behind: false };
            self.let_go(window, NodeSet::EMPTY, here, out);
        }
    }

    /// Sends a reply to gateways. `None`: a oneway was executed, which the gateway that counts it
    /// has to know.
    pub(super) fn send_replies<'a>(
        &mut self,
        waiters: impl Iterator<Item = &'a GatewayKey>,
        reply: Option<Bytes>,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        for to in waiters {
            if to.node == here.node && self.config.reply == ReplyPath::Direct {
                if to.incarnation == here.incarnation {
                    let giop = reply.clone();
                    out.push_back(
                        GatewayOutput::Reply { group: self.id, number: to.number, giop }.into(),
                    );
                }
            } else {
                self.order_reply(*to, reply.clone().unwrap_or_default(), out);
            }
        }
    }
}
