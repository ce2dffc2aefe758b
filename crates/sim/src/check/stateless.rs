//! A stateless group: who was told that its call was executed is right; where and how often is the
//! group's business.

use super::acknowledged_calls;
use crate::servant::Wish;
use crate::world::World;

pub(super) fn check(world: &World, group: usize) -> Vec<(&'static str, String)> {
    let executed = &world.checks.groups[group].executed;
    acknowledged_calls(world, group)
        .filter(|(reference, call, _)| call.wish == Wish::Append && !executed.contains(reference))
        .take(3)
        .map(|(reference, call, _)| {
            let text = format!("{:x} of c{} was executed by nobody", reference.0, call.client);
            ("at least once", text)
        })
        .collect()
}
