//! Fuzzes `kept` of the `replica` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_replica::fuzzing::kept(input));
