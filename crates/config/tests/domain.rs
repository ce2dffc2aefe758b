//! What a right domain file means.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorba_base::policy::{
    Ack, Concurrency, OnTotalLoss, QuorumRule, ReadConsistency, ReplyPath, Style,
};
use quorba_base::{Network, NodeId, NodeSet};
use quorba_config::{
    Backend, Domain, DomainKey, Endpoint, Engine, Host, KeyError, Member, Multicast, ObjectGroup,
    Values, check_text, reference_to,
};

const FULL: &str = r#"
[domain]
id = "plant-a"
key_file = "domain.key"
quorum = "dynamic-linear"
tie_breaker = "mid"
[ring]
encrypt = false
accelerated = false
token_rests = false
token_loss_ms = 250
datagram_bytes_max = 8900
multicast = "239.1.2.3:4701"
[limits]
connections = 10
connections_per_peer = 5
message_bytes = 65_536
state_bytes = 131_072
buffered_bytes = 0x100_0000
buffered_bytes_per_peer = 0x80_0000
unsent_bytes_per_connection = 70_000
requests_per_second_per_peer = 100
idle_ms = 60000
header_ms = 1000
request_ms = 2000
requests_pending_per_connection = 7
requests_pending = 70
[node.zeta]
host = "zeta.example"
ring_port = 4900
bind = "0.0.0.0"
admin = "[::1]:4000"
state_dir = "/var/lib/quorba/zeta"
gateway_port_offset = 10
[node.alpha]
host = "10.0.0.2"
[node.mid]
host = "fd00::3"
[group.bank]
style = "active"
listen = 5000
members = ["mid", "zeta"]
server = ["bank", "giop:tcp:127.0.0.1:{port}", "giop:tcp:{host}:{listen}"]
state_object = "ba%6ek/%00"
object_key = "bank"
type_id = "IDL:Bank/Ledger:1.0"
ack = "safe"
reply = "ordered"
replier = "mid"
concurrency = "per-object"
readonly = ["get_*", "balance"]
readonly_consistency = "sequential"
state_operations = ["set_state", "get_state"]
clients = [
    "10.0.0.0/8", "*.plant",
    { networks = ["fd00::1"], certificates = ["audit"], operations = ["get_*"] },
]
reply_retention_ms = 1
unavailable_wait_ms = 2
server_reply_ms = 30
stuck_ms = 40
abandon_ms = 500
start_timeout_ms = 400
restart_backoff_ms = 5
on_total_loss = "fresh"
env = { STATE = "{state_dir}/db", EMPTY = "" }
cwd = "{state_dir}"
[group.bank.tls]
listen = 5443
certificate = "tls/gateway.pem"
key = "/run/gateway.key"
client_ca = "ca.pem"
client_certificates = "optional"
plain = false
[group.names]
listen = 5001
members = ["alpha", "mid"]
connect = { mid = "127.0.0.1:6000", alpha = "127.0.0.1:6000" }
"#;

fn domain(text: &str) -> Domain {
    let path = Path::new("/etc/quorba/quorba.toml");
    let checked = check_text(path, text, |_| Ok(vec![DomainKey::from_bytes([7; 32])]));
    checked.domain.unwrap_or_else(|| panic!("{}", checked.report))
}

fn id(index: u8) -> NodeId {
    NodeId::new(index).expect("below the limit")
}

#[test]
fn corosync_carries_smaller_messages() {
    let full = FULL.replace("buffered_bytes_per_peer = 0x80_0000\n", "");
    let full = full.replace("buffered_bytes = 0x100_0000\n", "");
    let own = domain(&full.replace("message_bytes = 65_536\n", ""));
    assert_eq!((own.ring.engine, own.limits.message_bytes), (Engine::Totem, 16_775_168));
    let text = full.replace("message_bytes = 65_536\n", "").replace("\"safe\"", "\"majority\"");
    let outside = domain(&text.replace("[ring]\n", "[ring]\nengine = \"corosync\"\n"));
    assert_eq!((outside.ring.engine, outside.limits.message_bytes), (Engine::Corosync, 900_000));
    assert_ne!(own.digest(), outside.digest());
}

