//! The process between a node and one of its servers, which ends with everything that the server
//! has started, also when the node is killed.
//!
//! A node cannot do that itself: when it is killed, nobody is left to look for a child of the
//! server that has a session of its own (`setsid`). So each server has a keeper: the adopter
//! (`PR_SET_CHILD_SUBREAPER`) of all that its descendants leave behind. Its standard input is a
//! socket to the node: it tells the server's process id there, takes the order to end it politely,
//! and sees the node's end. A keeper is killed with its server: the kernel ends the server with it.
//!
//! What it is not: a judge of how a server ends; it ends in the same way, for its node to see.
//! Invariants: it does not outlive what it keeps by more than [`END_WITHIN`]; a process id is
//! used only while nobody else can have it.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, kill_process,
    kill_process_group, pidfd_open, setrlimit, wait,
};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The order to end the server politely.
pub(crate) const END_POLITELY: u8 = b'T';
/// How long what does not die is looked after: a process in the middle of a broken disk's call.
const END_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked whether all have died.
const LOOK: Duration = Duration::from_millis(2);

/// Starts the server by `launcher` with its `command`, keeps it, and ends as it does.
///
/// # Errors
/// It could not be started.
pub(crate) fn keep(launcher: &[OsString], command: &[OsString]) -> Result<Infallible, String> {
    let me = getpid();
    rustix::process::set_child_subreaper(Some(me))
        .map_err(|error| format!("cannot adopt what a server leaves behind: {error}"))?;
    // The very same program, also if its file was replaced meanwhile.
    let mut server = Command::new("/proc/self/exe");
    server.arg0("quorba").args(launcher).arg(me.as_raw_nonzero().to_string()).args(command);
    server.stdin(Stdio::null()).process_group(0);
    let child = server.spawn().map_err(|error| format!("cannot start the server: {error}"))?;
    drop(server);
    let pid = Pid::from_child(&child);
    let told = format!("{}\n", pid.as_raw_nonzero());
    let is_alone = rustix::io::write(io::stdin(), told.as_bytes()).is_err();
    if !is_alone {
        look_after(pid, io::stdin())
            .map_err(|error| format!("cannot look after the server: {error}"))?;
    }
    let status = end_all(pid);
    end_as(status)
}

/// Until the server or its node has ended, from which `orders` come.
fn look_after(pid: Pid, orders: impl AsFd) -> io::Result<()> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        let mut awaited = [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(&orders, PollFlags::IN)];
        match poll(&mut awaited, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if !awaited[0].revents().is_empty() {
            return Ok(());
        }
        let mut order = [0; 16];
        match rustix::io::read(&orders, &mut order) {
            Ok(0) => return Ok(()),
            Ok(count) if order[..count].contains(&END_POLITELY) => {
                // It has not been waited for, so the number is its own.
                let _ = kill_process_group(pid, Signal::TERM);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills everything that is left, and gives how the server ended; none if that cannot be known.
fn end_all(server: Pid) -> Option<WaitStatus> {
    let until = Instant::now() + END_WITHIN;
    let mut status = None;
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, ended))) if pid == server => status = Some(ended),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                // Nobody is left: whatever a descendant leaves is ours.
                Err(_) => return status,
            }
        }
        if Instant::now() >= until {
            return status;
        }
        if status.is_none() {
            let _ = kill_process_group(server, Signal::KILL);
        }
        for pid in descendants(getpid()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(LOOK);
    }
}

/// All processes below this one. One may have ended, but nobody can have its number: it waits for
/// its parent, which is below this one, or is this one.
fn descendants(of: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for process in processes.filter_map(Result::ok) {
        let number = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(number) = number else { continue };
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
        if let Some(parent) = parent_of(&stat) {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut found = vec![of.as_raw_nonzero().get()];
    let mut at = 0;
    while let Some(parent) = found.get(at) {
        found.extend(children.remove(parent).unwrap_or_default());
        at += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// The parent's number in `/proc/PID/stat`. The program's name before it may have any letters.
fn parent_of(stat: &str) -> Option<i32> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

/// As the server, so that the node sees what it would see of it.
fn end_as(status: Option<WaitStatus>) -> ! {
    let Some(status) = status else { std::process::exit(1) };
    if let Some(signal) = status.terminating_signal().and_then(Signal::from_named_raw) {
        // One image of the server is enough.
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        let _ = setrlimit(Resource::Core, none);
        let _ = kill_process(getpid(), signal);
        std::thread::sleep(Duration::from_millis(100));
    }
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    std::process::exit(status.exit_status().or(signal).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_of("77 (a) b (c)) S 12 77 77 0 -1"), Some(12));
        assert_eq!(parent_of("nonsense"), None);
    }

    /// A server that ends with 7 when it is asked to.
    fn polite() -> std::process::Child {
        let mut shell = Command::new("sh");
        let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
        shell.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        shell.stderr(Stdio::null()).process_group(0);
        let mut shell = shell.spawn().expect("a shell");
        let mut ready = [0; 6];
        let out = shell.stdout.as_mut().expect("it is piped");
        std::io::Read::read_exact(out, &mut ready).expect("it is ready");
        shell
    }

    #[test]
    fn a_server_ends_politely_on_order_and_not_for_another_word() {
        let (mut node, orders) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let mut server = polite();
        let pid = Pid::from_child(&server);
        let keeper = std::thread::spawn(move || look_after(pid, orders));
        std::io::Write::write_all(&mut node, b"x").expect("it listens");
        std::io::Write::write_all(&mut node, &[END_POLITELY]).expect("it listens");
        keeper.join().expect("it ends").expect("as it should");
        assert_eq!(server.wait().expect("it has ended").code(), Some(7));
    }

    #[test]
    fn the_end_of_its_node_ends_the_wait_for_a_server_that_runs() {
        let (node, orders) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let mut server = polite();
        let pid = Pid::from_child(&server);
        let keeper = std::thread::spawn(move || look_after(pid, orders));
        drop(node);
        keeper.join().expect("it ends").expect("as it should");
        assert!(server.try_wait().expect("asked").is_none(), "its end is another step");
        server.kill().expect("it runs");
        server.wait().expect("it ends");
    }

    #[test]
    fn children_and_their_children_are_found() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & wait"]).stdin(Stdio::null()).process_group(0);
        let mut shell = shell.spawn().expect("a shell");
        let pid = Pid::from_child(&shell);
        while descendants(pid).is_empty() {
            std::thread::sleep(LOOK);
        }
        assert!(descendants(getpid()).contains(&pid));
        kill_process_group(pid, Signal::KILL).expect("it runs");
        shell.wait().expect("it ends");
    }
}
