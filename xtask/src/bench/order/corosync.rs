//! Corosync as a peer: one daemon per network namespace, and a C client of libcpg beside it.
//!
//! Daemons of one machine would share their pid file: each has a `/run` of its own. Their IPC
//! sockets have abstract names, which belong to the network namespace.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::peer::{Kind, Peer, Site};
use crate::namespaces::host;
use crate::project::{Project, Tool};
use crate::say::Outcome;
use crate::workspace;

pub(super) const PROJECT: Project = Project {
    folder: "bench/peers/corosync",
    tool: Tool::Make,
    programs: &["make", "gcc"],
    headers: &["corosync/cpg.h"],
    beside: None,
    products: &["corosync-participant"],
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    transport: &'static str,
    is_encrypted: bool,
    /// The shortest timeouts with which it still forms a ring (reference: measured), instead of
    /// its defaults.
    pub(super) is_fast: bool,
}

const fn peer(
    name: &'static str,
    text: &'static str,
    transport: &'static str,
    is_encrypted: bool,
) -> Peer {
    let setup = Setup { transport, is_encrypted, is_fast: false };
    Peer { name, text, kind: Kind::Corosync(setup) }
}

pub(super) const UDP: Peer =
    peer("corosync-udp", "client of the daemon, UDP multicast, clear", "udp", false);
pub(super) const UDPU: Peer =
    peer("corosync-udpu", "client of the daemon, UDP unicast, clear", "udpu", false);
pub(super) const KNET: Peer =
    peer("corosync-knet", "client of the daemon, knet (its default), clear", "knet", false);
pub(super) const KNET_CRYPTO: Peer =
    peer("corosync-knet-crypto", "client of the daemon, knet, aes256 and sha256", "knet", true);
pub(super) const UDP_FAST: Peer = Peer {
    name: "corosync-udp-fast",
    text: "as corosync-udp, with token 150 ms and consensus 180 ms",
    kind: Kind::Corosync(Setup { transport: "udp", is_encrypted: false, is_fast: true }),
};

/// Builds the client; the daemon must be installed.
pub(super) fn build() -> Outcome {
    if workspace::program("corosync").is_none() {
        return Outcome::Skipped("no corosync here: cargo xtask deps installs it".into());
    }
    PROJECT.build()
}

impl Setup {
    pub(super) fn prepare(self, site: &Site<'_>) -> Result<(), String> {
        let key = site.folder.join("authkey");
        // A key that is no secret: nobody outside hears this network.
        write(&key, &[0x5a; 256])?;
        for node in 1..=site.nodes {
            let folder = site.node_folder(node);
            for name in ["run", "state"] {
                let path = folder.join(name);
                fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            }
            let text = self.configuration(site, node, &key);
            write(&folder.join("corosync.conf"), text.as_bytes())?;
        }
        Ok(())
    }

    fn configuration(self, site: &Site<'_>, node: usize, key: &Path) -> String {
        let transport = self.transport;
        let mut text = format!(
            "totem {{\n  version: 2\n  cluster_name: bench\n  transport: {transport}\n  \
             keyfile: {}\n",
            key.display()
        );
        if self.is_encrypted {
            text.push_str("  crypto_cipher: aes256\n  crypto_hash: sha256\n");
        }
        if self.is_fast {
            text.push_str("  token: 150\n  token_coefficient: 0\n  consensus: 180\n");
        }
        if transport == "udp" {
            text.push_str("  interface {\n    mcastaddr: 239.255.99.1\n    mcastport: 5405\n  }\n");
        }
        text.push_str("}\nnodelist {\n");
        for number in 1..=site.nodes {
            let address = host(number - 1);
            let _ = writeln!(
                text,
                "  node {{\n    ring0_addr: {address}\n    nodeid: {number}\n    \
                 name: n{number}\n  }}"
            );
        }
        let state = site.node_folder(node).join("state");
        let _ = writeln!(
            text,
            "}}\nsystem {{\n  sched_rr: no\n  state_dir: {}\n}}\n\
             logging {{\n  to_stderr: yes\n  to_syslog: no\n  timestamp: hires\n}}",
            state.display()
        );
        text
    }
}

pub(super) fn daemon(site: &Site<'_>, node: usize) -> Command {
    let folder = site.node_folder(node);
    let mut command = site.command(node, Path::new("unshare"));
    // Each of these replaces itself by the next: the process keeps its id.
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0/run\" /run && exec corosync -f -c \"$0/corosync.conf\"");
    command.arg(folder);
    command
}

pub(super) fn participant(site: &Site<'_>, node: usize) -> Command {
    site.command(node, &PROJECT.built().join("corosync-participant"))
}

fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}
