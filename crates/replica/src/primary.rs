//! Which component may go on after a view change, and who in it is up to date: promise 4.
//!
//! The argument for the static rule (that for the dynamic one is in `dynamic`). A request is
//! acknowledged only when a majority of the domain's nodes holds it and everything before it
//! (promise 1). Requests that count in a component are ordered behind the messages that made it
//! one; so who holds one of them has made that step, too. Let `P` be the last primary component
//! that any node present remembers. Of the nodes of `P`, those that are away, or that came back
//! without their memory, may have been holders; so of the `k0` nodes of `P` that are present *with*
//! their memory, at least `k = k0 + majority - |P|` hold every acknowledged request. If `k >= 1`,
//! the k-th furthest of them has all of it, and so has every node that is as far; or, if fewer than
//! `k` have made the step to `P`, nothing was acknowledged in it, and each that has will do. Among
//! the histories that are far enough, the one that most nodes share is taken, so that the fewest
//! nodes must be brought up to date.
//!
//! A later component than `P` may have been, of nodes that are away and of nodes that came back
//! without their memory. It acknowledged something only if a majority took part; none of those who
//! remember a component did, or they would remember that one. So there was none if those who
//! remember are more than a minority. Else the disks tell: every node writes down each component
//! that it takes part in before it acknowledges anything in it, and two majorities share a node.
//! Such a component is harmless if `k >= 1` for it: those holders would remember it. Then what went
//! before it counts: if it was decided where nobody remembered more than is remembered here, what
//! is in question was judged there by the same rule.
//!
//! "Later" is told by the component's number. Every node begins above the highest number that its
//! disk or its log knows of a component, and a ring's number is above those of all its nodes; so a
//! component that goes on from another, or shares a node with it that knows it, has a higher one.
//!
//! With a tie-breaker a quorum may be half of the domain. Two quorums still share a node; and
//! `majority` is then, in a component of half of the domain, all of it ([`Quorum::holders_min`]).
//!
//! Without any memory in the view: if a majority never saw a primary component, there was none (or
//! its disk would know). If every node of the domain is present, no more memory can come, and the
//! best there is goes on.
//!
//! What a node's log counts for, where there are logs, and for which groups, is in `disks`.
//!
//! Invariant: [`decide`] is a pure function of what was delivered, so that all nodes of a view come
//! to the same decision.

pub(crate) mod disks;
pub(crate) mod dynamic;
mod quorum;

pub use quorum::Quorum;

use crate::messages::hello::{Hello, Lineage, Record};
use crate::words::ids::RingId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet, canary};

/// The outcome for a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The view is a primary component.
    Primary {
        /// Nodes that are up to date; the others are told the group tables.
        current: NodeSet,
        /// How the decision was reached.
        basis: Basis,
    },
    /// The view must not serve requests.
    NotPrimary(Blocked),
}

/// Why a view may be primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// It has a majority, and everything acknowledged in the component before it.
    Continues,
    /// A majority of the domain's nodes never were in a primary component.
    FirstStart,
    /// Every node of the domain is here, and none remembers anything.
    ColdStart,
    /// Every node of the domain is here, but too many lost their memory at the same time:
    /// acknowledged requests may be lost.
    MemoryLost,
}

/// Why a view may not be primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocked {
    /// No majority of the domain's nodes.
    NoMajority,
    /// No majority of the last primary component, or of one that was about to be formed.
    NoQuorum,
    /// A majority, but too many of its nodes were restarted, and a node that is away may hold
    /// acknowledged requests.
    MemoryAway,
}

impl Blocked {
    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NoMajority => "no majority of the domain's nodes is connected",
            Self::NoQuorum => {
                "no majority of the last primary component, or of one that was being formed, is \
                 connected"
            }
            Self::MemoryAway => {
                "too many nodes restarted at once; a node that is away may hold acknowledged \
                 requests"
            }
        }
    }
}

/// A node's word together with the boot that spoke it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// The boot of the node that said hello.
    pub incarnation: u64,
    /// What it said.
    pub hello: Hello,
}

/// How far the members of `component` are that have lived on since; the furthest first.
fn remembering(component: &Lineage, statements: &BTreeMap<NodeId, Statement>) -> Vec<Progress> {
    let mut here: Vec<Progress> = component
        .members
        .iter()
        .filter_map(|(node, incarnation)| {
            let is_same = |s: &&Statement| {
                (s.hello.since..=s.incarnation).contains(incarnation) || canary!(BelievesTheReborn)
            };
            statements.get(node).filter(is_same).map(Progress::of)
        })
        .collect();
    here.sort_unstable_by(|a, b| b.cmp(a));
    here
}

/// The last component that somebody has in memory.
pub(crate) fn last_remembered(statements: &BTreeMap<NodeId, Statement>) -> Option<&Lineage> {
    let remembered = statements.values().filter_map(|s| s.hello.lineage.as_ref());
    if canary!(OldestComponentDecides) {
        return remembered.min_by_key(|lineage| lineage.view);
    }
    remembered.max_by_key(|lineage| lineage.view)
}

