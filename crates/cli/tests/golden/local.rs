//! Commands that ask nobody: keys and explanations.

use std::fs;

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

/// The page docs/reference/codes.md is `quorba explain --markdown`; `QUORBA_WRITE=1` writes it.
#[test]
fn the_page_of_codes_is_up_to_date() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/codes.md");
    let transcript = Bench::new().run(&["explain", "--markdown"]);
    let made = transcript
        .strip_prefix("$ quorba explain --markdown\n")
        .and_then(|rest| rest.strip_suffix("--- exit 0\n"))
        .expect("the page, and nothing else");
    if std::env::var_os("QUORBA_WRITE").is_some() {
        fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference"))
            .and_then(|()| fs::write(page, made))
            .expect("written");
    }
    let written = fs::read_to_string(page).expect("the page is there");
    assert!(written == made, "docs/reference/codes.md is old: QUORBA_WRITE=1 cargo test");
}
