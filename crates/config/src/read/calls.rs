//! `calls`: groups, and servers outside, that the servers of a group call while they execute a
//! request.
//!
//! What it is not: how they find them, which the placeholder `{call.NAME}` says. Invariant: who
//! calls executes one request at a time and remembers what it was asked, as it must for its calls
//! to have names that all its members give them.

use super::group::GroupDraft;
use crate::codes::Code;
use crate::domain::{Backend, Concurrency, Outside, Recovery, Style};
use crate::problem::Problem;
use crate::suggest::nearest;
use crate::walk::{At, Problems, Section, Span, shortened};

/// The most groups that call others: what is known of their calls has to fit into one message.
const CALLERS_MAX: usize = 64;

/// What one group says.
pub(super) struct Draft {
    names: Vec<At<String>>,
    span: Span,
    title: String,
}

/// Who is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Called {
    Group(usize),
    Outside(usize),
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

/// From names to groups, now that all of these are known.
pub(super) fn resolve(
    problems: &Problems,
    groups: &mut [GroupDraft],
    outside: &[Outside],
    drafts: Vec<Draft>,
) {
    let callers = drafts.iter().filter(|draft| !draft.names.is_empty());
    if let Some(first_too_many) = callers.clone().nth(CALLERS_MAX) {
        let message = format!("more than {CALLERS_MAX} groups call others");
        let span = first_too_many.span.clone();
        problems.add(Problem::at(Code::OutOfRange, span, message));
    }
    for (index, draft) in drafts.into_iter().enumerate() {
        let mut calls = Vec::new();
        for name in &draft.names {
            let called = find(problems, groups, outside, &draft.title, name);
            if called.is_some_and(|called| calls.contains(&called)) {
                let message = format!("{:?} stands twice", name.value);
                problems.add(Problem::at(Code::Conflict, name.span.clone(), message));
            }
            calls.extend(called);
        }
        if !calls.is_empty() {
            check_caller(problems, groups, index, &draft);
        }
        check_command(problems, groups, outside, index, &draft);
        let group = &mut groups[index].group;
        for called in calls {
            match called {
                Called::Group(index) => group.calls.push(index),
                Called::Outside(index) => group.outside.push(index),
            }
        }
    }
}

fn find(
    problems: &Problems,
    groups: &[GroupDraft],
    outside: &[Outside],
    title: &str,
    name: &At<String>,
) -> Option<Called> {
    let outsiders = || outside.iter().map(|server| server.name.as_str());
    let of_groups = || groups.iter().map(|draft| draft.group.name.as_str());
    let names = || of_groups().chain(outsiders());
    let group = of_groups().position(|group| group == name.value);
    if let Some(index) = outsiders().position(|server| server == name.value) {
        if group.is_some() {
            let message = format!("{:?} is a group and a server outside", name.value);
            problems.add(Problem::at(Code::Conflict, name.span.clone(), message));
        }
        return Some(Called::Outside(index));
    }
    let Some(index) = group else {
        let wrong = shortened(&name.value);
        let message =
            format!("{title} calls {wrong}, which is no [group.{wrong}] nor [outside.{wrong}]");
        let problem = Problem::at(Code::NoSuchGroup, name.span.clone(), message);
        problems.add(match nearest(&name.value, names()) {
            Some(meant) => problem.help(format!("did you mean \"{meant}\"?")),
            None => problem.help(format!("known: {}", names().collect::<Vec<_>>().join(", "))),
        });
        return None;
    };
    if groups[index].group.style == Style::Stateless {
        let message = format!("{title} calls {}, which is stateless", name.value);
        let help = "the members of a stateless group may answer each replica something else";
        let problem = Problem::at(Code::CallsNeed, name.span.clone(), message);
        problems.add(problem.help(help));
    }
    Some(Called::Group(index))
}

fn check_caller(problems: &Problems, groups: &[GroupDraft], index: usize, draft: &Draft) {
    let group = &groups[index].group;
    let why = if group.concurrency != Concurrency::Sequential {
        "needs `concurrency = \"sequential\"`: else nobody can say in which request a call is made"
    } else if group.style == Style::Stateless {
        "cannot be stateless: its members do not execute the same requests"
    } else if group.durable {
        "cannot be durable in this version: it would make forgotten calls again after a power cut"
    } else if matches!(group.recovery, Recovery::Replay(_)) {
        "cannot have `recovery = \"replay\"`: it would make forgotten calls again"
    } else if matches!(group.backend, Backend::Connect(_)) {
        "needs `server`: a server that runs already cannot be told where to call"
    } else {
        return;
    };
    let message = format!("{} has `calls`, so it {why}", draft.title);
    problems.add(Problem::at(Code::CallsNeed, draft.span.clone(), message));
}

/// The command and `calls` should name the same groups.
fn check_command(
    problems: &Problems,
    groups: &[GroupDraft],
    outside: &[Outside],
    index: usize,
    draft: &Draft,
) {
    let Backend::Start(server) = &groups[index].group.backend else { return };
    let templates = || server.command.iter().chain(server.env.iter().map(|(_, value)| value));
    let used = || templates().flat_map(crate::template::Template::calls);
    if let Some(group) = used().find(|group| draft.names.iter().all(|name| name.value != *group)) {
        let message =
            format!("{} uses {{call.{group}}}, and `calls` does not name it", draft.title);
        let problem = Problem::at(Code::BadPlaceholder, draft.span.clone(), message);
        problems.add(problem.help(format!("calls = [\"{group}\"]")));
    }
    let urls = || templates().flat_map(crate::template::Template::urls);
    if let Some(name) = urls().find(|name| outside.iter().all(|server| server.name != *name)) {
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
