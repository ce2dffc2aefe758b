//! How a group's members share the work: `style`, `leader` and the checkpoints of passive styles.

use quorba_base::policy::{CheckpointRule, ComparisonRule, Style};
use quorba_base::{NodeId, NodeSet};
use toml::de::DeValue;

use super::group::named_member;
use super::scope::Scope;
use crate::codes::Code;
use crate::domain::{Backend, Group, Placement};
use crate::problem::Problem;
use crate::walk::Section;

/// Requests between two checkpoints, unless the file says otherwise.
const REQUESTS_DEFAULT: u32 = 100;

/// Requests whose replies are compared together, unless the file says otherwise.
const COMPARED_DEFAULT: u32 = 64;

/// What the file says of it.
pub(super) struct StyleDraft {
    pub(super) style: Style,
    pub(super) leader: Option<NodeId>,
    pub(super) checkpoint: CheckpointRule,
    pub(super) comparison: ComparisonRule,
    pub(super) placement: Placement,
}

pub(super) fn read(section: &Section<'_>, scope: &Scope<'_>, members: NodeSet) -> StyleDraft {
    let style = section.word_or("style", Style::WORDS, &[], Style::Active);
    let leader = named_member(section, "leader", scope, members);
    let requests = section.number_or("checkpoint_requests", "", 1..=1_000_000, REQUESTS_DEFAULT);
    let after = section.millis_or("checkpoint_ms", 1..=86_400_000, 1_000);
    let updates = section.boolean_or("checkpoint_updates", false);
    let verdicts = [("report", false), ("expel", true)];
    let (together, ignore_padding) = compared(section);
    let comparison = ComparisonRule {
        requests: together,
        ignore_padding,
        expel: section.word_or("on_divergence", &verdicts, &[], false),
    };
    if comparison.requests == 0 {
        idle(section, "on_divergence", "with `compare_replies` = 0");
    }
    let checkpoint = CheckpointRule { requests, after, updates };
    let watch = section.millis_or("placement_watch_ms", 600..=86_400_000, 60_000);
    let words = [("manual", Placement::Manual), ("auto", Placement::Auto(watch))];
    let placement = section.word_or("placement", &words, &[], Placement::Manual);
    if matches!(placement, Placement::Manual) {
        idle(section, "placement_watch_ms", "without `placement` = \"auto\"");
    }
    StyleDraft { style, leader, checkpoint, comparison, placement }
}

/// `compare_replies`: how many together, and whether padding is ignored.
fn compared(section: &Section<'_>) -> (u32, bool) {
    const KEY: &str = "compare_replies";
    let words = [("ignore-padding", true)];
    if section.value(KEY).is_some_and(|value| matches!(value.get_ref(), DeValue::String(_))) {
        return (COMPARED_DEFAULT, section.word_or(KEY, &words, &[], false));
    }
    (section.number_or(KEY, "", 0..=1_000_000, COMPARED_DEFAULT), false)
}

/// Reports a key that does nothing.
fn idle(section: &Section<'_>, key: &'static str, why: &str) {
    if let Some(value) = section.value(key) {
        let message = format!("`{key}` has no effect {why}");
        section.problems.add(Problem::at(Code::SilentSetting, value.span(), message));
    }
}

/// What the style needs and the group does not have.
pub(super) fn check(section: &Section<'_>, group: &Group) {
    let style = group.style;
    let refuse = |message: String, help: &str| {
        let span = section.value("style").map_or(section.header.clone(), |value| value.span());
        section.problems.add(Problem::at(Code::StyleNeeds, span, message).help(help));
    };
    let word = style.as_str();
    if style.is_passive() && group.state_object.is_none() && !group.by_application {
        refuse(
            format!("style \"{word}\" without a `state_object`"),
            "the leader's state is sent to the others: name the object key of an \
             FT::Checkpointable in the server",
        );
    }
    if style == Style::ColdPassive && matches!(group.backend, Backend::Connect(_)) {
        refuse(
            format!("style \"{word}\" with `connect`"),
            "only the leader's server runs, so the nodes must start and end it: use `server`",
        );
    }
}
