//! Fuzzes `any` of the `corba` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_corba::fuzzing::any(input));
