//! The naming services that are measured: omniNames, and domains of three nodes.
//!
//! Invariant: what was started ends when the stand is dropped.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::Client as Admin;
use quorba_admin::status::{GroupStatus, MemberState};
use quorba_net::free_ports;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Service;
use crate::nodes::{self, Ports};
use crate::peer::Peer;

const NODES: usize = 3;
const UP_WITHIN: Duration = Duration::from_secs(60);
const BACK_WITHIN: Duration = Duration::from_secs(300);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// A naming service that runs.
pub(super) struct Stand {
    /// The root context, at all of its addresses.
    pub(super) root: String,
    processes: Vec<Peer>,
    admins: Vec<Admin>,
    folder: TempDir,
}

impl Stand {
    /// Starts one, and waits until it serves.
    pub(super) fn start(program: &Path, service: Service) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let mut stand =
            Self { root: String::new(), processes: Vec::new(), admins: Vec::new(), folder };
        match service {
            Service::OmniNames => stand.start_omni_names()?,
            Service::Memory => stand.start_domain(program, false)?,
            Service::Durable => stand.start_domain(program, true)?,
        }
        Ok(stand)
    }

    /// Whether it is a domain.
    pub(super) fn is_ours(&self) -> bool {
        !self.admins.is_empty()
    }

    fn start_omni_names(&mut self) -> Result<(), String> {
        let port = free_ports(1).map_err(|error| error.to_string())?[0];
        let folder = self.folder.path();
        let mut command = Command::new("omniNames");
        command.args(["-always", "-start", &port.to_string(), "-datadir"]).arg(folder);
        command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
        let peer = Peer::start_logged("omniNames", &mut command, folder.join("omni-names.log"));
        self.processes.push(peer.map_err(|error| error.to_string())?);
        self.root = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/NameService");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let deadline = Instant::now() + UP_WITHIN;
        while TcpStream::connect(address).is_err() {
            self.still_lives(deadline)?;
        }
        Ok(())
    }

    fn start_domain(&mut self, program: &Path, durable: bool) -> Result<(), String> {
        let folder = self.folder.path().to_owned();
        let failed = |error: io::Error| format!("cannot prepare the domain: {error}");
        let ports = Ports::free(NODES).map_err(failed)?;
        let text = format!(
            "[domain]\nid = \"names\"\nkey_file = \"domain.key\"\n{}\
             [service.naming]\nlisten = {}\ndurable = {durable}\n",
            ports.tables(),
            ports.listen()
        );
        let file = nodes::write_files(&folder, &text).map_err(failed)?;
        self.admins = ports.admin_clients(&folder);
        for index in 0..NODES {
            self.processes.push(nodes::start(program, &file, index)?);
        }
        self.root = ports.corbaloc("NameService");
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
        status.groups.into_iter().find(|group| group.name == "naming")
    }

    /// Whether every node sees every member in.
    fn is_whole(&self) -> bool {
        (0..NODES).all(|node| {
            self.group(node).is_some_and(|group| {
                let members = &group.members;
                members.iter().filter(|member| member.state == MemberState::In).count() == NODES
            })
        })
    }

    fn service_pid(&self, node: usize) -> Option<u32> {
        self.group(node)?.server?.pid
    }

    /// Resident memory of the largest service process, and of the largest node.
    pub(super) fn memory_mib(&self) -> Result<(f64, f64), String> {
        let services = (0..NODES).map(|node| self.service_pid(node).ok_or("a service is away"));
        let services: Vec<u32> = services.collect::<Result<_, _>>()?;
        let nodes: Vec<u32> = self.processes.iter().map(Peer::pid).collect();
        let most = |pids: Vec<u32>| {
            let sizes = pids.into_iter().map(resident_kib).collect::<Result<Vec<_>, _>>();
            sizes.map(|sizes| f64::from(sizes.into_iter().max().unwrap_or(0)) / 1024.0)
        };
        Ok((most(services)?, most(nodes)?))
    }

    /// Kills one service process; how long it takes until the member is in again.
    pub(super) fn kill_and_wait(&self) -> Result<Duration, String> {
        let node = NODES - 1;
        let pid = self.service_pid(node).ok_or("the service is away")?;
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process id")?;
        let began = Instant::now();
        kill_process(raw, Signal::KILL).map_err(|error| error.to_string())?;
        while self.service_pid(node).is_none_or(|now| now == pid) || !self.is_whole() {
            if began.elapsed() > BACK_WITHIN {
                return Err("it does not come back in time".to_owned());
            }
            thread::sleep(LOOK);
        }
        Ok(began.elapsed())
    }
}

fn resident_kib(pid: u32) -> Result<u32, String> {
    let text =
        fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).ok_or_else(|| "/proc has another form".to_owned())
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(Peer::ask_to_end);
    }
}
