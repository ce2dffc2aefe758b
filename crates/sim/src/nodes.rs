//! Node processes: their start and end, their inputs, and the effects that they ask for.
//!
//! Invariant: effects are carried out in the order in which the engine gave them, and a process
//! that ends midway leaves the rest undone.

use crate::ambush::Occasion;
use crate::catalog::LateText;
use crate::event::Event;
use crate::host::Input;
use crate::machine::Machine;
use crate::names::{group_id, index_of, outsider_id};
use crate::network::{Leaving, owned};
use crate::plan::{GroupPlan, Plan};
use crate::stream::{Segment, Side, StreamId};
use crate::world::{INCARNATION_STEP, World, ms, node_id, us};
use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeSet};
use quorba_engine::order::{Boot, Destination, DomainKey, ViewKind};
use quorba_engine::replica::{
    CatalogChange, CheckpointRule, ComparisonRule, Definition, DriverOutput, GroupConfig, GroupId,
    GroupMap, LogOutput, OnTotalLoss, PrimaryStatus, ReadRule, Recovered, TransferRule,
};
use quorba_engine::{
    BootState, ConnectionId, DomainSettings, Event as NodeEvent, FixedSettings, GatewayLimits,
    GroupSettings, Node, NodeConfig, Output, Settings, SettingsOf,
};
use std::net::{IpAddr, Ipv4Addr};

/// TimeT (100 ns since 1582) at the beginning of the run.
const WALL_CLOCK: u64 = 0x01ee_0000_0000_0000;

impl World {
    pub(crate) fn plan_boot(&mut self, node: usize, wait: Duration) {
        self.hosts[node].boot += 1;
        let boot = self.hosts[node].boot;
        self.queue.push(self.now + wait, Event::Boot { node, boot });
    }

    pub(crate) fn boot(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot != boot || self.hosts[node].is_up() {
            return;
        }
        self.hosts[node].disk.incarnation += INCARNATION_STEP;
        let Ok(recovered) = self.open_log(node) else {
            self.say(|| format!("n{node} cannot open its log"));
            self.repair_disk(node);
            return self.plan_restart(node);
        };
        let config = self.node_config(node, recovered);
        let drift = self.plan.drift_ppm;
        let drift = self.rng.between(0, 2 * drift) as i64 - drift as i64;
        let host = &mut self.hosts[node];
        host.machine = Machine::new(self.now, drift);
        host.inbox.clear();
        host.datagrams_waiting = 0;
        host.powered = true;
        host.stopping = false;
        host.node = Some(Node::new(config, Instant::ZERO));
        self.say(|| format!("n{node} starts (boot {boot})"));
        self.link_up_soon(node);
        self.drain(node);
        self.arm(node);
        let late = |group: &usize| self.plan.groups[*group].late;
        let early: Vec<usize> = (0..self.plan.groups.len()).filter(|group| !late(group)).collect();
        for group in early {
            self.begin_supervision(node, group_id(group));
        }
        self.begin_late(node);
    }

    /// The groups that came while the domain worked, as the node has found them.
    fn begin_late(&mut self, node: usize) {
        let Some(engine) = &self.hosts[node].node else { return };
        let found: Vec<_> =
            engine.catalog().iter().map(|(id, definition)| (id, definition.clone())).collect();
        for group in 0..self.plan.groups.len() {
            if self.plan.groups[group].late {
                self.hosts[node].supervisors[group] = None;
            }
        }
        for (id, definition) in found {
            self.defined(node, id, Some(&definition));
        }
    }

