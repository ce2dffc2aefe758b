//! Whether a group can be told ordered time (`{time}` in its command).

use crate::codes::Code;
use crate::domain::{Backend, Group};
use crate::problem::Problem;
use crate::template::Placeholder;
use crate::walk::Section;
use quorba_base::policy::{Concurrency, Style};

/// With several calls at a time only the server knows which of them it is at, and calls of a
/// stateless group have no place in the order.
pub(super) fn check(section: &Section<'_>, group: &Group) {
    let Backend::Start(command) = &group.backend else { return };
    if !command.uses(Placeholder::Time) {
        return;
    }
    let (key, value) = match (group.concurrency, group.style) {
        (_, Style::Stateless) => ("style", "stateless"),
        (Concurrency::Pipelined, _) => ("concurrency", "pipelined"),
        (Concurrency::PerObject, _) => ("concurrency", "per-object"),
        (Concurrency::Sequential, _) => return,
    };
    let span = section.value(key).map_or(section.header.clone(), |value| value.span());
    let message = format!("{{time}} is not possible with `{key} = \"{value}\"`");
    let help = "ordered time is that of the one request that a server executes: leave the \
                concurrency at \"sequential\", or take the time from the requests";
    section.problems.add(Problem::at(Code::NoOrderedTime, span, message).help(help));
}
