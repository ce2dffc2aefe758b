//! `replication` and `depth`: what they need of the rest of a group.

mod common;

use common::{BEGINNING, GATEWAY, errors};
use quorba_base::policy::Replication;
use quorba_config::{Checked, Code};

const BANK: &str = "[group.bank]\nmembers = [\"n1\", \"n2\", \"n3\"]\nobject_key = \"bank\"\n\
                    state_object = \"bank\"\nserver = [\"b\", \"{port}\"]\n";
const TYPE: &str = "[type.\"IDL:T:1.0\"]\nstate_object = \"t\"\nserver = [\"b\", \"{port}\"]\n";

fn check(table: &str, keys: &str) -> Checked {
    common::check(&format!("{BEGINNING}{GATEWAY}{table}{keys}\n"))
}

fn problems(table: &str, keys: &str) -> Vec<(Code, String)> {
    errors(&check(table, keys))
}

#[test]
fn all_three_words_are_read_and_nothing_is_asked_for_by_itself() {
    for (keys, replication, depth) in [
        ("", Replication::Ordered, 0),
        ("depth = 3", Replication::Ordered, 3),
        ("replication = \"parallel\"\ndepth = 2", Replication::Parallel, 2),
        ("replication = \"chain\"\nstyle = \"semi-active\"", Replication::Chain, 0),
    ] {
        let domain = check(BANK, keys).domain.expect(keys);
        let bank = &domain.groups[0];
        assert_eq!((bank.replication, bank.depth), (replication, depth), "{keys}");
    }
    let service = "[service.events]\nlisten = 5001\nreplication = \"chain\"\n";
    let domain = check(service, "depth = 2").domain.expect("a service has both");
    assert_eq!((domain.groups[0].replication, domain.groups[0].depth), (Replication::Chain, 2));
}

#[test]
fn who_wants_all_members_is_warned() {
    let codes = |keys: &str| {
        let checked = check(BANK, keys);
        let problems = checked.report.problems().iter().filter(|one| one.is_warning());
        problems.map(|one| one.code).collect::<Vec<_>>()
    };
    assert_eq!(codes("depth = 2"), codes(""));
    let all = codes("depth = 3");
    assert_eq!(all.iter().filter(|code| **code == Code::FewMembers).count(), 1, "{all:?}");
}

#[test]
fn what_does_not_go_with_it_is_refused() {
    let sides = "concurrency = \"per-object\"\nreplication = \"parallel\"";
    for (keys, code, words) in [
        ("replication = \"serial\"", Code::UnknownValue, "replication"),
        ("depth = 4", Code::Conflict, "there are 3 members"),
        ("depth = -1", Code::OutOfRange, "depth"),
        (sides, Code::Conflict, "keep their order"),
        ("style = \"warm-passive\"\nreplication = \"chain\"", Code::Conflict, "warm-passive"),
        ("style = \"cold-passive\"\nreplication = \"parallel\"", Code::Conflict, "not all"),
        ("style = \"stateless\"\nreplication = \"chain\"", Code::Conflict, "stateless"),
    ] {
        let found = problems(BANK, keys);
        let [(of, message)] = found.as_slice() else { panic!("{keys}: {found:?}") };
        assert_eq!(*of, code, "{message}");
        assert!(message.contains(words), "{message}");
    }
    let found = problems(TYPE, sides);
    let [(_, message)] = found.as_slice() else { panic!("{found:?}") };
    assert!(message.contains("[type.\"IDL:T:1.0\"]"), "{message}");
    assert_eq!(problems(TYPE, "depth = 3"), [], "how many members it has is said later");
}
