//! A client of the services on one ORB: a process that does what it is told, one operation at a
//! time, and who tells it to do again what has come to no end.
//!
//! What it is not: a judge of what it is told; `work.rs` knows what may be.
//!
//! Invariants: repeated is what the standard lets a client repeat (FT-CORBA table 23-1), and of
//! each repetition it is known whether the one before may have been done; dropped, no process is
//! left.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::super::Context;
use crate::examples::Example;
use crate::place::Place;
use crate::{omniorbpy, workspace};

/// How long one operation may be repeated.
const SERVED_TIME_MAX: Duration = Duration::from_secs(40);
/// How long who was refused waits before it asks again.
const PAUSE: Duration = Duration::from_millis(50);
/// What may be repeated, whether or not it may have been done (FT-CORBA table 23-1).
const REPEATED: [&str; 4] = ["COMM_FAILURE", "TRANSIENT", "NO_RESPONSE", "OBJ_ADAPTER"];

/// Which ORB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Omniorb,
    Jacorb,
    Omniorbpy,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Omniorb, Self::Jacorb, Self::Omniorbpy];

    /// What its names begin with.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Omniorb => "cpp",
            Self::Jacorb => "java",
            Self::Omniorbpy => "python",
        }
    }

    fn command(self, context: &Context) -> Result<Command, String> {
        match self {
            Self::Omniorb => {
                let program = Example::OmniorbManager.built().join("services_client");
                Ok(Place::Here.command(&program))
            }
            Self::Jacorb => {
                let program = Example::JacorbBank.built().join("bin/services-client");
                Ok(Place::Here.command(&program))
            }
            Self::Omniorbpy => {
                let script = workspace::root().join("examples/omniorbpy-services/client.py");
                let mut command = omniorbpy::command(&script).ok_or("no omniORBpy")?;
                command.env("PYTHONPATH", omniorbpy::stubs(&context.folder, &["FT.idl"])?);
                Ok(command)
            }
        }
    }
}

/// What came of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Ok(Vec<String>),
    /// The name of a user exception.
    User(String),
    System {
        name: String,
        completed: String,
        minor: String,
    },
}

impl Answer {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split('\t').map(String::from);
        let name = |id: String| {
            let id = id.strip_suffix(":1.0").unwrap_or(&id).to_owned();
            id.rsplit(['/', ':']).next().unwrap_or_default().to_owned()
        };
        Some(match words.next()?.as_str() {
            "ok" => Self::Ok(words.collect()),
            "user" => Self::User(name(words.next()?)),
            "system" => Self::System {
                name: name(words.next()?),
                completed: words.next()?,
                minor: words.next()?,
            },
            _ => return None,
        })
    }
}

/// What came of an operation, repeated as often as it had to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What was returned, or the name of a user exception.
    pub(super) answer: Result<Vec<String>, String>,
    /// How many calls before the last may have been done.
    pub(super) doubts: usize,
}

pub(super) struct Client {
    pub(super) kind: Kind,
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// How many calls were made again.
    pub(super) repeated: usize,
}

impl Client {
    /// One that calls the services behind these references.
    pub(super) fn start(
        context: &Context,
        kind: Kind,
        naming: &str,
        manager: &str,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{kind:?}: {error}");
        let log = context.folder.join(format!("{}.err", kind.word()));
        let err = File::create(log).map_err(failed)?;
        let mut command = kind.command(context)?;
        command.args([naming, manager]);
        if kind != Kind::Jacorb {
            // As docs/how-to/omniorb.md has it, and more patient: to create a group takes a while.
            command.args(["-ORBclientCallTimeOutPeriod", "60000"]);
            command.args(["-ORBimmediateAddressSwitch", "1"]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(err);
        let mut process = command.spawn().map_err(failed)?;
        let (to, from) = (process.stdin.take(), process.stdout.take());
        let (Some(to), Some(from)) = (to, from) else { return Err("no pipes".into()) };
        Ok(Self { kind, process, to, from: BufReader::new(from), repeated: 0 })
    }

    fn call(&mut self, words: &[&str]) -> Result<Answer, String> {
        let told = |error: std::io::Error| format!("{:?} {words:?}: {error}", self.kind);
        writeln!(self.to, "{}", words.join("\t")).map_err(told)?;
        self.to.flush().map_err(told)?;
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(told)?;
        let answer = Answer::parse(line.trim_end_matches(['\r', '\n']));
        answer.ok_or_else(|| format!("{:?} {words:?}: answered {line:?}", self.kind))
    }

    /// Does it until it is answered by a result or a user exception other than those of
    /// `passing`.
    pub(super) fn does(&mut self, words: &[&str], passing: &[&str]) -> Result<Outcome, String> {
        let began = Instant::now();
        let mut doubts = 0;
        loop {
            let why = match self.call(words)? {
                Answer::Ok(found) => return Ok(Outcome { answer: Ok(found), doubts }),
                Answer::User(name) if passing.contains(&name.as_str()) => name,
                Answer::User(name) => return Ok(Outcome { answer: Err(name), doubts }),
                Answer::System { name, completed, minor } => {
                    let told = format!("{name} {completed} {minor}");
                    if !REPEATED.contains(&name.as_str()) || completed == "yes" {
                        return Err(format!("{:?} {words:?}: {told}", self.kind));
                    }
                    doubts += usize::from(completed == "maybe");
                    told
                }
            };
            if began.elapsed() > SERVED_TIME_MAX {
                return Err(format!("{:?} {words:?}: not served, last {why}", self.kind));
            }
            self.repeated += 1;
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It cannot fail but for a process that has ended already.
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_the_names_of_exceptions() {
        let user = Answer::parse("user\tIDL:omg.org/CosNaming/NamingContext/NotFound:1.0");
        assert_eq!(user, Some(Answer::User("NotFound".into())));
        let system = Answer::parse("system\tIDL:omg.org/CORBA/TRANSIENT:1.0\tno\t7");
        let (name, completed) = ("TRANSIENT".into(), "no".into());
        assert_eq!(system, Some(Answer::System { name, completed, minor: "7".into() }));
        assert_eq!(Answer::parse("ok\ta\tb"), Some(Answer::Ok(vec!["a".into(), "b".into()])));
        assert_eq!(Answer::parse(""), None);
    }
}
