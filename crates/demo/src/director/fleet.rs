//! The node processes of a run: started, killed, paused, and gone at the end.
//!
//! What it is not: the judge of their health; [`super::watch`] asks them.
//!
//! Invariants: when a [`Fleet`] is dropped (at the end, by an error or by a panic), no process of
//! the run is left; if the demo itself is killed, the reaper process does the same. Node processes
//! have process groups of their own, so that Ctrl-C reaches the demo only.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::stage::Stage;
use crate::processes;

/// How long nodes have to end after SIGTERM before they are killed.
const GRACE: Duration = Duration::from_secs(3);
/// Pause between two looks at ending nodes.
const LOOK: Duration = Duration::from_millis(10);
/// The end of a log that an error shows, in bytes.
const LOG_TAIL_BYTES: usize = 2_000;

/// The processes of a run.
pub(super) struct Fleet {
    nodes: Vec<NodeProcess>,
    program: PathBuf,
    domain_file: PathBuf,
    run: PathBuf,
    reaper: Option<Child>,
}

struct NodeProcess {
    name: String,
    log: PathBuf,
    state: State,
}

enum State {
    /// The process runs, or is stopped by SIGSTOP.
    Up { child: Child, paused_until: Option<Instant> },
    /// It was killed, and is started again at the given time; none: when it is asked for.
    Down { start_at: Option<Instant> },
}

/// How a node's process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It runs; its process id.
    Up(u32),
    /// It is stopped by SIGSTOP.
    Paused,
    /// It is not there.
    Down,
}

/// What [`Fleet::poll`] did or found.
#[derive(Debug)]
pub(super) enum Change {
    /// The node was started again.
    Started(usize),
    /// The node runs on after a pause.
    Resumed(usize),
    /// The node ended without being told to.
    Exited(usize, ExitStatus),
}

impl Fleet {
    /// Starts the reaper, and a node process for every node of `stage`.
    pub(super) fn start(stage: &Stage, program: &Path) -> io::Result<Self> {
        let node = |name: &str| NodeProcess {
            name: name.to_owned(),
            log: stage.path().join(format!("{name}.log")),
            state: State::Down { start_at: None },
        };
        let mut fleet = Self {
            nodes: stage.nodes().iter().map(|staged| node(&staged.name)).collect(),
            program: program.to_owned(),
            domain_file: stage.domain_file(),
            run: stage.path().to_owned(),
            reaper: None,
        };
        fleet.reaper = Some(fleet.start_reaper()?);
        for index in 0..fleet.nodes.len() {
            fleet.start_node(index)?;
        }
        Ok(fleet)
    }

    pub(super) fn standing(&self, index: usize) -> Standing {
        match &self.nodes[index].state {
            State::Up { paused_until: Some(_), .. } => Standing::Paused,
            State::Up { child, .. } => Standing::Up(child.id()),
            State::Down { .. } => Standing::Down,
        }
    }

    /// SIGKILL to the node, which is started again after `down_for`; none: when asked for.
    /// False if it does not run.
    pub(super) fn kill(&mut self, index: usize, down_for: Option<Duration>) -> bool {
        let State::Up { child, .. } = &mut self.nodes[index].state else { return false };
        // It cannot fail but for a process that has ended already, which is what is wanted.
        let _ended = child.kill();
        let _status = child.wait();
        let start_at = down_for.map(|time| Instant::now() + time);
        self.nodes[index].state = State::Down { start_at };
        true
    }

    /// Starts the node, which is down, after `down_for`.
    pub(super) fn start_after(&mut self, index: usize, down_for: Duration) {
        if let State::Down { start_at } = &mut self.nodes[index].state {
            *start_at = Some(Instant::now() + down_for);
        }
    }