#[test]
fn every_key_arrives() {
    let domain = domain(FULL);
    assert_eq!(domain.id, "plant-a");
    assert_eq!(domain.quorum, QuorumRule::DynamicLinear);
    assert_eq!(domain.tie_breaker, domain.node_id("mid"));
    let ring = &domain.ring;
    assert!(!ring.encrypt && !ring.accelerated && !ring.token_rests);
    assert_eq!(ring.token_loss, Some(Duration::from_millis(250)));
    assert_eq!(ring.datagram_bytes_max, 8900);
    assert_eq!(ring.multicast, Multicast::Group("239.1.2.3:4701".parse().expect("an address")));
    let limits = &domain.limits;
    assert_eq!((limits.connections, limits.connections_per_peer), (10, 5));
    assert_eq!((limits.message_bytes, limits.buffered_bytes), (65_536, 16 << 20));
    assert_eq!(limits.buffered_bytes_per_peer, 8 << 20);
    assert_eq!(limits.buffered_bytes_per_group, 8 << 20, "half of all");
    assert_eq!(limits.unsent_bytes_per_connection, 70_000);
    assert_eq!(limits.state_bytes, 131_072);
    assert_eq!(limits.requests_per_second_per_peer, 100);
    assert_eq!(limits.idle, Some(Duration::from_secs(60)));
    assert_eq!((limits.header, limits.request), (Duration::from_secs(1), Duration::from_secs(2)));
    assert_eq!((limits.requests_pending_per_connection, limits.requests_pending), (7, 70));
    let bank = domain.group("bank").expect("the group");
    assert_eq!((bank.style, bank.ack), (Style::Active, Ack::Safe));
    assert_eq!((bank.listen, bank.port), (Some(5000), 5000));
    // Each once, unless the file says otherwise.
    assert_eq!((bank.reply, bank.replier), (ReplyPath::OrderedOnce, domain.node_id("mid")));
    assert_eq!(bank.concurrency, Concurrency::PerObject);
    assert_eq!(bank.readonly, ["get_*", "balance"]);
    assert_eq!(bank.readonly_consistency, ReadConsistency::Sequential);
    assert_eq!(bank.state_operations, ["get_state", "set_state"]);
    let [inside, plant, audit] = bank.clients.as_deref().expect("a list") else { panic!("three") };
    let network = |address: &str, prefix_bits| Network {
        address: address.parse().expect("an address"),
        prefix_bits,
    };
    assert_eq!(inside.networks, [network("10.0.0.0", 8)]);
    assert_eq!((&plant.certificates[..], &plant.operations), (&["*.plant".to_owned()][..], &None));
    assert_eq!(audit.networks, [network("fd00::1", 128)]);
    assert_eq!(audit.operations.as_deref(), Some(&["get_*".to_owned()][..]));
    let tls = bank.tls.as_ref().expect("TLS");
    assert_eq!((tls.listen, tls.plain, tls.client_certificates_required), (5443, false, false));
    assert_eq!(tls.certificate, Path::new("/etc/quorba/tls/gateway.pem"));
    assert_eq!(tls.key, Path::new("/run/gateway.key"));
    assert_eq!(tls.client_ca.as_deref(), Some(Path::new("/etc/quorba/ca.pem")));
    assert_eq!(bank.state_object.as_deref(), Some(b"bank/\0".as_slice()));
    assert_eq!(bank.object_key.as_deref(), Some(b"bank".as_slice()));
    assert_eq!(bank.type_id.as_deref(), Some("IDL:Bank/Ledger:1.0"));
    assert_eq!(bank.on_total_loss, OnTotalLoss::Fresh);
    let times = [
        bank.reply_retention,
        bank.unavailable_wait,
        bank.server_reply,
        bank.stuck,
        bank.abandon.expect("it is given"),
        bank.start_timeout,
        bank.restart_backoff,
    ];
    assert_eq!(times.map(|time| time.as_millis()), [1, 2, 30, 40, 500, 400, 5]);
}

