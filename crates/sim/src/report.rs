//! What came of a run: the verdict, and figures for people and machines.
//!
//! Invariant: a report is a function of the seed, the options and the commit.

use quorba_base::Duration;
use std::any::Any;
use std::fmt;

/// What is simulated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Scope {
    /// Whole nodes, their servers, and clients.
    #[default]
    Domain,
    /// Rings alone.
    Ring,
    /// Whole nodes whose groups have every style, and operators who change it.
    Styles,
    /// Whole nodes whose groups call each other, in every style.
    Calls,
    /// As with styles, and operators take backups of groups and put them back.
    Backups,
    /// As with styles, and operators create, change and delete groups.
    Groups,
    /// As with styles, and servers keep what clients append in a naming service.
    Names,
    /// As with styles, and clients say how many members must have executed their calls.
    Depths,
    /// The event service alone, its suppliers and its consumers.
    Events,
    /// The fault notifier alone, who reports faults, and its consumers.
    Notifier,
    /// The replication manager alone, its clients, and the domain that it calls.
    Manager,
}

impl Scope {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Domain,
        Self::Ring,
        Self::Styles,
        Self::Calls,
        Self::Backups,
        Self::Groups,
        Self::Names,
        Self::Depths,
        Self::Events,
        Self::Notifier,
        Self::Manager,
    ];

    /// How the command line calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Domain => "domain",
            Self::Ring => "ring",
            Self::Styles => "styles",
            Self::Calls => "calls",
            Self::Backups => "backups",
            Self::Groups => "groups",
            Self::Names => "names",
            Self::Depths => "depths",
            Self::Events => "events",
            Self::Notifier => "notifier",
            Self::Manager => "manager",
        }
    }
}

/// The names of all checkers. Each is found by a planted bug, or by a forged history.
pub const INVARIANTS: &[&str] = &[
    "acknowledged",
    "answers",
    "at least once",
    "at most once",
    "backup",
    "basic delivery",
    "calls",
    "calls of the domain",
    "catalog",
    "causal delivery",
    "configuration changes",
    "cut off",
    "depth",
    "divergence",
    "endings",
    "equality",
    "events exact",
    "events kept",
    "events once",
    "events order",
    "events wanted",
    "exactly once",
    "failure atomicity",
    "groups",
    "held",
    "last server",
    "linearizability",
    "liveness",
    "members",
    "memory",
    "moments",
    "no panic",
    "numbers",
    "objects",
    "one order",
    "one primary",
    "poor links",
    "real time",
    "replies",
    "reports answered",
    "reports kept",
    "reports once",
    "reports order",
    "reports wanted",
    "restore",
    "safe delivery",
    "self-delivery",
    "session",
    "storm",
    "total order",
    "versions",
];

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which one, by the name of its checker.
    pub invariant: &'static str,
    /// Virtual nanoseconds.
    pub at_ns: u64,
    /// How.
    pub text: String,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was simulated.
    pub scope: Scope,
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
    /// How much of what happened, by name.
    pub figures: Vec<(&'static str, u64)>,
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

    /// How this run is done again.
    #[must_use]
    pub fn replay(&self) -> String {
        format!("quorba sim --scope {} --seed {}", self.scope.name(), self.seed)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simulated = self.simulated.as_secs_f64();
        write!(f, "{} seed {}: {simulated:.1} s simulated", self.scope.name(), self.seed)?;
        for (name, count) in &self.figures {
            write!(f, ", {count} {name}")?;
        }
        write!(f, ", settled after {:.2} s", self.settled_after.as_secs_f64())?;
        for violation in &self.violations {
            let seconds = violation.at_ns as f64 / 1e9;
            write!(f, "\n  BROKEN {} at {seconds:.6}: {}", violation.invariant, violation.text)?;
        }
        if !self.is_good() {
            write!(f, "\n  plan: {}\n  replay: {}", self.plan, self.replay())?;
        }
        Ok(())
    }
}

/// What a panic said.
pub(crate) fn words_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no words")
}
