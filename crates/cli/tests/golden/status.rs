//! `quorba status`, against nodes that answer as real ones do.

use std::net::{SocketAddr, TcpListener};

use quorba_admin::requests::EndKind;
use quorba_admin::status::{
    Caller, EndedStatus, GroupStatus, MemberState, MemberStatus, NodeStatus, RequestStatus,
    RingState, RingStatus, ServerState, ServerStatus, StateRefusedStatus, Status, StuckStatus,
};

use crate::bench::{Bench, silent_port};

const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// What `node` says while the nodes `up` are in view 8 and serve.
fn status(node: &str, up: &[&str]) -> Status {
    let index = NODES.iter().position(|name| *name == node).expect("a node") as u16;
    let primary = up.len() >= 2;
    Status {
        version: "0.1.0".to_owned(),
        domain: "plant-a".to_owned(),
        node: node.to_owned(),
        pid: 4242,
        uptime_ms: 273_600_000 - u64::from(index) * 1000,
        ring: RingStatus {
            state: RingState::Operational,
            reason: "view installed".to_owned(),
            view_seq: 8,
            representative: up[0].to_owned(),
            members: up.iter().map(ToString::to_string).collect(),
            primary,
            memory_lost_ms: None,
            primary_reason: format!("{} of 3 nodes", up.len()),
            rotation_us: Some(412.4),
            exchange_us: Some(118.2),
            token_visits: 4_000_000,
            delivered: 1_204_417,
            retransmits: 12,
            view_changes: 3,
            encrypt: true,
            sealing_key: Some("a1b2c3".into()),
            fanout: match up.len() {
                3 => "multicast 239.192.1.2:4701, which reaches n2, n3".into(),
                _ => "unicast: no node answers what is sent by multicast".into(),
            },
            engine: "ring".to_owned(),
        },
        nodes: NODES
            .iter()
            .map(|name| NodeStatus {
                name: name.to_string(),
                host: "127.0.0.1".to_owned(),
                in_view: up.contains(name),
                standing: match up.contains(name) {
                    true => "in view".to_owned(),
                    false => "its process ended".to_owned(),
                },
                since_ms: (!up.contains(name)).then_some(4_000),
                linked: up.contains(name),
                ..NodeStatus::default()
            })
            .collect(),
        groups: vec![group(index, up)],
        cpu_ms: 12_340,
        rss_bytes: 18_400_000,
        ..Status::default()
    }
}

fn group(index: u16, up: &[&str]) -> GroupStatus {
    let member = |name: &&str| MemberStatus {
        node: name.to_string(),
        state: if up.contains(name) { MemberState::In } else { MemberState::Down },
        reason: (!up.contains(name)).then(|| "its node is out of the view".to_owned()),
        since_ms: (!up.contains(name)).then_some(4_000),
    };
    GroupStatus {
        name: "bank".to_owned(),
        style: "active".to_owned(),
        listen: format!("127.0.0.1:{}", 5000 + index * 100),
        served: 30_000,
        served_us: 1_500_000,
        callers: vec![Caller { node: "n1".to_owned(), requests: 30_000 }],
        executed: 90_000 + u64::from(index),
        members: NODES.iter().map(member).collect(),
        has_state_object: true,
        server: Some(ServerStatus {
            state: ServerState::Running,
            pid: Some(5000 + u32::from(index)),
            port: Some(40_000 + index),
            restarts: u64::from(index),
            log: Some(format!("/var/lib/quorba/n{}/bank.log", index + 1)),
            ..ServerStatus::default()
        }),
        connections: 4,
        pending: 1,
        requests: 30_000,
        replies: 29_999,
        duplicates: 2,
        retained: 1_500,
        retained_bytes: 750_000,
        last_change: Some("n3 joined 11 m ago".to_owned()),
        ..GroupStatus::default()
    }
}

