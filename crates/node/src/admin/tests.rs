//! Who may ask: whoever shows the token, the whole of it and nothing else, whatever is asked.
//!
//! What it is not: a test of the answers. What is asked goes to a data plane that counts and
//! refuses, so that an answer says no more than whether somebody came past the endpoint.

use super::server::{AdminServer, Peer, Question, UnprovenConnections};
use crate::tunnel;
use quorba_base::NodeId;
use quorba_config::{Domain, DomainKey, Node, check_text};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io, thread};

/// Everything that can be asked. `router_has_no_other_routes` says so if it is not.
const ENDPOINTS: [(&str, &str); 18] = [
    ("GET", "/v1/status"),
    ("GET", "/v1/file"),
    ("GET", "/v1/domain"),
    ("GET", "/v1/clock"),
    ("GET", "/v1/groups/bank/requests"),
    ("POST", "/v1/groups/bank"),
    ("GET", "/v1/groups"),
    ("POST", "/v1/groups"),
    ("PUT", "/v1/groups/bank"),
    ("DELETE", "/v1/groups/bank?operation=one"),
    ("POST", "/v1/groups/bank/backup"),
    ("POST", "/v1/groups/bank/restore"),
    ("GET", "/v1/at/n1/status"),
    ("GET", "/v1/at/n2/file"),
    ("POST", "/v1/at/n1/groups/bank"),
    ("PUT", "/v1/at/n2/groups/bank"),
    ("POST", "/v1/at/n2/groups/bank/backup"),
    ("POST", "/v1/at/n2/groups/bank/restore"),
];
/// What is no endpoint tells nobody that it is none.
const NONE: [(&str, &str); 4] =
    [("GET", "/"), ("GET", "/v1"), ("GET", "/v1/nothing"), ("DELETE", "/v1/groups")];

/// A running API of a node without a data plane.
struct Api {
    _folder: tempfile::TempDir,
    node: Node,
    asked: Arc<AtomicUsize>,
    /// Dropped, nothing comes from other nodes any more.
    _news: tunnel::NewsSender,
    _server: AdminServer,
}

fn node(folder: &Path) -> Node {
    let port = quorba_net::free_ports(1).expect("a port")[0];
    let text = format!(
        "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"127.0.0.1\"\n\
         admin = \"127.0.0.1:{port}\"\nstate_dir = {:?}\n[group.bank]\nlisten = 5000\n\
         members = [\"n1\"]\nserver = [\"b\", \"{{port}}\"]\n",
        folder.join("n1"),
    );
    let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
    let read = check_text(&folder.join("quorba.toml"), &text, key);
    let domain: Domain = read.domain.unwrap_or_else(|| panic!("{}", read.report));
    domain.nodes.into_iter().next().expect("a node")
}

impl Api {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let node = node(folder.path());
        Self::start_with(folder, node, UnprovenConnections::new(64))
    }

    fn start_with(folder: tempfile::TempDir, node: Node, guests: UnprovenConnections) -> Self {
        fs::create_dir_all(&node.state_dir).expect("a folder");
        let id = |index| NodeId::new(index).expect("a node");
        let peers = vec![
            Peer { name: "n1".into(), id: id(0), is_me: true },
            Peer { name: "n2".into(), id: id(1), is_me: false },
        ];
        let (news, heard) = tunnel::news();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let links = news.clone();
        let measured = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&measured);
        let server =
            AdminServer::start(&node, guests, (peers, "the file".into()), heard, move |one| {
                count.fetch_add(1, Ordering::SeqCst);
                if matches!(one, Question::Clock(..)) {
                    told.store(true, Ordering::SeqCst);
                }
                if let Question::Tunnel(to, _) = one {
                    // No link leads there.
                    let _ = links.send(tunnel::News::Down(to));
                }
                false
            });
        let server = server.expect("it starts");
        // It asks for the other node's clock by itself, once: it is told that nobody listens.
        while !measured.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        asked.store(0, Ordering::SeqCst);
        Self { _folder: folder, node, asked, _news: news, _server: server }
    }

    fn token(&self) -> String {
        fs::read_to_string(self.node.admin_token_file()).expect("it is there").trim().to_owned()
    }

    /// The status of the answer; the headers are whole lines.
    fn ask(&self, (method, path): (&str, &str), headers: &[String]) -> u16 {
        let answer = answer(self.node.admin, method, path, headers).expect("it answers");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("{method} {path}: {answer}"))
    }
}

fn answer(to: SocketAddr, method: &str, path: &str, headers: &[String]) -> io::Result<String> {
    let mut stream = TcpStream::connect(to)?;
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let body = r#"{"skip":1}"#;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn bearer(token: &str) -> Vec<String> {
    vec![format!("Authorization: Bearer {token}")]
}

