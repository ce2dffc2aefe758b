//! `cargo xtask tidy`: the rules of STYLE.md and ARCHITECTURE.md that a program can check.
//!
//! What it is not: a formatter or a linter; `cargo fmt` and clippy are. Only what those cannot
//! know is checked here: which room and which folder may name which, sizes, heads of files,
//! forbidden words, links.
//!
//! Invariants: a check is a function from names and texts to findings, so each has a test with a
//! sample that fails; nothing is changed; there is no list of exceptions.

mod edges;
mod folders;
mod links;
mod manifest;
mod pure;
mod source;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::workspace;

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: PathBuf,
    /// From 1; 0 where the file as a whole is meant.
    line: usize,
    /// The rule, in a word.
    rule: &'static str,
    what: String,
}

impl Finding {
    fn new(path: &Path, line: usize, rule: &'static str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path.display(), self.line, self.rule, self.what)
    }
}

/// A file of the source tree.
struct File {
    /// Relative to the root.
    path: PathBuf,
    text: String,
}

/// The pure rooms, as folders of `crates/`.
pub(crate) fn pure_rooms() -> impl Iterator<Item = &'static str> {
    pure::ROOMS.iter().map(|(room, _)| *room)
}

/// Checks the source tree; fails if there is a finding.
pub(crate) fn run() -> ExitCode {
    let root = workspace::root();
    let files = match read_tree(root) {
        Ok(files) => files,
        Err(reason) => {
            eprintln!("tidy: the source tree cannot be read: {reason}");
            return ExitCode::FAILURE;
        }
    };
    let mut findings = check(root, &files);
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(root: &Path, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let words = words::Words::new(root);
    for file in files {
        let (path, text) = (&file.path, file.text.as_str());
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        findings.extend(words.check(path, text));
        if source::is_source(extension) && !source::is_generated(text) {
            findings.extend(source::check_sizes(path, text));
        }
        match extension {
            "rs" if !source::is_generated(text) => {
                findings.extend(source::check_head(path, text));
                findings.extend(source::check_functions(path, text));
                findings.extend(pure::check_source(path, text));
                findings.extend(folders::check(path, text));
            }
            "md" => findings.extend(source::check_width(path, text)),
            "toml" if path.ends_with("Cargo.toml") => {
                findings.extend(manifest::check(path, text));
                findings.extend(edges::check(path, text));
                findings.extend(pure::check_dependencies(path, text));
            }
            _ => {}
        }
    }
    findings.extend(links::check(files));
    findings
}

/// Every text file that is, or could become, part of the repository.
fn read_tree(root: &Path) -> Result<Vec<File>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !listed.status.success() {
        return Err(String::from_utf8_lossy(&listed.stderr).trim().to_owned());
    }
    let mut files = Vec::new();
    for name in listed.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let path = PathBuf::from(String::from_utf8_lossy(name).into_owned());
        // Deleted and not yet committed: nothing to say about it.
        let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
        // What is no text is known by its name: links may lead there.
        let text = String::from_utf8(bytes).unwrap_or_default();
        files.push(File { path, text });
    }
    Ok(files)
}

/// The folder of the crate that a file belongs to: `crates/giop/src/cdr.rs` is in `giop`.
fn room_of(path: &Path) -> Option<&str> {
    let mut parts = path.components().map(|part| part.as_os_str().to_str().unwrap_or(""));
    match parts.next()? {
        "crates" => parts.next(),
        "xtask" => Some("xtask"),
        _ => None,
    }
}

/// The line of byte `at`, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_folders() {
        assert_eq!(room_of(Path::new("crates/giop/src/cdr.rs")), Some("giop"));
        assert_eq!(room_of(Path::new("xtask/src/main.rs")), Some("xtask"));
        assert_eq!(room_of(Path::new("README.md")), None);
    }

    #[test]
    fn this_repository_can_be_read() {
        let files = read_tree(workspace::root()).expect("git lists the files");
        assert!(files.iter().any(|file| file.path == Path::new("Cargo.toml")));
    }
}
