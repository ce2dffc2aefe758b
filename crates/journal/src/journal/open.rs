//! The start: what the disk remembers is surveyed, and believed as a whole or not at all.
//!
//! Invariants: doubt is written down before a file is touched, and stays until
//! [`Journal::trust`], so that a node that dies while it rebuilds does not take what it has so far
//! for its memory. Files of another owner are never touched. The records after the watermark, of
//! which nobody knows whether they are on the disk or only in its cache, are written again, into
//! the first segment of this boot.

use super::survey::{Files, Found as Believed, Survey};
use super::{Current, Journal, Memory, Options};
use crate::Stored;
use crate::checkpoint::Checkpoints;
use crate::damage::{Cause, Damage};
use crate::disk::Disk;
use crate::format::record::Stamp;
use crate::format::segment::{self, SegmentFault, SegmentHeader};
use crate::format::{Owner, Seq, VERSION, checkpoint};
use crate::meta::{self, Contents, Meta, Metadata};
use crate::nonce::Nonces;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

/// The beginning of the names of files that were set aside.
pub(crate) const ASIDE: &str = "doubtful-";

/// After damage nobody knows which numbers were given out behind it. A segment holds fewer records
/// than this, and file names survive most damage; so segment `n` begins below `n` leaps.
const LEAP: u64 = 1 << 32;

/// The log cannot be opened. Nothing was lost, and the node must not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The disk failed, or has no space.
    #[error("the log's disk: cannot {what}: {source}")]
    Disk {
        /// What was tried.
        what: String,
        /// The disk's error.
        source: io::Error,
    },
    /// The directory holds another log; the configuration names the wrong one.
    #[error("{file} belongs to {found}, not to {ours}: is this the right state directory?")]
    Foreign {
        /// A file of it.
        file: String,
        /// Whose it is.
        found: Owner,
        /// Who asked.
        ours: Owner,
    },
    /// Another version of this program has written it.
    #[error("{file} is of format version {found}, this program reads version {VERSION}")]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u16,
    },
    /// A later boot has used this log: the file with the boot's number is an old copy.
    #[error("the log was used by boot {stored}, this is boot {given}: an old copy was restored")]
    OldIncarnation {
        /// The log's.
        stored: u64,
        /// The caller's.
        given: u64,
    },
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let what = what.into();
    move |source| OpenError::Disk { what, source }
}

/// An open log, and what it remembers.
#[derive(Debug)]
pub struct Opened {
    /// The log, ready for appends: the next record gets the number after [`Journal::last`].
    pub journal: Journal,
    /// What it remembers.
    pub recovered: Found,
}

/// What a log remembers.
#[derive(Debug)]
pub enum Found {
    /// It is new.
    Fresh,
    /// All that was durable.
    Clean(Memory),
    /// Nothing that may be used; the node rebuilds its groups from the others, and then calls
    /// [`Journal::trust`].
    Doubtful {
        /// What is wrong.
        damage: Damage,
    },
}

impl Journal {
    /// Opens the log of a disk, and makes it if there is none.
    ///
    /// # Errors
    /// [`OpenError`]. Damage is none: it is what was recovered.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Opened, OpenError> {
        let names = disk.list().map_err(failed("list its files"))?;
        let files = Files::of(names);
        let (meta, found) = Meta::open(&disk).map_err(failed(format!("open {}", meta::FILE)))?;
        let nonces = Nonces::new(options.nonce_seed);
        let start = Start { disk, options, nonces, files, meta };
        let unknown = |text: String| Damage::of_file(meta::FILE, Cause::Metadata(text));
        match found {
            Contents::Nothing if start.files.is_empty() => start.fresh(),
            Contents::Nothing => start.doubt_all(unknown("missing".to_string())),
            Contents::Damaged(text) => start.doubt_all(unknown(text)),
            Contents::Whole(metadata) => start.known(*metadata),
        }
    }
}

/// A start that has seen the metadata.
struct Start {
    disk: Arc<dyn Disk>,
    options: Options,
    nonces: Nonces,
    files: Files,
    meta: Meta,
}

impl Start {
    fn fresh(mut self) -> Result<Opened, OpenError> {
        let metadata = Metadata::new(self.options.owner, self.options.incarnation);
        self.meta.store(&metadata).map_err(failed("write the metadata"))?;
        let journal = self.begin(metadata, Seq::NONE, 0, VecDeque::new())?;
        Ok(Opened { journal, recovered: Found::Fresh })
    }