#[test]
fn node_ids_are_positions_in_the_file() {
    let domain = domain(FULL);
    assert_eq!(domain.node_id("zeta"), Some(id(0)));
    assert_eq!(domain.node_id("alpha"), Some(id(1)));
    assert_eq!(domain.node_id("mid"), Some(id(2)));
    assert_eq!(domain.node_id("omega"), None);
    let bank = domain.group("bank").expect("the group");
    assert_eq!(bank.members, NodeSet::EMPTY.with(id(0)).with(id(2)));
    assert_eq!(domain.node_set().len(), 3);
}

#[test]
fn nodes_have_addresses_and_defaults() {
    let domain = domain(FULL);
    let zeta = &domain.nodes[0];
    assert_eq!(zeta.host, Host::Name("zeta.example".to_owned()));
    assert_eq!(zeta.bind_address(), Some(IpAddr::from(Ipv4Addr::UNSPECIFIED)));
    assert_eq!(zeta.admin, "[::1]:4000".parse::<SocketAddr>().expect("an address"));
    assert_eq!(zeta.admin_token_file(), PathBuf::from("/var/lib/quorba/zeta/admin.token"));
    let alpha = &domain.nodes[1];
    assert_eq!(alpha.bind_address(), Some(IpAddr::from([10, 0, 0, 2])));
    assert_eq!((alpha.ring_port, alpha.admin.port(), alpha.gateway_port_offset), (4700, 4780, 0));
    assert_eq!(alpha.state_dir, PathBuf::from("/etc/quorba/quorba-state/alpha"));
    let bank = domain.group("bank").expect("the group");
    assert_eq!(bank.gateway(zeta).to_string(), "zeta.example:5010");
    assert_eq!(bank.gateway(&domain.nodes[2]).to_string(), "[fd00::3]:5000");
}

#[test]
fn servers_are_started_or_found() {
    let domain = domain(FULL);
    let Backend::Start(command) = &domain.group("bank").expect("the group").backend else {
        panic!("bank is started");
    };
    let values = Values {
        urls: &[],
        gateways: &[],
        calls: &[],
        port: 6001,
        socket: "/s/bank.sock",
        host: "10.0.0.1",
        listen: 5010,
        node: "zeta",
        group: "bank",
        quorba: "",
        news: "",
        leaders: "",
        state_dir: "/s",
        time: "",
    };
    let command_line: Vec<String> =
        command.command.iter().map(|template| template.fill(&values)).collect();
    assert_eq!(command_line, ["bank", "giop:tcp:127.0.0.1:6001", "giop:tcp:10.0.0.1:5010"]);
    let env: Vec<(&str, String)> =
        command.env.iter().map(|(name, value)| (name.as_str(), value.fill(&values))).collect();
    assert_eq!(env, [("EMPTY", String::new()), ("STATE", "/s/db".to_owned())]);
    assert_eq!(command.cwd.as_ref().map(|cwd| cwd.fill(&values)).as_deref(), Some("/s"));
    // The same loopback address on two hosts is two servers.
    let endpoint = Endpoint { host: Host::Address(Ipv4Addr::LOCALHOST.into()), port: 6000 };
    let server = Member { endpoint, object_key: None };
    let expected = Backend::Connect(vec![(id(1), server.clone()), (id(2), server)]);
    assert_eq!(domain.group("names").expect("the group").backend, expected);
}

#[test]
fn nodes_of_one_machine_get_ports_that_differ() {
    let text = r#"
[domain]
id = "demo"
key_file = "k"
[node.n1]
host = "127.0.0.1"
[node.n2]
host = "127.0.0.1"
ring_port = 4701
gateway_port_offset = 100
[node.n3]
host = "127.0.0.1"
ring_port = 4702
gateway_port_offset = 200
"#;
    let domain = domain(text);
    let admins: Vec<u16> = domain.nodes.iter().map(|node| node.admin.port()).collect();
    assert_eq!(admins, [4780, 4781, 4782]);
    assert_eq!(domain.ring.datagram_bytes_max, 60_000, "loopback has no frames");
    assert!(domain.warnings.is_empty(), "{:?}", domain.warnings);
}

