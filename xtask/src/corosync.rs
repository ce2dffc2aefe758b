//! Corosync daemons of one machine, each in a network namespace of its own.
//!
//! They would share their pid file: each has a `/run` of its own. Their IPC sockets have abstract
//! names, which belong to the network namespace.
//!
//! Invariant: nothing of this host's own Corosync, if it has one, is touched.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::namespaces::host;
use crate::place::Place;

/// The cluster's key. It is no secret: nobody outside hears this network.
const KEY: [u8; 256] = [0x5a; 256];

/// What a cluster runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) transport: Transport,
    /// Only for knet: aes256 and sha256.
    pub(crate) is_encrypted: bool,
    pub(crate) timing: Timing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Multicast.
    Udp,
    /// Unicast.
    Udpu,
    /// Its default.
    Knet,
}

/// When a token counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// As Corosync has it: more than 3 s.
    Default,
    /// After half a second: for tests that wait for it.
    Short,
    /// The shortest with which it still formed a ring.
    Shortest,
}

impl Timing {
    const fn text(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Short => "  token: 500\n  token_coefficient: 0\n  consensus: 600\n",
            Self::Shortest => "  token: 150\n  token_coefficient: 0\n  consensus: 180\n",
        }
    }
}

impl Setup {
    /// Writes the files of `nodes` daemons, each into its folder; nodes count from 1.
    pub(crate) fn write(
        self,
        nodes: usize,
        folder: impl Fn(usize) -> PathBuf,
    ) -> Result<(), String> {
        for node in 1..=nodes {
            let folder = folder(node);
            for name in ["run", "state"] {
                let path = folder.join(name);
                fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            }
            write(&folder.join("authkey"), &KEY)?;
            write(&folder.join("corosync.conf"), self.text(nodes, &folder).as_bytes())?;
        }
        Ok(())
    }

    fn text(self, nodes: usize, folder: &Path) -> String {
        let transport = match self.transport {
            Transport::Udp => "udp",
            Transport::Udpu => "udpu",
            Transport::Knet => "knet",
        };
        let folder = folder.display();
        let mut text = format!(
            "totem {{\n  version: 2\n  cluster_name: quorba\n  transport: {transport}\n  \
             keyfile: {folder}/authkey\n"
        );
        if self.is_encrypted {
            text.push_str("  crypto_cipher: aes256\n  crypto_hash: sha256\n");
        }
        text.push_str(self.timing.text());
        if self.transport == Transport::Udp {
            text.push_str("  interface {\n    mcastaddr: 239.255.99.1\n    mcastport: 5405\n  }\n");
        }
        text.push_str("}\nnodelist {\n");
        for number in 1..=nodes {
            let address = host(number - 1);
            let _written = writeln!(
                text,
                "  node {{\n    ring0_addr: {address}\n    nodeid: {number}\n    \
                 name: n{number}\n  }}"
            );
        }
        let _written = writeln!(
            text,
            "}}\nsystem {{\n  sched_rr: no\n  state_dir: {folder}/state\n}}\n\
             logging {{\n  to_stderr: yes\n  to_syslog: no\n  timestamp: hires\n}}"
        );
        text
    }
}

/// The daemon whose files are in `folder`.
pub(crate) fn daemon(place: &Place, folder: &Path) -> Command {
    let mut command = place.command(Path::new("unshare"));
    // Each of these replaces itself by the next: the process keeps its id.
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0/run\" /run && exec corosync -f -c \"$0/corosync.conf\"");
    command.arg(folder);
    command
}

fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}
