//! Fuzzes the target `fragment` of the `giop` crate's tests.
#![no_main]

#[path = "../../crates/giop/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run("fragment", input));