#[test]
fn digest_sees_what_must_be_equal_and_only_that() {
    let original = domain(FULL).digest();
    assert_eq!(original, domain(FULL).digest());
    for (from, to) in [
        ("plant-a", "plant-b"),
        ("encrypt = false", "encrypt = true"),
        ("token_loss_ms = 250", "token_loss_ms = 251"),
        ("zeta.example", "zeta.test"),
        ("ring_port = 4900", "ring_port = 4901"),
        ("gateway_port_offset = 10", "gateway_port_offset = 11"),
        ("quorum = \"dynamic-linear\"", "quorum = \"majority\""),
        ("tie_breaker = \"mid\"", "tie_breaker = \"zeta\""),
        ("state_bytes = 131_072", "state_bytes = 131_073"),
        ("message_bytes = 65_536", "message_bytes = 65_537"),
        ("token_rests = false", "token_rests = true"),
    ] {
        assert!(FULL.contains(from), "{from}");
        assert_ne!(domain(&FULL.replace(from, to)).digest(), original, "{from} -> {to}");
    }
    // Groups are ordered, and not compared when nodes meet.
    for (from, to) in [
        ("listen = 5001", "listen = 5002"),
        ("[\"mid\", \"zeta\"]", "[\"mid\", \"alpha\"]"),
        ("ba%6ek", "bonk"),
        ("ack = \"safe\"", "ack = \"agreed\""),
        ("reply = \"ordered\"", "reply = \"direct\""),
        ("replier = \"mid\"", "replier = \"zeta\""),
        ("concurrency = \"per-object\"", "concurrency = \"pipelined\""),
        ("[\"get_*\", \"balance\"]", "[\"get_*\"]"),
        ("readonly_consistency = \"sequential\"", "readonly_consistency = \"linearizable\""),
        ("\"set_state\", \"get_state\"", "\"get_state\""),
        ("10.0.0.0/8", "10.0.0.0/9"),
        ("listen = 5443", "listen = 5444"),
        ("\"optional\"", "\"required\""),
        ("reply_retention_ms = 1", "reply_retention_ms = 2"),
        ("on_total_loss = \"fresh\"", "on_total_loss = \"stop\""),
        ("abandon_ms = 500", "abandon_ms = 0"),
        ("domain.key", "/run/keys/domain.key"),
        ("/run/gateway.key", "/run/keys/gateway.key"),
        ("bind = \"0.0.0.0\"", ""),
        ("[::1]:4000", "[::1]:4001"),
        ("/var/lib/quorba/zeta", "/srv/zeta"),
        ("connections = 10", "connections = 11"),
        ("[\"bank\",", "[\"/opt/bank\","),
        ("server_reply_ms = 30", "server_reply_ms = 31"),
        ("stuck_ms = 40", "stuck_ms = 41"),
        ("EMPTY = \"\"", ""),
    ] {
        assert!(FULL.contains(from), "{from}");
        assert_eq!(domain(&FULL.replace(from, to)).digest(), original, "{from} -> {to}");
    }
}

#[test]
fn digest_is_stable_over_versions_of_this_program() {
    // A changed number means that running domains refuse the new version: raise FORMAT knowingly.
    assert_eq!(format!("{:016x}", domain(FULL).digest()), "174b19dbbda8f8f2");
}

