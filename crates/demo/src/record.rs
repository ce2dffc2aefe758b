//! A client's own record of its calls: one line of JSON per call, written when its outcome is
//! known. It is one half of the accounting; the servers' histories are the other.
//!
//! What it is not: a log for people, or a measure of the server. It says what the caller saw.
//!
//! Invariants: a line is written once and never changed; times are microseconds of one monotonic
//! clock per recording, whose origin is the client's own.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The outcome of one call, as its caller saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// What the caller named the call; unique per call, such as `c3-17`.
    pub reference: String,
    /// The operation of `Bank::Ledger`.
    pub operation: String,
    /// When the call was begun, in microseconds of the client's clock.
    pub start_us: u64,
    /// When its outcome was known, in microseconds of the client's clock.
    pub end_us: u64,
    /// Whether a reply came that the server itself gave.
    pub outcome: Outcome,
    /// Repository id of the exception, if one was raised (a user exception is an outcome `ok`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// Completion status of a system exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Completed>,
    /// Minor code of a system exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<u32>,
}

/// Whether the server itself answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did: a result or a user exception.
    Ok,
    /// A system exception was raised.
    Exception,
}

/// Completion status of a system exception (CORBA §4.12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Completed {
    /// The operation was executed.
    Yes,
    /// It was not, and never will be.
    No,
    /// Nobody knows.
    Maybe,
}

/// What a record obliges the servers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call was acknowledged: it must stand in every history once.
    Acknowledged,
    /// A user exception was raised: it must stand in no history.
    Raised,
    /// The caller does not know: it may stand in every history, once, or in none.
    Maybe,
    /// The caller was told that nothing happened: it must stand in no history.
    Refused,
    /// It was sent without asking for a reply: like [`Verdict::Maybe`].
    Sent,
}

impl CallRecord {
    /// What the servers owe the caller.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let raised = self.exception.as_deref().is_some_and(|id| !id.is_empty());
        match (self.outcome, self.completed) {
            (Outcome::Ok, _) if raised => Verdict::Raised,
            (Outcome::Ok, _) if self.operation == "note" => Verdict::Sent,
            (Outcome::Ok, _) | (Outcome::Exception, Some(Completed::Yes)) => Verdict::Acknowledged,
            (Outcome::Exception, Some(Completed::No)) => Verdict::Refused,
            (Outcome::Exception, Some(Completed::Maybe) | None) => Verdict::Maybe,
        }
    }

    /// Whether the operation changes the bank, so that a history has to show it.
    #[must_use]
    pub fn changes(&self) -> bool {
        CHANGING_OPERATIONS.contains(&self.operation.as_str())
    }
}

/// The operations that append an entry to the history.
pub const CHANGING_OPERATIONS: [&str; 5] = ["open", "deposit", "transfer", "increment", "note"];

/// All calls of one client process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Who recorded it, for messages.
    pub name: String,
    /// Its calls, in the order in which their outcomes became known.
    pub records: Vec<CallRecord>,
}

/// Why a recording cannot be read.
#[derive(Debug)]
pub enum RecordError {
    /// The file cannot be read: the machine's fault.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A line is no record: the fault of the client that wrote it.
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => {
                write!(f, "cannot read the recording {}: {source}", path.display())
            }
            Self::Malformed { path, line, source } => {
                write!(f, "{}:{line}: not a call's record: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for RecordError {}

/// Reads the recording in the file at `path`; its name is the file's.
///
/// # Errors
/// [`RecordError`]. A last line without its end is passed over: its writer was killed.
pub fn read(path: &Path) -> Result<Recording, RecordError> {
    let text = fs::read_to_string(path)
        .map_err(|source| RecordError::Io { path: path.to_owned(), source })?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut records = Vec::new();
    for (index, line) in whole.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        records.push(serde_json::from_str(line).map_err(|source| RecordError::Malformed {
            path: path.to_owned(),
            line: index + 1,
            source,
        })?);
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Recording { name, records })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> CallRecord {
        serde_json::from_str(line).expect("a record")
    }

    #[test]
    fn verdicts_follow_the_outcome() {
        let ok = r#"{"reference":"c-1","operation":"deposit","start_us":1,"end_us":2,
            "outcome":"ok","exception":null}"#;
        assert_eq!(parsed(ok).verdict(), Verdict::Acknowledged);
        assert_eq!(parsed(&ok.replace("deposit", "note")).verdict(), Verdict::Sent);
        let raised = ok.replace("null", "\"IDL:Bank/NoSuchAccount:1.0\"");
        assert_eq!(parsed(&raised).verdict(), Verdict::Raised);
        let unknown = r#"{"reference":"c-1","operation":"deposit","start_us":1,"end_us":2,
            "outcome":"exception","exception":"IDL:omg.org/CORBA/COMM_FAILURE:1.0",
            "completed":"MAYBE","minor":3}"#;
        assert_eq!(parsed(unknown).verdict(), Verdict::Maybe);
        assert_eq!(parsed(&unknown.replace("MAYBE", "NO")).verdict(), Verdict::Refused);
        assert_eq!(parsed(&unknown.replace("MAYBE", "YES")).verdict(), Verdict::Acknowledged);
    }

    #[test]
    fn a_killed_writer_s_last_line_is_passed_over_and_a_bad_one_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("client.ndjson");
        let line =
            r#"{"reference":"c-1","operation":"open","start_us":1,"end_us":2,"outcome":"ok"}"#;
        fs::write(&path, format!("{line}\n{}", &line[..30])).expect("written");
        let recording = read(&path).expect("readable");
        assert_eq!((recording.name.as_str(), recording.records.len()), ("client", 1));

        fs::write(&path, format!("{line}\n{{}}\n")).expect("written");
        let error = read(&path).expect_err("no record").to_string();
        assert!(error.contains("client.ndjson:2: "), "{error}");
    }
}
