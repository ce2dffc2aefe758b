//! Groups over a model of CPG that splits, merges and loses processes at any moment.
//!
//! The model gives what CPG gives: messages of a component in one order, changes of the
//! membership in that order, and messages of an old ring that only one side of a split still got.

use bytes::Bytes;
use quorba_base::{NodeId, NodeSet};
use quorba_corosync::{Change, Gone, Group, GroupConfig, Output, Process};
use quorba_order::{GatherReason, LeaveReason, Output as Ordered, RingId, Ticket, View, ViewKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const NODES: u8 = 3;

/// A process and everything that it was told.
struct Member {
    node: NodeId,
    incarnation: u64,
    group: Group,
    /// What it has asked CPG to send.
    pending: VecDeque<Bytes>,
    component: usize,
    next_ticket: u64,
    persisted: u64,
    told: Vec<Ordered>,
}

/// CPG of three hosts.
struct Model {
    members: BTreeMap<Process, Member>,
    incarnations: u64,
    persisted: BTreeMap<NodeId, u64>,
    /// Every message that any boot of a node has delivered: (origin, boot, ticket) to nodes.
    holders: BTreeMap<(NodeId, u64, u64), BTreeSet<NodeId>>,
    random: u64,
    next_component: usize,
}

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("a small number")
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            members: BTreeMap::new(),
            incarnations: 0,
            persisted: BTreeMap::new(),
            holders: BTreeMap::new(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            next_component: 1,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % bound as u64).expect("below a usize")
    }

    fn component(&self, component: usize) -> Vec<Process> {
        let of = |(process, member): (&Process, &Member)| {
            (member.component == component).then_some(*process)
        };
        self.members.iter().filter_map(of).collect()
    }

    fn components(&self) -> Vec<usize> {
        let all: BTreeSet<usize> = self.members.values().map(|one| one.component).collect();
        all.into_iter().collect()
    }

    /// A node starts a process, in the component of `component` or alone.
    fn start(&mut self, index: u8, component: usize) {
        self.incarnations += 1;
        let me = node(index);
        let seq_min = self.persisted.get(&me).copied().unwrap_or(0);
        let incarnation = self.incarnations;
        let nodes = NodeSet::first(usize::from(NODES));
        let config = GroupConfig { me, nodes, incarnation, digest: 7, seq_min };
        let pid = u32::try_from(self.incarnations).expect("few boots");
        let process = Process { host: u32::from(index) + 1, pid };
        self.members.insert(
            process,
            Member {
                node: me,
                incarnation,
                group: Group::new(config),
                pending: VecDeque::new(),
                component,
                next_ticket: 1,
                persisted: seq_min,
                told: Vec::new(),
            },
        );
        self.announce(component, &[]);
    }

    /// Tells a component its membership.
    fn announce(&mut self, component: usize, gone: &[(Process, Gone)]) {
        let members = self.component(component);
        for process in &members {
            let change = Change { members: members.clone(), gone: gone.to_vec() };
            self.members.get_mut(process).expect("it is there").group.handle_change(change);
            self.drain(*process);
        }
    }

    fn drain(&mut self, process: Process) {
        let member = self.members.get_mut(&process).expect("it is there");
        while let Some(output) = member.group.poll() {
            match output {
                Output::Multicast(message) => member.pending.push_back(message),
                Output::Ordered(ordered) => {
                    if let Ordered::Persist { ring_seq } = ordered {
                        member.persisted = ring_seq;
                        self.persisted.insert(member.node, ring_seq);
                    }
                    if let Ordered::Deliver(delivery) = &ordered {
                        let key = (delivery.origin, delivery.incarnation, delivery.ticket.0);
                        self.holders.entry(key).or_default().insert(member.node);
                    }
                    if let Ordered::Held(ticket) = ordered {
                        let key = (member.node, member.incarnation, ticket.0);
                        let held = self.holders.get(&key).map_or(0, BTreeSet::len);
                        assert!(held >= 2, "{key:?} is said to be held, by {held}");
                    }
                    member.told.push(ordered);
                }
            }
        }
    }

    fn submit(&mut self, process: Process) {
        let member = self.members.get_mut(&process).expect("it is there");
        let ticket = Ticket(member.next_ticket);
        member.next_ticket += 1;
        let payload = format!("{}/{}/{}", member.node, member.incarnation, ticket.0);
        member.group.submit(ticket, payload.into());
        self.drain(process);
    }

    /// Orders one waiting message of `from`, and delivers it to `to`.
    fn deliver(&mut self, from: Process, to: &[Process]) -> bool {
        let pending = &mut self.members.get_mut(&from).expect("it is there").pending;
        let Some(message) = pending.pop_front() else { return false };
        for process in to {
            let group = &mut self.members.get_mut(process).expect("it is there").group;
            group.handle_message(from, message.clone());
            group.flush();
            self.drain(*process);
        }
        true
    }

    fn deliver_some(&mut self, component: usize, count: usize) {
        for _ in 0..count {
            let members = self.component(component);
            if members.is_empty() {
                return;
            }
            let from = members[self.below(members.len())];
            self.deliver(from, &members);
        }
    }

    /// `process` leaves its component for another, be it a new one.
    fn move_to(&mut self, process: Process, component: usize) {
        let old = self.members[&process].component;
        if old == component {
            return;
        }
        let rest: Vec<_> = self.component(old).into_iter().filter(|one| *one != process).collect();
        // The last messages of the old ring reach one side only.
        for _ in 0..self.below(3) {
            let alone = self.below(2) == 0;
            if alone {
                self.deliver(process, &[process]);
            } else if let Some(from) = rest.first().copied() {
                self.deliver(from, &rest);
            }
        }
        self.members.get_mut(&process).expect("it is there").component = self.next_component;
        self.next_component += 1;
        self.announce(old, &[(process, Gone::Host)]);
        let gone: Vec<_> = rest.iter().map(|one| (*one, Gone::Host)).collect();
        let own = self.members[&process].component;
        self.announce(own, &gone);
        if self.component(component).is_empty() {
            return;
        }
        let steps = self.below(8);
        self.deliver_some(own, steps);
        self.members.get_mut(&process).expect("it is there").component = component;
        self.announce(component, &[]);
    }

    fn kill(&mut self, process: Process) {
        let component = self.members[&process].component;
        let survivors: Vec<_> =
            self.component(component).into_iter().filter(|one| *one != process).collect();
        if self.below(2) == 0 {
            self.deliver(process, &survivors);
        }
        self.members.remove(&process);
        self.announce(component, &[(process, Gone::Ended)]);
    }

    /// Until nothing is under way.
    fn settle(&mut self) {
        for component in self.components() {
            loop {
                let members = self.component(component);
                let busy = |one: &&Process| !self.members[one].pending.is_empty();
                let Some(from) = members.iter().find(busy).copied() else { break };
                self.deliver(from, &members);
            }
        }
    }
}

