//! A backup of a group as a file: what a node gives its operator, and takes back.
//!
//! The file: `QUORBABK`, the version, a description in JSON with its length, and a checksum of all
//! that; then replies and state, one behind the other, in parts of at most 256 KiB, each an LZ4
//! block if that is shorter, with its length before and after and a checksum; an empty part ends
//! it, with the digest of everything that came out of the parts. Numbers are little-endian,
//! checksums and digest are XXH3-64: against mistakes and damaged disks, not against forgers.
//!
//! What it is not: a secret. It has what the servers gave, for whoever can read it. Invariants: no
//! length is believed before it was compared with its limit, and memory is taken for what is there,
//! never for what is announced; a file that ends early, goes on behind its end or differs in one
//! bit is refused, with the place.

use bytes::Bytes;
use quorba_base::fields::{le_u32_at, le_u64_at};
use quorba_config::Group;
use quorba_engine::replica::Backup;
use quorba_engine::replica::{History, Style};
use serde::{Deserialize, Serialize};
use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

const MAGIC: &[u8; 8] = b"QUORBABK";
/// The version of the format; a file of another one is not read.
pub const VERSION: u16 = 3;
/// Magic, version, length of the description.
const HEAD_BYTES: usize = 8 + 2 + 4;
const DESCRIPTION_BYTES_MAX: usize = 64 << 10;
const CHECKSUM_BYTES: usize = 8;
/// Of a part: bytes that come out of it, bytes that stand in the file.
const LENGTHS_BYTES: usize = 4 + 4;
const PART_BYTES_MAX: usize = 256 << 10;
/// In the second length: the part is an LZ4 block.
const IS_PACKED: u32 = 1 << 31;
/// A state of 1 GiB, and the replies that clients may still ask for.
const CONTENT_BYTES_MAX: u64 = (1 << 30) + (512 << 20);

/// What is in a backup, for people and for whoever is to take it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The domain's id.
    pub domain: String,
    /// The group's name in the domain file.
    pub group: String,
    /// The repository id of its objects, if the domain file names it.
    pub type_id: Option<String>,
    /// The node whose member gave its state.
    pub node: String,
    /// When, by that node's clock: milliseconds since 1970, UTC.
    pub taken_ms: u64,
    /// How the members shared the work.
    pub style: String,
    /// Requests that the group had executed; the state is that after the last of them.
    pub executed: u64,
    /// The digest of these, in hexadecimal.
    pub history: String,
    /// The group's ordered clock, in units of 100 ns since the group began.
    pub clock: u64,
    /// What servers had been told the time is: units of 100 ns since 15 October 1582.
    pub told: u64,
    /// Named requests (FT_REQUEST) whose replies are in it.
    pub requests: u64,
    /// Bytes of these replies, as they stand in it.
    pub replies_bytes: u64,
    /// Bytes of the state.
    pub state_bytes: u64,
    /// The version of the program that wrote it.
    pub version: String,
}

