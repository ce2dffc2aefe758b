//! The event services that are measured: a process of ours without a node, domains of one to four
//! nodes, omniEvents and IceStorm.
//!
//! What it is not: the processes, which end with [`Running`].

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use quorba_base::policy::Replication;
use quorba_corba::giop::SystemException;
use quorba_corba::{Call, Interface, Object, Objects};
use quorba_idl::quorba::{self, Leaders};
use quorba_net::free_ports;
use quorba_orb::{RunningServer, Server, ServerOptions};
use rustix::process::Signal;

use super::failover::Victim;
use super::measures::Measures;
use super::{Service, ice_storm};
use crate::domain::node_name;
use crate::nodes::{self, Ports};
use crate::peer::Peer;
use crate::service::{Running, kill};
use crate::usage;

/// The channel, and the group of the service.
const CHANNEL: &str = "measured";
const GROUP: &str = "events";
/// How often omniEvents looks for events to hand out. Its own 100 ms would make each event wait for
/// 50 ms.
const CYCLE_NS: &str = "1000";
/// Who leads where nobody else is.
const ALONE: &str = "alone";

/// A program that says for ever that the process which asks it leads.
struct Alone;

impl Leaders for Alone {
    fn leader(&mut self, _: String, known: String, wait: u32) -> Result<String, SystemException> {
        if known == ALONE {
            thread::sleep(Duration::from_millis(wait.into()));
        }
        Ok(ALONE.to_owned())
    }

    fn gateway(&mut self, _: String) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn monitorable(&mut self, _: String) -> Result<Object, SystemException> {
        Ok(Object::nil())
    }
}

impl Objects for Alone {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(quorba::LEADERS)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        quorba::dispatch_leaders(self, call)
    }
}

/// An event service that runs.
pub(super) struct Stand {
    /// Its channel, at all addresses.
    pub(super) channel: String,
    /// The one gateway that is called, if not all are to be.
    pub(super) entrance: Option<SocketAddr>,
    gateways: Vec<u16>,
    /// Where IceStorm listens, if it is that.
    pub(super) port: u16,
    running: Running,
    program: PathBuf,
    file: PathBuf,
    _leaders: Option<RunningServer>,
}

impl Stand {
    /// Starts one, and waits until it serves.
    pub(super) fn start(program: &Path, service: Service) -> Result<Self, String> {
        let mut stand = Self::new(program)?;
        match service {
            Service::Alone => stand.start_alone(program)?,
            Service::OmniEvents => stand.start_omni_events()?,
            Service::IceStorm => stand.start_ice_storm()?,
            Service::Domain { backups } => stand.start_domain(program, backups + 1, "")?,
            Service::AtLeader | Service::AtOther => {
                let nodes = Service::BACKUPS_MAX + 1;
                stand.start_domain(program, nodes, "")?;
                let (leader, _) = stand.leader()?;
                let away = usize::from(service == Service::AtOther);
                let port = stand.gateways[(leader + away) % nodes];
                stand.entrance = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            }
        }
        Ok(stand)
    }

    /// Starts a domain with so many backups, and these measures.
    pub(super) fn with(program: &Path, backups: usize, measures: Measures) -> Result<Self, String> {
        let mut stand = Self::new(program)?;
        stand.start_domain(program, backups + 1, &measures.keys())?;
        Ok(stand)
    }

    /// Starts a domain with so many backups, whose members count in this way as those that have a
    /// call.
    pub(super) fn counting(
        program: &Path,
        backups: usize,
        replication: Replication,
    ) -> Result<Self, String> {
        let mut stand = Self::new(program)?;
        let key = format!("replication = \"{}\"\n", replication.as_str());
        stand.start_domain(program, backups + 1, &key)?;
        Ok(stand)
    }

    fn new(program: &Path) -> Result<Self, String> {
        Ok(Self {
            channel: String::new(),
            entrance: None,
            gateways: Vec::new(),
            port: 0,
            running: Running::new(GROUP)?,
            program: program.to_owned(),
            file: PathBuf::new(),
            _leaders: None,
        })
    }

    /// Why the threads that events wait for have no priority on some node, if they are to have one
    /// and have none.
    pub(super) fn is_refused(&mut self) -> Result<Option<String>, String> {
        let said = |running: &Running, node| running.group(node)?.server?.scheduling;
        let nodes = self.running.admins.len();
        self.running.wait_for(|running| (0..nodes).all(|node| said(running, node).is_some()))?;
        Ok((0..nodes).find_map(|node| said(&self.running, node)?.refused))
    }

    fn start_alone(&mut self, program: &Path) -> Result<(), String> {
        let failed = |error: io::Error| format!("nobody can say who leads: {error}");
        let bound = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let leaders = bound.map_err(failed)?.with_objects(Alone).start().map_err(failed)?;
        let port = free_ports(1).map_err(|error| error.to_string())?[0];
        let at = format!("127.0.0.1:{port}");
        let mut command = Command::new(program);
        command.args(["serve", "events", "--listen", &at, "--publish", &at, "--gateway", &at]);
        command.args(["--leaders", &format!("corbaloc:iiop:1.2@{}/l", leaders.address())]);
        command.args(["--node", ALONE, "--group", GROUP, "--channel", CHANNEL]);
        self._leaders = Some(leaders);
        self.running.start("service", &mut command)?;
        self.channel = format!("corbaloc:iiop:1.2@{at}/Events/{CHANNEL}");
        self.running.await_port(port)
    }

