//! Programs and modules from PyPI, each in an environment of its own below `target/`.
//!
//! Invariant: nothing of the system's Python is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace;

/// The interpreter of the environment in `folder`.
pub(crate) fn python_of(folder: &Path) -> PathBuf {
    folder.join("bin/python3")
}

/// Makes an environment in `folder` and installs what `lines` name, as a file of requirements
/// names it. The error says what was missing.
pub(crate) fn install(folder: &Path, lines: &[&str]) -> Result<(), String> {
    let python = workspace::program("python3").ok_or("no python3 here")?;
    let mut make = Command::new(python);
    make.args(["-m", "venv"]).arg(folder);
    run(&mut make)?;
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, lines.join("\n") + "\n").map_err(|error| error.to_string())?;
    let mut fetch = Command::new(python_of(folder));
    fetch.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(fetch.arg("--requirement").arg(requirements))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().last().unwrap_or("no reason given").to_owned())
}
