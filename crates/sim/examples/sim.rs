//! `cargo run -p quorba-sim --example sim -- --seed 7`

use std::process::ExitCode;

fn main() -> ExitCode {
    quorba_sim::main(std::env::args().skip(1))
}
