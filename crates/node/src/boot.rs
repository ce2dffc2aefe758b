//! What a node remembers on disk between two boots: a few numbers, in one small file.
//!
//! Invariants: what the file gives after a crash is the old numbers or the new ones, as a whole.
//! They only grow. Once the file is there, to write it needs no new room on the disk and no
//! descriptor.

mod slots;

use crate::NodeError;
use crate::state_lock::StateLock;
use quorba_base::NodeId;
use quorba_engine::replica::{Former, Lineage, Record, RingId};
use slots::{Slots, Unusable};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the text begins with.
const FIRST_LINE: &str = "quorba-node 2";

/// The numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Memory {
    incarnation: u64,
    ring_seq: u64,
    /// Primary components that this node was part of, or was about to be.
    record: Record,
}

/// The file and what it holds.
#[derive(Debug)]
pub struct BootFile {
    path: PathBuf,
    slots: Slots,
    memory: Memory,
    _state_lock: StateLock,
}

impl BootFile {
    /// Opens the file in `state_dir` (made if missing) and begins a new boot in it. The directory
    /// is this process's until the file is dropped.
    ///
    /// # Errors
    /// [`NodeError`]: the directory or the file cannot be used, or is another process's; nothing
    /// was changed.
    pub fn begin(state_dir: &Path) -> Result<Self, NodeError> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        Self::begin_at(u64::try_from(clock).unwrap_or(u64::MAX), state_dir)
    }

    /// The same when the clock says `clock_ns`.
    fn begin_at(clock_ns: u64, state_dir: &Path) -> Result<Self, NodeError> {
        let failed = |source| NodeError::StateDir { path: state_dir.to_path_buf(), source };
        let state_lock = StateLock::take(state_dir)?;
        let path = state_dir.join("node.state");
        let foreign = || NodeError::StateFile { path: path.clone() };
        let (slots, text) = match Slots::open(&path) {
            Ok((slots, text)) => (Some(slots), text),
            Err(Unusable::System(error)) if error.kind() == io::ErrorKind::NotFound => {
                (None, FIRST_LINE.into())
            }
            Err(Unusable::System(error)) => return Err(failed(error)),
            Err(Unusable::Damaged(offset)) => {
                return Err(NodeError::StateDamaged { path: path.clone(), offset });
            }
            // Programs before this one wrote the text as it is.
            Err(Unusable::Foreign) => (None, fs::read(&path).map_err(failed)?),
        };
        let text = String::from_utf8(text).map_err(|_| foreign())?;
        let mut memory = parse(&text).ok_or_else(foreign)?;
        // A clock that was set back must not make this boot look older than the last.
        memory.incarnation = clock_ns.max(memory.incarnation.saturating_add(1));
        let text = written(&memory);
        let slots = match slots {
            Some(mut slots) => slots.write(text.as_bytes()).map(|()| slots),
            None => Slots::create(&path, text.as_bytes()),
        };
        Ok(Self { slots: slots.map_err(failed)?, path, memory, _state_lock: state_lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of this boot: above those of all earlier ones.
    #[must_use]
    pub const fn incarnation(&self) -> u64 {
        self.memory.incarnation
    }

    /// The highest ring number stored.
    #[must_use]
    pub const fn ring_seq(&self) -> u64 {
        self.memory.ring_seq
    }

    pub(crate) fn record(&self) -> Record {
        self.memory.record.clone()
    }

    /// Stores the highest ring number used.
    ///
    /// # Errors
    /// The disk's; the number must not be used then, and may be stored again.
    pub fn set_ring_seq(&mut self, ring_seq: u64) -> io::Result<()> {
        self.memory.ring_seq = self.memory.ring_seq.max(ring_seq);
        self.write()
    }

    pub(crate) fn set_record(&mut self, record: Record) -> io::Result<()> {
        self.memory.record = record;
        self.write()
    }

    /// Stores what was set; again, after an attempt that failed.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        self.slots.write(written(&self.memory).as_bytes())
    }
}

fn written(memory: &Memory) -> String {
    let Memory { incarnation, ring_seq, record } = memory;
    let mut text = format!("{FIRST_LINE}\nincarnation {incarnation}\nring_seq {ring_seq}\n");
    if let Some(formed) = &record.formed {
        put_component(&mut text, "formed", formed);
    }
    if let Some(RingId { seq, representative }) = record.base {
        text += &format!("base {seq} {}\n", representative.index());
    }
    for attempt in &record.attempts {
        put_component(&mut text, "attempt", attempt);
    }
    if let Some(Former { formed, base }) = &record.former {
        text += "former here\n";
        if let Some(formed) = formed {
            put_component(&mut text, "former_formed", formed);
        }
        if let Some(RingId { seq, representative }) = base {
            text += &format!("former_base {seq} {}\n", representative.index());
        }
    }
    text
}

/// A line such as `formed 65 0 0:1700 1:1650`: the view, its representative, nodes and boots.
fn put_component(text: &mut String, what: &str, component: &Lineage) {
    let RingId { seq, representative } = component.view;
    *text += &format!("{what} {seq} {}", representative.index());
    for (node, incarnation) in &component.members {
        *text += &format!(" {}:{incarnation}", node.index());
    }
    text.push('\n');
}

fn component(text: &str) -> Option<Lineage> {
    let mut words = text.split(' ');
    let seq = words.next()?.parse().ok()?;
    let node = |word: &str| NodeId::new(word.parse().ok()?);
    let view = RingId { seq, representative: node(words.next()?)? };
    let member = |word: &str| {
        let (who, incarnation) = word.split_once(':')?;
        Some((node(who)?, incarnation.parse().ok()?))
    };
    Some(Lineage { view, members: words.map(member).collect::<Option<_>>()? })
}

fn parse(text: &str) -> Option<Memory> {
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let mut memory = Memory::default();
    for line in lines {
        match line.split_once(' ')? {
            ("incarnation", value) => memory.incarnation = value.parse().ok()?,
            ("ring_seq", value) => memory.ring_seq = value.parse().ok()?,
            ("formed", value) => memory.record.formed = Some(component(value)?),
            ("base", value) => memory.record.base = Some(component(value)?.view),
            ("former", "here") => memory.record.former = Some(Former::default()),
            ("former_formed", value) => {
                memory.record.former.as_mut()?.formed = Some(component(value)?);
            }
            ("former_base", value) => {
                memory.record.former.as_mut()?.base = Some(component(value)?.view);
            }
            ("attempt", value) => memory.record.attempts.push(component(value)?),
            _ => return None,
        }
    }
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_and_boots_only_grow() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let mut first = BootFile::begin(dir).unwrap();
        assert_eq!(first.record(), Record::default());
        first.set_ring_seq(40).unwrap();
        first.set_ring_seq(12).unwrap();
        let node = |index| NodeId::new(index).unwrap();
        let component = |seq| Lineage {
            view: RingId { seq, representative: node(3) },
            members: vec![(node(3), u64::MAX), (node(5), seq)],
        };
        let attempts = vec![component(66), component(70)];
        let base = Some(component(64).view);
        let former = Former { formed: Some(component(63)), base: Some(component(62).view) };
        let formed = Some(component(65));
        let record = Record { formed, base, attempts, former: Some(former) };
        first.set_record(record.clone()).unwrap();
        let incarnation = first.incarnation();
        assert!(matches!(BootFile::begin(dir), Err(NodeError::InUse { .. })));
        drop(first);
        let mut second = BootFile::begin(dir).unwrap();
        assert!(second.incarnation() > incarnation);
        assert_eq!(second.ring_seq(), 40);
        assert_eq!(second.record(), record);
        let record = Record { former: Some(Former::default()), ..record };
        second.set_record(record.clone()).unwrap();
        drop(second);
        assert_eq!(BootFile::begin(dir).unwrap().record(), record);
        fs::write(dir.join("node.state"), "something else").unwrap();
        assert!(matches!(BootFile::begin(dir), Err(NodeError::StateFile { .. })));
        let old = "quorba-node 2\nincarnation 18446744073709551614\nring_seq 77\n";
        fs::write(dir.join("node.state"), old).unwrap();
        let upgraded = BootFile::begin(dir).unwrap();
        assert_eq!((upgraded.incarnation(), upgraded.ring_seq()), (u64::MAX, 77));
        drop(upgraded);
        assert_eq!(BootFile::begin(dir).unwrap().ring_seq(), 77);
    }

    /// Who takes part in the order by an older number is taken for what came before it, and not
    /// heard.
    #[test]
    fn a_boot_is_above_the_last_one_whatever_the_clock_says() {
        const LAST: u64 = u64::MAX / 2;
        for clock_ns in [0, 1, LAST - 1, LAST, LAST + 1] {
            let folder = tempfile::tempdir().unwrap();
            let text = format!("quorba-node 2\nincarnation {LAST}\nring_seq 3\n");
            fs::write(folder.path().join("node.state"), text).unwrap();
            for boot in 1..=3 {
                let begun = BootFile::begin_at(clock_ns, folder.path()).unwrap();
                assert_eq!(begun.incarnation(), LAST + boot, "at {clock_ns}");
            }
            let late = BootFile::begin_at(LAST + 100, folder.path()).unwrap();
            assert_eq!(late.incarnation(), LAST + 100, "a clock that goes on counts");
            drop(late);
            let back = BootFile::begin_at(clock_ns, folder.path()).unwrap();
            assert_eq!(back.incarnation(), LAST + 101, "at {clock_ns}");
        }
        // The machine's own clock is decades before that number.
        let folder = tempfile::tempdir().unwrap();
        let text = format!("quorba-node 2\nincarnation {LAST}\nring_seq 3\n");
        fs::write(folder.path().join("node.state"), text).unwrap();
        assert_eq!(BootFile::begin(folder.path()).unwrap().incarnation(), LAST + 1);
    }

    /// What was not part of a component, or not any more, must not come back.
    #[test]
    fn a_ring_number_is_never_lower_than_one_that_was_stored() {
        let folder = tempfile::tempdir().unwrap();
        let mut boot = BootFile::begin(folder.path()).unwrap();
        for (seq, highest) in [(7, 7), (3, 7), (u64::MAX, u64::MAX), (0, u64::MAX)] {
            boot.set_ring_seq(seq).unwrap();
            assert_eq!(boot.ring_seq(), highest);
            drop(boot);
            boot = BootFile::begin(folder.path()).unwrap();
            assert_eq!(boot.ring_seq(), highest, "at the next start");
        }
    }

    /// The disk has no room any more, and the process no descriptor: the file is written in place.
    #[test]
    fn a_state_file_that_is_there_needs_no_new_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut boot = BootFile::begin(folder.path()).unwrap();
        let bytes = || fs::metadata(folder.path().join("node.state")).unwrap().len();
        let before = bytes();
        for seq in 0..20 {
            boot.set_ring_seq(seq).unwrap();
        }
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((bytes(), names), (before, 2), "the file and the lock");
    }
}
