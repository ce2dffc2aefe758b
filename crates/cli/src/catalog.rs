//! The groups and servers outside of a running domain by their definitions: asks for them, and has
//! them changed.
//!
//! What it is not: the judgement of a change; the nodes decide at its place in the order.
//! Invariant: a change that is asked for again because an answer was lost has the same operation,
//! so it is made once.

use std::collections::BTreeMap;
use std::time::Duration;

use quorba_admin::{AdminError, Catalog, CatalogChange, Client, Defined};
use quorba_config::{
    Definition, Domain, Group, GroupChange, Kind, KnownGroups, ObjectGroup, Report, check_delete,
    read_group,
};

use crate::ask::{self, Answer, nobody_here};
use crate::command::status::require_group;
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// A node has this long for one try: longer than it waits for the order.
const TRY_WITHIN: Duration = Duration::from_secs(11);
/// How long after a lost answer it is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// A catalog that is not needed is not waited for longer.
const GLANCE_WITHIN: Duration = Duration::from_secs(2);
/// More groups are not named to somebody who has written a name wrong.
const NAMES_MAX: usize = 32;

/// What a domain runs.
pub struct Running {
    /// Each group's, and each server outside's.
    pub definitions: Vec<Definition>,
    /// Which node said it.
    pub node: String,
    client: Client,
    /// By names, what references say: the number of the group, and their version.
    references: BTreeMap<String, (u64, u32)>,
}

impl Running {
    /// Asks a node that can have something ordered, or any that answers.
    pub fn ask(domain: &Domain, deadline: &Deadline) -> Result<Self, Failure> {
        Self::of(domain, &ask::everyone(domain, deadline.left()), deadline)
    }

    /// The same of nodes that have said how they are.
    fn of(domain: &Domain, answers: &[Answer], deadline: &Deadline) -> Result<Self, Failure> {
        let Answer { node, client, .. } = able(answers).ok_or_else(|| nobody_here(domain))?;
        let catalog = client.catalog(deadline.left()).map_err(|error| refused(node, &error))?;
        let definition = |group: &quorba_admin::CatalogGroup| Definition {
            name: group.name.clone(),
            text: group.definition.clone(),
        };
        let definitions = catalog.groups.iter().map(definition).collect();
        let reference = |group: &quorba_admin::CatalogGroup| {
            let id = u64::from_str_radix(&group.id, 16).ok()?;
            Some((group.name.clone(), (id, group.reference_version)))
        };
        let references = catalog.groups.iter().filter_map(reference).collect();
        Ok(Self { definitions, node: node.clone(), client: client.clone(), references })
    }

    /// What others have to know of the groups.
    pub fn known(&self) -> KnownGroups {
        self.definitions.iter().collect()
    }

    /// Fails if it cannot be deleted as what it is. That it is not there the nodes say: the command
    /// may be a repeated one.
    pub fn check_delete(&self, kind: Kind, name: &str) -> Result<(), Failure> {
        let Some(there) = self.definitions.iter().find(|one| one.name == name) else {
            return Ok(());
        };
        if there.kind() != kind {
            let what = format!("{name} is a {}, and no {}", there.kind().text(), kind.text());
            let next = format!("quorba {} delete {name} deletes it", there.kind().table());
            return Err(Failure::new(codes::USAGE, Exit::Usage, what, next));
        }
        check_delete(name, &self.known()).map_err(|why| {
            let what = format!("{} cannot be deleted: {why}", there.title());
            let next = match kind {
                Kind::Group => "quorba group list shows the groups as they are",
                Kind::Outside => "quorba outside list shows which groups call it",
            };
            Failure::new(codes::CHANGE_REFUSED, Exit::Failed, what, next)
        })
    }

    /// What nodes compare when they meet, as the node's file says it.
    pub fn shared(&self, deadline: &Deadline) -> Result<String, Failure> {
        self.client.file(deadline.left()).map_err(|error| refused(&self.node, &error))
    }
}

/// The catalog, if a node gives it soon.
pub fn glance(answers: &[Answer]) -> Option<Catalog> {
    able(answers)?.client.catalog(GLANCE_WITHIN).ok()
}

/// A node in the primary component can order something; the others would only say so.
fn able(answers: &[Answer]) -> Option<&Answer> {
    let is_able = |answer: &&Answer| answer.status.as_ref().is_ok_and(|it| it.ring.primary);
    answers.iter().find(is_able).or(answers.iter().find(|answer| answer.status.is_ok()))
}

