//! Pure rooms: no I/O, no clock, no randomness, no hash order, no floats in state.
//!
//! `#![no_std]` makes the compiler refuse most of it; what it cannot see is checked here: that
//! the attributes are there, that no dependency brings the standard library back in, and the
//! few things of `core` and `alloc` that are not pure enough.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::source::without_comments;
use super::{Finding, line_of, room_of};

/// A pure room, and the outside crates that it may use: all `no_std`, without I/O.
pub(super) const ROOMS: &[(&str, &[&str])] = &[
    ("base", &["bytes"]),
    ("giop", &["bytes"]),
    ("corba", &[]),
    ("events", &[]),
    ("idl", &[]),
    ("manager", &[]),
    ("naming", &[]),
    ("notifier", &["winnow"]),
    // ring computes; its randomness is behind a feature that stays off.
    ("order", &["bytes", "ring", "zeroize"]),
    ("groups", &["bytes"]),
    // Both only compute, and do without the standard library.
    ("replica", &["bytes", "lz4_flex", "twox-hash"]),
    ("engine", &["bytes", "ring"]),
    ("placement", &[]),
];

/// What must not stand in a pure room outside of its tests, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("extern crate std", "the room is no_std"),
    ("HashMap", "its order is not the same on all nodes; use BTreeMap"),
    ("HashSet", "its order is not the same on all nodes; use BTreeSet"),
    ("async fn", "the room is driven by its caller"),
];

/// Rooms whose state must have no floats: rounding may differ between machines. `giop` carries
/// floats for others.
const WITHOUT_FLOATS: &[&str] =
    &["base", "order", "groups", "replica", "engine", "placement", "events", "manager", "naming"];

fn allowed(path: &Path) -> Option<(&'static str, &'static [&'static str])> {
    let room = room_of(path)?;
    ROOMS.iter().find(|(name, _)| *name == room).copied()
}

/// Compares the dependencies of a pure room with those that it may have.
pub(super) fn check_dependencies(path: &Path, text: &str) -> Vec<Finding> {
    let Some((room, allowed)) = allowed(path) else { return Vec::new() };
    let (table, _) = DeTable::parse_recoverable(text);
    let Some(DeValue::Table(dependencies)) =
        table.get_ref().get("dependencies").map(|value| value.get_ref())
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (name, value) in dependencies.iter() {
        let line = line_of(text, name.span().start);
        let name = name.get_ref().as_ref();
        if name.starts_with("quorba-") {
            continue;
        }
        if !allowed.contains(&name) {
            let what = format!("pure room {room} may not use {name} (xtask/src/tidy/pure.rs)");
            findings.push(Finding::new(path, line, "pure", what));
        }
        if !is_without_default_features(value.get_ref()) {
            let what = format!("{name} needs default-features = false in pure room {room}");
            findings.push(Finding::new(path, line, "pure", what));
        }
    }
    findings
}

fn is_without_default_features(value: &DeValue<'_>) -> bool {
    let DeValue::Table(table) = value else { return false };
    let value = table.get("default-features").map(|value| value.get_ref());
    matches!(value, Some(DeValue::Boolean(false)))
}

/// Checks a source file of a pure room.
pub(super) fn check_source(path: &Path, text: &str) -> Vec<Finding> {
    let Some((room, _)) = allowed(path) else { return Vec::new() };
    let inside = path.components().any(|part| part.as_os_str() == "src");
    let is_test = path.components().any(|part| part.as_os_str() == "tests")
        || path.file_stem().is_some_and(|stem| stem == "tests");
    if !inside || is_test {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if path.ends_with("src/lib.rs") {
        for attribute in ["no_std", "forbid(unsafe_code)"] {
            let there =
                text.lines().any(|line| line.starts_with("#![") && line.contains(attribute));
            if !there {
                let what = format!("pure room {room} has no #![{attribute}]");
                findings.push(Finding::new(path, 1, "pure", what));
            }
        }
    }
    let code = without_comments(before_tests(text));
    for (number, line) in code.lines().enumerate() {
        for (word, why) in FORBIDDEN {
            if line.contains(word) {
                findings.push(Finding::new(path, number + 1, "pure", format!("{word}: {why}")));
            }
        }
        if WITHOUT_FLOATS.contains(&room) && has_float(line) {
            let what = "a float: rounding may differ between machines";
            findings.push(Finding::new(path, number + 1, "pure", what));
        }
    }
    findings
}

fn before_tests(text: &str) -> &str {
    let end = text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len());
    &text[..end]
}

fn has_float(line: &str) -> bool {
    let word = |char: char| !char.is_alphanumeric() && char != '_';
    line.split(word).any(|word| word == "f64" || word == "f32")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "//! Doc.\n#![no_std]\n#![forbid(unsafe_code)]\n";

    fn whats(path: &str, text: &str) -> Vec<String> {
        check_source(Path::new(path), text).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn missing_attributes_are_found() {
        let found = whats("crates/order/src/lib.rs", "//! Doc.\n");
        assert_eq!(found.len(), 2);
        assert!(whats("crates/order/src/lib.rs", HEAD).is_empty());
        assert!(whats("crates/cli/src/lib.rs", "").is_empty(), "not a pure room");
        let conditional = "#![cfg_attr(not(test), no_std)]\n#![forbid(unsafe_code)]\n";
        assert!(whats("crates/giop/src/lib.rs", conditional).is_empty());
    }

    #[test]
    fn hash_order_and_floats_are_found_outside_of_tests() {
        let text = "use x::HashMap; // HashMap\nlet rate: f64 = 0.5;\nlet f64_bits = 1;\n\
                    // a HashSet in words\n#[cfg(test)]\nmod tests {\n use HashSet;\n}\n";
        let findings = check_source(Path::new("crates/replica/src/a.rs"), text);
        let lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2]);
        assert_eq!(check_source(Path::new("crates/giop/src/a.rs"), text).len(), 1, "floats pass");
        assert!(check_source(Path::new("crates/replica/src/tests.rs"), text).is_empty());
        assert!(check_source(Path::new("crates/replica/tests/a.rs"), text).is_empty());
    }

    #[test]
    fn dependencies_must_be_on_the_list_and_bare() {
        let path = Path::new("crates/giop/Cargo.toml");
        let text = "[dependencies]\nrand = \"1\"\n\
                    bytes = { version = \"1\", default-features = false }\n";
        let found = check_dependencies(path, text);
        assert_eq!(found.len(), 2, "not on the list, and with default features: {found:?}");
        assert!(found.iter().all(|finding| finding.line == 2));
    }
}
