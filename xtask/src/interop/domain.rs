//! The domain file of a case: three nodes, one group.
//!
//! What it is not: a sample for users. It says nothing that a default would say as well.
//!
//! Invariant: on the loopback interface all ports differ and were free a moment ago; they lie
//! below the range from which the system takes the ports of outgoing connections.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use super::cluster::Ground;
use crate::namespaces::{self, Namespaces};
use crate::place::Place;

/// Nodes, and members of the group: the least of which one may fail.
pub(super) const NODES: usize = 3;
/// Ports per node on the loopback interface: ring, admin, gateway.
const PORT_KINDS: u16 = 3;
/// The most ports that are asked for at a time.
const STRETCH: u16 = PORT_KINDS * NODES as u16;
/// Where free ports are looked for.
const PORTS: std::ops::Range<u16> = 15_000..30_000;

/// One node of the file.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) admin: SocketAddr,
    pub(super) state_dir: PathBuf,
    /// Where clients reach the group through this node.
    pub(super) gateway: String,
    pub(super) place: Place,
}

/// What the group of a case runs.
pub(super) struct GroupText<'a> {
    pub(super) name: &'a str,
    pub(super) style: &'a str,
    pub(super) servers: Servers,
    /// Further lines of the group's table.
    pub(super) more: &'a str,
}

/// Who runs the servers of a group.
pub(super) enum Servers {
    /// The nodes: the program and its arguments, with the domain file's placeholders.
    Started(Vec<String>),
    /// Somebody else; where they listen, in the order of the nodes.
    Elsewhere(Vec<SocketAddr>),
}

impl Servers {
    /// The line of the group's table that says so.
    fn line(&self, names: &[&str]) -> String {
        match self {
            Self::Started(command) => format!("server = {command:?}\n"),
            Self::Elsewhere(addresses) => {
                let pairs = names.iter().zip(addresses);
                let pairs = pairs.map(|(name, address)| format!("{name} = \"{address}\""));
                format!("connect = {{ {} }}\n", pairs.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

pub(super) struct DomainFile {
    pub(super) path: PathBuf,
    pub(super) nodes: Vec<Node>,
}

impl DomainFile {
    /// Writes key and file into `folder`.
    pub(super) fn write(
        quorba: &Path,
        folder: &Path,
        group: &GroupText<'_>,
        ground: &Ground<'_>,
    ) -> Result<Self, String> {
        let key = folder.join("domain.key");
        new_key(quorba, &key)?;
        let mut text = format!("[domain]\nid = \"interop\"\nkey_file = {:?}\n", key);
        if ground.corosync.is_some() {
            text.push_str("\n[ring]\nengine = \"corosync\"\n");
        }
        let (listen, nodes) = match ground.namespaces {
            Some(namespaces) => (5000, namespace_nodes(folder, namespaces, &mut text)),
            None => loopback_nodes(folder, &mut text)?,
        };
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let GroupText { name, style, servers, more } = group;
        let servers = servers.line(&names);
        let _written = write!(
            text,
            "\n[group.{name}]\nstyle = \"{style}\"\nlisten = {listen}\nmembers = {names:?}\n\
             {servers}{more}"
        );
        let path = folder.join("quorba.toml");
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, nodes })
    }
}

impl DomainFile {
    /// Three nodes on the loopback interface with a service of Quorba's own, all by its defaults.
    pub(super) fn with_service(quorba: &Path, folder: &Path, name: &str) -> Result<Self, String> {
        let key = folder.join("domain.key");
        new_key(quorba, &key)?;
        let mut text = format!("[domain]\nid = \"interop\"\nkey_file = {key:?}\n");
        let (listen, nodes) = loopback_nodes(folder, &mut text)?;
        let _written = write!(text, "\n[service.{name}]\nlisten = {listen}\n");
        let path = folder.join("quorba.toml");
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, nodes })
    }

    /// Three nodes with the replication manager, the fault notifier, and a type that nodes start:
    /// the built-in bank.
    pub(super) fn with_fault_tolerance(quorba: &Path, folder: &Path) -> Result<Self, String> {
        let domain = Self::with_service(quorba, folder, "replication-manager")?;
        let (notifier, shared) = (free_ports(NODES as u16)?, free_ports(NODES as u16)?);
        let service = format!("\n[service.fault-notifier]\nlisten = {notifier}\n");
        domain.add(&(service + &type_of_bank(shared)))?;
        Ok(domain)
    }

    /// Three nodes with the naming service, the replication manager and that type.
    pub(super) fn with_naming_and_manager(quorba: &Path, folder: &Path) -> Result<Self, String> {
        let domain = Self::with_service(quorba, folder, "naming")?;
        let (manager, shared) = (free_ports(NODES as u16)?, free_ports(NODES as u16)?);
        let service = format!("\n[service.replication-manager]\nlisten = {manager}\n");
        domain.add(&(service + &type_of_bank(shared)))?;
        Ok(domain)
    }

    /// Writes more behind the file.
    fn add(&self, more: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let text = fs::read_to_string(&self.path).map_err(failed)?;
        fs::write(&self.path, text + more).map_err(failed)
    }

    /// Three nodes on the loopback interface, and no group: those that are made while they run
    /// share a gateway port on each.
    pub(super) fn without_groups(quorba: &Path, folder: &Path) -> Result<Self, String> {
        let key = folder.join("domain.key");
        new_key(quorba, &key)?;
        let mut text = format!("[domain]\nid = \"interop\"\nkey_file = {key:?}\n");
        let (listen, nodes) = loopback_nodes(folder, &mut text)?;
        let _written = write!(text, "\n[gateway]\nlisten = {listen}\n");
        let path = folder.join("quorba.toml");
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, nodes })
    }
}

