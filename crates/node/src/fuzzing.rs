//! What a fuzzer does with the bodies that come to the admin API (`fuzz/`).
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it. HTTP itself is a
//! library's.
//!
//! Invariant: an input that breaks a promise of a decoder panics.

use crate::backup::{BackupError, Decoder, Description, Encoder};
use bytes::Bytes;
use quorba_admin::Change;
use quorba_engine::replica::{Backup, History, Style};

/// A change of a group: what is understood is understood as the same after it was written.
///
/// # Panics
/// If it is not.
pub fn change(input: &[u8]) {
    let Ok(change) = serde_json::from_slice::<Change>(input) else { return };
    let written = serde_json::to_vec(&change).expect("it is plain data");
    let again: Change = serde_json::from_slice(&written).expect("it was written here");
    assert_eq!(again, change, "read, written and read");
}

fn read(file: &[u8], step: usize) -> Result<(Description, Backup), BackupError> {
    let mut decoder = Decoder::default();
    file.chunks(step).try_for_each(|bytes| decoder.push(bytes))?;
    decoder.finish()
}

fn written(state: &[u8]) -> (Description, Backup, Vec<u8>) {
    let backup = Backup {
        history: History { count: 7, digest: 1 },
        time: 5,
        wall: 6,
        style: Style::Active,
        requests: 1,
        replies: Bytes::from_static(b"replies"),
        state: Bytes::copy_from_slice(state),
    };
    let description = Description {
        domain: "d".into(),
        group: "g".into(),
        type_id: None,
        node: "n1".into(),
        taken_ms: 1,
        style: "active".into(),
        executed: 7,
        history: "1".into(),
        clock: 5,
        told: 6,
        requests: 1,
        replies_bytes: 7,
        state_bytes: state.len() as u64,
        version: "0".into(),
    };
    let file = Encoder::new(description.clone(), backup.clone()).flatten().collect();
    (description, backup, file)
}

/// A backup that comes to be restored, in pieces of the first octet's size: as it is, and written
/// of one half of the input and changed as the other half says.
///
/// # Panics
/// If it is read as something that was not written, or otherwise in other pieces.
pub fn backup(input: &[u8]) {
    let Some((step, rest)) = input.split_first() else { return };
    let step = usize::from(*step) + 1;
    assert_eq!(read(rest, step).is_ok(), read(rest, usize::MAX).is_ok(), "in whatever pieces");
    let (state, changes) = rest.split_at(rest.len() / 2);
    let (description, backup, mut file) = written(state);
    assert!(read(&file, step) == Ok((description.clone(), backup.clone())), "as it was written");
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        match change[2] {
            0 => file.truncate(at % (file.len() + 1)),
            1 => file.extend_from_slice(&change[..2]),
            value if !file.is_empty() => {
                let at = at % file.len();
                file[at] ^= value;
            }
            _ => {}
        }
    }
    let read_of = read(&file, step);
    assert_eq!(read_of.is_ok(), read(&file, usize::MAX).is_ok(), "in whatever pieces");
    assert!(read_of.is_err() || read_of == Ok((description, backup)), "or not at all");
}

#[cfg(test)]
#[path = "../../../fuzz/inputs.rs"]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octets_harm_the_admin_api() {
        inputs::run(20_000, change);
        inputs::run(10_000, backup);
    }
}
