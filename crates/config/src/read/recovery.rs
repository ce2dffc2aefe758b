//! `recovery`: how a member that missed something is brought up to date, and what that needs.

use crate::codes::Code;
use crate::domain::{Backend, Group};
use crate::problem::Problem;
use crate::walk::Section;
use quorba_base::policy::{ComparisonRule, Style};

/// Bytes of requests that are kept for a replay, unless the file says something else.
const REPLAY_BYTES_DEFAULT: usize = 64 << 20;

/// By what a member comes to have what the others have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recovery {
    /// Another member's state.
    Checkpoint,
    /// All requests once more, if they have no more bytes.
    Replay(usize),
    /// Whatever the application does for it.
    Application,
}

impl Recovery {
    pub(super) const fn replay_bytes_max(self) -> Option<usize> {
        match self {
            Self::Replay(bytes) => Some(bytes),
            Self::Checkpoint | Self::Application => None,
        }
    }

    pub(super) const fn is_by_application(self) -> bool {
        matches!(self, Self::Application)
    }

    /// How replies are compared: not where members may differ.
    pub(super) const fn comparison(self, wanted: ComparisonRule) -> ComparisonRule {
        let requests = if self.is_by_application() { 0 } else { wanted.requests };
        ComparisonRule { requests, ..wanted }
    }
}

pub(super) fn read(section: &Section<'_>) -> Recovery {
    let ways = [
        ("checkpoint", Recovery::Checkpoint),
        ("replay", Recovery::Replay(REPLAY_BYTES_DEFAULT)),
        ("application", Recovery::Application),
    ];
    let bytes = section.number("replay_bytes", "bytes", 4_096..=1 << 30);
    match (section.word_or("recovery", &ways, &[], Recovery::Checkpoint), bytes) {
        (Recovery::Replay(_), Some(at)) => Recovery::Replay(at.value as usize),
        (recovery, Some(at)) => {
            let message = "`replay_bytes` without `recovery` = \"replay\"";
            let problem = Problem::at(Code::SilentSetting, at.span, message);
            section.problems.add(problem.help("without it no requests are kept"));
            recovery
        }
        (recovery, None) => recovery,
    }
}

/// Refuses what does not go with the way in which members are brought back.
pub(super) fn check(section: &Section<'_>, group: &Group) {
    if group.replay_bytes_max.is_some() {
        check_replay(section, group);
    }
    if group.by_application {
        check_application(section, group);
    }
}

fn refuse(section: &Section<'_>, code: Code, message: String, help: &str) {
    let span = section.value("recovery").map_or(section.header.clone(), |value| value.span());
    section.problems.add(Problem::at(code, span, message).help(help));
}

/// Refuses what a replay cannot bring back.
fn check_replay(section: &Section<'_>, group: &Group) {
    let refuse = |message: &str, help: &str| {
        refuse(section, Code::ReplayNeeds, message.to_owned(), help);
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

/// Refuses what needs states that Quorba knows of.
fn check_application(section: &Section<'_>, group: &Group) {
    let refuse = |with: &str, help: &str| {
        let message = format!("`recovery` = \"application\" {with}");
        refuse(section, Code::ApplicationNeeds, message, help);
    };
    if group.state_object.is_some() {
        refuse(
            "with a `state_object`",
            "the application takes care of states, so nobody asks for them: leave one out",
        );
    }
    if group.durable {
        refuse(
            "with `durable`",
            "a disk would have requests, and no state behind which they fit: leave one out",
        );
    }
    if !group.style.all_execute() || group.style == Style::ActiveWithVoting {
        refuse(
            &format!("with the style \"{}\"", group.style.as_str()),
            "passive styles move states, voting needs members that are alike, and stateless \
             servers have nothing to bring back: use \"active\" or \"semi-active\"",
        );
    }
    for key in ["compare_replies", "on_divergence", "on_total_loss"] {
        if let Some(value) = section.value(key) {
            let message = format!("`{key}` has no effect with `recovery` = \"application\"");
            let problem = Problem::at(Code::SilentSetting, value.span(), message);
            section.problems.add(problem.help("what members have is the application's business"));
        }
    }
}
