//! Standard input and output of a participant: lines in, JSON lines out.
//!
//! Invariant: a line is bounded; what is written is flushed at once.

use super::command::{Command, parse};
use rustix::io::Errno;
use serde_json::Value;
use std::io::{self, Write};
use std::os::fd::AsFd;

const LINE_BYTES_MAX: usize = 4096;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Director {
    pending: Vec<u8>,
}

impl Director {
    /// Reads what is there; the end of input means [`Command::Quit`].
    pub(crate) fn read(&mut self) -> io::Result<Vec<Command>> {
        let mut buffer = [0; LINE_BYTES_MAX];
        let count = match rustix::io::read(io::stdin().as_fd(), &mut buffer) {
            Ok(0) => return Ok(vec![Command::Quit]),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => 0,
            Err(error) => return Err(error.into()),
        };
        self.pending.extend_from_slice(&buffer[..count]);
        let mut commands = Vec::new();
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            commands.push(parse(text.trim()).map_err(io::Error::other)?);
        }
        if self.pending.len() > LINE_BYTES_MAX {
            return Err(io::Error::other("a line without an end"));
        }
        Ok(commands)
    }
}

/// Prints one line.
pub(crate) fn tell(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()
}
