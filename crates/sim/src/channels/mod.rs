//! The event service alone: its members, what drives them, and suppliers and consumers, while
//! members end, are cut off and come back.
//!
//! What it is not: a group. The order of calls is a list here, of which each member has a part and
//! a majority holds a part; the other scopes prove that the engine's order is such a one. Members,
//! channels and what they decide are those that ship; who calls whom, and when, is drawn.
//!
//! Invariant: as for the domain, a run is a function of its seed.

mod check;
mod driver;
mod nemesis;
mod operation;
mod past;
mod peers;
mod plan;
mod world;

use crate::ordered;
use crate::report::{Report, Scope};
use crate::run::Options;
use crate::transcript::Transcript;
use plan::ChannelsPlan;
use world::World;

/// Runs a seed.
pub(crate) fn run(seed: u64, options: Options) -> Report {
    let plan = ChannelsPlan::draw(seed);
    let line = format!("{plan:?}");
    let transcript = Transcript::new(options.transcript, options.verbose);
    ordered::play(Scope::Events, seed, line, World::new(seed, plan, transcript))
}
