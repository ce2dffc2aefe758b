//! The service is linearizable (Herlihy and Wing 1990): every reply can be explained by executing
//! each call at once, at some moment between its beginning and its end.
//!
//! Seen from outside only. The log is taken apart into objects, each the last reference of its
//! kind that was appended: `append` and `note` write it, `last` reads it. No value is written
//! twice, so an object need not be searched for an order that explains its calls (Wing and Gong
//! 1993), which takes time without bound: it is a question of intervals (Gibbons and Korach 1997).
//! The search is what the tests compare with.

use super::GroupFacts;
use crate::ledger::{Call, Outcome};
use crate::servant::{OBJECTS, Reference, Wish};
use crate::world::World;
use quorba_base::Instant;
use quorba_engine::replica::ReadConsistency;
use std::collections::{BTreeMap, BTreeSet};

/// What a call did to its object; values are references, 0 before the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Write(u64),
    Read(u64),
}

/// One call on one object.
#[derive(Clone, Copy, Debug)]
struct Op {
    begins: Instant,
    ends: Instant,
    act: Act,
}

/// Judges every object of a group.
pub(super) fn check(world: &World, group: usize) -> Option<String> {
    let facts = &world.checks.groups[group];
    if facts.lost_at.is_some() || facts.dead {
        // What an object was after a loss that is excused, nobody can say.
        return None;
    }
    (0..OBJECTS).find_map(|object| {
        let conflict = explain(&ops_of(world, facts, group, object)).err()?;
        Some(format!("g{group} object {object}: {conflict}"))
    })
}

/// The calls on one object, by their beginning.
fn ops_of(world: &World, facts: &GroupFacts, group: usize, object: u64) -> Vec<Op> {
    // Such reads are judged by themselves.
    let reads_less = world.plan.groups[group].reads == Some(ReadConsistency::Sequential);
    let calls = world.ledger.calls.iter();
    let calls = calls.filter(|(r, call)| call.group == group && r.object() == object);
    let calls: Vec<(&Reference, &Call)> = calls.filter(|(_, call)| facts.counts(call)).collect();
    let read: BTreeSet<u64> = calls
        .iter()
        .filter_map(|(_, call)| match call.outcome {
            Outcome::Read { value, .. } => Some(value),
            _ => None,
        })
        .collect();
    let mut ops: Vec<Op> = calls
        .into_iter()
        .filter_map(|(reference, call)| {
            let (begins, value) = (call.invoked, reference.0);
            match (call.wish, call.outcome) {
                (Wish::Last, Outcome::Read { .. }) if reads_less => None,
                (Wish::Last, Outcome::Read { value, at }) => {
                    Some(Op { begins, ends: at, act: Act::Read(value) })
                }
                (Wish::Append, Outcome::Acknowledged { at, .. }) => {
                    Some(Op { begins, ends: at, act: Act::Write(value) })
                }
                // Nobody knows whether it was executed. If nobody has read it, it may as well
                // have been behind all that is looked at.
                (Wish::Append | Wish::Note, Outcome::Unknown | Outcome::Open)
                    if call.sent > 0 && read.contains(&value) =>
                {
                    Some(Op { begins, ends: Instant::FAR_FUTURE, act: Act::Write(value) })
                }
                _ => None,
            }
        })
        .collect();
    ops.sort_by_key(|op| op.begins);
    ops
}

/// The calls that write and read one value.
struct Cluster {
    written: Option<(Instant, Instant)>,
    first_end: Instant,
    last_begin: Instant,
}

