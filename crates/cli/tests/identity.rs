//! Names of calls and operations that strangers must not have, against three live nodes.

mod stage;

use std::net::Ipv4Addr;

use quorba_giop::cdr::Writer;
use quorba_giop::{Endian, FtRequest, MinorCode, Version, context};
use stage::wire::{Answer, Wire};
use stage::{Domain, LONG, wait_until};

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn strings(out: &mut Writer, texts: &[&str]) {
    texts.iter().for_each(|text| out.write_string(text.as_bytes()));
}

/// A call that its client names.
fn named(wire: &mut Wire, retention_id: i32, operation: &str, arguments: &[&str]) -> Answer {
    let client_id = b"some client".to_vec();
    let name = FtRequest { client_id, retention_id, expiration_time: 0 };
    let name = name.encode(Endian::Little);
    let contexts: &[(u32, &[u8])] = &[(context::FT_REQUEST, &name)];
    let (id, request) = wire.request(b"bank", operation, contexts, |out| strings(out, arguments));
    wire.send(request.bytes()).expect("the gateway listens");
    wire.answer(id, LONG)
}

fn port(domain: &Domain, node: u16) -> u16 {
    domain.first_port + 6 + node
}

#[test]
fn a_strangers_call_under_a_known_name_is_refused_at_every_gateway() {
    let domain = Domain::start();
    domain.wait_healthy();
    let mut owner = Wire::connect(port(&domain, 0)).expect("it listens");
    let opened = named(&mut owner, 1, "open", &["alice", "first"]);
    assert!(matches!(opened, Answer::Reply(_)), "{opened}");
    for node in 0..3 {
        let mut stranger = Wire::connect_from(STRANGER, port(&domain, node)).expect("it listens");
        for (operation, arguments) in
            [("open", ["mallory", "second"].as_slice()), ("balance", &["alice"])]
        {
            let answer = named(&mut stranger, 1, operation, arguments);
            assert_eq!(answer.ours(), Some(MinorCode::IdentityTaken), "n{}: {answer}", node + 1);
        }
        let mut owner = Wire::connect(port(&domain, node)).expect("it listens");
        let again = named(&mut owner, 1, "open", &["alice", "first"]);
        assert!(matches!(again, Answer::Reply(_)), "n{}: {again}", node + 1);
    }
    let accounts = domain.bank(0).accounts().expect("it answers");
    assert_eq!(accounts.len(), 1, "{accounts:?}");
    domain.wait_healthy();
    // Each node counts what it is delivered.
    let taken = || -> Vec<u64> {
        let status = domain.status();
        let nodes = status["nodes"].as_array().expect("a list");
        let of = |node: &serde_json::Value| {
            node["status"]["groups"][0]["identities"]["taken"].as_u64().unwrap_or_default()
        };
        nodes.iter().map(of).collect()
    };
    wait_until("each node has counted them", || taken().iter().all(|taken| *taken >= 6));
    assert_eq!(taken(), [6; 3]);
    let what = "has the client id and retention id of another call";
    domain.told_once(what, |told| told.contains(what) && told.contains("127.0.0.2"));
    let shown = domain.quorba(&["status", "bank"]);
    let shown = stage::text(&shown.stdout);
    assert!(shown.contains("6 reuse the id of another call"), "{shown}");
}

#[test]
fn nobody_moves_a_groups_state_by_any_key_and_any_version() {
    let domain = Domain::start_with("readonly = [\"get_*\"]\n");
    domain.wait_healthy();
    domain.bank(0).open("alice", "first").expect("it is opened");
    for node in 0..3 {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            for key in [b"bank".as_slice(), b"bank/bank/ledger", b"StandardImplName/bank"] {
                for operation in ["get_state", "set_state", "get_update", "set_update"] {
                    let mut wire = Wire::connect(port(&domain, node)).expect("it listens");
                    wire.version = version;
                    let answer = wire.call(key, operation, LONG, |out| out.write_octets(b"no"));
                    let protected = Some(MinorCode::StateIsProtected);
                    assert_eq!(answer.ours(), protected, "{operation}: {answer}");
                }
            }
        }
    }
    let accounts = domain.bank(1).accounts().expect("it answers");
    assert_eq!(accounts.len(), 1, "{accounts:?}");
}
