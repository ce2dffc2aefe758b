//! The event services that are measured: a process of ours without a node, domains of one to four
//! nodes, and omniEvents.
//!
//! Invariant: what was started ends when the stand is dropped.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::Client as Admin;
use quorba_admin::status::{GroupStatus, MemberState};
use quorba_corba::giop::SystemException;
use quorba_corba::{Call, Interface, Objects};
use quorba_idl::quorba::{self, Leaders};
use quorba_net::free_ports;
use quorba_orb::{RunningServer, Server, ServerOptions};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Service;
use super::failover::Victim;
use crate::domain::node_name;
use crate::nodes::{self, Ports};
use crate::peer::Peer;

const UP_WITHIN: Duration = Duration::from_secs(60);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
/// The channel, and the group of the service.
const CHANNEL: &str = "measured";
const GROUP: &str = "events";
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
    processes: Vec<Peer>,
    program: PathBuf,
    file: PathBuf,
    admins: Vec<Admin>,
    _leaders: Option<RunningServer>,
    folder: TempDir,
}

impl Stand {
    /// Starts one, and waits until it serves.
    pub(super) fn start(program: &Path, service: Service) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let (processes, admins) = (Vec::new(), Vec::new());
        let mut stand = Self {
            channel: String::new(),
            processes,
            program: program.to_owned(),
            file: PathBuf::new(),
            admins,
            _leaders: None,
            folder,
        };
        match service {
            Service::Alone => stand.start_alone(program)?,
            Service::OmniEvents => stand.start_omni_events()?,
            Service::Domain { backups } => stand.start_domain(program, backups + 1)?,
        }
        Ok(stand)
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
        self.start_process("service", &mut command)?;
        self.channel = format!("corbaloc:iiop:1.2@{at}/Events/{CHANNEL}");
        self.await_port(port)
    }

    fn start_omni_events(&mut self) -> Result<(), String> {
        let port = free_ports(1).map_err(|error| error.to_string())?[0];
        let mut command = Command::new(super::OMNI_EVENTS);
        command.args(["-p", &port.to_string(), "-l"]).arg(self.folder.path());
        command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
        self.start_process("omniEvents", &mut command)?;
        self.channel = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/omniEvents");
        self.await_port(port)
    }

    fn start_process(&mut self, name: &str, command: &mut Command) -> Result<(), String> {
        let log = self.folder.path().join(name).with_extension("log");
        let peer = Peer::start_logged(name, command, log);
        self.processes.push(peer.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn await_port(&mut self, port: u16) -> Result<(), String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let deadline = Instant::now() + UP_WITHIN;
        while TcpStream::connect(address).is_err() {
            self.still_lives(deadline)?;
        }
        Ok(())
    }

    fn start_domain(&mut self, program: &Path, nodes: usize) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot prepare the domain: {error}");
        let ports = Ports::free(nodes).map_err(failed)?;
        let text = format!(
            "[domain]\nid = \"events\"\nkey_file = \"domain.key\"\n{}\
             [service.{GROUP}]\nlisten = {}\ndurable = false\n\
             [service.{GROUP}.channel.{CHANNEL}]\n",
            ports.tables(),
            ports.listen()
        );
        self.file = nodes::write_files(self.folder.path(), &text).map_err(failed)?;
        self.admins = ports.admin_clients(self.folder.path());
        for index in 0..nodes {
            self.processes.push(nodes::start(program, &self.file, index)?);
        }
        self.channel = ports.corbaloc(&format!("Events/{CHANNEL}"));
        self.await_whole()
    }

    /// Waits until every node sees every member in.
    pub(super) fn await_whole(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + UP_WITHIN;
        while !self.is_whole() {
            self.still_lives(deadline)?;
        }
        Ok(())
    }

    fn still_lives(&mut self, deadline: Instant) -> Result<(), String> {
        if let Some(death) = self.processes.iter_mut().find_map(Peer::death) {
            let tails: Vec<String> = self.processes.iter().map(Peer::log_tail).collect();
            return Err(format!("{death}\n{}", tails.join("\n")));
        }
        if Instant::now() >= deadline {
            return Err("it does not serve in time".to_owned());
        }
        thread::sleep(LOOK);
        Ok(())
    }

    /// The group, as a node sees it.
    fn group(&self, node: usize) -> Option<GroupStatus> {
        let status = self.admins[node].status(ANSWER_WITHIN).ok()?;
        status.groups.into_iter().find(|group| group.name == GROUP)
    }

    /// The node that leads, and the process of its service.
    pub(super) fn leader(&self) -> Result<(usize, u32), String> {
        let name = self.group(0).and_then(|group| group.leader).ok_or("nobody leads")?;
        let mut nodes = 0..self.admins.len();
        let node = nodes.find(|index| node_name(*index) == name).ok_or("it is no node")?;
        let pid = self.service_pid(node).ok_or("its service is away")?;
        Ok((node, pid))
    }

    fn service_pid(&self, node: usize) -> Option<u32> {
        self.group(node)?.server?.pid
    }

    /// Kills it.
    pub(super) fn kill(&self, victim: Victim, node: usize, pid: u32) -> Result<(), String> {
        match victim {
            Victim::Node => {
                self.processes[node].signal(Signal::KILL).map_err(|error| error.to_string())
            }
            Victim::Process => {
                let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process id")?;
                kill_process(raw, Signal::KILL).map_err(|error| error.to_string())
            }
        }
    }

    /// Waits until all is as before; a node that was killed is started anew.
    pub(super) fn mend(&mut self, victim: Victim, node: usize, pid: u32) -> Result<(), String> {
        if victim == Victim::Node {
            self.processes[node] = nodes::start(&self.program, &self.file, node)?;
        }
        let deadline = Instant::now() + UP_WITHIN;
        while self.service_pid(node).is_none_or(|now| now == pid) || !self.is_whole() {
            self.still_lives(deadline)?;
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        let nodes = self.admins.len();
        (0..nodes).all(|node| {
            self.group(node).is_some_and(|group| {
                let members = &group.members;
                members.iter().filter(|member| member.state == MemberState::In).count() == nodes
            })
        })
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(Peer::ask_to_end);
    }
}
