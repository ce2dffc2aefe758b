//! Which folder of a large room may name which: edges between modules, as those between rooms.
//!
//! What it is not: a check of what is public. Tests are left out: they may build what they need;
//! so are paths that are written out in the arguments of macros.
//!
//! Invariant: the picture has no cycle; a new edge is made here and in ARCHITECTURE.md together.

use std::path::Path;

use syn::visit::Visit;

use super::{Finding, room_of};

/// The folders of `replica`, each with what stands below it. The later may name the earlier.
const REPLICA: &[&str] = &[
    "words", "table", "calls", "messages", "primary", "state", "output", "server", "member",
    "group", "replica",
];

/// Rooms whose folders are in order.
const ROOMS: &[(&str, &[&str])] = &[("replica", REPLICA)];

/// Checks what a file of such a room names.
pub(super) fn check(path: &Path, text: &str) -> Vec<Finding> {
    let Some(room) = room_of(path) else { return Vec::new() };
    let Some((_, order)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return Vec::new();
    };
    let Ok(inside) = path.strip_prefix(format!("crates/{room}/src")) else { return Vec::new() };
    let parts: Vec<_> = inside.iter().filter_map(|part| part.to_str()).collect();
    let Some(own) = parts.first().map(|part| part.trim_end_matches(".rs")) else {
        return Vec::new();
    };
    // Roots of the room, which name everything.
    if ["lib", "fuzzing"].contains(&own) || parts.iter().any(|part| is_of_tests(part)) {
        return Vec::new();
    }
    let Some(place) = order.iter().position(|folder| *folder == own) else {
        let what = format!("{own} is not in the picture of {room} (xtask/src/tidy/folders.rs)");
        return vec![Finding::new(path, 0, "folder", what)];
    };
    // What does not parse is the compiler's to tell.
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let mut names = Names { found: Vec::new() };
    names.visit_file(&file);
    let mut findings = Vec::new();
    for (line, named) in names.found {
        let at = order.iter().position(|folder| *folder == named);
        if at.is_some_and(|at| at > place) {
            let what = format!("{own} may not name {named}");
            findings.push(Finding::new(path, line, "folder", what));
        }
    }
    findings
}

fn is_of_tests(part: &str) -> bool {
    part.trim_end_matches(".rs") == "tests"
}

/// What follows `crate::`, with the line where it stands.
struct Names {
    found: Vec<(usize, String)>,
}

impl Names {
    fn tree(&mut self, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.note(&path.ident),
            syn::UseTree::Name(name) => self.note(&name.ident),
            syn::UseTree::Rename(rename) => self.note(&rename.ident),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item)),
            syn::UseTree::Glob(_) => {}
        }
    }

    fn note(&mut self, ident: &syn::Ident) {
        self.found.push((ident.span().start().line, ident.to_string()));
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_conditional(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_conditional(&item.attrs) {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if is_conditional(&item.attrs) {
            return;
        }
        if let syn::UseTree::Path(path) = &item.tree
            && path.ident == "crate"
        {
            self.tree(&path.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter();
        if segments.next().is_some_and(|first| first.ident == "crate")
            && let Some(second) = segments.next()
        {
            self.note(&second.ident);
        }
        syn::visit::visit_path(self, path);
    }
}

/// Only in tests, or for documents.
fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    let only = |attribute: &syn::Attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let said = list.tokens.to_string();
        list.path.is_ident("cfg") && (said == "test" || said == "doc")
    };
    attributes.iter().any(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        check(Path::new(path), text).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_forbidden_edge_is_found_and_one_downwards_is_not() {
        let text = "use crate::words::ids::GroupId;\nuse crate::group::Group;\n\
                    fn f() -> crate::member::Member { m() }\n";
        let findings = check(Path::new("crates/replica/src/table/votes.rs"), text);
        let lines: Vec<_> = findings.iter().map(|one| (one.line, one.what.as_str())).collect();
        let member = "table may not name member";
        assert_eq!(lines, [(2, "table may not name group"), (3, member)]);
        assert!(whats("crates/replica/src/replica.rs", text).is_empty());
    }

    #[test]
    fn an_edge_in_a_list_is_found() {
        let text = "use crate::{words::wire, member::{self, Member}};\n";
        assert_eq!(whats("crates/replica/src/state.rs", text), ["state may not name member"]);
    }

    #[test]
    fn tests_may_name_everything() {
        let text = "#[cfg(test)]\nmod tests { use crate::group::Group; }\n\
                    #[cfg(doc)]\nuse crate::replica::Replica;\n";
        assert!(whats("crates/replica/src/words/ids.rs", text).is_empty());
        let text = "use crate::group::Group;\n";
        assert!(whats("crates/replica/src/state/transfer/tests/link.rs", text).is_empty());
    }

    #[test]
    fn a_new_folder_must_be_in_the_picture() {
        assert_eq!(whats("crates/replica/src/attic/box.rs", "").len(), 1);
        assert!(whats("crates/order/src/attic/box.rs", "").is_empty());
    }
}
