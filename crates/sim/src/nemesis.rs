//! Makes faults happen, as the plan wants them.
//!
//! Invariant: unless the plan is a catastrophe, at no time more than a minority of nodes is
//! without its memory; what a fault breaks for good, peace mends.

use crate::ambush::{Ambush, Occasion};
use crate::event::Event;
use crate::fault::{Fault, Place};
use crate::host::Input;
use crate::names::{group_id, index_of};
use crate::network::Disturbance;
use crate::odd::Reaction;
use crate::server::Misdeed;
use crate::stream::{Callee, Caller, Segment, Side};
use crate::world::{World, ms, node_id, us};
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_engine::replica::{Command, Style};
use quorba_giop::build;

/// How long a node is gone that has heard of a call alone.
const GONE_FROM_CALL_MS: (u64, u64) = (130, 400);
/// How long all servers are slow then.
const CALLS_SLOW: Duration = Duration::from_millis(1_500);

impl World {
    /// The next fault, and the plan for the one after it.
    pub(crate) fn nemesis(&mut self) {
        if self.peace {
            return;
        }
        if !self.plan.faults.is_empty() {
            let fault = self.plan.faults[self.rng.index(self.plan.faults.len())];
            self.inflict(fault);
        }
        let wait = us(self.rng.between(1, 2 * self.plan.fault_every_us));
        self.queue.push(self.now + wait, Event::Nemesis);
    }

    fn inflict(&mut self, fault: Fault) {
        self.transcript.mix(fault as u64);
        let ambush = Ambush::lay(fault, &mut self.rng);
        match fault.place() {
            _ if ambush.is_some() => self.ambush = ambush,
            Place::Network => self.disturb_network(fault),
            Place::Peers => self.hurt_peers(fault),
            Place::Nodes => self.hurt_nodes(fault),
            Place::Servers => self.hurt_servers(fault),
            Place::Clients => self.confuse_clients(fault),
        }
    }

    /// A fault may have waited for this.
    pub(crate) fn spring(&mut self, node: usize, occasion: Occasion) {
        if self.peace {
            return;
        }
        let hosts = &self.hosts;
        let look = |node: usize| Some(hosts[node].node.as_ref()?.snapshot().order);
        let moment = (node, occasion);
        let struck = Ambush::strike(&mut self.ambush, &mut self.rng, moment, hosts.len(), look);
        let Some((fault, prey)) = struck else { return };
        match fault.place() {
            Place::Network => {
                let disturbance = self.network.spring(self.now, fault, prey);
                self.suffer(disturbance);
            }
            Place::Servers => self.orphan_call(node),
            _ if self.may_crash(node) => self.end_node(Fault::Crash, node),
            _ => {}
        }
    }

    /// What `node` hears next shall be its secret, and its server busy with it when it is back.
    fn orphan_call(&mut self, node: usize) {
        let text = self.network.leave_gaps(self.now, node, GONE_FROM_CALL_MS);
        let until = self.now + CALLS_SLOW;
        for group in 0..self.plan.groups.len() {
            for server in self.live_servers(group_id(group)) {
                let lingers = ms(self.rng.between(200, 900));
                self.slow_server(server, until);
                let target = &mut self.servers[server];
                target.lingers = (target.node == node).then_some(lingers);
            }
        }
        self.say(|| format!("{text}; all servers are slow, above all its own"));
    }

    fn disturb_network(&mut self, fault: Fault) {
        let disturbance = self.network.disturb(self.now, fault);
        self.suffer(disturbance);
    }

    fn suffer(&mut self, disturbance: Disturbance) {
        self.say(|| disturbance.text);
        for (to, bytes) in disturbance.arrivals {
            self.queue.push(self.now, Event::Datagram { to, bytes });
        }
    }

    // -- nodes ------------------------------------------------------------------------------

    /// Whether `node` may lose its memory now.
    pub(crate) fn may_crash(&mut self, node: usize) -> bool {
        self.note_memory();
        let minority = (self.plan.nodes - 1) / 2;
        let amnesic = self.hosts.iter().filter(|host| host.amnesic).count();
        let more = usize::from(!self.hosts[node].amnesic);
        let minority = self.plan.catastrophe || amnesic + more <= minority;
        self.hosts[node].is_up() && minority && self.is_spare(node, None)
    }

    /// Whether every group (or the one that is asked for) has a member beside that of `node`.
    fn is_spare(&self, node: usize, group: Option<usize>) -> bool {
        let snapshots = self.snapshots();
        let groups = 0..self.plan.groups.len();
        self.plan.careless
            || groups
                .filter(|index| group.is_none_or(|group| group == *index))
                .filter(|index| !self.checks.groups[*index].gone)
                .all(|index| self.has_other_member(&snapshots, index, node))
    }

