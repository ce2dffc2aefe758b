//! What a fuzzer does with the decoder of what process groups tell each other (`fuzz/`).
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise of the decoder panics.

use crate::wire::Payload;
use bytes::Bytes;

/// An ordered payload: what can be read is read as the same after it was written.
///
/// # Panics
/// If it is not.
pub fn payload(input: &[u8]) {
    let Ok(payload) = Payload::decode(&Bytes::copy_from_slice(input)) else { return };
    let written = match &payload {
        Payload::Message { bytes, .. } => {
            assert!(input.ends_with(bytes), "a message is the end of its payload");
            return;
        }
        Payload::Operation(operation) => operation.encode(),
        Payload::Announcement(announcement) => announcement.encode(),
    };
    assert_eq!(Payload::decode(&written), Ok(payload), "read, written and read");
}

#[cfg(test)]
#[path = "../../../fuzz/inputs.rs"]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octets_harm_the_decoder_of_payloads() {
        inputs::run(200_000, payload);
    }
}
