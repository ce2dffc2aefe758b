//! omniORBpy, which Debian 12 does not package: from PyPI, in an environment below `target/`.
//!
//! Invariant: nothing of the system's Python is changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::say::Outcome;
use crate::workspace;

/// Wheels of omniORB and its Python, of one version.
const WHEELS: [&str; 2] = ["cmeel-omniorb==4.3.1.2", "cmeel-omniorbpy==4.3.1"];

fn folder() -> PathBuf {
    workspace::target().join("omniorbpy")
}

fn python_of(folder: &Path) -> PathBuf {
    folder.join("bin/python3")
}

/// The libraries that come with the wheels.
fn libraries(folder: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(folder.join("lib")).ok()?.flatten();
    let mut places = versions.map(|one| one.path().join("site-packages/cmeel.prefix/lib"));
    places.find(|place| place.is_dir())
}

/// A command that runs `script` with omniORBpy; none if it is not there.
pub(crate) fn command(script: &Path) -> Option<Command> {
    let folder = folder();
    let mut command = Command::new(python_of(&folder));
    command.env("LD_LIBRARY_PATH", libraries(&folder)?).arg(script);
    Some(command)
}

fn works() -> bool {
    let Some(mut command) = command(Path::new("-c")) else { return false };
    let output = command.arg("import omniORB, CosNaming").output();
    output.is_ok_and(|output| output.status.success())
}

/// Installs it, unless it is there.
pub(crate) fn install() -> Outcome {
    if works() {
        return Outcome::Present;
    }
    let Some(python) = workspace::program("python3") else {
        return Outcome::Skipped("no python3 here".into());
    };
    let folder = folder();
    let mut make = Command::new(python);
    make.args(["-m", "venv"]).arg(&folder);
    let mut fetch = Command::new(python_of(&folder));
    fetch.args(["-m", "pip", "install", "--quiet"]).args(WHEELS);
    for mut step in [make, fetch] {
        match step.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                let last = text.lines().last().unwrap_or("no reason given");
                return Outcome::Skipped(last.to_owned());
            }
            Err(error) => return Outcome::Skipped(error.to_string()),
        }
    }
    match works() {
        true => Outcome::Done,
        false => Outcome::Skipped("installed, and its modules are not found".into()),
    }
}
