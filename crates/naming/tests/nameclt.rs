//! The naming service with omniORB on the other side: its command line client `nameclt`.

use std::process::{Command, Output};

use quorba_corba::Home;
use quorba_naming::{Limits, NamingService};
use quorba_orb::{RunningServer, Server, ServerOptions};

fn start() -> (RunningServer, String) {
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).expect("a port");
    let address = server.local_address().expect("it listens");
    let addresses = vec![(address.ip().to_string(), address.port())];
    let home = Home { addresses, prefix: Vec::new() };
    let service = NamingService::new(home, Limits::default());
    let root = service.root().0.to_string();
    (server.with_objects(service).start().expect("started"), root)
}

/// Calls nameclt, which finds the root as every ORB does.
fn nameclt(server: &RunningServer, arguments: &[&str]) -> Option<Output> {
    let port = server.address().port();
    let root = format!("NameService=corbaloc:iiop:1.2@127.0.0.1:{port}/NameService");
    let mut command = Command::new("nameclt");
    command.args(["-ORBInitRef", &root, "-advanced"]).args(arguments);
    command.output().ok()
}

/// Whether nameclt is there; says so by name if it is not.
fn is_there(test: &str) -> bool {
    let is_there = Command::new("nameclt").output().is_ok();
    if !is_there {
        quorba_lab::skips::skip(test, "no nameclt here: cargo xtask deps installs it");
    }
    is_there
}

#[test]
fn nameclt_makes_a_tree_lists_it_and_takes_it_down() {
    if !is_there("nameclt_makes_a_tree_lists_it_and_takes_it_down") {
        return;
    }
    let (server, root) = start();
    let run = |arguments: &[&str]| {
        let output = nameclt(&server, arguments).expect("nameclt is there");
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        (output.status.success(), said)
    };
    let good = |arguments: &[&str]| {
        let (is_good, said) = run(arguments);
        assert!(is_good, "{arguments:?}: {said}");
        said
    };
    let refused = |arguments: &[&str], why: &str| {
        let (is_good, said) = run(arguments);
        assert!(!is_good && said.contains(why), "{arguments:?}: {said}");
    };
    assert_eq!(good(&["list"]), "");
    assert!(good(&["bind_new_context", "a"]).starts_with("IOR:"));
    let inner = good(&["bind_new_context", "a/b.kind"]);
    good(&["bind", "a/b.kind/obj", &root]);
    assert_eq!(good(&["list", "a"]), "b.kind/");
    assert_eq!(good(&["list", "a/b.kind"]), "obj");
    let resolved = good(&["resolve", "a/b.kind/obj"]);
    let type_id = b"NamingContextExt:1.0".map(|octet| format!("{octet:02x}")).concat();
    assert!(resolved.contains(&type_id), "{resolved}");
    refused(&["bind", "a/b.kind/obj", &root], "AlreadyBound");
    good(&["rebind", "a/b.kind/obj", &inner]);
    assert_eq!(good(&["resolve", "a/b.kind/obj"]), inner);
    refused(&["resolve", "a/nothing"], "NotFound");
    good(&["bind_new_context", "full"]);
    good(&["bind", "full/x", &root]);
    refused(&["remove_context", "full"], "NotEmpty");
    good(&["unbind", "a/b.kind/obj"]);
    refused(&["unbind", "a/b.kind/obj"], "missing node");
    good(&["bind_context", "a/again", &root]);
    assert_eq!(good(&["list", "a/again"]), "a/\nfull/");
    good(&["rebind_context", "a/again", &inner]);
    assert_eq!(good(&["list", "a/again"]), "");
    assert!(good(&["new_context"]).starts_with("IOR:"));
    good(&["remove_context", "a/b.kind"]);
    assert_eq!(good(&["list", "a"]), "again/");
    server.stop();
}

#[test]
fn nameclt_lists_more_than_one_reply_holds() {
    if !is_there("nameclt_lists_more_than_one_reply_holds") {
        return;
    }
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).expect("a port");
    let address = server.local_address().expect("it listens");
    let addresses = vec![(address.ip().to_string(), address.port())];
    let limits = Limits { listed_max: 3, ..Limits::default() };
    let service = NamingService::new(Home { addresses, prefix: Vec::new() }, limits);
    let root = service.root().0.to_string();
    let server = server.with_objects(service).start().expect("started");
    for number in 0..10 {
        let bound = nameclt(&server, &["bind", &format!("n{number}"), &root]);
        assert!(bound.expect("nameclt is there").status.success());
    }
    let listed = nameclt(&server, &["list"]).expect("nameclt is there");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), names);
}
