//! One process at a time has a node's state directory.
//!
//! Invariant: the lock is the kernel's and ends with the process, however that ends; what stands in
//! the file is only for people.

use crate::NodeError;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

const FILE: &str = "node.lock";
/// A number and a line's end: always as long, so that a full disk has room for the next one.
const TEXT_BYTES: usize = 12;

/// Held for as long as this lives.
#[derive(Debug)]
pub(crate) struct StateLock {
    _file: File,
}

impl StateLock {
    /// Takes the directory, which is made if it is missing.
    ///
    /// # Errors
    /// [`NodeError::InUse`] if another process has it; [`NodeError::StateDir`] if it is of no use.
    pub(crate) fn take(state_dir: &Path) -> Result<Self, NodeError> {
        let failed = |source| NodeError::StateDir { path: state_dir.to_path_buf(), source };
        if !state_dir.is_dir() {
            DirBuilder::new().recursive(true).mode(0o750).create(state_dir).map_err(failed)?;
        }
        let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.mode(0o640).custom_flags(no_links);
        let mut file = options.open(state_dir.join(FILE)).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = state_dir.to_path_buf();
                return Err(NodeError::InUse { path, pid: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let text = format!("{:<width$}\n", std::process::id(), width = TEXT_BYTES - 1);
        // Without room for it nobody can read who has the lock, and it is as good.
        let _ = file.write_all_at(text.as_bytes(), 0);
        Ok(Self { _file: file })
    }
}

/// Who says that it has the lock.
fn holder(file: &mut File) -> Option<u32> {
    let read = |file: &mut File| -> io::Result<String> {
        let mut text = String::new();
        file.take(TEXT_BYTES as u64).read_to_string(&mut text)?;
        Ok(text)
    };
    read(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_second_process_hears_who_was_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let state_dir = folder.path().join("state/n1");
        let first = StateLock::take(&state_dir).expect("nobody has it");
        let Err(NodeError::InUse { pid, .. }) = StateLock::take(&state_dir) else {
            panic!("taken")
        };
        assert_eq!(pid, Some(std::process::id()));
        let mode = |name: &str| {
            let path = folder.path().join("state").join(name);
            std::fs::metadata(path).expect("it is there").permissions().mode() & 0o7
        };
        assert_eq!((mode("n1"), mode("n1/node.lock")), (0, 0), "nothing for all the world");
        drop(first);
        StateLock::take(&state_dir).expect("nobody has it any more");
    }
}
