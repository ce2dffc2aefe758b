//! A domain of three processes on loopback, for tests of commands that need one.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

pub mod channels;
pub mod scripted;
pub mod wire;

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use quorba_demo::bank::ledger::Ledger;
use quorba_orb::{Client, ClientOptions, Reference};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The program.
pub const QUORBA: &str = env!("CARGO_BIN_EXE_quorba");
/// Generous: what is waited for takes milliseconds, and the machine may be busy.
pub const LONG: Duration = Duration::from_secs(60);

/// A running domain in a folder of its own.
pub struct Domain {
    pub folder: TempDir,
    pub up: Child,
    pub first_port: u16,
}

/// How many ports a domain of three nodes needs: ring, admin and gateway of each, and a server that
/// no node starts.
const PORTS: u16 = 12;

/// Where [`Domain`]s look for ports.
const FIRST_PORT: u16 = 12_000;
/// Ports among which one file of tests looks.
const RANGE: u16 = 9_000;

/// The first of `count` ports that are free, from `from` on. They are below those that the system
/// gives to outgoing connections, and each test takes others.
pub fn free_ports(from: u16, count: u16) -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| {
        TcpListener::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port)).is_ok()
    };
    // Several test processes may run at once; they begin at different places.
    let places = RANGE / count;
    let begin = u16::try_from(std::process::id() % u32::from(places)).expect("below the places");
    loop {
        let turn = TAKEN.fetch_add(1, Ordering::Relaxed);
        let first = from + (begin + turn) % places * count;
        if (first..first + count).all(is_free) {
            return first;
        }
    }
}

/// Gives the first port.
fn write_domain(folder: &Path, group: &str) -> u16 {
    let first = free_ports(FIRST_PORT, PORTS);
    let mut text = "[domain]\nid = \"up\"\nkey_file = \"domain.key\"\n".to_owned();
    for index in 0..3 {
        text += &format!(
            "[node.n{}]\nhost = \"127.0.0.1\"\nring_port = {}\nadmin = \"127.0.0.1:{}\"\n\
             gateway_port_offset = {index}\n",
            index + 1,
            first + index,
            first + 3 + index,
        );
    }
    let server = |node: u16| format!("n{} = \"127.0.0.1:{}\"", node + 1, first + 9 + node);
    let connect = format!("{{ {}, {}, {} }}", server(0), server(1), server(2));
    text += &group.replace("{listen}", &(first + 6).to_string()).replace("{connect}", &connect);
    fs::write(folder.join("quorba.toml"), text).expect("written");
    let key = folder.join("domain.key");
    fs::write(&key, "7e".repeat(32)).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("allowed");
    first
}

impl Domain {
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// With these lines in the group's table.
    pub fn start_with(more: &str) -> Self {
        Self::start_by(more, up)
    }

    /// The same, but `up` starts it in its folder.
    pub fn start_by(more: &str, up: impl FnOnce(&Path) -> Child) -> Self {
        let group = format!(
            "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
             server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
             state_object = \"bank\"\nobject_key = \"bank\"\n{more}"
        );
        Self::start_group_by(&group, up)
    }

    /// With this group; `{listen}` stands for its port.
    pub fn start_group(group: &str) -> Self {
        Self::start_group_by(group, up)
    }

