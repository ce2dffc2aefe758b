//! The group becomes something else while it lives: other members, limits, rules.
//!
//! What it is not: the definition's words, or whether they were ordered. Invariant: changed where
//! an ordered message or a decided view says so, alike on all nodes.

use super::{Group, NodeContext};
use crate::member::Member;
use crate::messages::catalog::CatalogRefused;
use crate::output::{DriverOutput, Outbox, Output};
use crate::server::recent::{RECENT_REQUESTS_MAX, Recent};
use crate::words::config::GroupConfig;
use crate::words::history::History;
use crate::words::ids::Attempt;
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorba_base::policy::Style;
use quorba_base::{Instant, NodeSet};

/// What is known of members that this node had before.
pub(super) struct FormerMember {
    /// The last try of one that this node had before, in this boot.
    tries: Option<Attempt>,
    /// The next server that somebody else started is the first that this domain ever sees.
    foreign_is_first: bool,
}

impl FormerMember {
    pub(super) const fn none(foreign_is_first: bool) -> Self {
        Self { tries: None, foreign_is_first }
    }

    /// Whether the server that somebody else started is the first that this domain sees; once.
    pub(super) fn take_foreign_is_first(&mut self) -> bool {
        core::mem::take(&mut self.foreign_is_first)
    }
}

impl Group {
    /// Whether it can become that, alike on all nodes.
    pub(crate) fn check_config(&self, next: &GroupConfig) -> Result<(), CatalogRefused> {
        if let Some(key) = self.config.fixed_difference(next) {
            return Err(CatalogRefused::Fixed(key));
        }
        let inside = self.table.in_set();
        let goes = |nodes: NodeSet| !nodes.difference(next.members).is_empty();
        let has_state =
            self.table.history != History::EMPTY && self.table.style != Style::Stateless;
        let nobody_stays = inside.intersection(next.members).is_empty();
        if goes(self.config.members) && nobody_stays && (has_state || !inside.is_empty()) {
            return Err(CatalogRefused::LastMember);
        }
        Ok(())
    }

    /// What it is.
    pub(crate) const fn config(&self) -> &GroupConfig {
        &self.config
    }

    /// Everything that is applied is written down from here on, or no more.
    pub(crate) fn set_logged(&mut self, is_logged: bool) {
        self.config.logged = is_logged;
        if let Some(member) = &mut self.member {
            member.reconfigure(&self.config);
        }
    }

    /// Servers of some group call it from here on, or none does.
    pub(crate) const fn set_called(&mut self, is_called: bool) {
        self.config.is_called = is_called;
    }

    /// Groups, and servers outside, that its servers call.
    pub(crate) fn calls(&self) -> &[crate::words::ids::GroupId] {
        &self.config.calls
    }

    /// The way in which the table says that its members share the work.
    pub(crate) const fn style(&self) -> Style {
        self.table.style
    }

    /// It is this from here on. What cannot change has been checked.
    pub(crate) fn set_config(
        &mut self,
        now: Instant,
        next: GroupConfig,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let before = self.table.clone();
        let gone = self.config.members.difference(next.members);
        self.take_config(next, here);
        self.fit_members();
        self.changed(now, &before, here, out);
        if gone.contains(here.node) {
            self.end_reads(here, out);
        }
        // What was handed to members past the order goes to others.
        gone.iter().for_each(|node| self.answers_lost(node, out));
    }

    /// The same, while the table is that of a time before.
    pub(crate) fn take_config(&mut self, next: GroupConfig, here: NodeContext) {
        let (logged, is_called) = (self.config.logged, self.config.is_called);
        self.config = GroupConfig { logged, is_called, ..next };
        self.fit_member(here);
        if let Some(member) = &mut self.member {
            member.reconfigure(&self.config);
        }
    }

    /// The table may be that of a time before the configuration.
    pub(crate) fn fit_table(&mut self, now: Instant, here: NodeContext, out: &mut Outbox) {
        let members: NodeSet = self.table.members().map(|(node, _)| node).collect();
        if members != self.config.members {
            let before = self.table.clone();
            self.fit_members();
            self.changed(now, &before, here, out);
        }
    }

    fn fit_members(&mut self) {
        let members: NodeSet = self.table.members().map(|(node, _)| node).collect();
        if members != self.config.members {
            self.table.change_members(members, &self.config);
        }
    }

    /// This node has a member from here on, or none, as the configuration says.
    fn fit_member(&mut self, here: NodeContext) {
        let is_wanted = self.config.members.contains(here.node);
        match (&self.member, is_wanted) {
            (None, true) => {
                // No try of one life of the member is taken for one of another.
                let first = self.former.tries.map_or(here.incarnation, |Attempt(last)| last + 1);
                self.member = Some(Box::new(Member::new(&self.config, here.node, first)));
                self.former.foreign_is_first = false;
                self.recent = Recent::new(here, RECENT_REQUESTS_MAX);
                if self.replay.is_some() {
                    // What the log has of a member before is of no use to this one, which lacks
                    // what came between them (seed 69 of the simulator's `groups`).
                    self.begin_replay();
                }
            }
            (Some(member), false) => {
                self.former.tries = Some(member.last_attempt());
                self.member = None;
                self.recent = Recent::new(here, 0);
                self.task = None;
                self.told_full = None;
            }
            _ => {}
        }
    }

    /// The group is no more: what waits for something of it is told so.
    pub(crate) fn dissolve(mut self, out: &mut Outbox) {
        self.give_up_operation(out);
        let long: Vec<_> = self.member.iter_mut().flat_map(|member| member.long_states()).collect();
        out.extend(long.into_iter().map(DriverOutput::FreeLater).map(Output::from));
    }
}
