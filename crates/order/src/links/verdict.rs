//! Who is left out because of poor links: a pure function of the measurements.
//!
//! A link is bad if either end misses much of what the other sends. Of the nodes with bad links the
//! one with most is left out; among equals one that itself says that it misses much, and of those
//! the highest; until no bad link is left. All of that only if a majority of the domain remains
//! whose links among each other are all known, and much better than those of each that is left out.
//!
//! Invariant: a node is left out because it has bad links to two others, or says itself that it
//! hears badly. So no node can put out another by what it alone says, or by being bad itself, and
//! of two ends of one bad link one goes at most.

use crate::wire::PROBE_WINDOW;
use quorba_base::{NodeId, NodeSet, canary};

/// A link is bad if so many of 32 probes are missed.
pub(super) const BAD: u8 = 8;
/// And good if fewer are.
pub(super) const GOOD: u8 = 3;
/// The links of whoever is left out must be worse by this factor than all those that remain.
const WORSE: u8 = 3;

/// A link of whoever comes back is good if fewer probes are missed than this; `worst_left` is the
/// most among those who are in.
pub(super) fn good_below(worst_left: u8) -> u8 {
    worst_left.saturating_mul(WORSE).clamp(GOOD, BAD)
}

/// The nodes of `all` to leave out; none, or `None` if nothing may be said. `missed(a, b)` is how
/// many of 32 probes of `b` node `a` has missed.
pub(super) fn verdict(
    all: NodeSet,
    majority: usize,
    missed: impl Fn(NodeId, NodeId) -> Option<u8>,
) -> Option<NodeSet> {
    let hears_badly = |node, other| missed(node, other).is_some_and(|missed| missed >= BAD);
    let mut left = all;
    loop {
        let others = |node| left.iter().filter(move |other| *other != node);
        let rank = |node: NodeId| {
            let admits = others(node).filter(|other| hears_badly(node, *other)).count();
            let bad = others(node)
                .filter(|other| hears_badly(node, *other) || hears_badly(*other, node))
                .count();
            let admits = if canary!(BlamesTheBlamed) { 0 } else { admits };
            (bad, admits, node)
        };
        let Some((bad, _, node)) = left.iter().map(rank).max() else { break };
        if bad == 0 {
            break;
        }
        left.remove(node);
    }
    let out = all.difference(left);
    let too_few = left.len() < majority && !canary!(LeavesOutMajority);
    if out.is_empty() || too_few || canary!(KeepsPoorLinks) {
        return None;
    }
    let mut worst_left = 0;
    for node in left {
        for other in left.iter().filter(|other| *other != node) {
            worst_left = worst_left.max(missed(node, other)?);
        }
    }
    // The least bad of the bad links of each.
    let mut least_out = PROBE_WINDOW;
    for node in out {
        for other in all.iter().filter(|other| *other != node) {
            let figure = missed(node, other).max(missed(other, node));
            least_out = figure
                .filter(|figure| *figure >= BAD)
                .map_or(least_out, |figure| least_out.min(figure));
        }
    }
    let is_much_worse = worst_left.saturating_mul(WORSE) <= least_out;
    (is_much_worse || canary!(ComparesNoLinks)).then_some(out)
}
