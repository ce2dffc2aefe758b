//! Where on the network a process or a socket lives: on this host, or in a network namespace.
//!
//! What it is not: the maker of namespaces; [`super::namespaces`] is.
//!
//! Invariant: entering a namespace changes one short-lived thread, never the whole program.

use std::env;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this host.
    Here,
    /// In the namespace of this name.
    Namespace(String),
}

impl Place {
    /// A command that runs there, under the id of the process that is started, and that dies with
    /// this program whatever happens to it.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut words: Vec<&str> = Vec::new();
        if let Self::Namespace(name) = self {
            words.extend(["ip", "netns", "exec", name]);
        }
        // Each of these replaces itself by the next: the process keeps its id.
        if is_program("setpriv") {
            words.extend(["setpriv", "--pdeathsig", "KILL"]);
        }
        let Some((first, rest)) = words.split_first() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }

    /// Runs `work` there. Sockets that it opens and programs that it starts stay there.
    ///
    /// # Errors
    /// Of `work`, or why the place cannot be entered.
    pub fn run<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let Self::Namespace(name) = self else { return work() };
        let in_there = || {
            let path = Path::new("/run/netns").join(name);
            let space =
                File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| format!("cannot enter namespace {name}: {error}"))?;
            work()
        };
        thread::scope(|scope| {
            scope.spawn(in_there).join().unwrap_or_else(|_| Err("a panic in a namespace".into()))
        })
    }
}

/// Whether there is a program of this name on the search path.
fn is_program(name: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|folder| folder.join(name).is_file())
}
