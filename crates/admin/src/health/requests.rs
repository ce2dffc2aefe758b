//! Requests that servers did not answer, with all that any node knows of them.
//!
//! Invariant: what one node does not know is taken from another one that does.

use super::Seen;
use super::words::size;
use crate::status::{EndedStatus, GroupStatus, RequestStatus, Status, StuckStatus};
use std::collections::BTreeMap;

/// A node tells of so many requests that have ended.
const ENDED_TOLD: usize = 16;

/// The same group as each node that answers sees it.
pub(super) fn groups<'a>(
    seen: &'a [Seen<'a>],
    name: &'a str,
) -> impl Iterator<Item = (&'a Status, &'a GroupStatus)> {
    seen.iter().filter_map(Seen::status).flat_map(move |status| {
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

/// Requests that ended without a reply, by number.
#[must_use]
pub fn ended(seen: &[Seen], name: &str) -> Vec<EndedStatus> {
    let mut all: BTreeMap<u64, EndedStatus> = BTreeMap::new();
    for one in groups(seen, name).flat_map(|(_, group)| &group.ended) {
        let known = all.entry(one.request.number).or_insert_with(|| one.clone());
        add_knowledge(&mut known.request, &one.request);
    }
    all.into_values().collect()
}

/// They cost nobody but their callers anything, so they are told once and are no finding.
#[must_use]
pub fn ended_note(seen: &[Seen], name: &str) -> Option<String> {
    let ended = ended(seen, name);
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
pub(super) fn about(request: &RequestStatus) -> String {
    let RequestStatus { number, operation, key, bytes, .. } = request;
    if request.gateway.is_empty() {
        return format!("request {number}");
    }
    format!("request {number} ({operation} on {key}, {})", size(*bytes))
}

pub(super) fn whose(request: &RequestStatus) -> String {
    match (&request.client, request.gateway.as_str()) {
        (Some(client), gateway) => format!(" from {client} at {gateway}"),
        (None, "") => String::new(),
        (None, gateway) => format!(" from a client of {gateway}"),
    }
}

/// What servers are at for too long, by number, and on which nodes.
pub(super) fn stuck(seen: &[Seen], name: &str) -> Vec<(StuckStatus, Vec<String>)> {
    let mut stuck: BTreeMap<u64, (StuckStatus, Vec<String>)> = BTreeMap::new();
    for (status, group) in groups(seen, name) {
        for one in &group.stuck {
            let (known, nodes) =
                stuck.entry(one.request.number).or_insert_with(|| (one.clone(), Vec::new()));
            nodes.push(status.node.clone());
            known.since_ms = known.since_ms.max(one.since_ms);
            add_knowledge(&mut known.request, &one.request);
        }
    }
    // The gateway's node may have a server that is not at it.
    for one in groups(seen, name).flat_map(|(_, group)| &group.waiting) {
        if let Some((known, _)) = stuck.get_mut(&one.number) {
            add_knowledge(&mut known.request, one);
        }
    }
    stuck.into_values().collect()
}
