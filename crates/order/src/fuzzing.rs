//! What a fuzzer does with the decoder of the ring's packets (`fuzz/`).
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise of the decoder panics.

use crate::wire::Packet;
use bytes::{Bytes, BytesMut};

/// The plaintext of a datagram: what can be read is read as the same after it was written.
///
/// # Panics
/// If it is not.
pub fn packet(input: &[u8]) {
    let Ok(packet) = Packet::decode(&Bytes::copy_from_slice(input)) else { return };
    let mut written = BytesMut::new();
    packet.encode(&mut written);
    assert_eq!(Packet::decode(&written.freeze()), Ok(packet), "read, written and read");
}

#[cfg(test)]
#[path = "../../../fuzz/inputs.rs"]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octets_harm_the_decoder_of_packets() {
        inputs::run(200_000, packet);
    }
}