/// What somebody may show who has not got the token, or nearly.
fn wrong(token: &str) -> Vec<(&'static str, Vec<String>)> {
    let other = |at: usize| {
        let mut other = token.as_bytes().to_vec();
        other[at] = if other[at] == b'0' { b'1' } else { b'0' };
        bearer(&String::from_utf8(other).expect("text"))
    };
    vec![
        ("none", vec![]),
        ("an empty header", vec!["Authorization:".into()]),
        ("an empty token", bearer("")),
        ("a word without a token", vec!["Authorization: Bearer".into()]),
        ("the first character", bearer(&token[..1])),
        ("all but the last character", bearer(&token[..token.len() - 1])),
        ("all but the first character", bearer(&token[1..])),
        ("one character more", bearer(&format!("{token}0"))),
        ("one character before", bearer(&format!("0{token}"))),
        ("the token twice", bearer(&format!("{token}{token}"))),
        ("another first character", other(0)),
        ("another last character", other(token.len() - 1)),
        ("capitals", bearer(&token.to_uppercase().replace(char::is_numeric, "A"))),
        ("as many of another", bearer(&"0".repeat(token.len()))),
        ("no word before it", vec![format!("Authorization: {token}")]),
        ("another word before it", vec![format!("Authorization: Basic {token}")]),
        ("another header", vec![format!("X-Authorization: Bearer {token}")]),
        ("a cookie", vec![format!("Cookie: token={token}")]),
    ]
}

#[test]
fn nothing_is_answered_to_whoever_does_not_show_the_whole_token_and_nothing_else() {
    let api = Api::start();
    let token = api.token();
    for (what, headers) in wrong(&token) {
        for endpoint in ENDPOINTS.into_iter().chain(NONE) {
            assert_eq!(api.ask(endpoint, &headers), 401, "{what}: {endpoint:?}");
        }
    }
    assert_eq!(api.asked.load(Ordering::SeqCst), 0, "the data plane has heard of none");
}

/// A endpoint that opens to nobody would pass the test above.
#[test]
fn whoever_shows_the_token_is_answered_at_every_endpoint() {
    let api = Api::start();
    let token = api.token();
    for endpoint in ENDPOINTS {
        let status = api.ask(endpoint, &bearer(&token));
        assert!(![401, 404, 405].contains(&status), "{endpoint:?}: {status}");
    }
    for endpoint in NONE {
        assert!([404, 405].contains(&api.ask(endpoint, &bearer(&token))), "{endpoint:?}");
    }
    assert!(api.asked.load(Ordering::SeqCst) > 0);
}

/// Where the routes are made, and how many: who adds one adds it above, too.
#[test]
fn the_router_has_no_other_routes() {
    let source = include_str!("server.rs");
    let routes: Vec<&str> = source.lines().filter(|line| line.contains(".route(")).collect();
    assert_eq!(routes.len(), 10, "{routes:#?}: add the new one to ENDPOINTS");
    for route in routes {
        let path = route.split('"').nth(1).expect("a path");
        let begin = path.split('{').next().expect("a beginning");
        let end = path.rsplit('}').next().expect("an end");
        let is_asked = |asked: &str| asked.starts_with(begin) && asked.ends_with(end);
        assert!(ENDPOINTS.iter().any(|(_, asked)| is_asked(asked)), "{path} is not asked");
    }
}

#[test]
fn a_boot_has_a_token_of_its_own() {
    let [one, other] = [Api::start(), Api::start()];
    assert_ne!(one.token(), other.token());
    assert_eq!(one.token().len(), 48);
    assert_eq!(one.ask(ENDPOINTS[0], &bearer(&other.token())), 401);
}

