//! What operators do with a group that no file has.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::cluster::{ALL, Cluster, bank};
use crate::stage::{QUORBA, wait_until};

/// No file has it.
fn cluster() -> Cluster {
    let cluster = Cluster::start("");
    cluster.create("bank", &bank("bank", &ALL, ""), &[]);
    cluster.wait_healthy();
    cluster
}

#[test]
fn commands_know_a_group_that_only_the_running_domain_has() {
    let cluster = cluster();
    cluster.bank(0, "bank").increment("first").expect("it answers");
    assert!(cluster.ok(&["status"]).contains("bank"));
    assert!(cluster.ok(&["group", "list"]).contains("bank"));
    assert!(cluster.ok(&["group", "show", "bank"]).contains("n3"));
    assert!(cluster.ok(&["group", "log", "bank"]).contains("increment"));
    assert!(cluster.ok(&["ior", "make", "bank"]).starts_with("IOR:"));
    assert!(cluster.ok(&["config", "check", "quorba.toml"]).contains("0 groups"));
    cluster.ok(&["group", "remove", "bank", "n2"]);
    cluster.ok(&["group", "add", "bank", "n2"]);
    cluster.wait_healthy();
    cluster.ok(&["group", "style", "bank", "warm-passive"]);
    cluster.ok(&["group", "promote", "bank", "n3"]);
    wait_until("it leads", || cluster.group_at(0, "bank")["leader"] == "n3");
    cluster.wait_healthy();
    cluster.bank(1, "bank").increment("second").expect("it answers");
    cluster.ok(&["backup", "bank", "--to", "bank.backup"]);
    cluster.bank(1, "bank").increment("third").expect("it answers");
    cluster.ok(&["restore", "--group", "bank", "bank.backup", "--yes"]);
    cluster.wait_healthy();
    assert_eq!(cluster.bank(2, "bank").counter().expect("it answers"), 2);
    cluster.ok(&["group", "style", "bank", "active"]);
    cluster.wait_healthy();
    let mut load = cluster.load("bank", "recorded");
    cluster.ok(&["group", "record", "bank", "--for", "1s", "--to", "bank.recording"]);
    load.stop();
    cluster.ok(&["group", "doctor", "bank", "--log", "bank.recording"]);
    let skipped = cluster.refused(&["group", "skip", "bank", "4711"]);
    assert!(skipped.contains("4711") && !skipped.contains("no group"), "{skipped}");
    let reference = cluster.ok(&["ior", "make", "bank"]);
    cluster.ok(&["ping", reference.trim(), "-n", "1"]);
    cluster.ok(&["group", "advise", "bank", "--seconds", "1"]);
    let stateless = cluster.refused(&["group", "style", "bank", "stateless"]);
    assert!(stateless.contains("It names a state_object, `bank`"), "{stateless}");
    let nobody = cluster.refused(&["group", "show", "nobody"]);
    assert!(nobody.contains("nobody"), "{nobody}");
}

#[test]
fn events_tell_of_a_group_that_only_the_running_domain_has() {
    let cluster = cluster();
    let mut command = Command::new(QUORBA);
    command.args(["-o", "json", "status", "--watch"]).current_dir(cluster.folder.path());
    let mut watch = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let mut seen = lines.map_while(Result::ok).filter(|line| line.contains("bank"));
    assert!(seen.next().is_some());
    cluster.ok(&["group", "delete", "bank", "--yes"]);
    wait_until("it is gone", || cluster.groups_at(0).is_empty());
    let _ = watch.kill();
    let _ = watch.wait();
}

#[test]
fn a_durable_log_is_read_from_disk_when_nobody_runs_and_no_file_has_its_group() {
    let mut cluster = Cluster::start("");
    cluster.create("vault", &bank("vault", &ALL, "durable = true"), &[]);
    cluster.wait_healthy();
    cluster.bank(0, "vault").increment("kept").expect("it answers");
    (0..3).for_each(|node| cluster.kill(node));
    let log = ["group", "log", "vault", "--disk"];
    assert!(cluster.ok(&[&log[..], &["--node", "n2"]].concat()).contains("increment"));
    let nobody = cluster.refused(&["group", "log", "nobody", "--disk", "--node", "n2"]);
    assert!(nobody.contains("has no group nobody"), "{nobody}");
    let unsaid = cluster.refused(&log);
    assert!(unsaid.contains("vault"), "{unsaid}");
}