    fn start_omni_events(&mut self) -> Result<(), String> {
        let port = free_ports(1).map_err(|error| error.to_string())?[0];
        let mut command = Command::new(super::OMNI_EVENTS);
        command.args(["-f", "-p", &port.to_string(), "-l"]).arg(self.running.folder.path());
        self.running.start("omniEvents", &mut command)?;
        self.running.await_port(port)?;
        // It has no channel of its own accord.
        let mut command = Command::new("eventc");
        command.args([
            "-c",
            CYCLE_NS,
            "-i",
            CHANNEL,
            "-v",
            &format!("corbaloc::127.0.0.1:{port}/omniEvents"),
        ]);
        // There is no naming service; it goes on without.
        command.args(["-ORBInitRef", "NameService=corbaloc::127.0.0.1:1/NameService"]);
        let made =
            command.output().map_err(|error| format!("eventc cannot be started: {error}"))?;
        let said = String::from_utf8_lossy(&made.stdout);
        let reference = said.lines().find(|line| line.starts_with("IOR:"));
        let failed = || format!("eventc says no reference: {}", said.trim());
        self.channel = reference.ok_or_else(failed)?.to_owned();
        Ok(())
    }

    fn start_ice_storm(&mut self) -> Result<(), String> {
        self.port = free_ports(1).map_err(|error| error.to_string())?[0];
        let file = ice_storm::write_files(self.running.folder.path(), self.port);
        let file = file.map_err(|error| format!("no files for IceStorm: {error}"))?;
        let mut command = Command::new(ice_storm::BOX);
        command.arg(format!("--Ice.Config={}", file.display()));
        self.running.start("icebox", &mut command)?;
        self.running.await_port(self.port)
    }

    fn start_domain(&mut self, program: &Path, nodes: usize, keys: &str) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot prepare the domain: {error}");
        let ports = Ports::free(nodes).map_err(failed)?;
        let text = format!(
            "[domain]\nid = \"events\"\nkey_file = \"domain.key\"\n{}\
             [service.{GROUP}]\nlisten = {}\ndurable = false\n{keys}\
             [service.{GROUP}.channel.{CHANNEL}]\n",
            ports.tables(),
            ports.listen()
        );
        self.file = nodes::write_files(self.running.folder.path(), &text).map_err(failed)?;
        self.running.admins = ports.admin_clients(self.running.folder.path());
        for index in 0..nodes {
            self.running.processes.push(nodes::start(program, &self.file, index)?);
        }
        self.channel = ports.corbaloc(&format!("Events/{CHANNEL}"));
        self.gateways = ports.gateways;
        self.running.await_whole()
    }

    /// Waits until every node sees every member in.
    pub(super) fn await_whole(&mut self) -> Result<(), String> {
        self.running.await_whole()
    }

    /// The node that leads, and the process of its service.
    pub(super) fn leader(&self) -> Result<(usize, u32), String> {
        let name = self.running.group(0).and_then(|group| group.leader).ok_or("nobody leads")?;
        let mut nodes = 0..self.running.admins.len();
        let node = nodes.find(|index| node_name(*index) == name).ok_or("it is no node")?;
        let pid = self.running.service_pid(node).ok_or("its service is away")?;
        Ok((node, pid))
    }

    /// A node that does not lead, and the process of its service.
    pub(super) fn backup(&self) -> Result<(usize, u32), String> {
        let (leader, _) = self.leader()?;
        let mut others = (0..self.running.admins.len()).filter(|node| *node != leader);
        let node = others.next().ok_or("there is no backup")?;
        Ok((node, self.running.service_pid(node).ok_or("its service is away")?))
    }

    /// The processes of the service: nodes, and their members' servers.
    fn pids(&self) -> impl Iterator<Item = u32> {
        let nodes = 0..self.running.admins.len();
        let servers = nodes.filter_map(|node| self.running.service_pid(node));
        self.running.processes.iter().map(Peer::pid).chain(servers)
    }

    /// CPU time of the service's processes so far.
    pub(super) fn cpu(&self) -> Result<Duration, String> {
        let used = self.pids().map(|pid| {
            usage::of_process(pid).map(|it| Duration::from_micros(it.user_us + it.system_us))
        });
        used.sum::<Result<_, _>>().map_err(|error| format!("no CPU time: {error}"))
    }

    /// Memory of the process that leads, in KiB.
    pub(super) fn memory_kib(&self) -> Result<u32, String> {
        let (_, pid) = self.leader()?;
        usage::resident_kib(pid).map_err(|error| format!("no memory of the leader: {error}"))
    }

    /// Kills it.
    pub(super) fn kill(&self, victim: Victim, node: usize, pid: u32) -> Result<(), String> {
        match victim {
            Victim::Node => {
                let process = &self.running.processes[node];
                process.signal(Signal::KILL).map_err(|error| error.to_string())
            }
            Victim::Process | Victim::Backup => kill(pid),
            Victim::Nobody => Ok(()),
        }
    }

    /// Waits until all is as before; a node that was killed is started anew.
    pub(super) fn mend(&mut self, victim: Victim, node: usize, pid: u32) -> Result<(), String> {
        if victim == Victim::Node {
            self.running.processes[node] = nodes::start(&self.program, &self.file, node)?;
        }
        if victim == Victim::Nobody {
            return Ok(());
        }
        self.running.wait_for(|running| running.is_back(node, pid))
    }
}