    fn node_config(&mut self, node: usize, recovered: Option<Recovered>) -> NodeConfig {
        let plan = &self.plan;
        let mut salt = [0; 16];
        salt[..8].copy_from_slice(&self.rng.next().to_be_bytes());
        salt[8..].copy_from_slice(&self.rng.next().to_be_bytes());
        let skew = self.rng.below(2 * plan.wall_skew_ms + 1);
        let in_doubt = self.hosts[node].log.is_doubtful;
        let disk = &self.hosts[node].disk;
        let elapsed = self.now.as_nanos() / 100;
        let early = (0..plan.groups.len()).filter(|at| !plan.groups[*at].late);
        let groups = early.map(|at| (group_id(at), settings(plan, &plan.groups[at])));
        let outside =
            (0..plan.outside.len()).map(|at| (outsider_id(at), plan.outside[at].settings()));
        let fixed = FixedSettings { groups: groups.collect(), outside: outside.collect() };
        let found = BootState {
            me: node_id(node),
            boot: Boot { incarnation: disk.incarnation, salt, ring_seq_min: disk.ring_seq },
            record: disk.record.clone(),
            catalog: self.hosts[node].catalog.found().unwrap_or_else(|| fixed.catalog()),
            recovered,
            in_doubt,
            wall_clock_origin: WALL_CLOCK + elapsed + skew * 10_000,
        };
        let domain = DomainSettings {
            id: Bytes::from_static(b"sim"),
            nodes: NodeSet::first(plan.nodes),
            key: DomainKey::new([7; 32]),
            digest: 42,
            datagram_bytes_max: plan.datagram_bytes_max,
            encrypt: plan.encrypt,
            accelerated: plan.accelerated,
            token_rests: true,
            token_loss: None,
            quorum: plan.quorum,
            outside: GroupMap::new(),
            gateways: 0,
            limits: GatewayLimits { request: ms(plan.request_ms), ..GatewayLimits::default() },
        };
        let settings = PlanSettings { fixed, plan: plan.clone() };
        NodeConfig::new(domain, found, std::sync::Arc::new(settings))
    }

    /// The process ends. `silent`: the whole host does, and tells nobody.
    pub(crate) fn crash(&mut self, node: usize, silent: bool) {
        self.note_node_end(node);
        if self.hosts[node].node.take().is_none() {
            return;
        }
        self.say(|| format!("n{node} {}", if silent { "loses power" } else { "crashes" }));
        self.tear(node);
        self.tear_catalog(node);
        let host = &mut self.hosts[node];
        host.inbox.clear();
        host.amnesic = true;
        host.powered = !silent;
        self.checks.node_crashed(node, self.now);
        for group in 0..self.plan.groups.len() {
            self.end_supervision(node, group_id(group), silent);
        }
        self.forget_streams_of(node, silent);
        self.unlink(node, silent);
        if silent {
            return;
        }
        for other in 0..self.plan.nodes {
            if other != node && self.hosts[other].is_up() && self.rng.per_mille(500) {
                let boot = self.hosts[other].boot;
                let wait = us(self.rng.between(50, 2_000));
                self.queue.push(self.now + wait, Event::PeerLost { node: other, boot, lost: node });
            }
        }
    }

    pub(crate) fn peer_lost(&mut self, node: usize, boot: u64, lost: usize) {
        // Evidence of a dead process counts only as long as it is dead.
        if self.hosts[node].boot == boot && !self.hosts[lost].is_up() {
            self.deliver(node, Input::PeerLost(node_id(lost)));
        }
    }

    pub(crate) fn datagram(&mut self, to: usize, bytes: Bytes) {
        let host = &self.hosts[to];
        let full = host.datagrams_waiting >= host.machine.socket_datagrams;
        if !(full && host.machine.is_blocked(self.now)) {
            self.deliver(to, Input::Datagram(bytes));
        }
    }

    /// Hands an input to a node, now or when it looks again.
    pub(crate) fn deliver(&mut self, node: usize, input: Input) {
        let host = &mut self.hosts[node];
        if host.node.is_none() {
            return;
        }
        if host.machine.is_blocked(self.now) || !host.inbox.is_empty() {
            host.datagrams_waiting += usize::from(matches!(input, Input::Datagram(_)));
            host.inbox.push_back(input);
            return;
        }
        self.handle(node, input);
        self.arm(node);
    }

