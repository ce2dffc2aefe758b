//! Malformed GIOP by name against a live node, which stays up and serves honest clients meanwhile;
//! and one whose talk nobody hears.

mod stage;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorba_admin::Client as Admin;
use quorba_admin::status::{MemberState, Status};
use quorba_giop::hostile::{Case, Reactions, cases};
use quorba_giop::{Body, Endian, Framer, FramerLimits, Version};
use quorba_orb::{Client, ClientOptions, Reference};
use stage::{LONG, QUORBA, free_ports};

/// Where nodes look for ports.
const FIRST_PORT: u16 = 21_000;
/// Connections at once.
const ATTACKERS: usize = 16;
/// What a node may hold resident after all of it.
const RSS_BYTES_MAX: u64 = 256 << 20;

struct Node {
    _folder: tempfile::TempDir,
    process: Child,
    gateway: SocketAddr,
    admin: Admin,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Node {
    fn start() -> Self {
        Self::start_that_tells(Stdio::null())
    }

    fn start_that_tells(log: Stdio) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (gateway, admin, ring) = free_addresses();
        write_domain(folder.path(), gateway, admin, ring);
        let process = Command::new(QUORBA)
            .args(["node", "n1", "--config", "quorba.toml"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("quorba starts");
        let admin = Admin::new(admin, folder.path().join("state/admin.token"));
        let mut node = Self { _folder: folder, process, gateway, admin };
        let began = Instant::now();
        while !node.status().is_some_and(|status| is_whole(&status)) {
            let ended = node.process.try_wait().expect("it is ours");
            assert!(ended.is_none(), "the node ended with {ended:?}");
            assert!(began.elapsed() < LONG, "the node does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        node
    }

    fn status(&self) -> Option<Status> {
        self.admin.status(LONG).ok()
    }
}

/// Gateway, admin API and ring: none that the system gives to somebody's outgoing connection.
fn free_addresses() -> (SocketAddr, SocketAddr, SocketAddr) {
    let first = free_ports(FIRST_PORT, 3);
    let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    (address(first), address(first + 1), address(first + 2))
}

fn is_whole(status: &Status) -> bool {
    status.groups[0].members.iter().all(|member| member.state == MemberState::In)
}

fn write_domain(folder: &Path, gateway: SocketAddr, admin: SocketAddr, ring: SocketAddr) {
    let text = format!(
        "[domain]\nid = \"hostile\"\nkey_file = \"domain.key\"\n\
         [limits]\nheader_ms = 1000\nmessage_bytes = 1048576\n\
         [node.n1]\nhost = \"127.0.0.1\"\nring_port = {}\nadmin = \"{admin}\"\n\
         state_dir = \"state\"\n\
         [group.bank]\nlisten = {}\nmembers = [\"n1\"]\n\
         server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
         state_object = \"bank\"\n",
        ring.port(),
        gateway.port(),
    );
    fs::write(folder.join("quorba.toml"), text).expect("written");
    let key = folder.join("domain.key");
    fs::write(&key, "5c".repeat(32)).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("allowed");
}

#[test]
fn a_node_whose_talk_nobody_hears_starts_and_serves() {
    let (silent, mut talk) = std::io::pipe().expect("a pipe");
    // As much as it holds: whoever writes more waits.
    talk.write_all(&[b'.'; 65_536]).expect("taken");
    let node = Node::start_that_tells(talk.into());
    TcpStream::connect(node.gateway).expect("it listens");
    drop((node, silent));
}

#[test]
fn a_live_node_survives_every_malformed_message_and_serves_honest_clients_meanwhile() {
    let node = Node::start();
    let pid = node.process.id();
    let work: Vec<(Version, Endian, Case)> = [Version::V1_0, Version::V1_1, Version::V1_2]
        .into_iter()
        .flat_map(|version| [Endian::Big, Endian::Little].map(|endian| (version, endian)))
        .flat_map(|(version, endian)| {
            cases(version, endian).into_iter().map(move |case| (version, endian, case))
        })
        .collect();
    assert!(work.len() >= 60 * 6, "{} cases", work.len());
    let names: std::collections::BTreeSet<_> = work.iter().map(|(_, _, case)| case.name).collect();
    assert!(names.len() >= 60, "{} names", names.len());
    let (next, failures) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let (done, honest) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| honest_calls(node.gateway, &done, &honest));
        let attackers: Vec<_> = (0..ATTACKERS)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed) as usize;
                        let Some((version, endian, case)) = work.get(index) else { return };
                        if let Err(fault) = attack(node.gateway, case) {
                            let name = format!("{} {version} {endian:?}: {fault}", case.name);
                            failures.lock().unwrap().push(name);
                        }
                    }
                })
            })
            .collect();
        for attacker in attackers {
            attacker.join().expect("an attacker does not panic");
        }
        done.store(true, Ordering::Relaxed);
        serving.join().expect("honest calls succeed");
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} cases: {failures:#?}", failures.len());
    assert!(honest.load(Ordering::Relaxed) > 0);
    let status = node.status().expect("the node answers");
    assert_eq!(status.pid, pid);
    assert!(is_whole(&status), "{:?}", status.groups[0].members);
    assert_eq!(status.groups[0].server.as_ref().unwrap().restarts, 0);
    assert!(status.groups[0].malformed > 0);
    assert!(status.rss_bytes < RSS_BYTES_MAX, "{} bytes resident", status.rss_bytes);
    println!(
        "{} cases, {} honest calls meanwhile, {} KiB resident",
        work.len(),
        honest.load(Ordering::Relaxed),
        status.rss_bytes / 1024
    );
}