    pub(crate) fn plan_restart(&mut self, node: usize) {
        let most = self.rng.pick(&[1, 50, 500, 4_000]);
        let wait = ms(self.rng.between(1, most));
        self.plan_boot(node, wait);
    }

    fn hurt_nodes(&mut self, fault: Fault) {
        let node = self.rng.index(self.plan.nodes);
        match fault {
            Fault::MajorityCrash | Fault::Blackout => self.end_many(fault),
            Fault::RollingRestart => {
                let boot = self.hosts[node].boot;
                self.queue.push(self.now, Event::Roll { node, boot, left: self.plan.nodes });
            }
            Fault::Crash
            | Fault::PowerCut
            | Fault::QuickRestart
            | Fault::GracefulStop
            | Fault::CrashMidway
            | Fault::CrashAtView => {
                if self.may_crash(node) {
                    self.end_node(fault, node);
                }
            }
            Fault::PauseSome => {
                for node in 0..self.plan.nodes {
                    if self.rng.per_mille(500) {
                        self.delay_node(fault, node);
                    }
                }
            }
            Fault::Promotion | Fault::StyleChange => self.operate(fault, node),
            Fault::MemberChange => self.change_members(node),
            _ => self.delay_node(fault, node),
        }
    }

    /// An operator at `node` changes a group.
    fn operate(&mut self, fault: Fault, node: usize) {
        let group = self.rng.index(self.plan.groups.len());
        let plan = &self.plan.groups[group];
        let command = if fault == Fault::Promotion {
            Command::Promote(node_id(self.rng.index(self.plan.nodes)))
        } else if plan.style == Style::Stateless {
            // Which of its calls the others have executed, nobody could say afterwards.
            return;
        } else {
            let cold = if plan.foreign { Style::WarmPassive } else { Style::ColdPassive };
            let styles = [
                Style::Active,
                Style::ActiveWithVoting,
                Style::SemiActive,
                Style::WarmPassive,
                cold,
            ];
            Command::SetStyle(self.rng.pick(&styles))
        };
        self.say(|| format!("OPERATOR at n{node}: g{group} {command:?}"));
        self.deliver(node, Input::Command(group_id(group), command));
    }

    /// All nodes end, unless there are no faults any more.
    pub(crate) fn black_out(&mut self) {
        if !self.peace {
            self.end_many(Fault::Blackout);
        }
    }

    fn end_many(&mut self, fault: Fault) {
        let all = self.plan.nodes;
        let count = if fault == Fault::Blackout { all } else { all / 2 + 1 };
        let mut nodes: Vec<usize> = (0..all).collect();
        self.rng.shuffle(&mut nodes);
        let silent = self.rng.per_mille(300);
        self.lose_what_is_not_durable();
        for node in nodes.into_iter().take(count) {
            if self.hosts[node].is_up() {
                self.crash(node, silent);
                self.plan_restart(node);
            }
        }
    }

    fn end_node(&mut self, fault: Fault, node: usize) {
        match fault {
            Fault::Crash | Fault::PowerCut => {
                self.crash(node, fault == Fault::PowerCut);
                self.plan_restart(node);
            }
            Fault::QuickRestart => {
                self.crash(node, false);
                let wait = us(self.rng.between(10, 3_000));
                self.plan_boot(node, wait);
            }
            Fault::GracefulStop => self.stop_node(node),
            _ => {
                // It may come at any time from now on, so its memory counts as gone.
                self.hosts[node].amnesic = true;
                let machine = &mut self.hosts[node].machine;
                if fault == Fault::CrashAtView {
                    machine.crash_at_view = true;
                    self.say(|| format!("FAULT n{node} will end at its next view"));
                } else {
                    let effects = self.rng.below(40);
                    machine.crash_after = Some(effects);
                    self.say(|| format!("FAULT n{node} will end after {effects} more effects"));
                }
            }
        }
    }

    /// Restarts one node after the other, each when the one before it remembers again.
    pub(crate) fn roll(&mut self, node: usize, boot: u64, left: usize) {
        if self.peace || left == 0 {
            return;
        }
        let (mut next, mut boot, mut left) = (node, boot, left);
        if self.hosts[node].boot == boot && self.may_crash(node) {
            self.say(|| format!("FAULT n{node} is restarted, {left} of all"));
            self.crash(node, false);
            let wait = ms(self.rng.between(1, 300));
            self.plan_boot(node, wait);
            next = (node + 1) % self.plan.nodes;
            boot = self.hosts[next].boot;
            left -= 1;
        } else if self.hosts[node].boot != boot {
            // Another fault came first.
            boot = self.hosts[node].boot;
        }
        self.queue.push(self.now + ms(40), Event::Roll { node: next, boot, left });
    }

