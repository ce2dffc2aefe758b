//! Random walks through what can happen to a domain with logs and two groups: one that is durable,
//! and one that lives in memory.
//!
//! What is checked: whoever is said to be up to date for a group has everything that the group
//! acknowledged; what lived in memory is given up only where all nodes are present; and requests of
//! a former component are acknowledged by nobody.

extern crate std;
use super::super::disks::{ForMemory, decide_all};
use super::super::*;
use super::chances;
use crate::hello::{Former, MemoryPosition, Record};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A place in what a node knows.
#[derive(Clone, Default)]
struct Position {
    lineage: Option<Lineage>,
    prefix: u64,
    /// Requests of the durable group, and of the other one.
    kept: Vec<u16>,
    memory: Vec<u16>,
    /// Where the one that lives in memory stands, if it waits.
    memory_groups: Option<MemoryPosition>,
}

impl Position {
    fn branch(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.kept, self.memory_groups.is_none().then_some(&self.memory)).hash(&mut hasher);
        hasher.finish()
    }
}

#[derive(Clone)]
struct Host {
    incarnation: u64,
    since: u64,
    record: Record,
    now: Position,
    disk: Position,
    view: u64,
}

struct World {
    hosts: Vec<Host>,
    views: u64,
    requests: u16,
    /// By component: its requests, and whether they are of the durable group.
    orders: BTreeMap<u64, Vec<(u16, bool)>>,
    /// The last component that was formed, and the last in which the group in memory took part.
    formed: (u64, u64),
    acknowledged: (Vec<u16>, Vec<u16>),
    waited: usize,
    moved: usize,
}

impl World {
    fn new(count: usize) -> Self {
        let host = Host {
            incarnation: 1,
            since: 1,
            record: Record::default(),
            now: Position::default(),
            disk: Position::default(),
            view: 0,
        };
        Self {
            hosts: alloc::vec![host; count],
            views: 0,
            requests: 0,
            orders: BTreeMap::new(),
            formed: (0, 0),
            acknowledged: (Vec::new(), Vec::new()),
            waited: 0,
            moved: 0,
        }
    }

    fn host(&mut self, node: NodeId) -> &mut Host {
        &mut self.hosts[usize::from(node.index())]
    }

    fn take(&mut self, quorum: Quorum, step: &Step) {
        match *step {
            Step::View(members, formed) => self.view(quorum, members, formed),
            Step::Request(at, held, durable) => self.request(quorum, at, held, durable),
            Step::Sync(node) => self.sync(quorum, node),
            Step::Restart(node) => self.restart(node),
        }
    }

    fn restart(&mut self, node: NodeId) {
        let host = self.host(node);
        host.incarnation += 1;
        host.now = host.disk.clone();
        if host.now.lineage.is_none() {
            host.since = host.incarnation;
        }
        host.view = 0;
    }

    /// In the component of `at` a request is ordered; `held` get all that they lack.
    fn request(&mut self, quorum: Quorum, at: NodeId, held: NodeSet, durable: bool) {
        let (view, now) = (self.host(at).view, self.host(at).now.clone());
        let Some(lineage) = now.lineage.filter(|lineage| lineage.view.seq == view) else { return };
        self.requests += 1;
        let order = self.orders.entry(view).or_default();
        order.push((self.requests, durable));
        let order = order.clone();
        for node in held.with(at) {
            let host = self.host(node);
            if host.view != view || host.now.lineage.as_ref() != Some(&lineage) {
                continue;
            }
            for (request, durable) in &order[host.now.prefix as usize..] {
                match (durable, &host.now.memory_groups) {
                    (true, _) => host.now.kept.push(*request),
                    (false, None) => host.now.memory.push(*request),
                    // It takes no part.
                    (false, Some(_)) => {}
                }
            }
            host.now.prefix = order.len() as u64;
        }
        self.acknowledge(quorum, &lineage);
    }

    fn sync(&mut self, quorum: Quorum, node: NodeId) {
        let host = self.host(node);
        host.disk = host.now.clone();
        if let Some(lineage) = host.now.lineage.clone() {
            self.acknowledge(quorum, &lineage);
        }
    }

