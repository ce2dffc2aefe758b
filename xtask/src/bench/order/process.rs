//! One process of a cluster, and the lines that go to it and come from it.
//!
//! Invariant: dropped, the process is gone; whatever it said on stderr is in its log.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::task::WorkerReply;

pub(super) struct Process {
    name: String,
    log: PathBuf,
    child: Child,
    stdin: ChildStdin,
    said: Receiver<WorkerReply>,
}

impl Process {
    /// Starts `command`, called `name` in errors.
    pub(super) fn start(name: String, mut command: Command, log: &Path) -> Result<Self, String> {
        let told = |error| format!("{name}: {error}");
        let file = File::create(log).map_err(told)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(told)?;
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (to_us, said) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Libraries print lines of their own.
                let Ok(one) = serde_json::from_str(&line) else { continue };
                if to_us.send(one).is_err() {
                    break;
                }
            }
        });
        Ok(Self { name, log: log.to_owned(), child, stdin, said })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said on stderr so far.
    pub(super) fn log(&self) -> Result<String, String> {
        fs::read_to_string(&self.log).map_err(|error| format!("{}: {error}", self.log.display()))
    }

    pub(super) fn tell(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.stdin, "{line}").map_err(|error| format!("{}: {error}", self.name))
    }

    /// The next line for which `pick` has a value. What the process says of its failure, or that
    /// it said nothing until `deadline`, is an error.
    pub(super) fn hear<T>(
        &self,
        what: &str,
        deadline: Instant,
        mut pick: impl FnMut(WorkerReply) -> Option<T>,
    ) -> Result<T, String> {
        let name = &self.name;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(WorkerReply::Failed { reason }) => return Err(format!("{name}: {reason}")),
                Ok(said) => {
                    if let Some(value) = pick(said) {
                        return Ok(value);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("{name} is not {what} in time"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let log = self.log().unwrap_or_default();
                    let last = log.lines().last().unwrap_or("it said nothing");
                    return Err(format!("{name} ended before it was {what}: {last}"));
                }
            }
        }
    }

    pub(super) fn signal(&self, with: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It cannot fail but for a process that has ended already.
            let _sent = kill_process(pid, with);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}
