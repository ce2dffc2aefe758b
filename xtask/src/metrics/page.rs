//! The text of the page: sections by what is measured, one entry for each number.
//!
//! Invariants: no line is longer than a document's may be; a number without a row, and a row
//! without a number, are errors.

use std::fmt::Write as _;

use super::source::Number;
use super::table::{Kind, ROWS, Row};

const COLUMNS: usize = 100;

const HEAD: &str = "# Metrics

Every number that a node exports. Ask a node for them with `quorba status -o json`, where they stand
in `nodes[].status` for each node of the domain, or with `GET /v1/status` at its admin address (key
`admin` of `[node.NAME]`), with the header `Authorization: Bearer` and the text of
`state_dir/admin.token`. This page is made from the code by `cargo xtask metrics`, and a test keeps
it so.

- A *counter* grows from the start of the node's process; look at its rate. If `uptime_ms` falls, it
  began at zero. A *gauge* is as it is now.
- Units stand in the names: `_ms` milliseconds, `_us` microseconds, `_bytes` bytes. A number without
  one counts things.
- Labels: `node` (the field `node` of the status) for all of them; further ones are named at the
  head of each section. A field that says *may be missing* is left out or null while there is
  nothing to tell.
- Nobody has to judge these numbers to know whether all is well: `quorba status` does it, and says
  what to do ([health](../how-to/health.md)). They are for curves, and for finding causes.

There is no endpoint in Prometheus' format. An exporter that reads JSON takes the names as they are.
";

/// Where each section begins: the start of its paths, its title, its labels.
const SECTIONS: [(&str, &str, &str); 6] = [
    ("", "The process", "none"),
    ("ring.", "The ring", "none"),
    ("nodes[].", "Other nodes", "`peer` (`nodes[].name`)"),
    (
        "groups[].",
        "Groups",
        "`group` (`groups[].name`); in lists, `node` of `callers` and `members`, `from` and `to` \
         of `transfers`, `operation` and `kind` of `references`, `operation` and `key` of \
         requests, `name` of `channels`, which only the leader's node has",
    ),
    (
        "call_timings.",
        "Times of a ring whose token goes round always",
        "the place in `client_us` is the tenth; the places in `servers_us` are the group's in \
         `groups`, and the tenth",
    ),
    ("log.", "The durable log", "none"),
];

pub(super) fn text(numbers: &[Number]) -> Result<String, String> {
    for row in ROWS {
        if !numbers.iter().any(|number| number.path == row.path) {
            return Err(format!("table.rs has {}, and a status has not", row.path));
        }
    }
    let mut text = HEAD.to_owned();
    let mut names = Vec::new();
    for (at, title, labels) in SECTIONS {
        let _written = write!(text, "\n## {title}\n\n");
        text.push_str(&wrapped("", &format!("Labels: {labels}.")));
        text.push('\n');
        for number in numbers.iter().filter(|number| section_of(&number.path) == at) {
            let row = ROWS.iter().find(|row| row.path == number.path);
            let row = row.ok_or_else(|| format!("table.rs lacks {}", number.path))?;
            if row.kind == Kind::Name {
                names.push(format!("`{}`", number.path));
            } else {
                text.push_str(&wrapped("  ", &entry(number, row)));
            }
        }
    }
    text.push_str("\n## Numbers that are names\n\n");
    let names = names.join(", ");
    text.push_str(&wrapped("", &format!("They measure nothing: {names}.")));
    Ok(text)
}

fn section_of(path: &str) -> &'static str {
    let sections = SECTIONS.iter().map(|(at, ..)| *at);
    sections.filter(|at| path.starts_with(at)).max_by_key(|at| at.len()).unwrap_or("")
}

fn entry(number: &Number, row: &Row) -> String {
    let kind = if row.kind == Kind::Counter { "counter" } else { "gauge" };
    let unit = unit(&number.path);
    let missing = if number.is_optional { ", may be missing" } else { "" };
    let (path, meaning) = (&number.path, without_links(&number.text));
    let (rise, then) = (row.rise, row.then);
    format!("- `{path}`: {kind}, {unit}{missing}. {meaning} *Rises*: {rise}. *Do*: {then}.")
}

fn unit(path: &str) -> &'static str {
    let name = path.trim_end_matches("[]");
    let name = name.rsplit('.').next().unwrap_or(name);
    match name.rsplit('_').next() {
        Some("ms") => "milliseconds",
        Some("us") => "microseconds",
        Some("bytes") => "bytes",
        _ => "count",
    }
}

/// A link to an item of the code, its path in brackets, as the last word of the path: `groups`.
pub(crate) fn without_links(text: &str) -> String {
    let mut parts = text.split("[`");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (item, rest) = part.split_once("`]").unwrap_or((part, ""));
        let _written = write!(plain, "`{}`{rest}", item.rsplit("::").next().unwrap_or(item));
    }
    plain
}

/// The text in lines of a document's width, the second and the following ones after `indent`.
pub(crate) fn wrapped(indent: &str, text: &str) -> String {
    let mut lines = String::new();
    let mut columns = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if columns > 0 && columns + 1 + width > COLUMNS {
            let _written = write!(lines, "\n{indent}");
            columns = indent.len();
        } else if columns > 0 {
            lines.push(' ');
            columns += 1;
        }
        lines.push_str(word);
        columns += width;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_the_names() {
        for (path, is) in [
            ("ring.rotation_us", "microseconds"),
            ("call_timings.servers_us[][]", "microseconds"),
            ("groups[].last_catch_up.bytes", "bytes"),
            ("groups[].executed", "count"),
        ] {
            assert_eq!(unit(path), is, "{path}");
        }
    }

    #[test]
    fn a_number_that_nobody_explained_is_an_error() {
        let number =
            |path: &str| Number { path: path.into(), text: String::new(), is_optional: false };
        let mut all: Vec<Number> = ROWS.iter().map(|row| number(row.path)).collect();
        assert!(text(&all).is_ok());
        all.push(number("ring.new_ms"));
        assert_eq!(text(&all), Err("table.rs lacks ring.new_ms".into()));
        assert!(text(&all[1..]).unwrap_err().contains("table.rs has pid"));
    }
}