    fn acknowledge(&mut self, quorum: Quorum, lineage: &Lineage) {
        let view = lineage.view.seq;
        let holders_min = quorum.holders_min(self.hosts.len(), lineage.members.len());
        let order = self.orders.get(&view).cloned().unwrap_or_default();
        for (index, (request, durable)) in (0..).zip(order) {
            let reaches = |at: &Position| {
                at.lineage.as_ref() == Some(lineage)
                    && at.prefix > index
                    && (durable || at.memory_groups.is_none())
            };
            let holds = |host: &&Host| {
                host.view == view && reaches(&host.now) && (!durable || reaches(&host.disk))
            };
            if self.hosts.iter().filter(holds).count() < holders_min {
                continue;
            }
            let (acknowledged, formed) = match durable {
                true => (&mut self.acknowledged.0, self.formed.0),
                false => (&mut self.acknowledged.1, self.formed.1),
            };
            if !acknowledged.contains(&request) {
                assert_eq!(view, formed, "a former component acknowledges");
                acknowledged.push(request);
            }
        }
    }

    fn say(&mut self, id: RingId, node: NodeId) -> Statement {
        let host = self.host(node);
        host.view = id.seq;
        let Position { lineage, prefix, memory_groups, .. } = host.now.clone();
        let (record, since, branch) = (host.record.clone(), host.since, host.now.branch());
        let hello = Hello {
            view: id,
            record,
            since,
            lineage,
            prefix,
            branch,
            memory_groups,
            catalog: crate::catalog::CatalogMark::default(),
        };
        Statement { incarnation: host.incarnation, hello }
    }

    /// These nodes come into a view, and these of them form it, if it may go on.
    fn view(&mut self, quorum: Quorum, members: NodeSet, formed: NodeSet) {
        self.views += 1;
        let seq = self.views;
        let id = RingId { seq, representative: members.lowest().expect("not empty") };
        let said: BTreeMap<_, _> = members.iter().map(|node| (node, self.say(id, node))).collect();
        let nodes = NodeSet::first(self.hosts.len());
        let boots = said.iter().map(|(node, statement)| (*node, statement.incarnation)).collect();
        let verdict = decide_all(nodes, quorum, said);
        let Decision::Primary { current, basis } = verdict.decision else { return };
        let lineage = Lineage { view: id, members: boots };
        let base = last_remembered(&verdict.statements).map(|last| last.view);
        let kept = self.hosts[lowest(current)].now.kept.clone();
        check(&mut self.acknowledged.0, &kept, (members, nodes), basis);
        let memory = match verdict.memory {
            ForMemory::Waits => None,
            ForMemory::Same => Some((lowest(current), basis)),
            ForMemory::Best => Some((lowest(current), Basis::MemoryLost)),
            ForMemory::From(current, basis) => Some((lowest(current), basis)),
        };
        self.waited += usize::from(memory.is_none());
        self.moved += usize::from(matches!(verdict.memory, ForMemory::From(..)));
        let memory = memory.map(|(source, basis)| (self.hosts[source].now.memory.clone(), basis));
        if let Some((memory, basis)) = &memory {
            check(&mut self.acknowledged.1, memory, (members, nodes), *basis);
        }
        for node in formed.intersection(members) {
            self.formed.0 = seq;
            let host = &mut self.hosts[usize::from(node.index())];
            let memory_groups = MemoryPosition {
                lineage: host.now.lineage.clone(),
                prefix: host.now.prefix,
                branch: host.now.branch(),
            };
            match &memory {
                Some((memory, _)) => {
                    self.formed.1 = seq;
                    (host.now.memory_groups, host.now.memory) = (None, memory.clone());
                }
                None => {
                    host.now.memory_groups.get_or_insert(memory_groups);
                }
            }
            let Record { formed, base: former_base, former, .. } = host.record.clone();
            let former = former.unwrap_or(Former { formed, base: former_base });
            let former = memory.is_none().then_some(former);
            let (formed, attempts) = (Some(lineage.clone()), Vec::new());
            host.record = Record { formed, base, attempts, former };
            (host.now.lineage, host.now.prefix) = (Some(lineage.clone()), 0);
            host.now.kept.clone_from(&kept);
        }
    }
}

fn lowest(nodes: NodeSet) -> usize {
    usize::from(nodes.lowest().expect("not empty").index())
}

fn check(
    acknowledged: &mut Vec<u16>,
    has: &[u16],
    (members, nodes): (NodeSet, NodeSet),
    basis: Basis,
) {
    if matches!(basis, Basis::Continues | Basis::FirstStart) {
        for request in acknowledged {
            assert!(has.contains(request), "lost {request}: {basis:?}");
        }
    } else {
        assert_eq!(members, nodes, "loss is admitted only if no more can come");
        acknowledged.retain(|request| has.contains(request));
    }
}

