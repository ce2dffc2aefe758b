//! The file in which a node keeps the catalog of the domain's groups: a whole one, and the changes
//! behind it.
//!
//! ```text
//! 0 "QBGROUPS"  8 version u32   then records: length u32, CRC of the octets u32, octets
//! ```
//!
//! A thread of its own writes and syncs, so that creating groups delays no call; what came
//! meanwhile is synced together. A whole record begins a new file, which takes the place of the old
//! one when it is on disk.
//!
//! What it is not: the catalog. Invariants: what was said to be on disk is found at the next boot;
//! the last record may be torn, and counts as never written; damage in front of others is told, and
//! nothing is taken from such a file.

use crate::NodeError;
use bytes::Bytes;
use quorba_admin::status::millis;
use quorba_base::Position;
use quorba_engine::replica::{Catalog, CatalogRecord};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const MAGIC: &[u8; 8] = b"QBGROUPS";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 12;
/// How long until a disk that took nothing is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// A file that is so much longer than its first record is begun anew.
const GROWTH_MIN: usize = 1 << 20;

/// Why the last try to write came to nothing, and since when.
type WriteFailure = Arc<Mutex<Option<(String, Instant)>>>;

enum Order {
    Write(CatalogRecord),
    /// Answered when everything before it is on disk.
    Sync(Sender<()>),
}

/// See the module's text.
pub(crate) struct CatalogStore {
    path: PathBuf,
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    write_failure: WriteFailure,
    /// Octets behind the last whole record, and of it.
    changes_bytes: usize,
    whole_bytes: usize,
}

impl CatalogStore {
    /// Opens the file in `state_dir`, and gives what it has; `None`: no component has gone on from
    /// this node's domain file yet. `tell` hears how far the disk is.
    ///
    /// # Errors
    /// The file is damaged, or cannot be read or written.
    pub(crate) fn open(
        state_dir: &Path,
        tell: impl Fn(Position) + Send + 'static,
    ) -> Result<(Self, Option<Catalog>), NodeError> {
        let path = state_dir.join("groups.state");
        let failed = |source| NodeError::StateDir { path: path.clone(), source };
        let (records, end) = match fs::read(&path) {
            Ok(octets) => {
                read(&octets).map_err(|what| NodeError::Groups { path: path.clone(), what })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), 0),
            Err(error) => return Err(failed(error)),
        };
        let bytes = records.iter().map(Bytes::len).sum();
        let catalog = Catalog::recover(records)
            .map_err(|what| NodeError::Groups { path: path.clone(), what: what.to_string() })?;
        let file = if end > 0 {
            let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
            // What is behind was torn.
            file.set_len(end as u64).map_err(failed)?;
            Some(file)
        } else {
            None
        };
        let write_failure = WriteFailure::default();
        let (orders, inbox) = channel();
        let worker =
            Worker { path: path.clone(), file, inbox, write_failure: Arc::clone(&write_failure) };
        let thread = std::thread::Builder::new()
            .name("groups".into())
            .spawn(move || worker.run(tell))
            .map_err(NodeError::Resources)?;
        let store = Self {
            path,
            orders: Some(orders),
            thread: Some(thread),
            write_failure,
            changes_bytes: 0,
            whole_bytes: bytes,
        };
        Ok((store, catalog))
    }

    /// Writes a record down, behind those that were given before.
    pub(crate) fn write(&mut self, record: CatalogRecord) {
        if record.is_whole {
            (self.changes_bytes, self.whole_bytes) = (0, record.bytes.len());
        } else {
            self.changes_bytes += record.bytes.len();
        }
        self.order(Order::Write(record));
    }

    /// Whether a whole record is wanted next: the changes are longer than it would be.
    pub(crate) fn wants_whole(&self) -> bool {
        self.changes_bytes > (2 * self.whole_bytes).max(GROWTH_MIN)
    }

    /// Waits until everything that was given is on disk. It is asked for where the durable log
    /// begins, or goes on in another component, so that no log is found without its groups.
    pub(crate) fn sync(&self) {
        let (done, wait) = channel();
        self.order(Order::Sync(done));
        let _ = wait.recv();
    }

    /// What an operator should know of it.
    pub(crate) fn warning(&self) -> Option<String> {
        let write_failure = self.write_failure.lock().expect("no holder panics");
        let (said, since) = write_failure.as_ref()?;
        let path = self.path.display();
        let seconds = millis(since.elapsed()) / 1000;
        Some(format!(
            "{path} cannot be written since {seconds} s: {said}; no group is created, changed or \
             deleted until that works. Free space on its disk, or make it work"
        ))
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The thread ends with its sender only.
            let _ = orders.send(order);
        }
    }
}

