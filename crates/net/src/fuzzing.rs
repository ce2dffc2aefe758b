//! What a fuzzer does with what comes over a link (`fuzz/`).
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise of a link panics.

pub use crate::links::fuzzing::{frames, handshake};

#[cfg(test)]
#[path = "../../../fuzz/inputs.rs"]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octets_harm_a_link() {
        inputs::run(100_000, frames);
        inputs::run(20_000, handshake);
    }
}
