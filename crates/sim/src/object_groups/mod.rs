//! The replication manager alone: its members, what they do beside, the domain that it calls,
//! factories of an application, and clients, while processes, nodes and servers end and come back.
//!
//! What it is not: a group ([`crate::ordered`] has the order of its calls), or a node: the domain
//! is the table by which the manager itself is tested. The manager, and the part of it that says
//! when it is to look, are those that ship.
//!
//! Invariant: as for the domain, a run is a function of its seed.

mod check;
mod domain;
mod judge;
mod model;
mod nemesis;
mod nodes;
mod operation;
mod plan;
mod values;
mod world;

use crate::ordered;
use crate::report::{Report, Scope};
use crate::run::Options;
use crate::transcript::Transcript;
use plan::GroupsPlan;
use world::World;

/// Runs a seed.
pub(crate) fn run(seed: u64, options: Options) -> Report {
    let plan = GroupsPlan::draw(seed);
    let line = format!("{plan:?}");
    let transcript = Transcript::new(options.transcript, options.verbose);
    ordered::play(Scope::Manager, seed, line, World::new(seed, plan, transcript))
}
