//! `[type."IDL:..."]` tables: what a node starts when the replication manager creates an object.
//!
//! What it is not: a group. Who its members are, and in which style they work, the manager says of
//! each group that it creates. So a table is read as that of a group with a member on every node,
//! in the style in which least is wrong with it. One without a program is for objects that
//! factories make.
//!
//! Invariants: a type stands once; what is refused here could be right in no group of the type.

use std::borrow::Cow;

use quorba_base::policy::Style;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::group::{self, GroupDraft};
use super::outside::OutsideDraft;
use super::scope::{InFile, Scope, Told};
use crate::codes::Code;
use crate::definition;
use crate::domain::{Gateway, ServerType};
use crate::problem::Problem;
use crate::walk::{Problems, Section, Span, shortened};

/// The longest repository id.
const ID_BYTES_MAX: usize = 512;
/// Keys that each group has of its own.
const NOT_HERE: [&str; 9] = [
    "members",
    "listen",
    "connect",
    "tls",
    "service",
    "note",
    "ft_group",
    "ft_monitored",
    "ft_version",
];

/// Every type, by id; `groups` and `outside` are whom their servers may call.
pub(super) fn read_all(
    root: &Section<'_>,
    scope: &Scope<'_>,
    groups: &[GroupDraft],
    outside: &[OutsideDraft],
) -> Vec<ServerType> {
    let Some(value) = root.value("type") else { return Vec::new() };
    let DeValue::Table(tables) = value.get_ref() else {
        root.wrong_type("type", "a table", value);
        return Vec::new();
    };
    let known = InFile::of(groups, outside);
    // Without [gateway] that is what is wrong, and told once.
    let gateway = scope.gateway.or(Some(Gateway { listen: 0 }));
    let of_groups = Scope { gateway, ..*scope };
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
        let title = format!("[type.\"{}\"]", shortened(id).escape_debug());
        for (key, _) in table.iter().filter(|(key, _)| NOT_HERE.contains(&&**key.get_ref())) {
            let message = format!("{title} has `{}`", key.get_ref());
            let problem = Problem::at(Code::Conflict, key.span(), message);
            root.problems.add(problem.help("the manager says it of each group that it creates"));
        }
        if scope.gateway.is_none() && types.is_empty() {
            let message = format!("{title} without [gateway]");
            let problem = Problem::at(Code::MissingKey, name.span(), message);
            let help = "groups that the manager creates have no port of their own: [gateway] \
                        listen = 5000";
            root.problems.add(problem.help(help));
        }
        // Without nodes there are no members: that is told already.
        if !scope.nodes.is_empty() {
            let read = Read { id, title: &title, header: name.span(), scope: &of_groups };
            read.problems_of(table, &known).into_iter().for_each(|one| root.problems.add(one));
        }
        types.push(ServerType { id: id.to_owned(), keys: definition::keys_text(table) });
    }
    types
}

/// One table that is being read.
struct Read<'r> {
    id: &'r str,
    title: &'r str,
    header: Span,
    scope: &'r Scope<'r>,
}

impl Read<'_> {
    /// What is wrong with it in the style in which that is least. The manager says the style of
    /// each group, so that one that is named here does not count; but it is to be one.
    fn problems_of(&self, table: &DeTable<'_>, known: &InFile) -> Vec<Problem> {
        let is_style = |value: &Spanned<DeValue<'_>>| {
            let words = &mut Style::WORDS.iter();
            matches!(value.get_ref(), DeValue::String(text) if words.any(|(word, _)| word == text))
        };
        if table.get("style").is_some_and(|style| !is_style(style)) {
            return self.problems_in(None, table, known);
        }
        let styles = Style::WORDS.iter().map(|(word, _)| Some(*word));
        let found = styles.map(|style| self.problems_in(style, table, known));
        let weight = |found: &Vec<Problem>| {
            (found.iter().filter(|one| !one.is_warning()).count(), found.len())
        };
        found.min_by_key(weight).unwrap_or_default()
    }

    fn problems_in(
        &self,
        style: Option<&str>,
        table: &DeTable<'_>,
        known: &InFile,
    ) -> Vec<Problem> {
        let has_program = ["server", "env", "cwd"].iter().any(|key| table.contains_key(*key));
        let table = self.completed(style, table);
        let problems = Problems::default();
        let section = Section::new(self.title, self.header.clone(), Some(&table), &problems);
        let mut draft = group::read_one(self.id, &section, self.scope);
        let mut told = Told::default();
        group::check_one(&problems, self.scope, &mut draft, (known, &|_| None, &mut told));
        section.finish();
        let mut found = problems.into_inner();
        // How many members there are, and whose business states are, is not for a type to say.
        found.retain(|problem| match problem.code {
            Code::FewMembers | Code::NoStateObject => false,
            Code::Backend => has_program,
            _ => true,
        });
        for problem in found.iter_mut().filter(|one| !one.message.contains(self.title)) {
            problem.message = format!("{}: {}", self.title, problem.message);
        }
        found
    }

    /// The table with what the manager says of a group, which stands where its header stands.
    fn completed<'t>(&self, style: Option<&'t str>, table: &DeTable<'t>) -> DeTable<'t> {
        let mut whole = DeTable::new();
        let is_left_out = |key: &str| NOT_HERE.contains(&key) || style.is_some() && key == "style";
        for (key, value) in table.iter().filter(|(key, _)| !is_left_out(key.get_ref())) {
            whole.insert(key.clone(), value.clone());
        }
        let at = |value| Spanned::new(self.header.clone(), value);
        let text = |text| at(DeValue::String(text));
        let mut put = |key: &'static str, value| {
            whole.insert(Spanned::new(self.header.clone(), Cow::Borrowed(key)), value);
        };
        let mut members = DeArray::new();
        for node in self.scope.nodes {
            members.push(text(Cow::Owned(node.node.name.clone())));
        }
        put("members", at(DeValue::Array(members)));
        if let Some(style) = style {
            put("style", text(Cow::Borrowed(style)));
        }
        whole
    }
}
