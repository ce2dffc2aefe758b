//! Fuzzes `handshake` of the `net` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_net::fuzzing::handshake(input));
