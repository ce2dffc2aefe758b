//! The exit codes, which scripts and monitors rely on.

use std::process::ExitCode;

/// How a command ended. The numbers never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, and all is well.
    Ok = 0,
    /// It could not be done.
    Failed = 1,
    /// It was done, and the domain is degraded or has no quorum.
    Degraded = 2,
    /// The command line asks for something that does not exist.
    Usage = 3,
    /// The deadline passed first.
    TimedOut = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What `--help` says of the exit codes.
pub const HELP: &str = "\
Exit codes: 0 ok, 1 failed, 2 degraded or not quorate, 3 usage, 4 timed out.
Data goes to standard output, talk to standard error. `quorba explain CODE` explains every code.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_help() {
        let codes = [Exit::Ok, Exit::Failed, Exit::Degraded, Exit::Usage, Exit::TimedOut];
        assert_eq!(codes.map(|exit| exit as u8), [0, 1, 2, 3, 4]);
    }
}
