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
mod order;
mod peers;
mod plan;
mod world;

use crate::report::{Report, Scope, words_of};
use crate::run::Options;
use crate::transcript::Transcript;
use plan::ChannelsPlan;
use quorba_base::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::World;

/// After the last fault everything must have arrived within this time, in microseconds.
const SETTLE_WITHIN_US: u64 = 60_000_000;

/// Runs a seed.
pub(crate) fn run(seed: u64, options: Options) -> Report {
    let plan = ChannelsPlan::draw(seed);
    let line = format!("{plan:?}");
    let transcript = Transcript::new(options.transcript, options.verbose);
    let mut world = World::new(seed, plan, transcript);
    let mut settled_after = Duration::ZERO;
    let ended = catch_unwind(AssertUnwindSafe(|| settled_after = play(&mut world)));
    if let Err(panic) = ended {
        let text = format!("the event service panicked: {}", words_of(&*panic));
        world.violate("no panic", text);
    }
    let figures = world.figures();
    Report {
        scope: Scope::Events,
        seed,
        digest: world.transcript.digest(),
        simulated: Duration::from_micros(world.now_us),
        settled_after,
        figures,
        plan: line,
        violations: world.violations,
        transcript: world.transcript.into_text(),
    }
}

fn play(world: &mut World) -> Duration {
    world.run_until(world.plan.safety_us);
    world.make_peace();
    let peace_at = world.now_us;
    while world.violations.is_empty() {
        let Some(missing) = world.unsettled() else {
            let settled = world.now_us - peace_at;
            // What is still on its way arrives.
            world.run_until(world.now_us + 2_000_000);
            check::conclude(world);
            return Duration::from_micros(settled);
        };
        if world.now_us - peace_at >= SETTLE_WITHIN_US {
            let seconds = SETTLE_WITHIN_US / 1_000_000;
            world.violate("liveness", format!("not well after {seconds} s: {missing}"));
        }
        world.run_until(world.now_us + 5_000);
    }
    Duration::from_micros(world.now_us - peace_at)
}
