//! What disks count for, where nodes have logs.
//!
//! A node that comes back with an intact log has the memory of the boots since
//! [`crate::Hello::since`], up to what was on its disk. A durable group acknowledges only what a
//! majority has on disk besides; so the argument of [`super`] holds for it if "with its memory"
//! means "in memory or on disk": of the `k0` nodes of `P` that are present so, at least `k` have
//! all of it, and who has a later component neither in memory nor on disk is not of a majority that
//! has it on disk. For other groups a node that restarted has forgotten: it lacks what had not
//! reached its disk. So disks are heeded only where living memory does not decide and, without
//! them, none that is away could: the nodes present that forgot are a quorum, or all are present.
//! Where living memory decides, it has everything that was acknowledged, in durable groups, too.
//!
//! Where disks are heeded, groups that are not durable are decided about *apart*, as they would be
//! in a domain without logs: by living memory of the components in which they took part. If a node
//! that is away may have what they acknowledged, they wait, while durable groups go on; they take
//! no part in that component, and stand where they stood. In the next one the same is asked again:
//! a node that was cut off, and not in the component that disks formed, may be the one that has
//! everything. Then it is from there that they go on. So for these groups there are no components
//! but those that they took part in, and the argument of [`super`] is theirs. When every node is
//! present, no more memory can come; then disks are heeded for them, too, as the best there is: if
//! one has kept its memory, the furthest of all counts.
//!
//! What it is not: what becomes of the groups, which is `replica::memory_groups`. Invariant: pure,
//! like all decisions.

use super::{Basis, Blocked, Decision, Progress, Quorum, Statement, decide, most_shared};
use crate::messages::hello::Lineage;
use alloc::collections::BTreeMap;
use quorba_base::{NodeId, NodeSet, canary};

type Statements = BTreeMap<NodeId, Statement>;

/// What becomes of groups that are not durable in a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ForMemory {
    /// They go on as all others do.
    Same,
    /// So they do, since nobody has kept any memory, and all nodes are here: what they acknowledged
    /// may be lost.
    Best,
    /// They go on from these nodes.
    From(NodeSet, Basis),
    /// They wait: a node that is away may have what they acknowledged.
    Waits,
}

/// What a view is, for all groups.
pub(crate) struct Verdict {
    pub(crate) decision: Decision,
    pub(crate) memory: ForMemory,
    /// The statements that were heeded.
    pub(crate) statements: Statements,
}

impl Statement {
    /// Whether its memory is what a disk had of it, and no component of this boot.
    pub(crate) fn is_restored(&self, node: NodeId) -> bool {
        let is_here = |lineage: &Lineage| lineage.members.contains(&(node, self.incarnation));
        self.hello.since < self.incarnation
            && self.hello.lineage.as_ref().is_some_and(|lineage| !is_here(lineage))
    }

    /// The same of a node that has no disk.
    fn forgetful(mut self, node: NodeId) -> Self {
        if self.is_restored(node) {
            (self.hello.lineage, self.hello.prefix) = (None, 0);
        }
        self.hello.since = self.incarnation;
        self
    }

    /// What it says of groups that are not durable.
    fn of_memory(self) -> Self {
        Self { hello: self.hello.of_memory(), ..self }
    }
}

fn living(statements: &Statements) -> Statements {
    statements.iter().map(|(node, s)| (*node, s.clone().forgetful(*node))).collect()
}

/// Whether anybody has kept its memory.
fn lives(said: &Statements) -> bool {
    said.iter().any(|(node, s)| s.hello.lineage.is_some() && !s.is_restored(*node))
}

/// Decides for a view whose nodes have all spoken: for durable groups, and for others.
pub(crate) fn decide_all(nodes: NodeSet, quorum: Quorum, said: Statements) -> Verdict {
    let memory_groups_are_detached =
        said.values().any(|statement| statement.hello.memory_groups_are_detached());
    let (statements, by_disks) = heeded(nodes, quorum, &said);
    let decision = decide(nodes, quorum, &statements);
    let memory = match decision {
        Decision::Primary { basis: Basis::FirstStart | Basis::ColdStart, .. } => ForMemory::Same,
        Decision::Primary { .. } if canary!(DisksAreMemory) => ForMemory::Same,
        Decision::Primary { .. }
            if by_disks
                && !memory_groups_are_detached
                && said.len() == nodes.len()
                && !lives(&said) =>
        {
            ForMemory::Best
        }
        Decision::Primary { .. } if by_disks || memory_groups_are_detached => {
            match decide_by_memory(nodes, quorum, said) {
                Decision::Primary { current, basis } => ForMemory::From(current, basis),
                Decision::NotPrimary(_) => ForMemory::Waits,
            }
        }
        _ => ForMemory::Same,
    };
    Verdict { decision, memory, statements }
}

/// The statements by which a view is decided, with what disks have or without; and whether it is
/// disks that decide.
fn heeded(nodes: NodeSet, quorum: Quorum, said: &Statements) -> (Statements, bool) {
    if quorum.is_dynamic() || !said.iter().any(|(node, s)| s.is_restored(*node)) {
        return (said.clone(), false);
    }
    let living = living(said);
    let decision = decide(nodes, quorum, &living);
    if matches!(decision, Decision::Primary { basis: Basis::Continues, .. }) {
        return (living, false);
    }
    let forgot = living.iter().filter(|(_, s)| s.hello.lineage.is_none());
    let forgot: NodeSet = forgot.map(|(node, _)| *node).collect();
    let is_all = said.len() == nodes.len();
    if is_all || quorum.of(nodes, forgot) { (said.clone(), true) } else { (living, false) }
}

/// The same for groups that are not durable, where that is another question.
fn decide_by_memory(nodes: NodeSet, quorum: Quorum, said: Statements) -> Decision {
    let said: Statements = said.into_iter().map(|(node, s)| (node, s.of_memory())).collect();
    let living = living(&said);
    let decision = decide(nodes, quorum, &living);
    match decision {
        Decision::Primary { basis: Basis::Continues, .. } | Decision::NotPrimary(_) => decision,
        Decision::Primary { .. } if said.len() < nodes.len() => {
            Decision::NotPrimary(Blocked::MemoryAway)
        }
        Decision::Primary { .. } if lives(&said) => {
            let furthest = said.values().map(Progress::of).max().expect("a view has a node");
            Decision::Primary { current: most_shared(&said, furthest), basis: Basis::MemoryLost }
        }
        Decision::Primary { .. } => match decide(nodes, quorum, &said) {
            Decision::Primary { current, basis: Basis::Continues } => {
                Decision::Primary { current, basis: Basis::MemoryLost }
            }
            other => other,
        },
    }
}
