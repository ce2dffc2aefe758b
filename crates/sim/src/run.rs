//! One run: faults, then peace, then judgement.

use crate::check::Violation;
use crate::ledger::Outcome;
use crate::plan::Plan;
use crate::transcript::Transcript;
use crate::world::{World, ms};
use quorba_base::Duration;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// After the last fault, everything must be well within this virtual time.
const SETTLE_WITHIN: Duration = Duration::from_secs(150);

/// What is wanted beside the verdict.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// Write the transcript.
    pub transcript: bool,
    /// With every single input and call.
    pub verbose: bool,
    /// A known bug to be found.
    pub canary: Option<Canary>,
}

/// A known bug of a server, to show that the checkers find such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Canary {
    /// Every server executes some requests twice.
    ExecutesTwice,
    /// The server on the first node leaves some requests out.
    SkipsOnOneNode,
    /// Replies speak of another history than the one that caused them.
    Lies,
    /// A server that is brought up to date forgets the last request.
    ForgetsInTransfer,
    /// Calls are refused as not executed after they were executed.
    RefusesAfterExecution,
}

impl Canary {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::ExecutesTwice,
        Self::SkipsOnOneNode,
        Self::Lies,
        Self::ForgetsInTransfer,
        Self::RefusesAfterExecution,
    ];
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which run.
    pub seed: u64,
    /// Of everything that happened; equal digests mean equal runs.
    pub digest: u64,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    /// Virtual time that passed.
    pub simulated: Duration,
    /// Virtual time from the last fault until all was well.
    pub settled_after: Duration,
    /// Events that happened.
    pub events: u64,
    /// Calls that clients made.
    pub calls: usize,
    /// Those that were answered.
    pub acknowledged: usize,
    /// Those whose outcome their clients do not know.
    pub unknown: usize,
    /// Node processes that ended.
    pub crashes: u64,
    /// Server processes that ended.
    pub server_ends: u64,
    /// Times that state was lost beyond what the fault model promises to keep.
    pub losses: u64,
    /// Groups that ended without any member that has the state.
    pub dead_groups: usize,
    /// What the seed stands for, in one line.
    pub plan: String,
    /// If it was asked for.
    pub transcript: Option<String>,
}

impl Report {
    /// Whether every promise held.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {:.1} s simulated, {} events, {} calls ({} acknowledged, {} unknown), {} \
             crashes, {} server ends, settled after {:.2} s",
            self.seed,
            self.simulated.as_secs_f64(),
            self.events,
            self.calls,
            self.acknowledged,
            self.unknown,
            self.crashes,
            self.server_ends,
            self.settled_after.as_secs_f64(),
        )?;
        for violation in &self.violations {
            let seconds = violation.at_ns as f64 / 1e9;
            write!(f, "\n  BROKEN {} at {seconds:.6}: {}", violation.invariant, violation.text)?;
        }
        if !self.is_good() {
            write!(f, "\n  plan: {}\n  replay: quorba sim --seed {}", self.plan, self.seed)?;
        }
        Ok(())
    }
}

/// Runs a seed. The same seed and options give the same report, to the byte.
#[must_use]
pub fn run(seed: u64, options: Options) -> Report {
    let plan = Plan::draw(seed);
    let line = format!("{plan:?}");
    let transcript = Transcript::new(options.transcript, options.verbose);
    let mut world = World::new(seed, plan, transcript);
    let begin = world.now;
    let mut settled_after = Duration::ZERO;
    let ended = catch_unwind(AssertUnwindSafe(|| {
        settled_after = play(&mut world, options);
    }));
    if let Err(panic) = ended {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no words");
        world.checks.violate("no panic", world.now, format!("a room panicked: {text}"));
    }
    Report {
        seed,
        digest: world.transcript.digest(),
        violations: world.checks.violations,
        simulated: world.now.since(begin),
        settled_after,
        events: world.events,
        calls: world.ledger.calls.len(),
        acknowledged: world.ledger.count(|o| matches!(o, Outcome::Acknowledged { .. })),
        unknown: world.ledger.count(|o| *o == Outcome::Unknown),
        crashes: world.checks.crashes,
        server_ends: world.checks.server_ends,
        losses: world.checks.losses,
        dead_groups: world.checks.groups.iter().filter(|group| group.dead).count(),
        plan: line,
        transcript: world.transcript.into_text(),
    }
}

/// Returns how long it took until all was well again.
fn play(world: &mut World, options: Options) -> Duration {
    world.set_canary(options.canary);
    let peace_at = world.now + world.plan.safety;
    world.run_until(peace_at);
    world.make_peace();
    let limit = world.now + SETTLE_WITHIN;
    while world.checks.violations.is_empty() {
        let Some(missing) = world.unsettled() else { break };
        if world.now >= limit {
            let text = format!("not well after {} s: {missing}", SETTLE_WITHIN.as_secs());
            world.checks.violate("liveness", world.now, text);
            return SETTLE_WITHIN;
        }
        world.run_until(world.now + ms(20));
    }
    let settled = world.now.since(peace_at);
    // What is still on its way arrives; then nothing may move any more.
    world.run_until(world.now + ms(500));
    if world.checks.violations.is_empty() {
        world.conclude();
    }
    settled
}
