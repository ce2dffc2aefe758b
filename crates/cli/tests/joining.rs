//! A node that has another domain file, or another key, is told of by those that refuse it: with
//! what is wrong, where, and what helps.

mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use stage::{Domain, QUORBA, wait_until};

/// A node of its own, which ends with this.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn node(folder: &Path, name: &str, file: &str) -> Child {
    let log = fs::File::create(folder.join(format!("{name}.log"))).expect("a file");
    let out = log.try_clone().expect("a descriptor");
    let mut command = Command::new(QUORBA);
    command.args(["node", name, "-c", file]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(out).stderr(log).spawn().expect("it starts")
}

/// Two nodes with the same file, and a third one whose file and key are changed.
fn joined(file: (&str, &str), key: Option<&str>) -> (Domain, [Node; 2]) {
    let mut others = Vec::new();
    let group = format!(
        "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
         state_object = \"bank\"\nobject_key = \"bank\"\n"
    );
    let domain = Domain::start_group_by(&group, |folder| {
        let text = fs::read_to_string(folder.join("quorba.toml")).expect("written");
        let mut changed = text.replace(file.0, file.1);
        if let Some(key) = key {
            let path = folder.join("other.key");
            fs::write(&path, key.repeat(32)).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("allowed");
            changed = changed.replace("domain.key", "other.key");
        }
        fs::write(folder.join("other.toml"), changed).expect("written");
        others.push(Node(node(folder, "n2", "quorba.toml")));
        others.push(Node(node(folder, "n3", "other.toml")));
        node(folder, "n1", "quorba.toml")
    });
    (domain, others.try_into().unwrap_or_else(|_| unreachable!("two")))
}

/// What n1 finds of it, and what it has logged.
fn refusal(domain: &Domain) -> (Value, String) {
    let log = || fs::read_to_string(domain.folder.path().join("n1.log")).expect("there");
    let mut found = Value::Null;
    wait_until("a refusal is found and logged", || {
        let output = domain.quorba(&["-o", "json", "status"]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let findings = said["findings"].as_array().cloned().unwrap_or_default();
        let refused = findings.into_iter().find(|one| one["fact"] == "refused");
        found = refused.unwrap_or_default();
        let is_whole = found["what"].as_str().is_some_and(|what| what.contains("n3"));
        is_whole && log().contains("ring datagrams in the name of n3 are refused here")
    });
    (found, log())
}

#[test]
fn another_domain_file_is_told_with_the_keys_in_which_it_differs() {
    let limits = "[limits]\nstate_bytes = 1048576\n[group.bank]";
    let (domain, _others) = joined(("[group.bank]", limits), None);
    let mut last = Value::Null;
    wait_until("the key is named", || {
        last = refusal(&domain).0;
        last["what"].as_str().is_some_and(|it| it.contains("(differs in: limits.state_bytes)"))
    });
    assert!(last["next"].as_str().is_some_and(|next| next.contains("domain file")), "{last}");
    // What was refused before n3 said what its file is, was told without the keys.
    wait_until("the keys are logged", || {
        let log = refusal(&domain).1;
        let named = "differs in: limits.state_bytes";
        let line = log.lines().find(|line| line.contains("are refused") && line.contains(named));
        line.is_some_and(|line| line.contains("127.0.0.1:") && line.contains("QB-RING-006"))
    });
}

#[test]
fn another_key_is_told_and_explained() {
    let (domain, _others) = joined(("", ""), Some("7d"));
    let (found, log) = refusal(&domain);
    let what = found["what"].as_str().expect("text");
    assert!(what.contains("another domain key") && what.contains("[QB-RING-001]"), "{what}");
    assert_eq!(log.matches("are refused").count(), 1, "once a minute: {log}");
    let explained = domain.quorba(&["explain", "QB-RING-001"]);
    assert!(explained.status.success());
}