impl Description {
    pub(crate) fn of(
        (domain, group, node): (&str, &Group, &str),
        taken_ms: u64,
        backup: &Backup,
    ) -> Self {
        Self {
            domain: domain.into(),
            group: group.name.clone(),
            type_id: group.type_id.clone(),
            node: node.into(),
            taken_ms,
            style: backup.style.as_str().into(),
            executed: backup.history.count,
            history: format!("{:016x}", backup.history.digest),
            clock: backup.time,
            told: backup.wall,
            requests: backup.requests,
            replies_bytes: backup.replies.len() as u64,
            state_bytes: backup.state.len() as u64,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Bytes that come out of the parts.
    #[must_use]
    pub const fn content_bytes(&self) -> u64 {
        self.replies_bytes.saturating_add(self.state_bytes)
    }

    /// Whether it may become the state of this group.
    ///
    /// # Errors
    /// In words, if it is of another group or of objects of another type.
    pub fn check_for(&self, group: &Group) -> Result<(), String> {
        if self.group != group.name {
            return Err(format!(
                "this is a backup of group {}, and not of group {}",
                self.group, group.name
            ));
        }
        match (&self.type_id, &group.type_id) {
            (Some(had), Some(has)) if had != has => Err(format!(
                "this is a backup of objects of type {had}, and those of group {} are of type \
                 {has}",
                group.name
            )),
            _ => Ok(()),
        }
    }

    fn backup(&self, content: Bytes) -> Option<Backup> {
        let replies = usize::try_from(self.replies_bytes).ok()?;
        let style = Style::from_word(&self.style)?;
        let digest = u64::from_str_radix(&self.history, 16).ok()?;
        Some(Backup {
            history: History { count: self.executed, digest },
            time: self.clock,
            wall: self.told,
            style,
            requests: self.requests,
            replies: content.get(..replies).map(|part| content.slice_ref(part))?,
            state: content.slice(replies..),
        })
    }
}

/// Why a file is not read. None of these is cured by trying again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// It is something else.
    #[error("this is no backup of a group: it does not begin with QUORBABK")]
    NoBackup,
    /// It is of another version.
    #[error("this backup is of format {found}; this version reads format {VERSION}")]
    OtherVersion {
        /// Which.
        found: u16,
    },
    /// It is not what was written.
    #[error("the backup is damaged at byte {offset}: {what}")]
    Damaged {
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// It ends in the middle.
    #[error(
        "the backup ends at byte {offset}, before its end: it was not written, or copied, whole"
    )]
    EndsEarly {
        /// Where.
        offset: u64,
    },
    /// More than a group can have.
    #[error("the backup announces {bytes} bytes; no more than {CONTENT_BYTES_MAX} are read")]
    TooLarge {
        /// What it announces.
        bytes: u64,
    },
}

fn checksum(bytes: &[&[u8]]) -> u64 {
    let mut hash = XxHash3_64::new();
    bytes.iter().for_each(|part| hash.write(part));
    hash.finish()
}

/// Makes the file, piece by piece.
pub(crate) struct Encoder {
    description: Description,
    /// Replies, state.
    left: [Bytes; 2],
    digest: XxHash3_64,
    stage: Stage,
}

enum Stage {
    Head,
    Parts,
    Over,
}

impl Encoder {
    pub(crate) fn new(description: Description, backup: Backup) -> Self {
        let Backup { replies, state, .. } = backup;
        let (left, digest) = ([replies, state], XxHash3_64::new());
        Self { description, left, digest, stage: Stage::Head }
    }

    fn head(&self) -> Bytes {
        let text = serde_json::to_vec(&self.description).expect("a description is plain data");
        let mut head = Vec::with_capacity(HEAD_BYTES + text.len() + CHECKSUM_BYTES);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&u32::try_from(text.len()).expect("it is short").to_le_bytes());
        head.extend_from_slice(&text);
        let sum = checksum(&[&head]);
        head.extend_from_slice(&sum.to_le_bytes());
        head.into()
    }

    fn part(&mut self) -> Bytes {
        if self.left[0].is_empty() {
            self.left.swap(0, 1);
        }
        let count = self.left[0].len().min(PART_BYTES_MAX);
        let raw = self.left[0].split_to(count);
        if raw.is_empty() {
            self.stage = Stage::Over;
            let digest = self.digest.finish().to_le_bytes();
            return [&[0; LENGTHS_BYTES][..], &digest].concat().into();
        }
        self.digest.write(&raw);
        let packed = lz4_flex::block::compress(&raw);
        let (bytes, flag) =
            if packed.len() < raw.len() { (&packed[..], IS_PACKED) } else { (&raw[..], 0) };
        let lengths = [raw.len() as u32, bytes.len() as u32 | flag].map(u32::to_le_bytes).concat();
        let sum = checksum(&[&lengths, bytes]).to_le_bytes();
        [&lengths[..], bytes, &sum].concat().into()
    }
}

impl Iterator for Encoder {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match self.stage {
            Stage::Head => {
                self.stage = Stage::Parts;
                Some(self.head())
            }
            Stage::Parts => Some(self.part()),
            Stage::Over => None,
        }
    }
}

/// Reads the file, piece by piece.
#[derive(Default)]
pub struct Decoder {
    /// What is not read yet: never more than a part, and what was pushed last.
    waiting: Vec<u8>,
    /// Of this, what was.
    read: usize,
    /// Bytes of the file that came before `waiting`.
    offset: u64,
    description: Option<Description>,
    content: Vec<u8>,
    digest: Option<XxHash3_64>,
    is_over: bool,
}

impl Decoder {
    /// What the file says of itself, as soon as that is read.
    #[must_use]
    pub const fn description(&self) -> Option<&Description> {
        self.description.as_ref()
    }