    fn stop_node(&mut self, node: usize) {
        if self.hosts[node].stopping {
            return;
        }
        self.say(|| format!("FAULT n{node} is asked to stop"));
        self.hosts[node].amnesic = true;
        self.hosts[node].stopping = true;
        self.deliver(node, Input::Stop);
        let boot = self.hosts[node].boot;
        self.queue.push(self.now + ms(50), Event::Stopping { node, boot, tries: 100 });
    }

    /// Looks whether a node that stops is done.
    pub(crate) fn stopping(&mut self, node: usize, boot: u64, tries: u32) {
        let host = &self.hosts[node];
        if host.boot != boot {
            return;
        }
        let Some(engine) = &host.node else { return };
        if engine.is_drained() || tries == 0 {
            self.crash(node, false);
            self.plan_restart(node);
        } else {
            let tries = tries - 1;
            self.queue.push(self.now + ms(50), Event::Stopping { node, boot, tries });
        }
    }

    fn delay_node(&mut self, fault: Fault, node: usize) {
        if !self.hosts[node].is_up() {
            return;
        }
        let host = &mut self.hosts[node];
        let (text, at) = host.machine.delay(self.now, fault, &mut self.rng);
        let boot = host.boot;
        self.say(|| format!("FAULT n{node} {text}"));
        self.queue.push(at, Event::Wake { node, boot });
    }

    // -- servers ----------------------------------------------------------------------------

    fn hurt_servers(&mut self, fault: Fault) {
        let group = group_id(self.rng.index(self.plan.groups.len()));
        let mut live = self.live_servers(group);
        if live.is_empty() {
            return;
        }
        self.rng.shuffle(&mut live);
        let server = live[0];
        let deadly = matches!(
            fault,
            Fault::ServerCrash
                | Fault::ServerHang
                | Fault::ServerReset
                | Fault::ServerGarbage
                | Fault::ServerWrongId
                | Fault::ServerEndsCall
                | Fault::ServerSilent
        );
        let node = self.servers[server].node;
        let all = fault == Fault::ServersCrash && !self.plan.careless;
        if all || deadly && !self.is_spare(node, Some(index_of(group))) {
            return;
        }
        // Two that are odd, each in its way, leave nobody who can tell what the state is.
        let is_odd = matches!(fault, Fault::ServerEndsCall | Fault::ServerSilent);
        let others_are = live.iter().any(|of| *of != server && self.servers[*of].is_strange());
        let index = index_of(group);
        if is_odd && (others_are || !self.has_other_member(&self.snapshots(), index, node)) {
            return;
        }
        self.say(|| format!("FAULT {fault:?} server {server}"));
        match fault {
            Fault::ServerCrash if live.len() > 1 => self.end_server(server),
            Fault::ServersCrash => {
                for server in live.into_iter().skip(1) {
                    self.end_server(server);
                }
            }
            Fault::ServerHang => self.hang_server(server),
            Fault::ServerSlow => {
                let time = ms(self.rng.between(10, 1_000));
                self.slow_server(server, self.now + time);
            }
            Fault::ServersSlow => {
                let until = self.now + ms(self.rng.between(50, 1_500));
                live.into_iter().for_each(|server| self.slow_server(server, until));
            }
            Fault::ServerReset => self.drop_links(server, false),
            Fault::ServerGoodbye => self.drop_links(server, true),
            Fault::ServerGarbage => self.servers[server].misdeed = Some(Misdeed::Garbage),
            Fault::ServerWrongId => self.servers[server].misdeed = Some(Misdeed::WrongId),
            // One replica lies, so that the others are most of those who are left.
            Fault::ServerLies if node == 0 && live.len() == self.plan.nodes => {
                self.servers[server].misdeed = Some(Misdeed::Lie);
            }
            Fault::ServerNoState => self.servers[server].misdeed = Some(Misdeed::NoState),
            Fault::ServerEndsCall | Fault::ServerSilent if live.len() > 1 => {
                let (executed, reset) = (self.rng.per_mille(500), self.rng.per_mille(500));
                let reaction = match fault {
                    Fault::ServerEndsCall => Reaction::Ends { executed, reset },
                    _ => Reaction::Silent { executed },
                };
                self.servers[server].misdeed = Some(Misdeed::React(reaction));
            }
            _ => {}
        }
    }

