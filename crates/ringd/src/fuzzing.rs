//! What a fuzzer does with the frames between the daemon and its programs (`fuzz/`).
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise of a decoder panics.

use crate::protocol::{Notice, Wish, frame_bytes, next_frame, put_join, put_leave, put_send};
use bytes::BytesMut;
use quorba_groups::MESSAGE_HEADER_BYTES;

/// A stream in both directions: frames are found as long as they say they are, and what can be
/// read of a program's wishes is read as the same after it was written.
///
/// # Panics
/// If it is not.
pub fn stream(input: &[u8]) {
    notices(input);
    let mut buffer = BytesMut::from(input);
    while let Ok(Some(frame)) = next_frame(&mut buffer) {
        let Ok(wish) = Wish::decode(frame) else { continue };
        let mut again = BytesMut::new();
        match &wish {
            Wish::Join(name) => put_join(&mut again, name),
            Wish::Leave(group) => put_leave(&mut again, *group),
            Wish::Send { guarantee, group, frame } => {
                put_send(&mut again, *group, *guarantee, &frame[MESSAGE_HEADER_BYTES..]);
            }
        }
        let frame = next_frame(&mut again).expect("it was written here").expect("it is whole");
        match (Wish::decode(frame), &wish) {
            (Ok(Wish::Send { guarantee, group, frame }), Wish::Send { .. }) => {
                let Wish::Send { guarantee: g, group: to, frame: before } = &wish else { return };
                assert_eq!((guarantee, group), (*g, *to));
                // The room in front holds nothing yet.
                let message = |frame: &BytesMut| frame[MESSAGE_HEADER_BYTES..].to_vec();
                assert_eq!(message(&frame), message(before));
            }
            (again, _) => assert_eq!(again.as_ref(), Ok(&wish), "read, written and read"),
        }
    }
}

fn notices(mut input: &[u8]) {
    while let Ok(Some(whole)) = frame_bytes(input) {
        let (frame, rest) = input.split_at(whole);
        if let Ok(Notice::View(view)) = Notice::decode(frame) {
            let processes = view.members.len() + view.joined.len() + view.left.len();
            assert!(processes < frame.len(), "no more processes than octets");
        }
        input = rest;
    }
    let _ = Notice::decode(input);
}

#[cfg(test)]
#[path = "../../../fuzz/inputs.rs"]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octets_harm_the_daemon_or_its_programs() {
        inputs::run(100_000, stream);
    }
}
