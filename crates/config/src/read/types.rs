//! `[type."IDL:..."]` tables: what a node starts when the replication manager creates an object.
//!
//! What it is not: a group. A table is completed by what is wanted of one group, and judged then,
//! as any definition is. Invariant: a type stands once.

use toml::de::DeValue;

use crate::codes::Code;
use crate::definition;
use crate::domain::ServerType;
use crate::problem::Problem;
use crate::walk::{Section, shortened};

/// The longest repository id.
const ID_BYTES_MAX: usize = 512;
/// Keys that each group has of its own.
const NOT_HERE: [&str; 3] = ["members", "listen", "connect"];

/// Every type, by id.
pub(super) fn read_all(root: &Section<'_>) -> Vec<ServerType> {
    let Some(value) = root.value("type") else { return Vec::new() };
    let DeValue::Table(tables) = value.get_ref() else {
        root.wrong_type("type", "a table", value);
        return Vec::new();
    };
    let mut types = Vec::new();
    for (name, value) in tables.iter() {
        let id = name.get_ref().as_ref();
        let DeValue::Table(table) = value.get_ref() else {
            root.wrong_type("type", "tables by repository id", value);
            continue;
        };
        if !id.starts_with("IDL:") || id.len() > ID_BYTES_MAX {
            let message = format!("{:?} is no repository id", shortened(id));
            let problem = Problem::at(Code::BadName, name.span(), message);
            root.problems.add(problem.help("such as [type.\"IDL:Bank/Ledger:1.0\"]"));
        }
        for (key, _) in table.iter().filter(|(key, _)| NOT_HERE.contains(&&**key.get_ref())) {
            let message = format!("[type.{id:?}] has `{}`", key.get_ref());
            let problem = Problem::at(Code::Conflict, key.span(), message);
            root.problems.add(problem.help("the manager says it of each group that it creates"));
        }
        types.push(ServerType { id: id.to_owned(), keys: definition::keys_text(table) });
    }
    types
}
