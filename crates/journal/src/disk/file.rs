//! A directory of the operating system, for the log of one node.
//!
//! Invariants: at most one process has it open for writing (a lock on the file `lock`); files are
//! readable by their owner only, because they hold what clients sent.

use super::{Disk, DiskFile};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOCK: &str = "lock";

/// See the module's text.
#[derive(Debug)]
pub struct FileDisk {
    path: PathBuf,
    directory: File,
    /// Held for as long as this lives; none for a reader.
    lock: Option<File>,
}

impl FileDisk {
    /// Opens the directory for a log, and makes it if it is missing.
    ///
    /// # Errors
    /// The operating system's; `ResourceBusy` if another process has it open.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                File::open(parent)?.sync_all()?;
            }
        }
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(LOCK))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                let what = format!("{} is in use by another process", path.display());
                io::Error::new(io::ErrorKind::ResourceBusy, what)
            }
            TryLockError::Error(error) => error,
        })?;
        let directory = File::open(path)?;
        Ok(Self { path: path.to_path_buf(), directory, lock: Some(lock) })
    }

    /// Opens the directory for looking only, also beside a process that writes. What would change
    /// a file fails.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open_for_reading(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_path_buf(), directory: File::open(path)?, lock: None })
    }

    fn check_writable(&self) -> io::Result<()> {
        let writable = self.lock.is_some();
        if writable { Ok(()) } else { Err(io::ErrorKind::ReadOnlyFilesystem.into()) }
    }
}

impl Disk for FileDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            // A name that is no text is none of ours.
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
                && name != LOCK
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.check_writable()?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(Arc::new(OpenFile(options.open(self.path.join(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let writable = self.lock.is_some();
        let file = OpenOptions::new().read(true).write(writable).open(self.path.join(name))?;
        Ok(Arc::new(OpenFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check_writable()?;
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.check_writable()?;
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

#[derive(Debug)]
struct OpenFile(File);

impl DiskFile for OpenFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        // The length is data, too: fdatasync writes what is needed to read the file back.
        self.0.sync_data()
    }
}
