//! Moser94, delivery of configuration changes: a configuration has the same members for all who
//! install it, changes follow each other, and those who are said to move together do.

use super::super::life::{History, Life};
use quorba_base::{NodeId, NodeSet};
use quorba_engine::order::{RingId, View};
use std::collections::BTreeMap;

type Membership<'a> = (NodeSet, &'a [(NodeId, u64)]);

pub(super) fn check(history: &History<'_>) -> Result<(), String> {
    let mut rings: BTreeMap<RingId, Membership<'_>> = BTreeMap::new();
    for life in history.lives {
        let mut before: Option<&View> = None;
        for view in life.regular_views() {
            let what = (view.members, view.incarnations.as_slice());
            let first = *rings.entry(view.ring).or_insert(what);
            if first != what {
                return Err(format!("ring {} is of {first:?} and of {what:?}", view.ring));
            }
            follows(life, before, view)?;
            move_together(history, life, view)?;
            before = Some(view);
        }
    }
    for stay in &history.stays {
        let (Some(half), Some(next)) = (stay.half, stay.next) else { continue };
        let same = half.previous == Some(stay.ring)
            && half.members == next.transitional
            && half.ring == next.ring;
        if !same {
            let who = history.name(stay.life);
            return Err(format!("{who}: the halves of the change to {} differ", next.ring));
        }
    }
    Ok(())
}

/// Whether `view` may come after `before` in one life.
fn follows(life: &Life, before: Option<&View>, view: &View) -> Result<(), String> {
    let Life { node, incarnation, .. } = life;
    let ring = view.ring;
    if !view.incarnations.contains(&(*node, *incarnation)) {
        return Err(format!("{node}/{incarnation} installs {ring}, in which it is not"));
    }
    if view.previous != before.map(|before| before.ring) {
        return Err(format!("{node}: {ring} does not follow {:?}", before.map(|b| b.ring)));
    }
    let Some(before) = before else { return Ok(()) };
    if before.ring.seq >= ring.seq {
        return Err(format!("{node}: {ring} comes after {}", before.ring));
    }
    let both = before.members.intersection(view.members);
    if !view.transitional.contains(*node) || !view.transitional.is_subset(both) {
        return Err(format!("{node}: {:?} move from {} to {ring}", view.transitional, before.ring));
    }
    Ok(())
}

/// Whoever is said to come along says the same, if it gets there.
fn move_together(history: &History<'_>, life: &Life, view: &View) -> Result<(), String> {
    for (node, incarnation) in &view.incarnations {
        let other = history.life_of(*node, *incarnation);
        let Some(other) = other.filter(|_| view.transitional.contains(*node)) else { continue };
        let there = other.regular_views().find(|v| v.ring == view.ring);
        let Some(there) = there else { continue };
        if (there.previous, there.transitional) != (view.previous, view.transitional) {
            return Err(format!(
                "{} comes to {} from {:?} with {:?}, but {node} from {:?} with {:?}",
                life.node,
                view.ring,
                view.previous,
                view.transitional,
                there.previous,
                there.transitional,
            ));
        }
    }
    Ok(())
}
