//! What the log asks of a disk: one flat directory of files, and a closed list of operations.
//!
//! What it is not: a file system. It has no subdirectories, no permissions and no times.
//!
//! Invariants: the log touches no disk but through [`Disk`] and [`DiskFile`], so that what the
//! simulator tears and damages is what ships. Nothing is durable before a sync said so: a file's
//! content by [`DiskFile::sync`], its name by [`Disk::sync_dir`]. After a sync that failed, what
//! was written since the one before is unknown for ever: a second sync that succeeds says nothing
//! about it (Linux reports a lost write once).

mod fault;
mod file;
mod image;
mod simulated;

pub use fault::{Faults, Survival};
pub use file::FileDisk;
pub use simulated::SimulatedDisk;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A directory.
pub trait Disk: Debug + Send + Sync + 'static {
    /// The names of all files, in order.
    ///
    /// # Errors
    /// The disk's.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file, in place of one of the same name.
    ///
    /// # Errors
    /// The disk's.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that is there.
    ///
    /// # Errors
    /// The disk's; `NotFound` if there is none.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in place of one that has it.
    ///
    /// # Errors
    /// The disk's.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The disk's.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable as they are.
    ///
    /// # Errors
    /// The disk's.
    fn sync_dir(&self) -> io::Result<()>;
}

/// A file of a [`Disk`]; it stays the same file when it is renamed.
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// Its length in octets.
    ///
    /// # Errors
    /// The disk's.
    fn bytes(&self) -> io::Result<u64>;

    /// Fills `out` from `offset`.
    ///
    /// # Errors
    /// The disk's; `UnexpectedEof` if the file ends before.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` at `offset`; a gap before it reads as zeros.
    ///
    /// # Errors
    /// The disk's (`StorageFull` if there is no space); any part may have been written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Cuts or extends (with zeros) to this length.
    ///
    /// # Errors
    /// The disk's.
    fn set_bytes(&self, bytes: u64) -> io::Result<()>;

    /// Waits until all that was written is durable.
    ///
    /// # Errors
    /// The disk's; see the module's text for what that means.
    fn sync(&self) -> io::Result<()>;
}

/// Whether the system has no room now, neither for data nor for one more open file, and may have
/// again: whoever tries once more then loses nothing.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    /// `ENFILE` and `EMFILE`, for which the standard library has no kind.
    const NO_DESCRIPTORS: [i32; 2] = [23, 24];
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        || error.raw_os_error().is_some_and(|code| NO_DESCRIPTORS.contains(&code))
}

/// The longest file that is read as a whole. A segment is never near it; what a damaged directory
/// says is not believed.
const WHOLE_BYTES_MAX: u64 = 1 << 30;

/// The whole content, read in pieces.
///
/// # Errors
/// The disk's, with the offset of the piece that cannot be read.
pub(crate) fn read_whole(file: &dyn DiskFile) -> Result<Vec<u8>, (u64, io::Error)> {
    const PIECE_BYTES: usize = 1 << 20;
    let bytes = file.bytes().map_err(|error| (0, error))?;
    if bytes > WHOLE_BYTES_MAX {
        return Err((WHOLE_BYTES_MAX, io::ErrorKind::FileTooLarge.into()));
    }
    let mut whole = vec![0; usize::try_from(bytes).expect("bounded above")];
    let mut offset = 0;
    for piece in whole.chunks_mut(PIECE_BYTES) {
        file.read_at(offset, piece).map_err(|error| (offset, error))?;
        offset += piece.len() as u64;
    }
    Ok(whole)
}
