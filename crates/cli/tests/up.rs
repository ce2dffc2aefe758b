//! `quorba up` with real nodes: three processes on loopback, each with a built-in bank server.

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

const QUORBA: &str = env!("CARGO_BIN_EXE_quorba");
/// Generous: what is waited for takes milliseconds, and the machine may be busy.
const LONG: Duration = Duration::from_secs(60);

struct Domain {
    folder: TempDir,
    up: Child,
    first_port: u16,
}

/// How many ports a domain of three nodes needs: ring, admin and gateway of each.
const PORTS: u16 = 9;

/// The first of [`PORTS`] ports that are free. They are below those that the system gives to
/// outgoing connections, and each test takes others.
fn free_ports() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| {
        TcpListener::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port)).is_ok()
    };
    // Several test processes may run at once; they begin at different places.
    let begin = u16::try_from(std::process::id() % 1_000).expect("below 1000");
    loop {
        let turn = TAKEN.fetch_add(1, Ordering::Relaxed);
        let first = 12_000 + (begin + turn) % 1_000 * PORTS;
        if (first..first + PORTS).all(is_free) {
            return first;
        }
    }
}

/// Gives the first port.
fn write_domain(folder: &Path, more: &str) -> u16 {
    let first = free_ports();
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
    text += &format!(
        "[group.bank]\nlisten = {}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
         state_object = \"bank\"\nobject_key = \"bank\"\n{more}",
        first + 6
    );
    fs::write(folder.join("quorba.toml"), text).expect("written");
    let key = folder.join("domain.key");
    fs::write(&key, "7e".repeat(32)).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("allowed");
    first
}

impl Domain {
    fn start() -> Self {
        Self::start_with("")
    }

    /// With these lines in the group's table.
    fn start_with(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let first_port = write_domain(folder.path(), more);
        let up = up(folder.path());
        Self { folder, up, first_port }
    }

    /// Every process of the domain is killed, and all is started again.
    fn black_out(&mut self, pids: &[(String, Pid)]) {
        self.end_all(pids);
        self.up = up(self.folder.path());
    }

    fn end_all(&mut self, pids: &[(String, Pid)]) {
        for (_, pid) in pids {
            // A server may have ended with its node.
            let _ = kill_process(*pid, Signal::KILL);
        }
        self.up.kill().expect("it runs");
        self.up.wait().expect("it ends");
        wait_until("nodes and servers end", || all_gone(pids));
    }

    /// A client of the bank at the gateway of one node.
    fn bank(&self, node: u16) -> Ledger {
        let address = ([127, 0, 0, 1], self.first_port + 6 + node).into();
        let call_timeout = Some(Duration::from_secs(20));
        let options = ClientOptions { call_timeout, ..ClientOptions::default() };
        Ledger::new(Client::new(&Reference::direct(address, b"bank"), options))
    }

    fn quorba(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(QUORBA);
        command.args(arguments).current_dir(self.folder.path());
        command.output().expect("quorba runs")
    }

