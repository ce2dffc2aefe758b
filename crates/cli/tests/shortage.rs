//! What nodes do when something runs short: descriptors, room on a disk, or servers that leave
//! processes behind.

mod stage;

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit, test_kill_process};
use serde_json::Value;
use stage::{Domain, LONG, QUORBA, pids, wait_until};

/// A domain whose servers start a process with a session of its own, which says who it is.
fn with_strays() -> Domain {
    let script = format!(
        "setsid sh -c 'echo $$ >> strays; exec sleep 100000' & \
         exec {QUORBA} servant bank --port {{port}}"
    );
    Domain::start_group(&format!(
        "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"sh\", \"-c\", {script:?}]\nstate_object = \"bank\"\nobject_key = \"bank\"\n"
    ))
}

fn state_dir(domain: &Domain, node: &str) -> PathBuf {
    domain.folder.path().join("quorba-state").join(node)
}

fn strays(domain: &Domain, node: &str) -> Vec<Pid> {
    let text = fs::read_to_string(state_dir(domain, node).join("strays")).unwrap_or_default();
    text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid).is_err()
}

#[test]
fn whatever_a_server_has_started_ends_with_it_and_with_its_node() {
    let domain = with_strays();
    let running = pids(&domain.wait_healthy());
    for node in ["n1", "n2", "n3"] {
        wait_until("each server has one", || strays(&domain, node).len() == 1);
        assert!(!is_gone(strays(&domain, node)[0]));
    }
    // The status has the node's process first, then its server's.
    let of = |node: &str, at: usize| {
        let mut those = running.iter().filter(|(name, _)| name == node);
        those.nth(at).expect("it runs").1
    };
    kill_process(of("n2", 1), Signal::KILL).expect("it runs");
    wait_until("another server has another", || strays(&domain, "n2").len() == 2);
    wait_until("the first is gone", || is_gone(strays(&domain, "n2")[0]));
    domain.wait_healthy();
    kill_process(of("n3", 0), Signal::KILL).expect("it runs");
    wait_until("nothing of the node is left", || {
        is_gone(strays(&domain, "n3")[0]) && is_gone(of("n3", 1))
    });
    domain.signal(Signal::TERM);
    wait_until("nothing of the others is left", || {
        ["n1", "n2"].iter().all(|node| strays(&domain, node).into_iter().all(is_gone))
    });
}

/// What the nodes say of themselves, as far as they can be asked.
fn status(domain: &Domain) -> Value {
    let said = domain.quorba(&["-o", "json", "--timeout", "5s", "status"]).stdout;
    serde_json::from_slice(&said).unwrap_or_default()
}

fn server(domain: &Domain, node: usize) -> Value {
    status(domain)["nodes"][node]["status"]["groups"][0]["server"].clone()
}

