//! Fuzzes `calls` of the `naming` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_naming::fuzzing::calls(input));
