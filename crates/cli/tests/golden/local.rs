//! Commands that ask nobody: keys and explanations.

use std::fs;
use std::path::Path;

use quorba_config::DomainKey;

use crate::bench::{Bench, has_mode};

#[test]
fn a_new_key_is_private_and_never_overwritten() {
    let bench = Bench::new();
    let mut transcript = bench.run(&["key", "new", "domain.key"]);
    let path = bench.path("domain.key");
    assert!(has_mode(&path, 0o600));
    let first = DomainKey::read_file(&path).expect("a key that nodes accept");
    transcript += &bench.run(&["key", "new", "domain.key"]);
    assert_eq!(DomainKey::read_file(&path).as_ref(), Ok(&first), "untouched");
    transcript += &bench.run(&["key", "new", "missing/domain.key"]);
    transcript += &bench.run(&["-o", "json", "key", "new", "second.key"]);
    transcript += &bench.run(&["-o", "json", "key", "new", "second.key"]);
    let second = DomainKey::read_file(&bench.path("second.key")).expect("a key");
    assert!(first != second, "keys are drawn at random");
    insta::assert_snapshot!("key_new", transcript);
}

#[test]
fn a_key_is_changed_in_two_steps_in_one_file() {
    let bench = Bench::new();
    bench.run(&["key", "new", "domain.key"]);
    let path = bench.path("domain.key");
    let old = DomainKey::read_file(&path).expect("a key");
    let mut transcript = bench.run(&["key", "prune", "domain.key"]);
    transcript += &bench.run(&["key", "rotate", "domain.key"]);
    let both = DomainKey::read_file(&path).expect("two keys");
    assert!(has_mode(&path, 0o600));
    assert_eq!((both.len(), &both[0]), (2, &old[0]), "the new one is the last");
    transcript += &bench.run(&["-o", "json", "key", "prune", "domain.key"]);
    assert_eq!(DomainKey::read_file(&path).as_deref(), Ok(&both[1..]));
    transcript += &bench.run(&["key", "rotate", "missing.key"]);
    for _ in 0..3 {
        bench.run(&["key", "rotate", "domain.key"]);
    }
    transcript += &bench.run(&["key", "rotate", "domain.key"]);
    insta::assert_snapshot!("key_rotate", transcript);
}

#[test]
fn explanations() {
    let bench = Bench::new();
    let mut transcript = bench.run(&["explain", "QB-CFG-101"]);
    transcript += &bench.run(&["explain", "cli-3"]);
    transcript += &bench.run(&["-o", "json", "explain", "qb-cli-003"]);
    insta::assert_snapshot!("explain", transcript);
    insta::assert_snapshot!("explain_all", bench.run(&["explain"]));
}

/// The page in docs/reference is what the command prints; `QUORBA_WRITE=1` writes it.
fn assert_page(name: &str, command: &[&str]) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
    let page = Path::new(folder).join(name);
    let transcript = Bench::new().run(command);
    let made = transcript
        .strip_prefix(&format!("$ quorba {}\n", command.join(" ")))
        .and_then(|rest| rest.strip_suffix("--- exit 0\n"))
        .expect("the page, and nothing else");
    if std::env::var_os("QUORBA_WRITE").is_some() {
        fs::create_dir_all(folder).and_then(|()| fs::write(&page, made)).expect("written");
    }
    let written = fs::read_to_string(&page).expect("the page is there");
    assert!(written == made, "docs/reference/{name} is old: QUORBA_WRITE=1 cargo test");
}

#[test]
fn the_page_of_codes_is_up_to_date() {
    assert_page("codes.md", &["explain", "--markdown"]);
}

#[test]
fn the_page_of_commands_is_up_to_date() {
    assert_page("cli.md", &["man", "--markdown"]);
}

#[test]
fn the_page_of_the_domain_files_keys_is_up_to_date() {
    assert_page("config.md", &["config", "keys", "--markdown"]);
}

#[test]
fn keys_of_the_domain_file() {
    let bench = Bench::new();
    let mut transcript = bench.run(&["config", "keys", "group.style"]);
    transcript += &bench.run(&["config", "keys", "gateway"]);
    transcript += &bench.run(&["-o", "json", "config", "keys", "server_reply_ms"]);
    transcript += &bench.run(&["config", "keys", "no_such_key"]);
    insta::assert_snapshot!("config_keys", transcript);
}