    /// The answers of the nodes once the whole domain is healthy.
    fn wait_healthy(&self) -> Value {
        let output = self.quorba(&["-o", "json", "status", "--wait-healthy", "60s"]);
        assert!(output.status.success(), "{}\n{}", text(&output.stderr), self.told());
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn told(&self) -> String {
        let read = |name| fs::read_to_string(self.folder.path().join(name)).expect("read");
        format!("{}{}", read("out"), read("err"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.up), signal).expect("it runs");
    }
}

fn up(folder: &Path) -> Child {
    let err = fs::File::create(folder.join("err")).expect("a file");
    let out = fs::File::create(folder.join("out")).expect("a file");
    let mut command = Command::new(QUORBA);
    command.arg("up").current_dir(folder).stdin(Stdio::null()).stdout(out).stderr(err);
    command.spawn().expect("quorba starts")
}

impl Drop for Domain {
    fn drop(&mut self) {
        // After a failed assertion; the nodes end with their parent.
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The process ids of the nodes and of their servers.
fn pids(health: &Value) -> Vec<(String, Pid)> {
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

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < LONG, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn all_gone(pids: &[(String, Pid)]) -> bool {
    pids.iter().all(|(_, pid)| test_kill_process(*pid).is_err())
}

#[test]
fn nodes_come_up_answer_and_stop_in_order() {
    let mut domain = Domain::start();
    let health = domain.wait_healthy();
    let made = domain.quorba(&["ior", "make", "bank"]);
    let ping = domain.quorba(&["ping", text(&made.stdout).trim(), "-n", "3"]);
    assert!(ping.status.success(), "{}{}", text(&ping.stdout), text(&ping.stderr));
    assert_eq!(text(&ping.stdout).matches("here").count(), 6, "three gateways, two questions");
    let pids = pids(&health);
    assert_eq!(pids.len(), 6);
    domain.signal(Signal::INT);
    let status = domain.up.wait().expect("it ends");
    assert!(status.success(), "{}", domain.told());
    assert!(all_gone(&pids), "neither nodes nor servers outlive it");
}

#[test]
fn a_node_that_dies_is_told_and_the_others_go_on() {
    let mut domain = Domain::start();
    let pids = pids(&domain.wait_healthy());
    let (_, second) = pids.iter().find(|(name, _)| name == "n2").expect("the node");
    kill_process(*second, Signal::KILL).expect("it runs");
    wait_until("its end is told", || domain.told().contains("n2 ended: signal: 9"));
    wait_until("the domain is degraded", || domain.quorba(&["status"]).status.code() == Some(2));
    domain.signal(Signal::TERM);
    let status = domain.up.wait().expect("it ends");
    assert_eq!(status.code(), Some(1), "one node failed");
    assert!(domain.told().contains("QB-CLI-009"), "{}", domain.told());
}

#[test]
fn the_domain_key_changes_while_the_domain_runs() {
    let domain = Domain::start();
    let health = domain.wait_healthy();
    let nodes = pids(&health);
    let ring = |health: &Value, index: usize, field: &str| {
        health["nodes"][index]["status"]["ring"][field].clone()
    };
    let old = ring(&health, 0, "sealing_key");
    for step in ["rotate", "prune"] {
        assert!(domain.quorba(&["key", step, "domain.key"]).status.success());
        if step == "rotate" {
            domain.signal(Signal::HUP);
        } else {
            // Every second one is a server.
            for (_, node) in nodes.iter().step_by(2) {
                kill_process(*node, Signal::HUP).expect("it runs");
            }
        }
        wait_until("all nodes seal with the new key", || {
            let health = domain.wait_healthy();
            (0..3).all(|index| ring(&health, index, "sealing_key") != old)
        });
    }
    let after = domain.wait_healthy();
    for index in 0..3 {
        assert_eq!(ring(&after, index, "view_changes"), ring(&health, index, "view_changes"));
    }
}

#[test]
fn nodes_end_with_a_parent_that_is_killed() {
    let domain = Domain::start();
    let pids = pids(&domain.wait_healthy());
    domain.signal(Signal::KILL);
    wait_until("nodes and servers end", || all_gone(&pids));
}

#[test]
fn the_deadline_stops_all_nodes() {
    let domain = Domain::start();
    let health = domain.wait_healthy();
    domain.signal(Signal::INT);
    wait_until("they end", || all_gone(&pids(&health)));
    let output = domain.quorba(&["up", "--timeout", "300ms"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Calls the bank until it ends; the references of the calls that were answered.
fn call_until_it_ends(mut bank: Ledger, who: &str, answered: &AtomicU16) -> Vec<String> {
    let mut references = Vec::new();
    for number in 0.. {
        let reference = format!("{who}-{number}");
        if bank.increment(&reference).is_err() {
            break;
        }
        references.push(reference);
        answered.fetch_add(1, Ordering::Relaxed);
    }
    references
}

/// Every call that was answered is in the bank's history once, seen at every node.
fn assert_each_once(domain: &Domain, known: &[String], when: &str) {
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

fn is_killed_under_load(more: &str, rounds: usize) {
    let mut domain = Domain::start_with(more);
    let mut known = Vec::new();
    for round in 0..rounds {
        let pids = pids(&domain.wait_healthy());
        let answered = AtomicU16::new(0);
        let banks: Vec<_> = (0..3).map(|node| (node, domain.bank(node))).collect();
        std::thread::scope(|scope| {
            let answered = &answered;
            let call = |(node, bank)| {
                let who = format!("{round}-{node}");
                scope.spawn(move || call_until_it_ends(bank, &who, answered))
            };
            let clients: Vec<_> = banks.into_iter().map(call).collect();
            wait_until("calls are answered", || answered.load(Ordering::Relaxed) > 100);
            domain.black_out(&pids);
            for client in clients {
                known.extend(client.join().expect("no panic"));
            }
        });
        domain.wait_healthy();
        assert_each_once(&domain, &known, &format!("round {round}"));
    }
}

#[test]
fn a_durable_domain_that_is_killed_under_load_has_every_answered_call_once() {
    is_killed_under_load("durable = true\n", 3);
}

#[test]
fn so_has_a_durable_cold_passive_one() {
    is_killed_under_load("durable = true\nstyle = \"cold-passive\"\n", 2);
}

fn call(domain: &Domain, who: &str, count: usize) -> Vec<String> {
    let references: Vec<String> = (0..count).map(|number| format!("{who}-{number}")).collect();
    let mut bank = domain.bank(0);
    for reference in &references {
        bank.increment(reference).expect("it answers");
    }
    references
}

#[test]
fn a_durable_group_whose_servers_are_all_killed_goes_on_from_the_logs() {
    let domain = Domain::start_with("durable = true\n");
    let mut known = Vec::new();
    for round in 0..2 {
        let pids = pids(&domain.wait_healthy());
        known.extend(call(&domain, &format!("{round}"), 50));
        for (_, server) in pids.iter().skip(1).step_by(2) {
            kill_process(*server, Signal::KILL).expect("it runs");
        }
        known.extend(call(&domain, &format!("{round} after"), 10));
        domain.wait_healthy();
        assert_each_once(&domain, &known, &format!("round {round}"));
    }
}

/// The octet in the middle of the first file of the node's log changes.
fn damage_log(domain: &Domain, node: &str) -> String {
    let file = domain.folder.path().join(format!("quorba-state/{node}/log/log-0000000001.seg"));
    let mut octets = fs::read(&file).expect("the log is there");
    let filled = octets.iter().rposition(|octet| *octet != 0).expect("it has records");
    octets[filled / 2] ^= 0x10;
    fs::write(&file, octets).expect("written");
    "log-0000000001.seg".into()
}

#[test]
fn a_damaged_log_is_named_and_the_node_is_rebuilt_from_the_others() {
    let mut domain = Domain::start_with("durable = true\n");
    let running = pids(&domain.wait_healthy());
    let mut known = call(&domain, "before", 50);
    domain.end_all(&running);
    let file = damage_log(&domain, "n2");
    domain.up = up(domain.folder.path());
    wait_until("the record is named", || {
        let told = domain.told();
        told.lines().any(|line| line.contains(&file) && line.contains("record"))
    });
    domain.wait_healthy();
    wait_until("the node is rebuilt", || domain.told().contains("the log is rebuilt"));
    // What it has now is worth as much as what the others have.
    let running = pids(&domain.wait_healthy());
    known.extend(call(&domain, "after", 20));
    domain.black_out(&running);
    domain.wait_healthy();
    assert_each_once(&domain, &known, "after the damage");
}
