//! `quorba group create`, `delete` and `list`, and `quorba config apply`, against a node that keeps
//! a catalog as a real one does, and loses an answer when it is told to.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use quorba_admin::status::{GroupStatus, MemberState, MemberStatus, RingStatus, Status};
use quorba_config::{Definition, Domain};
use serde_json::{Value, json};

use crate::bench::Bench;

const FILE: &str = r#"[domain]
id = "plant-a"
key_file = "domain.key"
[gateway]
listen = 5900
[node.n1]
host = "192.0.2.1"
admin = "ADMIN"
state_dir = "n1"
[node.n2]
host = "192.0.2.2"
[node.n3]
host = "192.0.2.3"
[group.bank]
listen = 5000
members = ["n1", "n2", "n3"]
server = ["./bank", "{port}"]
state_object = "bank"
object_key = "bank"
[group.shop]
members = ["n1", "n2"]
server = ["./shop", "{port}", "{call.bank}"]
calls = ["bank"]
state_object = "shop"
"#;

/// What a node keeps.
#[derive(Default)]
struct Kept {
    groups: BTreeMap<u32, Definition>,
    last_id: u32,
    /// What was done, by operation.
    done: BTreeMap<String, u32>,
    /// The next change is made, and its answer lost.
    loses: bool,
    /// Every change that came.
    heard: Vec<String>,
    shared: String,
}

impl Kept {
    fn id_of(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|(_, group)| group.name == name).map(|(id, _)| *id)
    }

    fn answer(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        match (method, path) {
            ("GET", "/v1/status") => (200, serde_json::to_string(&self.status()).expect("JSON")),
            ("GET", "/v1/file") => (200, self.shared.clone()),
            ("GET", "/v1/groups") => {
                let group = |(id, one): (&u32, &Definition)| {
                    let Definition { name, text } = one;
                    json!({ "id": format!("{id:016x}"), "name": name, "definition": text })
                };
                let groups: Vec<Value> = self.groups.iter().map(group).collect();
                (200, json!({ "version": "1", "groups": groups }).to_string())
            }
            ("POST" | "PUT", _) => {
                let wish: Value = serde_json::from_str(body).expect("JSON");
                let text = wish["definition"].as_str().expect("a text");
                let definition = Definition::parse(text).expect("a definition");
                let operation = wish["operation"].as_str().expect("a text").to_owned();
                self.define(method, &operation, definition.name.clone(), Some(definition))
            }
            ("DELETE", _) => {
                let rest = path.strip_prefix("/v1/groups/").expect("a group");
                let (name, operation) = rest.split_once("?operation=").expect("an operation");
                self.define(method, operation, name.to_owned(), None)
            }
            _ => (404, String::new()),
        }
    }

    fn define(
        &mut self,
        method: &str,
        operation: &str,
        name: String,
        definition: Option<Definition>,
    ) -> (u16, String) {
        self.heard.push(format!("{method} {name}"));
        let (id, existed) = match (self.done.get(operation), self.id_of(&name)) {
            (Some(id), _) => (*id, true),
            (None, Some(_)) if method == "POST" => {
                return (409, format!("there is a group {name} already"));
            }
            (None, None) if method != "POST" => return (409, format!("there is no group {name}")),
            (None, Some(id)) => (id, false),
            (None, None) => {
                self.last_id += 1;
                (self.last_id, false)
            }
        };
        if !existed {
            match definition {
                Some(definition) => drop(self.groups.insert(id, definition)),
                None => drop(self.groups.remove(&id)),
            }
            self.done.insert(operation.to_owned(), id);
        }
        if std::mem::take(&mut self.loses) {
            return (0, String::new());
        }
        (200, json!({ "id": format!("{id:016x}"), "existed": existed }).to_string())
    }

    fn status(&self) -> Status {
        let group = |definition: &Definition| GroupStatus {
            name: definition.name.clone(),
            style: "active".to_owned(),
            members: vec![MemberStatus {
                node: "n1".to_owned(),
                state: MemberState::In,
                reason: None,
                since_ms: None,
            }],
            executed: 30_000,
            ..GroupStatus::default()
        };
        Status {
            domain: "plant-a".to_owned(),
            node: "n1".to_owned(),
            ring: RingStatus { primary: true, ..RingStatus::default() },
            groups: self.groups.values().map(group).collect(),
            ..Status::default()
        }
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Kept>) {
    let mut reader = BufReader::new(&stream);
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(read) if read > 2 => {}
            _ => break,
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the whole of it");
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let body = String::from_utf8(body).expect("text");
    let (code, text) = kept.lock().expect("no holder panics").answer(method, path, &body);
    if code == 0 {
        return;
    }
    let answer = format!(
        "HTTP/1.1 {code} It\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    // A client that has gone away needs no answer.
    let _ = (&stream).write_all(answer.as_bytes());
}

/// A domain whose n1 runs here and has the group bank, under the id 7.
fn domain() -> (Bench, Arc<Mutex<Kept>>, String) {
    let mut bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address: SocketAddr = listener.local_addr().expect("bound");
    let file = FILE.replace("ADMIN", &address.to_string());
    bench.domain(&file).write("n1/admin.token", "a-token\n");
    bench.hide(address, "ADMIN OF n1");
    let domain = Domain::load(&bench.path("quorba.toml")).expect("a domain");
    let mut kept = Kept { last_id: 7, shared: domain.canonical(), ..Kept::default() };
    kept.groups.insert(7, domain.definitions()[0].clone());
    let kept = Arc::new(Mutex::new(kept));
    let serves = Arc::clone(&kept);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve(stream, &serves);
        }
    });
    (bench, kept, file)
}