/// Says which calls on one object no order can explain.
///
/// If a call on a value ended before another on it began, the object had that value all the time
/// in between; two values cannot be there at once. The calls on another value are all open at one
/// moment, at least, and can be executed there, unless all such moments are taken.
fn explain(ops: &[Op]) -> Result<(), String> {
    let mut clusters: BTreeMap<u64, Cluster> = BTreeMap::new();
    let beginning = Op { begins: Instant::ZERO, ends: Instant::ZERO, act: Act::Write(0) };
    for op in [&beginning].into_iter().chain(ops) {
        let (Act::Write(value) | Act::Read(value)) = op.act;
        let empty =
            Cluster { written: None, first_end: Instant::FAR_FUTURE, last_begin: Instant::ZERO };
        let cluster = clusters.entry(value).or_insert(empty);
        cluster.first_end = cluster.first_end.min(op.ends);
        cluster.last_begin = cluster.last_begin.max(op.begins);
        if matches!(op.act, Act::Write(_)) {
            assert!(cluster.written.is_none(), "no value is written twice");
            cluster.written = Some((op.begins, op.ends));
        }
    }
    let mut taken: Vec<(Instant, Instant, u64)> = Vec::new();
    for (value, cluster) in &clusters {
        let Some((begins, _)) = cluster.written else {
            return Err(format!("{value:x} was read, and nobody wrote it"));
        };
        if cluster.first_end < begins {
            return Err(format!("{value:x} was read before it was written"));
        }
        if cluster.first_end < cluster.last_begin {
            taken.push((cluster.first_end, cluster.last_begin, *value));
        }
    }
    taken.sort_unstable();
    for pair in taken.windows(2) {
        if pair[1].0 < pair[0].1 {
            let (one, other) = (pair[0].2, pair[1].2);
            return Err(format!("{one:x} and {other:x} were there at the same time"));
        }
    }
    for (value, Cluster { first_end, last_begin, .. }) in &clusters {
        let before = taken.partition_point(|(from, _, _)| from < last_begin);
        let around = before.checked_sub(1).map(|index| taken[index]);
        if let Some((_, until, other)) = around.filter(|_| last_begin <= first_end)
            && *first_end < until
        {
            return Err(format!("{value:x} came and went while {other:x} was there"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn op(begins: u64, ends: u64, act: Act) -> Op {
        Op { begins: Instant::from_nanos(begins), ends: Instant::from_nanos(ends), act }
    }

    /// Tries every order (Wing and Gong 1993): `left` are not executed yet.
    fn some_order_explains(left: &[Op], value: u64) -> bool {
        left.is_empty()
            || (0..left.len()).any(|index| {
                let mut rest = left.to_vec();
                let next = rest.remove(index);
                let after = match next.act {
                    Act::Write(written) => Some(written),
                    Act::Read(read) => (read == value).then_some(value),
                };
                let is_first = rest.iter().all(|other| other.ends >= next.begins);
                is_first && after.is_some_and(|after| some_order_explains(&rest, after))
            })
    }

    #[test]
    fn it_agrees_with_a_search_through_all_orders() {
        let mut rng = Rng::new(1);
        let mut explained = 0;
        for _ in 0..20_000 {
            let writes = rng.between(1, 4);
            let acts = (1..=writes).map(Act::Write);
            let mut acts: Vec<Act> = acts.collect();
            acts.extend((0..3).map(|_| Act::Read(rng.below(writes + 1))));
            let ops: Vec<Op> = acts
                .into_iter()
                .map(|act| {
                    let begins = rng.between(1, 12);
                    op(begins, begins + rng.below(8), act)
                })
                .collect();
            let is_explained = some_order_explains(&ops, 0);
            assert_eq!(explain(&ops).is_ok(), is_explained, "{ops:?}: {:?}", explain(&ops));
            explained += usize::from(is_explained);
        }
        assert!((2_000..18_000).contains(&explained), "{explained} can be explained");
    }

    #[test]
    fn calls_at_the_same_time_may_be_in_any_order() {
        let ops = [
            op(0, 10, Act::Write(1)),
            op(1, 9, Act::Write(2)),
            op(2, 3, Act::Read(2)),
            op(11, 12, Act::Read(1)),
        ];
        assert_eq!(explain(&ops), Ok(()));
    }

    #[test]
    fn what_no_order_explains_is_said() {
        let stale = [op(0, 1, Act::Write(1)), op(2, 3, Act::Write(2)), op(4, 5, Act::Read(1))];
        let early = [op(0, 1, Act::Read(1)), op(2, 3, Act::Write(1))];
        let disagreed = [
            op(0, 100, Act::Write(1)),
            op(0, 100, Act::Write(2)),
            op(10, 20, Act::Read(1)),
            op(30, 40, Act::Read(2)),
            op(50, 60, Act::Read(1)),
        ];
        let said = |ops: &[Op]| explain(ops).expect_err("no order explains it");
        assert_eq!(said(&stale), "2 came and went while 1 was there");
        assert_eq!(said(&early), "1 was read before it was written");
        assert_eq!(said(&disagreed), "2 came and went while 1 was there");
        assert_eq!(said(&[op(0, 1, Act::Read(7))]), "7 was read, and nobody wrote it");
    }
}
