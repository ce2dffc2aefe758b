//! `cargo xtask files`: each file of each crate with the first sentence of its head, so that who
//! looks for a thing finds its place: docs/internals/files.md, and for the crate `replica` the end
//! of docs/internals/replica.md.
//!
//! What it is not: a second description. Invariant: every word of the lists stands in the code; a
//! test compares the pages with what is made here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::metrics::page::{without_links, wrapped};
use crate::workspace;

const PAGE: &str = "docs/internals/files.md";
/// The page of the largest crate, whose list begins behind this line.
const REPLICA_PAGE: &str = "docs/internals/replica.md";
const REPLICA: &str = "replica";
const REPLICA_HEADING: &str = "## Every file\n";

const HEAD: &str = "# Every file

Each file of the crates with the first sentence of its own head, made by `cargo xtask files`; a test
keeps it so. [ARCHITECTURE.md](../../ARCHITECTURE.md) says what the crates are, and where the most
important things are decided. The files of `replica` stand in [its own page](replica.md#every-file).
";

/// The pages as they must be now: their path from the root, and their text.
struct Pages([(&'static str, String); 2]);

pub(crate) fn run() -> ExitCode {
    let write = |Pages(pages): Pages| {
        let mut pages = pages.into_iter();
        pages.try_for_each(|(path, text)| {
            fs::write(workspace::root().join(path), text).map_err(|it| format!("{path}: {it}"))
        })
    };
    match make().and_then(write) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("files: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make() -> Result<Pages, String> {
    let crates = workspace::root().join("crates");
    let mut all = HEAD.to_owned();
    for name in names(&crates)? {
        if name != REPLICA {
            all.push_str(&format!("\n## {name}\n\n{}", list(&crates.join(&name).join("src"))?));
        }
    }
    let page = fs::read_to_string(workspace::root().join(REPLICA_PAGE));
    let page = page.map_err(|error| format!("{REPLICA_PAGE}: {error}"))?;
    let own = page.split_once(REPLICA_HEADING).map_or(page.as_str(), |(before, _)| before);
    let list = list(&crates.join(REPLICA).join("src"))?;
    let replica = format!(
        "{}\n\n{REPLICA_HEADING}\nFirst sentences of the files' heads, made by `cargo xtask \
         files`.\n\n{list}",
        own.trim_end()
    );
    Ok(Pages([(PAGE, all), (REPLICA_PAGE, replica)]))
}

/// What is in a folder, by name.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(told)? {
        names.push(entry.map_err(told)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The files below a crate's `src`, without tests and without what is generated.
fn list(source: &Path) -> Result<String, String> {
    let mut lines = String::new();
    let mut left = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        let whole = source.join(&path);
        if whole.is_dir() {
            // The file of a module before its folder.
            let mut inside: Vec<PathBuf> =
                names(&whole)?.into_iter().map(|name| path.join(name)).collect();
            inside.sort_by_key(|path| (path.with_extension(""), path.extension().is_none()));
            left.extend(inside.into_iter().rev());
        } else if is_listed(&path) {
            let text = fs::read_to_string(&whole);
            let text = text.map_err(|error| format!("{}: {error}", whole.display()))?;
            let sentence = first_sentence(&text)
                .ok_or_else(|| format!("{} has no head that ends a sentence", whole.display()))?;
            lines.push_str(&wrapped("  ", &format!("- `{}`: {sentence}", path.display())));
        }
    }
    Ok(lines)
}

fn is_listed(path: &Path) -> bool {
    let is_test = |part: &str| part == "tests" || part.ends_with("tests.rs");
    let mut parts = path.iter().filter_map(|part| part.to_str());
    path.extension().is_some_and(|it| it == "rs")
        && !parts.any(|part| is_test(part) || part == "generated")
}

/// The first sentence of a file's head (`//!`), without links.
fn first_sentence(text: &str) -> Option<String> {
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    let words: Vec<&str> = head.take_while(|line| !line.trim().is_empty()).collect();
    let head = words.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let end = head.match_indices(". ").map(|(at, _)| at).find(|at| !is_abbreviation(&head[..*at]));
    let sentence = match end {
        Some(at) => &head[..=at],
        None => head.as_str(),
    };
    (!sentence.is_empty()).then(|| without_links(sentence))
}

/// Whether what ends before a stop is no sentence.
fn is_abbreviation(text: &str) -> bool {
    ["e.g", "i.e", "etc", "fig", "vs"].iter().any(|short| text.ends_with(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_what_the_code_says() {
        let Pages(pages) = make().unwrap();
        for (path, text) in pages {
            let written = fs::read_to_string(workspace::root().join(path)).unwrap_or_default();
            assert!(written == text, "{path} is old: cargo xtask files");
        }
    }

    #[test]
    fn the_first_sentence_ends_at_its_stop_or_at_the_end_of_the_paragraph() {
        let text = "//! Names of things: groups, see\n//! [`a::Calls`]. And more.\n\nuse x;\n";
        assert_eq!(first_sentence(text).as_deref(), Some("Names of things: groups, see `Calls`."));
        assert_eq!(first_sentence("//! No stop\n//!\n//! More.\n").as_deref(), Some("No stop"));
        assert_eq!(first_sentence("use x;\n"), None);
    }

    #[test]
    fn tests_and_what_is_generated_are_not_listed() {
        let listed = |path: &str| is_listed(Path::new(path));
        assert!(listed("state/retention.rs") && listed("lib.rs"));
        assert!(!listed("tests/one.rs") && !listed("admin/catalog_tests.rs"));
        assert!(!listed("generated/events.rs") && !listed("README.md"));
    }
}