fn heard(kept: &Mutex<Kept>) -> Vec<String> {
    std::mem::take(&mut kept.lock().expect("no holder panics").heard)
}

#[test]
fn groups_are_created_and_deleted() {
    let (bench, kept, _) = domain();
    let mut transcript = bench.run(&["group", "list"]);
    let mill = [
        "group",
        "create",
        "mill",
        "--members",
        "n1,n2",
        "--server",
        "./mill {port}",
        "--state-object",
        "m",
        "--set",
        "server_reply_ms = 1000",
        "--operation",
        "first",
    ];
    transcript += &bench.run(&mill);
    transcript += "# once more, under the same name\n";
    transcript += &bench.run(&mill);
    transcript += "# under another name\n";
    transcript += &bench.run(&[&mill[..mill.len() - 1], &["second"]].concat());
    transcript += &bench.run(&[
        "-o",
        "json",
        "group",
        "create",
        "shop",
        "--from",
        "quorba.toml",
        "--operation",
        "third",
    ]);
    let names = "corbaloc::192.0.2.1:2809/NameService";
    transcript += &bench.run(&[
        "group",
        "create",
        "names",
        "--members",
        "n1",
        "--connect",
        &format!("n1={names}"),
        "--operation",
        "fourth",
    ]);
    transcript += &bench.run(&["group", "list"]);
    transcript += &bench.run(&["-o", "json", "group", "ls"]);
    transcript += "# a group that the file does not have has a reference\n";
    transcript += &bench.run(&["ior", "make", "names", "--corbaloc"]);
    transcript += &bench.run(&["group", "delete", "bank"]);
    transcript += &bench.run(&["group", "delete", "bank", "--yes"]);
    transcript += &bench.run(&["group", "delete", "mill", "--yes", "--operation", "fifth"]);
    transcript += &bench.run(&["group", "delete", "shop", "--yes", "--operation", "sixth"]);
    insta::assert_snapshot!("catalog_create", transcript);
    let asked = [
        "POST mill",
        "POST mill",
        "POST mill",
        "POST shop",
        "POST names",
        "DELETE mill",
        "DELETE shop",
    ];
    assert_eq!(heard(&kept), asked, "what cannot be is not asked for");
}

#[test]
fn definitions_that_cannot_be_are_refused_here() {
    let (bench, kept, _) = domain();
    let create = |more: &[&str]| bench.run(&[&["group", "create", "mill"], more].concat());
    let server = ["--server", "mill {port}"];
    let mut transcript = create(&[]);
    transcript += &create(&[&["--members", "n1,n9", "--listen", "5000"], &server[..]].concat());
    transcript += &create(&["--members", "n1", "--connect", "n1"]);
    transcript += &create(&["--from", "quorba.toml"]);
    transcript += &create(&["--from", "nothing.toml"]);
    transcript += &create(&["--from", "quorba.toml", "--durable"]);
    insta::assert_snapshot!("catalog_wrong", transcript);
    assert_eq!(heard(&kept), Vec::<String>::new());
}

#[test]
fn an_answer_that_is_lost_is_asked_for_again_and_the_change_made_once() {
    let (bench, kept, _) = domain();
    kept.lock().expect("no holder panics").loses = true;
    let said = bench.run(&["-o", "json", "group", "create", "shop", "--from", "quorba.toml"]);
    assert!(said.ends_with("--- exit 0\n"), "{said}");
    assert!(said.contains("\"existed\":true"), "{said}");
    assert_eq!(heard(&kept), ["POST shop", "POST shop"]);
    let kept = kept.lock().expect("no holder panics");
    assert_eq!((kept.groups.len(), kept.done.len()), (2, 1));
}

#[test]
fn a_file_is_applied_as_far_as_it_can_be() {
    let (bench, kept, file) = domain();
    let mut transcript = bench.run(&["config", "apply", "quorba.toml", "--dry-run"]);
    assert_eq!(heard(&kept), Vec::<String>::new(), "nothing is done");
    transcript += &bench.run(&["config", "apply", "quorba.toml"]);
    transcript += &bench.run(&["config", "apply", "quorba.toml"]);
    transcript += "# other members, another server, another port\n";
    let other = file
        .replace("members = [\"n1\", \"n2\"]", "members = [\"n1\", \"n3\"]")
        .replace("\"./shop\"", "\"./shop-2\"")
        .replace("listen = 5000", "listen = 5001");
    bench.write("other.toml", &format!("{other}[ring]\nencrypt = false\n"));
    transcript += &bench.run(&["config", "apply", "other.toml"]);
    transcript += "# without the shop\n";
    let (less, _) = file.split_once("[group.shop]").expect("it is there");
    bench.write("less.toml", less);
    transcript += &bench.run(&["config", "apply", "less.toml"]);
    transcript += &bench.run(&["-o", "json", "config", "apply", "less.toml"]);
    transcript += &bench.run(&["config", "apply", "less.toml", "--yes"]);
    insta::with_settings!({ filters => vec![("[0-9a-f]{32}", "[OPERATION]")] }, {
        insta::assert_snapshot!("catalog_apply", transcript);
    });
    assert_eq!(heard(&kept), ["POST shop", "PUT shop", "DELETE shop"]);
}
