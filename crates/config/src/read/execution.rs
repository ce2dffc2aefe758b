//! `execution`: whether members execute a request together, or one first.

use crate::codes::Code;
use crate::domain::Group;
use crate::problem::Problem;
use crate::walk::Section;
use quorba_base::policy::Concurrency;

pub(super) fn read(section: &Section<'_>) -> bool {
    section.word_or("execution", &[("together", false), ("staggered", true)], &[], false)
}

/// With calls side by side nobody can say how far the first member is.
pub(super) fn check(section: &Section<'_>, group: &Group) {
    if !group.staggered || group.concurrency != Concurrency::PerObject {
        return;
    }
    let span = section.value("execution").map_or(section.header.clone(), |value| value.span());
    let message = "`execution` = \"staggered\" needs calls that keep their order";
    let mut problem = Problem::at(Code::Conflict, span, message);
    if let Some(concurrency) = section.value("concurrency") {
        problem = problem.related(concurrency.span(), "these run side by side");
    }
    let help = "use concurrency = \"sequential\" or \"pipelined\", or execution = \"together\"";
    section.problems.add(problem.help(help));
}
