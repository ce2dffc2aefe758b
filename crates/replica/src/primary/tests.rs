//! Small components, one claim each.

mod memory_groups;
mod walk;

use super::*;
use crate::hello::{Lineage, Record};
use quorba_base::policy::QuorumRule;

/// Numbers below a bound, by chance, and the same ones for each seed (xorshift).
fn chances(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % bound
    }
}

fn node(index: u8) -> NodeId {
    NodeId::new(index).unwrap()
}

fn view(seq: u64) -> RingId {
    RingId { seq, representative: node(0) }
}

/// Builds statements: (node, boot, last component, prefix, branch).
struct World {
    components: BTreeMap<u64, Vec<(NodeId, u64)>>,
    statements: BTreeMap<NodeId, Statement>,
    quorum: Quorum,
}

impl World {
    fn new() -> Self {
        Self { components: BTreeMap::new(), statements: BTreeMap::new(), quorum: Quorum::default() }
    }

    fn component(mut self, seq: u64, members: &[(u8, u64)]) -> Self {
        let members = members.iter().map(|(n, boot)| (node(*n), *boot)).collect();
        self.components.insert(seq, members);
        self
    }

    fn says(mut self, n: u8, boot: u64, last: Option<u64>, prefix: u64, branch: u64) -> Self {
        let lineage =
            last.map(|seq| Lineage { view: view(seq), members: self.components[&seq].clone() });
        let record =
            Record { formed: lineage.clone(), base: None, attempts: Vec::new(), former: None };
        let hello = Hello {
            view: view(99),
            record,
            since: boot,
            lineage,
            prefix,
            branch,
            memory_groups: None,
            catalog: crate::catalog::CatalogMark::default(),
        };
        self.statements.insert(node(n), Statement { incarnation: boot, hello });
        self
    }

    fn restarted(self, n: u8, boot: u64) -> Self {
        self.restarted_after(n, boot, 1)
    }

    /// Back without its memory, but its disk knows of a component.
    fn restarted_after(mut self, n: u8, boot: u64, seq: u64) -> Self {
        self = self.says(n, boot, None, 0, 0);
        self.statements.get_mut(&node(n)).unwrap().hello.record.formed = Some(Lineage {
            view: view(seq),
            members: self.components.get(&seq).cloned().unwrap_or_default(),
        });
        self
    }

    fn decide(&self, nodes: usize) -> Decision {
        decide(NodeSet::first(nodes), self.quorum, &self.statements)
    }
}

fn primary(nodes: &[u8], basis: Basis) -> Decision {
    Decision::Primary { current: nodes.iter().map(|n| node(*n)).collect(), basis }
}

#[test]
fn a_minority_never_goes_on() {
    let world = World::new().component(1, &[(0, 1), (1, 1), (2, 1)]).says(0, 1, Some(1), 9, 9);
    assert_eq!(world.decide(3), Decision::NotPrimary(Blocked::NoMajority));
}

#[test]
fn survivors_of_one_crash_go_on() {
    let world = World::new()
        .component(1, &[(0, 1), (1, 1), (2, 1)])
        .says(0, 1, Some(1), 9, 7)
        .says(1, 1, Some(1), 9, 7);
    assert_eq!(world.decide(3), primary(&[0, 1], Basis::Continues));
}

#[test]
fn a_restarted_node_is_not_up_to_date() {
    let world = World::new()
        .component(1, &[(0, 1), (1, 1)])
        .says(0, 1, Some(1), 9, 7)
        .says(1, 1, Some(1), 9, 7)
        .restarted(2, 5);
    assert_eq!(world.decide(3), primary(&[0, 1], Basis::Continues));
}

#[test]
fn one_survivor_of_a_two_node_component_holds_everything() {
    // Both had to hold what was acknowledged, so one of them is enough.
    let world =
        World::new().component(2, &[(0, 1), (1, 1)]).says(0, 1, Some(2), 9, 7).restarted(1, 8);
    assert_eq!(world.decide(3), primary(&[0], Basis::Continues));
}

#[test]
fn a_component_that_only_a_disk_knows_of_is_waited_for() {
    // Nodes 0 and 2 went on without 1, which stood still; then 0 restarted, and 2 is away.
    let world = World::new()
        .component(2, &[(0, 1), (1, 1)])
        .component(3, &[(0, 1), (2, 5)])
        .says(1, 1, Some(2), 9, 7)
        .restarted_after(0, 8, 3);
    assert_eq!(world.decide(3), Decision::NotPrimary(Blocked::MemoryAway));
    let world = world.says(2, 5, Some(3), 2, 6);
    assert_eq!(world.decide(3), primary(&[2], Basis::Continues));
}

