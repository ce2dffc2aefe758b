//! JGroups as a peer: the stacks that its jar ships, with SEQUENCER, in process.

use std::ffi::OsString;
use std::process::Command;

use super::peer::{Kind, Peer, Site};
use crate::namespaces::host;
use crate::project::{Project, Tool};
use crate::workspace;

/// The participant, and JGroups with it.
pub(crate) const PROJECT: Project = Project {
    folder: "bench/peers/jgroups",
    tool: Tool::Maven,
    programs: &["mvn", "javac"],
    headers: &[],
    beside: &[],
    products: &["participant.jar"],
};

/// The port of the first TCP stack on a host.
const TCP_PORT: u16 = 7800;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stack {
    Udp,
    Tcp,
}

pub(super) const UDP: Peer = Peer {
    name: "jgroups-udp",
    text: "in process, SEQUENCER over UDP multicast, clear",
    kind: Kind::Jgroups(Stack::Udp),
};
pub(super) const TCP: Peer = Peer {
    name: "jgroups-tcp",
    text: "in process, SEQUENCER over TCP, clear",
    kind: Kind::Jgroups(Stack::Tcp),
};

impl Stack {
    pub(super) fn participant(self, site: &Site<'_>, node: usize) -> Command {
        let built = PROJECT.built();
        let hosts: Vec<String> =
            (0..site.nodes).map(|index| format!("{}[{TCP_PORT}]", host(index))).collect();
        let mut class_path = OsString::from(built.join("participant.jar"));
        class_path.push(":");
        class_path.push(built.join("lib/*"));
        let java = workspace::program("java").unwrap_or_else(|| "java".into());
        let mut command = site.command(node, &java);
        command.arg("-Djava.net.preferIPv4Stack=true");
        command.arg(format!("-Djgroups.bind_addr={}", host(node - 1)));
        command.arg(format!("-Djgroups.tcpping.initial_hosts={}", hosts.join(",")));
        command.arg("-classpath").arg(class_path).arg("Participant");
        command.args(["--stack", if self == Self::Udp { "udp" } else { "tcp" }]);
        command
    }
}
