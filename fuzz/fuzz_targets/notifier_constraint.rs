//! Fuzzes `constraint` of the `notifier` crate's `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorba_notifier::fuzzing::constraint(input));