/// Domain seed 12088: it was formed by the node that ended at that moment, not by the other.
#[test]
fn a_component_that_one_of_two_never_formed_acknowledged_nothing_and_is_not_waited_for() {
    let mut world = World::new()
        .component(2, &[(0, 1), (1, 1)])
        .component(4, &[(0, 1), (1, 1)])
        .says(0, 1, Some(2), 9, 7)
        .restarted_after(1, 8, 4);
    let record = |world: &mut World, base| {
        let statement = world.statements.get_mut(&node(1)).unwrap();
        statement.hello.record.base = Some(view(base));
    };
    record(&mut world, 2);
    assert_eq!(world.decide(3), primary(&[0], Basis::Continues));
    // It went on from one that nobody here remembers, and that may have acknowledged something.
    record(&mut world, 3);
    assert_eq!(world.decide(3), Decision::NotPrimary(Blocked::MemoryAway));
}

#[test]
fn a_component_that_was_too_small_without_those_who_remember_acknowledged_nothing() {
    // Node 0 decided on component 3, whose other member remembers only 2: it never began.
    let world = World::new()
        .component(2, &[(0, 1), (1, 1), (2, 5)])
        .says(1, 1, Some(2), 9, 7)
        .says(2, 5, Some(2), 9, 7)
        .restarted_after(0, 8, 3);
    assert_eq!(world.decide(3), primary(&[1, 2], Basis::Continues));
}

#[test]
fn one_survivor_of_three_may_lack_what_the_other_two_held() {
    let world = World::new()
        .component(1, &[(0, 1), (1, 1), (2, 1)])
        .says(0, 1, Some(1), 9, 7)
        .restarted(1, 8);
    assert_eq!(world.decide(3), Decision::NotPrimary(Blocked::MemoryAway));
}

#[test]
fn with_every_node_here_the_best_there_is_goes_on_and_says_so() {
    let world = World::new()
        .component(1, &[(0, 1), (1, 1), (2, 1)])
        .says(0, 1, Some(1), 9, 7)
        .restarted(1, 8)
        .restarted(2, 8);
    assert_eq!(world.decide(3), primary(&[0], Basis::MemoryLost));
}

#[test]
fn a_node_that_was_cut_off_is_behind_the_component_that_went_on() {
    let world = World::new()
        .component(1, &[(0, 1), (1, 1), (2, 1)])
        .component(2, &[(0, 1), (1, 1)])
        .says(1, 1, Some(2), 3, 5)
        .says(2, 1, Some(1), 50, 6);
    assert_eq!(world.decide(3), primary(&[1], Basis::Continues));
}

#[test]
fn one_message_too_many_at_one_node_does_not_make_the_others_stale() {
    // Node 3 alone applied a message that nobody else holds: it cannot have been acknowledged.
    let all = [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)];
    let mut world = World::new().component(1, &all).says(3, 1, Some(1), 10, 8);
    for n in [0, 1, 2, 4] {
        world = world.says(n, 1, Some(1), 9, 7);
    }
    assert_eq!(world.decide(5), primary(&[0, 1, 2, 4], Basis::Continues));
}

#[test]
fn the_furthest_wins_when_only_it_is_sure_to_hold_everything() {
    // Nodes 0 and 1 are gone and may have held, with node 2, what 3 and 4 lack.
    let all = [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)];
    let world = World::new()
        .component(1, &all)
        .says(2, 1, Some(1), 10, 8)
        .says(3, 1, Some(1), 9, 7)
        .says(4, 1, Some(1), 9, 7);
    assert_eq!(world.decide(5), primary(&[2], Basis::Continues));
}

#[test]
fn a_first_start_needs_a_majority_that_never_ran() {
    let world = World::new().says(0, 1, None, 0, 0).says(1, 1, None, 0, 0);
    assert_eq!(world.decide(3), primary(&[0, 1], Basis::FirstStart));
    let world = World::new().says(0, 1, None, 0, 0).restarted(1, 4);
    assert_eq!(world.decide(3), Decision::NotPrimary(Blocked::MemoryAway));
}

