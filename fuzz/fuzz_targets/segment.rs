//! Fuzzes the target `segment` of the `journal` crate's tests.
#![no_main]

#[path = "../../crates/journal/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run("segment", input));
