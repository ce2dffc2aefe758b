//! What a node remembers on disk between two boots: a few numbers, in one small file.
//!
//! Invariant: the file is replaced as a whole and synced, so that after a crash it holds either
//! the old numbers or the new ones. They only grow.

use crate::NodeError;
use quorba_base::NodeId;
use quorba_engine::replica::{Former, Lineage, Record, ViewId};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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
    memory: Memory,
}

impl BootFile {
    /// Opens the file in `state_dir` (made if missing) and begins a new boot in it.
    ///
    /// # Errors
    /// [`NodeError`]: the directory or the file cannot be used; nothing was changed.
    pub fn begin(state_dir: &Path) -> Result<Self, NodeError> {
        let failed = |source| NodeError::StateDir { path: state_dir.to_path_buf(), source };
        fs::create_dir_all(state_dir).map_err(failed)?;
        let path = state_dir.join("node.state");
        let mut memory = match fs::read_to_string(&path) {
            Ok(text) => parse(&text).ok_or(NodeError::StateFile { path: path.clone() })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Memory::default(),
            Err(error) => return Err(failed(error)),
        };
        // A clock that was set back must not make this boot look older than the last.
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let clock = u64::try_from(clock).unwrap_or(u64::MAX);
        memory.incarnation = clock.max(memory.incarnation.saturating_add(1));
        let file = Self { path, memory };
        file.write().map_err(failed)?;
        Ok(file)
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
    /// The disk's; the number must not be used then.
    pub fn set_ring_seq(&mut self, ring_seq: u64) -> std::io::Result<()> {
        self.memory.ring_seq = self.memory.ring_seq.max(ring_seq);
        self.write()
    }

    pub(crate) fn set_record(&mut self, record: Record) -> std::io::Result<()> {
        self.memory.record = record;
        self.write()
    }

    fn write(&self) -> std::io::Result<()> {
        let Memory { incarnation, ring_seq, record } = &self.memory;
        let mut text = format!("quorba-node 2\nincarnation {incarnation}\nring_seq {ring_seq}\n");
        if let Some(formed) = &record.formed {
            put_component(&mut text, "formed", formed);
        }
        if let Some(ViewId { seq, representative }) = record.base {
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
            if let Some(ViewId { seq, representative }) = base {
                text += &format!("former_base {seq} {}\n", representative.index());
            }
        }
        let next = self.path.with_extension("next");
        let mut file = File::create(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&next, &self.path)?;
        // The name, too, must be there after a crash.
        let parent = self.path.parent().unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()
    }
}

/// A line such as `formed 65 0 0:1700 1:1650`: the view, its representative, nodes and boots.
fn put_component(text: &mut String, what: &str, component: &Lineage) {
    let ViewId { seq, representative } = component.view;
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
    let view = ViewId { seq, representative: node(words.next()?)? };
    let member = |word: &str| {
        let (who, incarnation) = word.split_once(':')?;
        Some((node(who)?, incarnation.parse().ok()?))
    };
    Some(Lineage { view, members: words.map(member).collect::<Option<_>>()? })
}

fn parse(text: &str) -> Option<Memory> {
    let mut lines = text.lines();
    if lines.next()? != "quorba-node 2" {
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
        let dir = std::env::temp_dir().join(format!("quorba-boot-{}", std::process::id()));
        let mut first = BootFile::begin(&dir).unwrap();
        assert_eq!(first.record(), Record::default());
        first.set_ring_seq(40).unwrap();
        first.set_ring_seq(12).unwrap();
        let node = |index| NodeId::new(index).unwrap();
        let component = |seq| Lineage {
            view: ViewId { seq, representative: node(3) },
            members: vec![(node(3), u64::MAX), (node(5), seq)],
        };
        let attempts = vec![component(66), component(70)];
        let base = Some(component(64).view);
        let former = Former { formed: Some(component(63)), base: Some(component(62).view) };
        let formed = Some(component(65));
        let record = Record { formed, base, attempts, former: Some(former) };
        first.set_record(record.clone()).unwrap();
        let second = BootFile::begin(&dir).unwrap();
        assert!(second.incarnation() > first.incarnation());
        assert_eq!(second.ring_seq(), 40);
        assert_eq!(second.record(), record);
        let record = Record { former: Some(Former::default()), ..record };
        first.set_record(record.clone()).unwrap();
        assert_eq!(BootFile::begin(&dir).unwrap().record(), record);
        fs::write(dir.join("node.state"), "something else").unwrap();
        assert!(matches!(BootFile::begin(&dir), Err(NodeError::StateFile { .. })));
        fs::remove_dir_all(&dir).unwrap();
    }
}
