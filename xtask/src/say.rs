//! How steps are reported: one line each, then one line that sums them up.
//!
//! What it is not: a log. These lines are the result.
//!
//! Invariant: what was not done is never silent, and only a failure makes the exit code differ.

use std::process::ExitCode;

use quorba_lab::skips::skip;

/// How one step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing had to be done.
    Present,
    /// It was done now.
    Done,
    /// It cannot be had on this machine; whoever needs it goes without.
    Skipped(String),
    /// It should have worked, and did not.
    Failed(String),
}

/// The steps of one command.
pub(crate) struct Steps {
    command: &'static str,
    present: usize,
    done: usize,
    skipped: usize,
    failed: usize,
}

impl Steps {
    pub(crate) const fn new(command: &'static str) -> Self {
        Self { command, present: 0, done: 0, skipped: 0, failed: 0 }
    }

    /// Prints how the step `name` ended, and counts it.
    pub(crate) fn add(&mut self, name: &str, outcome: &Outcome) {
        match outcome {
            Outcome::Present => {
                self.present += 1;
                println!("present: {name}");
            }
            Outcome::Done => {
                self.done += 1;
                println!("done: {name}");
            }
            Outcome::Skipped(reason) => {
                self.skipped += 1;
                skip(name, reason);
            }
            Outcome::Failed(reason) => {
                self.failed += 1;
                println!("failed: {name}: {reason}");
            }
        }
    }

    /// Prints the sum. Failure if any step failed.
    pub(crate) fn finish(self) -> ExitCode {
        let Self { command, present, done, skipped, failed } = self;
        println!("{command}: {present} present, {done} done, {skipped} skipped, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
