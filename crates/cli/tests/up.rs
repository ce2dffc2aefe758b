//! `quorba up` with real nodes: three processes on loopback, each with a built-in bank server.

mod stage;

use std::fs;
use std::sync::atomic::{AtomicU16, Ordering};

use quorba_demo::bank::ledger::Ledger;
use rustix::process::{Signal, kill_process, test_kill_process};
use serde_json::Value;

use stage::{Domain, QUORBA, all_gone, assert_each_once, pids, text, wait_until};

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
    domain.told_once("one node failed", |told| told.contains("QB-CLI-009"));
}

#[test]
fn a_server_that_fails_again_and_again_is_in_quarantine_until_it_is_released() {
    let folder = tempfile::tempdir().expect("a folder");
    let mended = folder.path().join("mended");
    let script = format!(
        "test {{node}} = n2 && test ! -e {mended} && exit 3; \
         exec {QUORBA} servant bank --port {{port}}",
        mended = mended.display()
    );
    let domain = Domain::start_group(&format!(
        "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"/bin/sh\", \"-c\", \"{script}\"]\n\
         state_object = \"bank\"\nobject_key = \"bank\"\n\
         restart_backoff_ms = 1\nquarantine_after = 3\nquarantine_ms = 3600000\n"
    ));
    let of_n2 = || {
        let output = domain.quorba(&["-o", "json", "status"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["nodes"][1]["status"]["groups"][0]["server"].clone()
    };
    wait_until("n2's server is in quarantine", || of_n2()["state"] == "quarantined");
    let reason = of_n2()["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("3 failures in a row"), "{reason}");
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert!(reason.contains("quorba group release bank n2"), "{reason}");
    wait_until("the others serve", || domain.bank(0).open("a", "1").is_ok());
    let status = domain.quorba(&["status"]);
    let said = "the server on n2 is quarantined: ";
    assert!(text(&status.stdout).contains(said), "{}", text(&status.stdout));
    let shown = text(&domain.quorba(&["group", "show", "bank"]).stdout);
    let row = shown.lines().find(|line| line.starts_with("n2")).expect("a row");
    assert!(row.contains("3 failures in a row"), "its reason: {shown}");
    let wrong = domain.quorba(&["group", "release", "bank", "n9"]);
    assert!(text(&wrong.stderr).contains("has no node \"n9\""), "{}", text(&wrong.stderr));
    fs::write(mended, "").expect("written");
    let released = domain.quorba(&["group", "release", "bank", "n2"]);
    assert!(released.status.success(), "{}", text(&released.stderr));
    domain.wait_healthy();
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
        // A call that comes before the nodes have seen the ends goes to servers that are dying, and
        // two ends at one request are one too many.
        for (_, server) in pids.iter().skip(1).step_by(2) {
            wait_until("its node sees its end", || test_kill_process(*server).is_err());
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
    domain.end(&running);
    let file = damage_log(&domain, "n2");
    domain.up = stage::up(domain.folder.path());
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
