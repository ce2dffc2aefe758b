//! The fault notifier alone: its members, what they do beside, the news of their nodes, clients
//! that report faults, and consumers, while processes and nodes end, are cut off and come back.
//!
//! What it is not: a group ([`crate::ordered`] has the order of its calls). Members, what they tell
//! and what the one that leads does for consumers are those that ship; who calls whom, and when, is
//! drawn.
//!
//! Invariant: as for the domain, a run is a function of its seed.

mod check;
mod consumers;
mod fault;
mod member;
mod model;
mod nemesis;
mod nodes;
mod operation;
mod plan;
mod world;

use crate::ordered;
use crate::report::{Report, Scope};
use crate::run::Options;
use crate::transcript::Transcript;
use plan::ReportsPlan;
use world::World;

/// Runs a seed.
pub(crate) fn run(seed: u64, options: Options) -> Report {
    let plan = ReportsPlan::draw(seed);
    let line = format!("{plan:?}");
    let transcript = Transcript::new(options.transcript, options.verbose);
    ordered::play(Scope::Notifier, seed, line, World::new(seed, plan, transcript))
}
