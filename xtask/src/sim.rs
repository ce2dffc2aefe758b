//! `cargo xtask sim`: the simulator, built as it is fastest, for as long as one likes.
//!
//! What it is not: another simulator; it is `quorba sim`. Invariant: its exit code is that of the
//! command.

use std::process::ExitCode;

use clap::Args;

use crate::test::cargo;

/// How long, and from where.
#[derive(Args)]
pub(crate) struct Options {
    /// Minutes to go on for
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    from: u64,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let (minutes, from) = (options.minutes.to_string(), options.from.to_string());
    let words = ["run", "--release", "--quiet", "--", "sim", "--keep-going"];
    let mut command = cargo(&words);
    command.args(["--minutes", &minutes, "--from", &from]);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("cargo cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}
