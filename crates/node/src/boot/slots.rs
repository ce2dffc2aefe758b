//! A small text on disk that is replaced as a whole without new room: two slots of one file, made
//! once at their full length, written in turn and in place, over a descriptor that stays open.
//!
//! Each slot is a row of sectors, each with a checksum, the number of the writing that it belongs
//! to, and its place in the row. So a writing that a crash cut off, which leaves some sectors old,
//! is told from a sector that has changed since, which nothing may be built on.
//!
//! What it is not: a place for secrets or for much. Invariants: after a crash the file gives what
//! was written last, or, if that was under way, what was written before; nothing else. A write
//! that returns is on disk. On file systems that write nothing in place (btrfs, ZFS) a write may
//! need room all the same; it fails then, and may be repeated.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use quorba_base::fields::le_u64_at;

/// The unit of a write, as disks have it.
const SECTOR_BYTES: usize = 512;
const MAGIC: [u8; 8] = *b"quorba-3";
/// The magic, checksum, number of the writing, place in the row, length of the row, bytes in use.
const HEAD_BYTES: usize = 8 + 8 + 8 + 2 + 2 + 2;
const TEXT_BYTES: usize = SECTOR_BYTES - HEAD_BYTES;
/// Sectors of a slot: room for the records of large domains.
const SLOT_SECTORS: usize = 128;
/// Sectors of the largest slot that is read: more is not ours.
const SLOT_SECTORS_MAX: usize = 1 << 14;

/// What cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// It is another kind of file.
    Foreign,
    /// It is ours, and was changed by something else: at this offset.
    Damaged(usize),
    /// The system's.
    System(io::Error),
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// The open file.
#[derive(Debug)]
pub(super) struct Slots {
    path: PathBuf,
    file: File,
    slot_sectors: usize,
    /// The number of the last writing.
    last: u64,
}

/// What a slot holds.
enum Found {
    /// Nothing was ever written, or the first writing was cut off.
    Nothing,
    Whole(u64, Vec<u8>),
    /// A writing was cut off.
    Torn,
}

impl Slots {
    /// Opens the file at `path`, and gives the text in it.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<u8>), Unusable> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(no_links());
        let file = options.open(path)?;
        let meta = file.metadata()?;
        let bytes = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        let slot_sectors = bytes / SECTOR_BYTES / 2;
        if !meta.is_file() || slot_sectors == 0 || slot_sectors > SLOT_SECTORS_MAX {
            return Err(Unusable::Foreign);
        }
        let mut content = vec![0; slot_sectors * SECTOR_BYTES * 2];
        file.read_exact_at(&mut content, 0)?;
        let (first, second) = content.split_at(slot_sectors * SECTOR_BYTES);
        if !first.starts_with(&MAGIC) && !second.starts_with(&MAGIC) {
            return Err(Unusable::Foreign);
        }
        let found = [read_slot(first, 0)?, read_slot(second, first.len())?];
        let mut newest = None;
        for slot in found {
            if let Found::Whole(number, text) = slot
                && newest.as_ref().is_none_or(|(newest, _)| number > *newest)
            {
                newest = Some((number, text));
            }
        }
        // One of them is written at a time, so that one is whole.
        let (last, text) = newest.ok_or(Unusable::Damaged(0))?;
        Ok((Self { path: path.to_path_buf(), file, slot_sectors, last }, text))
    }

    /// Makes the file at `path` with all the room that it needs, and `text` in it.
    pub(super) fn create(path: &Path, text: &[u8]) -> io::Result<Self> {
        Self::make(path, text, 1)
    }

    fn make(path: &Path, text: &[u8], number: u64) -> io::Result<Self> {
        let mut slot_sectors = SLOT_SECTORS;
        while row_of(text) > slot_sectors {
            slot_sectors *= 2;
        }
        let next = path.with_extension("state.next");
        // What an attempt left that was cut off; or a link that somebody planted.
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o640).custom_flags(no_links());
        let mut file = options.open(&next)?;
        // Written, and not only promised: a part that was never written may need room later.
        file.write_all(&vec![0; slot_sectors * SECTOR_BYTES * 2])?;
        let mut slots = Self { path: path.to_path_buf(), file, slot_sectors, last: number - 1 };
        slots.write(text)?;
        slots.file.sync_all()?;
        fs::rename(&next, path)?;
        // The name, too, must be there after a crash.
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(slots)
    }

    /// Replaces the text, durably.
    ///
    /// # Errors
    /// The system's; the file gives the former text then, or this one.
    pub(super) fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let number = self.last + 1;
        if row_of(text) > self.slot_sectors {
            *self = Self::make(&self.path, text, number)?;
            return Ok(());
        }
        let slot = usize::from(number.is_multiple_of(2)) * self.slot_sectors * SECTOR_BYTES;
        let written = self.file.write_all_at(&row(text, number), slot as u64);
        let written = written.and_then(|()| self.file.sync_data());
        // What a failed attempt left must not be taken for a part of the next one, which goes to
        // the same slot: the other one is good.
        self.last = if written.is_ok() { number } else { number + 1 };
        written
    }
}

/// A link in the place of the file is not followed.
fn no_links() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

/// How many sectors a text takes.
fn row_of(text: &[u8]) -> usize {
    text.len().div_ceil(TEXT_BYTES).max(1)
}

