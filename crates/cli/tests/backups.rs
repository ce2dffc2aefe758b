//! Backups of groups of real processes, and the way back: after everything has ended and every disk
//! was wiped, and for a group that has lost its members.

mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use quorba_demo::bank::ledger::Ledger;
use quorba_orb::{Client, ClientOptions, Reference, Repeat};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use stage::{Domain, LONG, text, wait_until};

/// `quorba -o json`: the exit code and the one object.
fn json(domain: &Domain, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = domain.quorba(&[&["-o", "json"], arguments].concat());
    let told = if output.status.success() { &output.stdout } else { &output.stderr };
    let last = text(told).lines().last().unwrap_or_default().to_owned();
    (output.status.code(), serde_json::from_str(&last).unwrap_or_else(|_| Value::from(last)))
}

/// A bank whose calls have the identity of `repeat`, from its first one on.
fn named(domain: &Domain, node: u16, repeat: &Repeat) -> Ledger {
    let address = ([127, 0, 0, 1], domain.first_port + 6 + node).into();
    let options = ClientOptions {
        call_timeout: Some(LONG),
        repeat: Some(repeat.clone()),
        ..ClientOptions::default()
    };
    Ledger::new(Client::new(&Reference::direct(address, b"bank"), options))
}

fn references(domain: &Domain, node: u16) -> Vec<String> {
    let mut bank = domain.bank(node);
    let mut all = Vec::new();
    loop {
        let part = bank.history(all.len() as u64, 1000).expect("it answers");
        if part.is_empty() {
            return all;
        }
        all.extend(part.into_iter().map(|entry| entry.reference));
    }
}

/// What nodes keep is gone: the folders beside the domain file.
fn wipe(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            fs::remove_dir_all(&path).expect("removed");
        }
    }
}

/// Three clients call without a pause while `during` runs; gives what was acknowledged before it.
fn under_load(domain: &Domain, during: impl FnOnce()) -> Vec<String> {
    let ends = AtomicBool::new(false);
    let acknowledged = Mutex::new(Vec::new());
    let mut before = Vec::new();
    std::thread::scope(|scope| {
        for node in 0..3 {
            let (ends, acknowledged) = (&ends, &acknowledged);
            scope.spawn(move || {
                let mut bank = domain.bank(node);
                for number in 0.. {
                    if ends.load(Ordering::Relaxed) {
                        return;
                    }
                    let reference = format!("load-{node}-{number}");
                    bank.increment(&reference).expect("nothing is broken");
                    acknowledged.lock().expect("nobody panicked").push(reference);
                }
            });
        }
        wait_until("the load is under way", || acknowledged.lock().expect("held").len() > 100);
        before.clone_from(&acknowledged.lock().expect("nobody panicked"));
        during();
        ends.store(true, Ordering::Relaxed);
    });
    before
}

