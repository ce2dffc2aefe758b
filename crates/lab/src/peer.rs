//! Processes of a run that belong to the laboratory itself, started and ended by it.
//!
//! What it is not: what those processes do, which is in [`mod@crate::bare`].
//!
//! Invariants: a [`Peer`] is ready when it has been started; it is gone, and waited for, when it
//! has been dropped; it ends by itself if the laboratory is killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::LabError;

/// What a process prints when it can be used.
pub(crate) const READY: &str = "READY\n";
/// How long a process may take until it is ready. Members of JGroups that began at the same time
/// may each make a cluster of their own, and look for others only half a minute later.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// How long a node has to end its server and itself.
const GRACE: Duration = Duration::from_secs(5);
/// Pause between two looks at a process that should end.
const LOOK: Duration = Duration::from_millis(5);
/// Octets of a log that stand in an error.
const LOG_TAIL_LEN: usize = 1_500;

/// A process, its role in a block, and where its talk goes.
pub(crate) struct Peer {
    child: Child,
    /// A name for records, such as `server` or `n1`.
    pub(crate) name: String,
    log: Option<PathBuf>,
}

impl Peer {
    /// Starts `program lab peer ARGUMENTS` and waits until it is ready. It ends when its
    /// standard input does, hence with this process at the latest.
    pub(crate) fn start<Argument: AsRef<OsStr>>(
        name: &str,
        program: &Path,
        arguments: &[Argument],
    ) -> Result<Self, LabError> {
        let mut command = Command::new(program);
        command.args(["lab", "peer"]).args(arguments).stdin(Stdio::piped());
        Self::start_ready(name, &mut command)
    }

    /// A process that keeps `core` from halting whenever nobody else wants it.
    pub(crate) fn start_spinner(program: &Path, core: usize) -> Result<Self, LabError> {
        // chrt, because the call that it makes is in no library that needs no unsafe.
        let mut command = Command::new("chrt");
        command.args(["--idle", "0"]).arg(program).args(["lab", "peer", "spin", "--core"]);
        command.arg(core.to_string()).stdin(Stdio::piped());
        Self::start_ready(&format!("spinner {core}"), &mut command)
    }

    /// Starts a command that prints [`READY`] when it is.
    pub(crate) fn start_ready(name: &str, command: &mut Command) -> Result<Self, LabError> {
        let doing = format!("start {name} ({})", command.get_program().to_string_lossy());
        let child = command.stdout(Stdio::piped()).spawn().map_err(LabError::system(&*doing))?;
        // Whatever happens from here on, the process is ended.
        let mut peer = Self { child, name: name.to_owned(), log: None };
        let mut output = peer.child.stdout.take().expect("its output is a pipe");
        await_ready(&mut output).map_err(LabError::system(doing))?;
        Ok(peer)
    }

    /// Starts a command whose output goes to `log`; whether it is ready is seen elsewhere.
    pub(crate) fn start_logged(
        name: &str,
        command: &mut Command,
        log: PathBuf,
    ) -> Result<Self, LabError> {
        let doing = format!("start {name} ({})", command.get_program().to_string_lossy());
        let mut start = || {
            let file = File::create(&log)?;
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()
        };
        let child = start().map_err(LabError::system(doing))?;
        Ok(Self { child, name: name.to_owned(), log: Some(log) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Why it is of no use any more; `None` while it runs.
    pub(crate) fn death(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(format!("{} ended with {status}", self.name)),
            Err(error) => Some(format!("{} cannot be watched: {error}", self.name)),
        }
    }

    /// The end of its log, for an error that it explains.
    pub(crate) fn log_tail(&self) -> String {
        let text = self.log.as_ref().and_then(|log| fs::read(log).ok()).unwrap_or_default();
        let start = text.len().saturating_sub(LOG_TAIL_LEN);
        String::from_utf8_lossy(&text[start..]).trim().to_owned()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) -> Result<(), LabError> {
        // It is waited for by its drop only, so the id is still its own.
        let pid = rustix::process::Pid::from_child(&self.child);
        let doing = format!("send {signal:?} to {}", self.name);
        rustix::process::kill_process(pid, signal)
            .map_err(|error| LabError::system(doing)(error.into()))
    }

    /// Asks it to end; for those whose end takes a while, before they are dropped.
    pub(crate) fn ask_to_end(&mut self) {
        drop(self.child.stdin.take());
        // It may be gone already.
        let _gone = self.signal(rustix::process::Signal::TERM);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.ask_to_end();
        let deadline = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                let _gone = self.child.kill();
                let _status = self.child.wait();
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

fn await_ready(output: &mut ChildStdout) -> io::Result<()> {
    let deadline = Instant::now() + READY_WITHIN;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&left)) {
            Ok(0) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it is not ready in time"));
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut octet = [0];
        if output.read(&mut octet)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended at once"));
        }
        line.push(octet[0]);
    }
    if line == READY.as_bytes() {
        return Ok(());
    }
    let line = String::from_utf8_lossy(&line).trim().to_owned();
    Err(io::Error::other(format!("it says {line:?} instead of being ready")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stderr(Stdio::null());
        command
    }

    #[test]
    fn ready_is_waited_for_and_the_end_too() {
        let peer = Peer::start_ready("a", &mut shell("echo READY; read line")).expect("ready");
        let pid = peer.pid();
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        drop(peer);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn whoever_is_not_ready_is_told() {
        for (script, word) in [("exit 3", "ended"), ("echo no; read line", "\"no\"")] {
            let error = Peer::start_ready("b", &mut shell(script)).err().expect("a refusal");
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn a_death_is_explained_by_the_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("c.log");
        let mut peer =
            Peer::start_logged("c", &mut shell("echo because; exit 4"), log).expect("started");
        let death = loop {
            if let Some(death) = peer.death() {
                break death;
            }
            thread::sleep(LOOK);
        };
        assert!(death.contains('4'), "{death}");
        assert_eq!(peer.log_tail(), "because");
    }
}