    /// The same, but `up` starts it in its folder.
    pub fn start_group_by(group: &str, up: impl FnOnce(&Path) -> Child) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let first_port = write_domain(folder.path(), group);
        let up = up(folder.path());
        Self { folder, up, first_port }
    }

    /// Every process of the domain is killed.
    pub fn end(&mut self, pids: &[(String, Pid)]) {
        for (_, pid) in pids {
            // A server may have ended with its node.
            let _ = kill_process(*pid, Signal::KILL);
        }
        self.up.kill().expect("it runs");
        self.up.wait().expect("it ends");
        wait_until("nodes and servers end", || all_gone(pids));
    }

    /// Every process of the domain is killed, and all is started again.
    pub fn black_out(&mut self, pids: &[(String, Pid)]) {
        self.end(pids);
        self.up = up(self.folder.path());
    }

    /// Where a server of the member on a node listens that no node starts.
    pub fn server_port(&self, node: usize) -> u16 {
        self.first_port + 9 + node as u16
    }

    /// A client of the object with this key at the gateway of one node.
    pub fn client(&self, node: u16, key: &[u8]) -> Client {
        let address = ([127, 0, 0, 1], self.first_port + 6 + node).into();
        let call_timeout = Some(Duration::from_secs(20));
        let options = ClientOptions { call_timeout, ..ClientOptions::default() };
        Client::new(&Reference::direct(address, key), options)
    }

    /// A client of the bank at the gateway of one node.
    pub fn bank(&self, node: u16) -> Ledger {
        Ledger::new(self.client(node, b"bank"))
    }

    pub fn quorba(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(QUORBA);
        command.args(arguments).current_dir(self.folder.path());
        command.output().expect("quorba runs")
    }

    /// The answers of the nodes once the whole domain is healthy.
    pub fn wait_healthy(&self) -> Value {
        let output = self.quorba(&["-o", "json", "status", "--wait-healthy", "60s"]);
        assert!(output.status.success(), "{}\n{}", text(&output.stderr), self.told());
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// What `quorba -o json status` says, healthy or not.
    pub fn status(&self) -> Value {
        let output = self.quorba(&["-o", "json", "status"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    pub fn told(&self) -> String {
        let read = |name| fs::read_to_string(self.folder.path().join(name)).expect("read");
        format!("{}{}", read("out"), read("err"))
    }

    /// All that was printed, once this is in it: a line is on its way for a while after what it is
    /// about can be seen.
    pub fn told_once(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let mut told = self.told();
        let begin = Instant::now();
        while !is_there(&told) {
            assert!(begin.elapsed() < LONG, "not within {LONG:?}: {what} in\n{told}");
            std::thread::sleep(Duration::from_millis(20));
            told = self.told();
        }
        told
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.up), signal).expect("it runs");
    }
}

pub fn up(folder: &Path) -> Child {
    let mut command = Command::new(QUORBA);
    command.arg("up");
    up_as(command, folder)
}

/// The same with this command.
pub fn up_as(mut command: Command, folder: &Path) -> Child {
    let err = fs::File::create(folder.join("err")).expect("a file");
    let out = fs::File::create(folder.join("out")).expect("a file");
    command.current_dir(folder).stdin(Stdio::null()).stdout(out).stderr(err);
    command.spawn().expect("quorba starts")
}

impl Drop for Domain {
    fn drop(&mut self) {
        // After a failed assertion; the nodes end with their parent.
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The process ids of the nodes and of their servers.
pub fn pids(health: &Value) -> Vec<(String, Pid)> {
    let nodes = health["nodes"].as_array().expect("a list");
    let mut pids = Vec::new();
    for node in nodes {
        let name = node["name"].as_str().expect("a name").to_owned();
        let status = &node["status"];
        // A member that stands by may have none.
        for pid in [&status["pid"], &status["groups"][0]["server"]["pid"]] {
            let pid = pid.as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
            pids.extend(pid.map(|pid| (name.clone(), pid)));
        }
    }
    pids
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < LONG, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn all_gone(pids: &[(String, Pid)]) -> bool {
    pids.iter().all(|(_, pid)| test_kill_process(*pid).is_err())
}

/// Every call that was answered is in the bank's history once, seen at every node.
pub fn assert_each_once(domain: &Domain, known: &[String], when: &str) {
    for node in 0..3 {
        let mut bank = domain.bank(node);
        let mut found: Vec<String> = Vec::new();
        loop {
            let page = bank.history(found.len() as u64, 500).expect("it answers");
            if page.is_empty() {
                break;
            }
            found.extend(page.into_iter().map(|entry| entry.reference));
        }
        for reference in known {
            let count = found.iter().filter(|entry| *entry == reference).count();
            assert_eq!(count, 1, "{when}: {reference} at n{}", node + 1);
        }
    }
}

/// Whether each thread of a process that was sent SIGSTOP has stopped.
pub fn has_stopped(pid: Pid) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).expect("it runs");
    let state = |task: std::io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    tasks.map(state).all(|state| state == Some('T'))
}
