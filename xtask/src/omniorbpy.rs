//! omniORBpy, which Debian 12 does not package: from PyPI, in an environment below `target/`.
//!
//! Invariant: nothing of the system's Python is changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pip;
use crate::say::Outcome;
use crate::workspace;

/// Wheels of omniORB and its Python, of one version.
const WHEELS: [&str; 2] = ["cmeel-omniorb==4.3.1.2", "cmeel-omniorbpy==4.3.1"];

fn folder() -> PathBuf {
    workspace::target().join("omniorbpy")
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
    let mut command = Command::new(pip::python_of(&folder));
    command.env("LD_LIBRARY_PATH", libraries(&folder)?).arg(script);
    Some(command)
}

/// A command that makes stubs of IDL for it; none if it is not there.
pub(crate) fn omniidl() -> Option<Command> {
    command(&folder().join("bin/omniidl"))
}

/// Stubs of these files below `idl/`, made anew in a folder of `folder`, which a program is to have
/// as its PYTHONPATH.
pub(crate) fn stubs(folder: &Path, files: &[&str]) -> Result<PathBuf, String> {
    let stubs = folder.join("stubs");
    std::fs::create_dir_all(&stubs).map_err(|error| error.to_string())?;
    let (idl, more) = (workspace::root().join("idl"), workspace::root().join("examples/idl"));
    let mut command = omniidl().ok_or("no omniORBpy")?;
    command.arg("-bpython").arg("-C").arg(&stubs).arg("-I").arg(&idl).arg("-I").arg(more);
    command.arg("-Wbinline").args(files.iter().map(|file| idl.join(file)));
    let output = command.output().map_err(|error| format!("omniidl: {error}"))?;
    match output.status.success() {
        true => Ok(stubs),
        false => Err(format!("omniidl: {}", String::from_utf8_lossy(&output.stderr))),
    }
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
    match pip::install(&folder(), &WHEELS) {
        Err(reason) => Outcome::Skipped(reason),
        Ok(()) if works() => Outcome::Done,
        Ok(()) => Outcome::Skipped("installed, and its modules are not found".into()),
    }
}
