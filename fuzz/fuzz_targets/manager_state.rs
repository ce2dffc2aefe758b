//! Fuzzes `state` of the `manager` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_manager::fuzzing::state(input));
