//! `calls`: who may call whom, and how servers are told where.

mod common;

use common::{beginning, check, domain};
use quorba_base::policy::OnDoubt;
use quorba_config::{
    Backend, Code, Definition, Kind, KnownGroups, Values, check_delete, read_definition,
};

const DOMAIN: &str = concat!(
    beginning!(),
    r#"[group.shop]
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
"#
);

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
    assert_eq!(shop.calls, ["bank"]);
    let said = domain.definitions().iter().map(|one| (one.kind(), one.name.as_str()));
    assert_eq!(said.collect::<Vec<_>>(), [(Kind::Outside, "bank"), (Kind::Group, "shop")]);
    let bank = &domain.outside[0];
    let endpoints: Vec<_> = bank.endpoints.iter().map(|e| (e.host.as_str(), e.port)).collect();
    assert_eq!(endpoints, [("10.0.0.9", 5001), ("10.0.0.8", 5001)]);
    assert_eq!(bank.endpoints[0].object_key, "a bank".as_bytes());
    assert_eq!((bank.on_doubt, bank.reply_bytes), (OnDoubt::Repeat, 65_536));
}

#[test]
fn a_server_outside_is_ordered_and_no_matter_of_files() {
    let original = with_outside(OUTSIDE);
    for (from, to) in [
        ("on_doubt = \"repeat\"", "on_doubt = \"fail\""),
        ("10.0.0.9:5001", "10.0.0.7:5001"),
        ("on_doubt", "reply_ms = 10\non_doubt"),
    ] {
        assert!(original.contains(from), "{from}");
        let (old, new) = (domain(&original), domain(&original.replace(from, to)));
        assert_eq!(old.digest(), new.digest(), "{from} -> {to}");
        let plan = quorba_config::plan(old.definitions(), &new, &old.canonical());
        let [change] = plan.changes.as_slice() else { panic!("{plan:?}") };
        assert_eq!((change.definition.title().as_str(), change.keys.len()), OUTSIDE_BANK);
        assert!(change.is_possible(), "{change:?}");
        assert!(plan.creates.is_empty() && plan.deletes.is_empty() && plan.restarts.is_empty());
    }
}

const OUTSIDE_BANK: (&str, usize) = ("server outside bank", 1);

#[test]
fn servers_outside_are_created_before_the_groups_that_call_them_and_deleted_behind_these() {
    let with = domain(&with_outside(OUTSIDE));
    let nodes = DOMAIN.split("[group.").next().expect("the beginning");
    let mill = "listen = 5000\nmembers = [\"n1\"]\nserver = [\"m\", \"{port}\"]\n";
    let without = domain(&format!("{nodes}[group.mill]\n{mill}"));
    let plan = quorba_config::plan(without.definitions(), &with, &with.canonical());
    let titles = |all: &[Definition]| all.iter().map(Definition::title).collect::<Vec<_>>();
    assert_eq!(titles(&plan.creates), ["server outside bank", "group shop"]);
    let plan = quorba_config::plan(with.definitions(), &without, &with.canonical());
    assert_eq!(titles(&plan.deletes), ["group shop", "server outside bank"]);
}

#[test]
fn one_name_is_either_a_group_or_a_server_outside() {
    let domain = domain(&with_outside(OUTSIDE));
    let known: KnownGroups = domain.definitions().iter().collect();
    let group = "[group.bank]\nmembers = [\"n1\"]\nserver = [\"b\", \"{port}\"]\nlisten = 7000\n";
    let codes = |text: &str| -> Vec<Code> {
        let report = read_definition(&domain, text, &known).map(drop).expect_err(text);
        report.problems().iter().filter(|it| !it.is_warning()).map(|it| it.code).collect()
    };
    assert_eq!(codes(group), [Code::Conflict]);
    assert_eq!(codes(&OUTSIDE.replace("outside.bank", "outside.shop")), [Code::Conflict]);
    assert!(read_definition(&domain, OUTSIDE, &known).is_ok(), "it may be said again");
    assert_eq!(codes(&format!("{group}{OUTSIDE}")), [Code::Conflict, Code::Conflict]);
    assert!(quorba_config::read_group(&domain, OUTSIDE, &known).is_err(), "it is no group");
    assert!(check_delete("bank", &known).is_err_and(|why| why.contains("shop calls bank")));
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
