//! The log of one node: appends, group commits, segments.
//!
//! What it is not: a thread; who calls [`Journal::commit`] waits for the disk. A clock; the time
//! comes in as a number.
//!
//! Invariants: records get consecutive numbers; a record is reported durable only after the sync
//! of the one write that holds it, and a batch is written only after the one before it is durable;
//! a segment's file has its name only when its header (and what it takes over) is durable. After
//! a sync that failed, its segment is never written again: what was not durable is written to a
//! new one. Records wait in memory until they are durable, so that no failure of the disk loses
//! one while the process lives.

mod adopt;
mod look_up;
mod open;
mod replay;
mod survey;

pub use adopt::AdoptError;
pub use look_up::look_up;
pub use open::{Found, OpenError, Opened};
pub use replay::{Memory, Records};
pub(crate) use survey::Files;

use crate::checkpoint::Checkpoints;
use crate::disk::{Disk, DiskFile, is_shortage};
use crate::format::record::{PAYLOAD_BYTES_MAX, Record, Stamp, Stored};
use crate::format::segment::{self, SegmentHeader};
use crate::format::{Owner, Seq};
use crate::meta::{Meta, Metadata};
use crate::nonce::Nonces;
use quorba_base::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

/// How often the metadata learn the watermark, at most.
const WATERMARK_PERIOD: Duration = Duration::from_secs(1);

/// What the buffer of a batch keeps between two.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// A segment before it is complete.
const SEGMENT_NEXT: &str = "log.seg.next";

/// What a log must know.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whose log it is.
    pub owner: Owner,
    /// The number of this boot, above that of every earlier one.
    pub incarnation: u64,
    /// A number that no client can guess, drawn anew for each boot; nonces of segments and
    /// checkpoints are made from it.
    pub nonce_seed: u64,
    /// A segment that has reached so many octets is left for a new one. At most
    /// [`Options::SEGMENT_BYTES_MAX`] count.
    pub segment_bytes: u64,
}

impl Options {
    /// The default size of a segment.
    pub const SEGMENT_BYTES: u64 = 64 << 20;

    /// The longest segment.
    pub const SEGMENT_BYTES_MAX: u64 = 512 << 20;

    /// Options with the default size of segments.
    #[must_use]
    pub const fn new(owner: Owner, incarnation: u64, nonce_seed: u64) -> Self {
        Self { owner, incarnation, nonce_seed, segment_bytes: Self::SEGMENT_BYTES }
    }
}

/// A payload is longer than [`PAYLOAD_BYTES_MAX`]; nothing was appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a record's payload of {0} octets is over the limit of {PAYLOAD_BYTES_MAX}")]
pub struct TooLong(pub usize);

/// A commit failed. Nothing is lost: the records wait in memory, and the next commit writes them.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// There is no space, or no descriptor; the log goes on when there is.
    #[error("the log's disk is full; nothing is acknowledged until there is space: {0}")]
    Full(#[source] io::Error),
    /// The disk failed, a new segment included.
    #[error("the log's disk failed: {0}")]
    Failed(#[source] io::Error),
}

impl CommitError {
    fn of(error: io::Error) -> Self {
        if is_shortage(&error) { Self::Full(error) } else { Self::Failed(error) }
    }
}

/// The segment that is written.
#[derive(Debug)]
struct Current {
    file: Arc<dyn DiskFile>,
    header: SegmentHeader,
    /// Octets that are durable; the next batch begins there.
    bytes: u64,
}

/// See the module's text.
#[derive(Debug)]
pub struct Journal {
    disk: Arc<dyn Disk>,
    options: Options,
    nonces: Nonces,
    meta: Meta,
    metadata: Metadata,
    /// When the metadata were stored last.
    stored_at: Option<Instant>,
    /// None: the next commit begins a segment.
    current: Option<Current>,
    /// The highest segment number ever used here.
    segment_last: u32,
    durable: Seq,
    /// What is not durable: the records after `durable`, in order.
    pending: VecDeque<Record>,
    buffer: Vec<u8>,
    failures: Failures,
}

/// How often the disk failed since the log was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failures {
    /// Commits that found no space.
    pub full: u64,
    /// Writes and syncs that failed otherwise; each left a segment behind.
    pub segments_left: u64,
    /// Changes of the metadata that could not be stored; they are tried again.
    pub metadata: u64,
}

