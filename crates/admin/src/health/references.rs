//! References that servers return, in words.
//!
//! What it is not: a search for them; `node::report` has that. Invariant: what harms the states
//! of members is a fact, and the rest a note.

use super::requests::groups;
use super::{Fact, Seen};
use crate::status::{GroupStatus, ReferenceKeysStatus, ReferenceKind, ReferenceStatus};
use std::collections::BTreeMap;

/// What helps.
pub const NEXT: &str = "let servers publish {gateways} as their address, and give objects \
                    the same keys at all replicas: docs/determinism.md, \"References \
                    that servers return\"";

/// What helps with a reference.
pub fn next(one: &ReferenceStatus) -> &'static str {
    match one.kind == ReferenceKind::NoGroup {
        true => {
            "give the group a `listen` of its own, where its servers' references lead, or give \
             clients what quorba ior make prints"
        }
        false => NEXT,
    }
}

/// Keys of references in the replies to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// What was asked for.
    pub operation: String,
    /// Which request.
    pub request: u64,
    /// By node: the first key.
    pub found: Vec<(String, String)>,
    /// For how long, in milliseconds.
    pub since_ms: u64,
}

impl Keys {
    pub(super) fn words(&self) -> String {
        let found: Vec<String> =
            self.found.iter().map(|(node, key)| format!("{node}: {key}")).collect();
        format!(
            "references in replies to `{}` have other object keys at each replica ({}, request \
             {}): they work at one of them only",
            self.operation,
            found.join("; "),
            self.request
        )
    }
}

/// The last request of each operation in whose replies the keys differ.
fn differing_keys(seen: &[Seen], group: &str) -> Vec<Keys> {
    let mut by_request: BTreeMap<(&str, u64), Vec<(&str, &ReferenceKeysStatus)>> = BTreeMap::new();
    for (status, here) in groups(seen, group) {
        for one in &here.reference_keys {
            let same = by_request.entry((&one.operation, one.request)).or_default();
            same.push((&status.node, one));
        }
    }
    let mut last: BTreeMap<&str, Keys> = BTreeMap::new();
    for ((operation, request), found) in by_request {
        let differ = found.iter().any(|(_, one)| one.digest != found[0].1.digest);
        if differ {
            let since_ms = found.iter().map(|(_, one)| one.since_ms).max().unwrap_or_default();
            let keys = found.iter().map(|(node, one)| ((*node).to_owned(), one.key.clone()));
            let found = keys.collect();
            let keys = Keys { operation: operation.to_owned(), request, found, since_ms };
            last.insert(operation, keys);
        }
    }
    last.into_values().collect()
}

/// What is the case with a reference.
pub fn words(one: &ReferenceStatus) -> String {
    let ReferenceStatus { operation, address, .. } = one;
    if one.kind == ReferenceKind::NoGroup {
        return format!(
            "replies to `{operation}` have a reference to {address}, the port that groups share, \
             with an object key that names no group there (QRB/NAME/KEY): who uses it is told \
             OBJECT_NOT_EXIST"
        );
    }
    if one.is_past_the_order() {
        return format!(
            "replies to `{operation}` have a reference to {address}, which is a server's own \
             address and no gateway: whoever uses it calls that server past the order, and \
             replicas may diverge"
        );
    }
    format!(
        "replies to `{operation}` have a reference to one gateway only, {address}: it is of no use \
         when that is away"
    )
}

/// Each operation once: what was seen first, how often at all nodes, and by which.
fn merged(
    seen: &[Seen],
    group: &str,
    is_meant: fn(&ReferenceStatus) -> bool,
) -> Vec<(ReferenceStatus, Vec<String>)> {
    let mut merged: Vec<(ReferenceStatus, Vec<String>)> = Vec::new();
    for (status, here) in groups(seen, group) {
        for one in here.references.iter().filter(|one| is_meant(one)) {
            let is_it = |(known, _): &&mut (ReferenceStatus, Vec<String>)| {
                (&known.operation, &known.kind) == (&one.operation, &one.kind)
            };
            match merged.iter_mut().find(is_it) {
                Some((known, nodes)) => {
                    known.times += one.times;
                    known.since_ms = known.since_ms.max(one.since_ms);
                    nodes.push(status.node.clone());
                }
                None => merged.push((one.clone(), vec![status.node.clone()])),
            }
        }
    }
    merged
}

/// Members of a stateless group have no state that could diverge.
fn can_diverge(group: &GroupStatus) -> bool {
    group.style != "stateless"
}

pub(super) fn facts(facts: &mut Vec<Fact>, seen: &[Seen], group: &GroupStatus) {
    if !can_diverge(group) {
        return;
    }
    let differing = differing_keys(seen, &group.name).into_iter();
    facts.extend(differing.map(|keys| Fact::KeysDiffer { group: group.name.clone(), keys }));
    let found = merged(seen, &group.name, ReferenceStatus::is_past_the_order);
    facts.extend(found.into_iter().map(|(reference, nodes)| Fact::PastTheOrder {
        group: group.name.clone(),
        nodes,
        reference,
    }));
}

/// References of a group that work until a node or a server is away.
#[must_use]
pub fn notes(seen: &[Seen], group: &GroupStatus) -> Vec<String> {
    let mut found = merged(seen, &group.name, |one| !one.is_past_the_order());
    if !can_diverge(group) {
        found.extend(merged(seen, &group.name, ReferenceStatus::is_past_the_order));
    }
    let note = |(one, _): &(ReferenceStatus, Vec<String>)| {
        let what = match one.is_past_the_order() {
            true => format!(
                "replies to `{}` have a reference to {}, which is a server's own address and no \
                 gateway: it is of no use when that server is away",
                one.operation, one.address
            ),
            false => words(one),
        };
        format!("group {}: {what}; next: {}", group.name, next(one))
    };
    found.iter().map(note).collect()
}
