//! Goes through all files of a log and decides what of it may be believed.
//!
//! What it is not: a change of anything; it only reads.
//!
//! Invariant: either everything that was durable is found, or it is damage; by the rule of
//! [`crate::format::tail`].

use super::open::ASIDE;
use crate::checkpoint::{Checkpoint, Checkpoints};
use crate::damage::{Cause, Damage};
use crate::disk::{Disk, read_whole};
use crate::format::checkpoint;
use crate::format::scan::{Entry, Invalid, Scan};
use crate::format::segment::{self, SegmentFault, SegmentHeader};
use crate::format::tail::{Verdict, judge};
use crate::format::{Owner, Seq};
use crate::meta::Metadata;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// The files of a log, by what they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub(crate) segments: Vec<u32>,
    /// The checkpoints of each group, oldest first.
    pub(crate) checkpoints: BTreeMap<u64, Vec<Seq>>,
    /// The highest segment that was set aside.
    pub(crate) aside: Option<u32>,
    /// Files that were never completed.
    pub(crate) incomplete: Vec<String>,
}

impl Files {
    pub(crate) fn of(names: Vec<String>) -> Self {
        let mut files = Self::default();
        for name in names {
            let aside = name.strip_prefix(ASIDE).and_then(segment::number_of);
            files.aside = files.aside.max(aside);
            if let Some(number) = segment::number_of(&name) {
                files.segments.push(number);
            } else if let Some((group, seq)) = checkpoint::name_parts(&name) {
                files.checkpoints.entry(group).or_default().push(seq);
            } else if name.ends_with(".next") {
                files.incomplete.push(name);
            }
        }
        files.segments.sort_unstable();
        for seqs in files.checkpoints.values_mut() {
            seqs.sort_unstable();
        }
        files
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.checkpoints.is_empty() && self.aside.is_none()
    }
}

/// What may be believed.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) headers: Vec<SegmentHeader>,
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// Checkpoints that are not what was written; an older one of the group is used.
    pub(crate) spoilt: Vec<Damage>,
    /// Everything up to this was surely durable before this start.
    pub(crate) watermark: Seq,
    /// The last right record.
    pub(crate) last: Seq,
    /// The records after the watermark.
    pub(crate) tail: Vec<Entry>,
    /// What the log ended with instead of a record, if it was torn.
    pub(crate) torn: Option<Invalid>,
}

/// A survey, and the highest number that it has come across, damaged or not.
pub(crate) struct Survey<'d> {
    disk: &'d dyn Disk,
    metadata: &'d Metadata,
    store: &'d Checkpoints,
    pub(crate) highest: Seq,
}

impl<'d> Survey<'d> {
    pub(crate) const fn new(
        disk: &'d dyn Disk,
        metadata: &'d Metadata,
        store: &'d Checkpoints,
    ) -> Self {
        Self { disk, metadata, store, highest: metadata.watermark }
    }

    pub(crate) fn run(&mut self, files: &Files) -> Result<Found, Damage> {
        let headers = self.headers(files)?;
        let mut found = Found {
            headers,
            checkpoints: Vec::new(),
            spoilt: Vec::new(),
            watermark: self.metadata.watermark,
            last: Seq::NONE,
            tail: Vec::new(),
            torn: None,
        };
        self.records(&mut found)?;
        self.checkpoints(files, &mut found)?;
        Ok(found)
    }

    /// The headers of all segments that count, oldest first.
    fn headers(&self, files: &Files) -> Result<Vec<SegmentHeader>, Damage> {
        let known = self.metadata.segments.iter().next();
        let oldest = known.map_or(0, |(number, _)| *number);
        let mut headers: Vec<SegmentHeader> = Vec::new();
        // What is older was given up; its deletion did not come to its end.
        for &number in files.segments.iter().filter(|number| **number >= oldest) {
            let name = segment::file_name(number);
            let header = match read_header(self.disk, self.metadata.owner, number)? {
                Ok(header) => header,
                // Nothing was ever in it; if something was, there is a gap.
                Err(SegmentFault::Torn) => continue,
                Err(fault) => return Err(Damage::of_file(&name, Cause::Segment(fault))),
            };
            if headers.last().is_some_and(|before| before.first > header.first) {
                return Err(Damage::of_file(&name, Cause::GoesOnWith(header.first)));
            }
            headers.push(header);
        }
        if let Some((number, (first, _))) = known
            && headers.first().is_none_or(|header| header.first > *first)
        {
            let cause = Cause::GoesOnWith(headers.first().map_or(Seq::NONE, |h| h.first));
            let (file, seq) = (segment::file_name(*number), Some(*first));
            return Err(Damage { file, offset: None, seq, cause });
        }
        Ok(headers)
    }

