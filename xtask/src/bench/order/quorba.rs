//! Ours as a peer: the ring as a library in the participant's process, or as a daemon with the
//! participant as its client.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::peer::{Kind, Peer, Site};
use crate::namespaces::host;
use crate::workspace;

/// The package of the ring daemon.
const PACKAGE: &str = "quorba-ringd";
/// UDP port of the ring on every host.
const RING_PORT: u16 = 5510;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    is_library: bool,
    is_encrypted: bool,
    is_accelerated: bool,
}

const fn peer(name: &'static str, text: &'static str, setup: Setup) -> Peer {
    Peer { name, text, kind: Kind::Quorba(setup) }
}

const IN_DAEMON: Setup = Setup { is_library: false, is_encrypted: true, is_accelerated: true };
const IN_PROCESS: Setup = Setup { is_library: true, ..IN_DAEMON };

pub(super) const DAEMON: Peer = peer("quorba-daemon", "client of the daemon, encrypted", IN_DAEMON);
pub(super) const DAEMON_CLEAR: Peer = peer(
    "quorba-daemon-clear",
    "client of the daemon, clear",
    Setup { is_encrypted: false, ..IN_DAEMON },
);
pub(super) const DAEMON_PLAIN: Peer = peer(
    "quorba-daemon-plain",
    "as quorba-daemon, the ring not accelerated",
    Setup { is_accelerated: false, ..IN_DAEMON },
);
pub(super) const LIBRARY: Peer = peer("quorba-library", "in process, encrypted", IN_PROCESS);
pub(super) const LIBRARY_CLEAR: Peer =
    peer("quorba-library-clear", "in process, clear", Setup { is_encrypted: false, ..IN_PROCESS });
pub(super) const LIBRARY_PLAIN: Peer = peer(
    "quorba-library-plain",
    "as quorba-library, the ring not accelerated",
    Setup { is_accelerated: false, ..IN_PROCESS },
);

impl Setup {
    pub(super) fn prepare(self, site: &Site<'_>) -> Result<(), String> {
        let path = key_file(site);
        // A key that is no secret, in a file that is treated like one.
        let key = (0..32_u8).fold(String::new(), |mut key, octet| {
            let _written = write!(key, "{:02x}", octet.wrapping_mul(37) ^ 0x5a);
            key
        });
        let file = File::options().create(true).write(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| writeln!(file, "{key}"))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(super) fn daemon(self, site: &Site<'_>, node: usize) -> Option<Command> {
        if self.is_library {
            return None;
        }
        let mut command = program(site, node, "daemon");
        self.add_options(site, &mut command);
        command.arg("--node").arg(node.to_string()).arg("--nodes").arg(site.nodes.to_string());
        command.arg("--dir").arg(site.node_folder(node));
        Some(command)
    }

    pub(super) fn participant(self, site: &Site<'_>, node: usize) -> Command {
        if !self.is_library {
            return program(site, node, "client");
        }
        let mut command = program(site, node, "member");
        self.add_options(site, &mut command);
        command
    }

    fn add_options(self, site: &Site<'_>, command: &mut Command) {
        let peers: Vec<String> =
            (0..site.nodes).map(|index| format!("{}:{RING_PORT}", host(index))).collect();
        command.arg("--peers").arg(peers.join(","));
        if self.is_encrypted {
            command.arg("--key").arg(key_file(site));
        } else {
            command.args(["--encryption", "off"]);
        }
        command.args(["--ring", if self.is_accelerated { "accelerated" } else { "original" }]);
    }
}

fn program(site: &Site<'_>, node: usize, role: &str) -> Command {
    let ringd = site.tools.ringd.as_deref().expect("only what was built is started");
    let mut command = site.command(node, ringd);
    command.arg(role);
    command
}

fn key_file(site: &Site<'_>) -> PathBuf {
    site.folder.join("domain.key")
}

/// Builds the ring daemon; `is_release` is for figures.
pub(super) fn build(is_release: bool) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", PACKAGE]);
    if is_release {
        command.arg("--release");
    }
    command.current_dir(workspace::root()).env("CARGO_TARGET_DIR", workspace::target());
    let output = command.output().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rev().find(|line| line.starts_with("error"));
        return Err(format!("{PACKAGE} does not build: {}", last.unwrap_or("no reason given")));
    }
    let profile = if is_release { "release" } else { "debug" };
    Ok(workspace::target().join(profile).join(PACKAGE))
}
