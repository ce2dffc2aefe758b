//! Members that come and go by another definition, what cannot change, and servers that no node
//! starts, each with a key of its own.

use std::sync::{Arc, Mutex};

use quorba_demo::accounting::account;
use quorba_demo::accounting::read::replica;
use quorba_demo::bank::servant::{Bank, Faults};
use quorba_giop::cdr::Reader;
use quorba_giop::{SystemException, corbaloc};
use quorba_orb::{Reply, RunningServer, Servant, Server, ServerOptions};

use crate::cluster::{ALL, Cluster, bank};
use crate::stage::wait_until;

fn state_of(cluster: &Cluster, seen: usize, member: &str) -> String {
    let group = cluster.group_at(seen, "bank");
    let members = group["members"].as_array().cloned().unwrap_or_default();
    let found = members.iter().find(|one| one["node"] == member).cloned().unwrap_or_default();
    found["state"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn members_come_and_go_while_clients_work() {
    let cluster = Cluster::start(&bank("bank", &["n1", "n2"], ""));
    let mut load = cluster.load("bank", "c");
    for (file, members) in [("three", &ALL[..]), ("other", &ALL[1..]), ("back", &ALL[..])] {
        cluster.write_file(file, &bank("bank", members, ""));
        cluster.ok(&["config", "apply", &format!("{file}.toml")]);
        cluster.wait_healthy();
        for name in ALL {
            let wanted = if members.contains(&name) { "in" } else { "none" };
            wait_until("the members are those of the file", || {
                (0..3).all(|seen| state_of(&cluster, seen, name) == wanted)
            });
        }
        cluster.go_on(&load);
    }
    let result = load.stop();
    cluster.account("bank", &[0, 1, 2], &[result.recording]);
}

#[test]
fn what_cannot_change_is_named_and_nothing_changes() {
    let cluster = Cluster::start(&bank("bank", &ALL, ""));
    let before = cluster.bank(0, "bank").increment("before").expect("it answers");
    cluster.write_file("durable", &bank("bank", &ALL, "durable = true\nstuck_ms = 7000"));
    let said = cluster.refused(&["config", "apply", "durable.toml"]);
    assert!(said.contains("bank") && said.contains("durable"), "{said}");
    assert!(!said.contains("stuck_ms"), "this one could: {said}");
    let plan = cluster.json(&["config", "apply", "durable.toml", "--dry-run"]);
    let keys = &plan["plan"]["changes"][0]["keys"];
    assert_eq!((&keys[0]["key"], &keys[1]["key"]), (&"durable".into(), &"stuck_ms".into()));
    assert_eq!(cluster.bank(2, "bank").counter().expect("it answers"), before);
    // No member with the state would be left.
    cluster.ok(&["group", "remove", "bank", "n3"]);
    cluster.write_file("third", &bank("bank", &["n3"], ""));
    let said = cluster.refused(&["config", "apply", "third.toml"]);
    assert!(said.contains("no member that would be left"), "{said}");
    assert_eq!(cluster.bank(2, "bank").counter().expect("it answers"), before);
}

/// One bank under several keys.
#[derive(Clone)]
struct Branch(Arc<Mutex<Bank>>);

impl Servant for Branch {
    fn repository_id(&self) -> &str {
        quorba_demo::bank::servant::LEDGER_ID
    }

    fn is_a(&self, id: &str) -> bool {
        self.0.lock().expect("no holder panics").is_a(id)
    }

    fn dispatch(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), SystemException> {
        self.0.lock().expect("no holder panics").dispatch(operation, arguments, reply)
    }
}

/// A server of this process, whose bank has this key, and its state that of all; under the key
/// `bank` it is asked past the nodes.
pub(crate) fn serve(port: u16, key: &str) -> RunningServer {
    let bank = Branch(Arc::new(Mutex::new(Bank::new(Faults::default(), 64 << 20))));
    let server = Server::bind(("127.0.0.1", port), ServerOptions::default()).expect("it is free");
    let server = server.with(key.as_bytes(), bank.clone()).with("bank", bank.clone());
    server.with("state", bank).start().expect("it serves")
}

#[test]
fn servers_may_have_the_object_under_different_keys() {
    let cluster = Cluster::start("");
    let port = |node: u16| cluster.first + 15 + node;
    let servers = [serve(port(0), "first/key"), serve(port(1), "second%key")];
    let url = |node: u16, key: &str| format!("corbaloc::127.0.0.1:{}/{key}", port(node));
    // As servers do it: the reference stands in a file.
    let second = corbaloc::parse(&url(1, "second%25key")).expect("it is one").to_ior().to_string();
    std::fs::write(cluster.folder.path().join("second.ior"), second + "\n").expect("written");
    let first = format!("n1={}", url(0, "first/key"));
    let create = ["group", "create", "bank", "--members", "n1,n2", "--state-object", "state"];
    cluster.ok(&[&create[..], &["--connect", &first, "--connect", "n2=second.ior"]].concat());
    cluster.wait_healthy();
    let mut load = cluster.load("bank", "c");
    // Both execute what is asked under the one key that clients know, and lead in turn.
    for node in ["n2", "n1"] {
        cluster.ok(&["group", "remove", "bank", node]);
        cluster.go_on(&load);
        cluster.ok(&["group", "add", "bank", node]);
        cluster.wait_healthy();
        cluster.go_on(&load);
    }
    let recordings = [load.stop().recording];
    let is_clean = || {
        let read = |node: u16| replica(ALL[usize::from(node)], port(node)).expect("it answers");
        account(&recordings, &[read(0), read(1)]).is_clean()
    };
    wait_until("both servers have each call once", is_clean);
    servers.into_iter().for_each(RunningServer::stop);
}
