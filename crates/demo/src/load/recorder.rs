//! The file in which calls are recorded as they end, one line of JSON each.
//!
//! What it is not: a buffer that a crash could empty: what was recorded reaches the file within
//! [`FLUSH_EVERY`] as long as calls end.
//!
//! Invariant: a line is whole or the last; a writing error is kept and told once, at the end,
//! because a recording with a hole in it would show lost calls that are none.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::record::CallRecord;

/// The longest that a record waits for the next one before it goes to the file.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

pub(super) struct Recorder(Mutex<Inner>);

struct Inner {
    file: BufWriter<File>,
    flushed: Instant,
    fault: Option<io::Error>,
}

impl Recorder {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        Ok(Self(Mutex::new(Inner { file, flushed: Instant::now(), fault: None })))
    }

    pub(super) fn note(&self, record: &CallRecord) {
        let mut line = serde_json::to_vec(record).expect("a record is plain data");
        line.push(b'\n');
        let mut inner = self.0.lock().expect("no holder panics");
        let mut written = inner.file.write_all(&line);
        if inner.flushed.elapsed() >= FLUSH_EVERY {
            inner.flushed = Instant::now();
            written = written.and(inner.file.flush());
        }
        if let Err(error) = written {
            inner.fault.get_or_insert(error);
        }
    }

    /// Brings everything to the file.
    pub(super) fn flush(&self) {
        let mut inner = self.0.lock().expect("no holder panics");
        if let Err(error) = inner.file.flush() {
            inner.fault.get_or_insert(error);
        }
    }

    /// What went wrong with the file, if anything did.
    pub(super) fn fault(&self) -> Option<String> {
        self.0.lock().expect("no holder panics").fault.as_ref().map(ToString::to_string)
    }
}
