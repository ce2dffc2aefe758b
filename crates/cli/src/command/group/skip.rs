//! `quorba group skip`: gives up a request that servers do not answer.
//!
//! Invariant: only a node whose server has the request, or where it waits, can name it to the
//! others, so nodes are asked one after the other until one of them can.

use quorba_admin::status::{GroupStatus, MemberState};
use quorba_admin::{AdminError, Change, Client};
use quorba_config::Domain;
use serde_json::json;

use super::{DEADLINE, refused};
use crate::ask::{self, Answer};
use crate::catalog;
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// What a node says that has no such request.
const NOT_WAITING: &str = "no request with number";

pub(super) fn skip(
    context: &Context,
    domain: &Domain,
    group: &str,
    number: u64,
) -> Result<Exit, Failure> {
    catalog::require_known(context, domain, group)?;
    let deadline = context.deadline(DEADLINE);
    let answers = ask::everyone(domain, deadline.left());
    // Another node may have it.
    let passes = |error: &AdminError| match error {
        AdminError::Conflict { refusal, .. } => refusal.contains(NOT_WAITING),
        _ => false,
    };
    let asked = in_turn(askable(&answers, group), (group, Change::Skip(number)), deadline, passes);
    let node = asked.map_err(|refused| {
        refused.unwrap_or_else(|| match knows(&answers, group) {
            true => nobody_in(group),
            false => ask::no_word(domain, &answers, group, None),
        })
    })?;
    show(context, group, number, node)
}

/// Gives up a request that was answered: a node that remembers it is asked.
pub(super) fn skip_answered(
    context: &Context,
    domain: &Domain,
    group: &str,
    number: u64,
) -> Result<Exit, Failure> {
    catalog::require_known(context, domain, group)?;
    let deadline = context.deadline(DEADLINE);
    let answers = ask::everyone(domain, deadline.left());
    let able = answers.iter().filter(|answer| answer.status.is_ok());
    let nodes = able.map(|answer| (answer.node.as_str(), &answer.client));
    let asked = in_turn(nodes, (group, Change::SkipAnswered(number)), deadline, |_| true);
    asked.map_err(|refused| {
        refused.unwrap_or_else(|| ask::no_word(domain, &answers, group, None))
    })?;
    show_answered(context, group, number)
}

/// Has one of these nodes carry the change out, and gives its name. Where one refuses and its
/// refusal `passes`, the next one is asked; if nobody is left, the first refusal stands.
fn in_turn<'a>(
    nodes: impl IntoIterator<Item = (&'a str, &'a Client)>,
    (group, change): (&str, Change),
    deadline: Deadline,
    passes: impl Fn(&AdminError) -> bool,
) -> Result<&'a str, Option<Failure>> {
    let mut first = None;
    for (name, client) in nodes {
        match client.change(group, &change, deadline.left()) {
            Ok(()) => return Ok(name),
            Err(error) => {
                let failure = refused(name, group, &error);
                if !passes(&error) {
                    return Err(Some(failure));
                }
                first.get_or_insert(failure);
            }
        }
    }
    Err(first)
}

/// `--answered` without `--yes`.
pub(super) fn wants_yes(number: u64) -> Failure {
    let what = format!(
        "the client of request {number} was told that it was executed; what it did is lost if \
         nobody executes it from the log again"
    );
    let next = "add --yes if the group cannot come back otherwise; docs/recovery.md says how to \
                find the request that ends servers";
    Failure::new(codes::STATE_UNSAID, Exit::Usage, what, next)
}

fn show_answered(context: &Context, group: &str, number: u64) -> Result<Exit, Failure> {
    if context.is_json() {
        context.print_json(&json!({ "group": group, "skipped": number, "answered": true }))?;
    } else {
        context.print(&format!(
            "request {number} of group {group} is given up, although it was answered; its servers \
             start again, without it\n"
        ))?;
    }
    Ok(Exit::Ok)
}

/// Whether a node that answers has the group.
fn knows(answers: &[Answer], group: &str) -> bool {
    let statuses = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    statuses.flat_map(|status| &status.groups).any(|it| it.name == group)
}

fn nobody_in(group: &str) -> Failure {
    let what = format!("no member of group {group} is in, so no request is with a server");
    let next = format!("quorba status {group} says why they are out");
    Failure::new(codes::CHANGE_REFUSED, Exit::Failed, what, next)
}

/// Nodes whose members are in, the leader's first.
fn askable<'a>(answers: &'a [Answer], name: &'a str) -> Vec<(&'a str, &'a Client)> {
    let of = |answer: &'a Answer| -> Option<(&'a Answer, &'a GroupStatus)> {
        let status = answer.status.as_ref().ok()?;
        let group = status.groups.iter().find(|group| group.name == name)?;
        let mut members = group.members.iter();
        let is_in = |state| state == MemberState::In;
        members.any(|member| member.node == status.node && is_in(member.state)).then_some(())?;
        Some((answer, group))
    };
    let mut found: Vec<_> = answers.iter().filter_map(of).collect();
    found.sort_by_key(|(answer, group)| group.leader.as_deref() != Some(&answer.node));
    found.into_iter().map(|(answer, _)| (answer.node.as_str(), &answer.client)).collect()
}

fn show(context: &Context, group: &str, number: u64, node: &str) -> Result<Exit, Failure> {
    if context.is_json() {
        context.print_json(&json!({ "group": group, "skipped": number, "node": node }))?;
    } else {
        context.print(&format!(
            "request {number} of group {group} is given up: its client is told TIMEOUT, \
             COMPLETED_MAYBE\n"
        ))?;
    }
    Ok(Exit::Ok)
}