/// Whatever was there before.
#[test]
fn nobody_but_its_owner_can_read_the_token() {
    type Before = (&'static str, fn(&Path));
    let befores: [Before; 5] = [
        ("nothing", |_| {}),
        ("a file that all may read", |path| plant(path, &"a".repeat(49), 0o644)),
        ("one that the group may read", |path| plant(path, &"a".repeat(49), 0o640)),
        ("one that its owner may read", |path| plant(path, &"a".repeat(49), 0o600)),
        ("a link", |path| {
            let other = path.with_extension("other");
            plant(&other, &"a".repeat(49), 0o600);
            symlink(other, path).expect("a link");
        }),
    ];
    for (what, before) in befores {
        let folder = tempfile::tempdir().expect("a folder");
        let node = node(folder.path());
        fs::create_dir_all(&node.state_dir).expect("a folder");
        let path = node.admin_token_file();
        before(&path);
        // Somebody may have it open, and would read what is written into it.
        let open = fs::File::open(&path).ok().filter(|_| !what.contains("owner"));
        let api = Api::start_with(folder, node, UnprovenConnections::new(64));
        let meta = fs::symlink_metadata(&path).expect("it is there");
        assert!(meta.is_file(), "{what}");
        assert_eq!(meta.permissions().mode() & 0o7777, 0o600, "{what}");
        let token = api.token();
        assert_ne!(api.ask(ENDPOINTS[0], &bearer(&token)), 401, "{what}");
        if let Some(mut open) = open {
            let mut seen = String::new();
            open.read_to_string(&mut seen).expect("read");
            assert!(!seen.contains(&token), "{what}");
        }
    }
}

fn plant(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("allowed");
}

/// Two APIs whose nodes are joined by a link, and all that went over it to the second.
fn joined() -> ([Api; 2], Arc<Mutex<Vec<u8>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let id = |index| NodeId::new(index).expect("a node");
    let ways = [tunnel::news(), tunnel::news()];
    let senders = [ways[0].0.clone(), ways[1].0.clone()];
    let mut index = 0;
    let apis = ways.map(|(news, heard)| {
        let folder = tempfile::tempdir().expect("a folder");
        let node = node(folder.path());
        fs::create_dir_all(&node.state_dir).expect("a folder");
        let me = index;
        index += 1;
        let peers = [0, 1].map(|peer| Peer {
            name: format!("n{}", peer + 1),
            id: id(peer),
            is_me: peer == me,
        });
        let other = senders[usize::from(1 - me)].clone();
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, over) = (Arc::clone(&asked), Arc::clone(&seen));
        let file = format!("the file of n{}", me + 1);
        let ask = move |one| match one {
            Question::Tunnel(_, bytes) => {
                if me == 0 {
                    over.lock().expect("nobody panics").extend_from_slice(&bytes);
                }
                other.send(tunnel::News::Message(id(me), bytes)).is_ok()
            }
            Question::Requests(group, wanted, answer) => {
                count.fetch_add(1, Ordering::SeqCst);
                let said =
                    format!("{group} after {} with messages: {}", wanted.after, wanted.messages);
                answer.send(Err(said)).is_ok()
            }
            _ => false,
        };
        let server = AdminServer::start(
            &node,
            UnprovenConnections::new(64),
            (peers.into(), file.into()),
            heard,
            ask,
        );
        Api { _folder: folder, node, asked, _news: news, _server: server.expect("it starts") }
    });
    (apis, seen)
}

/// The token of one node is no business of another.
#[test]
fn what_is_asked_of_another_node_gets_there_whole_but_for_the_token() {
    let ([one, other], seen) = joined();
    let token = bearer(&one.token());
    let at = one.node.admin;
    let file = answer(at, "GET", "/v1/at/n2/file", &token).expect("it answers");
    assert!(file.ends_with("the file of n2"), "{file}");
    let path = "/v1/at/n2/groups/bank/requests?after=7&messages=true";
    let said = answer(at, "GET", path, &token).expect("it answers");
    assert!(said.ends_with("bank after 7 with messages: true"), "{said}");
    assert_eq!((one.asked.load(Ordering::SeqCst), other.asked.load(Ordering::SeqCst)), (0, 1));
    let seen = String::from_utf8_lossy(&seen.lock().expect("nobody panics")).into_owned();
    assert!(seen.contains("/v1/groups/bank/requests") && !seen.contains(&one.token()), "{seen}");
    let unknown = one.ask(("GET", "/v1/at/n3/file"), &token);
    assert_eq!(unknown, 409);
    let third = one.ask(("GET", "/v1/at/n2/at/n1/file"), &token);
    assert_eq!(third, 404, "not on to a third node");
    let guessed = other.ask(("GET", "/v1/at/n1/file"), &token);
    assert_eq!(guessed, 401, "each node has a token of its own");
}

/// Until the whole answer is there, over a connection that stays.
fn asks(stream: &mut TcpStream, token: &str) {
    let head =
        format!("GET /v1/file HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it listens");
    let mut answer = Vec::new();
    while !answer.ends_with(b"the file") {
        let mut some = [0; 1024];
        let count = stream.read(&mut some).expect("it answers");
        assert!(count > 0, "it ended behind {answer:?}");
        answer.extend_from_slice(&some[..count]);
    }
}

/// Waits for its end, for less long than a connection that says nothing is kept.
fn ends(mut stream: TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("allowed");
    match stream.read(&mut [0; 1]) {
        Ok(0) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        other => panic!("it has not ended: {other:?}"),
    }
}

/// Whoever only connects keeps nobody out.
#[test]
fn who_has_not_shown_the_token_makes_room_and_who_has_shown_it_stays() {
    let guests = UnprovenConnections { most: 2, token_within: Duration::from_secs(3600) };
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(folder.path());
    let api = Api::start_with(folder, node, guests);
    let connect = || TcpStream::connect(api.node.admin).expect("it listens");
    let token = api.token();
    let mut welcome = connect();
    asks(&mut welcome, &token);
    let (first, mut second, mut third) = (connect(), connect(), connect());
    ends(first);
    for stream in [&mut welcome, &mut second, &mut third] {
        asks(stream, &token);
    }
}

#[test]
fn who_does_not_show_the_token_goes_after_a_while_and_who_has_shown_it_stays() {
    let api = Api::start();
    let connect = || TcpStream::connect(api.node.admin).expect("it listens");
    let token = api.token();
    let mut welcome = connect();
    asks(&mut welcome, &token);
    ends(connect());
    asks(&mut welcome, &token);
}
