//! What real nodes do with their disks: a log that grows, one that is full, one that fails.

mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use quorba_demo::bank::ledger::Ledger;
use quorba_lab::skips::skip;
use quorba_orb::giop::{MinorCode, QUORBA_VMCID};
use quorba_orb::{Client, ClientOptions, Reference};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Value, json};
use stage::{Domain, QUORBA, assert_each_once, free_ports, pids, wait_until};

fn segments(domain: &Domain, node: usize) -> Vec<String> {
    let folder = domain.folder.path().join(format!("quorba-state/n{node}/log"));
    let names = fs::read_dir(folder).expect("a log").filter_map(Result::ok);
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".seg")).collect();
    names.sort();
    names
}

#[test]
fn a_log_is_compacted_under_load_and_everything_answered_is_there_after_all_nodes_ended() {
    let mut domain = Domain::start_with("durable = true\n[limits]\nlog_bytes = 1048576\n");
    let mut known = Vec::new();
    for round in 0..2 {
        let running = pids(&domain.wait_healthy());
        let before: Vec<_> = (1..=3).map(|node| segments(&domain, node)[0].clone()).collect();
        let mut bank = domain.bank(0);
        let is_shorter = |node: usize| segments(&domain, node)[0] != before[node - 1];
        for number in 0.. {
            let reference = format!("{round}-{number}-{}", "x".repeat(4_000));
            bank.increment(&reference).expect("it answers");
            known.push(reference);
            if number % 50 == 0 && (1..=3).all(is_shorter) {
                break;
            }
            assert!(number < 20_000, "{}", domain.told());
        }
        domain.black_out(&running);
        domain.wait_healthy();
        assert_each_once(&domain, &known, &format!("round {round}"));
    }
}

/// Why a test with a [`SmallDisk`] cannot run.
const NO_MOUNT: &str = "this process may not mount a disk of its own (not root?)";

/// A small disk of its own for a node; none where this process may not have one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir_all(at).expect("a folder");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(at);
        let is_mounted = command.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self(at.to_path_buf()))
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.0.join("filler")).expect("a file");
        for piece in [64 << 10, 4 << 10, 1] {
            while file.write_all(&vec![1; piece]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_holds_answers_back_until_there_is_space() {
    let mut disks = Vec::new();
    let mut domain = Domain::start_by("durable = true\n", |folder| {
        let at = |node| folder.join(format!("quorba-state/{node}"));
        disks.extend(["n2", "n3"].iter().filter_map(|node| SmallDisk::mount(&at(node))));
        stage::up(folder)
    });
    if disks.len() < 2 {
        skip("a_full_disk_holds_answers_back_until_there_is_space", NO_MOUNT);
        return;
    }
    domain.wait_healthy();
    let mut bank = domain.bank(0);
    bank.increment("before").expect("it answers");
    disks.iter().for_each(SmallDisk::fill);
    let (sender, answers) = mpsc::channel();
    let client = std::thread::spawn(move || {
        // More than the pages that are still free take.
        let mut bank = bank;
        let mut references = vec!["before".to_string()];
        for number in 0..100 {
            let reference = format!("{number}-{}", "x".repeat(1_000));
            bank.increment(&reference).expect("it is answered in the end");
            sender.send(()).expect("somebody waits");
            references.push(reference);
        }
        references
    });
    wait_until("both nodes say that their disks are full", || {
        let told = domain.told();
        let told = told.lines().filter(|line| line.contains("durable groups answer nothing"));
        told.filter(|line| line.contains("the file system at ")).count() >= 2
    });
    // Everything is executed that will be, and what was not answered waits for the disks.
    let executed = || {
        let said = domain.status();
        let findings = said["findings"].as_array().expect("a list");
        let waits = findings.iter().filter(|one| one["fact"] == "log-waits").count();
        assert!(waits >= 2 && said["health"] == "degraded", "{said}");
        said["nodes"][0]["status"]["groups"][0]["executed"].clone()
    };
    let mut last = executed();
    let mut answered = answers.try_iter().count();
    wait_until("nothing moves", || {
        let (now, more) = (executed(), answers.try_iter().count());
        answered += more;
        more == 0 && std::mem::replace(&mut last, now.clone()) == now
    });
    let last = last.as_u64().expect("a number");
    assert!(last > 1 + answered as u64, "{last} executed, 1 + {answered} answered");
    assert!(!client.is_finished());
    disks.iter().for_each(SmallDisk::free);
    let known = client.join().expect("all is answered");
    assert_each_once(&domain, &known, "after the disks had space again");
    let running = pids(&domain.wait_healthy());
    domain.black_out(&running);
    domain.wait_healthy();
    assert_each_once(&domain, &known, "after all nodes ended");
    drop(domain);
}

/// No group is durable: what a node must remember has its room, and nothing else needs any.
#[test]
fn a_full_disk_ends_no_node_and_keeps_none_from_starting() {
    let mut disks = Vec::new();
    let domain = Domain::start_by("", |folder| {
        disks.extend(SmallDisk::mount(&folder.join("quorba-state/n3")));
        stage::up(folder)
    });
    let Some(disk) = disks.first() else {
        skip("a_full_disk_ends_no_node_and_keeps_none_from_starting", NO_MOUNT);
        return;
    };
    let running = pids(&domain.wait_healthy());
    let of = |node: &str, at: usize| {
        let mut those = running.iter().filter(|(name, _)| name == node);
        those.nth(at).expect("it runs").1
    };
    let end = |pid: Pid| {
        kill_process(pid, Signal::KILL).expect("it runs");
        wait_until("it ends", || stage::all_gone(&[(String::new(), pid)]));
    };
    let mut bank = domain.bank(0);
    bank.increment("before").expect("it answers");
    disk.fill();
    // Another process, another view, another boot.
    end(of("n3", 1));
    domain.wait_healthy();
    end(of("n2", 0));
    bank.increment("with a full disk").expect("it answers");
    let _second = Alone::start(&domain, "n2");
    domain.wait_healthy();
    end(of("n3", 0));
    let _third = Alone::start(&domain, "n3");
    domain.wait_healthy();
    assert_each_once(&domain, &["before".into(), "with a full disk".into()], "in the end");
}

/// With a signal ignored that would end a process whose file becomes too large.
fn up_with_limits(folder: &Path) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" up", QUORBA]);
    stage::up_as(command, folder)
}

