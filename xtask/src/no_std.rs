//! `cargo xtask no-std`: the pure rooms, compiled for a machine that has no standard library.
//!
//! `#![no_std]` in a room says nothing of what it depends on; a target for which there is no `std`
//! finds whatever brings it in.
//!
//! What it is not: a supported target. Nothing is linked or run. Invariant: without the target, and
//! without a way to it, that is said, and nothing is checked.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::say::{Outcome, Steps};
use crate::test::cargo;
use crate::tidy;
use crate::workspace;

/// Of the machines without a standard library it is the one that is most like those that nodes run
/// on: pointers of 64 bits, all atomics.
const TARGET: &str = "x86_64-unknown-none";
/// `ring` wants these registers, as every machine of the kind has them; the target leaves them to
/// the kernel.
const FLAGS: (&str, &str) =
    ("CARGO_TARGET_X86_64_UNKNOWN_NONE_RUSTFLAGS", "-Ctarget-feature=+sse,+sse2");

pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::new("no-std");
    let target = obtain();
    let can_be_checked = matches!(target, Outcome::Present | Outcome::Done);
    steps.add(&format!("target {TARGET}"), &target);
    if can_be_checked {
        steps.add("pure rooms without std", &check());
    }
    steps.finish()
}

fn obtain() -> Outcome {
    if is_there() {
        return Outcome::Present;
    }
    let Some(rustup) = workspace::program("rustup") else {
        return Outcome::Skipped(format!("not there, and no rustup to add it: {TARGET}"));
    };
    match Command::new(rustup).args(["target", "add", TARGET]).output() {
        Ok(output) if output.status.success() && is_there() => Outcome::Done,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().last().unwrap_or("no reason given");
            Outcome::Skipped(format!("rustup target add {TARGET}: {last}"))
        }
        Err(error) => Outcome::Skipped(format!("rustup cannot be started: {error}")),
    }
}

fn is_there() -> bool {
    let rustc = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else {
        return false;
    };
    let sysroot = String::from_utf8_lossy(&output.stdout);
    Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("lib").is_dir()
}

fn check() -> Outcome {
    let mut command = cargo(&["check", "--quiet", "--target", TARGET]);
    for room in tidy::pure_rooms() {
        command.arg("--package").arg(format!("quorba-{room}"));
    }
    match command.env(FLAGS.0, FLAGS.1).status() {
        Ok(status) if status.success() => Outcome::Done,
        Ok(status) => Outcome::Failed(format!("{status}")),
        Err(error) => Outcome::Failed(format!("cargo cannot be run: {error}")),
    }
}
