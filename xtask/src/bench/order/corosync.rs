//! Corosync as a peer: one daemon per network namespace, and a C client of libcpg beside it.
//!
//! What it is not: how a daemon is started; that is [`crate::corosync`].

use std::process::Command;

use super::peer::{Kind, Peer, Site};
use crate::corosync::{self, Setup, Timing, Transport};
use crate::project::{Project, Tool};
use crate::say::Outcome;
use crate::workspace;

pub(super) const PROJECT: Project = Project {
    folder: "bench/peers/corosync",
    tool: Tool::Make,
    programs: &["make", "gcc"],
    headers: &["corosync/cpg.h"],
    beside: &[],
    products: &["corosync-participant"],
};

const fn peer(name: &'static str, text: &'static str, setup: Setup) -> Peer {
    Peer { name, text, kind: Kind::Corosync(setup) }
}

const CLEAR_UDP: Setup =
    Setup { transport: Transport::Udp, is_encrypted: false, timing: Timing::Default };

pub(super) const UDP: Peer =
    peer("corosync-udp", "client of the daemon, UDP multicast, clear", CLEAR_UDP);
pub(super) const UDPU: Peer = peer(
    "corosync-udpu",
    "client of the daemon, UDP unicast, clear",
    Setup { transport: Transport::Udpu, ..CLEAR_UDP },
);
pub(super) const KNET: Peer = peer(
    "corosync-knet",
    "client of the daemon, knet (its default), clear",
    Setup { transport: Transport::Knet, ..CLEAR_UDP },
);
pub(super) const KNET_CRYPTO: Peer = peer(
    "corosync-knet-crypto",
    "client of the daemon, knet, aes256 and sha256",
    Setup { transport: Transport::Knet, is_encrypted: true, ..CLEAR_UDP },
);
pub(super) const UDP_FAST: Peer = peer(
    "corosync-udp-fast",
    "as corosync-udp, with token 150 ms and consensus 180 ms",
    Setup { timing: Timing::Shortest, ..CLEAR_UDP },
);

/// Builds the client; the daemon must be installed.
pub(super) fn build() -> Outcome {
    if workspace::program("corosync").is_none() {
        return Outcome::Skipped("no corosync here: cargo xtask deps installs it".into());
    }
    PROJECT.build()
}

/// Writes the files of every node's daemon.
pub(super) fn prepare(setup: Setup, site: &Site<'_>) -> Result<(), String> {
    setup.write(site.nodes, |node| site.node_folder(node))
}

pub(super) fn daemon(site: &Site<'_>, node: usize) -> Command {
    corosync::daemon(&site.network.node(node - 1), &site.node_folder(node))
}

pub(super) fn participant(site: &Site<'_>, node: usize) -> Command {
    site.command(node, &PROJECT.built().join("corosync-participant"))
}
