//! A test that cannot run on this machine says so, by its name and with the reason.
//!
//! libtest knows no test that skips itself: what returns early has passed. So it is told on the
//! side: a line goes to standard error, and, where `QUORBA_SKIPS` names a file, to its end, from
//! where `cargo xtask test` takes the count.
//!
//! What it is not: a way to leave out what is slow or does not work. Invariant: a line is one
//! write, so that those of several processes do not run into each other.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// The variable that names the file.
pub const SKIPS: &str = "QUORBA_SKIPS";

/// One thing that was not done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// Of the test or the case.
    pub name: String,
    /// What is not there.
    pub reason: String,
}

/// `name` is not done, because of `reason`.
///
/// # Panics
/// If there is a file for it that cannot be written: nobody would hear of it.
pub fn skip(name: &str, reason: &str) {
    // Past what libtest keeps to itself of a test that passed.
    let _ = writeln!(io::stderr(), "skipped: {name}: {reason}");
    let Some(path) = std::env::var_os(SKIPS) else { return };
    let path = Path::new(&path);
    append(path, name, reason).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn append(path: &Path, name: &str, reason: &str) -> io::Result<()> {
    let plain = |text: &str| text.replace(['\n', '\r', '\t'], " ");
    let line = format!("{}\t{}\n", plain(name), plain(reason));
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}

/// All that the file at `path` names; nothing if there is none.
///
/// # Errors
/// It cannot be read, or is no such file.
pub fn read(path: &Path) -> io::Result<Vec<Skip>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let skip = |line: &str| {
        let (name, reason) = line.split_once('\t')?;
        Some(Skip { name: name.to_owned(), reason: reason.to_owned() })
    };
    let skips: Option<Vec<Skip>> = text.lines().map(skip).collect();
    skips.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no list of skips"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_is_read_again_line_by_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("skips");
        assert_eq!(read(&path).expect("none"), []);
        append(&path, "one", "no\nroot").expect("written");
        append(&path, "two", "no\tbank: see below").expect("written");
        let skip = |name: &str, reason: &str| Skip { name: name.into(), reason: reason.into() };
        let both = [skip("one", "no root"), skip("two", "no bank: see below")];
        assert_eq!(read(&path).expect("two"), both);
        std::fs::write(&path, "something else\n").expect("written");
        assert!(read(&path).is_err());
    }
}
