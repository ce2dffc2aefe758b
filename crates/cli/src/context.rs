//! What every command is given besides its own arguments: where to print, and for how long.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anstream::ColorChoice;
use quorba_config::Domain;
use rustix::event::{PollFd, PollFlags};
use serde::Serialize;
use serde_json::json;

use crate::args::{Arguments, Colour, Format};
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// Where to print, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Text or JSON.
    pub format: Format,
    /// `--timeout`, if it was given.
    pub timeout: Option<Duration>,
    colour: ColorChoice,
    start: Instant,
}

impl Context {
    pub fn new(arguments: &Arguments) -> Self {
        let colour = match arguments.color {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        };
        let start = Instant::now();
        Self { format: arguments.output, timeout: arguments.timeout, colour, start }
    }

    /// Whether `-o json` was given.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// The deadline of a command that takes `default` at the longest unless told otherwise.
    pub fn deadline(&self, default: Duration) -> Deadline {
        let time = self.timeout.unwrap_or(default);
        Deadline { at: self.start + time, time }
    }

    /// Prints data: text as it is, without colour where it would not be seen.
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        let mut out = anstream::AutoStream::new(io::stdout().lock(), self.colour);
        finish(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// Prints data as one line of JSON.
    pub fn print_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(value).map_err(|error| Failure::output(&error))?;
        line.push(b'\n');
        let mut out = io::stdout().lock();
        finish(out.write_all(&line).and_then(|()| out.flush()))
    }

    /// Talks: a line for people, on standard error.
    pub fn tell(&self, line: impl Display) {
        let mut out = anstream::AutoStream::new(io::stderr().lock(), self.colour);
        // Whoever closed standard error does not want to hear.
        let _ = writeln!(out, "{line}");
    }

    /// Whether standard output is a pipe whose reader has gone: what goes on for ever ends then.
    pub fn nobody_reads(&self) -> bool {
        let out = io::stdout();
        let mut awaited = [PollFd::new(&out, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        rustix::event::poll(&mut awaited, Some(&now)).is_ok()
            && awaited[0].revents().intersects(gone)
    }

    /// Whether standard output is a terminal that can be redrawn.
    pub fn can_redraw(&self) -> bool {
        !self.is_json() && io::stdout().is_terminal()
    }

    /// Tells why the command failed, in the form that was asked for.
    pub fn tell_failure(&self, failure: &Failure) {
        if self.is_json() {
            self.tell(failure.to_json());
        } else {
            self.tell(failure);
        }
    }

    /// Reads the domain file; its warnings are told.
    pub fn load(&self, path: &Path) -> Result<Domain, Failure> {
        Domain::load(path).map_err(|report| {
            let errors = report.error_count();
            let what = match errors {
                1 => format!("{} has an error", path.display()),
                _ => format!("{} has {errors} errors", path.display()),
            };
            let next = match path.exists() {
                true => format!("quorba config check {}", path.display()),
                false => "run this in the folder of the domain file, or name the file with \
                          --config FILE"
                    .to_owned(),
            };
            let colour = self.colours_stderr();
            Failure::new(codes::DOMAIN_FILE, Exit::Failed, what, next)
                .detail(report.render(colour))
                .data(json!({ "problems": crate::command::config::problems_json(&report) }))
        })
    }

    /// Whether standard error shows colour.
    pub fn colours_stderr(&self) -> bool {
        let choice = anstream::AutoStream::choice(&io::stderr());
        let choice = if self.colour == ColorChoice::Auto { choice } else { self.colour };
        choice != ColorChoice::Never && !self.is_json()
    }

    /// Whether standard output shows colour.
    pub fn colours_stdout(&self) -> bool {
        let choice = anstream::AutoStream::choice(&io::stdout());
        let choice = if self.colour == ColorChoice::Auto { choice } else { self.colour };
        choice != ColorChoice::Never && !self.is_json()
    }
}

/// Output that nobody reads any more (`quorba status | head -1`) is no failure.
fn finish(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::output(&error)),
        Ok(()) => Ok(()),
    }
}

/// The time at which a command gives up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Instant,
    /// The whole time that the command had, for messages.
    pub time: Duration,
}

impl Deadline {
    /// What is left; zero if it has passed.
    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn has_passed(&self) -> bool {
        self.left().is_zero()
    }
}
