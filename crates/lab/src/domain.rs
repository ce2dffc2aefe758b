//! A domain of one group on the loopback interface, for one block.
//!
//! What it is not: anything that knows Quorba from inside. It starts the same `quorba node` that
//! a user starts, from a domain file that `quorba config check` accepts, and asks the admin API.
//!
//! Invariant: after [`Domain::start`] every node is in one view and every member executes.

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::status::{MemberState, RingState, ServerState, Status};
use quorba_admin::{Change, Client};
use quorba_config::DomainKey;
use quorba_node::Recorded;
use rustix::process::Signal;

use crate::error::LabError;
use crate::namespaces::{self, Namespaces};
use crate::nodes::{self, Ports};
use crate::orb::Orb;
use crate::peer::Peer;
use crate::place::Place;
use crate::plan::DomainShape;
use crate::wire::{self, Wire};

/// How long the nodes have to become one group.
const WHOLE_WITHIN: Duration = Duration::from_secs(30);
/// What the group is called.
const GROUP: &str = "echo";
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// How long a node has to answer one question.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The nodes of a running domain.
pub(crate) struct Domain {
    nodes: Vec<DomainNode>,
    /// Of each node.
    gateways: Vec<SocketAddr>,
    client: usize,
    wire: Option<Peer>,
}

