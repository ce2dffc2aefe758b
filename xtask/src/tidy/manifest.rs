//! What every manifest has: the workspace's lints, and a reason for each dependency.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::{Finding, line_of, room_of};

/// The only room with unsafe code, which the workspace's lints forbid for good; it has its own,
/// of which one must be [`REASONED`].
const WITH_UNSAFE: &str = "heap";
const REASONED: &str = "undocumented_unsafe_blocks";

/// Checks a manifest of a room.
pub(super) fn check(path: &Path, text: &str) -> Vec<Finding> {
    let Some(room) = room_of(path) else { return Vec::new() };
    let (table, _) = DeTable::parse_recoverable(text);
    let table = table.get_ref();
    let mut findings = Vec::new();
    let lints = table.get("lints").map(|lints| lints.get_ref());
    let inherits = match lints {
        Some(DeValue::Table(lints)) => {
            let workspace = lints.get("workspace").map(|value| value.get_ref());
            matches!(workspace, Some(DeValue::Boolean(true)))
                || room == WITH_UNSAFE && denies(lints, "clippy", REASONED)
        }
        _ => false,
    };
    if !inherits {
        // The workspace's lints have missing_docs, so that every public item is documented.
        let what = "the workspace's lints are not inherited: [lints] workspace = true";
        findings.push(Finding::new(path, 0, "lints", what));
    }
    for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
        let Some(DeValue::Table(dependencies)) = table.get(section).map(|value| value.get_ref())
        else {
            continue;
        };
        for (name, _) in dependencies.iter() {
            let line = line_of(text, name.span().start);
            if !name.get_ref().starts_with("quorba-") && !has_reason(text, line) {
                let what = format!("dependency {} has no comment that says why", name.get_ref());
                findings.push(Finding::new(path, line, "reason", what));
            }
        }
    }
    findings
}

fn denies(lints: &DeTable<'_>, tool: &str, lint: &str) -> bool {
    let Some(DeValue::Table(of_tool)) = lints.get(tool).map(|value| value.get_ref()) else {
        return false;
    };
    let level = of_tool.get(lint).map(|value| value.get_ref());
    matches!(level, Some(DeValue::String(level)) if level == "deny")
}

/// Whether the line, or the one above, has a comment.
fn has_reason(text: &str, line: usize) -> bool {
    let nth = |line: usize| line.checked_sub(1).and_then(|index| text.lines().nth(index));
    let own = nth(line).is_some_and(|line| line.contains('#'));
    let above = nth(line - 1).is_some_and(|line| line.starts_with('#'));
    own || above
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(text: &str) -> Vec<String> {
        let findings = check(Path::new("crates/giop/Cargo.toml"), text);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let found = whats(&format!("{LINTS}[dependencies]\nquorba-base = \"0\"\nbytes = \"1\"\n"));
        assert_eq!(found, ["dependency bytes has no comment that says why"]);
        assert!(whats(&format!("{LINTS}[dependencies]\nbytes = \"1\" # shared\n")).is_empty());
        assert!(whats(&format!("{LINTS}[dependencies]\n# shared\nbytes = \"1\"\n")).is_empty());
    }

    #[test]
    fn lints_must_be_inherited() {
        assert_eq!(whats("[lints.rust]\nmissing_docs = \"allow\"\n").len(), 1);
        assert_eq!(whats("").len(), 1);
        let of_heap = |text: &str| check(Path::new("crates/heap/Cargo.toml"), text).len();
        assert_eq!(of_heap("[lints.clippy]\nundocumented_unsafe_blocks = \"deny\"\n"), 0);
        assert_eq!(of_heap("[lints.clippy]\nall = \"warn\"\n"), 1);
        assert_eq!(of_heap(""), 1, "none at all");
    }
}
