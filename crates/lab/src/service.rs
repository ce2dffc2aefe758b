//! A service that is measured: its processes, and the group that it is in a domain.
//!
//! What it is not: which service, and how it is called; that is its stand's.
//!
//! Invariant: what was started ends when this is dropped.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::Client as Admin;
use quorba_admin::status::{GroupStatus, MemberState};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::peer::Peer;

const UP_WITHIN: Duration = Duration::from_secs(60);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked whether something has come about.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// See the module's text.
pub(crate) struct Running {
    /// Nodes of a domain by their index; or the one process of another service.
    pub(crate) processes: Vec<Peer>,
    /// Of each node.
    pub(crate) admins: Vec<Admin>,
    group: &'static str,
    pub(crate) folder: TempDir,
}

impl Running {
    /// Nothing yet. `group`: what the service is called in a domain.
    pub(crate) fn new(group: &'static str) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        Ok(Self { processes: Vec::new(), admins: Vec::new(), group, folder })
    }

    /// Starts a process that writes to `NAME.log`.
    pub(crate) fn start(&mut self, name: &str, command: &mut Command) -> Result<(), String> {
        let log = self.folder.path().join(name).with_extension("log");
        let peer = Peer::start_logged(name, command, log);
        self.processes.push(peer.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Waits until somebody listens there.
    pub(crate) fn await_port(&mut self, port: u16) -> Result<(), String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.wait_for(|_| TcpStream::connect(address).is_ok())
    }

    /// Waits until every node sees every member in.
    pub(crate) fn await_whole(&mut self) -> Result<(), String> {
        self.wait_for(Self::is_whole)
    }

    /// Waits for something, as long as all processes live.
    pub(crate) fn wait_for(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + UP_WITHIN;
        while !is_so(self) {
            if let Some(death) = self.processes.iter_mut().find_map(Peer::death) {
                let tails: Vec<String> = self.processes.iter().map(Peer::log_tail).collect();
                return Err(format!("{death}\n{}", tails.join("\n")));
            }
            if Instant::now() >= deadline {
                return Err("it does not serve in time".to_owned());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// The group, as a node sees it.
    pub(crate) fn group(&self, node: usize) -> Option<GroupStatus> {
        let status = self.admins[node].status(ANSWER_WITHIN).ok()?;
        status.groups.into_iter().find(|group| group.name == self.group)
    }

    /// The process of the node's member.
    pub(crate) fn service_pid(&self, node: usize) -> Option<u32> {
        self.group(node)?.server?.pid
    }

    /// Whether every node sees every member in.
    pub(crate) fn is_whole(&self) -> bool {
        let nodes = self.admins.len();
        (0..nodes).all(|node| {
            self.group(node).is_some_and(|group| {
                let members = &group.members;
                members.iter().filter(|member| member.state == MemberState::In).count() == nodes
            })
        })
    }

    /// Whether the node's member has another process than that, and all are in.
    pub(crate) fn is_back(&self, node: usize, pid: u32) -> bool {
        self.service_pid(node).is_some_and(|now| now != pid) && self.is_whole()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(Peer::ask_to_end);
    }
}

/// Ends a process at once.
pub(crate) fn kill(pid: u32) -> Result<(), String> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process id")?;
    kill_process(raw, Signal::KILL).map_err(|error| error.to_string())
}
