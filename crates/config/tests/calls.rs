//! `calls`: who may call whom, and how servers are told where.

use std::path::Path;

use quorba_base::policy::OnDoubt;
use quorba_config::{Backend, Checked, Code, Domain, DomainKey, Values, check_text};

const DOMAIN: &str = r#"
[domain]
id = "d"
key_file = "k"
[node.n1]
host = "10.0.0.1"
[node.n2]
host = "10.0.0.2"
[node.n3]
host = "10.0.0.3"
[group.shop]
listen = 5000
members = ["n1", "n2", "n3"]
server = ["shop", "{port}", "corbaloc::{call.bank}/bank"]
state_object = "shop"
calls = ["bank"]
[group.bank]
listen = 5001
members = ["n1", "n2", "n3"]
server = ["bank", "{port}"]
state_object = "bank"
"#;

fn check(text: &str) -> Checked {
    check_text(Path::new("/etc/d/quorba.toml"), text, |_| Ok(vec![DomainKey::from_bytes([7; 32])]))
}

fn domain(text: &str) -> Domain {
    let checked = check(text);
    checked.domain.unwrap_or_else(|| panic!("{}", checked.report.render(false)))
}

/// The codes that are said of the domain with something in it replaced.
fn said(replaced: &str, by: &str) -> Vec<Code> {
    assert!(DOMAIN.contains(replaced), "{replaced}");
    let checked = check(&DOMAIN.replacen(replaced, by, 1));
    checked.report.problems().iter().map(|problem| problem.code).collect()
}

#[test]
fn a_group_calls_another_that_stands_behind_it_and_its_server_is_told_where() {
    let domain = domain(DOMAIN);
    assert!(domain.warnings.is_empty(), "{:?}", domain.warnings);
    let shop = domain.group("shop").expect("the group");
    assert_eq!(shop.calls, ["bank"]);
    let Backend::Start(server) = &shop.backend else { panic!("it is started") };
    let calls = [("bank".to_owned(), 6100)];
    let (host, node, group, state_dir) = ("10.0.0.1", "n1", "shop", "/s");
    let values = Values {
        urls: &[],
        gateways: &[],
        calls: &calls,
        time: "",
        socket: "",
        port: 6001,
        host,
        listen: 5000,
        node,
        group,
        quorba: "",
        news: "",
        leaders: "",
        state_dir,
    };
    let last = server.command.last().expect("three words");
    assert_eq!(last.fill(&values), "corbaloc::127.0.0.1:6100/bank");
}

#[test]
fn names_and_placeholders_that_do_not_go_together_are_found() {
    assert!(said("calls = [\"bank\"]", "calls = [\"bnak\"]").contains(&Code::NoSuchGroup));
    assert_eq!(said("calls = [\"bank\"]", "calls = [\"bank\", \"bank\"]"), [Code::Conflict]);
    assert_eq!(said("calls = [\"bank\"]\n", ""), [Code::BadPlaceholder]);
    assert_eq!(said("{call.bank}", "10.0.0.9:5001"), [Code::SilentSetting]);
    assert_eq!(said("{call.bank}", "{call.}")[0], Code::BadPlaceholder);
}

#[test]
fn a_group_whose_calls_could_have_no_names_does_not_call() {
    let with = |line: &str| said("calls = [\"bank\"]", &format!("calls = [\"bank\"]\n{line}"));
    for line in [
        "concurrency = \"pipelined\"",
        "concurrency = \"per-object\"",
        "style = \"stateless\"",
        "durable = true",
    ] {
        assert_eq!(with(line), [Code::CallsNeed], "{line}");
    }
    let server = "server = [\"shop\", \"{port}\", \"corbaloc::{call.bank}/bank\"]";
    assert_eq!(said(server, "connect = \"127.0.0.1:6000\""), [Code::CallsNeed]);
    let stateless = "listen = 5001\nstyle = \"stateless\"";
    assert_eq!(said("listen = 5001", stateless), [Code::CallsNeed]);
}

const OUTSIDE: &str = r#"
[outside.bank]
reference = "corbaloc:iiop:1.2@10.0.0.9:5001,:10.0.0.8:5001/a%20bank"
on_doubt = "repeat"
"#;

/// The domain without the group bank, and with these tables.
fn with_outside(tables: &str) -> String {
    let shop = DOMAIN.split("[group.bank]").next().expect("the beginning");
    format!("{}{tables}", shop.replace("corbaloc::{call.bank}/bank", "{url.bank}"))
}

