//! Promise 1: what was acknowledged is in the history of every member that serves.

use super::{Serving, acknowledged_calls};
use crate::names::index_of;
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

impl World {
    /// Groups that are dead although a server lives that has everything that was acknowledged.
    pub(crate) fn dead_in_vain(&self) -> usize {
        let has_all = |group: usize| {
            let is_of = |server: &usize| {
                let server = &self.servers[*server];
                server.alive && index_of(server.group) == group && server.log.len() > 0
            };
            (0..self.servers.len()).filter(is_of).any(|server| self.has_all(group, server))
        };
        let dead = |group: &usize| self.checks.groups[*group].dead;
        (0..self.plan.groups.len()).filter(dead).filter(|group| has_all(*group)).count()
    }

    /// Whether a server has everything that was acknowledged.
    pub(crate) fn has_all(&self, group: usize, server: usize) -> bool {
        let kept: BTreeSet<_> = self.servers[server].log.references().iter().collect();
        let mut wanted = acknowledged_calls(self, group)
            .filter(|(_, call, _)| call.wish == Wish::Append)
            .map(|(reference, ..)| reference);
        wanted.all(|reference| kept.contains(&reference))
    }
}
