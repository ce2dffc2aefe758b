//! References that servers return, in words.
//!
//! What it is not: a search for them; [`crate::report`] has that. Invariant: what harms the states
//! of members is a fact, and the rest a note.

use super::requests::groups;
use super::{Fact, Seen};
use crate::status::{GroupStatus, ReferenceStatus};

/// What helps.
pub(crate) const NEXT: &str = "let servers publish {gateways} as their address, and give objects \
                               the same keys at all replicas: docs/determinism.md, \"References \
                               that servers return\"";

/// What is the case with a reference.
pub(crate) fn words(one: &ReferenceStatus) -> String {
    let ReferenceStatus { operation, address, .. } = one;
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
        format!("group {}: {what}; next: {NEXT}", group.name)
    };
    found.iter().map(note).collect()
}
