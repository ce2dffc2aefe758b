//! What is wrong with a group where servers do not answer, though their processes run.

use std::collections::BTreeMap;
use std::time::Duration;

use quorba_node::status::{EndedStatus, GroupStatus, RequestStatus, Status, StuckStatus};

use super::{Health, Judgement};
use crate::ask::Answer;
use crate::text::{age, size};

/// A call that is answered by CloseConnection once or twice met a server that was tidying up.
const CLOSES_USUAL: u64 = 2;
/// A state that was not had once may be had the next time; if it is not asked for again, what it
/// was asked for is told.
const REFUSALS_USUAL: u32 = 1;
/// A node tells of so many requests that have ended.
const ENDED_TOLD: usize = 16;

/// The same group as each node that answers sees it.
fn seen<'a>(
    answers: &'a [Answer],
    name: &'a str,
) -> impl Iterator<Item = (&'a Status, &'a GroupStatus)> {
    let statuses = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    statuses.flat_map(move |status| {
        let groups = status.groups.iter().filter(move |group| group.name == name);
        groups.map(move |group| (status, group))
    })
}

/// Only the gateway's node knows a client's address, and only one with a member the rest.
fn add_knowledge(known: &mut RequestStatus, of: &RequestStatus) {
    if known.gateway.is_empty() {
        *known = RequestStatus { client: known.client.take(), ..of.clone() };
    }
    if known.client.is_none() {
        known.client.clone_from(&of.client);
    }
}

/// Requests that ended without a reply, by number, with all that any node knows of them.
pub fn ended(answers: &[Answer], name: &str) -> Vec<EndedStatus> {
    let mut all: BTreeMap<u64, EndedStatus> = BTreeMap::new();
    for one in seen(answers, name).flat_map(|(_, group)| &group.ended) {
        let known = all.entry(one.request.number).or_insert_with(|| one.clone());
        add_knowledge(&mut known.request, &one.request);
    }
    all.into_values().collect()
}

/// They cost nobody but their callers anything, so they are told once and are no reason.
pub fn ended_note(answers: &[Answer], name: &str) -> Option<String> {
    let ended = ended(answers, name);
    let EndedStatus { request, how, .. } = ended.last()?;
    let count = match ended.len() {
        1 => "a request".to_owned(),
        count if count >= ENDED_TOLD => format!("{count} or more requests"),
        count => format!("{count} requests"),
    };
    let (last, whose) = (about(request), whose(request));
    let which = if ended.len() == 1 { "" } else { ", the last one" };
    Some(format!(
        "group {name}: {count} ended without a reply{which}: {last}{whose}: {how} \
         (quorba status {name} shows more)"
    ))
}

/// `request 17 (withdraw on bank, 120 B)`.
fn about(request: &RequestStatus) -> String {
    let RequestStatus { number, operation, key, bytes, .. } = request;
    if request.gateway.is_empty() {
        return format!("request {number}");
    }
    format!("request {number} ({operation} on {key}, {})", size(*bytes))
}

fn whose(request: &RequestStatus) -> String {
    match (&request.client, request.gateway.as_str()) {
        (Some(client), gateway) => format!(" from {client} at {gateway}"),
        (None, "") => String::new(),
        (None, gateway) => format!(" from a client of {gateway}"),
    }
}

/// What servers are at for too long.
pub(super) fn judge_stuck(judgement: &mut Judgement, answers: &[Answer], name: &str) {
    let mut stuck: BTreeMap<u64, (StuckStatus, Vec<&str>)> = BTreeMap::new();
    for (status, group) in seen(answers, name) {
        for one in &group.stuck {
            let (known, nodes) =
                stuck.entry(one.request.number).or_insert_with(|| (one.clone(), Vec::new()));
            nodes.push(&status.node);
            known.since_ms = known.since_ms.max(one.since_ms);
            add_knowledge(&mut known.request, &one.request);
        }
    }
    // The gateway's node may have a server that is not at it.
    for one in seen(answers, name).flat_map(|(_, group)| &group.waiting) {
        if let Some((known, _)) = stuck.get_mut(&one.number) {
            add_knowledge(&mut known.request, one);
        }
    }
    for (number, (StuckStatus { request, since_ms }, nodes)) in stuck {
        let since = age(Duration::from_millis(since_ms));
        let said = format!(
            "group {name}: {}{} is with the server on {} for {since} (quorba group skip {name} \
             {number} gives it up)",
            about(&request),
            whose(&request),
            nodes.join(", "),
        );
        judgement.add(Health::Degraded, said);
    }
}

/// What all nodes know alike.
pub(super) fn judge_members(judgement: &mut Judgement, group: &GroupStatus) {
    let name = &group.name;
    if let Some(number) = group.may_differ {
        let said = format!(
            "group {name}: its members may differ since request {number}, which had no reply \
             (quorba group remove and quorba group add rebuild one from another, as often as it \
             takes until all have the state of one; without a state_object that cannot be done: \
             compare what they say)"
        );
        judgement.add(Health::Degraded, said);
    }
    for node in &group.late {
        let said = format!(
            "group {name}: the server on {node} is late with what others have answered; they \
             answer for it (it is started anew after server_reply_ms)"
        );
        judgement.add(Health::Degraded, said);
    }
}

/// What only a server's own node knows.
pub(super) fn judge_server(judgement: &mut Judgement, node: &str, group: &GroupStatus) {
    let name = &group.name;
    let server = group.server.as_ref();
    let log = server.and_then(|server| server.log.as_deref());
    let look = log.map_or_else(String::new, |log| format!(" (see {log})"));
    if let Some(refused) = group.state_refused.as_ref().filter(|it| it.times > REFUSALS_USUAL) {
        let said = format!(
            "group {name}: the server on {node} has not given its state, {} times in a row: \
             {}{look}",
            refused.times, refused.reason
        );
        judgement.add(Health::Degraded, said);
    }
    if let Some(server) = server.filter(|server| server.closes > CLOSES_USUAL) {
        let said = format!(
            "group {name}: the server on {node} closes its connection each time that it is sent \
             the same call, {} times so far{look}",
            server.closes
        );
        judgement.add(Health::Degraded, said);
    }
}
