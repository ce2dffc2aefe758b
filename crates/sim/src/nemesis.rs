//! Makes faults happen, as the plan wants them.
//!
//! Invariant: unless the plan is a catastrophe, at no time more than a minority of nodes is
//! without its memory; what a fault breaks for good, peace mends.

use crate::event::{Calm, Event};
use crate::fault::Fault;
use crate::host::Input;
use crate::server::Misdeed;
use crate::stream::{Callee, Caller, Segment, Side};
use crate::world::{World, ms, us};
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_engine::replica::GroupId;
use quorba_giop::build;

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
        match fault {
            Fault::Partition
            | Fault::Isolate
            | Fault::OneWay
            | Fault::Link
            | Fault::Heal
            | Fault::LossBurst
            | Fault::SlowLink
            | Fault::Replay
            | Fault::Forged => self.disturb_network(fault),
            Fault::Crash
            | Fault::PowerCut
            | Fault::CrashMidway
            | Fault::QuickRestart
            | Fault::MajorityCrash
            | Fault::Blackout
            | Fault::GracefulStop => self.end_nodes(fault),
            Fault::PauseShort | Fault::PauseLong | Fault::SlowNode | Fault::ClockJump => {
                self.delay_node(fault);
            }
            Fault::ServerCrash
            | Fault::ServersCrash
            | Fault::ServerHang
            | Fault::ServerSlow
            | Fault::ServerReset
            | Fault::ServerGoodbye
            | Fault::ServerGarbage
            | Fault::ServerNoState => self.hurt_servers(fault),
            Fault::ClientBreak
            | Fault::ClientHalf
            | Fault::ClientCancel
            | Fault::ClientGarbage
            | Fault::ClientStall => self.confuse_clients(fault),
        }
    }

    fn two_nodes(&mut self) -> (usize, usize) {
        let one = self.rng.index(self.plan.nodes);
        let other = (one + 1 + self.rng.index(self.plan.nodes - 1)) % self.plan.nodes;
        (one, other)
    }

    fn disturb_network(&mut self, fault: Fault) {
        let (one, other) = self.two_nodes();
        match fault {
            Fault::Partition => {
                let side = self.rng.below(1 << self.plan.nodes);
                self.say(|| format!("FAULT partition {side:b}"));
                self.network.partition(side);
            }
            Fault::Isolate => {
                self.say(|| format!("FAULT n{one} is isolated"));
                self.network.partition(1 << one);
            }
            Fault::OneWay => {
                self.say(|| format!("FAULT n{other} does not hear n{one}"));
                self.network.cut(one, other);
            }
            Fault::Link => {
                self.say(|| format!("FAULT n{one} and n{other} do not hear each other"));
                self.network.cut(one, other);
                self.network.cut(other, one);
            }
            Fault::Heal => {
                self.say(|| "the network is whole".into());
                self.network.heal();
            }
            Fault::LossBurst => {
                let (chance, time) = (self.rng.between(200, 1000), self.rng.between(5, 400));
                self.say(|| format!("FAULT {chance} of 1000 datagrams are lost for {time} ms"));
                self.network.burst = chance;
                self.queue.push(self.now + ms(time), Event::Calm(Calm::LossBurst));
            }
            Fault::SlowLink => {
                let micros = self.rng.pick(&[500, 5_000, 30_000, 100_000]);
                self.say(|| format!("FAULT n{one} to n{other} takes {micros} us more"));
                self.network.slow_down(one, other, micros);
            }
            Fault::Replay => {
                for _ in 0..self.rng.between(1, 8) {
                    let Some((to, bytes)) = self.network.replayed() else { return };
                    self.queue.push(self.now, Event::Datagram { to, bytes });
                }
            }
            _ => {
                for _ in 0..self.rng.between(1, 20) {
                    let (to, bytes) = self.network.forged();
                    self.queue.push(self.now, Event::Datagram { to, bytes });
                }
            }
        }
        // Without it partitions would be the rule and not the exception.
        if self.rng.per_mille(300) {
            self.network.heal();
        }
    }

    // -- nodes ------------------------------------------------------------------------------

    /// Whether `node` may lose its memory now.
    fn may_crash(&mut self, node: usize) -> bool {
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
            || groups.filter(|index| group.is_none_or(|group| group == *index)).all(|index| {
                let serving = self.serving(&snapshots, index);
                serving
                    .iter()
                    .any(|member| member.node != node && !self.servers[member.server].hangs)
            })
    }

    pub(crate) fn plan_restart(&mut self, node: usize) {
        let most = self.rng.pick(&[1, 50, 500, 4_000]);
        let wait = ms(self.rng.between(1, most));
        self.plan_boot(node, wait);
    }

    fn end_nodes(&mut self, fault: Fault) {
        let node = self.rng.index(self.plan.nodes);
        match fault {
            Fault::MajorityCrash | Fault::Blackout => {
                let all = self.plan.nodes;
                let count = if fault == Fault::Blackout { all } else { all / 2 + 1 };
                let mut nodes: Vec<usize> = (0..all).collect();
                self.rng.shuffle(&mut nodes);
                let silent = self.rng.per_mille(300);
                for node in nodes.into_iter().take(count) {
                    if self.hosts[node].is_up() {
                        self.crash(node, silent);
                        self.plan_restart(node);
                    }
                }
            }
            _ if !self.may_crash(node) => {}
            Fault::Crash | Fault::PowerCut => {
                self.crash(node, fault == Fault::PowerCut);
                self.plan_restart(node);
            }
            Fault::QuickRestart => {
                self.crash(node, false);
                let wait = us(self.rng.between(10, 3_000));
                self.plan_boot(node, wait);
            }
            Fault::CrashMidway => {
                let effects = self.rng.below(40);
                self.say(|| format!("FAULT n{node} will end after {effects} more effects"));
                // It may come at any time from now on, so its memory counts as gone.
                self.hosts[node].amnesic = true;
                self.hosts[node].crash_after = Some(effects);
            }
            _ => self.stop_node(node),
        }
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

    fn delay_node(&mut self, fault: Fault) {
        let node = self.rng.index(self.plan.nodes);
        match fault {
            Fault::PauseShort => {
                let time = ms(self.rng.between(1, 120));
                self.pause(node, time);
            }
            Fault::PauseLong => {
                let time = ms(self.rng.between(150, 4_000));
                self.pause(node, time);
            }
            Fault::SlowNode => {
                let (micros, time) = (self.rng.between(50, 2_000), self.rng.between(50, 2_000));
                self.say(|| format!("FAULT n{node} needs {micros} us per input for {time} ms"));
                self.hosts[node].slow_us = micros;
                self.queue.push(self.now + ms(time), Event::Calm(Calm::SlowNode(node)));
            }
            _ => {
                let ahead = self.rng.pick(&[1, 100, 5_000, 3_600_000]);
                self.say(|| format!("FAULT the clock of n{node} jumps {ahead} ms ahead"));
                self.hosts[node].clock.jump(ahead * 1_000_000);
                let boot = self.hosts[node].boot;
                self.queue.push(self.now, Event::Wake { node, boot });
            }
        }
    }

    // -- servers ----------------------------------------------------------------------------

    fn hurt_servers(&mut self, fault: Fault) {
        let group = GroupId(self.rng.index(self.plan.groups.len()) as u16);
        let mut live = self.live_servers(group);
        if live.is_empty() {
            return;
        }
        self.rng.shuffle(&mut live);
        let server = live[0];
        let deadly = matches!(
            fault,
            Fault::ServerCrash | Fault::ServerHang | Fault::ServerReset | Fault::ServerGarbage
        );
        let node = self.servers[server].node;
        let all = fault == Fault::ServersCrash && !self.plan.careless;
        if all || deadly && !self.is_spare(node, Some(usize::from(group.0))) {
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
            Fault::ServerReset => self.drop_links(server, false),
            Fault::ServerGoodbye => self.drop_links(server, true),
            Fault::ServerGarbage => self.servers[server].misdeed = Some(Misdeed::Garbage),
            Fault::ServerNoState => self.servers[server].misdeed = Some(Misdeed::NoState),
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
                self.send(stream, Side::Caller, Segment::Reset);
                self.send(stream, Side::Callee, Segment::Reset);
            }
            (Fault::ClientCancel, Some(stream)) => self.cancel_call(client, stream),
            (Fault::ClientStall, _) => {
                let (node, time) = (self.rng.index(self.plan.nodes), self.rng.between(10, 3_000));
                self.say(|| format!("FAULT n{node} and its clients do not hear each other"));
                self.stall(node, self.now + ms(time));
                self.queue.push(self.now + ms(time), Event::Calm(Calm::Stall(node)));
            }
            (Fault::ClientGarbage, _) => self.send_garbage(),
            _ => {}
        }
    }

    fn send_garbage(&mut self) {
        let node = self.rng.index(self.plan.nodes);
        let group = GroupId(self.rng.index(self.plan.groups.len()) as u16);
        let callee = Callee::Gateway { node, boot: None, group };
        let stream = self.connect(Caller::Stranger, callee, false);
        let noise: Vec<u8> = match self.rng.below(5) {
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

    // -- peace ------------------------------------------------------------------------------

    /// Ends all faults and mends what they broke.
    pub(crate) fn make_peace(&mut self) {
        self.say(|| "PEACE: no more faults, no more new calls".into());
        self.peace = true;
        self.network.make_perfect();
        self.stalled_until.fill(Instant::ZERO);
        for node in 0..self.plan.nodes {
            let host = &mut self.hosts[node];
            host.slow_us = 0;
            host.crash_after = None;
            if let Some(until) = host.paused_until.filter(|until| *until > self.now) {
                let soon = until.min(self.now + Duration::from_millis(1));
                let boot = host.boot;
                host.paused_until = Some(soon);
                self.queue.push(soon, Event::Wake { node, boot });
            }
        }
        for server in 0..self.servers.len() {
            let target = &mut self.servers[server];
            target.misdeed = None;
            target.slow_until = Instant::ZERO;
            if target.alive && target.hangs {
                // Whoever looks after it starts it again.
                self.end_server(server);
            }
        }
    }
}