/// The domain file whose nodes are asked at `admins`.
fn domain(bench: &Bench, admins: [SocketAddr; 3]) {
    let mut text = "[domain]\nid = \"plant-a\"\nkey_file = \"domain.key\"\n".to_owned();
    for (index, (name, admin)) in NODES.iter().zip(admins).enumerate() {
        text += &format!(
            "[node.{name}]\nhost = \"127.0.0.1\"\nring_port = {}\nadmin = \"{admin}\"\n\
             gateway_port_offset = {}\n",
            4700 + index,
            index * 100
        );
    }
    text += "[group.bank]\nlisten = 5000\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
             server = [\"bank\", \"{port}\"]\nstate_object = \"bank\"\n";
    bench.domain(&text);
}

fn nowhere(bench: &mut Bench, name: &str) -> SocketAddr {
    let address = SocketAddr::from(([127, 0, 0, 1], silent_port()));
    bench.hide(address, &format!("ADMIN OF {name}"));
    address
}

fn all_answer(bench: &mut Bench, up: &[&str]) {
    let admins = NODES.map(|name| match up.contains(&name) {
        true => bench.answer(name, &format!("quorba-state/{name}"), status(name, up)),
        false => nowhere(bench, name),
    });
    domain(bench, admins);
}

#[test]
fn a_healthy_domain() {
    let mut bench = Bench::new();
    all_answer(&mut bench, &NODES);
    let mut transcript = bench.run(&["status"]);
    transcript += &bench.run(&["status", "bank"]);
    transcript += &bench.run(&["status", "--wait-healthy"]);
    transcript += &bench.run(&["status", "bnak"]);
    insta::assert_snapshot!("status_healthy", transcript);
}

#[test]
fn watching_ends_with_its_deadline() {
    let mut bench = Bench::new();
    all_answer(&mut bench, &NODES);
    let transcript = bench.run(&["status", "--watch", "--timeout", "50ms"]);
    assert!(transcript.contains("DOMAIN plant-a   view 8 (3 of 3)   PRIMARY"), "{transcript}");
    assert!(transcript.ends_with("--- exit 0\n"), "{transcript}");
    assert!(!transcript.contains('\x1b'), "no redrawing where there is no terminal");
}

#[test]
fn a_healthy_domain_as_json() {
    let mut bench = Bench::new();
    all_answer(&mut bench, &NODES);
    insta::assert_snapshot!("status_json", bench.run(&["-o", "json", "status", "bank"]));
}

#[test]
fn a_node_is_down() {
    let mut bench = Bench::new();
    all_answer(&mut bench, &NODES[..2]);
    let mut transcript = bench.run(&["status"]);
    transcript += &bench.run(&["status", "--wait-healthy", "300ms"]);
    insta::assert_snapshot!("status_degraded", transcript);
}

#[test]
fn a_minority_has_no_quorum() {
    let mut bench = Bench::new();
    all_answer(&mut bench, &NODES[..1]);
    insta::assert_snapshot!("status_minority", bench.run(&["status"]));
}

#[test]
fn nobody_answers() {
    let mut bench = Bench::new();
    all_answer(&mut bench, &[]);
    let mut transcript = bench.run(&["status"]);
    transcript += &bench.run(&["-o", "json", "status"]);
    transcript += &bench.run(&["status", "--wait-healthy", "200ms"]);
    insta::assert_snapshot!("status_nobody", transcript);
}

#[test]
fn nodes_that_answer_strangely() {
    let mut bench = Bench::new();
    // n1 listens and says nothing, n2's token is of another run, n3 says something else.
    let hung = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = hung.local_addr().expect("bound");
    bench.hide(silent, "ADMIN OF n1");
    bench.write("quorba-state/n1/admin.token", "x\n");
    let denied = bench.answer("n2", "quorba-state/n2", status("n2", &NODES));
    bench.write("quorba-state/n2/admin.token", "an-older-token\n");
    let confused = bench.answer_raw("n3", "quorba-state/n3", "200 OK", "{\"version\": 7}");
    domain(&bench, [silent, denied, confused]);
    insta::assert_snapshot!("status_strange", bench.run(&["status", "--timeout", "300ms"]));
}

#[test]
fn a_node_of_another_machine_is_not_mistaken() {
    let mut bench = Bench::new();
    let here = bench.answer("n1", "quorba-state/n1", status("n1", &NODES));
    let gone = nowhere(&mut bench, "n3");
    // n2 is on another machine, where its admin API has a port that here is another node's.
    let taken = bench.answer("n2", "quorba-state/n2", status("n1", &NODES));
    domain(&bench, [here, taken, gone]);
    insta::assert_snapshot!("status_elsewhere", bench.run(&["status"]));
}

#[test]
fn views_that_differ_are_told() {
    let mut bench = Bench::new();
    let mut late = status("n3", &NODES);
    late.ring.view_seq = 7;
    late.ring.state = RingState::Gather;
    late.ring.reason = "token lost".to_owned();
    let mut first = status("n1", &NODES);
    first.warnings.push("n3 runs with another domain file (digest 1f)".to_owned());
    let admins = [
        bench.answer("n1", "quorba-state/n1", first),
        bench.answer("n2", "quorba-state/n2", status("n2", &NODES)),
        bench.answer("n3", "quorba-state/n3", late),
    ];
    domain(&bench, admins);
    insta::assert_snapshot!("status_views_differ", bench.run(&["status"]));
}

fn request(number: u64, client: Option<&str>) -> RequestStatus {
    RequestStatus {
        number,
        operation: "transfer".to_owned(),
        key: "bank\\x01".to_owned(),
        bytes: 120,
        gateway: "n2".to_owned(),
        client: client.map(str::to_owned),
    }
}

fn ended(number: u64, end: EndKind, how: &str, client: Option<&str>) -> EndedStatus {
    let request = request(number, client);
    EndedStatus { request, end, how: how.to_owned() }
}

/// Each node knows something else of the same requests.
fn odd(node: &str) -> Status {
    let mut status = status(node, &NODES);
    let group = &mut status.groups[0];
    let client = (node == "n2").then_some("10.0.0.3");
    let closed = "every server that executed it ended the connection, and lives";
    let crashed = "server processes ended at it; it is not executed again";
    group.ended = vec![
        ended(4711, EndKind::NoReply, closed, client),
        ended(4802, EndKind::EndsServers, crashed, client),
    ];
    let server = group.server.as_mut().expect("it has one");
    if node == "n1" {
        (server.reconnects, server.refused_calls) = (3, 1);
    }
    status
}

fn oddly_answer(bench: &mut Bench, change: impl Fn(&str, &mut GroupStatus)) {
    let admins = NODES.map(|name| {
        let mut status = odd(name);
        change(name, &mut status.groups[0]);
        bench.answer(name, &format!("quorba-state/{name}"), status)
    });
    domain(bench, admins);
}

#[test]
fn requests_that_ended_without_a_reply_are_told_and_make_nobody_ill() {
    let mut bench = Bench::new();
    oddly_answer(&mut bench, |_, _| {});
    let mut transcript = bench.run(&["status"]);
    transcript += &bench.run(&["status", "bank"]);
    insta::assert_snapshot!("status_ended", transcript);
}

#[test]
fn servers_that_hang_or_differ_are_told_with_what_helps() {
    let mut bench = Bench::new();
    oddly_answer(&mut bench, |node, group| {
        group.may_differ = Some(4711);
        group.late = vec!["n3".to_owned()];
        match node {
            // The client's own node has a server that is not at it.
            "n2" => group.waiting = vec![request(4900, Some("10.0.0.7"))],
            _ => {
                let since_ms = if node == "n1" { 45_200 } else { 45_100 };
                group.stuck = vec![StuckStatus { request: request(4900, None), since_ms }];
            }
        }
        if node == "n1" {
            let reason = "IDL:omg.org/CORBA/MARSHAL:1.0".to_owned();
            group.state_refused = Some(StateRefusedStatus {
                times: 3,
                reason,
                minor: Some(0x4154_0045),
                bytes: Some(1_900_000),
            });
        }
        if node == "n3" {
            group.server.as_mut().expect("it has one").closes = 5;
        }
    });
    insta::assert_snapshot!("status_stuck", bench.run(&["status", "bank"]));
}

#[test]
fn what_an_older_node_says_can_be_read() {
    let text = serde_json::to_value(status("n1", &NODES)).expect("it is JSON");
    let mut older = text.clone();
    let group = older["groups"][0].as_object_mut().expect("an object");
    for key in ["ended", "stuck", "waiting", "may_differ", "late", "state_refused"] {
        group.remove(key);
    }
    let server = group["server"].as_object_mut().expect("an object");
    for key in ["reconnects", "dropped", "refused_calls", "closes"] {
        assert!(server.remove(key).is_some(), "{key}");
    }
    let older: Status = serde_json::from_value(older).expect("defaults");
    assert_eq!(older, status("n1", &NODES));
}
