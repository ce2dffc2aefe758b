//! All hosts, servers, clients and wires of one run, and the loop that lets time pass.
//!
//! Invariants: everything that happens is an [`Event`] from the one queue; nothing reads a real
//! clock, iterates over a hash map or draws from anything but the seed.

use crate::ambush::Ambush;
use crate::backups::Backups;
use crate::calls::Hearsay;
use crate::catalog::Operators;
use crate::check::Checks;
use crate::client::Client;
use crate::event::{Event, Queue};
use crate::host::{Host, Input, Supervisor};
use crate::ledger::Ledger;
use crate::membership::Membership;
use crate::network::Network;
use crate::outside::Outsider;
use crate::peers::Peers;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::run::ServerBug;
use crate::server::Server;
use crate::stream::{Stream, StreamId};
use crate::transcript::Transcript;
use quorba_base::{Duration, Instant, NodeId};
use std::collections::BTreeMap;

/// How often nodes are compared with each other.
const INSPECT_EVERY: Duration = Duration::from_millis(10);
/// A run that has so many goes in a cycle: others have fewer than a million.
const EVENTS_MAX: u64 = 5_000_000;
/// When the run begins; not zero, so that "earlier" exists.
pub(crate) const BEGIN: Instant = Instant::from_nanos(1_000_000_000);

/// The gap between the incarnations of two boots.
pub(crate) const INCARNATION_STEP: u64 = 1_000_000;

pub(crate) fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn node_id(index: usize) -> NodeId {
    NodeId::new(index as u8).expect("domains are small")
}

