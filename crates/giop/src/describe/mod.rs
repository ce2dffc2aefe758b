//! Messages and references as text for people: for commands that show them, and for errors.
//!
//! What it is not: a format for programs; it may change with every version.
//!
//! Invariants: it never fails, and shows of malformed input what can be read and where the rest
//! stops making sense; what came from outside cannot put control characters into the text, nor
//! make it endless.

mod message;
mod names;
mod reference;

use crate::corbaloc;
use crate::ior::{self, Ior};
use crate::message::Message;
use alloc::string::String;
use core::fmt::{self, Write};

/// Bytes of a dump, after which it only says how many more there are.
const DUMP_BYTES_MAX: usize = 256;
/// Bytes of a name that are shown.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of text, after which nothing more is described.
const TEXT_BYTES_MAX: usize = 24 << 10;
/// Bytes of a dump's line.
const DUMP_LINE_BYTES: usize = 16;

/// Describes a message, over several lines.
#[must_use]
pub fn message(message: &Message) -> String {
    let mut text = Text::default();
    message::describe(&mut text, message);
    text.out
}

/// Describes bytes that should be one message, but may be anything.
#[must_use]
pub fn bytes(bytes: &[u8]) -> String {
    let mut text = Text::default();
    message::describe_bytes(&mut text, bytes);
    text.out
}

/// Describes a reference, over several lines.
#[must_use]
pub fn reference(ior: &Ior) -> String {
    let mut text = Text::default();
    reference::describe(&mut text, ior);
    text.out
}

/// Describes a text that should be an `IOR:` or `corbaloc:`, but may be anything.
#[must_use]
pub fn reference_text(input: &str) -> String {
    let mut text = Text::default();
    let start = input.trim_start().as_bytes();
    if start.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"IOR:")) {
        match ior::octets(input) {
            Err(error) => text.line(format_args!("{error}")),
            Ok(octets) => {
                let (ior, error) = Ior::decode_partly(&octets);
                reference::describe(&mut text, &ior);
                if let Some(error) = error {
                    text.line(format_args!("malformed from here on: {error}"));
                    text.dump(&octets);
                }
            }
        }
        return text.out;
    }
    match corbaloc::parse(input) {
        Ok(corbaloc) => reference::describe_corbaloc(&mut text, &corbaloc),
        Err(error) => text.line(format_args!("{error}")),
    }
    text.out
}

/// Lines with a depth.
#[derive(Default)]
struct Text {
    out: String,
    depth: usize,
    is_full: bool,
}

impl Text {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        if self.is_full {
            return;
        }
        if self.out.len() > TEXT_BYTES_MAX {
            self.is_full = true;
            self.out.push_str("... and so on\n");
            return;
        }
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
        // Writing to a string does not fail.
        let _ = self.out.write_fmt(line);
        self.out.push('\n');
    }

    /// What `inner` writes stands deeper.
    fn deeper(&mut self, inner: impl FnOnce(&mut Self)) {
        self.depth += 1;
        inner(self);
        self.depth -= 1;
    }

    /// Bytes in hexadecimal and as characters, up to a limit.
    fn dump(&mut self, bytes: &[u8]) {
        let shown = bytes.get(..DUMP_BYTES_MAX).unwrap_or(bytes);
        for (index, line) in shown.chunks(DUMP_LINE_BYTES).enumerate() {
            self.line(format_args!("{:04x}  {}", index * DUMP_LINE_BYTES, DumpLine(line)));
        }
        let more = bytes.len() - shown.len();
        if more > 0 {
            self.line(format_args!("and {more} more bytes"));
        }
    }
}

struct DumpLine<'a>(&'a [u8]);

impl fmt::Display for DumpLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for index in 0..DUMP_LINE_BYTES {
            match self.0.get(index) {
                Some(octet) => write!(f, "{octet:02x} ")?,
                None => f.write_str("   ")?,
            }
        }
        f.write_str(" ")?;
        self.0.iter().try_for_each(|octet| {
            let plain = octet.is_ascii_graphic() || *octet == b' ';
            f.write_char(if plain { char::from(*octet) } else { '.' })
        })
    }
}

/// A name or key from outside: what is no plain character is escaped, and the end cut off.
struct Name<'a>(&'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..NAME_BYTES_MAX) {
            Some(begin) if begin.len() < self.0.len() => {
                write!(f, "\"{}\"... ({} bytes)", begin.escape_ascii(), self.0.len())
            }
            _ => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests;