    fn handle(&mut self, node: usize, input: Input) {
        self.transcript.whisper(self.now, || format!("n{node} <- {}", input.name()));
        match input {
            Input::ClientBytes(..) => self.spring(node, Occasion::Called),
            Input::ExternalBytes(..) => self.spring(node, Occasion::Answered),
            _ => {}
        }
        let host = &mut self.hosts[node];
        let Some(engine) = &mut host.node else { return };
        let now = host.machine.clock.local(self.now);
        let supervisors = &host.supervisors;
        let stops = |group: GroupId| supervisors[index_of(group)].map_or(0, |s| s.stops);
        match input {
            Input::Datagram(bytes) => engine.handle_datagram(now, owned(bytes)),
            Input::PeerLost(lost) => engine.handle_peer_lost(now, lost),
            Input::PeerUp(peer, incarnation) => engine.handle_peer_up(now, peer, incarnation),
            Input::PeerDown(peer) => engine.handle_peer_down(now, peer),
            Input::PeerMessage(peer, incarnation, bytes) => {
                engine.handle_peer_message(now, peer, incarnation, bytes);
            }
            Input::PeerFull(peer, dropped) => engine.handle_peer_full(now, peer, dropped),
            Input::PeerRoom(peer) => engine.handle_peer_room(now, peer),
            Input::ClientOpened(stream, group) => {
                let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
                engine.handle_client_opened(now, ConnectionId(stream.0), group, peer);
            }
            Input::CallOpened(stream, caller, target) => {
                let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
                let groups = (caller, target);
                engine.handle_call_opened(now, ConnectionId(stream.0), groups, peer);
            }
            Input::ClientBytes(stream, bytes) => {
                engine.handle_client_bytes(now, ConnectionId(stream.0), &bytes);
            }
            Input::ClientClosed(stream) => {
                engine.handle_client_closed(now, ConnectionId(stream.0));
            }
            // What was said before the node gave that server up is stale.
            Input::ServerUp(group, s) | Input::ServerDown(group, s, _) if s != stops(group) => {}
            Input::ServerUp(group, _) => engine.handle_server_up(now, group),
            Input::ServerDown(group, _, reason) => engine.handle_server_down(now, group, reason),
            Input::ServerConnected(group, channel) => {
                engine.handle_server_connected(now, group, channel);
            }
            Input::ServerClosed(group, channel) => {
                engine.handle_server_closed(now, group, channel);
            }
            Input::ServerBytes(group, channel, bytes) => {
                engine.handle_server_bytes(now, group, channel, &bytes);
            }
            Input::ExternalConnected(id) => engine.handle_external_connected(now, id),
            Input::ExternalBytes(id, bytes) => engine.handle_external_bytes(now, id, &bytes),
            Input::ExternalClosed(id) => engine.handle_external_closed(now, id),
            Input::Logged(records) => engine.handle_logged(now, records),
            Input::LookedUp(look, found) => engine.handle_looked_up(now, look, found),
            Input::Define(operation, change) => define(engine, now, operation, change),
            Input::CatalogSaved(version) => engine.handle_catalog_saved(now, version),
            Input::Saved(group, record) => engine.handle_saved(now, group, record),
            Input::Compact => _ = engine.handle_compact(now),
            Input::Trusted => engine.handle_log_rebuilt(now),
            Input::Command(group, command) => engine.handle_command(now, group, 0, command),
            Input::Skip(group, number) => engine.handle_skip(now, group, 0, number),
            Input::Backup(group, id) => engine.handle_backup(now, group, id),
            Input::Restore(group, id, backup) => engine.handle_restore(now, group, id, backup),
            Input::Stop => engine.handle_stop(now),
        }
        self.drain(node);
        self.hosts[node].machine.worked(self.now);
        self.spring(node, Occasion::Handled);
    }

    /// A timer, or the end of a pause: look at everything that has come.
    pub(crate) fn wake(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot != boot || !self.hosts[node].is_up() {
            return;
        }
        self.hosts[node].machine.armed.take_if(|armed| *armed <= self.now);
        while !self.hosts[node].machine.is_blocked(self.now) {
            let host = &mut self.hosts[node];
            let Some(input) = host.inbox.pop_front() else { break };
            host.datagrams_waiting -= usize::from(matches!(input, Input::Datagram(_)));
            self.handle(node, input);
        }
        let host = &mut self.hosts[node];
        if !host.machine.is_blocked(self.now)
            && let Some(engine) = &mut host.node
        {
            let now = host.machine.clock.local(self.now);
            if engine.poll_timeout().is_some_and(|at| at <= now) {
                host.machine.woke();
                engine.handle_timeout(now);
                self.drain(node);
            }
        }
        self.arm(node);
    }

    /// Plans the next wake-up.
    fn arm(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        let Some(engine) = &host.node else { return };
        let (due, waiting) = (engine.poll_timeout(), !host.inbox.is_empty());
        match host.machine.arm(self.now, due, waiting) {
            Ok(None) => {}
            Ok(Some(at)) => self.queue.push(at, Event::Wake { node, boot: host.boot }),
            Err(()) => {
                let text = format!("n{node} asks to be woken at a time that has passed, for ever");
                self.checks.violate("liveness", self.now, text);
            }
        }
    }

    // -- effects ----------------------------------------------------------------------------

