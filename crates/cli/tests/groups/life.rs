//! A group from its creation to its end, while clients use it.

use std::time::Duration;

use quorba_giop::{Completion, ExceptionKind};
use rustix::process::Signal;
use serde_json::Value;

use crate::cluster::{ALL, Cluster, bank};
use crate::stage::wait_until;
use crate::stage::wire::{Answer, Wire};

#[test]
fn a_group_that_is_created_while_the_domain_runs_loses_nothing_while_nodes_are_killed() {
    let mut cluster = Cluster::start("");
    let made = cluster.create("bank", &bank("bank", &ALL, ""), &[]);
    assert_eq!(made["existed"], false, "{made}");
    cluster.wait_healthy();
    let mut load = cluster.load("bank", "c");
    for node in 0..3 {
        cluster.kill(node);
        cluster.go_on(&load);
        cluster.start_node(node);
        cluster.wait_healthy();
        cluster.go_on(&load);
    }
    let result = load.stop();
    cluster.account("bank", &[0, 1, 2], &[result.recording]);
}

#[test]
fn under_the_name_of_its_operation_a_command_is_done_once() {
    let cluster = Cluster::start("");
    let text = bank("bank", &ALL, "");
    let first = cluster.create("bank", &text, &["--operation", "op-1"]);
    let again = cluster.create("bank", &text, &["--operation", "op-1"]);
    assert_eq!((&first["existed"], &again["existed"]), (&Value::Bool(false), &Value::Bool(true)));
    assert_eq!(first["id"], again["id"]);
    let other = cluster.refused(&["group", "create", "bank", "--from", "bank.group"]);
    assert!(other.contains("bank") && other.contains("already"), "{other}");
    // The operator finds it in the nodes' logs.
    for node in 0..3 {
        wait_until("the log names the operation", || {
            let log = cluster.log(node);
            log.lines().any(|line| line.contains("the group is created") && line.contains("op-1"))
        });
    }
    let delete = ["group", "delete", "bank", "--yes", "--operation", "op-2"];
    assert_eq!(cluster.json(&delete)["existed"], false);
    assert_eq!(cluster.json(&delete)["existed"], true);
    // An operation that was carried out stands for what it did.
    let reused = cluster.create("bank", &text, &["--operation", "op-3"]);
    assert_ne!(reused["id"], first["id"]);
    let refused = cluster.refused(&["group", "delete", "bank", "--yes", "--operation", "op-3"]);
    assert!(refused.contains("name of an operation"), "{refused}");
    cluster.wait_groups(&["bank"]);
}

/// Whether it says that there is no such object, or the connection is at its end. Of a call that
/// was under way nobody says whether it was executed.
fn says_gone(answer: &Answer) -> bool {
    match answer {
        Answer::Raised(exception) => exception.kind == ExceptionKind::ObjectNotExist,
        Answer::Closed | Answer::Refused => true,
        _ => false,
    }
}

#[test]
fn callers_of_a_deleted_group_are_told_and_its_name_is_free_again() {
    let cluster = Cluster::start("");
    let text = bank("bank", &ALL, &format!("listen = {}\n", cluster.first + 9));
    cluster.create("bank", &text, &[]);
    cluster.wait_healthy();
    let ports = [cluster.gateway(0), cluster.first + 9 + 1];
    let keys: [&[u8]; 2] = [b"QRB/bank/bank", b"bank"];
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..2)
            .map(|place| {
                let mut wire = Wire::connect(ports[place]).expect("it listens");
                let key = keys[place];
                let first = wire.call(key, "counter", Duration::from_secs(20), |_| {});
                let is_own = place == 1;
                assert!(matches!(first, Answer::Reply(_)) || !is_own, "{first}");
                scope.spawn(move || {
                    loop {
                        let answer = wire.call(key, "counter", Duration::from_secs(20), |_| {});
                        if !matches!(answer, Answer::Reply(_)) {
                            return answer;
                        }
                    }
                })
            })
            .collect();
        cluster.ok(&["group", "delete", "bank", "--yes"]);
        for call in calls {
            let answer = call.join().expect("no panic");
            assert!(says_gone(&answer), "{answer}");
        }
    });
    cluster.wait_groups(&[]);
    let mut late = Wire::connect(ports[0]).expect("it listens");
    let answer = late.call(keys[0], "counter", Duration::from_secs(20), |_| {});
    let Answer::Raised(exception) = &answer else { panic!("{answer}") };
    assert_eq!(exception.kind, ExceptionKind::ObjectNotExist, "{answer}");
    assert_eq!(exception.completed, Completion::No, "{answer}");
    let again = cluster.create("bank", &bank("bank", &ALL, ""), &[]);
    assert_eq!(again["existed"], false);
    cluster.wait_healthy();
    let mut ledger = cluster.bank(1, "bank");
    assert_eq!(ledger.counter().expect("it answers"), 0, "nothing is left of the old one");
    assert_eq!(ledger.increment("first").expect("it answers"), 1);
}

#[test]
fn servers_of_a_deleted_group_have_ended() {
    let cluster = Cluster::start(&bank("bank", &ALL, ""));
    let pid = |node: usize| {
        let pid = cluster.group_at(node, "bank")["server"]["pid"].as_i64().expect("it runs");
        rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid")
    };
    let pids = [0, 1, 2].map(|node| (String::new(), pid(node)));
    cluster.ok(&["group", "delete", "bank", "--yes"]);
    wait_until("its servers end", || crate::stage::all_gone(&pids));
}

#[test]
fn a_node_that_was_away_comes_to_the_same_groups() {
    let mut cluster = Cluster::start(&(bank("old", &ALL, "") + &bank("kept", &ALL, "")));
    cluster.kill(2);
    wait_until("the others go on", || {
        let status = cluster.status();
        status["nodes"][0]["status"]["ring"]["primary"] == true
            && cluster.quorba(&["group", "delete", "old", "--yes"]).status.success()
    });
    cluster.create("new", &bank("new", &ALL, ""), &[]);
    let changed = bank("kept", &ALL, "server_reply_ms = 12345") + &bank("new", &ALL, "");
    cluster.write_file("changed", &changed);
    cluster.ok(&["config", "apply", "changed.toml"]);
    wait_until("the new group serves", || {
        cluster.bank(0, "new").increment("while it is away").is_ok()
    });
    cluster.start_node(2);
    cluster.wait_healthy();
    cluster.wait_groups(&["kept", "new"]);
    assert_eq!(cluster.bank(2, "new").counter().expect("it answers"), 1);
    // Also what has changed has come to it, and is on its disk.
    cluster.kill(0);
    cluster.kill(1);
    cluster.kill(2);
    cluster.start_all();
    cluster.wait_healthy();
    cluster.wait_groups(&["kept", "new"]);
    let plan = cluster.json(&["config", "apply", "changed.toml", "--dry-run"]);
    assert_eq!(plan["plan"]["changes"], serde_json::json!([]), "{plan}");
    // One that stops in good order keeps them, too.
    cluster.signal(2, Signal::TERM);
}
