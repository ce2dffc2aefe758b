//! Processes of a run, found and ended by what their command lines say.
//!
//! What it is not: the owner of child processes; [`crate::director`] is. This finds what is left
//! when an owner was killed: a node's server, or everything if the demo itself was killed.
//!
//! Invariant: only a process whose command line names the run's own folder, or which is such a
//! process by its id at the moment of asking, is ever signalled.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long [`sweep`] goes on finding and ending processes.
const SWEEP_TIME_MAX: Duration = Duration::from_secs(2);
/// Pause between two looks.
const SWEEP_PAUSE: Duration = Duration::from_millis(10);

/// Sends `signal` to the process `pid`; false if there is no such process.
pub(crate) fn signal(pid: u32, signal: Signal) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Sends SIGKILL to `pid` if its command line names `run`; false if it does not.
pub(crate) fn kill_of_run(pid: u32, run: &Path) -> bool {
    of_run(pid, run) && signal(pid, Signal::KILL)
}

/// Ends every process whose command line names `run`, again and again until none is left; a
/// parent that is ended may just have started another child. The ids of what is left.
pub(crate) fn sweep(run: &Path) -> Vec<u32> {
    let deadline = Instant::now() + SWEEP_TIME_MAX;
    loop {
        let left: Vec<u32> = pids().into_iter().filter(|pid| of_run(*pid, run)).collect();
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        for pid in left {
            signal(pid, Signal::KILL);
        }
        thread::sleep(SWEEP_PAUSE);
    }
}

/// Waits until the process at the other end of standard input is gone, however it went, then ends
/// every process of the run whose folder it was told in the first line, and removes the folder.
pub(crate) fn reap_when_orphaned() -> io::Result<()> {
    let mut lines = io::stdin().lock().lines();
    let run = match lines.next() {
        Some(line) => PathBuf::from(line?),
        None => return Ok(()),
    };
    // Nothing more is written; the end of the pipe is the message.
    lines.for_each(drop);
    sweep(&run);
    match fs::remove_dir_all(&run) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn of_run(pid: u32, run: &Path) -> bool {
    let run = run.as_os_str().as_encoded_bytes();
    // Every run's folder has a name of its own, so a command line that contains it is of the run.
    pid != process::id()
        && fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(run.len()).any(|part| part == run))
}

fn pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn sleeper(run: &Path) -> process::Child {
        // A shell that takes the path as its $0 and waits for its input's end.
        let child = Command::new("sh")
            .args(["-c", "read line; :"])
            .arg(run)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        // The parent goes on a moment before the kernel shows the new command line.
        while !of_run(child.id(), run) {
            thread::yield_now();
        }
        child
    }

    #[test]
    fn only_processes_of_the_run_are_ended() {
        let runs = tempfile::tempdir().expect("a folder");
        let (mine, other) = (runs.path().join("run-a"), runs.path().join("run-b"));
        let (mut one, mut two) = (sleeper(&mine), sleeper(&mine));
        let mut foreign = sleeper(&other);
        assert!(!kill_of_run(foreign.id(), &mine));
        assert!(kill_of_run(one.id(), &mine));
        one.wait().expect("ended");
        // A process that has been ended and not been waited for has no command line any more.
        assert!(sweep(&mine).is_empty());
        two.wait().expect("ended");
        assert!(foreign.try_wait().expect("asked").is_none());
        drop(foreign.stdin.take());
        foreign.wait().expect("ended");
    }
}