fn row(text: &[u8], number: u64) -> Vec<u8> {
    let count = row_of(text) as u16;
    let mut row = Vec::with_capacity(usize::from(count) * SECTOR_BYTES);
    for place in 0..count {
        let begin = usize::from(place) * TEXT_BYTES;
        let part = &text[begin..text.len().min(begin + TEXT_BYTES)];
        let mut sector = Vec::with_capacity(SECTOR_BYTES);
        sector.extend(MAGIC);
        sector.extend([0; 8]);
        sector.extend(number.to_le_bytes());
        sector.extend(place.to_le_bytes());
        sector.extend(count.to_le_bytes());
        sector.extend((part.len() as u16).to_le_bytes());
        sector.extend(part);
        sector.resize(SECTOR_BYTES, 0);
        let sum = checksum(&sector);
        sector[8..16].copy_from_slice(&sum.to_le_bytes());
        row.extend(sector);
    }
    row
}

/// Of all but the checksum.
fn checksum(sector: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(&sector[16..])
}

/// A sector that is as it was written.
struct Sector<'a> {
    number: u64,
    place: u16,
    count: u16,
    text: &'a [u8],
}

/// `None`: it was never written.
fn read_sector(sector: &[u8]) -> Result<Option<Sector<'_>>, ()> {
    if sector.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let number = |at: usize| le_u64_at(sector, at);
    let short = |at: usize| u16::from_le_bytes([sector[at], sector[at + 1]]);
    if !sector.starts_with(&MAGIC) || number(8) != checksum(sector) {
        return Err(());
    }
    let text = sector.get(HEAD_BYTES..HEAD_BYTES + usize::from(short(28))).ok_or(())?;
    Ok(Some(Sector { number: number(16), place: short(24), count: short(26), text }))
}

fn read_slot(slot: &[u8], offset: usize) -> Result<Found, Unusable> {
    let damaged = |place: usize| Unusable::Damaged(offset + place * SECTOR_BYTES);
    let mut sectors = slot.chunks_exact(SECTOR_BYTES).enumerate();
    let Some((_, first)) = sectors.next() else { return Ok(Found::Nothing) };
    let Some(first) = read_sector(first).map_err(|()| damaged(0))? else {
        return Ok(Found::Nothing);
    };
    let mut text = first.text.to_vec();
    let mut is_torn = first.place != 0;
    for (place, sector) in sectors.take(usize::from(first.count).saturating_sub(1)) {
        match read_sector(sector).map_err(|()| damaged(place))? {
            Some(sector) if sector.number == first.number => {
                is_torn |= usize::from(sector.place) != place;
                text.extend_from_slice(sector.text);
            }
            Some(_) | None => is_torn = true,
        }
    }
    Ok(if is_torn { Found::Torn } else { Found::Whole(first.number, text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize, letter: u8) -> Vec<u8> {
        vec![letter; length]
    }

    #[test]
    fn the_last_text_is_found_again_whatever_its_length() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("node.state");
        let mut slots = Slots::create(&path, b"first").expect("made");
        assert_eq!(Slots::open(&path).expect("opened").1, b"first");
        for length in [0, 1, TEXT_BYTES, TEXT_BYTES + 1, 40_000, 3, 200_000, 7] {
            slots.write(&text(length, b'x')).expect("written");
            let (again, found) = Slots::open(&path).expect("opened");
            assert_eq!((found.len(), again.last), (length, slots.last));
        }
    }

    /// Whatever sectors of a writing are there after a crash, the text is the new or the old one;
    /// and what changed later is told.
    #[test]
    fn a_writing_that_was_cut_off_leaves_the_text_before_and_damage_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("node.state");
        let mut slots = Slots::create(&path, &text(1_200, b'a')).expect("made");
        slots.write(&text(1_300, b'b')).expect("written");
        let before = fs::read(&path).expect("read");
        slots.write(&text(1_400, b'c')).expect("written");
        let after = fs::read(&path).expect("read");
        let changed: Vec<usize> = (0..after.len() / SECTOR_BYTES)
            .map(|sector| sector * SECTOR_BYTES)
            .filter(|at| before[*at..at + SECTOR_BYTES] != after[*at..at + SECTOR_BYTES])
            .collect();
        assert_eq!(changed.len(), 3);
        for those in 0..1 << changed.len() {
            let mut image = before.clone();
            let all = those + 1 == 1 << changed.len();
            for (index, at) in changed.iter().enumerate().filter(|(i, _)| those >> i & 1 == 1) {
                let _ = index;
                image[*at..at + SECTOR_BYTES].copy_from_slice(&after[*at..at + SECTOR_BYTES]);
            }
            fs::write(&path, &image).expect("written");
            let (mut again, found) = Slots::open(&path).expect("opened");
            let wanted = if all { text(1_400, b'c') } else { text(1_300, b'b') };
            assert_eq!(found, wanted, "{those:b}");
            again.write(b"next").expect("written");
            assert_eq!(Slots::open(&path).expect("opened").1, b"next");
        }
        for at in (0..3 * SECTOR_BYTES).step_by(37) {
            let mut image = after.clone();
            image[at] ^= 4;
            fs::write(&path, &image).expect("written");
            let told = Slots::open(&path).expect_err("it is damaged");
            assert!(matches!(told, Unusable::Damaged(_)), "{at}: {told:?}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_file_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, other] = ["node.state", "other"].map(|name| folder.path().join(name));
        fs::write(&other, "somebody else's").expect("written");
        std::os::unix::fs::symlink(&other, folder.path().join("node.state.next")).expect("a link");
        Slots::create(&path, b"first").expect("made");
        assert_eq!(fs::read(&other).expect("read"), b"somebody else's");
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink(&other, &path).expect("a link");
        assert!(matches!(Slots::open(&path), Err(Unusable::System(_))));
    }
}