/// An honest client that calls until told to stop; a call that fails panics.
fn honest_calls(gateway: SocketAddr, done: &AtomicBool, count: &AtomicU64) {
    let reference = Reference::direct(gateway, *b"bank");
    let mut client = Client::new(&reference, ClientOptions::default());
    let open = |out: &mut quorba_giop::cdr::Writer| {
        out.write_string(b"honest");
        out.write_string(b"opening");
    };
    client.call("open", open).expect("honest call");
    while !done.load(Ordering::Relaxed) {
        client.call("balance", |out| out.write_string(b"honest")).expect("honest call");
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends the case and holds the node to what a robust server may do about it.
fn attack(gateway: SocketAddr, case: &Case) -> Result<(), String> {
    let mut socket = TcpStream::connect(gateway).map_err(|error| error.to_string())?;
    // The node may close before it has read everything.
    let _ = socket.write_all(&case.bytes);
    if case.may.contains(Reactions::IGNORES) {
        // Nothing needs to come, so there is nothing to wait for; what has come must be allowed.
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    } else {
        socket.set_read_timeout(Some(LONG)).unwrap();
    }
    let reaction = reaction(&mut socket)?;
    if case.may.contains(reaction) { Ok(()) } else { Err(format!("reacted by {reaction:?}")) }
}

fn reaction(socket: &mut TcpStream) -> Result<Reactions, String> {
    let mut framer = Framer::new(FramerLimits {
        message_bytes_max: 1 << 20,
        fragmented_requests_max: 1,
        buffered_bytes_max: 1 << 20,
    });
    let mut buffer = [0; 4096];
    loop {
        match framer.next().map_err(|error| format!("the node sent no GIOP: {error}"))? {
            None => {}
            Some(message) => {
                let body = message.parse();
                return match body.map_err(|error| format!("the node's message: {error}"))? {
                    Body::MessageError => Ok(Reactions::MESSAGE_ERROR),
                    Body::CloseConnection => Ok(Reactions::CLOSES),
                    Body::Reply(_) | Body::LocateReply(_) => Ok(Reactions::REPLIES),
                    other => Err(format!("the node sent {other:?}")),
                };
            }
        }
        match socket.read(&mut buffer) {
            Ok(0) => return Ok(Reactions::CLOSES),
            Ok(count) => framer.push(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Ok(Reactions::IGNORES);
            }
            // The node closed with our bytes unread.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                return Ok(Reactions::CLOSES);
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}