/// Decides for a view whose nodes have all spoken. `nodes` is the whole domain.
#[must_use]
pub fn decide(
    nodes: NodeSet,
    quorum: Quorum,
    statements: &BTreeMap<NodeId, Statement>,
) -> Decision {
    if quorum.is_dynamic() {
        return dynamic::decide(nodes, quorum, statements);
    }
    let view: NodeSet = statements.keys().copied().collect();
    let half = canary!(HalfIsMajority) && 2 * view.len() == nodes.len();
    if !quorum.of(nodes, view) && !half {
        return Decision::NotPrimary(Blocked::NoMajority);
    }
    let all_here = view == nodes;
    let Some(last) = last_remembered(statements) else {
        let is_virgin = |(_, s): &(_, &Statement)| s.hello.record.latest().is_none();
        let virgin = statements.iter().filter(is_virgin).map(|(node, _)| *node).collect();
        return if quorum.of(nodes, virgin) || half {
            Decision::Primary { current: view, basis: Basis::FirstStart }
        } else if all_here {
            Decision::Primary { current: view, basis: Basis::ColdStart }
        } else {
            Decision::NotPrimary(Blocked::MemoryAway)
        };
    };
    let remembering = remembering(last, statements);
    let holders_min = if is_followed(nodes, quorum, statements, last) {
        0
    } else {
        holders_here(nodes, quorum, statements, last)
    };
    let (threshold, basis) = match mark(last.view, &remembering, holders_min) {
        Some(progress) => (progress, Basis::Continues),
        None if all_here => {
            let best = statements.values().map(Progress::of).max();
            (best.expect("a view has a node"), Basis::MemoryLost)
        }
        None => return Decision::NotPrimary(Blocked::MemoryAway),
    };
    Decision::Primary { current: most_shared(statements, threshold), basis }
}

/// What everyone has who is as far, if `holders_min` of `remembering` hold what `component`
/// acknowledged. They have all formed it; if fewer have, nothing was acknowledged in it. Who has
/// not may lack what was acknowledged before it.
fn mark(component: RingId, remembering: &[Progress], holders_min: usize) -> Option<Progress> {
    let formed = remembering.iter().filter(|progress| progress.lineage == Some(component)).count();
    let index = holders_min.min(formed).checked_sub(1)?;
    remembering.get(index).copied()
}

/// How many of those nodes of `component` who are here, and have lived on since, hold everything
/// that it acknowledged: at least so many.
fn holders_here(
    nodes: NodeSet,
    quorum: Quorum,
    statements: &BTreeMap<NodeId, Statement>,
    component: &Lineage,
) -> usize {
    let size = component.members.len();
    let here = remembering(component, statements).len();
    (here + quorum.holders_min(nodes.len(), size)).saturating_sub(size)
}

/// Whether a component after `last` may have acknowledged something that nobody here remembers.
fn is_followed(
    nodes: NodeSet,
    quorum: Quorum,
    statements: &BTreeMap<NodeId, Statement>,
    last: &Lineage,
) -> bool {
    let remembering = statements.iter().filter(|(_, s)| s.hello.lineage.is_some());
    let others = nodes.difference(remembering.map(|(node, _)| *node).collect());
    let may_follow = |record: &Record| {
        record.formed.as_ref().is_some_and(|formed| {
            formed.view > last.view
                && (record.base > Some(last.view)
                    || holders_here(nodes, quorum, statements, formed) == 0)
        })
    };
    quorum.of(nodes, others)
        && statements.values().any(|s| may_follow(&s.hello.record))
        && !canary!(ForgetsLaterComponents)
}

/// How far a node's history reaches: later components first, then messages applied in them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Progress {
    lineage: Option<RingId>,
    prefix: u64,
}

impl Progress {
    fn of(statement: &Statement) -> Self {
        let lineage = statement.hello.lineage.as_ref().map(|lineage| lineage.view);
        Self { lineage, prefix: statement.hello.prefix }
    }
}

/// The largest set of nodes with one history that reaches at least to `threshold`; of equally
/// large ones the furthest, then the one with the lowest node.
fn most_shared(statements: &BTreeMap<NodeId, Statement>, threshold: Progress) -> NodeSet {
    let mut histories: BTreeMap<(Progress, u64), NodeSet> = BTreeMap::new();
    for (node, statement) in statements {
        let progress = Progress::of(statement);
        if progress >= threshold && progress.lineage.is_some() {
            histories.entry((progress, statement.hello.branch)).or_default().insert(*node);
        }
    }
    histories
        .into_iter()
        .max_by_key(|((progress, _), set)| (set.len(), *progress, core::cmp::Reverse(set.lowest())))
        .map(|(_, set)| set)
        .expect("the node that set the threshold reaches it")
}

#[cfg(test)]
mod tests;
