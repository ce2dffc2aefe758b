//! Fuzzes `stream` of the `ringd` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_ringd::fuzzing::stream(input));