    fn drain(&mut self, node: usize) {
        // The last datagram of a batch is known as such when nothing follows.
        let mut pending: Option<(Destination, Bytes)> = None;
        loop {
            if self.hosts[node].machine.crash_after == Some(0) {
                self.crash(node, false);
                self.plan_restart(node);
                return;
            }
            let host = &mut self.hosts[node];
            let output = host.node.as_mut().and_then(Node::poll);
            if let Some((to, datagram)) = pending.take() {
                self.transmit(node, to, &datagram, output.is_none());
            }
            let Some(output) = output else { return };
            let host = &mut self.hosts[node];
            if let Some(left) = &mut host.machine.crash_after {
                *left -= 1;
            }
            if host.machine.crash_at_view && matches!(output, Output::Event(NodeEvent::View(_))) {
                host.machine.crash_after = Some(self.rng.below(6));
                host.machine.crash_at_view = false;
            }
            match output {
                Output::Datagram { to, datagram } => pending = Some((to, datagram.freeze())),
                output => self.carry_out(node, output),
            }
        }
    }

    fn carry_out(&mut self, node: usize, output: Output) {
        match output {
            Output::Datagram { .. } => unreachable!("the caller sends them"),
            Output::ClientSend { connection, bytes } => {
                self.transcript.mix_bytes(&bytes);
                self.send(StreamId(connection.0), Side::Callee, Segment::Bytes(bytes));
            }
            Output::ClientPause { connection } => {
                if let Some(stream) = self.streams.get_mut(&StreamId(connection.0)) {
                    stream.paused = true;
                    stream.resuming = false;
                }
            }
            Output::ClientResume { connection } => self.resume(StreamId(connection.0)),
            Output::ClientClose { connection, reason, .. } => {
                let id = StreamId(connection.0);
                self.say(|| format!("n{node} closes s{}: {}", id.0, reason.text()));
                self.send(id, Side::Callee, Segment::End);
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.hear_no_more(Side::Callee);
                }
            }
            Output::ExternalCalls { connection, command } => {
                self.command_external(node, connection, command);
            }
            Output::Submit { .. } => unreachable!("the order is made by the ring"),
            Output::PersistRing { ring_seq } => {
                let disk = &mut self.hosts[node].disk;
                disk.ring_seq = disk.ring_seq.max(ring_seq);
            }
            Output::Replica(output) => self.carry_out_of_replica(node, output),
            Output::Event(event) => {
                self.note_event(node, &event);
                if matches!(&event, NodeEvent::View(view) if view.kind == ViewKind::Regular) {
                    self.spring(node, Occasion::Installs);
                }
            }
        }
    }

    fn carry_out_of_replica(&mut self, node: usize, output: DriverOutput) {
        match output {
            DriverOutput::Peer { to, lane, bytes } => {
                self.send_peer(node, usize::from(to.index()), lane, bytes);
            }
            DriverOutput::Server { group, command } => self.command_server(node, group, command),
            DriverOutput::PersistPrimary(record) => {
                self.checks.memories.note_record(&record);
                self.hosts[node].disk.record = record;
            }
            DriverOutput::Catalog(record) => self.write_catalog(node, record),
            DriverOutput::CatalogChanged { id, result } => {
                self.operation_answered(node, id, &result);
            }
            DriverOutput::Defined { id, definition, .. } => {
                self.defined(node, id, definition.as_ref());
            }
            DriverOutput::Log(output) => self.write_log(node, output),
            DriverOutput::FreeLater(_) => {}
            DriverOutput::Commanded { result, .. } => {
                self.say(|| format!("n{node} answers its operator {result:?}"));
            }
            DriverOutput::BackedUp { group, id, result } => {
                self.backed_up((node, index_of(group)), id, result);
            }
            DriverOutput::Restored { group, id, result } => {
                self.say(|| format!("n{node} restored g{} ({id}): {result:?}", index_of(group)));
                if result.is_ok() {
                    self.restore_confirmed(node, index_of(group));
                }
            }
        }
    }

    fn write_log(&mut self, node: usize, output: LogOutput) {
        match output {
            LogOutput::Append(record) => self.log(node, record),
            LogOutput::Save { group, place, parts } => self.save(node, group, place, &parts),
            LogOutput::LookUp { group, number } => self.look_up(node, (group, number)),
            LogOutput::Compact { record } => self.compacted(node, record),
            LogOutput::Rebuilt => self.trust(node),
        }
    }

    fn transmit(&mut self, from: usize, to: Destination, datagram: &Bytes, last: bool) {
        self.transcript.mix_bytes(datagram);
        let (now, queue) = (self.now, &mut self.queue);
        let (targets, alone) = match to {
            Destination::Node(node) => {
                (usize::from(node.index())..=usize::from(node.index()), true)
            }
            Destination::Others | Destination::Each => (0..=self.plan.nodes - 1, false),
        };
        let leaving = Leaving { alone, last };
        for to in targets.filter(|to| *to != from) {
            self.network.send(now, (from, to), leaving, datagram, |delay, bytes| {
                queue.push(now + delay, Event::Datagram { to, bytes });
            });
        }
    }

    /// Nodes in a primary component remember again.
    pub(crate) fn note_memory(&mut self) {
        for host in &mut self.hosts {
            let Some(node) = &host.node else { continue };
            let doomed = host.stopping || host.machine.is_doomed();
            if !host.amnesic || doomed {
                continue;
            }
            let snapshot = node.snapshot();
            // Groups that are not durable may have to wait for more.
            let is_whole = !snapshot.groups.values().any(|group| group.waits_for_memory);
            host.amnesic = snapshot.primary != PrimaryStatus::Primary || !is_whole;
        }
    }

    /// Where a client's connection to a gateway leads now.
    pub(crate) fn gateway_accepts(&self, node: usize, group: GroupId, is_server: bool) -> bool {
        let engine = self.hosts[node].node.as_ref();
        let is_there = engine.is_some_and(|engine| engine.catalog().get(group).is_some());
        is_there && (is_server || !self.hosts[node].stopping)
    }
}