impl Journal {
    /// Takes a record in; it is durable once a commit says so.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn append(&mut self, record: Record) -> Result<Seq, TooLong> {
        let bytes = record.payload().len();
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(TooLong(bytes));
        }
        self.pending.push_back(record);
        Ok(self.last())
    }

    /// Everything up to this record is durable.
    #[must_use]
    pub const fn durable(&self) -> Seq {
        self.durable
    }

    /// The last record that was appended.
    #[must_use]
    pub fn last(&self) -> Seq {
        Seq(self.durable.0 + self.pending.len() as u64)
    }

    /// Groups whose newest checkpoint was found damaged, without a newer one since.
    #[must_use]
    pub const fn lacking(&self) -> &BTreeSet<u64> {
        &self.metadata.lacking
    }

    /// How often the disk failed.
    #[must_use]
    pub const fn failures(&self) -> Failures {
        self.failures
    }

    /// Whether the memory of this disk is doubtful: until [`Self::trust`], every start finds it so.
    #[must_use]
    pub const fn is_doubtful(&self) -> bool {
        self.metadata.doubt.is_some()
    }

    /// Where checkpoints are written and read; also from another thread.
    #[must_use]
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(Arc::clone(&self.disk), self.options.owner, self.nonces.clone())
    }

    /// Makes everything appended so far durable, and returns the number of the last record that
    /// is. One write and one sync, unless a segment is full or the disk fails.
    ///
    /// # Errors
    /// [`CommitError`]; [`Self::durable`] says how far it came.
    pub fn commit(&mut self, now: Instant) -> Result<Seq, CommitError> {
        let mut may_retry = true;
        while !self.pending.is_empty() {
            match self.commit_some() {
                Ok(()) => {}
                // Once, in a new segment; if that fails, too, it is not this file's fault.
                Err(CommitError::Failed(_)) if may_retry => may_retry = false,
                Err(error) => return Err(error),
            }
        }
        self.settle(now);
        Ok(self.durable)
    }

    /// Tells the metadata the watermark, if it is time; to be called now and then when idle.
    pub fn settle(&mut self, now: Instant) {
        let stored_at = *self.stored_at.get_or_insert(now);
        if self.metadata.watermark < self.durable && now >= stored_at + WATERMARK_PERIOD {
            self.stored_at = Some(now);
            self.metadata.watermark = self.durable;
            self.store_metadata();
        }
    }

    /// Ends the use of the log: the metadata learn the last watermark.
    ///
    /// # Errors
    /// The disk's; then a start trusts the records alone.
    pub fn close(mut self) -> io::Result<()> {
        self.metadata.watermark = self.durable;
        self.meta.store(&self.metadata)
    }

    /// One batch: as many records as the segment takes.
    fn commit_some(&mut self) -> Result<(), CommitError> {
        if self.current.is_none() {
            self.begin_segment()?;
        }
        let current = self.current.as_ref().expect("begun above");
        let segment_bytes = self.options.segment_bytes.min(Options::SEGMENT_BYTES_MAX);
        let room = segment_bytes.saturating_sub(current.bytes);
        let is_empty = current.bytes == segment::HEADER_BYTES as u64;
        let count = self.encode(current.header, room, is_empty);
        if count == 0 {
            self.current = None;
            return Ok(());
        }
        let current = self.current.as_mut().expect("still there");
        if let Err(error) = current.file.write_at(current.bytes, &self.buffer) {
            let error = CommitError::of(error);
            // Octets behind the durable ones are written again as they were, when there is space.
            self.note(&error, matches!(error, CommitError::Failed(_)));
            return Err(error);
        }
        if let Err(error) = current.file.sync() {
            let error = CommitError::of(error);
            self.note(&error, true);
            return Err(error);
        }
        current.bytes += self.buffer.len() as u64;
        self.durable.0 += count as u64;
        self.pending.drain(..count);
        // A burst does not hold its memory for ever.
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        Ok(())
    }

    fn note(&mut self, error: &CommitError, leaves_segment: bool) {
        if matches!(error, CommitError::Full(_)) {
            self.failures.full += 1;
        }
        if leaves_segment {
            self.failures.segments_left += 1;
            self.current = None;
        }
    }

    /// Encodes pending records into the buffer, as many as have room; at least one if the segment
    /// is empty. Returns how many.
    fn encode(&mut self, header: SegmentHeader, room: u64, is_empty: bool) -> usize {
        self.buffer.clear();
        let mut stamp = Stamp {
            segment: header.segment,
            nonce: header.nonce,
            seq: self.durable,
            durable: self.durable,
        };
        let mut count = 0;
        for record in &self.pending {
            let bytes = (self.buffer.len() + record.bytes()) as u64;
            if bytes > room && !(is_empty && count == 0) {
                break;
            }
            stamp.seq = stamp.seq.next();
            record.encode(&stamp, &mut self.buffer);
            count += 1;
        }
        count
    }

    fn begin_segment(&mut self) -> Result<(), CommitError> {
        let header = self.next_header();
        let begun = self.make_segment(&header, &header.encode());
        match begun {
            Ok(current) => self.current = Some(current),
            Err(error) => {
                let error = CommitError::of(error);
                self.note(&error, true);
                return Err(error);
            }
        }
        self.metadata.segments.insert(header.segment, (header.first, header.nonce));
        self.metadata.watermark = self.durable;
        self.store_metadata();
        Ok(())
    }

    /// The header of a new segment that begins after the last durable record. Each attempt has a
    /// number and a nonce of its own.
    fn next_header(&mut self) -> SegmentHeader {
        self.segment_last += 1;
        SegmentHeader {
            owner: self.options.owner,
            segment: self.segment_last,
            nonce: self.nonces.next(),
            first: self.durable.next(),
        }
    }

    /// Makes a segment's file with this content, durably, before it has its name.
    fn make_segment(&self, header: &SegmentHeader, content: &[u8]) -> io::Result<Current> {
        let file = self.disk.create(SEGMENT_NEXT)?;
        file.write_at(0, content)?;
        file.sync()?;
        self.disk.rename(SEGMENT_NEXT, &segment::file_name(header.segment))?;
        self.disk.sync_dir()?;
        Ok(Current { file, header: *header, bytes: content.len() as u64 })
    }

    /// The store lags behind when it fails; that costs evidence, not records.
    fn store_metadata(&mut self) {
        if self.meta.store(&self.metadata).is_err() {
            self.failures.metadata += 1;
        }
    }
}
