//! The `quorba` command.

fn main() {}
