//! Fuzzes `datagrams` of the `order` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_order::fuzzing::datagrams(input));
