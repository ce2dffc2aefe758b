//! `quorba demo` as a process: it keeps its promises, and leaves nothing behind however it ends.

mod stage;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use quorba_orb::giop::{Completion, ExceptionKind};
use quorba_orb::{CallError, Client, ClientOptions, Reference};

use stage::{QUORBA, free_ports};

/// Where the bank's server looks for a port.
const FIRST_PORT: u16 = 21_000;
/// How long this machine may take for what takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);

/// A demo that has begun its load.
struct Demo {
    process: Child,
    talk: BufReader<ChildStderr>,
    folder: PathBuf,
}

fn begin(flags: &[&str]) -> Demo {
    let mut process = Command::new(QUORBA)
        .args(["demo", "--load", "300", "-o", "json"])
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let talk = BufReader::new(process.stderr.take().expect("a pipe"));
    let mut demo = Demo { process, talk, folder: PathBuf::new() };
    let mut said = String::new();
    loop {
        let begin = said.len();
        let octets = demo.talk.read_line(&mut said).expect("text");
        assert_ne!(octets, 0, "it ended and said:\n{said}");
        if let Some(file) = said[begin..].strip_prefix("domain file: ") {
            demo.folder = Path::new(file.trim()).parent().expect("a folder").to_owned();
            return demo;
        }
    }
}

impl Demo {
    /// The outcome that it prints, when it has ended by itself.
    fn outcome(mut self) -> serde_json::Value {
        let (mut text, mut talk) = (String::new(), String::new());
        self.talk.read_to_string(&mut talk).expect("text");
        let mut out = self.process.stdout.take().expect("a pipe");
        out.read_to_string(&mut text).expect("text");
        let status = self.process.wait().expect("ended");
        assert!(status.success(), "{status}: {text}\n{talk}");
        nothing_is_left(&self.folder);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill");
        assert!(sent.success());
    }
}

fn nothing_is_left(folder: &Path) {
    assert!(!folder.exists(), "{} is left", folder.display());
    assert_eq!(processes_of(folder), Vec::<String>::new());
}

/// The command lines that name the folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy();
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&*folder))
        .collect()
}

#[test]
fn servers_and_nodes_are_killed_and_no_call_is_lost_or_doubled() {
    let outcome = begin(&["--for", "4s", "--kill-every", "1s"]).outcome();
    assert_eq!(outcome["lost"], 0, "{outcome}");
    assert_eq!(outcome["doubled"], 0, "{outcome}");
    assert_eq!(outcome["replicas_equal"], true, "{outcome}");
    assert!(outcome["kills"].as_u64() >= Some(1), "{outcome}");
    assert!(outcome["acknowledged"].as_u64() >= Some(100), "{outcome}");
}

#[test]
fn an_interrupt_ends_the_load_and_accounts_for_it() {
    let demo = begin(&[]);
    demo.signal("-INT");
    let outcome = demo.outcome();
    assert_eq!(outcome["lost"], 0, "{outcome}");
    assert_eq!(outcome["kills"], 0, "{outcome}");
}

#[test]
fn a_demo_that_is_killed_leaves_nothing_either() {
    let mut demo = begin(&[]);
    assert_ne!(processes_of(&demo.folder), Vec::<String>::new());
    demo.signal("-KILL");
    demo.process.wait().expect("ended");
    let deadline = Instant::now() + PATIENCE;
    while demo.folder.exists() || !processes_of(&demo.folder).is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", processes_of(&demo.folder));
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_bank_server_dies_in_the_call_that_it_was_told_to() {
    let port = free_ports(FIRST_PORT, 1);
    let mut server = Command::new(QUORBA)
        .args(["servant", "bank", "--port", &port.to_string(), "--crash-after", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut ready = String::new();
    let mut out = BufReader::new(server.stdout.take().expect("a pipe"));
    out.read_line(&mut ready).expect("text");
    assert_eq!(ready, "READY\n");
    let reference = Reference::parse(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/bank"));
    let mut client = Client::new(&reference.expect("a reference"), ClientOptions::default());
    let mut increment = || client.call("increment", |out| out.write_string(b"r")).map(drop);
    increment().expect("the first call is answered");
    let Err(CallError::System(exception)) = increment() else { panic!("the second one is not") };
    assert_eq!(exception.kind, ExceptionKind::CommFailure);
    assert_eq!(exception.completed, Completion::Maybe);
    assert_eq!(server.wait().expect("ended").signal(), Some(9));
}
