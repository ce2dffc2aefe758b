//! Inputs of a generator of its own, the same ones every time: what a crate's tests run its fuzz
//! targets with, for a second of what the fuzzers do for hours.
//!
//! What it is not: a search for inputs. It follows no coverage.

extern crate std;

use std::vec::Vec;

/// The longest input, in octets.
const INPUT_BYTES_MAX: u64 = 300;

/// Runs `target` with so many inputs. Half of them have small octets only, which are what kinds,
/// flags and counts mostly are; a third begins as the one before did.
pub(crate) fn run(count: usize, target: fn(&[u8])) {
    let mut state = 0x5eed_f022_u64;
    let mut next = || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    };
    let mut before: Vec<u8> = Vec::new();
    for _ in 0..count {
        let len = (next() % INPUT_BYTES_MAX) as usize;
        let most = if next().is_multiple_of(2) { 24 } else { 256 };
        let keep = if next().is_multiple_of(3) { (next() as usize) % (len + 1) } else { 0 };
        let mut input: Vec<u8> = before.iter().copied().take(keep).collect();
        input.extend((input.len()..len).map(|_| (next() % most) as u8));
        target(&input);
        before = input;
    }
}