#[derive(Debug)]
#[allow(dead_code, reason = "shown when a walk fails")]
enum Step {
    View(NodeSet, NodeSet),
    Request(NodeId, NodeSet, bool),
    Sync(NodeId),
    Restart(NodeId),
}

fn walks(count: usize, walks: u64) -> (usize, usize, usize) {
    let quorum = Quorum::default();
    let (mut acknowledged, mut waited, mut moved) = (0, 0, 0);
    for seed in 0..walks {
        let mut random = chances(seed + 1);
        let mut world = World::new(count);
        let mut taken = Vec::new();
        for _ in 0..60 {
            let mut some = || match random(3) {
                0 => NodeSet::first(count),
                _ => NodeSet::from_bits(random(1 << count) as u64),
            };
            let (members, part) = (some(), some());
            let node = NodeId::new(random(count) as u8).expect("in range");
            let step = match random(10) {
                0 => Step::Restart(node),
                1..3 => Step::Sync(node),
                3..7 => Step::Request(node, part, random(2) == 0),
                _ if members.is_empty() => continue,
                _ => Step::View(members, part),
            };
            let result = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                world.take(quorum, &step);
            }));
            taken.push(step);
            assert!(result.is_ok(), "{count} nodes, walk {seed}: {taken:#?}");
        }
        acknowledged += world.acknowledged.0.len() + world.acknowledged.1.len();
        waited += world.waited;
        moved += world.moved;
    }
    (acknowledged, waited, moved)
}

#[test]
fn long_walks_with_logs_at_random() {
    for count in 2..=6 {
        let (acknowledged, waited, moved) = walks(count, 3_000);
        std::println!("{count} nodes: {acknowledged} acknowledged, {waited} {moved}");
        assert!(acknowledged > 200, "{count}: {acknowledged}");
        assert!(count == 2 || (waited > 10 && moved > 10), "{count}: {waited}, {moved}");
    }
}

fn set(nodes: &[u8]) -> NodeSet {
    nodes.iter().map(|index| NodeId::new(*index).expect("in range")).collect()
}

/// All of these form a view; then these write to their disks what they know.
fn form(world: &mut World, members: &[u8], synced: &[u8]) {
    let quorum = Quorum::default();
    world.take(quorum, &Step::View(set(members), set(members)));
    set(synced).iter().for_each(|node| world.take(quorum, &Step::Sync(node)));
}

fn restart(world: &mut World, nodes: &[u8]) {
    set(nodes).iter().for_each(|node| world.take(Quorum::default(), &Step::Restart(node)));
}

/// The walk is so rare at random that it stands here: in which component they took part last is
/// on disk before anybody acts in the next one, whether or not the log has it.
#[test]
fn where_they_took_part_last_is_known_without_the_log() {
    let mut world = World::new(5);
    form(&mut world, &[0, 2, 4], &[0, 2, 4]);
    form(&mut world, &[0, 3, 4], &[]);
    let at = NodeId::new(0).expect("in range");
    world.take(Quorum::default(), &Step::Request(at, set(&[0, 3, 4]), false));
    assert_eq!(world.acknowledged.1.len(), 1);
    restart(&mut world, &[0, 4]);
    form(&mut world, &[0, 1, 2, 4], &[]);
    assert_eq!(world.waited, 1, "node 3 has it in memory");
    restart(&mut world, &[0]);
    form(&mut world, &[0, 1, 2], &[]);
    assert_eq!(world.waited, 2, "and so it is known");
    form(&mut world, &[0, 1, 2, 3, 4], &[]);
    assert_eq!(world.hosts[1].now.memory.len(), 1);
}

/// And the log may say less than the record that is written before it.
#[test]
fn that_they_took_part_again_is_known_without_the_log() {
    let mut world = World::new(5);
    form(&mut world, &[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4]);
    form(&mut world, &[0, 1, 2], &[0, 1, 2]);
    restart(&mut world, &[1, 2, 3]);
    form(&mut world, &[1, 2, 3], &[1, 2, 3]);
    assert_eq!(world.waited, 1);
    let quorum = Quorum::default();
    world.take(quorum, &Step::View(set(&[0, 1, 2, 3]), set(&[1, 2, 3])));
    assert_eq!(world.moved, 1, "from node 0");
    let at = NodeId::new(1).expect("in range");
    world.take(quorum, &Step::Request(at, set(&[1, 2, 3]), false));
    assert_eq!(world.acknowledged.1.len(), 1);
    restart(&mut world, &[1, 2, 3]);
    form(&mut world, &[0, 1, 2, 3], &[]);
    assert_eq!(world.waited, 2, "node 0 has not got it, and a majority ended");
}
