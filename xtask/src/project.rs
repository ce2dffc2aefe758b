//! Programs in C, C++ and Java that stand in the source tree, and how they are built.
//!
//! What it is not: a build system. `make` and Maven build; this knows where, and whether at all.
//!
//! Invariants: nothing is written into the source tree; what is up to date costs no build.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::say::Outcome;
use crate::workspace;

/// The last lines of a failed build that are shown.
const FAILURE_LINES: usize = 15;
/// What Maven says when its repository does not answer, or it was told not to ask.
const UNFETCHED: [&str; 3] =
    ["Could not transfer artifact", "Cannot access", "Could not resolve dependencies"];
/// An empty file in a build folder, as old as the last successful build.
const STAMP: &str = ".built";

/// What builds a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// A `Makefile` that takes its build folder as `BUILD`.
    Make,
    /// A `pom.xml` that takes its build folder as `buildDirectory`.
    Maven,
}

/// A folder of sources with a build of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Its folder, both below the workspace's root and below the build folder.
    pub(crate) folder: &'static str,
    pub(crate) tool: Tool,
    /// What must be installed.
    pub(crate) programs: &'static [&'static str],
    /// Headers that must be installed.
    pub(crate) headers: &'static [&'static str],
    /// Other folders that it is built from.
    pub(crate) beside: &'static [&'static str],
    /// What is there when it has been built, relative to its build folder.
    pub(crate) products: &'static [&'static str],
}

impl Project {
    fn sources(&self) -> PathBuf {
        workspace::root().join(self.folder)
    }

    /// Where it is built.
    pub(crate) fn built(&self) -> PathBuf {
        workspace::target().join(self.folder)
    }

    /// Builds it, unless it is up to date or cannot be built here.
    pub(crate) fn build(&self) -> Outcome {
        if self.is_up_to_date() {
            return Outcome::Present;
        }
        let missing = self.missing();
        if !missing.is_empty() {
            let names = missing.join(", ");
            return Outcome::Skipped(format!("no {names} here: cargo xtask deps installs it"));
        }
        let began = SystemTime::now();
        match fs::create_dir_all(self.built()).and_then(|()| self.build_command().output()) {
            Err(error) => Outcome::Failed(error.to_string()),
            Ok(output) if output.status.success() => match self.stamp(began) {
                Ok(()) => Outcome::Done,
                Err(error) => Outcome::Failed(error.to_string()),
            },
            Ok(output) => {
                let text = [output.stdout, output.stderr].concat();
                failure(&String::from_utf8_lossy(&text))
            }
        }
    }

    fn missing(&self) -> Vec<&'static str> {
        let is_no_program = |name: &&&str| workspace::program(name).is_none();
        let is_no_header = |name: &&&str| !Path::new("/usr/include").join(name).is_file();
        let programs = self.programs.iter().filter(is_no_program);
        programs.chain(self.headers.iter().filter(is_no_header)).copied().collect()
    }

    fn build_command(&self) -> Command {
        let built = self.built();
        match self.tool {
            Tool::Make => {
                let mut command = Command::new("make");
                command.arg("--jobs=2").arg("--directory").arg(self.sources());
                command.arg(format!("BUILD={}", built.display()));
                command
            }
            Tool::Maven => {
                let mut command = Command::new("mvn");
                let pom = self.sources().join("pom.xml");
                command.args(["--batch-mode", "--quiet", "--file"]).arg(pom);
                command.arg(format!("-DbuildDirectory={}", built.display())).arg("package");
                command
            }
        }
    }

    /// Whether everything is there, and no source has changed since the last build began.
    fn is_up_to_date(&self) -> bool {
        let built = self.built();
        let is_whole = self.products.iter().all(|product| built.join(product).is_file());
        let mut newest = None;
        let beside = self.beside.iter().map(|folder| workspace::root().join(folder));
        let mut folders = [self.sources()].into_iter().chain(beside);
        let seen = folders.try_for_each(|folder| newest_below(&folder, &mut newest));
        // `None`, for a stamp that is not there, comes before every time.
        is_whole && seen.is_ok() && modified(&built.join(STAMP)) > newest
    }

    /// Notes when the build began that has just succeeded: a source that changed meanwhile is
    /// newer.
    fn stamp(&self, began: SystemTime) -> io::Result<()> {
        File::create(self.built().join(STAMP))?.set_modified(began)
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