fn a_wiped_domain_is_brought_back(more: &str) {
    let mut domain = Domain::start_with(more);
    let pids = stage::pids(&domain.wait_healthy());
    let repeat = Repeat::new("teller", 1);
    let first = named(&domain, 0, &repeat).increment("once").expect("it answers");
    let before = under_load(&domain, || {
        let (code, said) = json(&domain, &["backup", "bank", "--to", "bank.backup"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said["executed"].as_u64() > Some(100), "{said}");
    });
    let file = domain.folder.path().join("bank.backup");
    assert_eq!(fs::metadata(&file).expect("written").permissions().mode() & 0o777, 0o600);
    let (code, shown) = json(&domain, &["backup", "show", "bank.backup"]);
    assert_eq!((code, &shown["group"]), (Some(0), &"bank".into()), "{shown}");
    let executed = shown["executed"].as_u64().expect("a number");
    domain.end(&pids);
    wipe(domain.folder.path());

    domain.up = stage::up(domain.folder.path());
    domain.wait_healthy();
    domain.bank(1).increment("to be thrown away").expect("it answers");
    let restore = ["restore", "bank.backup", "--group", "bank"];
    let (code, said) = json(&domain, &restore);
    assert_eq!((code, &said["error"]["code"]), (Some(3), &"QB-CLI-017".into()), "{said}");
    let message = said["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("has seen its order up to number 1)"), "{message}");
    let (code, said) = json(&domain, &[&restore[..], &["--yes", "--timeout", "1ms"]].concat());
    assert_eq!((code, &said["error"]["restored"]), (Some(4), &"no".into()), "{said}");
    let message = said["error"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("could be asked; nothing was done"), "{message}");
    assert_eq!(references(&domain, 2), ["to be thrown away"], "nothing was done");
    let (code, said) = json(&domain, &[&restore[..], &["--yes"]].concat());
    assert_eq!(code, Some(0), "{said}\n{}", domain.told());

    let again = named(&domain, 2, &repeat).increment("once").expect("it answers");
    assert_eq!(again, first, "the reply of then");
    let after = references(&domain, 0);
    assert_eq!(after.len() as u64, executed, "{more}");
    let lost: Vec<_> = before.iter().filter(|reference| !after.contains(reference)).collect();
    assert!(lost.is_empty(), "acknowledged before the backup, and lost: {lost:?}");
    assert_eq!(after.iter().filter(|reference| *reference == "once").count(), 1);
    domain.bank(1).increment("after").expect("it answers");
    domain.wait_healthy();
    let style = domain.quorba(&["group", "style", "bank", "active"]);
    assert!(style.status.success(), "{}", text(&style.stderr));
    domain.wait_healthy();
    for node in 0..3 {
        let all = references(&domain, node);
        assert_eq!((all.len(), all.last()), (after.len() + 1, Some(&"after".to_owned())), "{node}");
    }
}

#[test]
fn a_backup_under_load_brings_back_a_wiped_active_domain() {
    a_wiped_domain_is_brought_back("style = \"active\"\n");
}

#[test]
fn a_backup_under_load_brings_back_a_wiped_domain_that_votes() {
    a_wiped_domain_is_brought_back("style = \"active-with-voting\"\n");
}

#[test]
fn a_backup_under_load_brings_back_a_wiped_semi_active_domain() {
    a_wiped_domain_is_brought_back("style = \"semi-active\"\n");
}

#[test]
fn a_backup_under_load_brings_back_a_wiped_warm_passive_domain() {
    a_wiped_domain_is_brought_back("style = \"warm-passive\"\n");
}

#[test]
fn a_backup_under_load_brings_back_a_wiped_cold_passive_domain() {
    a_wiped_domain_is_brought_back("style = \"cold-passive\"\n");
}

#[test]
fn a_durable_group_is_restored_for_good() {
    let mut domain = Domain::start_with("durable = true\n");
    let pids = stage::pids(&domain.wait_healthy());
    let repeat = Repeat::new("teller", 1);
    let first = named(&domain, 0, &repeat).increment("once").expect("it answers");
    let (code, said) = json(&domain, &["backup", "bank", "--to", "bank.backup"]);
    assert_eq!(code, Some(0), "{said}");
    domain.bank(0).increment("to be thrown away").expect("it answers");
    let restore = ["restore", "bank.backup", "--group", "bank", "--yes"];
    let (code, said) = json(&domain, &restore);
    assert_eq!(code, Some(0), "{said}\n{}", domain.told());
    domain.bank(1).increment("kept").expect("it answers");
    domain.black_out(&pids);
    domain.wait_healthy();
    let again = named(&domain, 2, &repeat).increment("once").expect("it answers");
    assert_eq!(again, first, "the reply of then");
    for node in 0..3 {
        assert_eq!(references(&domain, node), ["once", "kept"], "{node}");
    }
}

#[test]
fn a_group_without_members_is_brought_back() {
    let domain = Domain::start();
    let pids = stage::pids(&domain.wait_healthy());
    domain.bank(0).increment("kept").expect("it answers");
    let (code, said) = json(&domain, &["backup", "bank", "--to", "bank.backup", "--node", "n2"]);
    assert_eq!((code, &said["node"]), (Some(0), &"n2".into()), "{said}");
    // Servers stand behind their nodes in the list.
    for (_, server) in pids.iter().skip(1).step_by(2) {
        kill_process(*server, Signal::KILL).expect("it runs");
    }
    let states = || {
        let (_, said) = json(&domain, &["group", "ls"]);
        let members = said["members"].as_array().cloned().unwrap_or_default();
        members.iter().map(|member| member["state"].clone()).collect::<Vec<_>>()
    };
    wait_until("nobody is in", || states() == ["out", "out", "out"]);
    let (code, said) = json(&domain, &["backup", "bank", "--to", "other.backup"]);
    assert_eq!((code, &said["error"]["code"]), (Some(1), &"QB-CLI-015".into()), "{said}");
    assert!(!domain.folder.path().join("other.backup").exists(), "half a backup is none");
    let (code, said) = json(&domain, &["restore", "bank.backup", "--group", "bank"]);
    assert_eq!((code, &said["error"]["next"]), (Some(3), &"the same with --yes does it".into()));
    let (code, said) = json(&domain, &["restore", "bank.backup", "--group", "bank", "--yes"]);
    assert_eq!(code, Some(0), "{said}\n{}", domain.told());
    assert_eq!(states(), ["in", "in", "in"]);
    domain.bank(1).increment("more").expect("it answers");
    for node in 0..3 {
        assert_eq!(references(&domain, node), ["kept", "more"], "{node}");
    }
}

#[test]
fn what_is_no_backup_of_the_group_is_refused_with_the_reason() {
    let domain = Domain::start();
    domain.wait_healthy();
    domain.bank(0).increment("kept").expect("it answers");
    let (code, said) = json(&domain, &["backup", "bank", "--to", "bank.backup"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = json(&domain, &["backup", "bank", "--to", "bank.backup"]);
    assert_eq!((code, &said["error"]["code"]), (Some(1), &"QB-CLI-007".into()), "{said}");
    assert_eq!(json(&domain, &["backup", "shop", "--to", "shop.backup"]).0, Some(3));
    let folder = domain.folder.path();
    let whole = fs::read(folder.join("bank.backup")).expect("read");
    let refuses = |name: &str, bytes: &[u8], why: &str| {
        fs::write(folder.join(name), bytes).expect("written");
        let shown = json(&domain, &["backup", "show", name]);
        let restored = json(&domain, &["restore", name, "--group", "bank", "--yes"]);
        for (code, said) in [shown, restored] {
            assert_eq!((code, &said["error"]["code"]), (Some(1), &"QB-CLI-016".into()), "{said}");
            let message = said["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(name) && message.contains(why), "{message}");
        }
    };
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    refuses("damaged.backup", &damaged, "is damaged at byte");
    refuses("short.backup", &whole[..whole.len() - 3], "before its end");
    let mut other = whole.clone();
    other[8] = 7;
    refuses("other.backup", &other, "of format 7");
    refuses("no.backup", b"[domain]", "no backup of a group");
    let text = fs::read_to_string(folder.join("quorba.toml")).expect("read");
    fs::write(folder.join("renamed.toml"), text.replace("[group.bank]", "[group.shop]"))
        .expect("written");
    let wrong = ["restore", "bank.backup", "--group", "shop", "--yes", "-c", "renamed.toml"];
    let (code, said) = json(&domain, &wrong);
    assert_eq!((code, &said["error"]["code"]), (Some(1), &"QB-CLI-016".into()), "{said}");
    assert_eq!(references(&domain, 2), ["kept"], "nothing was done");
}
