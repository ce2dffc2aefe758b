//! The ring alone: many rings, senders that want agreed and safe delivery, and every property of
//! extended virtual synchrony (Moser94) as a checker of its own.
//!
//! What it is not: a replicated service; what an ordered message means is the domain's business.
//! Here what is delivered is looked at itself, message by message and view by view, so that more
//! can be seen. Invariant: as for the domain, a run is a function of its seed.

mod check;
mod gray;
mod life;
mod nemesis;
mod plan;
mod world;

pub(crate) use plan::RingPlan;
pub(crate) use world::RingWorld;

use crate::report::{Report, Scope, words_of};
use crate::run::Options;
use crate::transcript::Transcript;
use crate::world::ms;
use quorba_base::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// After the last fault, one ring within this time: some hundred times the shortest token loss
/// time, because patience that grew while rings kept failing must run out first.
const SETTLE_WITHIN: Duration = Duration::from_secs(25);

/// A ring of all that lasts this long will last.
const LASTS: Duration = Duration::from_millis(250);

/// Runs a seed.
pub(crate) fn run(seed: u64, options: Options) -> Report {
    let plan = RingPlan::draw(seed);
    let line = format!("{plan:?}");
    let transcript = Transcript::new(options.transcript, options.verbose);
    let mut world = RingWorld::new(seed, plan, transcript);
    let begin = world.now;
    let mut settled_after = Duration::ZERO;
    let ended = catch_unwind(AssertUnwindSafe(|| settled_after = play(&mut world)));
    if let Err(panic) = ended {
        let text = format!("a ring panicked: {}", words_of(&*panic));
        world.violate("no panic", text);
    }
    let delivered = world.lives.iter().map(|life| life.got.len() as u64).sum();
    let submitted = world.lives.iter().map(|life| life.submitted.len() as u64).sum();
    let views = world.lives.iter().map(|life| life.views.len() as u64).sum();
    Report {
        scope: Scope::Ring,
        seed,
        digest: world.transcript.digest(),
        simulated: world.now.since(begin),
        settled_after,
        figures: vec![
            ("events", world.events),
            ("messages", submitted),
            ("deliveries", delivered),
            ("views", views),
            ("crashes", world.crashes),
        ],
        plan: line,
        violations: world.violations,
        transcript: world.transcript.take_text(),
    }
}

fn play(world: &mut RingWorld) -> Duration {
    let peace_at = world.now + world.plan.safety;
    world.run_until(peace_at);
    world.make_peace();
    let limit = world.now + SETTLE_WITHIN;
    loop {
        let missing = match world.unsettled() {
            Some(missing) => {
                world.run_until(world.now + ms(5));
                missing
            }
            None => {
                let (settled, ring) = (world.now.since(peace_at), world.ring());
                // What is still on its way arrives, and the last acknowledgements go round.
                world.run_until(world.now + LASTS);
                if world.violations.is_empty() && world.ring() == ring {
                    check::conclude(world);
                    return settled;
                }
                "rings of all do not last".into()
            }
        };
        if world.violations.is_empty() && world.now >= limit {
            let seconds = SETTLE_WITHIN.as_secs();
            world.violate("liveness", format!("not one ring after {seconds} s: {missing}"));
        }
        if !world.violations.is_empty() {
            return world.now.since(peace_at);
        }
    }
}
