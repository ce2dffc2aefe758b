//! The file of a recording: a line of JSON that says what it is, one for each request with its
//! messages in base64, and one at the end that says whether it is whole.
//!
//! Invariants: a file that was cut off is read up to there; of what is no recording, the line that
//! is wrong is named.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use quorba_admin::requests::Messages;
use quorba_config::Domain;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// The version of the file.
const VERSION: u32 = 1;
/// The longest line that is read, in octets: a message of 16 MiB, its reply, and their base64.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Version of the file.
    pub quorba_recording: u32,
    /// The domain.
    pub domain: String,
    /// The group.
    pub group: String,
    /// The node whose replies were recorded.
    pub node: String,
    /// When it began, µs since 1970.
    pub unix_us: u64,
}

/// The last line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Trailer {
    /// Requests in the file.
    pub requests: u64,
    /// Requests between the first and the last that are not in the file.
    pub missing: u64,
}

/// A whole file.
#[derive(Debug)]
pub struct Recording {
    pub head: Head,
    pub requests: Vec<Messages>,
    /// None if the file was cut off.
    pub foot: Option<Trailer>,
}

impl Head {
    pub fn new(domain: &Domain, group: &str, node: &str, unix_us: u64) -> Self {
        Self {
            quorba_recording: VERSION,
            domain: domain.id.clone(),
            group: group.into(),
            node: node.into(),
            unix_us,
        }
    }
}

/// Writes one line.
pub fn write(to: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

/// Reads the file at `path`.
pub fn read(path: &Path) -> Result<Recording, Failure> {
    let wrong = |what: String| {
        let next = "make one with quorba group record NAME --to FILE";
        let what = format!("{}: {what}", path.display());
        Failure::new(codes::FILE, Exit::Failed, what, next)
    };
    let mut file = BufReader::new(File::open(path).map_err(|error| wrong(error.to_string()))?);
    let mut number = 0_u64;
    let mut next = || -> Result<Option<Vec<u8>>, Failure> {
        let mut line = Vec::new();
        number += 1;
        let read = (&mut file).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        read.map_err(|error| wrong(error.to_string()))?;
        if line.last() == Some(&b'\n') {
            return Ok(Some(line));
        }
        let is_long = line.len() as u64 >= LINE_BYTES_MAX;
        // What was cut off in the middle of a line ends before it.
        if is_long { Err(wrong(format!("line {number} is too long"))) } else { Ok(None) }
    };
    let first = next()?.ok_or_else(|| wrong("it has no first line".into()))?;
    let head: Head = serde_json::from_slice(&first)
        .map_err(|error| wrong(format!("line 1 is not that of a recording: {error}")))?;
    if head.quorba_recording != VERSION {
        let version = head.quorba_recording;
        return Err(wrong(format!("version {version} of the format is not known here")));
    }
    let mut requests = Vec::new();
    while let Some(line) = next()? {
        if let Ok(foot) = serde_json::from_slice::<Trailer>(&line) {
            return Ok(Recording { head, requests, foot: Some(foot) });
        }
        let messages = serde_json::from_slice(&line).map_err(|error| {
            wrong(format!("line {} is no request: {error}", requests.len() + 2))
        })?;
        requests.push(messages);
    }
    Ok(Recording { head, requests, foot: None })
}