/// What definitions mean: those of the plan, and those that come while the domain works.
struct PlanSettings {
    fixed: FixedSettings,
    plan: Plan,
}

fn define(engine: &mut Node, now: Instant, operation: u64, change: CatalogChange) {
    let name = format!("operation {operation}").into_bytes().into();
    engine.handle_define(now, operation, name, change);
}

impl SettingsOf for PlanSettings {
    fn settings_of(
        &self,
        definition: &Definition,
        id_of: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<Settings, String> {
        let Some(text) = LateText::read(&definition.text) else {
            return self.fixed.settings_of(definition, id_of);
        };
        let group = self.plan.groups.get(text.group).ok_or("the plan has no such group")?;
        let mut settings = settings(&self.plan, group);
        settings.replica.members = NodeSet::from_bits(text.members);
        settings.replica.server_reply = ms(text.reply_ms);
        Ok(Settings::Group(Box::new(settings)))
    }
}

fn settings(plan: &Plan, group: &GroupPlan) -> GroupSettings {
    GroupSettings {
        replica: GroupConfig {
            members: NodeSet::from_bits(group.members),
            state_object: group.state_object.then(|| crate::servant::STATE_KEY.into()),
            ack: group.ack,
            object_key: None,
            member_keys: Vec::new(),
            foreign: group.foreign,
            reply: group.reply,
            replier: group.replier.map(node_id),
            style: group.style,
            leader: group.leader.map(node_id),
            comparison: ComparisonRule {
                requests: group.compared,
                expel: true,
                ignore_padding: false,
            },
            checkpoint: CheckpointRule {
                requests: group.checkpoint_requests,
                after: ms(group.checkpoint_ms),
                updates: group.updates,
            },
            durable: group.durable,
            logged: false,
            on_total_loss: if group.fresh_after_loss {
                OnTotalLoss::Fresh
            } else {
                OnTotalLoss::Stop
            },
            open_after: ms(group.open_after_ms),
            server_reply: ms(group.server_reply_ms),
            staggered: group.staggered,
            replication: group.replication,
            abandon: group.odd.as_ref().and_then(|odd| odd.abandon_ms).map(ms),
            retention: ms(group.retention_ms),
            retention_bytes_max: group.retention_bytes_max,
            replay_bytes_max: group.replay_bytes_max,
            by_application: group.by_application,
            reads: group.reads.map_or_else(ReadRule::default, |consistency| ReadRule {
                operations: ["pe*", "last"].map(Into::into).into(),
                consistency,
                ..ReadRule::default()
            }),
            concurrency: group.concurrency,
            reply_bytes_max: quorba_engine::MESSAGE_BYTES_MAX,
            state_bytes_max: 16 << 20,
            transfer: TransferRule {
                chunk_bytes: plan.peers.chunk_bytes,
                bytes_per_second: plan.peers.transfer_rate,
            },
            calls: group.calls.iter().map(|target| plan.callee_id(*target)).collect(),
            is_called: group.is_called,
        },
        depth: 0,
        unavailable_wait: ms(plan.unavailable_wait_ms),
        access: quorba_engine::Access::default(),
        references: None,
        initial_keys: Vec::new(),
    }
}