#[test]
fn a_server_outside_is_called_like_a_group_and_its_object_is_known() {
    let domain = domain(&with_outside(OUTSIDE));
    assert!(domain.warnings.is_empty(), "{:?}", domain.warnings);
    let shop = domain.group("shop").expect("the group");
    assert!(shop.calls.is_empty());
    assert_eq!(shop.outside, ["bank"]);
    let bank = &domain.outside[0];
    let endpoints: Vec<_> = bank.endpoints.iter().map(|e| (e.host.as_str(), e.port)).collect();
    assert_eq!(endpoints, [("10.0.0.9", 5001), ("10.0.0.8", 5001)]);
    assert_eq!(bank.endpoints[0].object_key, "a bank".as_bytes());
    assert_eq!((bank.on_doubt, bank.reply_bytes), (OnDoubt::Repeat, 65_536));
}

#[test]
fn nodes_compare_of_a_server_outside_what_replicas_must_agree_on() {
    let original = with_outside(OUTSIDE);
    let digest = |text: &str| domain(text).digest();
    for (from, to) in [
        ("on_doubt = \"repeat\"", "on_doubt = \"fail\""),
        ("on_doubt", "reply_bytes = 70_000\non_doubt"),
        ("on_doubt = \"repeat\"", "[outside.mill]\nreference = \"corbaloc::10.0.0.7:1/m\"\n"),
    ] {
        assert!(original.contains(from), "{from}");
        let changed = original.replace(from, to);
        assert_ne!(digest(&changed), digest(&original), "{from} -> {to}");
        // It is named as it stands in the file.
        let texts = [&original, &changed].map(|text| domain(text).canonical());
        let named = quorba_config::differences(&texts[0], &texts[1]);
        assert!(named.iter().all(|key| key.starts_with("outside.")), "{named:?}");
    }
    // One host may reach it in another way than the next.
    for (from, to) in [
        ("10.0.0.9:5001", "10.0.0.7:5001"),
        ("on_doubt", "connect_ms = 10\non_doubt"),
        ("on_doubt", "reply_ms = 10\non_doubt"),
        ("on_doubt", "reply_bytes = 65_536\non_doubt"),
    ] {
        assert!(original.contains(from), "{from}");
        assert_eq!(digest(&original.replace(from, to)), digest(&original), "{from} -> {to}");
    }
    // Nor does it matter which comes first.
    let mill = "[outside.mill]\nreference = \"corbaloc::10.0.0.7:1/m\"\n";
    let orders = [format!("{OUTSIDE}{mill}"), format!("{mill}{OUTSIDE}")];
    let [one, other] = orders.map(|tables| digest(&with_outside(&tables)));
    assert_eq!(one, other);
}

#[test]
fn a_server_outside_may_be_given_by_its_ior() {
    let url = "corbaloc:iiop:1.2@10.0.0.9:5001/bank";
    let ior = quorba_giop::corbaloc::parse(url).expect("a reference").to_ior().to_string();
    let text = with_outside(&format!("[outside.bank]\nreference = \"{ior}\"\n"));
    let bank = &domain(&text).outside[0];
    assert_eq!((bank.endpoints[0].host.as_str(), bank.endpoints[0].port), ("10.0.0.9", 5001));
    assert_eq!(bank.on_doubt, OnDoubt::Fail);
}

#[test]
fn what_is_wrong_with_a_server_outside_is_found() {
    let codes = |tables: &str| -> Vec<Code> {
        let checked = check(&with_outside(tables));
        checked.report.problems().iter().map(|problem| problem.code).collect()
    };
    for reference in ["bank", "IOR:00", "corbaloc:rir:/NameService"] {
        let table = format!("[outside.bank]\nreference = \"{reference}\"\n");
        assert_eq!(codes(&table), [Code::BadReference], "{reference}");
    }
    assert_eq!(codes("[outside.bank]\n"), [Code::MissingKey]);
    let both = format!("{OUTSIDE}[group.bank]{}", DOMAIN.split("[group.bank]").nth(1).unwrap());
    assert!(codes(&both).contains(&Code::Conflict));
    assert_eq!(
        codes(&format!("{OUTSIDE}[ring]\nengine = \"corosync\"\n")),
        [Code::NotInThisVersion]
    );
}

#[test]
fn a_server_outside_that_nobody_calls_has_no_effect() {
    let checked = check(&format!("{DOMAIN}{}", OUTSIDE.replace("outside.bank", "outside.idle")));
    let problems: Vec<_> =
        checked.report.problems().iter().map(|it| (it.code, &*it.message)).collect();
    let said = "[outside.idle] has no effect: no group calls it";
    assert_eq!(problems, [(Code::SilentSetting, said)]);
}