    // -- clients ----------------------------------------------------------------------------

    fn confuse_clients(&mut self, fault: Fault) {
        let client = self.rng.index(self.clients.len());
        let stream = self.clients[client].stream();
        match (fault, stream) {
            (Fault::ClientBreak, Some(stream)) => {
                self.say(|| format!("FAULT s{} of c{client} breaks", stream.0));
                self.send(stream, Side::Caller, Segment::Reset);
                self.send(stream, Side::Callee, Segment::Reset);
            }
            (Fault::ClientHalf, Some(stream)) => {
                self.say(|| format!("FAULT s{} of c{client} ends within a message", stream.0));
                let half = Bytes::from_static(b"GIOP\x01\x02\x01\x00\x40\x00\x00\x00half");
                self.send(stream, Side::Caller, Segment::Bytes(half));
                if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.is_over = true;
                }
                self.send(stream, Side::Caller, Segment::Reset);
                self.send(stream, Side::Callee, Segment::Reset);
            }
            (Fault::ClientCancel, Some(stream)) => self.cancel_call(client, stream),
            (Fault::ClientStall, _) => {
                let (node, time) = (self.rng.index(self.plan.nodes), self.rng.between(10, 3_000));
                self.say(|| format!("FAULT n{node} and its clients do not hear each other"));
                self.stall(node, self.now + ms(time));
            }
            (Fault::ClientHurry, Some(_)) => self.hurry_client(client),
            (Fault::ClientGarbage | Fault::ClientOversized, _) => self.send_garbage(fault),
            _ => {}
        }
    }

    fn send_garbage(&mut self, fault: Fault) {
        let node = self.rng.index(self.plan.nodes);
        let group = group_id(self.rng.index(self.plan.groups.len()));
        let callee = Callee::Gateway { node, boot: None, group };
        let stream = self.connect(Caller::Stranger, callee, false);
        let noise: Vec<u8> = match self.rng.below(5) {
            // One byte more than a gateway takes, and well-formed but for that.
            _ if fault == Fault::ClientOversized => {
                let mut bytes = b"GIOP\x01\x02\x01\x00".to_vec();
                bytes.extend((16 << 20_u32).max(self.rng.next() as u32).to_le_bytes());
                bytes.extend([7; 500]);
                bytes
            }
            0 => b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            1 => b"GIOP\x01\x02\x01\x00\xff\xff\xff\x7f".to_vec(),
            2 => {
                let version = quorba_giop::Version::V1_2;
                let endian = quorba_giop::Endian::Little;
                let message = build::cancel_request(version, endian, 7);
                let mut bytes = message.bytes().to_vec();
                let at = self.rng.index(bytes.len());
                bytes[at] ^= 1 << self.rng.below(8);
                bytes
            }
            3 => b"GIOP\x01\x02\x00\x07".to_vec(),
            _ => {
                let mut bytes = b"GIOP\x01\x02\x01\x00\x20\x00\x00\x00".to_vec();
                bytes.extend((0..32).map(|_| self.rng.next() as u8));
                bytes
            }
        };
        self.say(|| format!("FAULT a stranger sends {} bytes to n{node}", noise.len()));
        self.send(stream, Side::Caller, Segment::Bytes(Bytes::from(noise)));
    }

    /// Every node ends at the same moment, and comes back.
    pub(crate) fn end_all_nodes(&mut self) {
        self.say(|| "ALL NODES END".into());
        self.lose_what_is_not_durable();
        for node in 0..self.plan.nodes {
            self.crash(node, true);
            let wait = us(self.rng.between(10, 300_000));
            self.plan_boot(node, wait);
        }
    }

    // -- peace ------------------------------------------------------------------------------

    /// Ends all faults and mends what they broke.
    pub(crate) fn make_peace(&mut self) {
        self.say(|| "PEACE: no more faults, no more new calls".into());
        self.peace = true;
        self.peace_at = Some(self.now);
        self.network.make_perfect();
        self.peers.make_peace();
        self.make_peace_outside();
        self.stalled_until.fill(Instant::ZERO);
        for node in 0..self.plan.nodes {
            let host = &mut self.hosts[node];
            let soon = host.machine.make_peace(self.now);
            let boot = host.boot;
            self.queue.push(soon, Event::Wake { node, boot });
            self.repair_disk(node);
        }
        for server in 0..self.servers.len() {
            let target = &mut self.servers[server];
            target.misdeed = None;
            target.slow_until = Instant::ZERO;
            target.lingers = None;
            if target.alive && target.hangs {
                // Whoever looks after it starts it again.
                self.end_server(server);
            }
        }
    }
}