#[test]
fn a_second_process_of_a_node_is_refused_and_strangers_can_read_nothing() {
    let domain = Domain::start();
    let running = pids(&domain.wait_healthy());
    let refused = domain.quorba(&["node", "n2"]);
    let said = stage::text(&refused.stderr);
    assert!(!refused.status.success() && said.contains("QB-NODE-008"), "{said}");
    let first = running.iter().find(|(name, _)| name == "n2").expect("it runs").1;
    assert!(said.contains(&format!("process {} ", first.as_raw_nonzero())), "{said}");
    domain.wait_healthy();
    let state = state_dir(&domain, "n2");
    for (name, wanted) in [("", 0o750), ("node.state", 0o640), ("admin.token", 0o600)] {
        let mode = fs::metadata(state.join(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777 & !wanted, 0, "{name}: {mode:o}");
    }
}

#[test]
fn silent_clients_make_room_for_others() {
    let domain = Domain::start_with("[limits]\nconnections = 8\n");
    domain.wait_healthy();
    let gateway = ("127.0.0.1", domain.first_port + 6);
    let mut silent: Vec<_> =
        (0..8).map(|_| TcpStream::connect(gateway).expect("it listens")).collect();
    let mut bank = domain.bank(0);
    // A client that has just come is not sent away at once.
    wait_until("a client has room", || bank.increment("one").is_ok());
    let mut told = Vec::new();
    silent[0].set_read_timeout(Some(LONG)).expect("set");
    silent[0].read_to_end(&mut told).expect("the first makes room");
    assert!(told.starts_with(b"GIOP") && told[7] == 5, "CloseConnection: {told:?}");
    for other in &mut silent[1..] {
        other.set_nonblocking(true).expect("set");
        assert!(other.read(&mut [0; 12]).is_err(), "the others stay");
    }
}

#[test]
fn silent_connections_to_the_admin_api_keep_nobody_out_and_end_soon() {
    let domain = Domain::start();
    domain.wait_healthy();
    let admin = ("127.0.0.1", domain.first_port + 3);
    let mut silent: Vec<_> =
        (0..200).map(|_| TcpStream::connect(admin).expect("it listens")).collect();
    let answered = domain.quorba(&["status"]);
    assert!(answered.status.success(), "{}", stage::text(&answered.stderr));
    for connection in &mut silent {
        connection.set_read_timeout(Some(LONG)).expect("set");
        let ended = connection.read(&mut [0; 1]);
        assert!(matches!(ended, Ok(0) | Err(_)) && !is_late(&ended), "{ended:?}");
    }
}

fn is_late(read: &std::io::Result<usize>) -> bool {
    let kind = read.as_ref().err().map(std::io::Error::kind);
    matches!(kind, Some(std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut))
}

/// Neither a view change, nor clients, nor the end of a server end a node that has no descriptor
/// left; and the server is not blamed.
#[test]
fn a_node_without_descriptors_lives_on_and_blames_no_server() {
    let domain = Domain::start_with("quarantine_after = 2\nquarantine_ms = 600000\n");
    let running = pids(&domain.wait_healthy());
    let of = |node: &str, at: usize| {
        let mut those = running.iter().filter(|(name, _)| name == node);
        those.nth(at).expect("it runs").1
    };
    let mut bank = domain.bank(0);
    bank.increment("before").expect("it answers");
    let all = getrlimit(Some(of("n3", 0)));
    let few = Rlimit { current: Some(8), ..all };
    prlimit(Some(of("n3", 0)), Resource::Nofile, few).expect("it is ours");
    let _waiting: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(("127.0.0.1", domain.first_port + 8)).expect("queued"))
        .collect();
    kill_process(of("n3", 1), Signal::KILL).expect("it runs");
    // With what it has in reserve it can start another one, or it waits for a descriptor.
    wait_until("it says what it lacks", || domain.told().contains("no file descriptor is left"));
    // Two of three nodes are left, so that the ring needs the third, and it must store the view.
    kill_process(of("n2", 0), Signal::KILL).expect("it runs");
    wait_until("n2 is gone", || is_gone(of("n2", 0)));
    bank.increment("after the view change").expect("it answers");
    assert!(!is_gone(of("n3", 0)), "{}", domain.told());
    prlimit(Some(of("n3", 0)), Resource::Nofile, all).expect("it is ours");
    wait_until("its server runs again", || server(&domain, 2)["state"] == "running");
    let restarts = server(&domain, 2)["restarts"].as_u64();
    assert!(restarts <= Some(1), "{restarts:?}");
    let told = domain.told();
    let lines = told.matches("no file descriptor is left: new clients wait").count();
    assert!(lines <= 3, "{lines} in a minute or two: {told}");
}

fn getrlimit(pid: Option<Pid>) -> Rlimit {
    // Asked for by setting what is there.
    let ours = rustix::process::getrlimit(Resource::Nofile);
    let most = Rlimit { current: ours.maximum, maximum: ours.maximum };
    prlimit(pid, Resource::Nofile, most).expect("it is ours")
}

#[test]
fn a_server_that_prints_without_end_fills_no_disk() {
    let script = format!(
        "(yes 0123456789 | head -c 100000000 &) ; exec {QUORBA} servant bank --port {{port}}"
    );
    let domain = Domain::start_group(&format!(
        "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"sh\", \"-c\", {script:?}]\nstate_object = \"bank\"\nobject_key = \"bank\"\n"
    ));
    domain.wait_healthy();
    let left_out = || server(&domain, 0)["output_left_out_bytes"].as_u64().unwrap_or_default();
    wait_until("most of it is left out", || left_out() > 50_000_000);
    let what = "the server prints faster than its log is written";
    domain.told_once(what, |told| told.contains(what));
    let logs = fs::read_dir(state_dir(&domain, "n1").join("logs")).expect("a folder");
    let bytes: u64 = logs.map(|file| file.and_then(|f| f.metadata()).expect("there").len()).sum();
    assert!(bytes < 40_000_000, "{bytes}");
}