    fn records(&mut self, found: &mut Found) -> Result<(), Damage> {
        if let Some(last) = found.headers.last() {
            found.watermark = found.watermark.max(last.first.before());
            self.highest = self.highest.max(found.watermark);
        }
        let mut tail = VecDeque::new();
        let mut end = None;
        for (index, header) in found.headers.iter().enumerate() {
            let next = found.headers.get(index + 1).map(|next| next.first);
            let mut scan = scan(self.disk, *header, next)?;
            let mut invalid = None;
            for record in &mut scan {
                match record {
                    Ok(entry) => {
                        found.watermark = found.watermark.max(entry.durable);
                        tail.push_back(entry);
                    }
                    Err(fault) => invalid = Some(fault),
                }
                while tail.front().is_some_and(|entry: &Entry| entry.seq <= found.watermark) {
                    tail.pop_front();
                }
            }
            if invalid.is_some() {
                found.watermark = found.watermark.max(scan.watermark_behind().unwrap_or_default());
            }
            found.last = scan.expected().before();
            self.highest = self.highest.max(found.watermark).max(found.last);
            check_end(&scan, *header, invalid, next, found.watermark)?;
            found.torn = invalid;
            end = Some((segment::file_name(header.segment), scan.offset()));
        }
        if found.last < found.watermark {
            let (file, offset) = end.unwrap_or_else(|| (segment::file_name(1), 0));
            let (offset, seq) = (Some(offset), Some(found.last.next()));
            return Err(Damage { file, offset, seq, cause: Cause::EndsBefore(found.watermark) });
        }
        tail.retain(|entry| entry.seq > found.watermark);
        found.tail = tail.into();
        Ok(())
    }

    fn checkpoints(&mut self, files: &Files, found: &mut Found) -> Result<(), Damage> {
        let mut wanted = files.checkpoints.clone();
        for (group, seq) in self.metadata.checkpoints.keys() {
            let seqs = wanted.entry(*group).or_default();
            if !seqs.contains(seq) {
                seqs.push(*seq);
                seqs.sort_unstable();
            }
        }
        for (group, seqs) in wanted {
            self.checkpoint(group, &seqs, found)?;
        }
        Ok(())
    }

    /// The newest right checkpoint of a group, from which the log goes on.
    fn checkpoint(&mut self, group: u64, seqs: &[Seq], found: &mut Found) -> Result<(), Damage> {
        let first = found.headers.first().map_or(Seq(1), |header| header.first);
        let mut wrong = None;
        for &seq in seqs.iter().rev() {
            let name = checkpoint::file_name(group, seq);
            if seq.next() < first {
                break;
            }
            match self.store.verify(&name) {
                Ok(checkpoint) if seq <= found.last => {
                    found.checkpoints.push(checkpoint);
                    return Ok(());
                }
                // Its record was durable when it was written.
                Ok(_) => {
                    self.highest = self.highest.max(seq);
                    let cause = Cause::EndsBefore(seq);
                    let seq = Some(found.last.next());
                    return Err(Damage { file: name, offset: None, seq, cause });
                }
                Err(cause) => {
                    let damage = Damage::of_file(&name, cause);
                    found.spoilt.push(damage.clone());
                    wrong.get_or_insert(damage);
                }
            }
        }
        // Without any, the whole log makes the state, if it is there. A file that the log never
        // took in is not missed.
        let taken_in = self.metadata.checkpoints.keys().any(|(of, _)| *of == group);
        if first == Seq(1) || !taken_in {
            return Ok(());
        }
        let oldest = seqs.first().copied().unwrap_or_default();
        let name = checkpoint::file_name(group, oldest);
        Err(wrong.unwrap_or_else(|| Damage::of_file(&name, Cause::GoesOnWith(first))))
    }
}

/// What ends the scan of a segment must be what is to be expected there.
fn check_end(
    scan: &Scan,
    header: SegmentHeader,
    invalid: Option<Invalid>,
    next: Option<Seq>,
    watermark: Seq,
) -> Result<(), Damage> {
    match (invalid, next) {
        (Some(invalid), Some(next)) => Err(Damage::record(&invalid, watermark.max(next.before()))),
        (Some(invalid), None) => match judge(&invalid, watermark) {
            Verdict::TornTail => Ok(()),
            Verdict::Damage => Err(Damage::record(&invalid, watermark)),
        },
        (None, Some(next)) if scan.expected() < next => {
            let (offset, seq) = (Some(scan.offset()), Some(scan.expected()));
            let file = segment::file_name(header.segment);
            Err(Damage { file, offset, seq, cause: Cause::EndsBefore(next.before()) })
        }
        (None, _) => Ok(()),
    }
}

/// A scan of a segment whose header is known.
pub(crate) fn scan(
    disk: &dyn Disk,
    header: SegmentHeader,
    end: Option<Seq>,
) -> Result<Scan, Damage> {
    let name = segment::file_name(header.segment);
    let content = disk
        .open(&name)
        .map_err(|error| (0, error))
        .and_then(|file| read_whole(&*file))
        .map_err(|error| Damage::unreadable(&name, error))?;
    Ok(Scan::new(header, Bytes::from(content), end))
}

pub(super) fn read_header(
    disk: &dyn Disk,
    owner: Owner,
    number: u32,
) -> Result<Result<SegmentHeader, SegmentFault>, Damage> {
    let name = segment::file_name(number);
    let read = || {
        let file = disk.open(&name)?;
        let bytes = file.bytes()?.min(segment::HEADER_BYTES as u64);
        let mut start = vec![0; usize::try_from(bytes).expect("at most 64")];
        file.read_at(0, &mut start)?;
        Ok((file, start))
    };
    let (file, start) = read().map_err(|error| Damage::unreadable(&name, (0, error)))?;
    let decoded = SegmentHeader::decode(&start, owner, number);
    if decoded != Err(SegmentFault::Torn) {
        return Ok(decoded);
    }
    // Torn only if nothing is behind it.
    let whole = read_whole(&*file).map_err(|error| Damage::unreadable(&name, error))?;
    Ok(SegmentHeader::decode(&whole, owner, number))
}
