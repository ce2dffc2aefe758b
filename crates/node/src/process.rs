//! Starting a server so that it cannot outlive its node.
//!
//! A server is started through this very program, in two steps: `quorba exec-server --keep
//! COMMAND...` is its keeper (`keeper`), which starts `quorba exec-server PID COMMAND...`: that
//! asks the kernel to kill it when the keeper dies, then becomes the command. That needs no code
//! between fork and exec in a process with threads, hence no unsafe.
//!
//! Invariant: a server has the limits and settings that its node was started with, not those that
//! the node has given itself.

use crate::keeper;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, setrlimit};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Before the command: this process is to be a keeper.
pub(crate) const KEEP: &str = "--keep";
/// Before the process id: what the server's node did without, and the server need not.
pub(crate) const HUGE_PAGES: &str = "--huge-pages";
/// Before the process id, with a number: how many descriptors the server may have.
pub(crate) const DESCRIPTORS: &str = "--descriptors";

/// Raises the number of descriptors that this process may have to the most that it may give
/// itself. Gives that, and what it was, for the servers: a program that thinks of `select` (2)
/// fails with more than 1024.
pub(crate) fn raise_descriptors() -> (u64, u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let before = current.unwrap_or(u64::MAX);
    let most = Rlimit { current: maximum, maximum };
    match setrlimit(Resource::Nofile, most) {
        Ok(()) => (maximum.unwrap_or(u64::MAX), before),
        Err(_) => (before, before),
    }
}

/// How many descriptors this process may have now.
pub(crate) fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

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
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_there = |at: usize, word: &str| arguments.get(at).is_some_and(|found| found == word);
    let at = usize::from(is_there(0, HUGE_PAGES));
    let at = if is_there(at, DESCRIPTORS) { at + 2 } else { at };
    if is_there(at, KEEP) {
        // What stands before it is for the server, and so is the word that led here.
        let here = std::env::args_os().skip(1).take_while(|word| word != KEEP);
        let launcher: Vec<OsString> = here.collect();
        return keeper::keep(&launcher, &arguments[at + 1..]).map(|never| match never {});
    }
    become_server(arguments)
}

fn become_server(arguments: Vec<OsString>) -> Result<(), String> {
    let mut arguments = arguments.into_iter().peekable();
    let number = |text: Option<OsString>| text.and_then(|text| text.to_str()?.parse::<u64>().ok());
    let huge_pages = arguments.next_if(|argument| argument == HUGE_PAGES).is_some();
    let descriptors = match arguments.next_if(|argument| argument == DESCRIPTORS) {
        Some(_) => Some(number(arguments.next()).ok_or("--descriptors wants a number")?),
        None => None,
    };
    let parent = number(arguments.next())
        .and_then(|number| Pid::from_raw(i32::try_from(number).ok()?))
        .ok_or("the first argument must be the parent's process id")?;
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
    if let Some(descriptors) = descriptors {
        let limit = Rlimit { current: Some(descriptors), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, limit)
            .map_err(|error| format!("cannot give the server its limit of descriptors: {error}"))?;
    }
    Err(cannot_start(&program, Command::new(&program).args(arguments).exec()))
}

/// How a process ends that could not become a server, as shells do.
pub(crate) const NOT_STARTED: u8 = 127;
/// What it says then begins so.
pub(crate) const CANNOT_START: &str = "cannot start ";

fn cannot_start(program: &OsStr, error: std::io::Error) -> String {
    let at = std::env::current_dir().map_or_else(|_| "?".into(), |path| path.display().to_string());
    let program = program.to_string_lossy();
    let from = if program.starts_with('/') { String::new() } else { format!(" (from {at})") };
    format!("{CANNOT_START}{program}{from}: {error}")
}
