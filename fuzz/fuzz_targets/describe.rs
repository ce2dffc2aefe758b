//! Fuzzes the target `describe` of the `giop` crate's tests.
#![no_main]

#[path = "../../crates/giop/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run("describe", input));
