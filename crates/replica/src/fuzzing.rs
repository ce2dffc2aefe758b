//! What a fuzzer does with the decoders of what nodes tell each other in the order and beside it,
//! and of what they keep (`fuzz/`).
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise of a decoder panics.

use crate::envelope::Envelope;
use crate::log::Established;
use crate::log_snapshot::LogSnapshot;
use crate::passive::Checkpoint;
use crate::peer::PeerMessage;
use crate::transfer;
use bytes::Bytes;

/// An ordered message: what can be read is read as the same after it was written.
///
/// # Panics
/// If it is not.
pub fn envelope(input: &[u8]) {
    let Ok(envelope) = Envelope::decode(Bytes::copy_from_slice(input)) else { return };
    assert_eq!(Envelope::decode(envelope.encode()), Ok(envelope), "read, written and read");
}

/// The same of a message that goes over a link.
///
/// # Panics
/// If it is not.
pub fn peer(input: &[u8]) {
    let Ok(message) = PeerMessage::decode(Bytes::copy_from_slice(input)) else { return };
    assert_eq!(PeerMessage::decode(message.encode()), Ok(message), "read, written and read");
}

/// The same of what a member's state travels and is kept in: the first octet says as what the
/// others are read.
///
/// # Panics
/// If it is not.
pub fn kept(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let bytes = Bytes::copy_from_slice(rest);
    match kind % 4 {
        0 => {
            let Ok(checkpoint) = Checkpoint::decode(bytes) else { return };
            assert_eq!(Checkpoint::decode(checkpoint.encode()), Ok(checkpoint));
        }
        1 => {
            let Ok(component) = Established::decode(bytes) else { return };
            assert_eq!(Established::decode(component.encode()), Ok(component));
        }
        2 => drop(LogSnapshot::decode(bytes).and_then(LogSnapshot::unpack)),
        _ => drop(transfer::unpack(bytes)),
    }
}

#[cfg(test)]
#[path = "../../../fuzz/inputs.rs"]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octets_harm_the_decoders() {
        for target in [envelope, peer, kept] {
            inputs::run(100_000, target);
        }
    }
}