/// Fails if neither the domain file nor a node that answers has such a group.
pub fn require_known(context: &Context, domain: &Domain, name: &str) -> Result<(), Failure> {
    let unknown = match require_group(domain, name) {
        Ok(_) => return Ok(()),
        Err(unknown) => unknown,
    };
    let answers = ask::everyone(domain, context.deadline(GLANCE_WITHIN).left());
    let said = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    let is_there = said.flat_map(|status| &status.groups).any(|group| group.name == name);
    is_there.then_some(()).ok_or(unknown)
}

/// A group as it is now.
pub struct Found {
    /// What is said of it.
    pub group: Group,
    /// What the nodes say that answer; empty if none does.
    pub answers: Vec<Answer>,
    /// Which object group it is, and the version of its references. Where no node answers, what is
    /// true in a domain that begins with this file. None: the running domain does not have it.
    pub identity: Option<ObjectGroup>,
}

/// The group called `name`, as the running domain has it. The domain file counts only where no node
/// answers, or where the running domain has no such group; where the two differ, that is told.
pub fn find(context: &Context, domain: &Domain, name: &str) -> Result<Found, Failure> {
    let in_file = domain.group(name);
    let deadline = context.deadline(GLANCE_WITHIN);
    let answers = ask::everyone(domain, deadline.left());
    let Ok(running) = Running::of(domain, &answers, &deadline) else {
        let group = require_group(domain, name)?.clone();
        let identity = Some(group.identity(quorba_node::id_in_file(name), 0));
        return Ok(Found { group, answers: Vec::new(), identity });
    };
    let definition = running.definitions.iter().find(|one| one.name == name);
    let mut identity = None;
    let group = match (definition.filter(|one| one.kind() == Kind::Group), in_file) {
        (Some(definition), _) => {
            tell_what_differs(context, domain, definition);
            let group = read_group(domain, &definition.text, &running.known())
                .map_err(|report| wrong(context, &format!("group {name}"), &report))?;
            let said = running.references.get(name);
            identity = said.map(|(id, version)| group.identity(*id, *version));
            group
        }
        (None, Some(group)) => {
            context.tell(format!(
                "note: the running domain has no group {name}; what the domain file says of it is \
                 used: quorba config apply creates it"
            ));
            group.clone()
        }
        (None, None) => return Err(unknown(domain, name, &running)),
    };
    Ok(Found { group, answers, identity })
}

/// The group of [`find`] alone.
pub fn find_group(context: &Context, domain: &Domain, name: &str) -> Result<Group, Failure> {
    find(context, domain, name).map(|found| found.group)
}

/// The domain file says something else of a group that it has.
fn tell_what_differs(context: &Context, domain: &Domain, running: &Definition) {
    let in_file = domain.definitions().iter().find(|one| one.name == running.name);
    let Some(in_file) = in_file.filter(|in_file| in_file.text != running.text) else { return };
    let change = GroupChange::between(running, in_file);
    let keys: Vec<&str> = change.keys.iter().map(|key| key.key.as_str()).collect();
    context.tell(format!(
        "note: the domain file says something else of group {} ({}); what runs counts",
        running.name,
        keys.join(", ")
    ));
}

fn unknown(domain: &Domain, name: &str, running: &Running) -> Failure {
    let what = format!("domain {} has no group {name:?}", domain.id);
    let groups = running.definitions.iter().filter(|one| one.kind() == Kind::Group);
    let mut names: Vec<&str> = groups.map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    let next = match names.len() {
        0 => "no group runs: quorba group create makes one".to_owned(),
        1..=NAMES_MAX => format!("groups: {shown}"),
        count => format!("groups: {shown}, and {} more", count - NAMES_MAX),
    };
    Failure::new(codes::NOT_IN_DOMAIN, Exit::Usage, what, next)
}

/// A definition that cannot be used. `title`: such as `group bank`.
pub fn wrong(context: &Context, title: &str, report: &Report) -> Failure {
    let what = match report.error_count() {
        1 => format!("the definition of {title} has an error"),
        errors => format!("the definition of {title} has {errors} errors"),
    };
    let next = "repair what is marked; `quorba explain CODE` says more";
    Failure::new(codes::DEFINITION, Exit::Usage, what, next)
        .detail(report.render(context.colours_stderr()))
        .data(serde_json::json!({ "problems": crate::command::config::problems_json(report) }))
}

