//! The Corosync cluster under a case: one daemon per namespace.
//!
//! Invariant: dropped, no daemon is left, and no file of theirs.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use super::domain::NODES;
use crate::corosync::{self, Setup, Timing, Transport};
use crate::namespaces::Namespaces;
use crate::workspace;

/// Encrypted, because the node adds no encryption of its own to it.
const SETUP: Setup =
    Setup { transport: Transport::Knet, is_encrypted: true, timing: Timing::Short };

/// What a case stands on.
#[derive(Default)]
pub(super) struct Ground<'a> {
    /// The network, if it is not this host's own loopback interface.
    pub(super) namespaces: Option<&'a Namespaces>,
    /// Who makes the order, if it is not the nodes' own ring.
    pub(super) corosync: Option<Cluster>,
}

pub(super) struct Cluster {
    // Not in the case's folder: the case ends when no process is left that names that.
    place: tempfile::TempDir,
    daemons: Vec<Child>,
}

/// Why there can be no such cluster here, if so.
pub(super) fn missing() -> Option<String> {
    let is_there = workspace::program("corosync").is_some() && has_libraries();
    (!is_there).then(|| "no Corosync here: cargo xtask deps installs it".into())
}

/// Whether nodes can be built that talk to Corosync.
pub(crate) fn has_libraries() -> bool {
    let headers = ["cpg", "cfg", "cmap", "quorum", "votequorum"];
    headers.iter().all(|name| PathBuf::from(format!("/usr/include/corosync/{name}.h")).is_file())
}

impl Cluster {
    pub(super) fn start(namespaces: &Namespaces) -> Result<Self, String> {
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut cluster = Self { place, daemons: Vec::new() };
        SETUP.write(NODES, |node| cluster.folder(node))?;
        for node in 1..=NODES {
            let daemon = cluster.start_daemon(node, namespaces)?;
            cluster.daemons.push(daemon);
        }
        Ok(cluster)
    }

    /// SIGKILL to a daemon, counted from 0, and another one in its place.
    pub(super) fn replace_daemon(
        &mut self,
        index: usize,
        namespaces: &Namespaces,
    ) -> Result<(), String> {
        end(&mut self.daemons[index]);
        self.daemons[index] = self.start_daemon(index + 1, namespaces)?;
        Ok(())
    }

    fn folder(&self, node: usize) -> PathBuf {
        self.place.path().join(format!("n{node}"))
    }

    fn start_daemon(&self, node: usize, namespaces: &Namespaces) -> Result<Child, String> {
        let folder = self.folder(node);
        let told = |error| format!("Corosync of node {node}: {error}");
        let log = folder.join("corosync.log");
        let log = File::options().create(true).append(true).open(log).map_err(told)?;
        let mut command = corosync::daemon(&namespaces.node(node - 1), &folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map_err(told)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.daemons.iter_mut().for_each(end);
    }
}

fn end(daemon: &mut Child) {
    // It cannot fail but for a process that has ended already.
    let _killed = daemon.kill();
    let _status = daemon.wait();
}
