//! Walks through what can happen to small domains: views of any nodes, that end anywhere; nodes
//! that lose their memory; requests held by any nodes. Some walks are complete, some at random.
//!
//! What is checked: no component acknowledges anything once a later one was formed, and whoever is
//! said to be up to date has everything that was acknowledged.

extern crate std;
use super::super::dynamic::Known;
use super::super::*;
use super::chances;
use crate::hello::Record;
use alloc::collections::BTreeSet;
use quorba_base::policy::QuorumRule;
use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Clone, Hash)]
struct Host {
    incarnation: u64,
    record: Record,
    lineage: Option<Lineage>,
    /// Requests that it has applied.
    log: Vec<u8>,
    prefix: u64,
    /// The view that it is in now.
    view: u64,
}

#[derive(Clone, Hash)]
struct World {
    hosts: Vec<Host>,
    views: u64,
    /// The last component that was formed anywhere.
    formed: u64,
    acknowledged: Vec<u8>,
    requests: u8,
    /// The requests of each component.
    orders: BTreeMap<u64, Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// These nodes come into a view; if it may go on, these write the attempt down; if those are
    /// all, these form it.
    View { members: NodeSet, recorded: NodeSet, formed: NodeSet },
    /// In this node's view a request is ordered; these hold it, and all before it.
    Request { at: NodeId, held: NodeSet },
    /// Loses its memory.
    Restart(NodeId),
}

fn subsets(of: NodeSet) -> impl Iterator<Item = NodeSet> {
    (0..=of.bits()).map(NodeSet::from_bits).filter(move |part| part.is_subset(of))
}

impl World {
    fn new(count: usize) -> Self {
        let host = Host {
            incarnation: 1,
            record: Record::default(),
            lineage: None,
            log: Vec::new(),
            prefix: 0,
            view: 0,
        };
        Self {
            hosts: alloc::vec![host; count],
            views: 0,
            formed: 0,
            acknowledged: Vec::new(),
            requests: 0,
            orders: BTreeMap::new(),
        }
    }

    fn nodes(&self) -> NodeSet {
        NodeSet::first(self.hosts.len())
    }

    fn host(&mut self, node: NodeId) -> &mut Host {
        &mut self.hosts[usize::from(node.index())]
    }

    /// Everything that can happen next.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for members in subsets(self.nodes()).filter(|set| !set.is_empty()) {
            for part in subsets(members) {
                if part != members {
                    let formed = NodeSet::EMPTY;
                    steps.push(Step::View { members, recorded: part, formed });
                }
                steps.push(Step::View { members, recorded: members, formed: part });
            }
        }
        for at in self.nodes() {
            let view = self.hosts[usize::from(at.index())].view;
            let is_there = |node: &NodeId| {
                let host = &self.hosts[usize::from(node.index())];
                let formed = host.lineage.as_ref().map(|lineage| lineage.view.seq);
                host.view == view && formed == Some(view)
            };
            let there: NodeSet = self.nodes().iter().filter(is_there).collect();
            if there.lowest() == Some(at) {
                let held = subsets(there).filter(|held| held.contains(at));
                steps.extend(held.map(|held| Step::Request { at, held }));
            }
            steps.push(Step::Restart(at));
        }
        steps
    }

    fn take(&mut self, quorum: Quorum, step: Step) {
        match step {
            Step::Restart(node) => {
                let host = self.host(node);
                host.incarnation += 1;
                (host.lineage, host.prefix, host.view) = (None, 0, 0);
                host.log.clear();
            }
            Step::Request { at, held } => self.request(quorum, at, held),
            Step::View { members, recorded, formed } => {
                self.view(quorum, members, recorded, formed);
            }
        }
    }

    /// One more request is ordered in the view of `at`, and `held` get all that they lack.
    fn request(&mut self, quorum: Quorum, at: NodeId, held: NodeSet) {
        let lineage = self.host(at).lineage.clone().expect("only in a component");
        let view = lineage.view.seq;
        self.requests += 1;
        let order = self.orders.entry(view).or_default();
        order.push(self.requests);
        let order = order.clone();
        for node in held {
            let host = self.host(node);
            host.log.extend(&order[host.prefix as usize..]);
            host.prefix = order.len() as u64;
        }
        let holders_min = quorum.holders_min(self.hosts.len(), lineage.members.len());
        for (index, request) in (0..).zip(order) {
            let holds = |host: &&Host| {
                host.view == view && host.lineage.as_ref() == Some(&lineage) && host.prefix > index
            };
            let enough = self.hosts.iter().filter(holds).count() >= holders_min;
            if enough && !self.acknowledged.contains(&request) {
                assert_eq!(view, self.formed, "a former component acknowledges");
                self.acknowledged.push(request);
            }
        }
    }

    fn view(&mut self, quorum: Quorum, members: NodeSet, recorded: NodeSet, formed: NodeSet) {
        self.views += 1;
        let seq = self.views;
        let id = RingId { seq, representative: members.lowest().expect("not empty") };
        let mut statements = BTreeMap::new();
        for node in members {
            let host = self.host(node);
            host.view = seq;
            let mut hasher = DefaultHasher::new();
            host.log.hash(&mut hasher);
            let (lineage, prefix, branch) = (host.lineage.clone(), host.prefix, hasher.finish());
            let (record, since) = (host.record.clone(), host.incarnation);
            let hello = Hello {
                view: id,
                record,
                since,
                lineage,
                prefix,
                branch,
                memory_groups: None,
                catalog: crate::catalog::CatalogMark::default(),
            };
            statements.insert(node, Statement { incarnation: host.incarnation, hello });
        }
        let Decision::Primary { current, basis } = decide(self.nodes(), quorum, &statements) else {
            return;
        };
        assert!(current.is_subset(members) && !current.is_empty());
        let source = current.lowest().expect("not empty");
        let log = self.host(source).log.clone();
        if matches!(basis, Basis::Continues | Basis::FirstStart) {
            for request in &self.acknowledged {
                assert!(log.contains(request), "lost {request}: {current:?} {basis:?}");
            }
        } else {
            assert_eq!(members, self.nodes(), "loss is admitted only if no more can come");
            self.acknowledged.retain(|request| log.contains(request));
        }
        let base = last_remembered(&statements).map(|last| last.view);
        let boots = statements.iter().map(|(node, statement)| (*node, statement.incarnation));
        let lineage = Lineage { view: id, members: boots.collect() };
        if quorum.is_dynamic() {
            let known = Known::of(statements.values().map(|s| &s.hello));
            for node in recorded {
                let own = &statements[&node].hello;
                self.host(node).record = known.clone().with(own, lineage.clone());
            }
            if recorded != members {
                return;
            }
        }
        for node in formed {
            self.formed = seq;
            let host = self.host(node);
            host.record =
                Record { formed: Some(lineage.clone()), base, attempts: Vec::new(), former: None };
            host.lineage = Some(lineage.clone());
            host.log.clone_from(&log);
            host.prefix = 0;
        }
    }
}

