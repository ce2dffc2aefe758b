//! `execution`: whether members execute a request together, or one first. `replication` and
//! `depth`: how many must have a request before its caller goes on, and which members count.

use crate::codes::Code;
use crate::domain::Group;
use crate::problem::Problem;
use crate::walk::Section;
use quorba_base::policy::{Concurrency, Replication};

pub(super) fn read(section: &Section<'_>) -> bool {
    section.word_or("execution", &[("together", false), ("staggered", true)], &[], false)
}

pub(super) fn read_replication(section: &Section<'_>) -> Replication {
    section.word_or("replication", Replication::WORDS, &[], Replication::Ordered)
}

pub(super) fn check(section: &Section<'_>, group: &Group) {
    if group.staggered {
        needs_order(section, group, ("execution", "staggered", "together"));
    }
    if group.replication.counts_executed() {
        let word = group.replication.as_str();
        needs_order(section, group, ("replication", word, Replication::Ordered.as_str()));
        all_must_execute(section, group);
    }
    let members = group.members.len();
    if group.depth as usize > members && members > 0 {
        let message = format!("`depth` = {}, but there are {members} members", group.depth);
        refuse(section, "depth", message, "no call would be taken: ask for fewer members");
    } else if group.depth as usize == members && members > 1 {
        let message = format!("`depth` = {members} wants all members of group {}", group.name);
        let help = "no call is taken while one of them is away; ask for fewer members, unless that \
                    is wanted";
        tell(section, Code::FewMembers, "depth", message, help);
    }
}

/// A key, the word that it has, and one that needs nothing.
type Words<'w> = (&'static str, &'w str, &'w str);

/// With calls side by side nobody can say how far a member is.
fn needs_order(section: &Section<'_>, group: &Group, (key, word, other): Words<'_>) {
    if group.concurrency != Concurrency::PerObject {
        return;
    }
    let span = section.value(key).map_or(section.header.clone(), |value| value.span());
    let message = format!("`{key}` = \"{word}\" needs calls that keep their order");
    let mut problem = Problem::at(Code::Conflict, span, message);
    if let Some(concurrency) = section.value("concurrency") {
        problem = problem.related(concurrency.span(), "these run side by side");
    }
    let help = format!("use concurrency = \"sequential\" or \"pipelined\", or {key} = \"{other}\"");
    section.problems.add(problem.help(help));
}

fn all_must_execute(section: &Section<'_>, group: &Group) {
    if group.style.all_execute() {
        return;
    }
    let (word, style) = (group.replication.as_str(), group.style.as_str());
    let message =
        format!("`replication` = \"{word}\" with the style \"{style}\": not all members execute");
    let help = "use style = \"active\", \"semi-active\" or \"active-with-voting\", or \
                replication = \"ordered\"";
    refuse(section, "replication", message, help);
}

fn refuse(section: &Section<'_>, key: &'static str, message: String, help: &str) {
    tell(section, Code::Conflict, key, message, help);
}

fn tell(section: &Section<'_>, code: Code, key: &'static str, message: String, help: &str) {
    let span = section.value(key).map_or(section.header.clone(), |value| value.span());
    section.problems.add(Problem::at(code, span, message).help(help));
}
