//! Promise 1: what was acknowledged is in the history of every member that serves.

use super::{Serving, acknowledged_calls};
use crate::servant::Wish;
use crate::world::World;
use std::collections::BTreeSet;

pub(super) fn check(
    world: &World,
    group: usize,
    member: &Serving<'_>,
) -> Vec<(&'static str, String)> {
    let kept: BTreeSet<_> = member.log.references().iter().collect();
    acknowledged_calls(world, group)
        .filter(|(reference, call, _)| call.wish == Wish::Append && !kept.contains(reference))
        .take(3)
        .map(|(reference, call, mark)| {
            let text = format!(
                "acknowledged and lost: {:x} of c{}, which was told position {}; n{} has {} \
                 references",
                reference.0,
                call.client,
                mark.length,
                member.node,
                member.log.len()
            );
            ("acknowledged", text)
        })
        .collect()
}
