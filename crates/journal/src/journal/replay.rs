//! What a node finds of its past, and goes through again.
//!
//! Invariant: records come in order, without gaps, and end with the last one that was recovered,
//! whatever is appended meanwhile.

use crate::checkpoint::{Checkpoint, Checkpoints};
use crate::damage::{Cause, Damage};
use crate::disk::Disk;
use crate::format::Seq;
use crate::format::scan::{Entry, Invalid, Scan};
use crate::format::segment::{self, SegmentHeader};
use quorba_base::{GroupId, Recovered};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What was recovered.
#[derive(Debug)]
pub struct Memory {
    /// The newest right checkpoint of each group that has one.
    pub checkpoints: Vec<Checkpoint>,
    /// Checkpoints that were damaged, so that an older one or the log takes their place.
    pub spoilt: Vec<Damage>,
    /// Groups whose newest checkpoint was found damaged, at this start or an earlier one, and that
    /// have had no newer one since. What takes its place may be less than was relied on: log alone
    /// need not have what a member was given.
    pub lacking: BTreeSet<u64>,
    /// The first record that is there; after the last one if there is none.
    pub first: Seq,
    /// The last record that is there.
    pub last: Seq,
    /// Where the log was torn, if it was: the record had never been reported durable.
    pub torn: Option<Invalid>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) headers: Vec<SegmentHeader>,
}

impl Memory {
    /// Octets of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = |header: &SegmentHeader| {
            let file = self.disk.open(&segment::file_name(header.segment));
            file.and_then(|file| file.bytes()).unwrap_or(0)
        };
        self.headers.iter().map(bytes).sum()
    }

    /// All records from the first to the last. A group that has a checkpoint skips those up to
    /// its own. To be read before the log is truncated.
    #[must_use]
    pub fn records(&self) -> Records {
        Records {
            disk: Arc::clone(&self.disk),
            headers: self.headers.clone(),
            index: 0,
            scan: None,
            last: self.last,
            next: self.first,
        }
    }

    /// Everything that is remembered, with the states of groups, which are in `checkpoints`.
    ///
    /// # Errors
    /// [`Damage`]: the disk gives other data now than when it was looked at.
    pub fn read(&self, checkpoints: &Checkpoints) -> Result<Recovered, Damage> {
        let mut recovered = Recovered::default();
        for entry in self.records() {
            recovered.records.push(entry?.record);
        }
        recovered.lacking = self.lacking.iter().map(|group| GroupId(*group)).collect();
        for checkpoint in &self.checkpoints {
            let mut state = Vec::with_capacity(usize::try_from(checkpoint.bytes).unwrap_or(0));
            for block in checkpoints.read(checkpoint)? {
                state.extend_from_slice(&block?);
            }
            recovered.states.push((GroupId(checkpoint.group), state.into()));
        }
        Ok(recovered)
    }
}

/// Goes through records; holds one segment in memory. See [`Memory::records`].
#[derive(Debug)]
pub struct Records {
    disk: Arc<dyn Disk>,
    headers: Vec<SegmentHeader>,
    index: usize,
    scan: Option<Scan>,
    next: Seq,
    last: Seq,
}

impl Records {
    fn step(&mut self) -> Result<Entry, Damage> {
        loop {
            if let Some(record) = self.scan.as_mut().and_then(Iterator::next) {
                return record.map_err(|invalid| Damage::record(&invalid, self.last));
            }
            let Some(header) = self.headers.get(self.index).copied() else {
                let seq = Some(self.next);
                let file = self.headers.last().map_or(0, |header| header.segment);
                let cause = Cause::EndsBefore(self.last);
                return Err(Damage { file: segment::file_name(file), offset: None, seq, cause });
            };
            self.index += 1;
            let end = self.headers.get(self.index).map(|next| next.first);
            self.scan = Some(super::survey::scan(&*self.disk, header, end)?);
        }
    }
}

impl Iterator for Records {
    type Item = Result<Entry, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.last {
            return None;
        }
        let record = self.step();
        // After damage there is nothing more.
        self.next = if record.is_ok() { self.next.next() } else { self.last.next() };
        Some(record)
    }
}
