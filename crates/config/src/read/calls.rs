//! `calls`: groups, and servers outside, that the servers of a group call while they execute a
//! request.
//!
//! What it is not: how they find them, which the placeholder `{call.NAME}` says. Invariant: who
//! calls executes one request at a time and remembers what it was asked, as it must for its calls
//! to have names that all its members give them.

use super::scope::{Known, Told};
use crate::codes::Code;
use crate::domain::{Backend, DOMAIN_OBJECT, Group};
use crate::problem::Problem;
use crate::suggest::nearest;
use crate::walk::{At, Problems, Section, Span, shortened};
use quorba_base::policy::{Concurrency, Style};

/// The most groups that call others: what is known of their calls has to fit into one message.
const CALLERS_MAX: usize = 64;
/// More names are not told to who has written one wrong.
const NAMED_MAX: usize = 32;

/// What one group says.
#[derive(Debug)]
pub(super) struct Draft {
    names: Vec<At<String>>,
    span: Span,
    title: String,
}

impl Draft {
    /// Whether it calls anybody.
    pub(super) fn is_caller(&self) -> bool {
        !self.names.is_empty()
    }
}

/// The names, as they stand there.
pub(super) fn read(section: &Section<'_>) -> Draft {
    let list = section.texts("calls");
    let span = list.as_ref().map_or(section.header.clone(), |list| list.span.clone());
    let names = list.map_or_else(Vec::new, |list| list.value);
    let owned = |at: At<&str>| At { value: at.value.to_owned(), span: at.span };
    let title = section.title.clone();
    Draft { names: names.into_iter().map(owned).collect(), span, title }
}

/// From names to groups and servers outside, now that all of these are known.
pub(super) fn resolve(
    problems: &Problems,
    group: &mut Group,
    draft: &Draft,
    (known, told): (&dyn Known, &mut Told),
) {
    let is_one_more = draft.is_caller() && known.callers_beside(&group.name) >= CALLERS_MAX;
    if is_one_more && !told.callers {
        told.callers = true;
        let message = format!("more than {CALLERS_MAX} groups call others");
        problems.add(Problem::at(Code::OutOfRange, draft.span.clone(), message));
    }
    for name in &draft.names {
        let itself = (name.value == group.name).then_some(group.style == Style::Stateless);
        let is_stateless = itself.or_else(|| known.is_stateless(&name.value));
        if !is_there(problems, (known, is_stateless), draft, name) {
            continue;
        }
        if group.calls.contains(&name.value) {
            let message = format!("{:?} stands twice", name.value);
            problems.add(Problem::at(Code::Conflict, name.span.clone(), message));
            continue;
        }
        group.calls.push(name.value.clone());
    }
    if !group.calls.is_empty() {
        check_caller(problems, group, draft);
    }
    if group.style == Style::Stateless
        && let Some(caller) = known.caller_of(&group.name)
    {
        let message = format!("group {caller} calls {}, so it cannot be stateless", group.name);
        let help = "the members of a stateless group may answer each replica something else";
        let problem = Problem::at(Code::CallsNeed, draft.span.clone(), message);
        problems.add(problem.help(help));
    }
    check_command(problems, known, group, draft);
}

/// Whether something that can be called has that name.
fn is_there(
    problems: &Problems,
    (known, group): (&dyn Known, Option<bool>),
    Draft { title, .. }: &Draft,
    name: &At<String>,
) -> bool {
    if name.value == DOMAIN_OBJECT || known.is_outside(&name.value) {
        return true;
    }
    let Some(is_stateless) = group else {
        let wrong = shortened(&name.value);
        let message =
            format!("{title} calls {wrong}, which is no [group.{wrong}] nor [outside.{wrong}]");
        let known = known.names();
        let names = || known.iter().map(String::as_str);
        let problem = Problem::at(Code::NoSuchGroup, name.span.clone(), message);
        problems.add(match nearest(&name.value, names()) {
            Some(meant) => problem.help(format!("did you mean \"{meant}\"?")),
            None => {
                let some: Vec<&str> = names().take(NAMED_MAX).collect();
                problem.help(format!("known: {}", some.join(", ")))
            }
        });
        return false;
    };
    if is_stateless {
        let message = format!("{title} calls {}, which is stateless", name.value);
        let help = "the members of a stateless group may answer each replica something else";
        let problem = Problem::at(Code::CallsNeed, name.span.clone(), message);
        problems.add(problem.help(help));
    }
    true
}

fn check_caller(problems: &Problems, group: &Group, draft: &Draft) {
    let why = if group.concurrency != Concurrency::Sequential {
        "needs `concurrency = \"sequential\"`: else nobody can say in which request a call is made"
    } else if group.style == Style::Stateless {
        "cannot be stateless: its members do not execute the same requests"
    } else if group.durable {
        "cannot be durable in this version: it would make forgotten calls again after a power cut"
    } else if group.replay_bytes_max.is_some() {
        "cannot have `recovery = \"replay\"`: it would make forgotten calls again"
    } else if group.by_application {
        "cannot have `recovery = \"application\"`: its members may make different calls"
    } else if matches!(group.backend, Backend::Connect(_)) {
        "needs `server`: a server that runs already cannot be told where to call"
    } else {
        return;
    };
    let message = format!("{} has `calls`, so it {why}", draft.title);
    problems.add(Problem::at(Code::CallsNeed, draft.span.clone(), message));
}

/// The command and `calls` should name the same groups.
fn check_command(problems: &Problems, known: &dyn Known, group: &Group, draft: &Draft) {
    let Backend::Start(server) = &group.backend else { return };
    let templates = || server.command.iter().chain(server.env.iter().map(|(_, value)| value));
    let used = || templates().flat_map(crate::template::Template::calls);
    if let Some(group) = used().find(|group| draft.names.iter().all(|name| name.value != *group)) {
        let message =
            format!("{} uses {{call.{group}}}, and `calls` does not name it", draft.title);
        let problem = Problem::at(Code::BadPlaceholder, draft.span.clone(), message);
        problems.add(problem.help(format!("calls = [\"{group}\"]")));
    }
    let urls = || templates().flat_map(crate::template::Template::urls);
    let is_outside =
        |name: &str| known.is_judged() || name == DOMAIN_OBJECT || known.is_outside(name);
    if let Some(name) = urls().find(|name| !is_outside(name)) {
        let message =
            format!("{} uses {{url.{name}}}, and there is no [outside.{name}]", draft.title);
        let problem = Problem::at(Code::BadPlaceholder, draft.span.clone(), message);
        let help =
            format!("the object key of a group stands in the URL: corbaloc::{{call.{name}}}/KEY");
        problems.add(problem.help(help));
    }
    for name in draft.names.iter().filter(|name| used().all(|group| group != name.value)) {
        let name_text = &name.value;
        let message = format!("{} never tells its server where to call {name_text}", draft.title);
        let help = format!("{{call.{name_text}}} stands for host:port, as in a corbaloc URL");
        problems.add(Problem::at(Code::SilentSetting, name.span.clone(), message).help(help));
    }
}