    fn known(self, mut metadata: Metadata) -> Result<Opened, OpenError> {
        let Options { owner, incarnation, .. } = self.options;
        if metadata.owner != owner {
            let (file, found) = (meta::FILE.to_string(), metadata.owner);
            return Err(OpenError::Foreign { file, found, ours: owner });
        }
        let stored = metadata.incarnation;
        if incarnation <= stored {
            return Err(OpenError::OldIncarnation { stored, given: incarnation });
        }
        metadata.incarnation = incarnation;
        let store = Checkpoints::new(Arc::clone(&self.disk), owner, self.nonces.clone());
        let mut survey = Survey::new(&*self.disk, &metadata, &store);
        let surveyed = survey.run(&self.files);
        let highest = survey.highest;
        match (metadata.doubt.clone(), surveyed) {
            (None, Ok(believed)) => self.clean(metadata, believed),
            (
                None,
                Err(Damage { file, cause: Cause::Segment(SegmentFault::Version(found)), .. }),
            ) => Err(OpenError::Version { file, found }),
            (None, Err(damage)) => self.doubtful(metadata, highest, damage),
            (Some(text), _) => {
                let damage = Damage::of_file(meta::FILE, Cause::Earlier(text));
                self.doubtful(metadata, highest, damage)
            }
        }
    }

    fn clean(self, mut metadata: Metadata, believed: Believed) -> Result<Opened, OpenError> {
        let Believed { headers, checkpoints, spoilt, watermark, last, tail, torn } = believed;
        let is_new = headers.is_empty();
        metadata.torn_tails += u64::from(torn.is_some());
        let newest = checkpoints.iter().map(|one| ((one.group, one.seq), one.bytes)).collect();
        let before = std::mem::replace(&mut metadata.checkpoints, newest);
        // The older ones stay for as long as they can be fallen back to.
        for damage in &spoilt {
            // Nobody relied on one that was never taken in.
            let of = checkpoint::name_parts(&damage.file).filter(|of| before.contains_key(of));
            metadata.lacking.extend(of.map(|(group, _)| group));
            let _ = self.disk.delete(&damage.file);
        }
        self.keep_older(&before, &mut metadata);
        let disk = Arc::clone(&self.disk);
        let files = self.files.segments.clone();
        let segment_last = self.segment_last();
        let records = tail.into_iter().map(|entry| entry.record).collect();
        metadata.segments = table(headers.iter().filter(|header| header.first <= watermark));
        let journal = self.begin(metadata, watermark, segment_last, records)?;
        let current = journal.current.as_ref().expect("begun").header;
        // What the new segment has taken over, and what was given up before.
        for number in files {
            if !journal.metadata.segments.contains_key(&number) {
                let _ = disk.delete(&segment::file_name(number));
            }
        }
        if is_new && journal.durable == Seq::NONE {
            return Ok(Opened { journal, recovered: Found::Fresh });
        }
        let mut headers: Vec<_> =
            headers.into_iter().filter(|header| header.first <= watermark).collect();
        headers.push(current);
        let first = headers[0].first;
        let lacking = journal.metadata.lacking.clone();
        let memory = Memory { checkpoints, spoilt, lacking, first, last, torn, disk, headers };
        Ok(Opened { journal, recovered: Found::Clean(memory) })
    }

    /// One older checkpoint of each group is kept, if the log reaches back to it; the rest goes.
    fn keep_older(&self, before: &BTreeMap<(u64, Seq), u64>, metadata: &mut Metadata) {
        for (group, seqs) in &self.files.checkpoints {
            let newest = metadata.checkpoints.keys().find(|(of, _)| of == group).map(|key| key.1);
            let mut rest = seqs.iter().rev().filter(|seq| Some(**seq) != newest);
            if newest.is_some()
                && let Some(kept) = rest.find(|seq| Some(**seq) < newest)
            {
                let key = (*group, *kept);
                let bytes = before.get(&key).copied().unwrap_or(0);
                metadata.checkpoints.insert(key, bytes);
            }
            for gone in rest {
                let _ = self.disk.delete(&checkpoint::file_name(*group, *gone));
            }
        }
    }

    /// The metadata are gone: is it our log at all?
    fn doubt_all(self, damage: Damage) -> Result<Opened, OpenError> {
        let Options { owner, incarnation, .. } = self.options;
        let metadata = Metadata::new(owner, incarnation);
        for number in &self.files.segments {
            let file = segment::file_name(*number);
            if let Some(found) = foreign(&*self.disk, &file, owner, *number) {
                return Err(OpenError::Foreign { file, found, ours: owner });
            }
        }
        let store = Checkpoints::new(Arc::clone(&self.disk), owner, self.nonces.clone());
        let mut survey = Survey::new(&*self.disk, &metadata, &store);
        // Whatever it says: without the metadata nobody knows what should be there.
        let _ = survey.run(&self.files);
        let highest = survey.highest;
        self.doubtful(metadata, highest, damage)
    }

