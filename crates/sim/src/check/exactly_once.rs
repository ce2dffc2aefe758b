//! Promise 2: nothing is executed twice, however often it was repeated.

use super::Serving;
use crate::world::World;
use std::collections::BTreeMap;

pub(super) fn check(
    _world: &World,
    group: usize,
    member: &Serving<'_>,
) -> Vec<(&'static str, String)> {
    let mut seen = BTreeMap::new();
    let mut found = Vec::new();
    for (position, reference) in member.log.references().iter().enumerate() {
        if let Some(first) = seen.insert(reference, position) {
            let text = format!(
                "executed twice: {:x} at {} and {} on n{} (g{group}, server {})",
                reference.0,
                first + 1,
                position + 1,
                member.node,
                member.server
            );
            found.push(("exactly once", text));
        }
    }
    found.truncate(3);
    found
}
