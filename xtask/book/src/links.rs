//! Links of Markdown texts: which there are, and those that lead out of the book made into names.
//!
//! What it is not: a check; `cargo xtask tidy` reports links that lead nowhere.
//!
//! Invariant: text that is not part of a link stays as it is.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A link: its text, where it leads, and its place.
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) target: String,
    place: Range<usize>,
}

/// All links to files and pages, in their order.
pub(crate) fn of(text: &str) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut is_open = false;
    for (event, place) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                is_open = true;
                links.push(Link { text: String::new(), target: dest_url.into_string(), place });
            }
            Event::End(TagEnd::Link) => is_open = false,
            Event::Text(words) | Event::Code(words) if is_open => {
                if let Some(link) = links.last_mut() {
                    link.text.push_str(&words);
                }
            }
            Event::SoftBreak if is_open => {
                if let Some(link) = links.last_mut() {
                    link.text.push(' ');
                }
            }
            _ => {}
        }
    }
    links
}

/// `text`, the page at `at`, without links to files that are no pages of the book.
pub(crate) fn keep(text: &str, at: &Path, pages: &BTreeSet<PathBuf>) -> String {
    let folder = at.parent().unwrap_or(Path::new(""));
    let mut kept = text.to_owned();
    for link in of(text).into_iter().rev() {
        let target = &link.target;
        let is_elsewhere =
            target.contains("://") || target.starts_with('#') || target.starts_with("mailto:");
        let is_page = || resolve(folder, target).is_some_and(|path| pages.contains(&path));
        if !is_elsewhere && !is_page() {
            kept.replace_range(link.place, &link.text);
        }
    }
    kept
}

/// The file that `target` leads to from `folder`, without the heading.
pub(crate) fn resolve(folder: &Path, target: &str) -> Option<PathBuf> {
    let path = target.split('#').next().unwrap_or(target);
    let mut resolved = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir if !resolved.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            Component::Normal(part) => resolved.push(part),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_become_names() {
        let pages = ["docs/a.md", "docs/b.md"].map(PathBuf::from).into();
        let text = "See [b](b.md#part), [the code](../crates/x.rs), [all](https://x.example).";
        let kept = keep(text, Path::new("docs/a.md"), &pages);
        assert_eq!(kept, "See [b](b.md#part), the code, [all](https://x.example).");
    }
}
