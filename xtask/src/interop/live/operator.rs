//! An operator at a command line.
//!
//! What it is not: somebody who knows more than the command prints.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::super::Context;
use super::super::fleet::Fleet;
use crate::place::Place;
use crate::wait;

/// How long the domain, or a group, may take to be healthy.
const HEALTHY_WITHIN: &str = "45s";
/// How long members may take to be in.
const MEMBERS_TIME_MAX: Duration = Duration::from_secs(45);

pub(in crate::interop) struct Operator {
    quorba: PathBuf,
    folder: PathBuf,
    file: PathBuf,
}

impl Operator {
    pub(in crate::interop) fn of(context: &Context, fleet: &Fleet) -> Self {
        let (quorba, folder) = (context.quorba.clone(), context.folder.clone());
        Self { quorba, folder, file: fleet.domain_file().to_owned() }
    }

    /// Whether it came to a good end; what it printed, and what it told.
    fn run(&self, words: &[&str]) -> Result<(bool, String, String), String> {
        let mut command = Place::Here.command(&self.quorba);
        command.args(words).current_dir(&self.folder).env("QUORBA_CONFIG", &self.file);
        let output = command.output().map_err(|error| format!("quorba {words:?}: {error}"))?;
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        Ok((output.status.success(), text(&output.stdout), text(&output.stderr)))
    }

    /// What a command prints that comes to a good end.
    pub(in crate::interop) fn ok(&self, words: &[&str]) -> Result<String, String> {
        match self.run(words)? {
            (true, out, _) => Ok(out),
            (false, out, err) => Err(format!("quorba {words:?}: {out}{err}")),
        }
    }

    /// The same in JSON.
    pub(in crate::interop) fn json(&self, words: &[&str]) -> Result<Value, String> {
        let out = self.ok(&[&["-o", "json"], words].concat())?;
        serde_json::from_str(&out).map_err(|error| format!("quorba {words:?}: {error}: {out}"))
    }

    /// What a command tells that comes to a bad end.
    pub(in crate::interop) fn refused(&self, words: &[&str]) -> Result<String, String> {
        match self.run(words)? {
            (false, _, err) => Ok(err),
            (true, out, _) => Err(format!("quorba {words:?} was not refused: {out}")),
        }
    }

    /// What a command prints, whatever its end: that of status says how the domain is.
    pub(in crate::interop) fn shown(&self, words: &[&str]) -> Result<String, String> {
        self.run(words).map(|(_, out, _)| out)
    }

    pub(in crate::interop) fn wait_healthy(&self) -> Result<(), String> {
        self.ok(&["status", "--wait-healthy", HEALTHY_WITHIN]).map(drop)
    }

    /// The domain file with this section behind it, as the operator's own file.
    pub(in crate::interop) fn write_file(
        &self,
        name: &str,
        section: &str,
    ) -> Result<String, String> {
        let told = |path: &Path, error| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(&self.file).map_err(|error| told(&self.file, error))?;
        let path = self.folder.join(name);
        std::fs::write(&path, format!("{text}\n{section}")).map_err(|error| told(&path, error))?;
        Ok(path.display().to_string())
    }

    /// The reference that clients are given.
    pub(in crate::interop) fn reference(&self, group: &str) -> Result<String, String> {
        Ok(self.ok(&["ior", "make", group])?.trim().to_owned())
    }

    /// One group, as a node that answers has it.
    pub(in crate::interop) fn group(&self, node: &str, group: &str) -> Result<Value, String> {
        let status = self.shown(&["-o", "json", "status"])?;
        let status: Value = serde_json::from_str(&status).map_err(|error| error.to_string())?;
        let nodes = status["nodes"].as_array().into_iter().flatten();
        let mut nodes = nodes.map(|one| &one["status"]).filter(|status| status["node"] == node);
        let groups = nodes.next().and_then(|status| status["groups"].as_array());
        let mut groups = groups.into_iter().flatten();
        let found = groups.find(|one| one["name"] == group).cloned();
        found.ok_or_else(|| format!("{node} has no group {group}"))
    }

    /// Waits until these nodes have a member that is in, and no others have one, as each of
    /// `seen_by` says.
    pub(in crate::interop) fn wait_members(
        &self,
        group: &str,
        members: &[&str],
        seen_by: &[&str],
    ) -> Result<(), String> {
        wait::until("the members are in", MEMBERS_TIME_MAX, || {
            seen_by.iter().try_for_each(|node| {
                let seen = self.group(node, group)?;
                let all = seen["members"].as_array().cloned().unwrap_or_default();
                let are = |one: &Value| one["state"] == "in";
                let names: Vec<&str> = all.iter().filter_map(|one| one["node"].as_str()).collect();
                let is_it = names == members && all.iter().all(are);
                if is_it { Ok(()) } else { Err(format!("{node} says {}", seen["members"])) }
            })
        })
    }
}
