//! The table of contents, made of the index of the documents.
//!
//! What it is not: a text of its own.
//!
//! Invariants: every page is named once; the index names most of them, in its order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::links;

/// mdBook's summary, of the index (`docs/README.md`) and all pages.
pub(crate) fn summary(index: &str, pages: &BTreeSet<PathBuf>) -> String {
    let mut text = String::from("# Summary\n\n[Quorba](README.md)\n[Documents](docs/README.md)\n");
    let mut told: BTreeSet<PathBuf> = ["README.md", "docs/README.md"].map(PathBuf::from).into();
    for line in index.split("\n## ").skip(1) {
        let (title, body) = line.split_once('\n').unwrap_or((line, ""));
        text.push_str(&format!("\n# {title}\n\n"));
        for link in links::of(body) {
            let Some(path) = links::resolve(Path::new("docs"), &link.target) else { continue };
            if pages.contains(&path) && told.insert(path.clone()) {
                text.push_str(&format!("- [{}]({})\n", link.text, path.display()));
            }
        }
    }
    let rest: Vec<&PathBuf> = pages.iter().filter(|page| !told.contains(*page)).collect();
    if !rest.is_empty() {
        text.push_str("\n# Records and more\n\n");
    }
    for page in rest {
        let name = page.with_extension("");
        let name = name.strip_prefix("docs").unwrap_or(&name);
        text.push_str(&format!("- [{}]({})\n", name.display(), page.display()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stand_in_the_order_of_the_index_and_once() {
        let pages = ["README.md", "docs/README.md", "docs/a.md", "docs/b.md", "docs/c.md"];
        let pages = pages.map(PathBuf::from).into();
        let index = "# D\n\n## How\n\n- Do [b](b.md), [a](a.md#x).\n\n## Why\n\n- [b](b.md)\n";
        let made = summary(index, &pages);
        let expected = "# Summary\n\n[Quorba](README.md)\n[Documents](docs/README.md)\n\n\
                        # How\n\n- [b](docs/b.md)\n- [a](docs/a.md)\n\n# Why\n\n\n\
                        # Records and more\n\n- [c](docs/c.md)\n";
        assert_eq!(made, expected);
    }
}
