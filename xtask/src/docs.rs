//! `cargo xtask docs`: the documentation of the crates, with their private items, as programmers
//! read it.
//!
//! What it is not: what users read; that is `docs/`. Invariant: a link that leads nowhere is an
//! error.

use std::process::ExitCode;

use crate::test::cargo;

const WORDS: &[&str] = &["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
/// Private items are there to be linked to.
const FLAGS: (&str, &str) = ("RUSTDOCFLAGS", "-Dwarnings -Arustdoc::private_intra_doc_links");

pub(crate) fn run() -> ExitCode {
    match cargo(WORDS).env(FLAGS.0, FLAGS.1).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("docs: cargo cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}