#[test]
fn a_disk_that_fails_ends_its_node_which_says_why_and_the_others_go_on() {
    let domain = Domain::start_by("durable = true\n", up_with_limits);
    let running = pids(&domain.wait_healthy());
    let mut bank = domain.bank(0);
    bank.increment("before").expect("it answers");
    let (_, node) = running.iter().find(|(name, _)| name == "n3").expect("it runs");
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    prlimit(Some(*node), Resource::Fsize, none).expect("it is ours");
    let mut known = vec!["before".to_string()];
    wait_until("the node ends and says why", || {
        let reference = format!("call {}", known.len());
        bank.increment(&reference).expect("it answers");
        known.push(reference);
        domain.told().contains("QB-NODE-007")
    });
    domain.told_once("its place", |told| told.contains("quorba-state/n3/log"));
    wait_until("the node is gone", || stage::all_gone(&[("n3".into(), *node)]));
    for node in 0..2 {
        let mut bank = domain.bank(node);
        let reference = format!("after at {node}");
        bank.increment(&reference).expect("it answers");
        known.push(reference);
    }
    let mut bank = domain.bank(1);
    let found = bank.history(0, 10_000).expect("it answers");
    let found: Vec<String> = found.into_iter().map(|entry| entry.reference).collect();
    assert_eq!(found, known);
}

/// A node of the domain, for itself.
struct Alone(Child);

impl Alone {
    fn start(domain: &Domain, name: &str) -> Self {
        let err = fs::File::create(domain.folder.path().join(format!("{name}.err")));
        let mut command = Command::new(QUORBA);
        command.args(["node", name]).current_dir(domain.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(err.expect("a file"));
        Self(command.spawn().expect("quorba starts"))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn entries(domain: &Domain, key: &[u8], node: u16) -> Vec<String> {
    let history = Ledger::new(domain.client(node, key)).history(0, 100).expect("it answers");
    history.into_iter().map(|entry| entry.reference).collect()
}

/// After the end of all nodes two of three bring back what is durable. What is not waits for the
/// third, which might have kept its memory, and says so.
#[test]
fn a_group_that_is_not_durable_waits_for_a_node_that_is_away() {
    let group = |name: &str, listen: &str, more: &str| {
        format!(
            "[group.{name}]\nlisten = {listen}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
             server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
             state_object = \"bank\"\nobject_key = \"{name}\"\n{more}"
        )
    };
    let other = free_ports(30_000, 3);
    let groups = group("bank", "{listen}", "durable = true\n")
        + &group("meter", &other.to_string(), "unavailable_wait_ms = 200\n")
            .replace("object_key = \"meter\"\n", "");
    let mut domain = Domain::start_group(&groups);
    let running = pids(&domain.wait_healthy());
    let meter = |node: u16| {
        let address = ([127, 0, 0, 1], other + node).into();
        Ledger::new(Client::new(&Reference::direct(address, b"bank"), ClientOptions::default()))
    };
    meter(0).increment("in memory").expect("it answers");
    // Its answer comes when disks have this, and so what was ordered before.
    domain.bank(0).increment("durable").expect("it answers");
    domain.end(&running);
    let _nodes = ["n2", "n3"].map(|name| Alone::start(&domain, name));
    let status = || {
        let said = domain.quorba(&["-o", "json", "status"]).stdout;
        serde_json::from_slice::<Value>(&said).unwrap_or_default()
    };
    let waits = || {
        let said = status();
        let nodes = said["nodes"].as_array().cloned().unwrap_or_default();
        let groups = nodes.into_iter().map(|node| node["status"]["groups"].clone());
        groups.filter(|groups| groups[1]["waits_for"] == json!(["n1"])).count()
    };
    wait_until("both say for whom it waits", || waits() == 2);
    let reasons = status()["reasons"].to_string();
    assert!(reasons.contains("group meter: it is not durable, and waits for n1"), "{reasons}");
    domain.bank(1).increment("more").expect("the durable one goes on");
    let refused = meter(1).increment("too early").expect_err("it waits");
    let refused = format!("{refused:?}");
    let minor = QUORBA_VMCID | MinorCode::MemoryAway.number();
    assert!(refused.contains(&format!("minor: {minor}, completed: No")), "{refused}");
    let change = domain.quorba(&["-o", "json", "group", "style", "meter", "semi-active"]);
    let said = stage::text(&change.stdout) + &stage::text(&change.stderr);
    assert!(!change.status.success() && said.contains("waits for a node"), "{said}");
    let _last = Alone::start(&domain, "n1");
    domain.wait_healthy();
    for node in 0..3 {
        assert_eq!(entries(&domain, b"bank", node), ["durable", "more"], "{node}");
        let history = meter(node).history(0, 100).expect("it answers");
        let history: Vec<_> = history.into_iter().map(|entry| entry.reference).collect();
        assert_eq!(history, ["in memory"], "{node}: a log had it");
    }
    let said = status()["nodes"].to_string();
    assert!(said.contains("may have lost acknowledged requests"), "{said}");
}
