//! Types of objects: what a table says is found wrong where the file is read, and not when a group
//! of the type is created.

mod common;

use common::{BEGINNING, GATEWAY, check, errors};
use quorba_config::Code;

const SERVER: &str = "server = [\"b\", \"{port}\"]\n";

/// What is wrong with a file that has a type with these keys.
fn problems(keys: &str) -> Vec<(Code, String)> {
    errors(&check(&format!("{BEGINNING}{GATEWAY}[type.\"IDL:T:1.0\"]\n{keys}")))
}

#[test]
fn a_wrong_key_or_value_of_a_type_is_refused_by_table_and_key() {
    for (keys, code, key) in [
        ("restart_backoff_ms = 60000", Code::OutOfRange, "restart_backoff_ms"),
        ("restart_backof_ms = 100", Code::UnknownKey, "restart_backof_ms"),
        ("style = \"activ\"", Code::UnknownValue, "style"),
        ("concurrency = 1", Code::WrongType, "concurrency"),
        ("checkpoint_ms = 0", Code::OutOfRange, "checkpoint_ms"),
        ("object_key = \"%4\"", Code::OutOfRange, "object_key"),
        ("type_id = \"Ledger\"", Code::OutOfRange, "repository id"),
        ("calls = [\"nobody\"]", Code::NoSuchGroup, "nobody"),
        ("ack = \"some\"", Code::UnknownValue, "ack"),
        ("durable = true", Code::DurableNeeds, "state_object"),
        ("members = [\"n1\"]", Code::Conflict, "members"),
        ("leader = \"n9\"", Code::NoSuchNode, "n9"),
        ("tls = { listen = 5001 }", Code::Conflict, "tls"),
        ("ft_group = 7", Code::Conflict, "ft_group"),
    ] {
        let found = problems(&format!("{SERVER}{keys}\n"));
        let [(of, message)] = found.as_slice() else { panic!("{keys}: {found:?}") };
        assert_eq!(*of, code, "{message}");
        assert!(message.contains("[type.\"IDL:T:1.0\"]") && message.contains(key), "{message}");
    }
}

#[test]
fn a_type_with_a_part_of_a_program_or_without_a_port_for_its_groups_is_refused() {
    let found = problems("env = { A = \"\" }\n");
    assert!(matches!(found.as_slice(), [(Code::Backend, _)]), "{found:?}");
    // Factories make its objects.
    assert_eq!(problems("object_key = \"t\"\nreadonly = [\"get\"]\n"), []);
    let file = format!("{BEGINNING}[type.\"IDL:T:1.0\"]\n{SERVER}");
    let without = check(&file).report;
    let [problem] = without.problems() else { panic!("{without}") };
    assert!(problem.code == Code::MissingKey && problem.message.contains("[gateway]"), "{without}");
}

#[test]
fn what_fits_some_style_of_a_group_is_right() {
    for keys in [
        "",
        "state_object = \"s\"\ndurable = true\nrestart_backoff_ms = 10000\n",
        "state_object = \"s\"\ncheckpoint_ms = 500\ncheckpoint_updates = true\n",
        "recovery = \"application\"\n",
        // The manager says another one.
        "style = \"warm-passive\"\n",
        "style = \"stateless\"\nstate_object = \"s\"\ndurable = true\n",
        "leader = \"n1\"\n",
        "env = { A = \"\" }\ncwd = \"/tmp\"\nreadonly = [\"get\"]\n",
    ] {
        let file = format!("{BEGINNING}{GATEWAY}[type.\"IDL:T:1.0\"]\n{SERVER}{keys}");
        let checked = check(&file);
        assert!(checked.report.problems().is_empty(), "{keys}: {}", checked.report);
        let types = checked.domain.expect("it is right").types;
        assert_eq!(types.len(), 1);
    }
}
