//! Starting a server so that it cannot outlive its node.
//!
//! A server is started through this very program: `quorba exec-server PID COMMAND...` asks the
//! kernel to kill it when the node's thread dies, then becomes the command. That needs no code
//! between fork and exec in a process with threads, hence no unsafe.

use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Before the process id: what the server's node did without, and the server need not.
pub(crate) const HUGE_PAGES: &str = "--huge-pages";

/// Asks for no huge pages: to clear one keeps the ring waiting for 3 ms. Whether this process had
/// them, so that its servers, which inherit that, are to be given them back with [`HUGE_PAGES`].
pub(crate) fn do_without_huge_pages() -> bool {
    // A kernel that knows nothing of it has none.
    let had = rustix::thread::transparent_huge_pages_are_disabled() == Ok(false);
    had && rustix::thread::disable_transparent_huge_pages(true).is_ok()
}

/// The hidden subcommand; see the module's text. Returns only if the command cannot be started.
///
/// # Errors
/// What is wrong with the command line or with the program it names.
pub fn exec_server(arguments: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let mut arguments = arguments.into_iter().peekable();
    let huge_pages = arguments.next_if(|argument| argument == HUGE_PAGES).is_some();
    let parent = arguments
        .next()
        .and_then(|text| text.to_str()?.parse().ok())
        .and_then(Pid::from_raw)
        .ok_or("the first argument must be the node's process id")?;
    let program = arguments.next().ok_or("no command")?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot tie the server to its node: {error}"))?;
    if rustix::process::getppid() != Some(parent) {
        return Err("the node ended before its server began".into());
    }
    if huge_pages {
        rustix::thread::disable_transparent_huge_pages(false)
            .map_err(|error| format!("cannot give the server huge pages back: {error}"))?;
    }
    let error = Command::new(&program).args(arguments).exec();
    Err(format!("cannot start {}: {error}", program.to_string_lossy()))
}
