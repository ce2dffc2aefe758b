//! One definition, read against a running domain.
//!
//! What it is not: a second copy of the rules. A table is read by what reads those of a file
//! (`group.rs`, `outside.rs`); only the others, with whom it may collide, are asked for instead of
//! read.
//!
//! Invariant: the work does not grow with the number of groups that there are.

use std::path::Path;

use toml::de::DeTable;

use super::group;
use super::node::NodeDraft;
use super::outside;
use super::scope::{Known, Scope, Told};
use super::service;
use super::{GROUPS_MAX, located};
use crate::codes::Code;
use crate::definition::{Definition, Kind};
use crate::domain::{Domain, Gateway, Group, Outside};
use crate::problem::{Problem, Report};
use crate::walk::{At, Problems, Section};

/// What reports call it.
const PATH: &str = "the definition";

/// What a definition says.
#[derive(Clone, Debug)]
pub enum Defined {
    /// A group.
    Group(Box<Group>),
    /// A server outside.
    Outside(Outside),
}

/// Reads `text`, one table `[group.NAME]` or `[outside.NAME]`, as a part of the domain `shared`,
/// among those that are `known`; that of the same name is the one that is changed. Paths begin at
/// the folder of the file that `shared` was read from.
///
/// # Errors
/// A [`Report`] with every problem of the text; warnings alone are no error.
pub fn read_definition(shared: &Domain, text: &str, known: &dyn Known) -> Result<Defined, Report> {
    let (defined, report) = check_definition(shared, text, known);
    defined.ok_or(report)
}

/// The same, with what may be unwise besides; there is nothing if there are errors.
#[must_use]
pub fn check_definition(
    shared: &Domain,
    text: &str,
    known: &dyn Known,
) -> (Option<Defined>, Report) {
    all_of_one(text, |(kind, name), section| match kind {
        Kind::Group => Defined::Group(Box::new(group_of(shared, known, &name, section))),
        Kind::Outside => {
            let draft = outside::read_one(&name, &section, shared.ring.engine);
            if !known.is_judged() {
                outside::check_one(section.problems, &name, known);
            }
            section.finish();
            Defined::Outside(draft.server)
        }
    })
}

/// [`read_definition`] of a text that is about a group.
///
/// # Errors
/// The same, also if it is about a server outside.
pub fn read_group(shared: &Domain, text: &str, known: &dyn Known) -> Result<Group, Report> {
    match check_definition(shared, text, known) {
        (Some(Defined::Group(group)), _) => Ok(*group),
        (Some(Defined::Outside(server)), _) => {
            let message = format!("[outside.{}] is a server outside, and no group", server.name);
            let problem = Problem::of_file(Code::NoSuchGroup, message);
            Err(Report::new(Path::new(PATH), text, vec![problem]))
        }
        (None, report) => Err(report),
    }
}

fn group_of(shared: &Domain, known: &dyn Known, name: &At<&str>, section: Section<'_>) -> Group {
    let nodes: Vec<NodeDraft> = shared.nodes.iter().map(NodeDraft::of).collect();
    let scope = Scope {
        nodes: &nodes,
        gateway: shared.gateway.or(known.is_judged().then_some(Gateway { listen: 0 })),
        engine: shared.ring.engine,
        quorum: shared.quorum,
        state_bytes: shared.limits.state_bytes,
        shows_nodes: false,
    };
    let mut draft = group::read_one(name.value, &section, &scope);
    let mut told = Told::default();
    let problems = section.problems;
    group::check_one(problems, &scope, &mut draft, (known, &|_| None, &mut told));
    if known.is_stateless(name.value).is_none() && known.count() >= GROUPS_MAX {
        let message = format!("the domain has {GROUPS_MAX} groups already");
        let problem = Problem::at(Code::TooMany, name.span.clone(), message);
        problems.add(problem.help("delete one that is not used"));
    }
    if known.is_outside(name.value) {
        problems.add(outside::is_both(name.value, name.span.clone()));
    }
    section.finish();
    located(shared.folder(), draft.group)
}

