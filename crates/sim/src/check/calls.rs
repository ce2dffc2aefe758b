//! What replicated servers were told of their calls is true, once, and the same for all.
//!
//! What it is not: that replicas of a group heard the same, which their equal logs show; nor that a
//! call was executed once, which `exactly_once` shows. Invariant: looks at groups only that have
//! their state.

use super::Serving;
use crate::calls::Heard;
use crate::servant::Reference;
use crate::world::World;
use std::collections::BTreeSet;

/// `serving`: by group, the members that are in.
pub(super) fn check(world: &World, serving: &[Vec<Serving<'_>>]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut made: BTreeSet<Reference> = BTreeSet::new();
    for (group, members) in serving.iter().enumerate() {
        let Some(member) = members.first() else { continue };
        let heard = member.log.references().iter().filter_map(|r| world.hearsay.heard.get(r));
        for (inner, what) in heard {
            made.insert(*inner);
            let target = world.ledger.calls[inner].group;
            let (Some(callee), Heard::Done(mark)) = (serving[target].first(), what) else {
                continue;
            };
            if mark.length > callee.log.len() || callee.log.mark(mark.length) != *mark {
                let text = format!(
                    "g{group} was told that {:x} is at {} of g{target}, and it is not",
                    inner.0, mark.length
                );
                found.push(("calls", text));
            }
            let at = mark.length.checked_sub(1).map(|at| at as usize);
            if at.and_then(|at| callee.log.references().get(at)) != Some(inner) {
                let text = format!("g{group} was told of another call than {:x}", inner.0);
                found.push(("calls", text));
            }
        }
        if heard_void(world, member) {
            found.push(("calls", format!("g{group} goes on from a call that does not count")));
        }
    }
    for (group, members) in serving.iter().enumerate() {
        let Some(member) = members.first() else { continue };
        let inner = member.log.references().iter().filter(|r| r.is_inner());
        for inner in inner.filter(|inner| !made.contains(inner)) {
            let text = format!("{:x} is in g{group}, and no group has asked for it", inner.0);
            found.push(("calls", text));
        }
    }
    found.truncate(3);
    found
}

fn heard_void(world: &World, member: &Serving<'_>) -> bool {
    let heard = member.log.references().iter().filter_map(|r| world.hearsay.heard.get(r));
    heard.into_iter().any(|(_, what)| *what == Heard::Void)
}
