//! `cargo xtask metrics`: the page docs/reference/metrics.md, made of the code that says what a
//! node exports (crates/admin/src/status.rs) and of what [`table`] adds: what a rise means.
//!
//! What it is not: a second list of figures. Names, units, labels and meanings are read from the
//! source. Invariant: every number of a status is a row of the table, and every row is a number of
//! a status; a test compares the page with what is made here.

pub(crate) mod page;
mod source;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::workspace;

/// Where what a node says of itself is defined, from the root of the source tree.
const SOURCES: [&str; 2] = ["crates/admin/src/status.rs", "crates/admin/src/status/unanswered.rs"];
const PAGE: &str = "docs/reference/metrics.md";

pub(crate) fn run() -> ExitCode {
    let written = make().and_then(|text| fs::write(place(), text).map_err(|it| it.to_string()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("metrics: {error}");
            ExitCode::FAILURE
        }
    }
}

fn place() -> PathBuf {
    workspace::root().join(PAGE)
}

/// The page as it must be now.
fn make() -> Result<String, String> {
    let mut structs = source::Structs::default();
    for path in SOURCES {
        let text = fs::read_to_string(workspace::root().join(path));
        structs.read(&text.map_err(|error| format!("{path}: {error}"))?)?;
    }
    page::text(&structs.numbers("Status")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_code_says() {
        let made = make().unwrap();
        let written = fs::read_to_string(place()).unwrap_or_default();
        assert!(written == made, "{PAGE} is old: cargo xtask metrics");
    }
}