/// What was done by a change that was carried out.
pub const fn done_text(change: &CatalogChange) -> &'static str {
    match change {
        CatalogChange::Create(_) => "created",
        CatalogChange::Change(_) => "changed",
        CatalogChange::Delete(_) => "deleted",
    }
}

/// Prints what came of a change.
pub fn print_defined(
    context: &Context,
    (kind, change): (Kind, &CatalogChange),
    (operation, defined): (&str, &Defined),
) -> Result<(), Failure> {
    let (done, name) = (done_text(change), change.name());
    if context.is_json() {
        return context.print_json(&serde_json::json!({
            kind.table(): name,
            done: true,
            "id": defined.id,
            "existed": defined.existed,
            "operation": operation,
        }));
    }
    let before = if defined.existed { ", by this command before" } else { "" };
    let id = match change {
        CatalogChange::Create(_) | CatalogChange::Change(_) => format!("; id {}", defined.id),
        CatalogChange::Delete(_) => String::new(),
    };
    context.print(&format!("{} {name} is {done}{before}{id}\n", kind.text()))
}

/// Says to people what to do so that the file says what runs.
pub fn tell_of_file(context: &Context, domain: &Domain, change: &CatalogChange) {
    if context.is_json() {
        return;
    }
    let in_file = domain.definitions().iter().find(|one| one.name == change.name());
    match (change, in_file) {
        (CatalogChange::Create(_), None) => context.tell(
            "note: the domain file does not have it; enter it there, too, or it is missing when \
             the whole domain begins anew",
        ),
        (CatalogChange::Change(wanted), in_file) if in_file != Some(wanted) => context.tell(
            "note: the domain file says something else of it; change it there, too, or it is as \
             before when the whole domain begins anew",
        ),
        (CatalogChange::Delete(_), Some(_)) => context.tell(
            "note: the domain file still has it; take it out, or it is there again when the whole \
             domain begins anew",
        ),
        _ => {}
    }
}

/// A name that nobody else gives.
pub fn new_operation() -> String {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets).expect("the kernel has randomness");
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Has a node order the change; if its answer is lost, it or another one is asked again.
pub fn define(
    domain: &Domain,
    operation: &str,
    change: &CatalogChange,
    deadline: &Deadline,
) -> Result<Defined, Failure> {
    let mut lost: Option<(String, AdminError)> = None;
    loop {
        let answers = ask::everyone(domain, deadline.left());
        match (able(&answers), &lost) {
            (Some(Answer { node, client, .. }), _) => {
                match client.define(operation, change, deadline.left().min(TRY_WITHIN)) {
                    Ok(defined) => return Ok(defined),
                    Err(error @ AdminError::Conflict { .. }) => {
                        return Err(refused(node, &error));
                    }
                    Err(error) => lost = Some((node.clone(), error)),
                }
            }
            (None, None) => return Err(nobody_here(domain)),
            (None, Some(_)) => {}
        }
        if deadline.left() <= ASK_AGAIN {
            let (node, error) = lost.expect("one was asked");
            return Err(unknown_end(&node, operation, change, &error));
        }
        std::thread::sleep(ASK_AGAIN);
    }
}

fn unknown_end(node: &str, operation: &str, change: &CatalogChange, error: &AdminError) -> Failure {
    let what = format!("{}: node {node}: {error}", change.name());
    if matches!(error, AdminError::NotNow { .. }) {
        let next = "try again in a moment; quorba status shows which nodes are missing";
        return Failure::new(codes::CHANGE_REFUSED, Exit::TimedOut, what, next);
    }
    let next = format!(
        "the change may have been made: quorba group list shows it; the same command with \
         --operation {operation} makes it once"
    );
    Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next)
}

fn refused(node: &str, error: &AdminError) -> Failure {
    let what = format!("node {node}: {error}");
    let (code, exit, next) = match error {
        AdminError::Conflict { refusal, .. } if refusal.contains("primary component") => {
            (codes::CHANGE_REFUSED, Exit::Failed, "quorba status shows which nodes are missing")
        }
        AdminError::Conflict { .. } | AdminError::NotNow { .. } => {
            (codes::CHANGE_REFUSED, Exit::Failed, "quorba group list shows the groups as they are")
        }
        AdminError::Timeout { .. } => {
            (codes::TIMED_OUT, Exit::TimedOut, "quorba status shows which nodes answer")
        }
        _ => (codes::NOBODY_ANSWERS, Exit::Failed, "quorba status shows which nodes answer"),
    };
    Failure::new(code, exit, what, next)
}
