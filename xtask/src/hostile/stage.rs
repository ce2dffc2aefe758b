//! Three live nodes with default limits, and one group of servers that do as they are asked.
//!
//! What it is not: a judge.
//!
//! Invariant: dropped, nodes and servers are gone, and so is their folder.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::watch;
use crate::interop::more_ports;
use crate::wait;

pub(super) const NODES: usize = 3;
/// How long nodes and servers may take to work.
const WHOLE_WITHIN: Duration = Duration::from_secs(30);
/// How long a line of a log may take.
const SAID_WITHIN: Duration = Duration::from_secs(2);
/// How long a node may take to end.
const END_WITHIN: Duration = Duration::from_secs(10);
/// How long a process that a server leaves behind sleeps, at least.
const STRAY_SECONDS: u64 = 10_000;

/// What differs from a plain domain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Setup {
    /// Further tables of the domain file.
    pub(super) tables: &'static str,
    /// Further lines of the group's table.
    pub(super) lines: &'static str,
    /// The most descriptors that each node may have.
    pub(super) files_max: Option<u32>,
    /// Every server leaves a process behind that is in a session of its own.
    pub(super) has_strays: bool,
}

impl Setup {
    pub(super) const PLAIN: Self =
        Self { tables: "", lines: "", files_max: None, has_strays: false };
}

pub(super) struct Stage {
    folder: tempfile::TempDir,
    quorba: PathBuf,
    setup: Setup,
    first_port: u16,
    nodes: [Option<Child>; NODES],
}