fn regular(view: &View) -> bool {
    view.kind == ViewKind::Regular
}

/// What a process delivered between one regular view and the next.
type Epoch = (RingId, Vec<(NodeId, u64, u64)>, Option<View>);

fn epochs(told: &[Ordered]) -> Vec<Epoch> {
    let mut epochs: Vec<Epoch> = Vec::new();
    for one in told {
        match one {
            Ordered::View(view) if regular(view) => {
                if let Some((_, _, next)) = epochs.last_mut() {
                    *next = Some(view.clone());
                }
                epochs.push((view.ring, Vec::new(), None));
            }
            Ordered::Deliver(delivery) => {
                let (_, delivered, _) = epochs.last_mut().expect("nothing before the first view");
                delivered.push((delivery.origin, delivery.incarnation, delivery.ticket.0));
            }
            _ => {}
        }
    }
    epochs
}

/// Those who move together from one view to the next have delivered the same in the same order.
fn check_virtual_synchrony(all: &[(NodeId, Vec<Epoch>)]) {
    let mut views: BTreeMap<RingId, (NodeSet, Vec<(NodeId, u64)>)> = BTreeMap::new();
    for (_, epochs) in all {
        for (_, _, next) in epochs {
            let Some(view) = next else { continue };
            let one = (view.members, view.incarnations.clone());
            let known = views.entry(view.ring).or_insert_with(|| one.clone());
            assert_eq!(*known, one, "two views have the id {}", view.ring);
        }
    }
    for (first_node, first) in all {
        for (second_node, second) in all {
            for (ring, delivered, next) in first {
                for (other_ring, other_delivered, other_next) in second {
                    let (Some(next), Some(other_next)) = (next, other_next) else { continue };
                    let together = next.transitional.contains(*second_node)
                        && other_next.transitional.contains(*first_node);
                    if ring == other_ring && next.ring == other_next.ring && together {
                        assert_eq!(delivered, other_delivered, "in {ring}");
                    }
                }
            }
        }
    }
}