    /// SIGSTOP to the node, and SIGCONT after `pause`. False if it does not run.
    pub(super) fn pause(&mut self, index: usize, pause: Duration) -> bool {
        let State::Up { child, paused_until: until @ None } = &mut self.nodes[index].state else {
            return false;
        };
        *until = Some(Instant::now() + pause);
        processes::signal(child.id(), Signal::STOP)
    }

    /// Lets every paused node run on, and starts every node that is down, now.
    pub(super) fn restore(&mut self) -> io::Result<Vec<Change>> {
        let now = Instant::now();
        for node in &mut self.nodes {
            match &mut node.state {
                State::Up { paused_until: Some(until), .. } => *until = now,
                State::Up { .. } => {}
                State::Down { start_at } => *start_at = Some(now),
            }
        }
        self.poll()
    }

    /// Does what is due, and notices nodes that ended.
    pub(super) fn poll(&mut self) -> io::Result<Vec<Change>> {
        let now = Instant::now();
        let mut changes = Vec::new();
        for index in 0..self.nodes.len() {
            match &mut self.nodes[index].state {
                State::Up { child, paused_until } => {
                    if let Some(status) = child.try_wait()? {
                        self.nodes[index].state = State::Down { start_at: None };
                        changes.push(Change::Exited(index, status));
                    } else if paused_until.is_some_and(|until| until <= now) {
                        *paused_until = None;
                        processes::signal(child.id(), Signal::CONT);
                        changes.push(Change::Resumed(index));
                    }
                }
                State::Down { start_at: Some(time) } if *time <= now => {
                    self.start_node(index)?;
                    changes.push(Change::Started(index));
                }
                State::Down { .. } => {}
            }
        }
        Ok(changes)
    }

    /// The end of the node's log, for an error that it explains.
    pub(super) fn log_tail(&self, index: usize) -> String {
        let text = fs::read(&self.nodes[index].log).unwrap_or_default();
        let start = text.len().saturating_sub(LOG_TAIL_BYTES);
        String::from_utf8_lossy(&text[start..]).trim().to_owned()
    }

    /// SIGTERM to every node, then SIGKILL to what is left after a while.
    pub(super) fn terminate(&mut self) {
        for node in &mut self.nodes {
            if let State::Up { child, .. } = &node.state {
                // A stopped process ends only when it runs again.
                processes::signal(child.id(), Signal::TERM);
                processes::signal(child.id(), Signal::CONT);
            }
        }
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline && self.nodes.iter_mut().any(NodeProcess::is_running) {
            thread::sleep(LOOK);
        }
        for index in 0..self.nodes.len() {
            self.kill(index, None);
        }
    }

    fn start_node(&mut self, index: usize) -> io::Result<()> {
        let node = &mut self.nodes[index];
        let log = File::options().create(true).append(true).open(&node.log)?;
        let mut command = Command::new(&self.program);
        command
            .args(["node", &node.name, "--config"])
            .arg(&self.domain_file)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = own_group(&mut command).spawn()?;
        node.state = State::Up { child, paused_until: None };
        Ok(())
    }

    fn start_reaper(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["servant", "reaper"]).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = own_group(&mut command).spawn()?;
        let pipe = child.stdin.as_mut().expect("its input is a pipe");
        writeln!(pipe, "{}", self.run.display())?;
        Ok(child)
    }
}

impl NodeProcess {
    fn is_running(&mut self) -> bool {
        match &mut self.state {
            State::Up { child, .. } => child.try_wait().is_ok_and(|status| status.is_none()),
            State::Down { .. } => false,
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for index in 0..self.nodes.len() {
            self.kill(index, None);
        }
        processes::sweep(&self.run);
        if let Some(mut reaper) = self.reaper.take() {
            // With its input closed it finds nothing more to do, and ends.
            drop(reaper.stdin.take());
            let _status = reaper.wait();
        }
    }
}

#[cfg(unix)]
fn own_group(command: &mut Command) -> &mut Command {
    std::os::unix::process::CommandExt::process_group(command, 0)
}
