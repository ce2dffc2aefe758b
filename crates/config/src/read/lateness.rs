//! `abandon_ms`: when a group gives up a request that no server answers.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::codes::Code;
use crate::domain::Group;
use crate::problem::Problem;
use crate::walk::Section;

/// What it may be if it is not 0, which is never.
const ABANDON_MS: RangeInclusive<u64> = 100..=86_400_000;

pub(super) fn read_abandon(section: &Section<'_>) -> Option<Duration> {
    let at = section.number("abandon_ms", "milliseconds", 0..=*ABANDON_MS.end())?;
    match at.value {
        0 => None,
        value if ABANDON_MS.contains(&value) => Some(Duration::from_millis(value)),
        value => {
            let message = format!("`abandon_ms` must be 0 or at least {}", ABANDON_MS.start());
            let problem = Problem::at(Code::OutOfRange, at.span, message);
            let help = format!("after {value} ms a busy server looks like one that hangs; 0: off");
            section.problems.add(problem.help(help));
            None
        }
    }
}

/// A request is given up by all only after one member alone has been found late with it.
pub(super) fn check(section: &Section<'_>, group: &Group) {
    let Some(abandon) = group.abandon.filter(|abandon| *abandon < group.server_reply) else {
        return;
    };
    let (abandon, reply) = (abandon.as_millis(), group.server_reply.as_millis());
    let span = section.value("abandon_ms").map_or(section.header.clone(), |value| value.span());
    let message = format!("`abandon_ms` = {abandon} is less than `server_reply_ms` = {reply}");
    let mut problem = Problem::at(Code::Conflict, span, message);
    if let Some(reply) = section.value("server_reply_ms") {
        problem = problem.related(reply.span(), "this is how long a server may take");
    }
    let help = "a request is given up only when its servers have had the time that they may take: \
                raise abandon_ms, or lower server_reply_ms";
    section.problems.add(problem.help(help));
}