#[test]
fn gateways_are_others_when_clients_have_to_go_elsewhere() {
    let original = domain(FULL).gateways_digest();
    let others =
        [("gateway_port_offset = 10", "gateway_port_offset = 11"), ("10.0.0.2", "10.0.0.9")];
    for (from, to) in others {
        assert!(FULL.contains(from), "{from}");
        assert_ne!(domain(&FULL.replace(from, to)).gateways_digest(), original, "{from} -> {to}");
    }
    for (from, to) in [("/var/lib/quorba/zeta", "/srv/zeta"), ("[::1]:4000", "[::1]:4001")] {
        assert_eq!(domain(&FULL.replace(from, to)).gateways_digest(), original, "{from} -> {to}");
    }
}

/// Manager's groups have the version that is in their definition, others the counted one.
#[test]
fn a_group_has_one_identity_in_all_references() {
    let bank = |more: &str| {
        let text = format!(
            "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"10.0.0.1\"\n\
             [node.n2]\nhost = \"10.0.0.2\"\n[group.bank]\nlisten = 5000\nmembers = [\"n2\"]\n\
             server = [\"b\", \"{{port}}\"]\nobject_key = \"bank\"\n{more}"
        );
        domain(&text)
    };
    let plain = bank("");
    let group = plain.group("bank").expect("it is there");
    assert_eq!(group.identity(7, 3), ObjectGroup { id: 7, version: 3 });
    let gateways = group.gateways(&plain);
    let named = Some(("d", group.identity(7, 3)));
    let reference = reference_to((b"bank", "IDL:T:1.0"), &gateways, named, false);
    let said = reference.ft_group().expect("it names the group");
    assert_eq!((&*said.domain_id, said.group_id, said.reference_version), (&b"d"[..], 7, 3));
    let hosts: Vec<String> = reference.endpoints().into_iter().map(|one| one.host).collect();
    assert_eq!(hosts, ["10.0.0.2", "10.0.0.1"], "members come first");
    let made = bank("ft_group = 9\nft_version = 4\n");
    let group = made.group("bank").expect("it is there");
    assert_eq!(group.identity(7, 3), ObjectGroup { id: 9, version: 4 });
}

#[test]
fn key_files_are_read_with_care() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("domain.key");
    let write = |text: &[u8], mode: u32| {
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("allowed");
    };
    assert_eq!(DomainKey::read_file(&file), Err(KeyError::Missing));
    let key = DomainKey::from_bytes(std::array::from_fn(|index| index as u8 * 7));
    write(key.to_text().as_bytes(), 0o600);
    assert_eq!(DomainKey::read_file(&file), Ok(vec![key.clone()]));
    write(key.to_text().to_uppercase().as_bytes(), 0o440);
    assert_eq!(DomainKey::read_file(&file), Ok(vec![key.clone()]));
    for mode in [0o644, 0o604, 0o660, 0o601] {
        write(key.to_text().as_bytes(), mode);
        assert_eq!(DomainKey::read_file(&file), Err(KeyError::TooOpen { mode }));
    }
    for text in [&b""[..], b"12", &[b'f'; 63], &[b'f'; 65], &[b'g'; 64], &[0xff; 64], &[b'0'; 999]]
    {
        write(text, 0o600);
        let read = DomainKey::read_file(&file);
        assert!(matches!(read, Err(KeyError::Malformed { .. })), "{read:?}");
    }
    let next = DomainKey::from_bytes([3; 32]);
    write([key.to_text(), next.to_text()].concat().as_bytes(), 0o600);
    assert_eq!(DomainKey::read_file(&file), Ok(vec![key.clone(), next]), "oldest first");
    write(key.to_text().repeat(2).as_bytes(), 0o600);
    assert!(matches!(DomainKey::read_file(&file), Err(KeyError::Malformed { .. })), "twice");
    assert_eq!(format!("{key:?}"), "DomainKey(secret)");
}

#[test]
fn load_reads_both_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("quorba.toml");
    fs::write(&file, FULL).expect("written");
    let report = Domain::load(&file).expect_err("there is no key yet");
    assert_eq!(report.error_count(), 1);
    assert!(report.to_string().contains("QB-CFG-013"), "{report}");
    let key = directory.path().join("domain.key");
    fs::write(&key, DomainKey::from_bytes([9; 32]).to_text()).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("allowed");
    let domain = Domain::load(&file).expect("both are right");
    assert_eq!(domain.keys[0].as_bytes(), &[9; 32]);
}

