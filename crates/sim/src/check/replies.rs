//! A reply tells what the execution that it acknowledges did: its position in the history that is
//! kept, and that history.

use super::{Serving, acknowledged_calls};
use crate::servant::Wish;
use crate::world::World;

pub(super) fn check(
    world: &World,
    group: usize,
    member: &Serving<'_>,
) -> Vec<(&'static str, String)> {
    let log = member.log;
    acknowledged_calls(world, group)
        .filter(|(reference, ..)| !world.checks.endings.doubtful.contains(reference))
        .filter(|(reference, call, mark)| {
            let known = mark.length <= log.len() && log.mark(mark.length) == *mark;
            let place = mark.length.checked_sub(1).map(|last| last as usize);
            let own = || place.and_then(|p| log.references().get(p)) == Some(reference);
            !known || (call.wish == Wish::Append && !own())
        })
        .take(3)
        .map(|(reference, call, mark)| {
            let text = format!(
                "the reply to {:x} of c{} speaks of a history of {} references that n{} does \
                 not have",
                reference.0, call.client, mark.length, member.node
            );
            ("replies", text)
        })
        .collect()
}