/// See the module's text.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: Instant,
    pub(crate) rng: Rng,
    pub(crate) disk_rng: Rng,
    pub(crate) catalog_rng: Rng,
    pub(crate) operators: Operators,
    pub(crate) queue: Queue<Event>,
    pub(crate) network: Network,
    pub(crate) peers: Peers,
    pub(crate) hosts: Vec<Host>,
    pub(crate) servers: Vec<Server>,
    pub(crate) outsiders: Vec<Outsider>,
    pub(crate) clients: Vec<Client>,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    pub(crate) next_stream: u64,
    /// Nothing passes between clients and this node until then.
    pub(crate) stalled_until: Vec<Instant>,
    pub(crate) ledger: Ledger,
    pub(crate) hearsay: Hearsay,
    pub(crate) checks: Checks,
    pub(crate) membership: Membership,
    pub(crate) backups: Backups,
    pub(crate) transcript: Transcript,
    /// No more faults, and no more calls than are open.
    pub(crate) peace: bool,
    pub(crate) peace_at: Option<Instant>,
    pub(crate) events: u64,
    /// A fault that lies in wait.
    pub(crate) ambush: Option<Ambush>,
    pub(crate) server_bug: Option<ServerBug>,
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, transcript: Transcript) -> Self {
        crate::names::forget_late();
        let rng = Rng::new(seed);
        let hosts = (0..plan.nodes).map(|node| Host::new(supervisors(&plan, node))).collect();
        let clients = plan
            .clients
            .iter()
            .enumerate()
            .map(|(index, client)| {
                let rng = rng.fork(0xc11e_0000 + index as u64);
                Client::new(index, client.clone(), plan.nodes, rng)
            })
            .collect();
        let mut world = Self {
            now: BEGIN,
            rng: rng.fork(0x3017),
            disk_rng: rng.fork(0xd15c),
            catalog_rng: rng.fork(0xca7a),
            operators: Operators::default(),
            queue: Queue::default(),
            network: Network::new(plan.nodes, plan.links, rng.fork(0x0e7)),
            peers: Peers::new(plan.nodes, plan.peers, rng.fork(0x9ee5)),
            hosts,
            servers: Vec::new(),
            outsiders: plan.outside.iter().map(|_| Outsider::new()).collect(),
            clients,
            streams: BTreeMap::new(),
            next_stream: 1,
            stalled_until: vec![Instant::ZERO; plan.nodes],
            ledger: Ledger::default(),
            hearsay: Hearsay::default(),
            checks: Checks::new(&plan),
            membership: Membership::default(),
            backups: Backups::new(rng.fork(0xbac0)),
            transcript,
            peace: false,
            peace_at: None,
            events: 0,
            ambush: None,
            server_bug: None,
            plan,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        for node in 0..self.plan.nodes {
            let spread = self.rng.pick(&[0, 5_000, 300_000, 2_000_000]);
            let wait = us(self.rng.below(spread + 1));
            self.plan_boot(node, wait);
        }
        if let Some(node) = self.plan.latecomer {
            self.delay_latecomer(node);
        }
        for client in 0..self.clients.len() {
            let wait = us(self.rng.below(50_000));
            self.wake_client(client, wait);
        }
        self.queue.push(self.now + INSPECT_EVERY, Event::Inspect);
        self.begin_outside();
        self.plan_attendant();
        let first = us(self.plan.fault_every_us);
        self.queue.push(self.now + first, Event::Nemesis);
        if self.plan.backups {
            self.plan_operator();
        }
        if self.plan.groups.iter().any(|group| group.late) {
            self.plan_cataloguer();
        }
    }

    /// Lets time pass until `until`, or until something is found to be wrong.
    pub(crate) fn run_until(&mut self, until: Instant) {
        while self.checks.violations.is_empty() {
            let Some((at, event)) = self.queue.pop(until) else { break };
            self.now = self.now.max(at);
            self.events += 1;
            self.transcript.mix(at.as_nanos());
            self.happen(event);
            if self.events == EVENTS_MAX {
                let text = format!("{EVENTS_MAX} events, and no end");
                self.checks.violate("liveness", self.now, text);
            }
        }
        self.now = self.now.max(until);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake { node, boot } => self.wake(node, boot),
            Event::Datagram { to, bytes } => self.datagram(to, bytes),
            Event::Segment { id, to, segment } => self.segment(id, to, segment),
            Event::Resume { id } => self.resumed(id),
            Event::Boot { node, boot } => self.boot(node, boot),
            Event::Roll { node, boot, left } => self.roll(node, boot, left),
            Event::Bereave { latecomer } => self.bereave(latecomer),
            Event::Stopping { node, boot, tries } => self.stopping(node, boot, tries),
            Event::PeerLost { node, boot, lost } => self.peer_lost(node, boot, lost),
            Event::Peer(event) => self.peer_event(event),
            Event::ServerStart { node, boot, group, serial } => {
                self.start_server(node, boot, group, serial);
            }
            Event::ServerNews { node, boot, group, stops, down } => {
                self.server_news((node, boot), (group, stops), down);
            }
            Event::ServerDone { server, serial } => self.server_done(server, serial),
            Event::CatalogWritten { node, boot } => self.catalog_written(node, boot),
            Event::CatalogSaved { node, boot, version } => {
                if self.hosts[node].boot == boot && self.hosts[node].is_up() {
                    self.deliver(node, Input::CatalogSaved(version));
                }
            }
            Event::Cataloguer => self.cataloguer_comes(),
            Event::Synced { node, boot } => self.synced(node, boot),
            Event::Saved { node, boot, group, place, bytes } => {
                self.saved((node, boot), (group, place), &bytes);
            }
            Event::LooksUp { node, boot, look, up_to } => self.looks_up(node, boot, look, up_to),
            Event::LookedUp { node, boot, look, found } => {
                self.looked_up(node, boot, look, found);
            }
            Event::Compact { node, boot } => self.compact(node, boot),
            Event::DiskRepaired { node, boot } => self.disk_repaired(node, boot),
            Event::Trusted { node, boot } => self.trusted(node, boot),
            Event::Client { client, serial } => self.client_woken(client, serial),
            Event::OutsideFault { outsider } => self.hurt_outside(outsider),
            Event::OutsideStart { outsider } => self.start_outside(outsider),
            Event::OutsideDone { outsider, asked } => self.outside_done(outsider, asked),
            Event::Operator => self.operator_comes(),
            Event::Attendant => self.attend(),
            Event::Blackout => self.black_out(),
            Event::Nemesis => self.nemesis(),
            Event::Inspect => {
                self.inspect();
                self.queue.push(self.now + INSPECT_EVERY, Event::Inspect);
            }
        }
    }

    /// Plants a known bug.
    pub(crate) fn set_server_bug(&mut self, server_bug: Option<ServerBug>) {
        self.server_bug = server_bug;
    }

    /// A line of the transcript.
    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        self.transcript.say(self.now, line);
    }
}

fn supervisors(plan: &Plan, node: usize) -> Vec<Option<Supervisor>> {
    plan.groups
        .iter()
        .map(|group| {
            let is_member = (group.members >> node) & 1 == 1 && !group.late;
            is_member.then(|| Supervisor::new(group.backoff_ms))
        })
        .collect()
}
