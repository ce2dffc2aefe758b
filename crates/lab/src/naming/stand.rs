//! The naming services that are measured: omniNames, and domains of three nodes.
//!
//! What it is not: the processes, which end with [`Running`].

use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use quorba_net::free_ports;

use super::Service;
use crate::nodes::{self, Ports};
use crate::peer::Peer;
use crate::service::{LOOK, Running, kill};
use crate::usage;

const NODES: usize = 3;
const BACK_WITHIN: Duration = Duration::from_secs(300);

/// A naming service that runs.
pub(super) struct Stand {
    /// The root context, at all of its addresses.
    pub(super) root: String,
    running: Running,
}

impl Stand {
    /// Starts one, and waits until it serves.
    pub(super) fn start(program: &Path, service: Service) -> Result<Self, String> {
        let mut stand = Self { root: String::new(), running: Running::new("naming")? };
        match service {
            Service::OmniNames => stand.start_omni_names()?,
            Service::Memory => stand.start_domain(program, false)?,
            Service::Durable => stand.start_domain(program, true)?,
        }
        Ok(stand)
    }

    fn start_omni_names(&mut self) -> Result<(), String> {
        let port = free_ports(1).map_err(|error| error.to_string())?[0];
        let mut command = Command::new("omniNames");
        command.args(["-always", "-start", &port.to_string(), "-datadir"]);
        command.arg(self.running.folder.path());
        command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
        self.running.start("omniNames", &mut command)?;
        self.root = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/NameService");
        self.running.await_port(port)
    }

    fn start_domain(&mut self, program: &Path, durable: bool) -> Result<(), String> {
        let folder = self.running.folder.path().to_owned();
        let failed = |error: io::Error| format!("cannot prepare the domain: {error}");
        let ports = Ports::free(NODES).map_err(failed)?;
        let text = format!(
            "[domain]\nid = \"names\"\nkey_file = \"domain.key\"\n{}\
             [service.naming]\nlisten = {}\ndurable = {durable}\n",
            ports.tables(),
            ports.listen()
        );
        let file = nodes::write_files(&folder, &text).map_err(failed)?;
        self.running.admins = ports.admin_clients(&folder);
        for index in 0..NODES {
            self.running.processes.push(nodes::start(program, &file, index)?);
        }
        self.root = ports.corbaloc("NameService");
        self.running.await_whole()
    }

    /// Resident memory of the largest service process, and of the largest node.
    pub(super) fn memory_mib(&self) -> Result<(f64, f64), String> {
        let services =
            (0..NODES).map(|node| self.running.service_pid(node).ok_or("a service is away"));
        let services: Vec<u32> = services.collect::<Result<_, _>>()?;
        let nodes: Vec<u32> = self.running.processes.iter().map(Peer::pid).collect();
        let most = |pids: Vec<u32>| {
            let sizes = pids.into_iter().map(usage::resident_kib).collect::<Result<Vec<_>, _>>();
            let sizes = sizes.map_err(|error| error.to_string());
            sizes.map(|sizes| f64::from(sizes.into_iter().max().unwrap_or(0)) / 1024.0)
        };
        Ok((most(services)?, most(nodes)?))
    }

    /// Kills one service process; how long it takes until the member is in again.
    pub(super) fn kill_and_wait(&self) -> Result<Duration, String> {
        let node = NODES - 1;
        let pid = self.running.service_pid(node).ok_or("the service is away")?;
        let began = Instant::now();
        kill(pid)?;
        while !self.running.is_back(node, pid) {
            if began.elapsed() > BACK_WITHIN {
                return Err("it does not come back in time".to_owned());
            }
            thread::sleep(LOOK);
        }
        Ok(began.elapsed())
    }
}