#[test]
fn any_history_keeps_extended_virtual_synchrony_and_says_held_only_of_what_is() {
    for seed in 0..2_000 {
        let mut model = Model::new(seed);
        let mut told: Vec<(NodeId, Vec<Epoch>)> = Vec::new();
        for index in 0..NODES {
            model.start(index, 0);
        }
        for _ in 0..120 {
            let processes: Vec<Process> = model.members.keys().copied().collect();
            let components = model.components();
            let component = components[model.below(components.len())];
            let process = processes[model.below(processes.len())];
            match model.below(20) {
                0..8 => model.submit(process),
                8..16 => {
                    let count = model.below(12);
                    model.deliver_some(component, count);
                }
                16..18 => model.move_to(process, component),
                18 => {
                    let fresh = model.next_component;
                    model.next_component += 1;
                    model.move_to(process, fresh);
                }
                _ => {
                    let member = &model.members[&process];
                    told.push((member.node, epochs(&member.told)));
                    let index = member.node.index();
                    model.kill(process);
                    let components = model.components();
                    let component = components.first().copied().unwrap_or(0);
                    model.start(index, component);
                }
            }
        }
        // Everything heals: one view of all, in which everything is held.
        for process in model.members.keys().copied().collect::<Vec<_>>() {
            model.move_to(process, 1_000_000);
            if model.component(1_000_000).is_empty() {
                model.members.get_mut(&process).expect("it is there").component = 1_000_000;
                model.announce(1_000_000, &[]);
            }
        }
        model.settle();
        let marks: Vec<Process> = model.members.keys().copied().collect();
        for process in &marks {
            model.submit(*process);
        }
        model.settle();
        for process in &marks {
            let member = &model.members[process];
            let last_held = member.told.iter().rev().find_map(|one| match one {
                Ordered::Held(ticket) => Some(ticket.0),
                _ => None,
            });
            assert_eq!(last_held, Some(member.next_ticket - 1), "seed {seed}: all is held");
            told.push((member.node, epochs(&member.told)));
        }
        check_virtual_synchrony(&told);
    }
}

#[test]
fn a_view_says_who_left_and_why() {
    let mut model = Model::new(1);
    (0..NODES).for_each(|index| model.start(index, 0));
    model.settle();
    let victim = *model.members.keys().next().expect("three of them");
    model.kill(victim);
    model.settle();
    let survivor = model.members.values().next().expect("two are left");
    let view = survivor.told.iter().rev().find_map(|one| match one {
        Ordered::View(view) if regular(view) => Some(view),
        _ => None,
    });
    let view = view.expect("a view");
    assert_eq!(view.members.len(), 2);
    assert_eq!(view.left, [(node(0), LeaveReason::ProcessLost)]);
    assert_eq!(view.reason, GatherReason::PeerLost(node(0)));
    assert_eq!(view.transitional, view.members);
}

#[test]
fn a_node_of_another_domain_file_is_refused_and_the_others_go_on() {
    let mut model = Model::new(1);
    (0..2).for_each(|index| model.start(index, 0));
    model.start(2, 0);
    let stranger = *model.members.keys().next_back().expect("three of them");
    let nodes = NodeSet::first(usize::from(NODES));
    let config = GroupConfig { me: node(2), nodes, incarnation: 3, digest: 8, seq_min: 0 };
    let member = model.members.get_mut(&stranger).expect("it is there");
    member.group = Group::new(config);
    member.pending.clear();
    model.announce(0, &[]);
    model.settle();
    let first = model.members.values().next().expect("three of them");
    let is_refused =
        |one: &Ordered| matches!(one, Ordered::Refused { node, .. } if *node == self::node(2));
    assert!(first.told.iter().any(is_refused));
    let last = first.told.iter().rev().find_map(|one| match one {
        Ordered::View(view) => Some(view.members.len()),
        _ => None,
    });
    assert_eq!(last, Some(2));
}