#[test]
fn a_cold_start_of_a_used_domain_waits_for_every_node() {
    let world = World::new().restarted(0, 4).restarted(1, 4);
    assert_eq!(world.decide(3), Decision::NotPrimary(Blocked::MemoryAway));
    let world = world.restarted(2, 4);
    assert_eq!(world.decide(3), primary(&[0, 1, 2], Basis::ColdStart));
}

/// Found by `walk.rs`: 1 was alone up to date in component 2, and two who were behind outvoted it.
#[test]
fn who_was_behind_in_the_last_component_is_not_up_to_date() {
    let all = [(0, 1), (1, 1), (2, 1)];
    let world = World::new()
        .component(1, &all)
        .component(2, &all)
        .component(3, &all)
        .says(0, 1, Some(1), 4, 6)
        .says(1, 1, Some(3), 0, 7)
        .says(2, 1, Some(1), 4, 6);
    assert_eq!(world.decide(3), primary(&[1], Basis::Continues));
}

fn dynamic(tie_breaker: Option<u8>) -> World {
    let mut world = World::new();
    world.quorum.rule = QuorumRule::DynamicLinear;
    world.quorum.tie_breaker = tie_breaker.map(node);
    world
}

#[test]
fn the_dynamic_rule_counts_the_last_component() {
    let world = dynamic(None).component(2, &[(0, 1), (1, 1), (2, 1)]);
    let two = world.says(0, 1, Some(2), 9, 7).says(1, 1, Some(2), 9, 7);
    assert_eq!(two.decide(5), primary(&[0, 1], Basis::Continues), "two of the last three");
    let three = dynamic(None)
        .component(1, &[(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)])
        .component(2, &[(0, 1), (1, 1), (2, 1)])
        .says(2, 1, Some(2), 9, 7)
        .says(3, 1, Some(1), 9, 7)
        .says(4, 1, Some(1), 9, 7);
    let blocked = Decision::NotPrimary(Blocked::NoQuorum);
    assert_eq!(three.decide(5), blocked, "a majority of the domain, but one of the last three");
}

#[test]
fn of_two_halves_the_one_with_the_tie_breaker_goes_on() {
    let half = |n: u8, tie_breaker| {
        let world = dynamic(tie_breaker).component(3, &[(0, 1), (1, 1)]);
        world.says(n, 1, Some(3), 9, 7).decide(5)
    };
    let blocked = Decision::NotPrimary(Blocked::NoQuorum);
    assert_eq!(half(0, None), primary(&[0], Basis::Continues), "the lowest, if none is named");
    assert_eq!(half(1, None), blocked);
    assert_eq!(half(1, Some(1)), primary(&[1], Basis::Continues));
    assert_eq!(half(0, Some(1)), blocked);
    assert_eq!(half(0, Some(4)), primary(&[0], Basis::Continues), "it was not there");
}

#[test]
fn a_tie_breaker_lets_half_of_an_even_domain_go_on() {
    let half = |nodes: [u8; 2], tie_breaker| {
        let mut world = World::new().component(1, &[(0, 1), (1, 1), (2, 1), (3, 1)]);
        world.quorum.tie_breaker = tie_breaker;
        let [a, b] = nodes;
        world.says(a, 1, Some(1), 9, 7).says(b, 1, Some(1), 9, 7).decide(4)
    };
    let blocked = Decision::NotPrimary(Blocked::NoMajority);
    assert_eq!(half([0, 1], None), blocked);
    assert_eq!(half([0, 1], Some(node(1))), primary(&[0, 1], Basis::Continues));
    assert_eq!(half([2, 3], Some(node(1))), blocked);
}

#[test]
fn an_attempt_that_may_have_succeeded_elsewhere_is_waited_for() {
    let all = [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)];
    let mut world = dynamic(None)
        .component(1, &all)
        .component(2, &[(0, 1), (1, 1), (2, 1)])
        .says(2, 1, Some(1), 9, 7)
        .says(3, 1, Some(1), 9, 7)
        .says(4, 1, Some(1), 9, 7);
    assert_eq!(world.decide(5), primary(&[2, 3, 4], Basis::Continues));
    let attempt = Lineage { view: view(2), members: world.components[&2].clone() };
    world.statements.get_mut(&node(2)).unwrap().hello.record.attempts.push(attempt);
    assert_eq!(world.decide(5), Decision::NotPrimary(Blocked::NoQuorum));
}
