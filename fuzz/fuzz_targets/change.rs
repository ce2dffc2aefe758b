//! Fuzzes `change` of the `node` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_node::fuzzing::change(input));
