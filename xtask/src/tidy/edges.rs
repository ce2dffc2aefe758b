//! Which room may depend on which: the picture of ARCHITECTURE.md as data.
//!
//! Invariant: a new edge is a change of the architecture; it is made here and in
//! ARCHITECTURE.md together, or not at all.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::{Finding, line_of, room_of};

/// A room, what it may depend on, and what its tests may depend on besides.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    tests_may_use: &'static [&'static str],
}

const fn room(
    name: &'static str,
    may_use: &'static [&'static str],
    tests_may_use: &'static [&'static str],
) -> Room {
    Room { name, may_use, tests_may_use }
}

/// `order` and `replica` never name each other; only `engine` names both. Nothing pure names a
/// room with effects. Nothing depends on `cli`, `sim`, `lab` or `xtask`.
const ROOMS: &[Room] = &[
    room("base", &[], &[]),
    room("giop", &["base"], &[]),
    room("corba", &["giop"], &[]),
    room("idl", &["corba"], &[]),
    room("events", &["base", "corba", "idl"], &[]),
    room("manager", &["base", "corba", "idl"], &[]),
    room("naming", &["corba", "idl"], &["lab", "orb"]),
    room("notifier", &["base", "corba", "idl"], &[]),
    room("order", &["base"], &[]),
    room("groups", &["base", "order"], &[]),
    room("replica", &["base", "giop"], &[]),
    room("engine", &["base", "giop", "order", "replica"], &[]),
    room("placement", &["base"], &[]),
    room("heap", &[], &[]),
    room("orb", &["corba", "giop"], &["idl", "net"]),
    room("corosync", &["base", "order"], &[]),
    room("config", &["base", "giop"], &[]),
    room("journal", &["base"], &[]),
    room("net", &["base", "order"], &[]),
    room("admin", &["base", "config", "giop"], &[]),
    room(
        "node",
        &[
            "admin",
            "base",
            "config",
            "corba",
            "corosync",
            "engine",
            "giop",
            "idl",
            "journal",
            "net",
            "orb",
            "placement",
        ],
        &["demo"],
    ),
    room("ringd", &["base", "config", "groups", "net", "node", "order"], &[]),
    room(
        "sim",
        &[
            "base", "corba", "engine", "events", "giop", "idl", "journal", "manager", "naming",
            "notifier", "order", "replica",
        ],
        &[],
    ),
    room("demo", &["admin", "base", "config", "corba", "giop", "idl", "net", "node", "orb"], &[]),
    room(
        "lab",
        &[
            "admin",
            "base",
            "config",
            "corba",
            "demo",
            "giop",
            "idl",
            "net",
            "node",
            "orb",
            "placement",
        ],
        &[],
    ),
    room(
        "cli",
        &[
            "admin",
            "base",
            "config",
            "corba",
            "demo",
            "giop",
            "heap",
            "idl",
            "lab",
            "events",
            "manager",
            "naming",
            "node",
            "notifier",
            "orb",
            "placement",
            "sim",
        ],
        &["net"],
    ),
    room("xtask", &["admin", "base", "config", "demo", "giop", "lab", "node", "orb", "sim"], &[]),
];

/// The prefix of the names of our own packages.
const OURS: &str = "quorba-";

/// Compares the dependencies in a room's manifest with the picture.
pub(super) fn check(path: &Path, text: &str) -> Vec<Finding> {
    let Some(name) = room_of(path) else { return Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        let line = error.span().map_or(0, |span| line_of(text, span.start));
        return vec![Finding::new(path, line, "edge", format!("no TOML: {}", error.message()))];
    }
    let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
        let what = format!("room {name} is not in the picture (xtask/src/tidy/edges.rs)");
        return vec![Finding::new(path, 0, "edge", what)];
    };
    let mut findings = Vec::new();
    for (section, in_tests) in
        [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        let Some(DeValue::Table(dependencies)) =
            table.get_ref().get(section).map(|value| value.get_ref())
        else {
            continue;
        };
        for (dependency, _) in dependencies.iter() {
            let Some(used) = dependency.get_ref().strip_prefix(OURS) else { continue };
            let allowed = room.may_use.contains(&used)
                || in_tests && (room.tests_may_use.contains(&used) || used == name);
            if !allowed {
                let line = line_of(text, dependency.span().start);
                let what = format!("{name} may not depend on {used} ({section})");
                findings.push(Finding::new(path, line, "edge", what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        check(Path::new(path), text).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn an_edge_that_is_not_in_the_picture_is_found() {
        let text = "[dependencies]\nquorba-base = { path = \"../base\" }\n\
                    quorba-replica = { path = \"../replica\" }\nbytes = \"1\"\n";
        let findings = check(Path::new("crates/order/Cargo.toml"), text);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 3);
        assert_eq!(findings[0].what, "order may not depend on replica (dependencies)");
    }

    #[test]
    fn tests_have_edges_of_their_own() {
        let text = "[dev-dependencies]\nquorba-demo = \"0\"\n";
        assert!(whats("crates/node/Cargo.toml", text).is_empty());
        let text = "[dependencies]\nquorba-demo = \"0\"\n";
        assert_eq!(whats("crates/node/Cargo.toml", text).len(), 1);
    }

    #[test]
    fn a_new_room_must_be_in_the_picture() {
        assert_eq!(whats("crates/attic/Cargo.toml", "").len(), 1);
    }

    #[test]
    fn the_picture_has_no_circle() {
        // Each room may use only rooms that stand before it in the list.
        for (index, room) in ROOMS.iter().enumerate() {
            for used in room.may_use {
                let before = ROOMS[..index].iter().any(|earlier| earlier.name == *used);
                let outermost = ["cli", "xtask"].contains(&room.name);
                assert!(before || outermost, "{} -> {used}", room.name);
            }
        }
    }
}
