//! One run: faults, then peace, then judgement.

use crate::channels;
use crate::ledger::Outcome;
use crate::object_groups;
use crate::plan::Plan;
use crate::report::{Report, Scope, words_of};
use crate::reports;
use crate::ring;
use crate::transcript::Transcript;
use crate::world::{World, ms};
use quorba_base::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// After the last fault, everything must be well within this virtual time.
const SETTLE_WITHIN: Duration = Duration::from_secs(150);

/// What is wanted beside the verdict.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// What is simulated.
    pub scope: Scope,
    /// Write the transcript.
    pub transcript: bool,
    /// With every single input and call.
    pub verbose: bool,
    /// A known bug to be found.
    pub server_bug: Option<ServerBug>,
}

/// A known bug of a server, to show that the checkers find such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerBug {
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
    /// A naming service that is brought up to date lacks a name.
    LosesNameInTransfer,
    /// A naming service resolves to what was bound before.
    ResolvesLate,
}

impl ServerBug {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::ExecutesTwice,
        Self::SkipsOnOneNode,
        Self::Lies,
        Self::ForgetsInTransfer,
        Self::RefusesAfterExecution,
        Self::LosesNameInTransfer,
        Self::ResolvesLate,
    ];
}

/// Runs a seed. The same seed and options give the same report, to the byte.
#[must_use]
pub fn run(seed: u64, options: Options) -> Report {
    match options.scope {
        Scope::Domain => {
            run_plan(seed, Plan::draw(seed).expiring(seed).with_odd(seed).staggered(seed), options)
        }
        Scope::Styles => run_plan(
            seed,
            Plan::draw_styles(seed).expiring(seed).with_odd(seed).staggered(seed),
            options,
        ),
        Scope::Calls => run_plan(
            seed,
            Plan::draw_calls(seed).expiring(seed).with_odd(seed).staggered(seed),
            options,
        ),
        Scope::Backups => run_plan(
            seed,
            Plan::draw_backups(seed).expiring(seed).with_odd(seed).staggered(seed),
            options,
        ),
        Scope::Groups => run_plan(seed, Plan::draw_groups(seed).expiring(seed), options),
        Scope::Names => run_plan(seed, Plan::draw_names(seed).expiring(seed), options),
        Scope::Depths => run_plan(seed, Plan::draw_depths(seed).expiring(seed), options),
        Scope::Ring => ring::run(seed, options),
        Scope::Events => channels::run(seed, options),
        Scope::Notifier => reports::run(seed, options),
        Scope::Manager => object_groups::run(seed, options),
    }
}

/// Runs a domain by any plan.
pub(crate) fn run_plan(seed: u64, plan: Plan, options: Options) -> Report {
    let line = format!("{plan:?}");
    let transcript = Transcript::new(options.transcript, options.verbose);
    let mut world = World::new(seed, plan, transcript);
    let begin = world.now;
    let mut settled_after = Duration::ZERO;
    let ended = catch_unwind(AssertUnwindSafe(|| {
        settled_after = play(&mut world, options);
    }));
    if let Err(panic) = ended {
        let text = format!("a room panicked: {}", words_of(&*panic));
        world.checks.violate("no panic", world.now, text);
    }
    let dead = world.checks.groups.iter().filter(|group| group.dead).count();
    let gateways = world.snapshots().into_iter().flatten().flat_map(|node| node.gateway.groups);
    let reads = gateways.map(|(_, group)| group.reads).sum();
    let acknowledged = world.ledger.count(|o| matches!(o, Outcome::Acknowledged { .. }));
    Report {
        scope: options.scope,
        seed,
        digest: world.transcript.digest(),
        simulated: world.now.since(begin),
        settled_after,
        figures: vec![
            ("events", world.events),
            ("calls", world.ledger.calls.len() as u64),
            ("acknowledged", acknowledged as u64),
            ("of unknown outcome", world.ledger.count(|o| *o == Outcome::Unknown) as u64),
            ("reads past the order", reads),
            ("calls of servers", world.hearsay.made),
            ("of these refused", world.hearsay.refused),
            ("of these outside", world.hearsay.outside.len() as u64),
            ("of these in doubt", world.hearsay.doubts),
            ("reads beside a call", world.hearsay.beside),
            ("crashes", world.checks.crashes),
            ("server ends", world.checks.server_ends),
            ("calls without a reply", world.checks.endings.ended),
            ("processes ended by calls", world.checks.endings.died),
            ("members at fault", world.checks.endings.faults),
            ("excused losses", world.checks.losses),
            ("dead groups", dead as u64),
            ("of these with a server that has all", world.dead_in_vain() as u64),
            ("deep calls", world.checks.depths.checked),
            ("backups", world.backups.taken),
            ("nodes that saw a restore", world.backups.restores),
        ],
        plan: line,
        violations: world.checks.violations,
        transcript: world.transcript.take_text(),
    }
}

/// Returns how long it took until all was well again.
fn play(world: &mut World, options: Options) -> Duration {
    world.set_server_bug(options.server_bug);
    let settled_after = come_to_peace(world);
    if world.checks.violations.is_empty() {
        world.conclude();
    }
    let has_styles =
        matches!(options.scope, Scope::Styles | Scope::Calls | Scope::Backups | Scope::Names);
    if has_styles && world.checks.violations.is_empty() {
        // What members keep without executing it is seen when they have to.
        world.end_leaders();
        settle(world);
        if world.checks.violations.is_empty() {
            world.conclude();
        }
    }
    if world.plan.disk.is_some() && world.checks.violations.is_empty() {
        // What was acknowledged is on disks.
        world.end_all_nodes();
        settle(world);
        if world.checks.violations.is_empty() {
            world.conclude();
        }
    }
    if !world.checks.violations.is_empty() {
        world.tell_of_endings();
    }
    settled_after
}

/// Plays until there are no more faults and all is well; how long that took then.
pub(crate) fn come_to_peace(world: &mut World) -> Duration {
    let peace_at = world.now + world.plan.safety;
    world.run_until(peace_at);
    world.make_peace();
    settle(world)
}

/// Lets time pass until all is well; how long that took.
fn settle(world: &mut World) -> Duration {
    let begin = world.now;
    let within = SETTLE_WITHIN + world.plan.longest_replay();
    let limit = world.now + within;
    let mut settled = Duration::ZERO;
    while world.checks.violations.is_empty() {
        let Some(missing) = world.unsettled() else {
            settled = world.now.since(begin);
            // What is still on its way arrives; a group that was dead may come back with it.
            world.run_until(world.now + ms(500));
            if world.unsettled().is_none() {
                break;
            }
            continue;
        };
        if world.now >= limit {
            let text = format!("not well after {} s: {missing}", within.as_secs());
            world.checks.violate("liveness", world.now, text);
            return within;
        }
        world.run_until(world.now + ms(20));
    }
    settled
}
