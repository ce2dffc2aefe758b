//! Routes between gateway, replica and ring until nothing is left to do.
//!
//! Invariant: when [`Node::poll`] gives `None`, the three rooms have drained each other; what
//! remains is in the timers. What came in between two polls is ordered together: several requests
//! leave in one datagram, and their replies come back in one.

mod control;
mod deferred;
mod definitions;
mod external;
mod operators;

use self::control::{Control, Found};
use crate::access::ClientPeer;
use crate::config::NodeConfig;
use crate::definitions::{ForReplica, SettingsOf};
use crate::external::ExternalCalls;
use crate::gateway::{Gateway, Read, Submission};
use crate::ordering::Order;
use crate::output::{ConnectionId, Event, Output};
use crate::outside::Outside;
use crate::snapshot::NodeSnapshot;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::net::IpAddr;
use quorba_base::{Instant, NodeId};
use quorba_order::{
    DomainKey, Full, Guarantee, Hold, InvalidKeys, Output as RingOutput, Progress, Ring, ViewKind,
};
#[cfg(doc)]
use quorba_replica::LogOutput;
use quorba_replica::{
    ChannelId, Delivered, DownReason, DriverOutput, ENVELOPE_BYTES_MAX, GatewayOutput, GroupId,
    GroupMap, OrderOutput, Output as ReplicaOutput, Quorum, QuorumRule, Recovered, Replica,
    ReplicaConfig, ReplicaView, RequestEnvelope, RequestNumber,
};

/// Room for so many outputs is kept.
const OUTPUTS_KEPT: usize = 1024;

/// One node of the domain; see the crate's text.
pub struct Node {
    order: Order,
    replica: Replica,
    gateway: Gateway,
    external: ExternalCalls,
    /// The replica's own messages that the ring had no room for yet; they go first.
    control: Control,
    /// This node, and its boot.
    me: (NodeId, u64),
    guarantees: GroupMap<Guarantee>,
    settings: Arc<dyn SettingsOf>,
    out: VecDeque<Output>,
    /// When something came in that the rooms have not told each other yet.
    unsettled: Option<Instant>,
}

impl Node {
    /// A node that begins to look for others at `now`.
    #[must_use]
    pub fn new(config: NodeConfig, now: Instant) -> Self {
        let mut config = config;
        // Promise 1 counts those whom promise 4 counts.
        config.order.hold = match config.quorum {
            Quorum { rule: QuorumRule::DynamicLinear, .. } => Hold::Members,
            Quorum { tie_breaker: Some(_), .. } => Hold::DomainOrAll,
            Quorum { .. } => Hold::Domain,
        };
        // A ring keeps only the numbers that it has made itself. Components are told apart by
        // theirs, and each must have a higher one than those before it that any node remembers.
        let known = config.record.latest().map_or(0, |view| view.seq);
        config.boot.ring_seq_min = config.boot.ring_seq_min.max(known);
        let ring = Ring::new(config.order.clone(), config.boot, now);
        Self::with_order(config, Order::Totem(Box::new(ring)), now)
    }

    /// A node whose order is made outside; see [`Self::handle_ordered`]. Payloads are at most
    /// `payload_bytes_max` long. It has agreed delivery only.
    #[must_use]
    pub fn with_outside_order(config: NodeConfig, payload_bytes_max: usize, now: Instant) -> Self {
        let outside = Outside::new(config.order.me, config.boot.incarnation, payload_bytes_max);
        Self::with_order(config, Order::Outside(Box::new(outside)), now)
    }