impl Drop for CatalogStore {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a node that need not run has on disk; `None`: nothing yet.
///
/// # Errors
/// What is wrong with the file.
pub(crate) fn found(state_dir: &Path) -> Result<Option<Catalog>, String> {
    let octets = match fs::read(state_dir.join("groups.state")) {
        Ok(octets) => octets,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    Catalog::recover(read(&octets)?.0).map_err(|damaged| damaged.to_string())
}

struct Worker {
    path: PathBuf,
    file: Option<File>,
    inbox: Receiver<Order>,
    write_failure: WriteFailure,
}

impl Worker {
    fn run(mut self, tell: impl Fn(Position)) {
        while let Ok(first) = self.inbox.recv() {
            let mut records = Vec::new();
            let mut waiting = Vec::new();
            for order in std::iter::once(first).chain(self.inbox.try_iter()) {
                match order {
                    Order::Write(record) => records.push(record),
                    Order::Sync(done) => waiting.push(done),
                }
            }
            // What stands in front of the last whole one is in it.
            let from = records.iter().rposition(|record| record.is_whole).unwrap_or(0);
            let records = records.split_off(from);
            while let Err(error) = self.put(&records) {
                let mut write_failure = self.write_failure.lock().expect("no holder panics");
                let since = write_failure.as_ref().map_or_else(Instant::now, |(_, since)| *since);
                if write_failure.is_none() {
                    let path = self.path.display();
                    tracing::error!(%path, %error, "the domain's groups could not be written");
                }
                *write_failure = Some((error.to_string(), since));
                drop(write_failure);
                std::thread::sleep(AGAIN);
            }
            self.write_failure.lock().expect("no holder panics").take();
            if let Some(record) = records.last() {
                tell(record.version);
            }
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    fn put(&mut self, records: &[CatalogRecord]) -> io::Result<()> {
        let Some(first) = records.first() else { return Ok(()) };
        let mut octets = Vec::new();
        for record in records {
            octets.extend_from_slice(
                &u32::try_from(record.bytes.len()).unwrap_or(u32::MAX).to_le_bytes(),
            );
            octets.extend_from_slice(&crc32fast::hash(&record.bytes).to_le_bytes());
            octets.extend_from_slice(&record.bytes);
        }
        match &mut self.file {
            Some(file) if !first.is_whole => {
                let end = file.metadata()?.len();
                let written = file.write_all(&octets).and_then(|()| file.sync_data());
                if written.is_err() {
                    // Half of it must not stand in front of the next try.
                    file.set_len(end)?;
                }
                written
            }
            _ => {
                self.file = Some(self.begin(&octets)?);
                Ok(())
            }
        }
    }

    /// A new file in the place of the old one.
    fn begin(&self, octets: &[u8]) -> io::Result<File> {
        let next = self.path.with_extension("next");
        let mut file = File::create(&next)?;
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        file.write_all(octets)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&next, &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        OpenOptions::new().append(true).open(&self.path)
    }
}

/// The records, and where they end.
fn read(octets: &[u8]) -> Result<(Vec<Bytes>, usize), String> {
    if octets.len() < HEAD_BYTES || &octets[..8] != MAGIC {
        return Err("it is no list of groups".into());
    }
    let number = |at: usize| {
        let four = octets.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(four))
    };
    if number(8) != Some(VERSION) {
        return Err("it is of another version of this program".into());
    }
    let (mut records, mut at) = (Vec::new(), HEAD_BYTES);
    while let (Some(length), Some(crc)) = (number(at), number(at + 4)) {
        let end = at + 8 + length as usize;
        match octets.get(at + 8..end) {
            Some(record) if crc32fast::hash(record) == crc => {
                records.push(Bytes::copy_from_slice(record));
                at = end;
            }
            Some(_) if end < octets.len() => return Err(format!("it is damaged at octet {at}")),
            // The last one was not written to its end.
            _ => break,
        }
    }
    if records.is_empty() { Err("its first record is damaged".into()) } else { Ok((records, at)) }
}

#[cfg(test)]
mod tests;
