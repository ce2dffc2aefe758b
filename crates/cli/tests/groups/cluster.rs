//! Three nodes, each a process of its own with a domain file of its own, which a test can kill and
//! start one by one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use quorba_demo::accounting::{self, Account};
use quorba_demo::bank::ledger::Ledger;
use quorba_demo::load::{Load, LoadOptions};
use quorba_demo::record::Recording;
use quorba_orb::{Client, ClientOptions, Reference};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::stage::{QUORBA, free_ports, text, wait_until};

/// Ring, admin and gateway of each node, two more ports of groups on each, and servers.
const PORTS: u16 = 18;
const FIRST_PORT: u16 = 12_000;

/// See the module's text.
pub(crate) struct Cluster {
    pub(crate) folder: TempDir,
    pub(crate) first: u16,
    nodes: [Option<Child>; 3],
}

/// What a file says of a group of banks on these nodes.
pub(crate) fn bank(name: &str, members: &[&str], more: &str) -> String {
    format!(
        "[group.{name}]\nmembers = {members:?}\n\
         server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
         state_object = \"bank\"\nobject_key = \"bank\"\n{more}\n"
    )
}

/// All nodes.
pub(crate) const ALL: [&str; 3] = ["n1", "n2", "n3"];

impl Cluster {
    /// Files with these groups on each node; nothing runs yet.
    pub(crate) fn of_files(groups: [&str; 3]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let first = free_ports(FIRST_PORT, PORTS);
        let key = folder.path().join("domain.key");
        fs::write(&key, "7e".repeat(32)).expect("written");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("allowed");
        let cluster = Self { folder, first, nodes: [None, None, None] };
        for (node, groups) in groups.iter().enumerate() {
            cluster.write_file(&format!("n{}", node + 1), groups);
        }
        cluster.write_file("quorba", groups[0]);
        cluster
    }

    /// The domain runs, with these groups in every file.
    pub(crate) fn start(groups: &str) -> Self {
        let mut cluster = Self::of_files([groups; 3]);
        cluster.start_all();
        cluster.wait_healthy();
        cluster
    }

    /// A domain file with these groups.
    pub(crate) fn write_file(&self, name: &str, groups: &str) -> PathBuf {
        let first = self.first;
        let mut text = "[domain]\nid = \"groups\"\nkey_file = \"domain.key\"\n".to_owned();
        for index in 0..3 {
            text += &format!(
                "[node.n{}]\nhost = \"127.0.0.1\"\nring_port = {}\nadmin = \"127.0.0.1:{}\"\n\
                 gateway_port_offset = {index}\n",
                index + 1,
                first + index,
                first + 3 + index,
            );
        }
        text += &format!("[gateway]\nlisten = {}\n{groups}", first + 6);
        let path = self.folder.path().join(format!("{name}.toml"));
        fs::write(&path, text).expect("written");
        path
    }

    pub(crate) fn start_all(&mut self) {
        (0..3).for_each(|node| self.start_node(node));
    }

    pub(crate) fn start_node(&mut self, node: usize) {
        let name = ALL[node];
        let path = self.folder.path().join(format!("{name}.log"));
        let log = fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
        let out = log.try_clone().expect("a descriptor");
        let mut command = Command::new(QUORBA);
        command.args(["node", name, "-c", &format!("{name}.toml")]);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(out).stderr(log);
        self.nodes[node] = Some(command.spawn().expect("it starts"));
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self, node: usize) {
        let mut child = self.nodes[node].take().expect("it runs");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    pub(crate) fn signal(&self, node: usize, signal: Signal) {
        let child = self.nodes[node].as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("it runs");
    }

    pub(crate) fn log(&self, node: usize) -> String {
        let path = self.folder.path().join(format!("{}.log", ALL[node]));
        fs::read_to_string(path).expect("a log")
    }

    pub(crate) fn told(&self) -> String {
        (0..3).map(|node| format!("--- {}\n{}", ALL[node], self.log(node))).collect()
    }

    pub(crate) fn quorba(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(QUORBA);
        command.args(arguments).current_dir(self.folder.path());
        command.output().expect("quorba runs")
    }

    /// What a command prints that comes to a good end.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.quorba(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}{err}\n{}", self.told());
        out
    }