    fn with_order(config: NodeConfig, order: Order, now: Instant) -> Self {
        let payload_bytes_max = order.payload_bytes_max();
        let me = (config.order.me, config.boot.incarnation);
        let reply_bytes_max = payload_bytes_max.saturating_sub(ENVELOPE_BYTES_MAX);
        let settings = Arc::clone(&config.settings);
        let definitions = Arc::new(ForReplica { settings, reply_bytes_max });
        let replica = ReplicaConfig {
            me: config.order.me,
            incarnation: config.boot.incarnation,
            nodes: config.order.nodes,
            quorum: config.quorum,
            record: config.record,
            recovered: config.recovered,
            in_doubt: config.in_doubt,
            serves_reentrant_reads: matches!(order, Order::Totem(_)),
            outside: config.outside.iter().map(|(id, server)| (id, server.replica)).collect(),
            catalog: config.catalog,
            gateways: config.gateways,
            definitions,
        };
        let NodeConfig { limits, wall_clock_origin, settings, domain, outside, .. } = config;
        let mut gateway = Gateway::new(limits, payload_bytes_max, wall_clock_origin);
        outside.ids().for_each(|id| gateway.define_outside(id));
        let mut node = Self {
            order,
            replica: Replica::new(replica),
            gateway,
            external: ExternalCalls::new(domain, outside),
            settings,
            control: Control::default(),
            me,
            guarantees: GroupMap::new(),
            out: VecDeque::new(),
            unsettled: None,
        };
        // It may have found more on the disk than the catalog that it was given.
        let ids: Vec<GroupId> = node.replica.catalog().iter().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| node.define(id));
        node.pump(now);
        node
    }

    /// The next effect to carry out. After one or several `handle_*`, whoever drives the node polls
    /// until it gives `None`; before that [`Self::poll_timeout`] and the figures may be of before.
    pub fn poll(&mut self) -> Option<Output> {
        if let Some(now) = self.unsettled.take() {
            self.pump(now);
        }
        let next = self.out.pop_front();
        // Where all groups said something at the same time.
        if next.is_none() && self.out.capacity() > OUTPUTS_KEPT {
            self.out.shrink_to(OUTPUTS_KEPT);
        }
        next
    }

    /// When [`Self::handle_timeout`] is wanted at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let rooms =
            [self.order.poll_timeout(), self.replica.poll_timeout(), self.gateway.poll_timeout()];
        rooms.into_iter().chain([self.external.poll_timeout()]).flatten().min()
    }

    /// How far the ring has come, for whoever measures it.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.order.progress()
    }

    /// Figures for status.
    #[must_use]
    pub fn snapshot(&self) -> NodeSnapshot {
        NodeSnapshot {
            order: self.order.snapshot(),
            primary: self.replica.status(),
            groups: self.replica.group_snapshots(),
            gateway: self.gateway.snapshot(),
        }
    }

    /// Figures for status, of these groups only: its work does not grow with the number of the
    /// others.
    #[must_use]
    pub fn snapshot_of(&self, groups: &[GroupId]) -> NodeSnapshot {
        NodeSnapshot {
            order: self.order.snapshot(),
            primary: self.replica.status(),
            groups: self.replica.group_snapshots_of(groups),
            gateway: self.gateway.snapshot_of(groups.iter().copied()),
        }
    }

    /// A datagram came on the ring's socket, from anybody.
    pub fn handle_datagram(&mut self, now: Instant, datagram: BytesMut) {
        // A reply that the datagrams before this one have made useless must not leave with the
        // token that this one may be.
        if self.control.has_replies()
            && let Some(earlier) = self.unsettled.take()
        {
            self.pump(earlier);
        }
        self.order.handle_datagram(now, datagram);
        self.unsettled = Some(now);
    }

    /// The outside order goes on; see [`Self::with_outside_order`].
    ///
    /// # Panics
    /// If this node's order is its own ring's.
    pub fn handle_ordered(&mut self, now: Instant, output: RingOutput) {
        self.order.handle_ordered(output);
        self.unsettled = Some(now);
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.order.poll_timeout().is_some_and(|at| at <= now) {
            self.order.handle_timeout(now);
        }
        if self.replica.poll_timeout().is_some_and(|at| at <= now) {
            self.replica.handle_timeout(now);
        }
        if self.gateway.poll_timeout().is_some_and(|at| at <= now) {
            let replica = &self.replica;
            self.gateway.handle_timeout(now, |group| replica.availability(group));
        }
        if self.external.poll_timeout().is_some_and(|at| at <= now) {
            self.external.handle_timeout(now);
        }
        self.unsettled = Some(now);
    }

    /// There is evidence that the process of `node` is dead.
    pub fn handle_peer_lost(&mut self, now: Instant, node: NodeId) {
        self.order.handle_peer_lost(now, node);
        self.unsettled = Some(now);
    }

    /// Messages pass in both directions between this node and that boot of another.
    pub fn handle_peer_up(&mut self, now: Instant, node: NodeId, incarnation: u64) {
        self.replica.handle_peer_up(now, node, incarnation);
        self.pump(now);
    }

    /// A message from a node, in the order in which it sent them, and of this boot of it. It may
    /// come shortly before [`Self::handle_peer_up`].
    pub fn handle_peer_message(
        &mut self,
        now: Instant,
        from: NodeId,
        incarnation: u64,
        bytes: Bytes,
    ) {
        self.replica.handle_peer_message(now, from, incarnation, bytes);
        self.pump(now);
    }

    /// The link to a node has ended: what was on its way, in either direction, may be lost.
    pub fn handle_peer_down(&mut self, now: Instant, node: NodeId) {
        self.replica.handle_peer_down(now, node);
        self.pump(now);
    }

    /// This message to a node was dropped, because too much waits already.
    pub fn handle_peer_full(&mut self, now: Instant, node: NodeId, dropped: Bytes) {
        self.replica.handle_peer_full(now, node, dropped);
        self.pump(now);
    }

    /// After [`Self::handle_peer_full`]: there is room again.
    pub fn handle_peer_room(&mut self, now: Instant, node: NodeId) {
        self.replica.handle_peer_room(now, node);
        self.pump(now);
    }

    /// A client connected to the gateway port of `group`.
    pub fn handle_client_opened(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        group: GroupId,
        peer: impl Into<ClientPeer>,
    ) {
        self.gateway.opened(now, connection, group, peer.into());
        self.unsettled = Some(now);
    }

    /// The local server of the first group connected to the port on which it calls the second one.
    pub fn handle_call_opened(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        groups: (GroupId, GroupId),
        peer: IpAddr,
    ) {
        self.gateway.opened_by_server(now, connection, groups, peer);
        self.unsettled = Some(now);
    }

    /// Bytes from a client.
    pub fn handle_client_bytes(&mut self, now: Instant, connection: ConnectionId, bytes: &[u8]) {
        self.gateway.received(now, connection, bytes);
        self.unsettled = Some(now);
    }

    /// So many bytes of what was sent to a client wait because it does not take them. A driver says
    /// so whenever something waits after it has tried to send, and once more when nothing does; of
    /// a client of which it says nothing all is sent.
    pub fn handle_client_unsent(&mut self, now: Instant, connection: ConnectionId, bytes: usize) {
        self.gateway.unsent(now, connection, bytes);
        self.unsettled = Some(now);
    }

    /// A client has ended its sending, and may read on. [`Output::ClientClose`] follows when it has
    /// got all that it is owed.
    pub fn handle_client_half_closed(&mut self, now: Instant, connection: ConnectionId) {
        self.gateway.half_closed(now, connection);
        self.unsettled = Some(now);
    }

    /// A client closed its connection, or it broke.
    pub fn handle_client_closed(&mut self, now: Instant, connection: ConnectionId) {
        self.gateway.closed(connection);
        self.unsettled = Some(now);
    }

    /// The local server of `group` accepts connections.
    pub fn handle_server_up(&mut self, now: Instant, group: GroupId) {
        self.replica.handle_server_up(now, group);
        self.unsettled = Some(now);
    }

    /// The local server of `group` is gone.
    pub fn handle_server_down(&mut self, now: Instant, group: GroupId, reason: DownReason) {
        self.replica.handle_server_down(now, group, reason);
        self.unsettled = Some(now);
    }

    /// A connection to the local server is there.
    pub fn handle_server_connected(&mut self, now: Instant, group: GroupId, channel: ChannelId) {
        self.replica.handle_connected(now, group, channel);
        self.unsettled = Some(now);
    }

    /// A connection to the local server ended, or could not be made.
    pub fn handle_server_closed(&mut self, now: Instant, group: GroupId, channel: ChannelId) {
        self.replica.handle_disconnected(now, group, channel);
        self.unsettled = Some(now);
    }

    /// So many records, counted from the first that this boot handed out, are on disk.
    pub fn handle_logged(&mut self, now: Instant, records: u64) {
        self.replica.handle_logged(records);
        self.unsettled = Some(now);
    }

    /// What the log has, after [`LogOutput::LookUp`]; `None` if it is in doubt, or cannot be read.
    pub fn handle_looked_up(
        &mut self,
        now: Instant,
        (group, number): (GroupId, u64),
        found: Option<Recovered>,
    ) {
        self.replica.handle_looked_up(now, (group, number), found);
        self.unsettled = Some(now);
    }

    /// The log is in doubt no more, after [`LogOutput::Rebuilt`].
    pub fn handle_log_rebuilt(&mut self, now: Instant) {
        self.replica.handle_log_rebuilt();
        self.unsettled = Some(now);
    }

    /// The state of `group` that [`LogOutput::Save`] asked for is on disk, and so is the log up to
    /// the record of its place.
    pub fn handle_saved(&mut self, now: Instant, group: GroupId, record: u64) {
        self.replica.handle_saved(group, record);
        self.unsettled = Some(now);
    }

    /// The log is long, and is to be made shorter; [`LogOutput::Compact`] says when. False if
    /// that is not possible now.
    pub fn handle_compact(&mut self, now: Instant) -> bool {
        let is_begun = self.replica.handle_compact(now);
        self.unsettled = Some(now);
        is_begun
    }

    /// Bytes from the local server.
    pub fn handle_server_bytes(
        &mut self,
        now: Instant,
        group: GroupId,
        channel: ChannelId,
        bytes: &[u8],
    ) {
        self.replica.handle_server_bytes(now, group, channel, bytes);
        self.unsettled = Some(now);
    }

    /// The node is to stop; its listeners are closed already. Clients are sent elsewhere as soon
    /// as their open calls are answered.
    pub fn handle_stop(&mut self, now: Instant) {
        self.gateway.stop();
        self.unsettled = Some(now);
    }

    /// The domain keys have changed, oldest first; see [`Ring::set_domain_keys`].
    ///
    /// # Errors
    /// [`InvalidKeys`]: the keys are what they were.
    pub fn set_domain_keys(
        &mut self,
        now: Instant,
        keys: Vec<DomainKey>,
    ) -> Result<(), InvalidKeys> {
        let result = self.order.set_domain_keys(now, keys);
        self.unsettled = Some(now);
        result
    }

    /// The node goes now: the others need not wait for its silence.
    pub fn handle_leave(&mut self, now: Instant) {
        self.order.leave(now);
        self.unsettled = Some(now);
    }

    /// Whether, after [`Self::handle_stop`], no client has an open call any more.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.gateway.is_stopping()
            && self.gateway.connection_count() == 0
            && self.gateway.pending_count() == 0
    }

    fn pump(&mut self, now: Instant) {
        self.gateway.at(now);
        loop {
            let mut quiet = true;
            while let Some(output) = self.order.poll() {
                quiet = false;
                self.route_from_ring(now, output);
            }
            while let Some(output) = self.replica.poll() {
                quiet = false;
                self.route_from_replica(now, output);
            }
            quiet &= !self.pump_calls(now);
            quiet &= !self.pump_reads(now);
            quiet &= !self.pump_external(now);
            quiet &= !self.submit(now);
            if self.gateway.is_crowded() {
                self.gateway.resume(now);
            }
            if self.gateway.is_stopping() {
                self.gateway.stop();
            }
            while let Some((ticket, payload)) = self.order.poll_submission() {
                self.out.push_back(Output::Submit { ticket, payload });
            }
            for out in [&mut self.gateway.out, &mut self.external.out] {
                if !out.is_empty() {
                    self.out.append(out);
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn route_from_ring(&mut self, now: Instant, output: RingOutput) {
        match output {
            RingOutput::Transmit { to, datagram } => {
                self.out.push_back(Output::Datagram { to, datagram });
            }
            RingOutput::Deliver(delivery) => {
                if (delivery.origin, delivery.incarnation) == self.me {
                    self.control.delivered(delivery.ticket);
                }
                let delivered = Delivered {
                    origin: delivery.origin,
                    incarnation: delivery.incarnation,
                    ticket: delivery.ticket.0,
                    payload: delivery.payload,
                    behind_gap: delivery.behind_gap,
                };
                self.replica.handle_delivery(now, delivered);
            }
            RingOutput::Held(ticket) => {
                self.gateway.held(ticket);
                while let Some(group) = self.control.held(ticket) {
                    self.replica.handle_held(now, group);
                }
            }
            RingOutput::Stable(ticket) => self.gateway.stable(ticket),
            RingOutput::View(view) => {
                if view.kind == ViewKind::Regular {
                    self.gateway.view_changed();
                    self.control.view_changed();
                    let members = view.incarnations.clone();
                    self.replica.handle_view(ReplicaView { id: view.ring, members });
                }
                self.out.push_back(Output::Event(Event::View(view)));
            }
            RingOutput::Persist { ring_seq } => {
                self.out.push_back(Output::PersistRing { ring_seq });
            }
            RingOutput::Refused { node, reason } => {
                self.out.push_back(Output::Event(Event::Refused { node, reason }));
            }
        }
    }

    /// Takes a reply back out of the order, if it is in time for that.
    fn withdraws(&mut self, reply: control::Name) -> bool {
        match self.control.withdraw(reply) {
            Found::Here => true,
            Found::Submitted(ticket) => self.order.withdraw(ticket),
            Found::Nowhere => false,
        }
    }

    fn route_from_replica(&mut self, now: Instant, output: ReplicaOutput) {
        match output {
            ReplicaOutput::Order(output) => self.route_to_order(output),
            ReplicaOutput::Gateway(output) => self.route_to_gateway(now, output),
            ReplicaOutput::Driver(output) => {
                if let DriverOutput::Defined { id, news, .. } = output {
                    self.defined(id, news);
                }
                self.out.push_back(Output::Replica(output));
            }
            ReplicaOutput::Event(event) => self.tell(event),
        }
    }

    fn route_to_order(&mut self, output: OrderOutput) {
        match output {
            OrderOutput::Submit(payload) => self.control.push(None, payload),
            OrderOutput::SubmitReply { group, to, payload } => {
                self.control.push(Some((group, to)), payload);
            }
            OrderOutput::Withdraw { group, to } => {
                if self.withdraws((group, to)) {
                    self.replica.handle_withdrawn(group);
                }
            }
            OrderOutput::SubmitHeld { group, payload } => {
                self.control.push_to_hold(group, payload);
            }
        }
    }

    fn route_to_gateway(&mut self, now: Instant, output: GatewayOutput) {
        let gateway = &mut self.gateway;
        match output {
            GatewayOutput::References => self.renumber(),
            GatewayOutput::Reply { group, number, giop } => self.replied(group, number, giop),
            GatewayOutput::Mark { group, number, payload } => gateway.mark(group, number, payload),
            GatewayOutput::Read { group, number, giop, ended } => {
                gateway.read(group, number, giop, ended);
            }
            GatewayOutput::ReadEnded { group, number } => gateway.read_ended(group, number),
            GatewayOutput::Dropped { group, number } => gateway.dropped(now, group, number),
            GatewayOutput::Ended { group, key, end } => gateway.ended(group, self.me, &key, end),
            GatewayOutput::EndCalls { caller, during } => gateway.end_calls(caller, during),
            GatewayOutput::CallOutside { target, key, tries } => {
                gateway.will_call_outside(target, key, tries);
            }
            GatewayOutput::OrderAgain { group, number, attempt } => {
                gateway.order_again(group, number, attempt);
            }
            GatewayOutput::Resubmit { group } => gateway.resubmit(group),
            GatewayOutput::Logged { group, number } => gateway.logged(group, number),
            GatewayOutput::Executed { group, number, is_short } => {
                gateway.executed(group, number, is_short);
            }
        }
    }

    fn replied(&mut self, group: GroupId, number: RequestNumber, giop: Option<Bytes>) {
        let tells_end = giop.as_ref().is_some_and(|giop| self.replica.tells_end(group, giop));
        self.gateway.replied(group, number, giop, tells_end);
    }

    /// Has the replica name the calls of local servers, and tells it which have ended. Returns
    /// whether there were any.
    fn pump_calls(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(key) = self.gateway.next_ended_call() {
            any = true;
            self.replica.end_call(now, key);
        }
        while let Some(call) = self.gateway.next_call() {
            any = true;
            match self.replica.begin_call(now, call.caller, &call.giop) {
                Some(name) => self.gateway.take_call(now, call, name),
                None => self.gateway.refuse_call(&call),
            }
        }
        any
    }

    /// Hands reads to the replica, and what has become of their marks. Returns whether there was
    /// anything.
    fn pump_reads(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((group, mark)) = self.gateway.next_safe_mark() {
            any = true;
            self.replica.handle_mark_safe(now, group, mark);
        }
        loop {
            let replica = &self.replica;
            let available = |group| replica.availability(group);
            let can_read = |group| replica.can_read(group);
            let is_known = |request: &RequestEnvelope| replica.knows(request) == Some(true);
            let Some(read) = self.gateway.next_read(available, can_read, is_known) else {
                return any;
            };
            any = true;
            let Read { group, number, giop, code_sets } = read;
            self.replica.handle_read(now, group, number, giop, code_sets);
        }
    }

    /// Hands to the ring what it has room for. Returns whether anything was taken.
    fn submit(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(payload) = self.control.front() {
            match self.order.submit(now, payload.clone(), Guarantee::Agreed) {
                Ok(ticket) => self.control.taken(ticket),
                Err(Full::Messages | Full::Bytes) => return any,
                // It would be first in the queue for ever, and nothing behind it would be sent.
                Err(Full::TooLarge) => unreachable!(
                    "replies are at most `reply_bytes_max` long, states go in pieces, and all else \
                     is as small as the domain"
                ),
            }
            any = true;
        }
        while let Some((group, released)) = {
            let replica = &self.replica;
            self.gateway.next_announcement(|group| replica.availability(group))
        } {
            let payload = quorba_replica::released_payload(group, released);
            if self.order.submit(now, payload, Guarantee::Agreed).is_err() {
                return any;
            }
            any = true;
        }
        while let Some(mark) = self.gateway.next_mark() {
            let guarantee = self.guarantee(mark.group);
            let Ok(ticket) = self.order.submit(now, mark.payload.clone(), guarantee) else {
                return any;
            };
            self.gateway.mark_submitted(ticket);
            any = true;
        }
        loop {
            let replica = &self.replica;
            let available = |group| replica.availability(group);
            let next = self.gateway.next_submission(available, |group| replica.behind(now, group));
            let Some(submission) = next else { return any };
            if self.asks_outside(now, &submission) || self.calls_member(now, &submission) {
                any = true;
                continue;
            }
            if !self.meets_depth(&submission) {
                any = true;
                continue;
            }
            let guarantee = self.guarantee(submission.group);
            match self.order.submit(now, submission.payload.clone(), guarantee) {
                Ok(ticket) => {
                    let awaits = self.gateway.submitted(&submission, ticket);
                    if awaits.all_nodes {
                        self.order.await_stable(ticket);
                    }
                    if let Some(depth) = awaits.executed_by {
                        self.replica.await_depth(submission.group, submission.number, depth);
                    }
                    any = true;
                }
                Err(Full::Messages | Full::Bytes) => {
                    self.gateway.put_back(submission);
                    return any;
                }
                // The gateway has looked, but nothing else may stop for it if it had not.
                Err(Full::TooLarge) => self.gateway.too_large(&submission),
            }
        }
    }

    /// Hands a call to a group without an order to one of its members, if it is worth it; false if
    /// it is to be ordered.
    fn calls_member(&mut self, now: Instant, submission: &Submission) -> bool {
        let Submission { group, number, payload } = submission;
        if self.replica.is_stateless(*group) && self.gateway.is_needless(*group, *number) {
            return true;
        }
        if !self.replica.takes_call(*group, payload.len())
            || self.gateway.is_to_be_ordered(submission)
        {
            return false;
        }
        if self.gateway.is_over(*group, *number) {
            return true;
        }
        let oneway = self.gateway.is_oneway(submission);
        self.gateway.called(submission);
        if let Some(asked) = self.gateway.asked(submission) {
            self.replica.handle_call(now, asked, oneway);
        }
        true
    }
}
