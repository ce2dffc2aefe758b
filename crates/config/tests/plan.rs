//! What a change of the file takes: every key has an effect, and a plan names what differs.

mod common;

use std::collections::BTreeSet;

use common::{beginning, check, domain};
use quorba_config::{Code, Definition, EFFECTS, Effect, effect, plan};

const DOMAIN: &str = concat!(
    beginning!(),
    r#"[group.shop]
listen = 5000
members = ["n1", "n2"]
server = ["shop", "{port}", "{call.bank}"]
calls = ["bank"]
state_object = "s"
[group.bank]
listen = 5001
members = ["n1", "n2", "n3"]
server = ["bank", "{port}"]
state_object = "s"
env = { A = "1" }
"#
);

/// What a table says that it knows, to whoever writes an unknown key into it.
fn known_keys(kind: &str) -> BTreeSet<String> {
    let table = match kind {
        "domain" | "ring" | "limits" | "gateway" => format!("[{kind}]\n"),
        "service" => "[service.naming]\n".to_owned(),
        "channel" => "[service.events.channel.odd]\n".to_owned(),
        "rt_info" => "[service.events.channel.odd.rt_info.1]\n".to_owned(),
        _ => format!("[{kind}.odd]\n"),
    };
    // In [domain] the keys that must be there do not matter here.
    let report = check(&format!("{table}qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq = 1\n")).report;
    let unknown = report.problems().iter().find(|problem| problem.code == Code::UnknownKey);
    let help = unknown.and_then(|problem| problem.help.clone()).expect("it is told");
    let (_, keys) = help.split_once(" knows: ").expect("with what is known");
    keys.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_key_that_can_be_read_has_an_effect_and_no_other() {
    let mut kinds: BTreeSet<String> = EFFECTS.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    for (kind, keys) in EFFECTS {
        let said: BTreeSet<String> = keys.iter().map(|(key, _)| (*key).to_owned()).collect();
        if kind == "service" {
            // It has all keys of a group; what is said is of which it has another default.
            assert_eq!(known_keys(kind), known_keys("group"));
            let of_group = |(key, of): &(&str, Effect)| effect("group", key) == Some(*of);
            // These are of one service only.
            let of_events = |key: &str| {
                key.starts_with("channel")
                    || ["pushes_at_once", "real_time_priority"].contains(&key)
            };
            let mut keys = keys.iter().filter(|(key, _)| !of_events(key));
            assert!(keys.all(of_group), "[{kind}]");
        } else {
            assert_eq!(said, known_keys(kind), "[{kind}]");
        }
        assert_eq!(said.len(), keys.len(), "[{kind}] has none twice");
    }
    let report = check("qqqqqqqqqqqqqqqqqqqqqqqq = 1\n").report;
    let unknown = report.problems().iter().find(|problem| problem.code == Code::UnknownKey);
    let help = unknown.and_then(|problem| problem.help.clone()).expect("it is told");
    let (_, tables) = help.split_once(" knows: ").expect("with what is known");
    for table in tables.split(", ") {
        // The keys of a type are those of the groups that are made of it, and read then.
        assert!(table == "type" || kinds.remove(table), "{table} has effects");
    }
    assert_eq!(
        kinds,
        BTreeSet::from(["channel", "rt_info"].map(str::to_owned)),
        "inside of a service's"
    );
    assert_eq!(effect("service", "channel.news.batch"), Some(Effect::NextStart));
    assert_eq!(effect("group", "env.PATH"), Some(Effect::NextStart));
    assert_eq!(effect("group", "nothing"), None);
}

#[test]
fn what_nodes_compare_when_they_meet_and_nothing_else_needs_all_nodes_stopped() {
    let canonical = domain(DOMAIN).canonical();
    for (kind, keys) in EFFECTS.iter().filter(|(kind, _)| *kind != "group") {
        for (key, effect) in *keys {
            let is_there = canonical
                .lines()
                .any(|line| line.starts_with(kind) && line.contains(&format!(" {key}=")));
            assert_eq!(is_there, *effect == Effect::DomainRestart, "{kind}.{key}");
        }
    }
}

#[test]
fn a_file_that_says_what_runs_needs_nothing() {
    let domain = domain(DOMAIN);
    assert!(plan(domain.definitions(), &domain, &domain.canonical()).is_empty());
}

#[test]
fn what_differs_is_named_with_both_values_and_its_effect() {
    let running = domain(DOMAIN);
    let text = DOMAIN
        .replace("members = [\"n1\", \"n2\", \"n3\"]", "members = [\"n1\", \"n2\"]")
        .replace("env = { A = \"1\" }", "env = { A = \"2\", B = \"\" }\nstyle = \"semi-active\"");
    let found = plan(running.definitions(), &domain(&text), &running.canonical());
    assert!(found.creates.is_empty() && found.deletes.is_empty() && found.restarts.is_empty());
    let [bank] = found.changes.as_slice() else { panic!("one group") };
    let keys: Vec<_> = bank
        .keys
        .iter()
        .map(|one| (one.key.as_str(), one.old.as_deref(), one.new.as_deref(), one.effect))
        .collect();
    assert_eq!(
        keys,
        [
            ("env.A", Some("\"1\""), Some("\"2\""), Effect::NextStart),
            ("env.B", None, Some("\"\""), Effect::NextStart),
            ("members", Some("[\"n1\", \"n2\", \"n3\"]"), Some("[\"n1\", \"n2\"]"), Effect::Now),
            ("style", None, Some("\"semi-active\""), Effect::Begins),
        ]
    );
    assert!(bank.is_possible());
    let fixed =
        ["durable = true", "ack = \"safe\"", "reply = \"ordered\"", "checkpoint_updates = true"];
    for change in fixed {
        let text = format!("{DOMAIN}{change}\n");
        let found = plan(running.definitions(), &domain(&text), &running.canonical());
        assert!(!found.changes[0].is_possible(), "{change}");
    }
}

#[test]
fn a_durable_group_keeps_its_members() {
    let text = format!("{DOMAIN}durable = true\n[service.naming]\n");
    let (running, two) = (domain(&text), "members = [\"n1\", \"n2\"]");
    let fewer = text.replace("members = [\"n1\", \"n2\", \"n3\"]", two);
    let service = text.replace("[service.naming]", &format!("[service.naming]\n{two}"));
    for changed in [fewer, service] {
        let found = plan(running.definitions(), &domain(&changed), &running.canonical());
        let [change] = found.changes.as_slice() else { panic!("one group") };
        let keys: Vec<_> = change.keys.iter().map(|one| (one.key.as_str(), one.effect)).collect();
        assert_eq!(keys, [("members", Effect::Recreate)]);
        assert!(!change.is_possible());
    }
}

#[test]
fn servers_that_somebody_else_runs_from_now_on_make_it_another_group() {
    let running = domain(DOMAIN);
    let elsewhere = "connect = { n1 = \"a:1\", n2 = \"b:1\", n3 = \"c:1\" }";
    let text = DOMAIN.replace("server = [\"bank\", \"{port}\"]", elsewhere);
    let text = text.replace("env = { A = \"1\" }\n", "");
    let found = plan(running.definitions(), &domain(&text), &running.canonical());
    assert!(!found.changes[0].is_possible());
    let moved = domain(&text.replace("a:1", "a:2"));
    let found = plan(domain(&text).definitions(), &moved, &moved.canonical());
    assert!(found.changes[0].is_possible(), "another address is none");
}

#[test]
fn who_is_called_is_created_first_and_deleted_last() {
    let (full, canonical) = (domain(DOMAIN), domain(DOMAIN).canonical());
    let names =
        |all: &[Definition]| -> Vec<String> { all.iter().map(|one| one.name.clone()).collect() };
    let found = plan(&[], &full, &canonical);
    assert_eq!(names(&found.creates), ["bank", "shop"]);
    let empty = domain(DOMAIN.split("[group.shop]").next().expect("the beginning"));
    let found = plan(full.definitions(), &empty, &canonical);
    let deletes: Vec<_> = found.deletes.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(deletes, ["shop", "bank"]);
    // In a cycle there is no first; all are there.
    let circle =
        DOMAIN.replace("{port}\"]\nstate", "{port}\", \"{call.shop}\"]\ncalls = [\"shop\"]\nstate");
    assert_eq!(plan(&[], &domain(&circle), &canonical).creates.len(), 2);
}

#[test]
fn what_only_a_restart_changes_is_named() {
    let running = domain(DOMAIN);
    let text = format!("{DOMAIN}[ring]\nencrypt = false\n[node.n4]\nhost = \"10.0.0.4\"\n");
    let found = plan(running.definitions(), &domain(&text), &running.canonical());
    let restarts: Vec<_> =
        found.restarts.iter().map(|one| (one.key.as_str(), one.effect)).collect();
    assert_eq!(
        restarts,
        [("node.n4", Effect::DomainRestart), ("ring.encrypt", Effect::DomainRestart),]
    );
    assert_eq!(found.restarts[1].old.as_deref(), Some("true"));
}

#[test]
fn the_documentation_says_of_each_key_of_a_group_what_a_change_takes() {
    let page = include_str!("../../../docs/groups.md");
    let (_, table) = page.split_once("| takes effect | keys of a group |").expect("the table");
    let (_, keys) = EFFECTS.iter().find(|(kind, _)| *kind == "group").expect("it has effects");
    let mut said: BTreeSet<(String, String)> = BTreeSet::new();
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
        let (effect, keys) = (cells.next().expect("an effect"), cells.next().expect("keys"));
        let keys = keys.split(", ").map(|key| key.trim_matches('`').to_owned());
        said.extend(keys.map(|key| (key, effect.to_owned())));
    }
    let expected = keys.iter().map(|(key, effect)| {
        let text = match effect {
            Effect::Now => "now",
            Effect::NextStart => "at the next start of a server",
            Effect::Begins => "only at creation",
            Effect::NowUnlessDurable => "now, unless it is durable",
            _ => "if the group is deleted and created",
        };
        ((*key).to_owned(), text.to_owned())
    });
    assert_eq!(said, expected.collect());
}
