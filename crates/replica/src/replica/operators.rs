//! What operators want of a node: changes, which are ordered, and what was ordered lately.
//!
//! What it is not: it changes no group; commands do when they are delivered.

use super::Replica;
use crate::calls::refusal;
use crate::group::Group;
use crate::messages::command::{Command, CommandRefused};
use crate::messages::envelope::{Envelope, RequestEnvelope};
use crate::messages::hello::Lineage;
use crate::output::{DriverOutput, OrderOutput};
use crate::server::recent::{RecentPage, RecentQuery, RecentRequest};
use crate::table::moment::Moment;
use crate::words::ids::{GroupId, RequestNumber};
use bytes::Bytes;
use quorba_base::{Instant, NodeSet};

/// Where a request must be, so that so many members have it as its caller demands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Fewer are in.
    TooFew,
    /// At every node of the view.
    View,
    /// At as many nodes as hold what is acknowledged.
    Holders,
    /// Executed by so many members; see [`Replica::await_depth`].
    Executed,
}

impl Replica {
    /// An operator wants to change a group; [`DriverOutput::Commanded`] with the same `id` says
    /// what became of it, unless the node is thrown out of the primary component before.
    pub fn handle_command(&mut self, group: GroupId, id: u64, command: Command) {
        let refused = if self.groups.get(group).is_none() {
            Some(CommandRefused::NoGroup)
        } else if !self.is_primary() {
            Some(CommandRefused::NoPrimary)
        } else if self.stands_elsewhere(group) {
            Some(CommandRefused::Waits)
        } else {
            None
        };
        self.out.push_back(match refused {
            Some(refused) => DriverOutput::Commanded { id, result: Err(refused) }.into(),
            None => OrderOutput::Submit(Envelope::Command { group, id, command }.encode()).into(),
        });
    }

    /// An operator gives up the request with this number, counted from the group's first, which the
    /// server of this node's member has, or which waits for it; else as [`Self::handle_command`].
    pub fn handle_skip(&mut self, group: GroupId, id: u64, number: u64) {
        let found = self.groups.get(group).and_then(|group| group.find(number));
        let command = found.map(Command::Skip).ok_or(CommandRefused::NotWaiting(number));
        self.order_or_refuse(group, id, command);
    }

    /// An operator gives up the request with this number, which was answered, and behind which
    /// servers end; else as [`Self::handle_command`].
    pub fn handle_skip_answered(&mut self, group: GroupId, id: u64, number: u64) {
        let found = self.groups.get(group).and_then(|group| group.recall(number));
        let command = found.map(Command::SkipAnswered).ok_or(CommandRefused::NotKnown(number));
        self.order_or_refuse(group, id, command);
    }

    fn order_or_refuse(
        &mut self,
        group: GroupId,
        id: u64,
        command: Result<Command, CommandRefused>,
    ) {
        match command {
            Ok(command) => self.handle_command(group, id, command),
            Err(refused) => {
                self.out.push_back(DriverOutput::Commanded { id, result: Err(refused) }.into());
            }
        }
    }

    /// What the server of `group` may know of the request that it executes; none outside of a
    /// request, and in a group whose servers have several calls at a time.
    #[must_use]
    pub fn moment(&self, group: GroupId) -> Option<Moment> {
        self.groups.get(group)?.moment()
    }

    /// Where a request of `group` must be, so that `depth` members that are in have it.
    #[must_use]
    pub fn reach(&self, group: GroupId, depth: u32) -> Reach {
        let view = self.lineage.as_ref().map_or(NodeSet::EMPTY, Lineage::nodes);
        let members = self
            .groups
            .get(group)
            .map_or(0, |group| group.table().in_set().intersection(view).len());
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let holders = self.config.quorum.holders_min(self.config.nodes.len(), view.len());
        // Of any so many nodes of the view, so many at least are members.
        let of_holders = (holders + members).saturating_sub(view.len());
        let executes = self.groups.get(group).is_some_and(Group::counts_executed);
        match depth {
            depth if depth > members => Reach::TooFew,
            _ if executes => Reach::Executed,
            depth if depth > of_holders => Reach::View,
            _ => Reach::Holders,
        }
    }

    /// This node's gateway submits a request that so many members must have executed before its
    /// caller goes on; [`GatewayOutput::Executed`](crate::GatewayOutput::Executed) tells what came
    /// of it. It is forgotten if it is never delivered, for then it is submitted again.
    pub fn await_depth(&mut self, group: GroupId, number: RequestNumber, depth: u32) {
        if let Some(group) = self.groups.get_mut(group) {
            group.await_depth(number, depth);
        }
    }

    /// Whether a request that its client has named was delivered before; none if this node has no
    /// member that would know.
    #[must_use]
    pub fn knows(&self, request: &RequestEnvelope) -> Option<bool> {
        let key = request.key(self.here.node, self.here.incarnation);
        self.groups.get(request.group)?.knows(&key)
    }

    /// Whose request that is: see [`RequestKey::caller`](crate::RequestKey::caller).
    #[must_use]
    pub fn caller(&self, group: GroupId) -> Option<u64> {
        self.groups.get(group)?.caller()
    }

    /// Whether a reply of `group` says how its request has ended without one of a server: that was
    /// decided behind the request in the order.
    #[must_use]
    pub fn tells_end(&self, group: GroupId, giop: &Bytes) -> bool {
        let group = self.groups.get(group);
        group.is_some_and(Group::has_ends) && refusal::tells_end(giop)
    }

    /// What `group` was delivered lately; nothing without a member of it on this node.
    pub fn recent(&mut self, now: Instant, group: GroupId, query: &RecentQuery) -> RecentPage {
        let group = self.groups.get_mut(group);
        group.map_or_else(RecentPage::default, |group| group.recent(now, query))
    }

    /// What is remembered of the request of `group` with this number, counted from its first.
    #[must_use]
    pub fn request(&self, group: GroupId, number: u64) -> Option<RecentRequest> {
        self.groups.get(group)?.request(number)
    }

    /// What is remembered of the request of `group` that the gateway of this node, in this boot,
    /// took in under this number.
    #[must_use]
    pub fn own_request(&self, group: GroupId, number: u64) -> Option<RecentRequest> {
        let gateway = (self.config.me, self.config.incarnation, number);
        self.groups.get(group)?.request_of(gateway)
    }
}
