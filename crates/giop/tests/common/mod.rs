//! Reads the recorded streams and references of `corpus/`.

#![allow(dead_code, reason = "not every test that shares this module needs all of it")]

use std::fs;
use std::path::{Path, PathBuf};

use quorba_giop::{Framer, FramerLimits, Message, limits};

/// A recorded direction of a connection.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// Files of a folder of the corpus, sorted by name.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus().join(folder);
    let entries = fs::read_dir(&folder).expect("the corpus is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    let name = |path: &Path| path.file_name().expect("a file").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read(path).expect("readable"))).collect()
}

pub(crate) fn streams() -> Vec<Stream> {
    files("streams").into_iter().map(|(name, bytes)| Stream { name, bytes }).collect()
}

/// Stringified references with the names of their files.
pub(crate) fn references() -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("references are text");
    files("references").into_iter().map(|(name, bytes)| (name, text(bytes))).collect()
}

pub(crate) fn framer() -> Framer {
    Framer::new(FramerLimits {
        message_bytes_max: limits::MESSAGE_BYTES_MAX,
        fragmented_requests_max: limits::FRAGMENTED_REQUESTS_MAX,
        buffered_bytes_max: 2 * limits::MESSAGE_BYTES_MAX,
    })
}

/// Whole messages of a stream that arrives in pieces of `piece` bytes.
pub(crate) fn messages(bytes: &[u8], piece: usize) -> Vec<Message> {
    let mut framer = framer();
    let mut messages = Vec::new();
    for piece in bytes.chunks(piece) {
        framer.push(piece);
        while let Some(message) = framer.next().expect("a recorded stream is well-formed") {
            messages.push(message);
        }
    }
    assert_eq!(framer.buffered_bytes(), 0, "something is left over");
    messages
}
