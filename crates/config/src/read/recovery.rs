//! `recovery`: how a member that missed something is brought up to date, and what that needs.

use crate::codes::Code;
use crate::domain::{Backend, Group};
use crate::problem::Problem;
use crate::walk::Section;

/// Bytes of requests that are kept for a replay, unless the file says something else.
const REPLAY_BYTES_DEFAULT: usize = 64 << 20;

/// What a replay may take, if there is one.
pub(super) fn read(section: &Section<'_>) -> Option<usize> {
    let ways = [("checkpoint", false), ("replay", true)];
    let bytes = section.number("replay_bytes", "bytes", 4_096..=1 << 30);
    match (section.word_or("recovery", &ways, &[], false), bytes) {
        (true, bytes) => Some(bytes.map_or(REPLAY_BYTES_DEFAULT, |at| at.value as usize)),
        (false, None) => None,
        (false, Some(at)) => {
            let message = "`replay_bytes` without `recovery` = \"replay\"";
            let problem = Problem::at(Code::SilentSetting, at.span, message);
            section.problems.add(problem.help("without it no requests are kept"));
            None
        }
    }
}

/// Refuses what a replay cannot bring back.
pub(super) fn check(section: &Section<'_>, group: &Group) {
    if group.replay_bytes_max.is_none() {
        return;
    }
    let refuse = |message: &str, help: &str| {
        let span = section.value("recovery").map_or(section.header.clone(), |value| value.span());
        section.problems.add(Problem::at(Code::ReplayNeeds, span, message).help(help));
    };
    if group.state_object.is_some() {
        refuse(
            "`recovery` = \"replay\" with a `state_object`",
            "a server that can give its state need not execute everything again: leave one out",
        );
    }
    if matches!(group.backend, Backend::Connect(_)) {
        refuse(
            "`recovery` = \"replay\" with `connect`",
            "what executes everything again must be a new server that the node starts: use \
             `server`",
        );
    }
    if !group.style.all_execute() {
        refuse(
            "`recovery` = \"replay\" in a style in which not all members execute",
            "use \"active\", \"active-with-voting\" or \"semi-active\"",
        );
    }
}