impl Definition {
    /// The canonical definition of the one group, or server outside, that `text` is about. Whether
    /// it is right is not judged; [`read_definition`] does.
    ///
    /// # Errors
    /// A [`Report`] if the text is no TOML, or not about one.
    pub fn parse(text: &str) -> Result<Self, Report> {
        let read = |(kind, name): Named<'_>, section: Section<'_>| {
            Self::of(kind, name.value, section.table())
        };
        let (found, report) = all_of_one(text, read);
        found.ok_or(report)
    }
}

impl Definition {
    /// The canonical definition of the group called `name`, in a text that may be about more, such
    /// as a whole domain file; whether it is right is not judged.
    ///
    /// # Errors
    /// A [`Report`] if the text is no TOML, or has no such group.
    pub fn find(name: &str, path: &Path, text: &str) -> Result<Self, Report> {
        let problems = Problems::default();
        let table = parsed(text, &problems);
        let root = Section::new("the file", 0..0, Some(table.get_ref()), &problems);
        let sections = root.named("group");
        let nodes: Vec<&str> = root.named("node").iter().map(|(node, _)| node.value).collect();
        let services = service::read_all(&root, &nodes);
        let found = sections.iter().find(|(found, _)| found.value == name);
        let found = found.map(|(_, section)| Self::of(Kind::Group, name, section.table()));
        let service = || services.iter().find(|draft| draft.name.value == name);
        let found = found.or_else(|| Some(Self::of(Kind::Group, name, Some(&service()?.table))));
        if found.is_none() {
            let problem =
                Problem::of_file(Code::NoSuchGroup, format!("the file has no [group.{name}]"));
            let groups = sections.iter().map(|(found, _)| found.value);
            let groups = groups.chain(services.iter().map(|draft| draft.name.value));
            let names: Vec<&str> = groups.take(32).collect();
            let help = format!("its groups: {}", names.join(", "));
            problems.add(problem.maybe_help((!names.is_empty()).then_some(help)));
        }
        let report = Report::new(path, text, problems.into_inner());
        found.filter(|_| report.error_count() == 0).ok_or(report)
    }
}

fn parsed<'t>(text: &'t str, problems: &Problems) -> toml::Spanned<DeTable<'t>> {
    let (table, syntax) = DeTable::parse_recoverable(text);
    for error in syntax {
        let span = error.span().unwrap_or(0..0);
        problems.add(Problem::at(Code::Syntax, span, error.message().trim().to_owned()));
    }
    table
}

/// What a table is about, and its name.
type Named<'t> = (Kind, At<&'t str>);

/// What `read` makes of the one group, or server outside, of a text.
fn all_of_one<T>(
    text: &str,
    read: impl FnOnce(Named<'_>, Section<'_>) -> T,
) -> (Option<T>, Report) {
    let problems = Problems::default();
    let table = parsed(text, &problems);
    let root = Section::new("the definition", 0..0, Some(table.get_ref()), &problems);
    let services = service::read_all(&root, &[]);
    let named = |kind: Kind| {
        let sections = root.named(kind.table()).into_iter();
        sections.map(move |(name, section)| ((kind, name), section))
    };
    let mut sections: Vec<_> = named(Kind::Group).collect();
    let of_services = services.iter().map(|one| (one.name.clone(), one.section(&problems)));
    sections.extend(of_services.map(|(name, section)| ((Kind::Group, name), section)));
    sections.extend(named(Kind::Outside));
    let mut sections = sections.into_iter();
    let found = sections.next().map(|(name, section)| read(name, section));
    if let Some(((_, second), _)) = sections.next() {
        let message = "a definition is about one group or server outside, and this is another one";
        problems.add(Problem::at(Code::Conflict, second.span, message));
    }
    if found.is_none() {
        let message = "the definition has no [group.NAME], and no [outside.NAME]";
        let problem = Problem::of_file(Code::MissingKey, message);
        problems.add(problem.help("such as: [group.bank] members = [\"n1\", \"n2\", \"n3\"]"));
    }
    root.finish();
    let report = Report::new(Path::new(PATH), text, problems.into_inner());
    (found.filter(|_| report.error_count() == 0), report)
}
