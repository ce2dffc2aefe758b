//! IIOP over TLS, and who may call what, against three live nodes.

mod stage;

#[path = "stage/tls.rs"]
mod keys;

use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use keys::{Authority, connect};
use quorba_giop::MinorCode;
use quorba_giop::ior::{ComponentValue, Ior, SslTransport};
use rustix::process::Signal;
use stage::wire::{Answer, Wire, connect_from};
use stage::{Domain, LONG, free_ports, text, up, wait_until};

/// Where gateways look for ports for TLS.
const FIRST_PORT: u16 = 22_000;

struct Stage {
    domain: Domain,
    tls_port: u16,
    authority: Authority,
}

/// Three nodes with TLS, and these lines more; `{tls}` and what `tls` has more.
fn start(tls: &str, more: &str) -> Stage {
    let tls_port = free_ports(FIRST_PORT, 3);
    let authority = Authority::new("test authority");
    let own = authority.sign("gateway", &["127.0.0.1"]);
    let more = format!(
        "tls = {{ listen = {tls_port}, certificate = \"gateway.pem\", \
         key = \"gateway.key\"{tls} }}\n{more}"
    );
    let domain = Domain::start_by(&more, |folder| {
        own.write(folder);
        std::fs::write(folder.join("ca.pem"), authority.pem()).expect("written");
        up(folder)
    });
    domain.wait_healthy();
    Stage { domain, tls_port, authority }
}

fn open(wire: &mut Wire, account: &str) -> Answer {
    wire.call(b"bank", "open", LONG, |out| {
        out.write_string(account.as_bytes());
        out.write_string(account.as_bytes());
    })
}

fn balance(wire: &mut Wire, account: &str) -> Answer {
    wire.call(b"bank", "balance", LONG, |out| out.write_string(account.as_bytes()))
}

fn is_reply(answer: &Answer) -> bool {
    matches!(answer, Answer::Reply(_))
}

#[test]
fn clients_call_what_their_certificates_allow() {
    let more = "clients = [\"alice\", { certificates = [\"*.audit\"], operations = [\"bal*\"] }, \
                { networks = [\"127.0.0.3\"], operations = [\"balance\"] }]\n";
    let stage = start(", client_ca = \"ca.pem\"", more);
    let Stage { domain, tls_port, authority } = &stage;
    for node in 0..3 {
        let client = |name: &str, others: &[&str]| {
            let own = authority.sign(name, others);
            connect(&authority.client(Some(&own)), tls_port + node).expect("it is let in")
        };
        let account = format!("account {node}");
        let mut alice = client("alice", &[]);
        let answer = open(&mut alice, &account);
        assert!(is_reply(&answer), "n{}: {answer}", node + 1);
        assert!(is_reply(&balance(&mut alice, &account)));
        let mut auditor = client("somebody", &["one.audit"]);
        let answer = balance(&mut auditor, &account);
        assert!(is_reply(&answer), "{answer}");
        let is_a = auditor.call(b"bank", "_is_a", LONG, |out| out.write_string(b"IDL:Any:1.0"));
        assert!(is_a.ours() != Some(MinorCode::OperationNotAllowed), "{is_a}");
        let answer = open(&mut auditor, "mallory");
        assert_eq!(answer.ours(), Some(MinorCode::OperationNotAllowed), "{answer}");
        let answer = open(&mut client("carol", &[]), "mallory");
        assert_eq!(answer.ours(), Some(MinorCode::ClientNotAllowed), "{answer}");
        let plain = domain.first_port + 6 + node;
        let answer = open(&mut Wire::connect(plain).expect("it listens"), "mallory");
        assert_eq!(answer.ours(), Some(MinorCode::ClientNotAllowed), "{answer}");
        let mut other = Wire::connect_from(Ipv4Addr::new(127, 0, 0, 3), plain).expect("it listens");
        assert!(is_reply(&balance(&mut other, &account)));
        let answer = open(&mut other, "mallory");
        assert_eq!(answer.ours(), Some(MinorCode::OperationNotAllowed), "{answer}");
    }
    // Who shows nothing, or what a stranger has signed, does not come in.
    let stranger = Authority::new("test authority").sign("alice", &[]);
    for own in [None, Some(&stranger)] {
        let came_in = connect(&authority.client(own), *tls_port).map(|mut wire| {
            // With TLS 1.3 a client hears of it when it waits for the first answer.
            is_reply(&balance(&mut wire, "account 0"))
        });
        assert!(!came_in.unwrap_or(false));
    }
}

