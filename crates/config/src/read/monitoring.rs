//! `pull_monitorable`: what it needs.
//!
//! What it is not: who asks, or how often; the replication manager's properties say that.

use crate::codes::Code;
use crate::domain::{Backend, Group};
use crate::problem::Problem;
use crate::template::Placeholder;
use crate::walk::Section;

/// Refuses what nobody could ask.
pub(super) fn check(section: &Section<'_>, group: &Group) {
    let Some(value) = section.value("pull_monitorable").filter(|_| group.pull_monitorable) else {
        return;
    };
    let has_port = match &group.backend {
        Backend::Start(server) => server.uses(Placeholder::Port),
        Backend::Connect(_) => false,
    };
    let lacks = if !has_port {
        "a `server` with {port}"
    } else if group.object_key.is_none() {
        "an `object_key`"
    } else {
        return;
    };
    let message = format!("{}: `pull_monitorable` without {lacks}", section.title);
    let help = "each node asks the object of its own server, at its port; objects that the \
                application makes are asked without this key";
    section.problems.add(Problem::at(Code::Conflict, value.span(), message).help(help));
}
