//! What a node remembers on disk between two boots: a few numbers, in one small file.
//!
//! Invariant: the file is replaced as a whole and synced, so that after a crash it holds either
//! the old numbers or the new ones. They only grow.

use crate::NodeError;
use quorba_base::NodeId;
use quorba_engine::replica::ViewId;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Memory {
    incarnation: u64,
    ring_seq: u64,
    /// The last primary component that this node was part of.
    primary: Option<ViewId>,
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

    pub(crate) fn primary(&self) -> Option<ViewId> {
        self.memory.primary
    }

    /// Stores the highest ring number used.
    ///
    /// # Errors
    /// The disk's; the number must not be used then.
    pub fn set_ring_seq(&mut self, ring_seq: u64) -> std::io::Result<()> {
        self.memory.ring_seq = self.memory.ring_seq.max(ring_seq);
        self.write()
    }

    pub(crate) fn set_primary(&mut self, primary: ViewId) -> std::io::Result<()> {
        self.memory.primary = self.memory.primary.max(Some(primary));
        self.write()
    }

    fn write(&self) -> std::io::Result<()> {
        let Memory { incarnation, ring_seq, primary } = self.memory;
        let mut text = format!("quorba-node 1\nincarnation {incarnation}\nring_seq {ring_seq}\n");
        if let Some(ViewId { seq, representative }) = primary {
            text += &format!("primary {seq} {}\n", representative.index());
        }
        let next = self.path.with_extension("next");
        let mut file = File::create(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&next, &self.path)
    }
}

fn parse(text: &str) -> Option<Memory> {
    let mut lines = text.lines();
    if lines.next()? != "quorba-node 1" {
        return None;
    }
    let mut memory = Memory::default();
    for line in lines {
        match line.split_once(' ')? {
            ("incarnation", value) => memory.incarnation = value.parse().ok()?,
            ("ring_seq", value) => memory.ring_seq = value.parse().ok()?,
            ("primary", value) => {
                let (seq, representative) = value.split_once(' ')?;
                let representative = NodeId::new(representative.parse().ok()?)?;
                memory.primary = Some(ViewId { seq: seq.parse().ok()?, representative });
            }
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
        assert_eq!(first.primary(), None);
        first.set_ring_seq(40).unwrap();
        first.set_ring_seq(12).unwrap();
        let view = |seq| ViewId { seq, representative: NodeId::new(3).unwrap() };
        first.set_primary(view(65)).unwrap();
        first.set_primary(view(9)).unwrap();
        let second = BootFile::begin(&dir).unwrap();
        assert!(second.incarnation() > first.incarnation());
        assert_eq!(second.ring_seq(), 40);
        assert_eq!(second.primary(), Some(view(65)));
        fs::write(dir.join("node.state"), "something else").unwrap();
        assert!(matches!(BootFile::begin(&dir), Err(NodeError::StateFile { .. })));
        fs::remove_dir_all(&dir).unwrap();
    }
}
