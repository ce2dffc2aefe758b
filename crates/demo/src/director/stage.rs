//! The temporary folder of a run: domain key, domain file, logs.
//!
//! What it is not: anything that a user would keep. Everything in it goes when the run ends.
//!
//! Invariants: the folder's path stands in the command line of every process of the run, so that
//! whatever is left of a run can be found by it; the domain file is one that
//! `quorba config check` accepts.

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use quorba_base::policy::Style;
use quorba_config::DomainKey;
use quorba_net::free_ports;
use tempfile::TempDir;

/// Object key of the bank, and name of its group.
pub(crate) const BANK_KEY: &str = "bank";
/// Repository id of the bank's interface.
pub(crate) const BANK_TYPE_ID: &str = "IDL:Bank/Ledger:1.0";

/// How often neighbouring ports are looked for; most places have some.
const PORT_TRIES: usize = 100;

/// The folder, and what is in it.
pub(super) struct Stage {
    folder: TempDir,
    nodes: Vec<StageNode>,
}

/// One node's entry in the domain file.
pub(super) struct StageNode {
    pub(super) name: String,
    pub(super) admin: SocketAddr,
    pub(super) gateway: SocketAddr,
    /// Where it has the naming service.
    pub(super) naming: SocketAddr,
    pub(super) state_dir: PathBuf,
}

/// Ports of one run, one of each kind per node.
struct Ports {
    ring: Vec<u16>,
    admin: Vec<u16>,
    /// Of the bank's group.
    gateway: Vec<u16>,
    /// Of the naming service.
    naming: Vec<u16>,
}

impl Ports {
    fn find(nodes: usize) -> io::Result<Self> {
        // A node's one offset is added to the ports of both groups, so they must be neighbours.
        let are_neighbours =
            |ports: &[u16]| ports.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        for _ in 0..PORT_TRIES {
            let mut ring = free_ports(nodes * 4)?;
            if are_neighbours(&ring) {
                let naming = ring.split_off(nodes * 3);
                let gateway = ring.split_off(nodes * 2);
                let admin = ring.split_off(nodes);
                return Ok(Self { ring, admin, gateway, naming });
            }
        }
        let fault = format!("no {} free ports beside each other", nodes * 4);
        Err(io::Error::new(io::ErrorKind::AddrInUse, fault))
    }
}

impl Stage {
    /// Makes a folder for a domain of `nodes` nodes, whose servers are `program servant bank` and
    /// share the work as `style` says; `durable`: its nodes keep everything on disk.
    pub(super) fn make(
        nodes: usize,
        program: &Path,
        style: Style,
        durable: bool,
    ) -> io::Result<Self> {
        // In names of 14 digits and letters no two runs meet.
        let folder = tempfile::Builder::new().prefix("quorba-demo-").rand_bytes(14).tempdir()?;
        let ports = Ports::find(nodes)?;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        write_private(&folder.path().join("domain.key"), &DomainKey::from_bytes(secret).to_text())?;
        let stage = Self { nodes: stage_nodes(folder.path(), &ports), folder };
        fs::write(stage.domain_file(), stage.domain_text(&ports, program, (style, durable)))?;
        Ok(stage)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn domain_file(&self) -> PathBuf {
        self.path().join("quorba.toml")
    }

    pub(super) fn nodes(&self) -> &[StageNode] {
        &self.nodes
    }

    /// The group's reference in the form that every ORB takes: all gateways.
    pub(super) fn corbaloc(&self) -> String {
        let addresses: Vec<String> =
            self.nodes.iter().map(|node| format!("iiop:1.2@{}", node.gateway)).collect();
        format!("corbaloc:{}/{BANK_KEY}", addresses.join(","))
    }

    /// The reference of the naming service's root, likewise.
    pub(super) fn naming_corbaloc(&self) -> String {
        let addresses: Vec<String> =
            self.nodes.iter().map(|node| format!("iiop:1.2@{}", node.naming)).collect();
        format!("corbaloc:{}/NameService", addresses.join(","))
    }

    fn domain_text(
        &self,
        ports: &Ports,
        program: &Path,
        (style, durable): (Style, bool),
    ) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let path = |path: &Path| quoted(&path.to_string_lossy());
        let listen = ports.gateway.iter().min().expect("a domain has nodes");
        let mut text = format!(
            "[domain]\nid = \"demo\"\nkey_file = {key}\n\n\
             [ring]\n# All nodes are on the loopback interface, which takes large datagrams.\n\
             datagram_bytes_max = 60000\n\n",
            key = path(&self.path().join("domain.key")),
        );
        for (index, node) in self.nodes.iter().enumerate() {
            text.push_str(&format!(
                "[node.{name}]\nhost = \"127.0.0.1\"\nring_port = {ring}\nadmin = \"{admin}\"\n\
                 state_dir = {state}\ngateway_port_offset = {offset}\n\n",
                name = node.name,
                ring = ports.ring[index],
                admin = node.admin,
                state = path(&node.state_dir),
                offset = ports.gateway[index] - listen,
            ));
        }
        let members: Vec<String> = self.nodes.iter().map(|node| quoted(&node.name)).collect();
        let run = self.path().to_string_lossy();
        let server = [&program.to_string_lossy(), "servant", "bank", "--port", "{port}"]
            .into_iter()
            .chain(["--run", &run])
            .map(quoted)
            .collect::<Vec<_>>();
        text.push_str(&format!(
            "[group.{BANK_KEY}]\nstyle = \"{style}\"\ndurable = {durable}\n\
             listen = {listen}\nmembers = [{members}]\n\
             server = [{server}]\nstate_object = \"{BANK_KEY}\"\nobject_key = \"{BANK_KEY}\"\n\
             type_id = \"{BANK_TYPE_ID}\"\n",
            members = members.join(", "),
            server = server.join(", "),
        ));
        let naming = ports.naming.iter().min().expect("a domain has nodes");
        text.push_str(&format!("\n[service.naming]\nlisten = {naming}\ndurable = {durable}\n"));
        text
    }
}

fn stage_nodes(folder: &Path, ports: &Ports) -> Vec<StageNode> {
    let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    (ports.admin.iter().zip(ports.gateway.iter().zip(&ports.naming)).enumerate())
        .map(|(index, (admin, (gateway, naming)))| {
            let name = format!("n{}", index + 1);
            let state_dir = folder.join(&name);
            let [admin, gateway, naming] = [admin, gateway, naming].map(|port| local(*port));
            StageNode { name, admin, gateway, naming, state_dir }
        })
        .collect()
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_file_is_accepted_and_the_folder_goes() {
        let program = Path::new("/opt/a \"quoted\" path/quorba");
        let stage = Stage::make(3, program, Style::WarmPassive, true).expect("a stage");
        let folder = stage.path().to_owned();
        let domain = quorba_config::Domain::load(&stage.domain_file())
            .unwrap_or_else(|report| panic!("{}", report.render(false)));
        assert_eq!(domain.nodes.len(), 3);
        for (node, staged) in domain.nodes.iter().zip(stage.nodes()) {
            let gateway = domain.groups[0].gateway(node);
            assert_eq!(gateway.to_string(), staged.gateway.to_string());
            let naming = domain.group("naming").expect("the service").gateway(node);
            assert_eq!(naming.to_string(), staged.naming.to_string());
        }
        drop(stage);
        assert!(!folder.exists());
    }
}