impl Stage {
    /// Starts nodes and servers, and waits until all work.
    pub(super) fn start(quorba: &Path, setup: Setup) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let first_port = more_ports()?;
        let nodes = [const { None }; NODES];
        let mut stage = Self { folder, quorba: quorba.to_owned(), setup, first_port, nodes };
        let key = stage.quorba(&["key", "new", "domain.key"])?;
        if !key.status.success() {
            return Err(format!("quorba key new: {}", String::from_utf8_lossy(&key.stderr)));
        }
        stage.write("quorba.toml", 0)?;
        for index in 0..NODES {
            stage.start_node(index)?;
        }
        stage.wait_whole()?;
        Ok(stage)
    }

    /// The domain file, with ports for rings and admin APIs that are so much higher.
    pub(super) fn write(&self, name: &str, higher: u16) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut text = "[domain]\nid = \"hostile\"\nkey_file = \"domain.key\"\n".to_owned();
        for index in 0..NODES {
            let (name, offset) = (node_name(index), index as u16);
            let ring = self.first_port + 3 + offset + higher;
            let admin = self.admin(index).port() + higher;
            let _infallible = write!(
                text,
                "[node.{name}]\nhost = \"127.0.0.1\"\nring_port = {ring}\n\
                 admin = \"127.0.0.1:{admin}\"\nstate_dir = {:?}\n\
                 gateway_port_offset = {offset}\n",
                self.state_dir(index),
            );
        }
        let Setup { tables, lines, has_strays, .. } = self.setup;
        let program = program.display().to_string();
        let stray = format!("setsid sleep {} & exec \"$0\" \"$@\"", self.stray_seconds());
        let shell = ["/bin/sh", "-c", &stray].into_iter().take(if has_strays { 3 } else { 0 });
        let itself = [program.as_str(), "hostile-server", "--port", "{port}"];
        let server: Vec<&str> = shell.chain(itself).collect();
        let _infallible = write!(
            text,
            "{tables}[group.g]\nlisten = {}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
             server = {server:?}\n\
             object_key = \"o\"\nstate_object = \"o\"\n{lines}",
            self.first_port + higher,
        );
        let path = self.folder.path().join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(super) fn start_node(&mut self, index: usize) -> Result<(), String> {
        let name = node_name(index);
        let told = |error| format!("{name}: {error}");
        let open = || File::options().create(true).append(true).open(self.log(index));
        let (out, err) = (open().map_err(told)?, open().map_err(told)?);
        let mut command = Command::new("/bin/sh");
        let limit = self.setup.files_max.map_or(String::new(), |most| format!("ulimit -n {most};"));
        command.args(["-c", &format!("{limit} exec \"$@\""), "sh"]);
        command.arg(&self.quorba).args(["node", &name, "--config", "quorba.toml"]);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(out).stderr(err);
        self.nodes[index] = Some(command.spawn().map_err(told)?);
        Ok(())
    }

    /// Runs the command in the domain's folder.
    pub(super) fn quorba(&self, arguments: &[&str]) -> Result<Output, String> {
        let mut command = Command::new(&self.quorba);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.output().map_err(|error| format!("{}: {error}", self.quorba.display()))
    }

    /// The same, ended after so many seconds (exit code 124).
    pub(super) fn quorba_within(
        &self,
        seconds: &str,
        arguments: &[&str],
    ) -> Result<Output, String> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=2", seconds]).arg(&self.quorba).args(arguments);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.output().map_err(|error| format!("timeout: {error}"))
    }

    /// Waits until all nodes and servers work.
    pub(super) fn wait_whole(&self) -> Result<(), String> {
        let within = format!("{}s", WHOLE_WITHIN.as_secs());
        let output = self.quorba(&["status", "--wait-healthy", &within])?;
        if output.status.success() {
            return Ok(());
        }
        let told = String::from_utf8_lossy(&output.stderr);
        let logs = (0..NODES).map(|index| fs::read_to_string(self.log(index)).unwrap_or_default());
        let last: Vec<String> =
            logs.map(|log| log.lines().last().unwrap_or_default().to_owned()).collect();
        Err(format!("the domain is not healthy: {} {last:?}", told.trim()))
    }

    /// SIGKILL to a node, and it is gone.
    pub(super) fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.nodes[index].take() {
            // It cannot fail but for a process that has ended already.
            let _killed = child.kill();
            let _status = child.wait();
        }
    }

    /// Nodes that have ended though nobody ended them.
    pub(super) fn ended(&mut self) -> Vec<String> {
        let mut ended = Vec::new();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            if let Some(Ok(Some(status))) = node.as_mut().map(Child::try_wait) {
                ended.push(format!("{} has ended: {status}", node_name(index)));
            }
        }
        ended
    }

    /// In the order of the nodes; 0 stands for one that has been ended.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.as_ref().map_or(0, Child::id)).collect()
    }

    /// What the processes that servers leave behind are told: no others are told the same.
    fn stray_seconds(&self) -> u64 {
        STRAY_SECONDS + u64::from(self.first_port)
    }

    /// Processes that servers have left behind.
    pub(super) fn strays(&self) -> Vec<Pid> {
        let told = format!("sleep\0{}\0", self.stray_seconds());
        let of = |entry: fs::DirEntry| {
            let said = fs::read(entry.path().join("cmdline")).ok()?;
            let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            (said == told.as_bytes()).then_some(pid)
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        processes.filter_map(of).collect()
    }

    pub(super) fn gateway(&self, index: usize) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.first_port + index as u16).into()
    }

    pub(super) fn gateways(&self) -> Vec<SocketAddr> {
        (0..NODES).map(|index| self.gateway(index)).collect()
    }

    pub(super) fn admin(&self, index: usize) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.first_port + 6 + index as u16).into()
    }

    pub(super) fn state_dir(&self, index: usize) -> PathBuf {
        self.folder.path().join(node_name(index))
    }

    fn log(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", node_name(index)))
    }

    /// Of all nodes' logs.
    pub(super) fn log_lines(&self) -> usize {
        (0..NODES).map(|index| watch::lines(&self.log(index))).sum()
    }

    /// Waits until a node's log has a line with `words` in it.
    pub(super) fn says(&self, index: usize, words: &str) -> bool {
        let said = wait::until("it is logged", SAID_WITHIN, || {
            let log = fs::read_to_string(self.log(index)).unwrap_or_default();
            if log.contains(words) { Ok(()) } else { Err(words.to_owned()) }
        });
        said.is_ok()
    }
}

pub(super) fn node_name(index: usize) -> String {
    format!("n{}", index + 1)
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.setup.has_strays {
            for pid in self.strays() {
                // It may have ended by itself.
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
        for pid in self.pids().into_iter().filter(|pid| *pid != 0) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // It may have ended by itself.
                let _gone = kill_process(pid, Signal::TERM);
            }
        }
        for index in 0..NODES {
            let ends = self.nodes[index].as_mut().map(|child| {
                wait::until("a node ends", END_WITHIN, || match child.try_wait() {
                    Ok(None) => Err("it runs".to_owned()),
                    _ => Ok(()),
                })
            });
            if let Some(Err(_)) = ends {
                self.kill(index);
            }
        }
    }
}
