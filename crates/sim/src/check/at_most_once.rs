//! Promise 2, for calls that failed: what was refused (COMPLETED_NO) was not executed, and nothing
//! is in a history that nobody asked for.

use super::Serving;
use crate::ledger::Outcome;
use crate::servant::Wish;
use crate::world::World;

pub(super) fn check(
    world: &World,
    group: usize,
    member: &Serving<'_>,
) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for reference in member.log.references().iter().filter(|r| !r.is_heard()) {
        let (node, name) = (member.node, reference.0);
        let text = match world.ledger.calls.get(reference) {
            None => format!("{name:x} is in the history of n{node}, but nobody sent it"),
            Some(call) if call.group != group => {
                format!("{name:x} is in the history of g{group}, but was for g{}", call.group)
            }
            // A server is refused its call in the order, and that was lost with a loss. Where the
            // request in which it is made was executed twice, one of the two was refused it.
            Some(call)
                if call.outcome == Outcome::Refused
                    && (!call.is_servers() || world.checks.groups[group].counts(call))
                    && world.executions_max(*reference) == 1 =>
            {
                format!("{name:x} was refused with COMPLETED_NO, but n{node} executed it")
            }
            Some(call) if matches!(call.wish, Wish::Peek | Wish::Last) || call.sent == 0 => {
                format!("{name:x} writes nothing, but is in the history of n{node}")
            }
            Some(_) => continue,
        };
        found.push(("at most once", text));
    }
    found.truncate(3);
    found
}
