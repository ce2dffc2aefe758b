//! A run of a service alone: faults, then peace, then judgement.
//!
//! Invariant: a report is a function of the seed, the options and the commit.

use super::Ordered;
use crate::report::{Report, Scope, words_of};
use quorba_base::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// After the last fault everything must have arrived within this time, in microseconds.
const SETTLE_WITHIN_US: u64 = 60_000_000;

/// A world that is played and judged.
pub(crate) trait Judged: Ordered {
    /// How long things go wrong.
    fn safety_us(&self) -> u64;
    /// From now on nothing goes wrong.
    fn make_peace(&mut self);
    /// What is still to come, once there are no more faults.
    fn unsettled(&self) -> Option<String>;
    /// Judges.
    fn conclude(&mut self);
    fn figures(&self) -> Vec<(&'static str, u64)>;
}

/// Plays it to its end.
pub(crate) fn play(scope: Scope, seed: u64, plan: String, mut world: impl Judged) -> Report {
    let mut settled_after = Duration::ZERO;
    let ended = catch_unwind(AssertUnwindSafe(|| settled_after = settle(&mut world)));
    if let Err(panic) = ended {
        let text = format!("the service panicked: {}", words_of(&*panic));
        world.violate("no panic", text);
    }
    let figures = world.figures();
    let group = world.group_mut();
    let text = group.transcript.take_text();
    Report {
        scope,
        seed,
        digest: group.transcript.digest(),
        simulated: Duration::from_micros(group.now_us),
        settled_after,
        figures,
        plan,
        violations: std::mem::take(&mut group.violations),
        transcript: text,
    }
}

fn settle(world: &mut impl Judged) -> Duration {
    world.run_until(world.safety_us());
    world.make_peace();
    let peace_at = world.group().now_us;
    while world.group().violations.is_empty() {
        let now = world.group().now_us;
        let Some(missing) = world.unsettled() else {
            // What is still on its way arrives.
            world.run_until(now + 2_000_000);
            world.conclude();
            return Duration::from_micros(now - peace_at);
        };
        if now - peace_at >= SETTLE_WITHIN_US {
            let seconds = SETTLE_WITHIN_US / 1_000_000;
            world.violate("liveness", format!("not well after {seconds} s: {missing}"));
        }
        world.run_until(now + 5_000);
    }
    Duration::from_micros(world.group().now_us - peace_at)
}
