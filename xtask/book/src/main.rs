//! The documents of the repository as a book of HTML pages: `cargo xtask docs` runs it.
//!
//! What it is not: a second index. The contents are the links of `docs/README.md`, in its order;
//! pages that it does not name come last.
//!
//! Invariants: every document below `docs` is in the book; a link to a document leads to its page;
//! a link to a file that is no page of the book is shown as a name.

mod contents;
mod links;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

/// Documents outside of `docs` that belong to the book.
const OUTSIDE: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "STYLE.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "examples/README.md",
];
const INDEX: &str = "docs/README.md";

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(root), Some(target), None) = (words.next(), words.next(), words.next()) else {
        eprintln!("usage: quorba-book ROOT TARGET");
        return ExitCode::from(3);
    };
    match build(&root, &target) {
        Ok(pages) => {
            println!("book: {pages} pages: {}", target.join("html/index.html").display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("book: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the book of the repository `root` in the folder `target`, and counts its pages.
fn build(root: &Path, target: &Path) -> Result<usize, Box<dyn Error>> {
    let mut pages: BTreeSet<PathBuf> = OUTSIDE.iter().map(PathBuf::from).collect();
    collect(root, Path::new("docs"), &mut pages)?;
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    let source = target.join("src");
    for page in &pages {
        let text = fs::read_to_string(root.join(page))?;
        let to = source.join(page);
        fs::create_dir_all(to.parent().unwrap_or(&source))?;
        fs::write(to, links::keep(&text, page, &pages))?;
    }
    for picture in pictures(root, Path::new("docs"))? {
        let to = source.join(&picture);
        fs::create_dir_all(to.parent().unwrap_or(&source))?;
        fs::copy(root.join(&picture), to)?;
    }
    let index = fs::read_to_string(root.join(INDEX))?;
    fs::write(source.join("SUMMARY.md"), contents::summary(&index, &pages))?;
    let config: Config = "[book]\ntitle = \"Quorba\"\nlanguage = \"en\"\n\
                          [build]\nbuild-dir = \"html\"\ncreate-missing = false\n"
        .parse()?;
    MDBook::load_with_config(target, config)?.build()?;
    Ok(pages.len())
}

/// All Markdown files in and below `folder`, as seen from `root`.
fn collect(root: &Path, folder: &Path, pages: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for path in files(root, folder)? {
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.insert(path);
        }
    }
    Ok(())
}

fn pictures(root: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let is_picture = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "svg");
    Ok(files(root, folder)?.into_iter().filter(is_picture).collect())
}

fn files(root: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(files(root, &path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_makes_a_book() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let target = std::env::temp_dir().join(format!("quorba-book-{}", std::process::id()));
        let pages = build(root, &target).expect("a book");
        let index = target.join("html/docs/reference/config.html");
        let is_there = index.exists();
        fs::remove_dir_all(&target).expect("the folder is ours");
        assert!(is_there && pages > 40, "{pages} pages");
    }
}
