//! `cargo xtask docs`: the documentation of the crates, with their private items, as programmers
//! read it, and the documents in `docs/` as a book of HTML pages.
//!
//! What it is not: a text; `docs/` is. Invariant: a link in the documentation of a crate that leads
//! nowhere is an error; `tidy` says so of links between documents.

use std::process::{Command, ExitCode};

use crate::test::cargo;
use crate::workspace;

const CRATES: &[&str] = &["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
/// Private items are there to be linked to.
const FLAGS: (&str, &str) = ("RUSTDOCFLAGS", "-Dwarnings -Arustdoc::private_intra_doc_links");
const BOOK: &[&str] = &["run", "--quiet", "--package", "quorba-book", "--"];

pub(crate) fn run() -> ExitCode {
    let mut crates = cargo(CRATES);
    crates.env(FLAGS.0, FLAGS.1);
    let mut book = cargo(BOOK);
    book.arg(workspace::root()).arg(workspace::target().join("book"));
    let is_done = succeeds("documentation of the crates", &mut crates);
    if succeeds("book", &mut book) && is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn succeeds(what: &str, command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("{what}: cargo cannot be run: {error}");
            false
        }
    }
}