const DYNAMIC: Quorum = Quorum { rule: QuorumRule::DynamicLinear, tie_breaker: None };

fn quorums() -> [Quorum; 4] {
    let tie_breaker = NodeId::new(1);
    let tied = Quorum { tie_breaker, ..Quorum::default() };
    [Quorum::default(), tied, DYNAMIC, Quorum { tie_breaker, ..DYNAMIC }]
}

/// Everything that can happen in `depth` steps; gives how many different worlds there are.
fn all_walks(quorum: Quorum, count: usize, depth: usize) -> usize {
    let mut worlds = alloc::vec![World::new(count)];
    let mut seen = BTreeSet::new();
    for _ in 0..depth {
        let mut next = Vec::new();
        for world in worlds {
            for step in world.steps() {
                let mut world = world.clone();
                world.take(quorum, step);
                let mut hasher = DefaultHasher::new();
                world.hash(&mut hasher);
                if seen.insert(hasher.finish()) {
                    next.push(world);
                }
            }
        }
        worlds = next;
    }
    seen.len()
}

#[test]
fn all_walks_of_three_and_four_nodes() {
    for quorum in quorums() {
        let worlds = all_walks(quorum, 3, 3) + all_walks(quorum, 4, 2);
        std::println!("{quorum:?}: {worlds} worlds");
        assert!(worlds > 3_000, "{worlds}");
    }
}

fn random_walks(quorum: Quorum, count: usize, walks: u64) -> usize {
    let mut acknowledged = 0;
    for seed in 0..walks {
        let mut random = chances(seed);
        let mut world = World::new(count);
        let mut taken = Vec::new();
        for _ in 0..40 {
            let all = world.nodes();
            let mut some = |of: NodeSet| {
                let part =
                    if random(2) == 0 { of } else { NodeSet::from_bits(random(1 << count) as u64) };
                (part.intersection(of), random(10))
            };
            let (members, kind) = some(all);
            let step = match kind {
                0 => Step::Restart(members.lowest().unwrap_or(NodeId::new(0).expect("in range"))),
                1..5 => {
                    let steps = world.steps();
                    let is_request = |step: &&Step| matches!(step, Step::Request { .. });
                    let requests: Vec<_> = steps.iter().filter(is_request).collect();
                    let Some(step) = requests.get(some(all).1 % requests.len().max(1)) else {
                        continue;
                    };
                    **step
                }
                _ if members.is_empty() => continue,
                _ => {
                    let recorded = some(members).0;
                    let formed = if recorded == members { some(members).0 } else { NodeSet::EMPTY };
                    Step::View { members, recorded, formed }
                }
            };
            taken.push(step);
            let result = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                world.take(quorum, step);
            }));
            assert!(result.is_ok(), "{quorum:?} of {count}, walk {seed}: {taken:#?}");
        }
        acknowledged += world.acknowledged.len();
    }
    acknowledged
}

#[test]
fn long_walks_at_random() {
    for quorum in quorums() {
        for count in 2..=6 {
            let acknowledged = random_walks(quorum, count, 800);
            assert!(acknowledged > 200, "{quorum:?} of {count}: {acknowledged}");
        }
    }
}