    /// Bytes of replies and state that were read.
    #[must_use]
    pub fn done_bytes(&self) -> u64 {
        self.content.len() as u64
    }

    /// The next bytes of the file.
    ///
    /// # Errors
    /// If these, or those before them, are not of a backup.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.waiting.drain(..self.read);
        self.offset += self.read as u64;
        self.read = 0;
        self.waiting.extend_from_slice(bytes);
        while self.step()? {}
        Ok(())
    }

    /// The file is over.
    ///
    /// # Errors
    /// If it should go on.
    pub fn finish(self) -> Result<(Description, Backup), BackupError> {
        let offset = self.offset + self.waiting.len() as u64;
        let Some(description) = self.description.filter(|_| self.is_over) else {
            let known = self.waiting.len().min(MAGIC.len());
            let is_backup = self.offset > 0 || self.waiting[..known] == MAGIC[..known];
            let early = BackupError::EndsEarly { offset };
            return Err(if is_backup && offset > 0 { early } else { BackupError::NoBackup });
        };
        let what = "the description and what follows do not fit together";
        let backup = description.backup(self.content.into());
        Ok((description, backup.ok_or(BackupError::Damaged { offset, what })?))
    }

    /// Reads something, if enough is there.
    fn step(&mut self) -> Result<bool, BackupError> {
        if self.description.is_none() {
            return self.read_head();
        }
        if self.is_over {
            let goes_on = self.read < self.waiting.len();
            return if goes_on {
                Err(self.damaged("it goes on behind its end"))
            } else {
                Ok(false)
            };
        }
        self.read_part()
    }

    fn damaged(&self, what: &'static str) -> BackupError {
        BackupError::Damaged { offset: self.offset + self.read as u64, what }
    }

    /// So many bytes, if they are there.
    fn peek(&self, count: usize) -> Option<&[u8]> {
        self.waiting.get(self.read..self.read.checked_add(count)?)
    }

    fn read_head(&mut self) -> Result<bool, BackupError> {
        let Some(head) = self.peek(HEAD_BYTES) else { return Ok(false) };
        if head[..8] != MAGIC[..] {
            return Err(BackupError::NoBackup);
        }
        let found = u16::from_le_bytes([head[8], head[9]]);
        if found != VERSION {
            return Err(BackupError::OtherVersion { found });
        }
        let length = le_u32_at(head, 10) as usize;
        if length > DESCRIPTION_BYTES_MAX {
            return Err(self.damaged("the description is too long"));
        }
        let end = HEAD_BYTES + length;
        let Some(whole) = self.peek(end + CHECKSUM_BYTES) else { return Ok(false) };
        if checksum(&[&whole[..end]]) != le_u64_at(whole, end) {
            return Err(self.damaged("the checksum of the description is wrong"));
        }
        let description: Description = serde_json::from_slice(&whole[HEAD_BYTES..end])
            .map_err(|_| self.damaged("the description is none"))?;
        let bytes = description.content_bytes();
        if bytes > CONTENT_BYTES_MAX {
            return Err(BackupError::TooLarge { bytes });
        }
        self.description = Some(description);
        self.digest = Some(XxHash3_64::new());
        self.read += end + CHECKSUM_BYTES;
        Ok(true)
    }

    fn read_part(&mut self) -> Result<bool, BackupError> {
        let Some(lengths) = self.peek(LENGTHS_BYTES) else { return Ok(false) };
        let (raw, second) = (le_u32_at(lengths, 0) as usize, le_u32_at(lengths, 4));
        let (is_packed, stored) = (second & IS_PACKED != 0, (second & !IS_PACKED) as usize);
        if raw > PART_BYTES_MAX || stored > raw || (raw == 0) != (second == 0) {
            return Err(self.damaged("the length of a part cannot be"));
        }
        let Some(part) = self.peek(LENGTHS_BYTES + stored + CHECKSUM_BYTES) else {
            return Ok(false);
        };
        let total = self.description.as_ref().map_or(0, Description::content_bytes);
        let digest = self.digest.as_ref().map_or(0, XxHash3_64::finish);
        let sum = le_u64_at(part, LENGTHS_BYTES + stored);
        if raw == 0 {
            if sum != digest || self.content.len() as u64 != total {
                return Err(self.damaged("the digest of the whole is wrong"));
            }
            self.is_over = true;
        } else {
            let bytes = &part[LENGTHS_BYTES..LENGTHS_BYTES + stored];
            if sum != checksum(&[&part[..LENGTHS_BYTES], bytes]) {
                return Err(self.damaged("the checksum of a part is wrong"));
            }
            let start = self.content.len();
            if (start + raw) as u64 > total {
                return Err(self.damaged("there is more than the description says"));
            }
            let bytes = bytes.to_vec();
            self.content.resize(start + raw, 0);
            let target = &mut self.content[start..];
            let is_right = if is_packed {
                lz4_flex::block::decompress_into(&bytes, target).is_ok_and(|count| count == raw)
            } else {
                let fits = stored == raw;
                if fits {
                    target.copy_from_slice(&bytes);
                }
                fits
            };
            if !is_right {
                return Err(self.damaged("a part cannot be unpacked"));
            }
            if let Some(digest) = &mut self.digest {
                digest.write(&self.content[start..]);
            }
        }
        self.read += LENGTHS_BYTES + stored + CHECKSUM_BYTES;
        Ok(!self.is_over || self.read < self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup(state: &[u8]) -> (Description, Backup) {
        let backup = Backup {
            history: History { count: 7, digest: 0xfeed_beef },
            time: 5,
            wall: 6,
            style: Style::WarmPassive,
            requests: 1,
            replies: Bytes::from_static(b"replies"),
            state: Bytes::copy_from_slice(state),
        };
        let description = Description {
            domain: "d".into(),
            group: "bank".into(),
            type_id: Some("IDL:Bank/Ledger:1.0".into()),
            node: "n1".into(),
            taken_ms: 1,
            style: "warm-passive".into(),
            executed: 7,
            history: "00000000feedbeef".into(),
            clock: 5,
            told: 6,
            requests: 1,
            replies_bytes: 7,
            state_bytes: state.len() as u64,
            version: "0".into(),
        };
        (description, backup)
    }

    fn file(state: &[u8]) -> Vec<u8> {
        let (description, backup) = backup(state);
        Encoder::new(description, backup).flatten().collect()
    }

    fn read(file: &[u8], step: usize) -> Result<(Description, Backup), BackupError> {
        let mut decoder = Decoder::default();
        file.chunks(step).try_for_each(|bytes| decoder.push(bytes))?;
        decoder.finish()
    }

    #[test]
    fn a_backup_is_read_as_it_was_written_whatever_the_pieces() {
        let noise = |at: usize| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        for length in [0, 1, PART_BYTES_MAX, PART_BYTES_MAX + 1, 3 * PART_BYTES_MAX + 5] {
            let plain = vec![b'x'; length];
            let mixed: Vec<u8> = (0..length).map(|at| noise(at) as u8).collect();
            for state in [plain, mixed] {
                let file = file(&state);
                for step in [1000, 65_536, usize::MAX] {
                    assert!(read(&file, step) == Ok(backup(&state)), "{length} {step}");
                }
            }
        }
    }

    #[test]
    fn whatever_bit_is_wrong_and_wherever_it_ends_it_is_refused() {
        let whole = file(b"the state of a group, the state of a group");
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(read(&damaged, 64).is_err(), "bit {bit} of byte {at}");
            }
            let ends = read(&whole[..at], 64);
            let early = Err(BackupError::EndsEarly { offset: at as u64 });
            assert_eq!(ends, if at == 0 { Err(BackupError::NoBackup) } else { early });
        }
        let longer = [&whole[..], b"x"].concat();
        assert!(matches!(read(&longer, 64), Err(BackupError::Damaged { .. })));
        assert_eq!(read(b"[domain]\nid = 'x'", 64), Err(BackupError::NoBackup));
    }

    #[test]
    fn another_version_and_announcements_without_measure_are_named() {
        let mut other = file(b"");
        other[8] = 9;
        assert_eq!(read(&other, 64), Err(BackupError::OtherVersion { found: 9 }));
        let (description, whole) = backup(b"");
        let bytes = u64::MAX;
        let huge = Description { state_bytes: bytes, ..description };
        let file: Vec<u8> = Encoder::new(huge, whole).flatten().collect();
        assert_eq!(read(&file, 64), Err(BackupError::TooLarge { bytes }));
    }
}