#[test]
fn references_name_the_port_for_tls_and_without_plain_iiop_no_other() {
    let stage = start(", client_ca = \"ca.pem\", plain = false", "");
    let Stage { domain, tls_port, authority } = &stage;
    let made = domain.quorba(&["ior", "make", "bank"]);
    let made = text(&made.stdout);
    let ior = Ior::parse(made.trim()).expect("a reference");
    assert_eq!(ior.profiles.len(), 3);
    for (index, profile) in ior.profiles.iter().enumerate() {
        let iiop = profile.iiop().expect("IIOP").expect("well-formed");
        assert_eq!(iiop.port, 0);
        let ssl = iiop.components.iter().filter_map(|component| match component.value() {
            Some(Ok(ComponentValue::SslTransport(ssl))) => Some(ssl),
            _ => None,
        });
        let both = SslTransport::PROTECTION | SslTransport::TRUST_IN_CLIENT;
        let supports = both | SslTransport::TRUST_IN_TARGET;
        let port = tls_port + index as u16;
        let expected = [SslTransport { supports, requires: both, port }];
        assert_eq!(ssl.collect::<Vec<_>>(), expected);
        assert!(iiop.components.iter().all(|it| it.alternate_address().is_none()));
    }
    let plain = TcpStream::connect((Ipv4Addr::LOCALHOST, domain.first_port + 6));
    assert!(plain.is_err(), "nobody listens there");
    let own = authority.sign("anybody", &[]);
    let mut wire = connect(&authority.client(Some(&own)), *tls_port).expect("it is let in");
    assert!(is_reply(&open(&mut wire, "account")));
}

#[test]
fn certificates_are_read_again_while_connections_go_on() {
    let stage = start("", "");
    let Stage { domain, tls_port, authority } = &stage;
    let mut before = connect(&authority.client(None), *tls_port).expect("it is let in");
    assert!(is_reply(&open(&mut before, "account")));
    // What cannot be used changes nothing.
    std::fs::write(domain.folder.path().join("gateway.pem"), "nonsense").expect("written");
    domain.signal(Signal::HUP);
    wait_until("the node says so", || domain.told().contains("stay what they were"));
    assert!(connect(&authority.client(None), *tls_port).is_ok());
    let next = Authority::new("next authority");
    next.sign("gateway", &["127.0.0.1"]).write(domain.folder.path());
    domain.signal(Signal::HUP);
    for node in 0..3 {
        wait_until("the new certificate is shown", || {
            connect(&next.client(None), tls_port + node).is_ok()
        });
        assert!(connect(&authority.client(None), tls_port + node).is_err());
    }
    let answer = balance(&mut before, "account");
    assert!(is_reply(&answer), "{answer}");
}

#[test]
fn who_shakes_no_hands_is_sent_away_and_keeps_nobody_out() {
    let stage = start("", "[limits]\nheader_ms = 2000\n");
    let Stage { tls_port, authority, .. } = &stage;
    let mut garbage = TcpStream::connect((Ipv4Addr::LOCALHOST, *tls_port)).expect("it listens");
    garbage.write_all(b"GIOP\x01\x02\x01\x00\xff\xff\xff\xff").expect("taken");
    let silent = |from| {
        let mut all = Vec::new();
        for _ in 0..100 {
            all.extend(connect_from(from, *tls_port));
        }
        all
    };
    let mut crowd = silent(Ipv4Addr::new(127, 0, 0, 4));
    for last in 5..15 {
        crowd.extend(silent(Ipv4Addr::new(127, 0, 0, last)));
    }
    let mut honest = connect(&authority.client(None), *tls_port).expect("there is room");
    assert!(is_reply(&open(&mut honest, "account")));
    // None of them is answered; all of them end, by a FIN or a reset.
    crowd.push(garbage);
    for mut socket in crowd {
        socket.set_read_timeout(Some(LONG)).expect("a socket");
        let mut octets = [0; 64];
        while let Ok(count @ 1..) = socket.read(&mut octets) {
            assert!(count <= octets.len());
        }
    }
    let answer = balance(&mut honest, "account");
    assert!(is_reply(&answer), "{answer}");
}
