//! What replicated servers were told of their calls is true, once, and the same for all.
//!
//! What it is not: that replicas of a group heard the same, which their equal logs show; nor that a
//! call was executed once, which `exactly_once` shows. Invariant: looks at groups only that have
//! their state.

use super::Serving;
use crate::calls::Heard;
use crate::outside::is_once;
use crate::servant::{Reference, Wish};
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
            if let Some((outsider, _)) = world.hearsay.outside.get(inner) {
                found.extend(check_outside(world, *outsider, *inner, *what));
                continue;
            }
            if world.checks.endings.doubtful.contains(inner) {
                continue;
            }
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
            if world.ledger.calls[inner].wish == Wish::Peek {
                continue;
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
        let inner = inner.filter(|inner| !made.contains(inner) && !may_be_given_up(world, **inner));
        for inner in inner {
            let text = format!("{:x} is in g{group}, and no group has asked for it", inner.0);
            found.push(("calls", text));
        }
    }
    for (inner, (outsider, caller)) in &world.hearsay.outside {
        let count = world.outsiders[*outsider].executed.get(inner).copied().unwrap_or(0);
        let is_too_often = count as usize > world.executions_max(*inner);
        if is_too_often && is_once(&world.plan.outside[*outsider]) {
            let text = format!("outsider {outsider} has executed {:x} {count} times", inner.0);
            found.push(("calls", text));
        }
        let is_lost = !made.contains(inner) && !may_be_given_up(world, *inner);
        if count > 0 && is_lost && !serving[*caller].is_empty() {
            let text = format!(
                "outsider {outsider} has executed {:x}, and g{caller} knows nothing of it",
                inner.0
            );
            found.push(("calls", text));
        }
    }
    found.truncate(3);
    found
}

/// Whether the request in which a call was made may have ended without a reply, and is not executed
/// again by those who know nothing of it.
fn may_be_given_up(world: &World, inner: Reference) -> bool {
    let mut call = inner;
    while let Some(outer) = world.hearsay.made_in.get(&call) {
        call = *outer;
        if world.checks.endings.may_end(call) {
            return true;
        }
    }
    false
}

/// What a group was told of a call to the outside is what was said there.
fn check_outside(
    world: &World,
    outsider: usize,
    inner: Reference,
    what: Heard,
) -> Option<(&'static str, String)> {
    let target = &world.outsiders[outsider];
    let is_true = match what {
        Heard::Done(mark) => target.told.contains(&(inner, mark.digest)),
        Heard::Refused => !target.executed.contains_key(&inner),
        Heard::Doubt | Heard::Void => true,
    };
    let text = || format!("outsider {outsider} did not answer {:x} with {what:?}", inner.0);
    (!is_true).then(|| ("calls", text()))
}

fn heard_void(world: &World, member: &Serving<'_>) -> bool {
    let heard = member.log.references().iter().filter_map(|r| world.hearsay.heard.get(r));
    heard.into_iter().any(|(of, what)| *what == Heard::Void && !may_be_given_up(world, *of))
}
