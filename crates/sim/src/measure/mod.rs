//! How fast the simulator is, and what a message costs in rings of many sizes.
//!
//! What it is not: a measure of the product on a network: datagrams, bytes and rotation times are
//! those of the protocol over virtual links; processor time is that of the engine and the
//! simulator together. Invariant: counts and virtual times depend on the load alone.

mod plot;

pub use plot::plot;

use crate::plan::LinkPlan;
use crate::ring::{RingPlan, RingWorld};
use crate::run::{Options, run_plan};
use crate::transcript::Transcript;
use crate::world::ms;
use crate::{Scope, run};
use quorba_base::{Duration, Instant};
use quorba_engine::order::StateName;

/// Sizes of rings that are measured; 64 is the most nodes of a domain.
pub const SIZES: &[usize] = &[3, 5, 8, 12, 20, 30, 50, 64];
/// Virtual time that a size is measured for.
const MEASURED: Duration = Duration::from_secs(2);
/// A ring that has not formed by then will not.
const FORM_WITHIN: Duration = Duration::from_secs(60);
/// Messages a second, of all nodes together, and their bytes.
const LOAD: u64 = 1_000;
const MESSAGE_BYTES: u64 = 1_000;

/// Processor time of this thread, or real time where the system does not tell.
fn cpu() -> Duration {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = spent.and_then(|text| text.split(' ').next()?.parse().ok());
    static BEGAN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let real = BEGAN.get_or_init(std::time::Instant::now).elapsed();
    spent.map_or(real, Duration::from_nanos)
}

/// How fast one kind of load is simulated.
#[derive(Clone, Debug)]
pub struct Speed {
    /// Of what.
    pub name: &'static str,
    /// Virtual time.
    pub simulated: Duration,
    /// Processor time.
    pub took: Duration,
    /// Events of the simulation.
    pub events: u64,
}

impl Speed {
    /// Virtual seconds per second of one core.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.simulated.as_secs_f64() / self.took.as_secs_f64().max(1e-9)
    }
}

/// Measures the simulator: five loaded nodes, as rings and as a domain, and the mix of the seeds.
#[must_use]
pub fn speed() -> Vec<Speed> {
    let mut speeds = Vec::new();
    for (name, encrypt) in [("ring of 5", false), ("ring of 5, sealed", true)] {
        let began = cpu();
        let mut world = loaded(5, 0, LOAD, encrypt);
        world.run_until(world.now + Duration::from_secs(10));
        let (simulated, events) = (Duration::from_secs(10), world.events);
        speeds.push(Speed { name, simulated, took: cpu().saturating_sub(began), events });
    }
    let began = cpu();
    let report = run_plan(1, crate::plan::Plan::loaded(5), Options::default());
    speeds.push(of_reports("domain of 5", began, &[report]));
    for (name, scope) in [("seeds, rings", Scope::Ring), ("seeds, domains", Scope::Domain)] {
        let began = cpu();
        let options = Options { scope, ..Options::default() };
        let reports: Vec<_> = (1..=100).map(|seed| run(seed, options)).collect();
        speeds.push(of_reports(name, began, &reports));
    }
    speeds
}

fn of_reports(name: &'static str, began: Duration, reports: &[crate::Report]) -> Speed {
    let took = cpu().saturating_sub(began);
    let figures = reports.iter().flat_map(|report| &report.figures);
    let events = figures.filter(|(name, _)| *name == "events").map(|(_, count)| count).sum();
    Speed { name, simulated: reports.iter().map(|r| r.simulated).sum(), took, events }
}

/// What a ring of one size costs.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Nodes of the domain, all of them in the ring.
    pub nodes: usize,
    /// Virtual time from the start of the nodes to one ring of all, with no loss and with 2 %.
    pub formed: [Option<Duration>; 2],
    /// Mean time of a rotation under load.
    pub rotation: Duration,
    /// Datagrams per message, all nodes together; a multicast counts once.
    pub datagrams: f64,
    /// Bytes of datagrams per message, likewise.
    pub bytes: f64,
    /// Processor time per message, of all nodes and the simulator.
    pub cpu: Duration,
}

/// Measures a ring of `nodes`; `None` if it does not form even without loss.
#[must_use]
pub fn cost(nodes: usize) -> Option<Cost> {
    let lossy = form(&mut loaded(nodes, 20, 0, false));
    let mut world = loaded(nodes, 0, LOAD, false);
    let formed = form(&mut world)?;
    // Until the first burst is over and rotations are measured.
    world.run_until(world.now + ms(500));
    let (datagrams, bytes) = world.sent();
    let messages: usize = world.lives.iter().map(|life| life.submitted.len()).sum();
    let began = cpu();
    let mut rotations = Vec::new();
    let end = world.now + MEASURED;
    while world.now < end {
        world.run_until(world.now + ms(50));
        rotations.extend(world.snapshot(0).map(|snapshot| snapshot.rotation));
    }
    let took = cpu().saturating_sub(began);
    let sent: usize = world.lives.iter().map(|life| life.submitted.len()).sum();
    let messages = (sent - messages).max(1);
    let (datagrams, bytes) = (world.sent().0 - datagrams, world.sent().1 - bytes);
    Some(Cost {
        nodes,
        formed: [Some(formed), lossy],
        rotation: rotations.iter().sum::<Duration>() / rotations.len().max(1) as u32,
        datagrams: datagrams as f64 / messages as f64,
        bytes: bytes as f64 / messages as f64,
        cpu: took / messages as u32,
    })
}

/// Lets time pass until all nodes are in one ring.
fn form(world: &mut RingWorld) -> Option<Duration> {
    let began = world.now;
    while !is_whole(world) {
        if world.now.since(began) > FORM_WITHIN {
            return None;
        }
        world.run_until(world.now + ms(1));
    }
    Some(Instant::since(world.now, began))
}

fn is_whole(world: &RingWorld) -> bool {
    (0..world.plan.nodes).all(|node| {
        world.snapshot(node).is_some_and(|snapshot| {
            let all = snapshot.members.len() == world.plan.nodes;
            all && snapshot.state == StateName::Operational
        })
    })
}

/// Rings without faults but loss, under a steady load of messages a second.
fn loaded(nodes: usize, loss: u64, load: u64, encrypt: bool) -> RingWorld {
    let every_us = (1_000_000 * nodes as u64).checked_div(load).unwrap_or(1_000_000_000);
    let plan = RingPlan {
        nodes,
        encrypt,
        accelerated: false,
        circulates: false,
        datagram_bytes_max: 1400,
        safety: Duration::ZERO,
        links: LinkPlan { loss, delay_us: (20, 60), ..LinkPlan::default() },
        faults: Vec::new(),
        fault_every_us: 1_000_000,
        drift_ppm: 0,
        submit_every_us: every_us,
        burst: 1,
        bytes_max: 1,
        bytes_more: MESSAGE_BYTES as usize,
        safe: 0,
        big: 0,
        messages_max: usize::MAX,
        spells: false,
    };
    RingWorld::new(1, plan, Transcript::new(false, false))
}
