//! The service is linearizable (Herlihy and Wing 1990): every reply can be explained by executing
//! each call at once, at some moment between its beginning and its end.
//!
//! Seen from outside only. The log is taken apart into objects, each the last reference of its
//! kind that was appended: `append` and `note` write it, `last` reads it. An object's calls are
//! searched for an order that explains them (Wing and Gong 1993, with Lowe's memory of dead ends,
//! 2017). What it is not: sure at any price. The search is bounded, and says when it gave up.

use super::GroupFacts;
use crate::ledger::{Call, Outcome};
use crate::servant::{OBJECTS, Reference, Wish};
use crate::world::World;
use quorba_base::Instant;
use std::collections::BTreeSet;

/// Configurations that are looked at for one object.
const STEPS_MAX: usize = 200_000;

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

/// What the search found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Explained,
    /// No order explains all calls; at best so many.
    Impossible(usize),
    /// Too many possibilities.
    GaveUp,
}

/// Judges every object of a group. Gives what is wrong, and for how many objects nobody knows.
pub(super) fn check(world: &World, group: usize) -> (Option<String>, u64) {
    let facts = &world.checks.groups[group];
    if facts.lost_at.is_some() || facts.dead {
        // What an object was after a loss that is excused, nobody can say.
        return (None, 0);
    }
    let mut unknown = 0;
    for object in 0..OBJECTS {
        let ops = ops_of(world, facts, group, object);
        match explain(&ops) {
            Verdict::Explained => {}
            Verdict::GaveUp => unknown += 1,
            Verdict::Impossible(best) => {
                let all = ops.len();
                let text = format!("g{group} object {object}: of {all} calls {best} are explained");
                return (Some(text), unknown);
            }
        }
    }
    (None, unknown)
}

/// The calls on one object, by their beginning.
fn ops_of(world: &World, facts: &GroupFacts, group: usize, object: u64) -> Vec<Op> {
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

/// A point of the search: everything before `low` is executed, and `more`; the object's value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    low: usize,
    more: BTreeSet<usize>,
    value: u64,
}

impl Point {
    fn execute(&mut self, op: usize, value: u64) {
        self.more.insert(op);
        self.value = value;
        while self.more.remove(&self.low) {
            self.low += 1;
        }
    }

    fn count(&self) -> usize {
        self.low + self.more.len()
    }

    /// What may be executed next: calls that began before any other open one ended.
    fn open(&self, ops: &[Op]) -> Vec<usize> {
        let mut ends = Instant::FAR_FUTURE;
        let mut open = Vec::new();
        for (index, op) in ops.iter().enumerate().skip(self.low) {
            if op.begins > ends {
                break;
            }
            if !self.more.contains(&index) {
                ends = ends.min(op.ends);
                open.push(index);
            }
        }
        open
    }
}

/// Searches for an order that explains all calls on one object.
fn explain(ops: &[Op]) -> Verdict {
    let mut best = 0;
    let mut seen = BTreeSet::new();
    let mut points = vec![Point { low: 0, more: BTreeSet::new(), value: 0 }];
    while let Some(mut point) = points.pop() {
        if seen.len() >= STEPS_MAX {
            return Verdict::GaveUp;
        }
        let mut open = point.open(ops);
        // A read that fits now changes nothing for the others: it is always good to take it.
        while let Some(index) =
            open.iter().copied().find(|index| ops[*index].act == Act::Read(point.value))
        {
            let value = point.value;
            point.execute(index, value);
            open = point.open(ops);
        }
        best = best.max(point.count());
        if point.count() == ops.len() {
            return Verdict::Explained;
        }
        if !seen.insert(point.clone()) {
            continue;
        }
        for index in open.into_iter().rev() {
            if let Act::Write(value) = ops[index].act {
                let mut next = point.clone();
                next.execute(index, value);
                points.push(next);
            }
        }
    }
    Verdict::Impossible(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(begins: u64, ends: u64, act: Act) -> Op {
        Op { begins: Instant::from_nanos(begins), ends: Instant::from_nanos(ends), act }
    }

    #[test]
    fn calls_at_the_same_time_may_be_in_any_order() {
        let ops = [
            op(0, 10, Act::Write(1)),
            op(1, 9, Act::Write(2)),
            op(2, 3, Act::Read(2)),
            op(11, 12, Act::Read(1)),
        ];
        assert_eq!(explain(&ops), Verdict::Explained);
    }

    #[test]
    fn a_read_of_what_was_overwritten_before_it_began_is_found() {
        let ops = [op(0, 1, Act::Write(1)), op(2, 3, Act::Write(2)), op(4, 5, Act::Read(1))];
        assert_eq!(explain(&ops), Verdict::Impossible(2));
    }

    #[test]
    fn a_read_of_what_nobody_wrote_yet_is_found() {
        let ops = [op(0, 1, Act::Read(1)), op(2, 3, Act::Write(1))];
        assert_eq!(explain(&ops), Verdict::Impossible(0));
    }

    #[test]
    fn two_readers_that_disagree_on_the_order_are_found() {
        let ops = [
            op(0, 100, Act::Write(1)),
            op(0, 100, Act::Write(2)),
            op(10, 20, Act::Read(1)),
            op(30, 40, Act::Read(2)),
            op(50, 60, Act::Read(1)),
        ];
        assert!(matches!(explain(&ops), Verdict::Impossible(_)));
    }
}
