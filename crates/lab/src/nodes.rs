//! Nodes of a domain on this machine: their ports, their part of the domain file, their start.
//!
//! What it is not: a domain; what its groups are is said by who starts it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use quorba_admin::Client;
use quorba_config::DomainKey;
use quorba_net::free_ports;

use crate::domain::{node_name, write_private};
use crate::peer::Peer;

/// Ports of a domain, one of each kind per node.
pub(crate) struct Ports {
    pub(crate) rings: Vec<u16>,
    pub(crate) admins: Vec<u16>,
    pub(crate) gateways: Vec<u16>,
}

impl Ports {
    /// Free ones for so many nodes.
    pub(crate) fn free(nodes: usize) -> io::Result<Self> {
        free_ports(nodes * 3).map(Self::of)
    }

    /// Three for each node.
    pub(crate) fn of(mut ports: Vec<u16>) -> Self {
        let nodes = ports.len() / 3;
        let gateways = ports.split_off(nodes * 2);
        let admins = ports.split_off(nodes);
        Self { rings: ports, admins, gateways }
    }

    /// What the domain file says as `listen`: nodes add their offset.
    pub(crate) fn listen(&self) -> u16 {
        *self.gateways.iter().min().expect("a domain has nodes")
    }

    /// The nodes' tables in the domain file, all on the loopback interface.
    pub(crate) fn tables(&self) -> String {
        let table = |index: usize| {
            let (name, offset) = (node_name(index), self.gateways[index] - self.listen());
            let (ring, admin) = (self.rings[index], self.admins[index]);
            format!(
                "[node.{name}]\nhost = \"127.0.0.1\"\nring_port = {ring}\n\
                 admin = \"127.0.0.1:{admin}\"\nstate_dir = \"{name}\"\n\
                 gateway_port_offset = {offset}\n"
            )
        };
        (0..self.rings.len()).map(table).collect()
    }

    /// Who asks each node's admin API; the domain file lies in `folder`.
    pub(crate) fn admin_clients(&self, folder: &Path) -> Vec<Client> {
        let client = |(index, port): (usize, &u16)| {
            let token = folder.join(node_name(index)).join("admin.token");
            Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)), token)
        };
        self.admins.iter().enumerate().map(client).collect()
    }

    /// A corbaloc of an object at every gateway.
    pub(crate) fn corbaloc(&self, object_key: &str) -> String {
        let gateways: Vec<String> =
            self.gateways.iter().map(|port| format!("iiop:1.2@127.0.0.1:{port}")).collect();
        format!("corbaloc:{}/{object_key}", gateways.join(","))
    }
}

/// Writes a domain file and a key of its own into `folder`; returns where the file is.
pub(crate) fn write_files(folder: &Path, text: &str) -> io::Result<PathBuf> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    write_private(&folder.join("domain.key"), &DomainKey::from_bytes(secret).to_text())?;
    let file = folder.join("quorba.toml");
    fs::write(&file, text)?;
    Ok(file)
}

/// Starts a node, which ends with this process and writes its log beside the file.
pub(crate) fn start(program: &Path, file: &Path, index: usize) -> Result<Peer, String> {
    let name = node_name(index);
    let mut command = Command::new(program);
    command.args(["node", &name, "--log", "warn", "--config"]).arg(file);
    command.arg("--parent").arg(std::process::id().to_string());
    let log = file.with_file_name(&name).with_extension("log");
    Peer::start_logged(&name, &mut command, log).map_err(|error| error.to_string())
}