/// A type that nodes start, and where groups of it are reached.
fn type_of_bank(listen: u16) -> String {
    format!(
        "\n[gateway]\nlisten = {listen}\n\n[type.\"IDL:Bank/Ledger:1.0\"]\n\
         server = [\"{{quorba}}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
         state_object = \"bank\"\nobject_key = \"bank\"\n\
         type_id = \"IDL:Bank/Ledger:1.0\"\n"
    )
}

fn new_key(quorba: &Path, key: &Path) -> Result<(), String> {
    let output = Command::new(quorba)
        .args(["key", "new"])
        .arg(key)
        .output()
        .map_err(|error| format!("{}: {error}", quorba.display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("quorba key new: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn loopback_nodes(folder: &Path, text: &mut String) -> Result<(u16, Vec<Node>), String> {
    let first = free_ports(STRETCH)?;
    let nodes = (0..NODES as u16).map(|index| {
        let name = format!("n{}", index + 1);
        let (ring, admin) = (first + NODES as u16 + index, first + 2 * NODES as u16 + index);
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, admin));
        let state_dir = folder.join(&name);
        let _written = write!(
            text,
            "\n[node.{name}]\nhost = \"127.0.0.1\"\nring_port = {ring}\nadmin = \"{admin}\"\n\
             state_dir = {state_dir:?}\ngateway_port_offset = {index}\n"
        );
        let gateway = format!("127.0.0.1:{}", first + index);
        Node { name, admin, state_dir, gateway, place: Place::Here }
    });
    Ok((first, nodes.collect()))
}

fn namespace_nodes(folder: &Path, namespaces: &Namespaces, text: &mut String) -> Vec<Node> {
    let nodes = (0..NODES).map(|index| {
        let name = format!("n{}", index + 1);
        let host = namespaces::host(index);
        let state_dir = folder.join(&name);
        let _written = write!(
            text,
            "\n[node.{name}]\nhost = \"{host}\"\nstate_dir = {state_dir:?}\n\
             admin = \"127.0.0.1:4780\"\n"
        );
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, 4780));
        let gateway = format!("{host}:5000");
        Node { name, admin, state_dir, gateway, place: namespaces.node(index) }
    });
    nodes.collect()
}

/// The first of as many neighbouring ports as a case's nodes have. No other case has them.
pub(crate) fn more_ports() -> Result<u16, String> {
    free_ports(STRETCH)
}

/// The first of `count` neighbouring ports that are free over TCP and UDP.
pub(super) fn free_ports(count: u16) -> Result<u16, String> {
    // Two runs at once begin at different places, and two cases of a run do not meet either:
    // whoever asks has a stretch alone, however many of it are wanted.
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    assert!(count <= STRETCH, "{count} ports are more than a stretch");
    let steps = (PORTS.end - PORTS.start) / STRETCH;
    let begin = (std::process::id() % u32::from(steps)) as u16;
    let is_free = |port: u16| {
        let address = (Ipv4Addr::LOCALHOST, port);
        TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
    };
    (0..steps)
        .map(|_| TAKEN.fetch_add(1, Ordering::Relaxed))
        .map(|turn| PORTS.start + begin.wrapping_add(turn) % steps * STRETCH)
        .find(|first| (*first..first + count).all(is_free))
        .ok_or_else(|| format!("no {count} free ports in {PORTS:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_passed_over() {
        let first = free_ports(9).expect("free ports");
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 4)).expect("it was free");
        assert_ne!(free_ports(9).expect("other free ports"), first);
    }
}
