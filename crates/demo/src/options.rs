//! What `quorba demo` is asked for, and what it answers.
//!
//! What it is not: flags. The command line is the CLI's; these are its plain values.
//!
//! Invariant: an outcome is clean only if the accounting is, and no node died by itself.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use quorba_base::policy::Style;
use serde::Serialize;

use crate::accounting::Account;

/// Where a run of the demo shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// A live picture with keys on the terminal (standard error); plain lines if there is none.
    Picture,
    /// Plain lines on standard error, without keys.
    Lines,
    /// Nothing.
    Quiet,
}

/// What to demonstrate.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// Nodes, each with one replica of the bank: 3 to [`NODES_MAX`].
    pub nodes: usize,
    /// Clients, each with a connection of its own: 1 to [`CLIENTS_MAX`].
    pub clients: usize,
    /// Calls per second of all clients together; 0 is as fast as they can.
    pub calls_per_s: u32,
    /// How long the load runs; none: until a key or a signal ends it.
    pub run_for: Option<Duration>,
    /// How often something is killed; none: never, unless by key.
    pub kill_every: Option<Duration>,
    /// Whether clients repeat calls of unknown outcome under their FT_REQUEST identity. Without,
    /// they are like an unmodified client: such a call raises COMM_FAILURE COMPLETED_MAYBE.
    pub ft_request: bool,
    /// How the replicas share the work.
    pub style: Style,
    /// Whether the group is durable: then the whole domain is killed, too.
    pub durable: bool,
    /// Seed of the load's and the kills' choices.
    pub seed: u64,
    /// How the run shows itself.
    pub show: Show,
    /// The `quorba` program, for the nodes; none: the program that runs.
    pub program: Option<PathBuf>,
}

/// The most nodes of a demo.
pub const NODES_MAX: usize = 9;
/// The most clients of a demo.
pub const CLIENTS_MAX: usize = 64;
/// How often something is killed where chaos is wanted and no interval given.
pub const KILL_EVERY_DEFAULT: Duration = Duration::from_secs(3);

/// The shortest interval between two kills.
pub const KILL_EVERY_MIN: Duration = Duration::from_millis(100);

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            nodes: 3,
            clients: 8,
            calls_per_s: 500,
            run_for: None,
            kill_every: None,
            ft_request: false,
            style: Style::Active,
            durable: false,
            seed: 1,
            show: Show::Picture,
            program: None,
        }
    }
}

impl DemoOptions {
    /// Members share no state, so that there is none to compare.
    pub(crate) fn is_stateless(&self) -> bool {
        self.style == Style::Stateless
    }

    /// Whether every option is in its range.
    pub(crate) fn check(&self) -> Result<(), DemoError> {
        let fault = if !(3..=NODES_MAX).contains(&self.nodes) {
            format!("the demo runs 3 to {NODES_MAX} nodes: with fewer, no crash is survived")
        } else if !(1..=CLIENTS_MAX).contains(&self.clients) {
            format!("the demo runs 1 to {CLIENTS_MAX} clients")
        } else if self.durable && self.is_stateless() {
            "a stateless group keeps nothing, so it cannot be durable".to_owned()
        } else if self.kill_every.is_some_and(|every| every < KILL_EVERY_MIN) {
            format!("kills need at least {} ms between them", KILL_EVERY_MIN.as_millis())
        } else {
            return Ok(());
        };
        Err(DemoError::Option { fault })
    }
}

/// What a run of the demo came to. As JSON it is the one object that `quorba demo -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemoOutcome {
    /// Calls that the clients made.
    pub requests: u64,
    /// Calls that were answered.
    pub acknowledged: u64,
    /// Answered calls that no replica has: 0, or a promise is broken.
    pub lost: u64,
    /// Calls that a replica executed twice: 0, or a promise is broken.
    pub doubled: u64,
    /// Calls of unknown outcome (COMPLETED_MAYBE).
    pub maybe: u64,
    /// Processes that were killed by SIGKILL: bank servers and nodes.
    pub kills: u64,
    /// The longest time without an answer to any client, in milliseconds.
    pub longest_gap_ms: f64,
    /// Median time of an answered call, in microseconds.
    pub p50_us: u64,
    /// 99th percentile of it, in microseconds.
    pub p99_us: u64,
    /// Whether all replicas ended with the same history, balances, counter and octets of state;
    /// false for a stateless group, whose members are not compared (`account.replicas_compared`).
    pub replicas_equal: bool,
    /// Calls that were refused with COMPLETED_NO.
    pub refused: u64,
    /// From the command to all members in, in milliseconds.
    pub ready_ms: u64,
    /// Node processes that ended without being told to.
    pub unexpected_exits: u64,
    /// Everything that was counted.
    pub account: Account,
}

impl DemoOutcome {
    /// Whether every promise was kept: the command's exit code is 0 then.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.account.is_clean() && self.unexpected_exits == 0
    }
}

impl fmt::Display for DemoOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, acknowledged, lost, doubled, maybe, kills, refused, .. } = self;
        writeln!(f, "{kills} kills, {requests} calls, {acknowledged} acknowledged")?;
        writeln!(f, "lost {lost}   doubled {doubled}   unknown {maybe}   refused {refused}")?;
        writeln!(
            f,
            "longest gap {:.1} ms   p50 {} µs   p99 {} µs",
            self.longest_gap_ms, self.p50_us, self.p99_us
        )?;
        if self.account.replicas_compared {
            let equal = if self.replicas_equal { "equal" } else { "NOT EQUAL" };
            write!(f, "replicas {equal}")?;
        } else {
            let Account { held, executed_elsewhere, executed_again, .. } = &self.account;
            write!(
                f,
                "{held} calls after the last kill, each executed by one member; before it, \
                 {executed_elsewhere} by servers that have ended, {executed_again} more than once"
            )?;
        }
        if self.unexpected_exits > 0 {
            write!(f, "\n{} nodes ended without being told to", self.unexpected_exits)?;
        }
        for difference in &self.account.differences {
            write!(f, "\n! {difference}")?;
        }
        Ok(())
    }
}

/// Why the demo could not run to its end.
#[derive(Debug)]
pub enum DemoError {
    /// An option is out of its range: the caller's fault.
    Option {
        /// What is wrong with it.
        fault: String,
    },
    /// The machine did not give what the demo needs.
    System {
        /// What the demo was about to do.
        doing: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The nodes did not become one group in time.
    NotReady {
        /// What they said, and the ends of their logs.
        standing: String,
        /// How long the demo waited.
        waited: Duration,
    },
    /// A signal ended it before there was anything to account for.
    Interrupted,
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option { fault } => f.write_str(fault),
            Self::System { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::NotReady { standing, waited } => {
                write!(f, "the group was not whole after {:.1} s\n{standing}", waited.as_secs_f64())
            }
            Self::Interrupted => f.write_str("interrupted before the group was ready"),
        }
    }
}

impl std::error::Error for DemoError {}

impl DemoError {
    /// Wraps the system's reason with what was being done.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
