//! What somebody who begins gets wrong, and what is answered: thing, place and next step.
//!
//! Each transcript is one mistake. What only shows while a domain runs is in `truth.rs` and
//! `joining.rs`.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use crate::bench::{Bench, silent_port};

const GOOD: &str = r#"[domain]
id = "first"
key_file = "domain.key"
[node.n1]
host = "127.0.0.1"
[node.n2]
host = "127.0.0.1"
ring_port = 4711
admin = "127.0.0.1:4811"
gateway_port_offset = 1
[node.n3]
host = "127.0.0.1"
ring_port = 4712
admin = "127.0.0.1:4812"
gateway_port_offset = 2
[group.bank]
style = "active"
listen = 5000
members = ["n1", "n2", "n3"]
server = ["sh", "-c", "exec bank {port}"]
state_object = "bank"
object_key = "bank"
"#;

fn check(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let bench = Bench::new();
    bench.domain(&GOOD.replacen(from, to, 1));
    bench.run(&["config", "check"])
}

#[test]
fn mistakes_in_the_domain_file() {
    let mistakes = [
        ("a key's name is misspelt", "members =", "member ="),
        ("a value is of the wrong type", "listen = 5000", "listen = \"5000\""),
        ("a style that does not exist", "\"active\"", "\"activ\""),
        ("a node that does not exist", "\"n3\"]", "\"n4\"]"),
        (
            "two nodes only",
            "[node.n3]\nhost = \"127.0.0.1\"\nring_port = 4712\n\
          admin = \"127.0.0.1:4812\"\ngateway_port_offset = 2\n",
            "",
        ),
        ("a node twice", "[node.n2]", "[node.n1]"),
        ("two nodes at one port", "ring_port = 4712", "ring_port = 4711"),
        ("the server is not told its port", "bank {port}", "bank 6000"),
        ("a placeholder that does not exist", "{port}", "{prot}"),
        ("an IPv6 address with a port", "host = \"127.0.0.1\"", "host = \"[::1]:4700\""),
        ("an address that nobody can connect to", "host = \"127.0.0.1\"", "host = \"0.0.0.0\""),
        ("no quotation mark at the end", "id = \"first\"", "id = \"first"),
    ];
    let told = mistakes.map(|(what, from, to)| format!("# {what}\n{}", check(from, to)));
    insta::assert_snapshot!("newcomer_file", told.join("\n"));
}

#[test]
fn four_nodes_survive_no_more_than_three() {
    let more = "[node.n4]\nhost = \"127.0.0.1\"\nring_port = 4713\nadmin = \"127.0.0.1:4813\"\n\
                gateway_port_offset = 3\n[group.bank]";
    insta::assert_snapshot!("newcomer_four", check("[group.bank]", more));
}

#[test]
fn mistakes_that_this_machine_shows() {
    let bench = Bench::new();
    bench.write("plain.txt", "no program\n");
    let in_turn = [
        (
            "a program that is not there",
            "\"sh\", \"-c\", \"exec bank {port}\"",
            "\"./bnak\", \"{port}\"",
        ),
        ("one that is not in PATH", "\"sh\"", "\"no-such-program-anywhere\""),
        ("one that nobody may execute", "\"sh\"", "\"./plain.txt\""),
        ("a host name without an address", "host = \"127.0.0.1\"", "host = \"n1.invalid\""),
    ];
    let told = in_turn.map(|(what, from, to)| {
        bench.domain(&GOOD.replacen(from, to, 1));
        let said = bench.run(&["config", "check"]);
        // What the resolver says differs from machine to machine.
        let said = said.lines().map(|line| match line.split_once("on this machine: ") {
            Some((before, _)) if line.contains("n1.invalid") => {
                format!("{before}on this machine: ...")
            }
            _ => line.to_owned(),
        });
        format!("# {what}\n{}\n", said.collect::<Vec<_>>().join("\n"))
    });
    insta::assert_snapshot!("newcomer_machine", told.join("\n"));
}

#[test]
fn mistakes_with_the_key() {
    let bench = Bench::new();
    bench.domain(GOOD);
    let key = bench.path("domain.key");
    let allow = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("ours");
    allow(0o644);
    let mut told = format!("# others may read it\n{}", bench.run(&["config", "check"]));
    allow(0o600);
    fs::write(&key, "5a5a\n").expect("written");
    told += &format!("\n# it is too short\n{}", bench.run(&["config", "check"]));
    fs::remove_file(&key).expect("it was there");
    told += &format!("\n# it is not there\n{}", bench.run(&["config", "check"]));
    insta::assert_snapshot!("newcomer_key", told);
}

#[test]
fn mistakes_at_a_nodes_start() {
    let mut bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    let (ring, admin) = (silent_port(), silent_port());
    let file = |listen: u16| {
        let ports =
            format!("host = \"127.0.0.1\"\nring_port = {ring}\nadmin = \"127.0.0.1:{admin}\"");
        GOOD.replacen("host = \"127.0.0.1\"", &ports, 1)
            .replace("listen = 5000", &format!("listen = {listen}"))
    };
    bench.domain(&file(port));
    bench.hide(port, "PORT");
    let mut told = format!("# the gateway's port is taken\n{}", bench.run(&["node", "n1"]));
    told += &format!("\n# a node that the file does not have\n{}", bench.run(&["node", "n9"]));
    let file = file(silent_port());
    bench.domain(&file.replacen("[node.n1]\n", "[node.n1]\nstate_dir = \"plain/state\"\n", 1));
    bench.write("plain", "a file, no folder\n");
    told += &format!("\n# the state directory cannot be made\n{}", bench.run(&["node", "n1"]));
    told += &format!("\n# the same, looked for before\n{}", bench.run(&["config", "check"]));
    insta::assert_snapshot!("newcomer_start", without_times(&told));
}

/// Log lines begin with the time, and a digest depends on the ports.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| word.len() > 20 && word.starts_with("20") && word.ends_with('Z');
    let line = |line: &str| match line.split_once(' ') {
        Some((first, rest)) if is_time(first) => format!("[TIME] {rest}"),
        Some(("digest", _)) => "digest [DIGEST]".to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
