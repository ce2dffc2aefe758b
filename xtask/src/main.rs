//! What a person or CI runs: test, tidy, interop.

fn main() {}
