//! Who is measured: every configuration of ours and of the others, by name.
//!
//! What it is not: how each is started; [`super::corosync`], [`super::jgroups`] and
//! [`super::quorba`] know that.
//!
//! Invariant: a peer differs from its neighbours in the list only in what its name says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{corosync, jgroups, quorba};
use crate::corosync::{Setup as CorosyncSetup, Timing};
use crate::namespaces::Namespaces;
use crate::say::Outcome;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Corosync(CorosyncSetup),
    Jgroups(jgroups::Stack),
    Quorba(quorba::Setup),
}

/// Where the programs of all peers are.
pub(super) struct Tools {
    /// The ring daemon; none if it is not to be had.
    pub(super) ringd: Result<PathBuf, String>,
}

/// The network and the folders of one cluster.
pub(super) struct Site<'a> {
    pub(super) network: &'a Namespaces,
    pub(super) nodes: usize,
    /// A short path: unix sockets fit.
    pub(super) folder: &'a Path,
    pub(super) tools: &'a Tools,
}

impl Site<'_> {
    /// The folder of the node with this number, from 1.
    pub(super) fn node_folder(&self, node: usize) -> PathBuf {
        self.folder.join(format!("n{node}"))
    }

    /// `program` in the namespace of a node.
    pub(super) fn command(&self, node: usize, program: &Path) -> Command {
        self.network.node(node - 1).command(program)
    }
}

impl Peer {
    /// Those that are measured, in the order of the tables.
    pub(super) const ALL: &'static [Self] = &[
        quorba::DAEMON,
        quorba::DAEMON_CLEAR,
        quorba::DAEMON_PLAIN,
        corosync::UDP,
        corosync::UDPU,
        corosync::KNET,
        corosync::KNET_CRYPTO,
        corosync::UDP_FAST,
        quorba::LIBRARY,
        quorba::LIBRARY_CLEAR,
        quorba::LIBRARY_PLAIN,
        jgroups::UDP,
        jgroups::TCP,
    ];

    /// Builds what it needs, or says why it cannot be measured here.
    pub(super) fn build(self, tools: &Tools) -> Outcome {
        match self.kind {
            Kind::Corosync(_) => corosync::build(),
            Kind::Jgroups(_) => jgroups::PROJECT.build(),
            Kind::Quorba(_) => match &tools.ringd {
                Ok(_) => Outcome::Present,
                Err(reason) => Outcome::Failed(reason.clone()),
            },
        }
    }

    /// Writes the files of a cluster that is about to start.
    pub(super) fn prepare(self, site: &Site<'_>) -> Result<(), String> {
        match self.kind {
            Kind::Corosync(setup) => corosync::prepare(setup, site),
            Kind::Jgroups(_) => Ok(()),
            Kind::Quorba(setup) => setup.prepare(site),
        }
    }

    /// The daemon of a node, for peers that have one.
    pub(super) fn daemon(self, site: &Site<'_>, node: usize) -> Option<Command> {
        match self.kind {
            Kind::Corosync(_) => Some(corosync::daemon(site, node)),
            Kind::Jgroups(_) => None,
            Kind::Quorba(setup) => setup.daemon(site, node),
        }
    }

    /// Whether it is software of this project.
    pub(super) fn is_ours(self) -> bool {
        matches!(self.kind, Kind::Quorba(_))
    }

    /// Whether the daemon says when it lets clients connect; else clients try until it does.
    pub(super) fn daemon_says_so(self) -> bool {
        matches!(self.kind, Kind::Quorba(_))
    }

    pub(super) fn participant(self, site: &Site<'_>, node: usize) -> Command {
        let mut command = match self.kind {
            Kind::Corosync(_) => corosync::participant(site, node),
            Kind::Jgroups(stack) => stack.participant(site, node),
            Kind::Quorba(setup) => setup.participant(site, node),
        };
        command.arg("--node").arg(node.to_string()).arg("--nodes").arg(site.nodes.to_string());
        command.arg("--dir").arg(site.node_folder(node));
        command
    }

    /// One of each kind, for a look at the order alone.
    pub(super) fn is_in_smoke(self) -> bool {
        let some = [
            quorba::DAEMON,
            quorba::LIBRARY,
            quorba::LIBRARY_CLEAR,
            corosync::KNET_CRYPTO,
            jgroups::TCP,
        ];
        some.contains(&self)
    }

    /// A virtual machine compiles what it has seen often.
    pub(super) fn is_jit(self) -> bool {
        matches!(self.kind, Kind::Jgroups(_))
    }

    /// One node orders for all, so that it matters which one sends.
    pub(super) fn has_coordinator(self) -> bool {
        matches!(self.kind, Kind::Jgroups(_))
    }

    /// Measured only when a node fails.
    pub(super) fn is_for_failures_only(self) -> bool {
        matches!(self.kind, Kind::Corosync(setup) if setup.timing != Timing::Default)
    }

    /// Enough time to find out that node 1 was killed, or (`is_frozen`) has fallen silent.
    pub(super) fn failure_wait(self, is_frozen: bool) -> Duration {
        let seconds = match self.kind {
            Kind::Corosync(_) if self.is_for_failures_only() => 3,
            Kind::Corosync(_) => 13,
            // FD_ALL3 gives a silent member 40 s.
            Kind::Jgroups(_) if is_frozen => 60,
            Kind::Jgroups(_) => 5,
            Kind::Quorba(_) => 3,
        };
        Duration::from_secs(seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_peer_has_a_name_of_its_own() {
        let names: BTreeSet<_> = Peer::ALL.iter().map(|peer| peer.name).collect();
        assert_eq!(names.len(), Peer::ALL.len());
    }
}
