//! `[service.NAME]` tables: groups of the servers that Quorba brings itself.
//!
//! What it is not: another kind of group. A table is completed by what its service says where the
//! file says nothing, and then read as `[group.NAME]` (`group.rs`).

use std::borrow::Cow;
use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::codes::Code;
use crate::problem::Problem;
use crate::service::Service;
use crate::suggest::nearest;
use crate::walk::{At, Problems, Section, Span, shortened};

/// The key of a group that says which service it is.
pub(super) const KEY: &str = "service";

/// What a service says itself: nobody else can.
const ITS_OWN: [&str; 8] =
    ["connect", "cwd", "object_key", "recovery", "replay_bytes", "server", KEY, "state_object"];

/// The table of one service, and the place of its name.
pub(super) struct Draft<'t> {
    pub(super) name: At<&'t str>,
    pub(super) title: String,
    pub(super) table: DeTable<'t>,
}

impl Draft<'_> {
    /// Its table, to be read as that of a group.
    pub(super) fn section<'s>(&'s self, problems: &'s Problems) -> Section<'s> {
        Section::new(&self.title, self.name.span.clone(), Some(&self.table), problems)
    }
}

/// The service that a group is.
pub(super) fn of(section: &Section<'_>) -> Option<Service> {
    section.value(KEY)?;
    section.word(KEY, Service::WORDS)
}

/// Every service of a file or definition, its table completed. `nodes` are the members where the
/// table does not say them; nobody: then it has to.
pub(super) fn read_all<'t>(root: &Section<'t>, nodes: &[&'t str]) -> Vec<Draft<'t>> {
    let groups: Vec<(At<&str>, Section<'_>)> = root.named("group");
    let mut drafts = Vec::new();
    for (name, section) in root.named("service") {
        let Some(service) = Service::from_word(name.value) else {
            refuse_unknown(root, &name);
            continue;
        };
        if let Some((group, _)) = groups.iter().find(|(group, _)| group.value == name.value) {
            let message = format!("[group.{0}] and [service.{0}] are one group", name.value);
            let problem = Problem::at(Code::Conflict, group.span.clone(), message);
            let problem = problem.related(name.span.clone(), "the service");
            root.problems.add(problem.help("give the group another name, or leave one out"));
            continue;
        }
        let table = section.table().map(|table| completed(service, table, &section, nodes));
        let table = table.unwrap_or_default();
        drafts.push(Draft { name, title: section.title, table });
    }
    drafts
}

fn refuse_unknown(root: &Section<'_>, name: &At<&str>) {
    let known = || Service::WORDS.iter().map(|(word, _)| *word);
    let message = format!("there is no service {}", shortened(name.value));
    let help = match nearest(name.value, known()) {
        Some(meant) => format!("did you mean [service.{meant}]?"),
        None => format!("services: {}", known().collect::<Vec<_>>().join(", ")),
    };
    root.problems.add(Problem::at(Code::UnknownKey, name.span.clone(), message).help(help));
}

/// The table with all that its service says. What the file does not say stands where its header
/// stands.
fn completed<'t>(
    service: Service,
    table: &DeTable<'t>,
    section: &Section<'_>,
    nodes: &[&'t str],
) -> DeTable<'t> {
    for (key, _) in table.iter().filter(|(key, _)| ITS_OWN.contains(&key.get_ref().as_ref())) {
        let message = format!("{} has a `{}` of its own", section.title, key.get_ref());
        let help = "a service is Quorba's own server: leave the key out; for another server use \
                    [group.NAME]";
        section.problems.add(Problem::at(Code::Conflict, key.span(), message).help(help));
    }
    let header = &section.header;
    let (defaults, _) = DeTable::parse_recoverable(service.defaults());
    let mut whole = moved(defaults.get_ref(), header);
    let texts = |all: &[&'t str]| {
        let mut list = DeArray::new();
        for text in all {
            list.push(Spanned::new(header.clone(), DeValue::String(Cow::Borrowed(*text))));
        }
        DeValue::Array(list)
    };
    if !nodes.is_empty() {
        put(&mut whole, "members", texts(nodes), header);
    }
    let beside = service.operations_beside_the_order();
    if !beside.is_empty() {
        put(&mut whole, "readonly", texts(beside), header);
    }
    put(&mut whole, KEY, DeValue::String(Cow::Borrowed(service.as_str())), header);
    let own: BTreeSet<&str> = ITS_OWN.into_iter().collect();
    for (key, value) in table.iter().filter(|(key, _)| !own.contains(key.get_ref().as_ref())) {
        // The one that is there would keep its place.
        whole.remove(key.get_ref().as_ref());
        whole.insert(key.clone(), value.clone());
    }
    whole
}

fn put<'t>(table: &mut DeTable<'t>, key: &'t str, value: DeValue<'t>, at: &Span) {
    let key = Spanned::new(at.clone(), Cow::Borrowed(key));
    table.insert(key, Spanned::new(at.clone(), value));
}

/// The same keys and values, all at one place.
fn moved<'t>(table: &DeTable<'t>, at: &Span) -> DeTable<'t> {
    let mut there = DeTable::new();
    for (key, value) in table.iter() {
        let value = moved_value(value.get_ref(), at);
        there.insert(Spanned::new(at.clone(), key.get_ref().clone()), value);
    }
    there
}

fn moved_value<'t>(value: &DeValue<'t>, at: &Span) -> Spanned<DeValue<'t>> {
    let value = match value {
        DeValue::Array(list) => {
            let mut there = DeArray::new();
            list.iter().for_each(|value| there.push(moved_value(value.get_ref(), at)));
            DeValue::Array(there)
        }
        DeValue::Table(table) => DeValue::Table(moved(table, at)),
        plain => plain.clone(),
    };
    Spanned::new(at.clone(), value)
}
