//! Fuzzes `state` of the `events` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_events::fuzzing::state(input));