/// What the members' servers are.
#[derive(Clone, Copy)]
pub(crate) enum Servers<'a> {
    /// The echo of this ORB, at this path.
    Echo(Orb, &'a Path),
    /// The bank that is part of the `quorba` program at this path.
    Bank(&'a Path),
    /// A server with a large state, of the program at this path.
    Ballast(&'a Path),
}

struct DomainNode {
    peer: Peer,
    admin: Client,
    place: Place,
}

impl DomainNode {
    /// Asks it something from where it is.
    fn ask<T: Send>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, String> + Send,
    ) -> Result<T, String> {
        self.place.run(|| question(&self.admin))
    }

    fn status(&self) -> Result<Status, String> {
        self.ask(|admin| admin.status(ANSWER_WITHIN).map_err(|error| error.to_string()))
    }
}

/// A server behind a node.
pub(crate) struct ServerProcess {
    pub(crate) name: String,
    pub(crate) pid: u32,
}

impl Domain {
    /// Starts the nodes with their files in `folder`, and waits until the group is whole.
    pub(crate) fn start(
        shape: &DomainShape,
        program: &Path,
        servers: Servers<'_>,
        folder: &Path,
        records: bool,
    ) -> Result<Self, String> {
        Self::start_within(None, (shape, program, servers), folder, records)
    }

    /// The same, with each node in a namespace of its own, if there are `namespaces`; the caller is
    /// where their clients are.
    pub(crate) fn start_within(
        namespaces: Option<&Namespaces>,
        (shape, program, servers): (&DomainShape, &Path, Servers<'_>),
        folder: &Path,
        records: bool,
    ) -> Result<Self, String> {
        let doing = "prepare the domain's files and ports";
        let hosts = hosts(shape, namespaces.is_some());
        let stage = Stage::make((shape, &hosts), servers, folder)
            .map_err(|error| LabError::system(doing)(error).to_string())?;
        let bound = |(index, port): (usize, &u16)| SocketAddr::from((hosts[index].bind, *port));
        let gateways = stage.ports.gateways.iter().enumerate().map(bound).collect();
        let wire = shape.wire.map(|wire| stage.start_wire(wire, program)).transpose();
        let wire = wire.map_err(|error| error.to_string())?;
        let mut domain = Self { nodes: Vec::new(), gateways, client: shape.client - 1, wire };
        for (index, admin) in stage.ports.admins.iter().enumerate() {
            let name = node_name(index);
            let place = namespaces.map_or(Place::Here, |all| all.node(index));
            let mut command = match place {
                Place::Here => Command::new(program),
                Place::Namespace(_) => place.command(program),
            };
            command.args(["node", &name, "--log", "warn", "--config"]).arg(&stage.file);
            // The node ends when this process does.
            command.arg("--parent").arg(std::process::id().to_string());
            if records {
                command.arg("--record").arg(record_of(folder, index));
            }
            let log = folder.join(format!("{name}.log"));
            let peer =
                Peer::start_logged(&name, &mut command, log).map_err(|error| error.to_string())?;
            let token = stage.state_dir(index).join("admin.token");
            let admin = Client::new(local(*admin), token);
            domain.nodes.push(DomainNode { peer, admin, place });
        }
        domain.await_whole(shape)?;
        // Who is in first leads; of two blocks the same member is to.
        if domain.leader()?.is_some_and(|leader| leader != node_name(0)) {
            domain.promote(0)?;
        }
        Ok(domain)
    }

    fn leader(&self) -> Result<Option<String>, String> {
        let statuses = self.statuses()?;
        Ok(statuses.first().and_then(|status| status.groups.first()?.leader.clone()))
    }

    /// Makes the member on the node of this index the leader, and waits until its server is up
    /// and every node knows.
    pub(crate) fn promote(&self, index: usize) -> Result<(), String> {
        let name = node_name(index);
        let change = Change::Promote(name.clone());
        let promote = |admin: &Client| {
            let promoted = admin.change(GROUP, &change, ANSWER_WITHIN);
            promoted.map(drop).map_err(|error| error.to_string())
        };
        self.nodes[index].ask(promote)?;
        let deadline = Instant::now() + WHOLE_WITHIN;
        let leads = |status: &Status| {
            let group = status.groups.first();
            let server = group.and_then(|group| group.server.as_ref());
            let runs_alone = group.is_some_and(|group| group.style == "cold-passive");
            let serves = match status.node == name {
                true => server.is_some_and(|server| server.state == ServerState::Running),
                // The one of who led before is being stopped; it would be missed in the middle.
                false => !runs_alone || server.is_none_or(|server| server.pid.is_none()),
            };
            serves && group.is_some_and(|group| group.leader.as_ref() == Some(&name))
        };
        while !self.statuses()?.iter().all(leads) {
            if Instant::now() >= deadline {
                let seen = |status: &Status| {
                    let group = status.groups.first();
                    let leader = group.and_then(|group| group.leader.as_deref());
                    let server = group.and_then(|group| group.server.as_ref());
                    let server = server.map_or("none", |server| server.state.as_str());
                    format!("{}: leader {}, server {server}", status.node, leader.unwrap_or("none"))
                };
                let all: Vec<String> = self.statuses()?.iter().map(seen).collect();
                let seconds = WHOLE_WITHIN.as_secs();
                let all = all.join("; ");
                return Err(format!("{name} does not lead within {seconds} s: {all}"));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Ends the nodes, and reads what they have recorded.
    pub(crate) fn end(self, folder: &Path) -> Result<Vec<Recorded>, String> {
        let count = self.nodes.len();
        drop(self);
        let mut recorded = Vec::new();
        for path in (0..count).map(|index| record_of(folder, index)) {
            let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
            for line in text.lines() {
                recorded.push(serde_json::from_str(line).map_err(|error| failed(&error))?);
            }
        }
        Ok(recorded)
    }

    /// The gateway's port at the client's node.
    pub(crate) fn gateway(&self) -> u16 {
        self.gateways[self.client].port()
    }

    /// The gateways at all nodes, the client's first.
    pub(crate) fn gateways(&self) -> impl Iterator<Item = SocketAddr> {
        let count = self.gateways.len();
        (0..count).map(move |step| self.gateways[(self.client + step) % count])
    }

    /// Sends `signal` to the node of this index.
    pub(crate) fn signal(&self, index: usize, signal: Signal) -> Result<(), LabError> {
        self.nodes[index].peer.signal(signal)
    }

    /// The process of the node of this index.
    pub(crate) fn pid(&self, index: usize) -> u32 {
        self.nodes[index].peer.pid()
    }

    /// Names and ids of the nodes' processes, and of what is between them.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        let nodes = self.nodes.iter().map(|node| &node.peer);
        nodes.chain(&self.wire).map(|peer| (peer.name.as_str(), peer.pid()))
    }

    /// What the node of this index says of itself.
    pub(crate) fn status(&self, index: usize) -> Result<Status, String> {
        self.nodes[index].status()
    }

    /// What each node says of itself.
    pub(crate) fn statuses(&self) -> Result<Vec<Status>, String> {
        self.nodes.iter().map(DomainNode::status).collect()
    }

    /// Why it is of no use any more, with the end of the log; `None` while all nodes run.
    pub(crate) fn death(&mut self) -> Option<String> {
        self.nodes.iter_mut().find_map(|node| {
            let death = node.peer.death()?;
            Some(format!("{death}\n{}", node.peer.log_tail()))
        })
    }

    fn await_whole(&mut self, shape: &DomainShape) -> Result<(), String> {
        let deadline = Instant::now() + WHOLE_WITHIN;
        loop {
            if let Some(death) = self.death() {
                return Err(death);
            }
            let missing = match self.statuses() {
                Ok(statuses) => match statuses.iter().find_map(|status| lack(status, shape)) {
                    None => return Ok(()),
                    Some(lack) => lack,
                },
                // It has not opened its admin API yet.
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                let logs: Vec<_> = self.nodes.iter().map(|node| node.peer.log_tail()).collect();
                let seconds = WHOLE_WITHIN.as_secs();
                let logs = logs.join("\n");
                return Err(format!("not whole within {seconds} s: {missing}\n{logs}"));
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // All at once, so that no node waits for the others while it ends.
        for node in &mut self.nodes {
            node.peer.ask_to_end();
        }
    }
}

/// The servers behind the nodes.
pub(crate) fn servers(statuses: &[Status]) -> Vec<ServerProcess> {
    let of = |status: &Status| {
        let pid = status.groups.first()?.server.as_ref()?.pid?;
        Some(ServerProcess { name: format!("server of {}", status.node), pid })
    };
    statuses.iter().filter_map(of).collect()
}

/// What is missing until the group is whole, as this node sees it.
fn lack(status: &Status, shape: &DomainShape) -> Option<String> {
    let node = &status.node;
    if status.ring.state != RingState::Operational || status.ring.members.len() != shape.nodes {
        return Some(format!(
            "{node} is in state {} with {} of {} nodes",
            status.ring.state,
            status.ring.members.len(),
            shape.nodes
        ));
    }
    let members = status.groups.iter().flat_map(|group| &group.members);
    let count = members.clone().filter(|member| member.state == MemberState::In).count();
    (count != shape.members).then(|| {
        let states: Vec<_> = members
            .map(|member| {
                let reason = member.reason.as_deref().unwrap_or("no reason");
                format!("{} is {} ({reason})", member.node, member.state.as_str())
            })
            .collect();
        format!("at {node}, {}", states.join(", "))
    })
}

/// The names of the nodes of a ring, from the one at `first` along the ring.
pub(crate) fn names_from<const NODES: usize>(first: usize) -> [String; NODES] {
    std::array::from_fn(|step| node_name((first + step) % NODES))
}

pub(crate) fn node_name(index: usize) -> String {
    format!("n{}", index + 1)
}

/// Where a node records its time stamps.
fn record_of(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{}.ndjson", node_name(index)))
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// What keeps a shape from being a domain, if anything; without any file or port.
pub(crate) fn refusal(shape: &DomainShape) -> Option<String> {
    checked(shape).err()
}

/// The domain of this shape, on made-up ports.
pub(crate) fn checked(shape: &DomainShape) -> Result<quorba_config::Domain, String> {
    let ports = Ports::of((10_000..).take(shape.nodes * 3).collect());
    let hosts = hosts(shape, false);
    let text =
        domain_text((shape, &hosts), Servers::Echo(Orb::Omniorb, Path::new("server")), &ports);
    let key = |_: &Path| Ok(vec![DomainKey::from_bytes([0; 32])]);
    let checked = quorba_config::check_text(Path::new("its domain file"), &text, key);
    checked.domain.ok_or_else(|| checked.report.render(false))
}

/// Where a node is.
struct Host {
    /// What the others call it.
    name: String,
    /// Where it listens.
    bind: Ipv4Addr,
}

fn hosts(shape: &DomainShape, in_namespaces: bool) -> Vec<Host> {
    let host = |index| match in_namespaces {
        true => {
            let name = namespaces::host(index);
            let bind = name.parse().expect("it is an address");
            Host { name, bind }
        }
        false => {
            let name = shape.wire.map_or(Ipv4Addr::LOCALHOST, |_| wire::outside(index)).to_string();
            Host { name, bind: Ipv4Addr::LOCALHOST }
        }
    };
    (0..shape.nodes).map(host).collect()
}

/// The files and ports of a domain.
struct Stage {
    folder: PathBuf,
    file: PathBuf,
    ports: Ports,
}

impl Stage {
    fn make(
        (shape, hosts): (&DomainShape, &[Host]),
        servers: Servers<'_>,
        folder: &Path,
    ) -> io::Result<Self> {
        let ports = Ports::free(shape.nodes)?;
        let file = nodes::write_files(folder, &domain_text((shape, hosts), servers, &ports))?;
        Ok(Self { folder: folder.to_owned(), file, ports })
    }

    fn start_wire(&self, wire: Wire, program: &Path) -> Result<Peer, LabError> {
        let mut arguments = vec!["wire".to_owned()];
        for (name, value) in [("--hop-us", wire.hop_us), ("--mbit-s", wire.mbit_s)] {
            arguments.extend([name.to_owned(), value.to_string()]);
        }
        for port in &self.ports.rings {
            arguments.extend(["--port".to_owned(), port.to_string()]);
        }
        Peer::start("wire", program, &arguments)
    }

    fn state_dir(&self, index: usize) -> PathBuf {
        self.folder.join(node_name(index))
    }
}

fn domain_text(
    (shape, hosts): (&DomainShape, &[Host]),
    servers: Servers<'_>,
    ports: &Ports,
) -> String {
    let listen = ports.listen();
    let mut text =
        format!("[domain]\nid = \"lab\"\nkey_file = \"domain.key\"\n\n[ring]\n{}\n", shape.ring);
    if !shape.limits.is_empty() {
        text.push_str(&format!("[limits]\n{}\n", shape.limits));
    }
    for (index, ring) in ports.rings.iter().enumerate() {
        text.push_str(&format!(
            "[node.{name}]\nhost = \"{host}\"\nbind = \"{bind}\"\nring_port = {ring}\n\
             admin = \"127.0.0.1:{admin}\"\nstate_dir = \"{name}\"\n\
             gateway_port_offset = {offset}\n\n",
            host = hosts[index].name,
            bind = hosts[index].bind,
            name = node_name(index),
            admin = ports.admins[index],
            offset = ports.gateways[index] - listen,
        ));
    }
    let members: Vec<String> =
        (0..shape.members).map(|index| format!("\"{}\"", node_name(index))).collect();
    let options = shape.server_options.iter().map(|option| escaped(option));
    let words = servers.words(shape.server_socket).into_iter().chain(options);
    let server: Vec<String> = words.map(|word| serde_json::Value::from(word).to_string()).collect();
    let style = match shape.group.contains_key("style") {
        true => "",
        false => "style = \"active\"\n",
    };
    text.push_str(&format!(
        "[group.{GROUP}]\n{style}listen = {listen}\nmembers = [{members}]\n{group}\
         server = [{server}]\n",
        members = members.join(", "),
        server = server.join(", "),
        group = shape.group,
    ));
    text
}

impl Servers<'_> {
    /// The command, as it stands in a domain file.
    fn words(self, socket: bool) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (program, rest): (_, Vec<String>) = match self {
            Self::Echo(orb, program) => {
                let at = socket.then(|| orb.listen_at("{socket}")).flatten();
                (program, at.unwrap_or_else(|| orb.listen_on("{port}")).into())
            }
            Self::Bank(program) => (program, words(&["servant", "bank", "--port", "{port}"])),
            Self::Ballast(program) => {
                (program, words(&["lab", "peer", "ballast", "--socket", "{socket}"]))
            }
        };
        let program = escaped(&program.to_string_lossy());
        std::iter::once(program).chain(rest).collect()
    }
}

/// Braces are doubled in templates.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_file_is_accepted() {
        for (nodes, members) in [(1, 1), (3, 1), (3, 3)] {
            let encrypt = nodes > 1;
            let ring = toml::Table::from_iter([("encrypt".to_owned(), encrypt.into())]);
            let group = toml::Table::from_iter([("ack".to_owned(), "agreed".into())]);
            let server_options = vec!["-ORBmaxServerThreadPerConnection".into(), "1".into()];
            let (wire, limits) = (None, toml::Table::new());
            let server_socket = members > 1;
            let shape = DomainShape {
                nodes,
                members,
                client: nodes,
                wire,
                ring,
                limits,
                group,
                server_options,
                server_socket,
            };
            assert_eq!(refusal(&shape), None);
            let folder = tempfile::tempdir().expect("a folder");
            let server = Path::new("/opt/a \"quoted\" {path}/echo_server");
            let stage = Stage::make(
                (&shape, &hosts(&shape, false)),
                Servers::Echo(Orb::Omniorb, server),
                folder.path(),
            )
            .expect("a stage");
            let domain = quorba_config::Domain::load(&stage.file)
                .unwrap_or_else(|report| panic!("{}", report.render(false)));
            assert_eq!((domain.nodes.len(), domain.groups[0].members.len()), (nodes, members));
            assert_eq!(domain.ring.encrypt, encrypt);
            assert_eq!(domain.groups[0].ack, quorba_base::policy::Ack::Agreed);
            for (index, node) in domain.nodes.iter().enumerate() {
                let gateway = domain.groups[0].gateway(node);
                assert_eq!(gateway.port, stage.ports.gateways[index]);
                assert_eq!(node.admin_token_file(), stage.state_dir(index).join("admin.token"));
            }
        }
    }
}