#[test]
fn no_text_makes_it_panic() {
    // Every prefix of a long file, and the file with each byte replaced, in a few hundred steps.
    let read = |text: &str| check_text(Path::new("q"), text, |_| Err(KeyError::Missing));
    for end in (0..FULL.len()).step_by(3) {
        drop(read(&FULL[..end]).report.render(false));
    }
    for at in (0..FULL.len()).step_by(7) {
        for with in ["\"", "[", "=", "\u{1f980}", "\n", "{", "-", "9"] {
            let text = format!("{}{with}{}", &FULL[..at], &FULL[at + 1..]);
            drop(read(&text).report.render(false));
        }
    }
}

#[test]
fn a_log_has_a_bound_of_a_mib_at_least_or_none() {
    let minimal = "[domain]\nid = \"d\"\nkey_file = \"k\"\n[node.n1]\nhost = \"10.0.0.1\"\n\
                   [node.n2]\nhost = \"10.0.0.2\"\n[node.n3]\nhost = \"10.0.0.3\"\n\
                   [group.bank]\nlisten = 5000\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
                   server = [\"bank\", \"giop:tcp:127.0.0.1:{port}\"]\nstate_object = \"bank\"\n";
    let bound = |line: &str| {
        let text = format!("{minimal}{line}");
        let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
        let checked = check_text(Path::new("quorba.toml"), &text, key);
        checked.domain.map(|domain| domain.limits.log_bytes).ok_or(checked.report.render(false))
    };
    assert_eq!(bound(""), Ok(Some(256 << 20)), "if nothing is said");
    assert_eq!(bound("[limits]\nlog_bytes = 0\n"), Ok(None), "never shortened");
    assert_eq!(bound("[limits]\nlog_bytes = 1048576\n"), Ok(Some(1 << 20)));
    assert_eq!(bound("[limits]\nlog_bytes = 1099511627776\n"), Ok(Some(1 << 40)));
    for wrong in ["1", "1048575", "1099511627777", "-1"] {
        let refused = bound(&format!("[limits]\nlog_bytes = {wrong}\n")).expect_err(wrong);
        assert!(refused.contains("log_bytes"), "{refused}");
    }
}

#[test]
fn padding_is_ignored_where_the_file_says_so() {
    let with = |line: &str| domain(&FULL.replace("on_total_loss = \"fresh\"\n", line));
    let comparison = |line: &str| with(line).groups[0].comparison;
    assert_eq!((comparison("").requests, comparison("").ignore_padding), (64, false));
    let ignoring = "compare_replies = \"ignore-padding\"\n";
    assert_eq!((comparison(ignoring).requests, comparison(ignoring).ignore_padding), (64, true));
    assert_eq!(comparison("compare_replies = 7\n").requests, 7);
    assert_eq!(with(ignoring).groups[0].checkpoint, with("").groups[0].checkpoint);
}

#[test]
fn settings_without_effect_are_told() {
    let said = |lines: &str| {
        let text = FULL.replace("on_total_loss = \"fresh\"\n", lines);
        let warnings = domain(&text).warnings.into_iter();
        let idle = warnings.filter(|problem| problem.code == quorba_config::Code::SilentSetting);
        idle.map(|problem| problem.message).collect::<Vec<_>>()
    };
    let watch = "placement_watch_ms = 900\n";
    assert_eq!(said(watch), ["`placement_watch_ms` has no effect without `placement` = \"auto\""]);
    assert!(said(&format!("placement = \"auto\"\n{watch}")).is_empty());
    let expel = "on_divergence = \"expel\"\n";
    let none = format!("compare_replies = 0\n{expel}");
    assert_eq!(said(&none), ["`on_divergence` has no effect with `compare_replies` = 0"]);
    assert!(said(expel).is_empty());
}
