//! `quorba ior`: references shown and made.

use crate::bench::Bench;

const DOMAIN: &str = r#"[domain]
id = "plant-a"
key_file = "domain.key"
[node.n1]
host = "10.0.0.1"
[node.n2]
host = "gateway.example"
[node.n3]
host = "fd00::3"
gateway_port_offset = 7
[group.bank]
listen = 5000
members = ["n1", "n2", "n3"]
server = ["bank", "{port}"]
state_object = "bank"
object_key = "bank"
type_id = "IDL:Bank/Ledger:1.0"
[group.names]
listen = 5100
members = ["n1", "n2", "n3"]
server = ["names", "{port}"]
state_object = "names"
[group.lamp]
listen = 5200
style = "stateless"
members = ["n1", "n2"]
server = ["lamp", "{port}"]
object_key = "lamp"
[group.bulb]
style = "stateless"
members = ["n1", "n3"]
connect = { n1 = "10.0.0.4:6000", n3 = "127.0.0.1:6001" }
object_key = "bulb"
[gateway]
listen = 5300
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.domain(DOMAIN);
    bench
}

#[test]
fn references_of_groups() {
    let bench = bench();
    let mut transcript = bench.run(&["ior", "make", "bank"]);
    transcript += &bench.run(&["ior", "make", "bank", "--corbaloc"]);
    transcript += &bench.run(&["ior", "make", "bank", "--corbaloc", "--first", "n3"]);
    let key = ["ior", "make", "names", "--corbaloc", "--key", "Name%20Service"];
    transcript += &bench.run(&key);
    let typed = ["ior", "make", "bank", "-o", "json", "--type", "IDL:X:1.0", "--key", "x"];
    transcript += &bench.run(&typed);
    insta::assert_snapshot!("ior_make", transcript);
}

#[test]
fn references_that_cannot_be_made() {
    let bench = bench();
    let mut transcript = bench.run(&["ior", "make", "names"]);
    transcript += &bench.run(&["ior", "make", "names", "--key", "%4"]);
    transcript += &bench.run(&["ior", "make", "bnak"]);
    transcript += &bench.run(&["ior", "make", "bank", "--first", "n4"]);
    insta::assert_snapshot!("ior_make_wrong", transcript);
}

/// Of stateless groups: the servers of members in front of the gateways.
#[test]
fn references_to_members() {
    let bench = bench();
    let mut transcript = bench.run(&["ior", "make", "lamp", "--members=6000", "--corbaloc"]);
    let first = ["ior", "make", "lamp", "--members=6000", "--corbaloc", "--first", "n2"];
    transcript += &bench.run(&first);
    transcript += &bench.run(&["-o", "json", "ior", "make", "bulb", "--members"]);
    let made = bench.run(&["ior", "make", "bulb", "--members"]);
    let ior = made.lines().find(|line| line.starts_with("IOR:")).expect("a reference");
    bench.write("bulb.ior", &format!("{ior}\n"));
    transcript += &bench.run(&["ior", "show", "bulb.ior"]);
    for wrong in [
        ["bank", "--members", "--corbaloc"],
        ["lamp", "--members", "--corbaloc"],
        ["lamp", "--members=0", "--corbaloc"],
        ["bulb", "--members=6000", "--corbaloc"],
        ["bulb", "--members", "--corbaloc"],
    ] {
        transcript += &bench.run(&[&["ior", "make"][..], &wrong].concat());
    }
    insta::assert_snapshot!("ior_make_members", transcript);
}

/// The reference that `ior make` printed.
fn made(bench: &Bench) -> String {
    let transcript = bench.run(&["ior", "make", "bank"]);
    transcript.lines().find(|line| line.starts_with("IOR:")).expect("a reference").to_owned()
}

#[test]
fn references_are_shown_wherever_they_come_from() {
    let bench = bench();
    let ior = made(&bench);
    bench.write("bank.ior", &format!("{ior}\n"));
    let from_file = bench.run(&["ior", "show", "bank.ior"]);
    let shown = |transcript: &str| transcript.split_once('\n').map(|(_, rest)| rest.to_owned());
    assert_eq!(shown(&bench.run_with_input(&["ior", "show", "-"], &ior)), shown(&from_file));
    assert_eq!(shown(&bench.run(&["ior", "show", &ior])), shown(&from_file));
    let mut transcript = from_file;
    transcript += &bench.run(&["-o", "json", "ior", "show", "bank.ior"]);
    transcript += &bench.run(&["ior", "show", "corbaloc:iiop:1.2@127.0.0.1:5000/a%00b"]);
    transcript += &bench.run(&["-o", "json", "ior", "show", "corbaloc::h,:h2:1/k"]);
    insta::assert_snapshot!("ior_show", transcript);
}

#[test]
fn malformed_references_are_shown_as_far_as_they_go() {
    let bench = bench();
    let ior = made(&bench);
    bench.write("cut.ior", &ior[..ior.len() / 2 * 2 - 100]);
    bench.write("odd.ior", &ior[..61]);
    let mut transcript = bench.run(&["ior", "show", "cut.ior"]);
    transcript += &bench.run(&["ior", "show", "odd.ior"]);
    transcript += &bench.run(&["-o", "json", "ior", "show", "cut.ior"]);
    transcript += &bench.run(&["ior", "show", "IOR:00zz"]);
    transcript += &bench.run(&["ior", "show", "corbaloc::host:99999/key"]);
    transcript += &bench.run(&["ior", "show", "corbaname::127.0.0.1:1#a/b"]);
    transcript += &bench.run(&["ior", "show", "bnak.ior"]);
    transcript += &bench.run_with_input(&["ior", "show", "-"], "hello\n");
    insta::assert_snapshot!("ior_show_malformed", transcript);
}
