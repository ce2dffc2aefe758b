//! Fuzzes `payload` of the `groups` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_groups::fuzzing::payload(input));
