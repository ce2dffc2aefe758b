//! `calls`: who may call whom, and how servers are told where.

use std::path::Path;

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
    assert_eq!(shop.calls, [1]);
    let Backend::Start(server) = &shop.backend else { panic!("it is started") };
    let calls = [("bank".to_owned(), 6100)];
    let (host, node, group, state_dir) = ("10.0.0.1", "n1", "shop", "/s");
    let values = Values {
        urls: &[],
        calls: &calls,
        time: "",
        socket: "",
        port: 6001,
        host,
        listen: 5000,
        node,
        group,
        state_dir,
    };
    let last = server.command.last().expect("three words");
    assert_eq!(last.fill(&values), "corbaloc::127.0.0.1:6100/bank");
}

#[test]
fn hosts_must_agree_on_who_calls_whom() {
    let without = DOMAIN.replace("calls = [\"bank\"]\n", "").replace("{call.bank}", "host");
    assert_ne!(domain(DOMAIN).digest(), domain(&without).digest());
    let other = without.replace("[group.bank]", "calls = []\n[group.bank]");
    assert_eq!(domain(&other).digest(), domain(&without).digest());
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
