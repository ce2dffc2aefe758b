//! What to call the file system that a path is on, for messages about one that is full.
//!
//! Invariant: what cannot be found out is left out; nothing here fails.

pub(crate) use quorba_journal::disk::is_shortage;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whether a file system has no room left, or its user's quota is used up.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether no descriptor is left, in the process or the system.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    is_shortage(error) && !is_full(error)
}

/// Such as "the file system at /var (ext4 on /dev/vda2)".
pub(crate) fn describe(path: &Path) -> String {
    let unknown = || format!("the file system of {}", path.display());
    // A file that is not there yet is on its folder's.
    let known = path.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        fs::canonicalize(path).ok()
    });
    let Some(path) = known else { return unknown() };
    let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo") else { return unknown() };
    let mounts = mounts.lines().filter_map(mount).filter(|mount| path.starts_with(&mount.at));
    // Of several at one place the last one hides the others.
    let found = mounts.max_by_key(|mount| mount.at.components().count());
    found.map_or_else(unknown, |Mount { at, kind, source }| {
        format!("the file system at {} ({kind} on {source})", at.display())
    })
}

/// What is to be said of an error at `path`: the file system by name, if it is full.
pub(crate) fn explain(path: &Path, error: &io::Error) -> String {
    if is_full(error) {
        format!("{error}: {} is full", describe(path))
    } else if is_out_of_descriptors(error) {
        format!("{error}: no descriptor is left (ulimit -n)")
    } else {
        error.to_string()
    }
}

struct Mount {
    at: PathBuf,
    kind: String,
    source: String,
}

/// A line of `mountinfo` (proc(5)).
fn mount(line: &str) -> Option<Mount> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    Some(Mount {
        at: unescaped(mount.split(' ').nth(4)?).into(),
        kind: kind.next()?.to_owned(),
        source: unescaped(kind.next()?),
    })
}

/// Spaces and the like are written as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).map(|code| u8::from_str_radix(code, 8)) {
            Some(Ok(byte)) => {
                plain.push(char::from(byte));
                plain += &part[3..];
            }
            _ => {
                plain.push('\\');
                plain += part;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_with_its_place_kind_and_source() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw master:1 - ext3 /dev/root rw,errors=continue";
        let Mount { at, kind, source } = mount(line).expect("a mount");
        assert_eq!((at, &*kind, &*source), ("/mnt 2".into(), "ext3", "/dev/root"));
        assert!(mount("nonsense").is_none());
    }

    #[test]
    fn a_full_disk_is_named_and_other_errors_are_what_they_were() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let said = explain(Path::new("/proc/self/not there"), &full);
        assert!(said.contains("the file system at /proc (proc on "), "{said}");
        let other = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(explain(Path::new("/proc"), &other), other.to_string());
        assert!(is_out_of_descriptors(&io::Error::from_raw_os_error(24)));
    }
}
