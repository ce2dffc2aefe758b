//! A server process that runs, seen from its node: through its keeper (`keeper`).
//!
//! Invariant: dropped or ended, the server and all that it has started are gone, or will be as soon
//! as the kernel can; at the latest when this process ends.

use crate::filesystem::is_shortage;
use crate::keeper::END_POLITELY;
use crate::lease::PortLease;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

/// How long a keeper may take to start its server.
const START_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to end everything; longer than it gives itself.
pub(crate) const END_WITHIN: Duration = Duration::from_secs(15);
/// The longest process id, with a line's end.
const PID_BYTES: u64 = 11;

/// Why a server does not run.
#[derive(Debug)]
pub(crate) struct NotStarted {
    pub(crate) reason: String,
    /// The node has no descriptor, process or memory left: the server is not at fault.
    pub(crate) is_ours: bool,
}

impl NotStarted {
    pub(crate) fn because(what: &str, error: &io::Error) -> Self {
        use rustix::io::Errno;
        let is_refused =
            |code| [Errno::AGAIN, Errno::NOMEM].map(Errno::raw_os_error).contains(&code);
        let is_ours = is_shortage(error) || error.raw_os_error().is_some_and(is_refused);
        Self { reason: format!("{what}: {error}"), is_ours }
    }
}

impl From<String> for NotStarted {
    fn from(reason: String) -> Self {
        Self { reason, is_ours: false }
    }
}

/// See the module's text.
pub(crate) struct Running {
    keeper: Child,
    pidfd: OwnedFd,
    orders: UnixStream,
    pid: Option<Pid>,
    /// Given back when the server is gone.
    _port: PortLease,
}

impl Running {
    /// Starts `command`, which is a keeper's; its server is to listen at the leased port.
    pub(crate) fn start(mut command: Command, port: PortLease) -> Result<Self, NotStarted> {
        let shortage = |error| NotStarted::because("no descriptor for its keeper", &error);
        let (orders, theirs) = UnixStream::pair().map_err(shortage)?;
        command.stdin(OwnedFd::from(theirs)).process_group(0);
        let mut keeper = command
            .spawn()
            .map_err(|error| NotStarted::because("cannot start its keeper", &error))?;
        // What the command still has of its pipes would keep them open.
        drop(command);
        let pidfd = match pidfd_open(Pid::from_child(&keeper), PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                drop(orders);
                let _ = keeper.wait();
                return Err(NotStarted::because("it cannot be watched", &error.into()));
            }
        };
        let mut running = Self { keeper, pidfd, orders, pid: None, _port: port };
        running.pid = running.told_pid();
        Ok(running)
    }

    /// What the keeper tells first; nothing if it ends instead.
    fn told_pid(&mut self) -> Option<Pid> {
        self.orders.set_read_timeout(Some(START_WITHIN)).ok()?;
        let mut text = String::new();
        // It says nothing else.
        BufReader::new(Read::by_ref(&mut self.orders).take(PID_BYTES)).read_line(&mut text).ok()?;
        text.trim().parse().ok().and_then(Pid::from_raw)
    }

    /// The server's own.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok())
    }

    /// Becomes readable when it has ended.
    pub(crate) fn pidfd(&self) -> &OwnedFd {
        &self.pidfd
    }

    /// Waits for its end; whether it came.
    pub(crate) fn has_ended(&self, within: Duration) -> bool {
        let limit = quorba_net::timespec(within);
        matches!(poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&limit)), Ok(1))
    }

    /// Asks the server politely to end; whether that could be said.
    pub(crate) fn ask_to_end(&mut self) -> bool {
        self.orders.write_all(&[END_POLITELY]).is_ok()
    }

    /// Has its keeper end the server and everything that it has started.
    pub(crate) fn cut_off(&self) {
        let _ = self.orders.shutdown(Shutdown::Both);
    }

    /// Kills a keeper that takes longer than [`END_WITHIN`]: the kernel ends the server with it.
    pub(crate) fn kill(&self) {
        let _ = kill_process(Pid::from_child(&self.keeper), Signal::KILL);
    }

    /// How the server ended, when it [`Self::has_ended`]; waits for that otherwise.
    pub(crate) fn how_it_ended(&mut self) -> String {
        self.keeper.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Ends the server and everything that it has started; for a thread that may wait.
    fn end(&mut self) {
        self.cut_off();
        if !self.has_ended(END_WITHIN) {
            self.kill();
        }
        self.how_it_ended();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
