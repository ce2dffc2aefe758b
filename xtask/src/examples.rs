//! `cargo xtask examples`: builds the examples into `target/examples/`.
//!
//! What it is not: a build system. `make` and Maven build; this knows where, and whether at all.
//!
//! Invariants: nothing is written into the source tree; what is up to date costs no build.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use crate::say::{Outcome, Steps};
use crate::workspace;

/// The last lines of a failed build that are shown.
const FAILURE_LINES: usize = 15;
/// What Maven says when its repository does not answer, or it was told not to ask.
const UNFETCHED: [&str; 3] =
    ["Could not transfer artifact", "Cannot access", "Could not resolve dependencies"];
/// An empty file in a build folder, as old as the last successful build.
const STAMP: &str = ".built";

/// One folder of `examples/` that is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Example {
    OmniorbBank,
    OmniorbEcho,
    JacorbBank,
}

impl Example {
    pub(crate) const ALL: [Self; 3] = [Self::OmniorbBank, Self::OmniorbEcho, Self::JacorbBank];

    /// Its folder, both of its sources and of what is built from them.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::OmniorbBank => "omniorb-bank",
            Self::OmniorbEcho => "omniorb-echo",
            Self::JacorbBank => "jacorb-bank",
        }
    }

    /// What is there when it has been built, relative to its build folder.
    const fn products(self) -> &'static [&'static str] {
        match self {
            Self::OmniorbBank => &["bank_server", "bank_client"],
            Self::OmniorbEcho => &["echo_server", "echo_client"],
            Self::JacorbBank => &["bank.jar", "bin/bank-server", "bin/bank-client"],
        }
    }

    const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::OmniorbBank | Self::OmniorbEcho => &["make", "g++", "omniidl"],
            Self::JacorbBank => &["mvn", "javac"],
        }
    }

    fn sources(self) -> PathBuf {
        workspace::root().join("examples").join(self.folder())
    }

    /// Where it is built.
    pub(crate) fn built(self) -> PathBuf {
        workspace::examples().join(self.folder())
    }

    fn build_command(self) -> Command {
        let folder = self.sources();
        let built = self.built();
        match self {
            Self::OmniorbBank | Self::OmniorbEcho => {
                let mut command = Command::new("make");
                command.arg("--jobs=2").arg("--directory").arg(folder);
                command.arg(format!("BUILD={}", built.display()));
                command
            }
            Self::JacorbBank => {
                let mut command = Command::new("mvn");
                command.args(["--batch-mode", "--quiet", "--file"]).arg(folder.join("pom.xml"));
                command.arg(format!("-DbuildDirectory={}", built.display())).arg("package");
                command
            }
        }
    }
}

pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::new("examples");
    for example in Example::ALL {
        steps.add(example.folder(), &build(example));
    }
    steps.finish()
}

/// Builds `example`, unless it is up to date or cannot be built here.
pub(crate) fn build(example: Example) -> Outcome {
    if is_up_to_date(example) {
        return Outcome::Present;
    }
    let missing: Vec<&str> = example
        .programs()
        .iter()
        .copied()
        .filter(|name| workspace::program(name).is_none())
        .collect();
    if !missing.is_empty() {
        let names = missing.join(", ");
        return Outcome::Skipped(format!("no {names} here: cargo xtask deps installs it"));
    }
    let began = SystemTime::now();
    match fs::create_dir_all(example.built()).and_then(|()| example.build_command().output()) {
        Err(error) => Outcome::Failed(error.to_string()),
        Ok(output) if output.status.success() => match stamp(example, began) {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::Failed(error.to_string()),
        },
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            failure(&String::from_utf8_lossy(&text))
        }
    }
}

/// A build that cannot get what it builds from is not a failure of what is built.
fn failure(text: &str) -> Outcome {
    let is_unfetched = |line: &&str| UNFETCHED.iter().any(|words| line.contains(words));
    match text.lines().find(is_unfetched) {
        Some(line) => Outcome::Skipped(format!("Maven cannot fetch what it needs: {line}")),
        None => Outcome::Failed(last_lines(text)),
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(FAILURE_LINES)..].join("\n  ")
}

/// Whether everything is there, and no source has changed since the last build began.
fn is_up_to_date(example: Example) -> bool {
    let built = example.built();
    let is_whole = example.products().iter().all(|product| built.join(product).is_file());
    let mut newest = None;
    let idl = workspace::root().join("examples/idl");
    let seen = newest_below(&example.sources(), &mut newest)
        .and_then(|()| newest_below(&idl, &mut newest));
    // `None`, for a stamp that is not there, comes before every time.
    is_whole && seen.is_ok() && modified(&built.join(STAMP)) > newest
}

/// Notes when the build began that has just succeeded: a source that changed meanwhile is newer.
fn stamp(example: Example, began: SystemTime) -> io::Result<()> {
    File::create(example.built().join(STAMP))?.set_modified(began)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn newest_below(folder: &Path, newest: &mut Option<SystemTime>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "build" || name == "target" {
            // Somebody has built by hand, beside the sources.
            continue;
        }
        if entry.file_type()?.is_dir() {
            newest_below(&entry.path(), newest)?;
        } else {
            *newest = modified(&entry.path()).max(*newest);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_fetched_is_skipped_and_what_does_not_compile_fails() {
        let unfetched = "[INFO] x\n[ERROR] Plugin y: Could not transfer artifact z (default)\n";
        assert!(matches!(failure(unfetched), Outcome::Skipped(_)));
        assert_eq!(
            failure("a.cc:1: error\n\nmake: 1\n"),
            Outcome::Failed("a.cc:1: error\n  make: 1".into())
        );
    }
}
