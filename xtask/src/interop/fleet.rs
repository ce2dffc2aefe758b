//! The node processes of a case, and what they say of themselves.
//!
//! What it is not: the judge of what became of the calls; nothing that a node says is believed
//! about that.
//!
//! Invariant: when a [`Fleet`] is dropped, no process of the case is left: neither a node nor a
//! server that outlived its node.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::status::{GroupStatus, MemberState, Status};
use rustix::process::{Pid, Signal, kill_process};

use super::domain::{DomainFile, Node};
use crate::place::Place;
use crate::wait;

/// How long a node may take to answer `GET /v1/status`.
const STATUS_TIME_MAX: Duration = Duration::from_secs(2);
/// How long the group may take to become whole: JVMs start on two busy cores.
const WHOLE_TIME_MAX: Duration = Duration::from_secs(45);
/// How long a node may take to end after SIGTERM.
const END_TIME_MAX: Duration = Duration::from_secs(15);
/// How long a change of style may take; the members that had no server start one.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(20);
/// How long [`sweep`] goes on.
const SWEEP_TIME_MAX: Duration = Duration::from_secs(2);

pub(super) struct Fleet {
    quorba: PathBuf,
    folder: PathBuf,
    group: &'static str,
    domain_file: PathBuf,
    nodes: Vec<Node>,
    processes: Vec<Option<Child>>,
}

/// What a member's node says of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) pid: u32,
    pub(super) port: u16,
}

impl Fleet {
    pub(super) fn start(
        quorba: &Path,
        folder: &Path,
        group: &'static str,
        domain: DomainFile,
    ) -> Result<Self, String> {
        let mut fleet = Self {
            quorba: quorba.to_owned(),
            folder: folder.to_owned(),
            group,
            domain_file: domain.path,
            processes: domain.nodes.iter().map(|_| None).collect(),
            nodes: domain.nodes,
        };
        for index in 0..fleet.nodes.len() {
            fleet.start_node(index)?;
        }
        Ok(fleet)
    }

    /// The domain file of all nodes.
    pub(super) fn domain_file(&self) -> &Path {
        &self.domain_file
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The group's reference as `quorba ior make` prints it.
    pub(super) fn reference(&self) -> Result<String, String> {
        let output = Place::Here
            .command(&self.quorba)
            .args(["ior", "make", self.group, "--config"])
            .arg(&self.domain_file)
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && text.starts_with("IOR:") {
            return Ok(text);
        }
        Err(format!("quorba ior make: {text} {}", String::from_utf8_lossy(&output.stderr).trim()))
    }

    pub(super) fn start_node(&mut self, index: usize) -> Result<(), String> {
        let node = &self.nodes[index];
        let log = self.folder.join(format!("{}.log", node.name));
        let open = || File::options().create(true).append(true).open(&log);
        let (out, err) = open()
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = node.place.command(&self.quorba);
        command.args(["node", &node.name, "--config"]).arg(&self.domain_file);
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().map_err(|error| format!("{}: {error}", node.name))?;
        self.processes[index] = Some(child);
        Ok(())
    }

    /// SIGKILL, and the process is gone.
    pub(super) fn kill_node(&mut self, index: usize) {
        if let Some(mut child) = self.processes[index].take() {
            // It cannot fail but for a process that has ended already, which is what is wanted.
            let _killed = child.kill();
            let _status = child.wait();
        }
    }

    /// SIGTERM, and waits until the process has ended by itself.
    pub(super) fn end_node(&mut self, index: usize) -> Result<(), String> {
        let Some(mut child) = self.processes[index].take() else { return Ok(()) };
        signal(child.id(), Signal::TERM);
        let ended =
            wait::until("a node ends after SIGTERM", END_TIME_MAX, || match child.try_wait() {
                Ok(Some(status)) => Ok(status),
                _ => Err(format!("{} still runs", self.nodes[index].name)),
            });
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", self.nodes[index].name)),
            Err(reason) => {
                self.processes[index] = Some(child);
                Err(reason)
            }
        }
    }

    /// Waits until a node has ended that has nothing to go on with.
    pub(super) fn wait_node_ended(&mut self, index: usize) -> Result<(), String> {
        let Some(mut child) = self.processes[index].take() else { return Ok(()) };
        let ended = wait::until("the node ends", END_TIME_MAX, || match child.try_wait() {
            Ok(Some(_)) => Ok(()),
            _ => Err("it still runs".into()),
        });
        if ended.is_err() {
            self.processes[index] = Some(child);
        }
        ended
    }

    pub(super) fn signal_node(&self, index: usize, with: Signal) {
        if let Some(child) = &self.processes[index] {
            signal(child.id(), with);
        }
    }

    pub(super) fn node_pid(&self, index: usize) -> Option<u32> {
        self.processes[index].as_ref().map(Child::id)
    }