    /// The same in JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let out = self.ok(&[&["-o", "json"], arguments].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// What a command tells that comes to a bad end.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.quorba(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    pub(crate) fn wait_healthy(&self) {
        self.ok(&["status", "--wait-healthy", "60s"]);
    }

    pub(crate) fn status(&self) -> Value {
        let output = self.quorba(&["-o", "json", "status"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// What the nodes warn of.
    pub(crate) fn warnings(&self, node: usize) -> Vec<String> {
        let status = self.status();
        let all = status["nodes"][node]["status"]["warnings"].as_array().cloned();
        let all = all.unwrap_or_default();
        all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Creates a group as a file says.
    pub(crate) fn create(&self, name: &str, definition: &str, more: &[&str]) -> Value {
        let file = format!("{name}.group");
        fs::write(self.folder.path().join(&file), definition).expect("written");
        self.json(&[&["group", "create", name, "--from", &file], more].concat())
    }

    /// Names of the groups, as one node has them.
    pub(crate) fn groups_at(&self, node: usize) -> Vec<String> {
        let status = self.status();
        let groups = status["nodes"][node]["status"]["groups"].as_array().cloned();
        let groups = groups.unwrap_or_default();
        let mut names: Vec<String> =
            groups.iter().filter_map(|one| one["name"].as_str()).map(str::to_owned).collect();
        names.sort();
        names
    }

    /// One group, as one node has it.
    pub(crate) fn group_at(&self, node: usize, name: &str) -> Value {
        let status = self.status();
        let groups = status["nodes"][node]["status"]["groups"].as_array().cloned();
        let groups = groups.unwrap_or_default();
        groups.into_iter().find(|one| one["name"] == name).unwrap_or_default()
    }

    /// The port of the shared gateway of a node.
    pub(crate) fn gateway(&self, node: usize) -> u16 {
        self.first + 6 + node as u16
    }

    /// A client of a group through the shared port of one node.
    pub(crate) fn bank(&self, node: usize, group: &str) -> Ledger {
        let address = ([127, 0, 0, 1], self.gateway(node)).into();
        let call_timeout = Some(Duration::from_secs(20));
        let options = ClientOptions { call_timeout, ..ClientOptions::default() };
        let key = format!("QRB/{group}/bank");
        Ledger::new(Client::new(&Reference::direct(address, key), options))
    }

    /// Clients of a group, by the reference that the command makes.
    pub(crate) fn load(&self, group: &str, name: &str) -> Load {
        let load = Load::start(&LoadOptions {
            reference: self.ok(&["ior", "make", group]),
            clients: 3,
            calls_per_s: 300,
            accounts: 4,
            oneway_percent: 0,
            seed: 1,
            name: name.to_owned(),
            ft_request: true,
            call_timeout: Duration::from_secs(30),
            record: None,
        });
        let load = load.expect("it starts");
        self.go_on(&load);
        load
    }

    /// Waits until more calls were answered.
    pub(crate) fn go_on(&self, load: &Load) {
        let goal = load.counts().acknowledged + 100;
        let begin = std::time::Instant::now();
        while load.counts().acknowledged < goal {
            assert!(begin.elapsed() < crate::stage::LONG, "no answers\n{}", self.told());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Holds what clients know against the servers of these nodes, until they have all of it.
    pub(crate) fn account(&self, group: &str, nodes: &[usize], recordings: &[Recording]) {
        let mut last = None;
        let look = || {
            let replicas = nodes.iter().map(|node| {
                let server = self.group_at(*node, group)["server"].clone();
                let port = u16::try_from(server["port"].as_u64()?).ok()?;
                accounting::read::replica(ALL[*node], port).ok()
            });
            let replicas: Vec<_> = replicas.collect::<Option<_>>()?;
            Some(accounting::account(recordings, &replicas))
        };
        let is_clean = |found: &Option<Account>| found.as_ref().is_some_and(Account::is_clean);
        let begin = std::time::Instant::now();
        while !is_clean(&last) {
            let told = || format!("{last:?}\n{}", self.told());
            assert!(begin.elapsed() < crate::stage::LONG, "{}", told());
            last = look();
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until all nodes have these groups.
    pub(crate) fn wait_groups(&self, names: &[&str]) {
        wait_until("all nodes have the groups", || {
            (0..3).all(|node| self.groups_at(node) == names)
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in self.nodes.iter_mut().flatten() {
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}
