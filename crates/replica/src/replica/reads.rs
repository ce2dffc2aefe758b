//! Reads of this node's gateway, and the marks for them; see [`crate::calls::reads`].

use super::Replica;
use crate::calls::reads::Read;
use crate::group::Backlog;
use crate::messages::envelope::RequestEnvelope;
use crate::words::ids::{GatewayKey, GroupId, RequestNumber};
use bytes::Bytes;
use quorba_base::Instant;

impl Replica {
    /// Whether a member can be asked to execute a read of `group`.
    #[must_use]
    pub fn can_read(&self, group: GroupId) -> bool {
        self.is_active(group)
            && self.groups.get(group).is_some_and(|group| group.reader().is_some())
    }

    /// A call of an operation that [`crate::GroupConfig::reads`] names;
    /// [`crate::GatewayOutput::Read`] says what came of it.
    pub fn handle_read(
        &mut self,
        now: Instant,
        group: GroupId,
        number: RequestNumber,
        giop: Bytes,
        code_sets: Option<Bytes>,
    ) {
        self.with_group(now, group, |group, here, out| {
            let asker = GatewayKey { node: here.node, incarnation: here.incarnation, number };
            group.read(Read { asker, giop, code_sets }, here, out);
        });
    }

    /// Whether `group` has no order, and remembers no call.
    #[must_use]
    pub fn is_stateless(&self, group: GroupId) -> bool {
        self.groups.get(group).is_some_and(|group| group.is_stateless())
    }

    /// Whether a request of so many bytes to `group` goes to a member at once: the group is
    /// stateless, and somebody is there. Otherwise it is to be ordered.
    #[must_use]
    pub fn takes_call(&self, group: GroupId, bytes: usize) -> bool {
        let is_active = self.is_active(group);
        let group = self.groups.get(group);
        is_active && group.is_some_and(|group| group.is_stateless() && group.takes_call(bytes))
    }

    /// What the slowest member of `group` that goes on has in front of it, as far as it says so:
    /// few requests are not spoken of.
    #[must_use]
    pub fn behind(&self, now: Instant, group: GroupId) -> Backlog {
        self.groups.get(group).map_or_else(Backlog::default, |g| g.behind(now))
    }

    /// A request, as it would be ordered, to a stateless group; [`crate::GatewayOutput::Read`] says
    /// what came of it.
    pub fn handle_call(&mut self, now: Instant, request: &RequestEnvelope, oneway: bool) {
        let RequestEnvelope { group, number, .. } = *request;
        let (code_sets, giop) = (request.code_sets.clone(), request.giop.clone());
        self.with_group(now, group, |group, here, out| {
            let asker = GatewayKey { node: here.node, incarnation: here.incarnation, number };
            group.call(Read { asker, giop, code_sets }, oneway, out);
        });
    }

    /// The mark of [`crate::GatewayOutput::Mark`], and all before it, is as safe as the group asks.
    pub fn handle_mark_safe(&mut self, now: Instant, group: GroupId, mark: u64) {
        self.with_group(now, group, |group, _, _| group.mark_safe(mark));
    }

    /// The view is over, and what is known of marks with it.
    pub(super) fn end_reads(&mut self) {
        let (here, out) = (self.here, &mut self.out);
        self.groups.values_mut().for_each(|group| group.end_reads(here, out));
    }
}