    fn doubtful(
        mut self,
        mut metadata: Metadata,
        highest: Seq,
        damage: Damage,
    ) -> Result<Opened, OpenError> {
        let is_again = matches!(damage.cause, Cause::Earlier(_));
        if !is_again {
            metadata.doubt = Some(damage.to_string());
            metadata.doubts += 1;
        }
        metadata.segments.clear();
        metadata.checkpoints.clear();
        metadata.lacking.clear();
        let leap = highest.0.max(u64::from(self.segment_last()).saturating_mul(LEAP)) / LEAP + 1;
        metadata.watermark = Seq(leap.saturating_mul(LEAP));
        self.meta.store(&metadata).map_err(failed("write the metadata"))?;
        // A start that ended between the two has nothing aside yet.
        let is_rebuilding = is_again && self.files.aside.is_some();
        self.set_aside(is_rebuilding).map_err(failed("set the doubtful files aside"))?;
        let segment_last = self.segment_last();
        let watermark = metadata.watermark;
        let journal = self.begin(metadata, watermark, segment_last, VecDeque::new())?;
        Ok(Opened { journal, recovered: Found::Doubtful { damage } })
    }

    /// The highest number that a segment has or had, as far as names tell.
    fn segment_last(&self) -> u32 {
        self.files.segments.last().copied().max(self.files.aside).unwrap_or(0)
    }

    /// What there was before the doubt is kept until the node is rebuilt; what was written while
    /// it was being rebuilt goes.
    fn set_aside(&self, is_rebuilding: bool) -> io::Result<()> {
        let segments = self.files.segments.iter().map(|number| segment::file_name(*number));
        let checkpoints =
            self.files.checkpoints.iter().flat_map(|(group, seqs)| {
                seqs.iter().map(|seq| checkpoint::file_name(*group, *seq))
            });
        for name in segments.chain(checkpoints) {
            if is_rebuilding {
                self.disk.delete(&name)?;
            } else {
                self.disk.rename(&name, &format!("{ASIDE}{name}"))?;
            }
        }
        self.disk.sync_dir()
    }

    /// Begins the first segment of this boot, which takes over `records`.
    fn begin(
        self,
        mut metadata: Metadata,
        watermark: Seq,
        segment_last: u32,
        records: VecDeque<crate::Record>,
    ) -> Result<Journal, OpenError> {
        for name in &self.files.incomplete {
            let _ = self.disk.delete(name);
        }
        metadata.watermark = metadata.watermark.max(watermark);
        let mut journal = Journal {
            disk: self.disk,
            options: self.options,
            nonces: self.nonces,
            meta: self.meta,
            metadata,
            stored_at: None,
            current: None,
            segment_last,
            durable: watermark,
            pending: records,
            buffer: Vec::new(),
            failures: super::Failures::default(),
        };
        journal.take_over().map_err(failed("begin a segment"))?;
        Ok(journal)
    }
}

impl Journal {
    /// Makes the first segment of a boot, with all pending records in it, appear at once: there is
    /// no moment at which it replaces the end of the one before without holding it.
    fn take_over(&mut self) -> io::Result<()> {
        let header = self.next_header();
        let mut content = header.encode().to_vec();
        let mut stamp = Stamp {
            segment: header.segment,
            nonce: header.nonce,
            seq: self.durable,
            durable: self.durable,
        };
        for record in self.pending.drain(..) {
            stamp.seq = stamp.seq.next();
            record.encode(&stamp, &mut content);
        }
        let current: Current = self.make_segment(&header, &content)?;
        self.durable = stamp.seq;
        self.current = Some(current);
        self.metadata.segments.insert(header.segment, (header.first, header.nonce));
        self.metadata.watermark = self.durable;
        self.meta.store(&self.metadata)
    }
}

fn table<'h>(headers: impl Iterator<Item = &'h SegmentHeader>) -> BTreeMap<u32, (Seq, u64)> {
    headers.map(|header| (header.segment, (header.first, header.nonce))).collect()
}

/// The other owner of a segment, if it has one.
fn foreign(disk: &dyn Disk, file: &str, owner: Owner, number: u32) -> Option<Owner> {
    let mut header = [0; segment::HEADER_BYTES];
    disk.open(file).and_then(|file| file.read_at(0, &mut header)).ok()?;
    match SegmentHeader::decode(&header, owner, number) {
        Err(SegmentFault::Owner(found)) => Some(found),
        _ => None,
    }
}
