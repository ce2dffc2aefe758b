//! Links in Markdown files: they lead to a file, and to a heading, that is there.
//!
//! What it is not: a check of the network. Links to other places pass.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::{File, Finding};

/// Checks the links of every Markdown file.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut anchors: BTreeMap<&Path, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        known.extend(file.path.ancestors().map(Path::to_owned));
        if is_markdown(&file.path) {
            anchors.insert(&file.path, headings(&file.text));
        }
    }
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_markdown(&file.path)) {
        for (line, target) in links(&file.text) {
            let reason = match broken(&file.path, &target, &known, &anchors) {
                Some(reason) => reason,
                None => continue,
            };
            findings.push(Finding::new(&file.path, line, "link", format!("{target}: {reason}")));
        }
    }
    findings
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn broken(
    from: &Path,
    target: &str,
    known: &BTreeSet<PathBuf>,
    anchors: &BTreeMap<&Path, BTreeSet<String>>,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let path = match path {
        "" => from.to_owned(),
        _ => resolve(from.parent().unwrap_or(Path::new("")), path)?,
    };
    if !known.contains(&path) {
        return Some("there is no such file");
    }
    let anchor = anchor?;
    let headings = anchors.get(path.as_path())?;
    if headings.contains(anchor) { None } else { Some("the file has no such heading") }
}

/// `path` as seen from `folder`, without `.` and `..`.
fn resolve(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => {
                if !resolved.pop() {
                    return Some(PathBuf::from("(outside of the repository)"));
                }
            }
            Component::Normal(part) => resolved.push(part),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

/// The lines of a Markdown text that are not in a code block, with code spans blanked.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        if fence {
            fenced = !fenced;
        }
        if fenced || fence {
            return None;
        }
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        Some((number + 1, plain))
    })
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let Some(end) = rest.find(')') else { continue };
            // A title may follow the target.
            let target = rest[..end].split_whitespace().next().unwrap_or("");
            links.push((number, target.trim_matches(['<', '>']).to_owned()));
        }
    }
    links
}

/// The anchors that GitHub makes of a file's headings.
fn headings(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|char| char.is_alphanumeric() || "-_ ".contains(*char))
            .map(|char| if char == ' ' { '-' } else { char })
            .collect();
        // Of equal headings the second has -1, the third -2.
        let mut anchor = slug.clone();
        let mut nth = 0;
        while !anchors.insert(anchor.clone()) {
            nth += 1;
            anchor = format!("{slug}-{nth}");
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(files: &[(&str, &str)]) -> Vec<(usize, String)> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: PathBuf::from(path), text: (*text).to_owned() })
            .collect();
        check(&files).into_iter().map(|finding| (finding.line, finding.what)).collect()
    }

    #[test]
    fn dead_links_are_found() {
        let text = "[a](docs/a.md) [b](docs/b.md)\n[up](../x.md)\n[web](https://example.org)\n\
                    ```\n[code](no.md)\n```\n`[span](no.md)` [dir](docs)\n";
        let found = whats(&[("README.md", text), ("docs/a.md", "")]);
        assert_eq!(
            found,
            [
                (1, "docs/b.md: there is no such file".to_owned()),
                (2, "../x.md: there is no such file".to_owned()),
            ]
        );
    }

    #[test]
    fn links_are_relative_to_their_file() {
        let found = whats(&[
            ("docs/a.md", "[r](../README.md) [b](./b.md \"title\")"),
            ("docs/b.md", ""),
            ("README.md", ""),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn dead_anchors_are_found() {
        let text = "# What it is\n## Limits: 16 MiB\n[ok](#what-it-is) [ok](#limits-16-mib)\n\
                    [no](#what-it-was)\n";
        let found = whats(&[("a.md", text), ("b.md", "[x](a.md#limits-16-mib) [y](a.md#y)")]);
        assert_eq!(
            found,
            [
                (4, "#what-it-was: the file has no such heading".to_owned()),
                (1, "a.md#y: the file has no such heading".to_owned()),
            ]
        );
    }
}