    pub(super) fn status(&self, index: usize) -> Result<Status, String> {
        let node = &self.nodes[index];
        let token = node.state_dir.join("admin.token");
        let ask = || {
            quorba_admin::Client::new(node.admin, &token)
                .status(STATUS_TIME_MAX)
                .map_err(|error| format!("{}: {error}", node.name))
        };
        node.place.run(ask)
    }

    /// The server of a node that is a member in good standing.
    pub(super) fn server(&self, index: usize) -> Result<Server, String> {
        self.server_of(index, self.group)
    }

    /// The same of another group.
    pub(super) fn server_of(&self, index: usize, name: &str) -> Result<Server, String> {
        let status = self.status(index)?;
        let server = group(&status, name)?.server.as_ref();
        match server.map(|server| (server.pid, server.port)) {
            Some((Some(pid), Some(port))) => Ok(Server { pid, port }),
            _ => Err(format!("{} has no server now", self.nodes[index].name)),
        }
    }

    /// The node whose member leads; the first, if the style has no leader.
    pub(super) fn leader(&self) -> Result<usize, String> {
        let status = self.status(0)?;
        let leader = group(&status, self.group)?.leader.as_ref();
        let is_it = |node: &Node| leader.is_none_or(|name| *name == node.name);
        self.nodes.iter().position(is_it).ok_or_else(|| format!("{leader:?} is no node"))
    }

    /// Has the members share the work in another way from now on.
    pub(super) fn change_style(&self, style: &str) -> Result<(), String> {
        let node = &self.nodes[0];
        let token = node.state_dir.join("admin.token");
        let change = quorba_admin::Change::Style(style.to_owned());
        let ask = || {
            quorba_admin::Client::new(node.admin, &token)
                .change(self.group, &change, CHANGE_TIME_MAX)
                .map_err(|error| format!("style {style}: {error}"))
        };
        node.place.run(ask).map(drop)
    }

    /// Waits until every node shows every member in.
    pub(super) fn wait_whole(&self) -> Result<(), String> {
        wait::until("the group is whole", WHOLE_TIME_MAX, || self.is_whole())
    }

    pub(super) fn is_whole(&self) -> Result<(), String> {
        (0..self.nodes.len()).try_for_each(|index| {
            let status = self.status(index)?;
            let name = &status.node;
            if Some(status.pid) != self.node_pid(index) {
                return Err(format!("another process answers for {name}"));
            }
            if !status.ring.primary {
                return Err(format!("{name} is not in the primary view ({})", status.ring.state));
            }
            let group = group(&status, self.group)?;
            let leads = group.leader.as_ref() == Some(name);
            if group.style == "cold-passive" && leads && self.server(index).is_err() {
                return Err(format!("{name} leads and has no server yet"));
            }
            let members = &group.members;
            if members.len() != self.nodes.len() {
                return Err(format!("{name} knows {} members", members.len()));
            }
            match members.iter().find(|member| member.state != MemberState::In) {
                None => Ok(()),
                Some(member) => {
                    let (state, reason) = (member.state.as_str(), member.reason.as_deref());
                    Err(format!("{name}: {} is {state} ({})", member.node, reason.unwrap_or("-")))
                }
            }
        })
    }

    /// Ends all nodes as an operator would. An error if one does not end, or leaves its server.
    pub(super) fn end(mut self) -> Result<(), String> {
        for index in 0..self.nodes.len() {
            self.end_node(index)?;
        }
        wait::until("the nodes' servers have ended, too", END_TIME_MAX, || {
            let left = of_folder(&self.folder);
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?} still run")) }
        })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for index in 0..self.nodes.len() {
            self.kill_node(index);
        }
        sweep(&self.folder);
    }
}

/// What `status` says of the group `name`.
pub(super) fn group<'a>(status: &'a Status, name: &str) -> Result<&'a GroupStatus, String> {
    status
        .groups
        .iter()
        .find(|group| group.name == name)
        .ok_or_else(|| format!("{} knows no group {name}", status.node))
}

/// Sends a signal to a process of this case. A process that has just ended needs none.
pub(super) fn signal(pid: u32, with: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _sent = kill_process(pid, with);
    }
}

/// Kills every process whose command line names `folder`, until none is left.
fn sweep(folder: &Path) {
    let began = Instant::now();
    loop {
        let left = of_folder(folder);
        if left.is_empty() || began.elapsed() > SWEEP_TIME_MAX {
            return;
        }
        left.into_iter().for_each(|pid| signal(pid, Signal::KILL));
        thread::sleep(Duration::from_millis(10));
    }
}

fn of_folder(folder: &Path) -> Vec<u32> {
    let name = folder.as_os_str().as_encoded_bytes();
    let names_it = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(name.len()).any(|part| part == name))
    };
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id())
        .filter(names_it)
        .collect()
}
