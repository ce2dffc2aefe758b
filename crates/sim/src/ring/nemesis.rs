//! Faults of the network and of nodes, for rings.
//!
//! Invariant: whatever a fault breaks for good, peace mends. Unlike in a domain any number of
//! nodes may lose their memory: a ring has none that it must keep.

use super::world::{Event, Input, RingWorld};
use crate::ambush::{Ambush, Occasion};
use crate::fault::{Fault, Place};
use crate::network::Disturbance;
use crate::world::{ms, node_id, us};
use quorba_engine::order::Ring;

impl RingWorld {
    /// The next fault, and the plan for the one after it.
    pub(super) fn nemesis(&mut self) {
        if self.peace || self.plan.faults.is_empty() {
            return;
        }
        let fault = self.rng.pick(&self.plan.faults);
        self.transcript.mix(fault as u64);
        let ambush = Ambush::lay(fault, &mut self.rng);
        match fault.place() {
            _ if ambush.is_some() => self.ambush = ambush,
            Place::Network => self.disturb(fault),
            _ => self.hurt_nodes(fault),
        }
        let wait = us(self.rng.between(1, 2 * self.plan.fault_every_us));
        self.queue.push(self.now + wait, Event::Nemesis);
    }

    fn disturb(&mut self, fault: Fault) {
        let disturbance = self.network.disturb(self.now, fault);
        self.suffer(disturbance);
    }

    fn suffer(&mut self, disturbance: Disturbance) {
        self.say(|| disturbance.text);
        for (to, bytes) in disturbance.arrivals {
            self.queue.push(self.now, Event::Datagram { to, bytes });
        }
    }

    /// A fault may have waited for this.
    pub(super) fn spring(&mut self, node: usize, occasion: Occasion) {
        if self.peace {
            return;
        }
        let hosts = &self.hosts;
        let look = |node: usize| hosts[node].ring.as_ref().map(Ring::snapshot);
        let moment = (node, occasion);
        let struck = Ambush::strike(&mut self.ambush, &mut self.rng, moment, hosts.len(), look);
        let Some((fault, prey)) = struck else { return };
        if fault.place() == Place::Network {
            let disturbance = self.network.spring(self.now, fault, prey);
            self.suffer(disturbance);
        } else {
            self.hurt_node(Fault::Crash, node);
        }
    }

    fn hurt_nodes(&mut self, fault: Fault) {
        let all = self.plan.nodes;
        let node = self.rng.index(all);
        let count = match fault {
            Fault::MajorityCrash => all / 2 + 1,
            Fault::Blackout => all,
            Fault::RollingRestart => return self.roll(node, all),
            Fault::PauseSome => {
                for node in 0..all {
                    if self.rng.per_mille(500) {
                        self.delay(node, fault);
                    }
                }
                return;
            }
            _ => 1,
        };
        for step in 0..count {
            self.hurt_node(fault, (node + step) % all);
        }
    }

    fn hurt_node(&mut self, fault: Fault, node: usize) {
        match fault {
            _ if !self.is_up(node) => {}
            Fault::Crash | Fault::PowerCut | Fault::MajorityCrash | Fault::Blackout => {
                self.crash(node, fault == Fault::PowerCut);
                let most = self.rng.pick(&[1, 50, 500]);
                let wait = ms(self.rng.between(1, most));
                self.plan_boot(node, wait);
            }
            Fault::QuickRestart => {
                self.crash(node, false);
                let wait = us(self.rng.between(10, 3_000));
                self.plan_boot(node, wait);
            }
            Fault::CrashMidway => {
                let effects = self.rng.below(40);
                self.say(|| format!("FAULT n{node} will end after {effects} more effects"));
                self.hosts[node].machine.crash_after = Some(effects);
            }
            Fault::CrashAtView => {
                self.say(|| format!("FAULT n{node} will end at its next view"));
                self.hosts[node].machine.crash_at_view = true;
            }
            Fault::GracefulStop => {
                self.say(|| format!("FAULT n{node} leaves"));
                let now = self.hosts[node].machine.clock.local(self.now);
                if let Some(ring) = &mut self.hosts[node].ring {
                    ring.leave(now);
                }
                self.drain(node);
                self.crash(node, true);
                let wait = ms(self.rng.between(1, 300));
                self.plan_boot(node, wait);
            }
            _ => self.delay(node, fault),
        }
    }

    fn delay(&mut self, node: usize, fault: Fault) {
        if self.is_up(node) {
            let host = &mut self.hosts[node];
            let (text, at) = host.machine.delay(self.now, fault, &mut self.rng);
            let boot = host.boot;
            self.say(|| format!("FAULT n{node} {text}"));
            self.queue.push(at, Event::Wake { node, boot });
        }
    }

    /// Restarts one node after the other.
    pub(super) fn roll(&mut self, node: usize, left: usize) {
        if self.peace || left == 0 {
            return;
        }
        if self.is_up(node) {
            self.say(|| format!("FAULT n{node} is restarted, {left} of all"));
            self.crash(node, false);
            let wait = ms(self.rng.between(1, 60));
            self.plan_boot(node, wait);
        }
        let (node, wait) = ((node + 1) % self.plan.nodes, ms(self.rng.between(1, 150)));
        self.queue.push(self.now + wait, Event::Roll { node, left: left - 1 });
    }

    /// The process ends. `silent`: nobody is told.
    pub(super) fn crash(&mut self, node: usize, silent: bool) {
        let host = &mut self.hosts[node];
        let Some(ring) = host.ring.take() else { return };
        self.crashes += 1;
        host.inbox.clear();
        host.datagrams_waiting = 0;
        let life = host.life;
        self.lives[life].ended = Some((self.now, Box::new(ring.snapshot())));
        self.say(|| format!("n{node} {}", if silent { "is gone" } else { "crashes" }));
        if silent {
            return;
        }
        for other in 0..self.plan.nodes {
            if other != node && self.is_up(other) && self.rng.per_mille(500) {
                let boot = self.hosts[other].boot;
                let wait = us(self.rng.between(50, 2_000));
                let (node, lost) = (other, node);
                self.queue.push(self.now + wait, Event::PeerLost { node, boot, lost });
            }
        }
    }

    pub(super) fn peer_lost(&mut self, node: usize, boot: u64, lost: usize) {
        // Evidence of a dead process counts only as long as it is dead.
        if self.hosts[node].boot == boot && !self.is_up(lost) {
            self.input(node, Input::PeerLost(node_id(lost)));
        }
    }

    /// Ends all faults and mends what they broke.
    pub(crate) fn make_peace(&mut self) {
        self.say(|| "PEACE: no more faults, no more messages".into());
        self.peace = true;
        self.network.make_perfect();
        self.end_absences();
        for node in 0..self.plan.nodes {
            let host = &mut self.hosts[node];
            let soon = host.machine.make_peace(self.now);
            let boot = host.boot;
            self.queue.push(soon, Event::Wake { node, boot });
        }
    }
}
