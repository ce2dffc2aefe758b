//! `quorba config check`, and what other commands say of a wrong domain file.

use crate::bench::Bench;

const GOOD: &str = r#"[domain]
id = "plant-a"
key_file = "domain.key"
[node.n1]
host = "192.0.2.1"
[node.n2]
host = "192.0.2.2"
[node.n3]
host = "192.0.2.3"
[group.bank]
listen = 5000
members = ["n1", "n2", "n3"]
server = ["/usr/bin/bank", "-ORBendPoint", "giop:tcp:127.0.0.1:{port}"]
"#;

#[test]
fn a_right_file() {
    let bench = Bench::new();
    bench.domain(GOOD);
    let mut transcript = bench.run(&["config", "check"]);
    transcript += &bench.run(&["-o", "json", "config", "check", "quorba.toml"]);
    transcript += &bench.run(&["config", "check", "--config", "quorba.toml"]);
    transcript += &bench.run(&["config", "check", "quorba.toml", "--config", "quorba.toml"]);
    transcript += &bench.run(&["group", "style", "bank", "stateless"]);
    insta::assert_snapshot!("config_right", transcript);
}

#[test]
fn a_wrong_file() {
    let bench = Bench::new();
    bench.domain(&GOOD.replace("\"n3\"]", "\"node3\"]"));
    let mut transcript = bench.run(&["config", "check"]);
    transcript += &bench.run(&["-o", "json", "config", "check"]);
    transcript += &bench.run(&["status"]);
    transcript += &bench.run(&["-o", "json", "status"]);
    transcript += &bench.run(&["--color", "always", "config", "check"]);
    insta::assert_snapshot!("config_wrong", transcript);
}

#[test]
fn a_file_that_is_not_there() {
    let bench = Bench::new();
    let mut transcript = bench.run(&["config", "check"]);
    transcript += &bench.run(&["status", "--config", "elsewhere.toml"]);
    insta::assert_snapshot!("config_missing", transcript);
}
