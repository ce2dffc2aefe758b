//! Nodes, and what each sees of the others: the news that a member's process tells.
//!
//! What it is not: a ring. Invariants: what nodes see of one event has one name; each sees things
//! in their order; a node that ends has no news afterwards.

use super::world::{Event, World};
use crate::ordered::Ordered;
use quorba_idl::quorba::NewsItem;

/// A node; the first ones have members.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) is_up: bool,
    boot: u64,
    pub(crate) news: Vec<NewsItem>,
    /// Nothing that it sees comes before that.
    next_us: u64,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) all: Vec<Node>,
    /// The number of the last view.
    view: u64,
    /// Ends of servers.
    ends: u64,
    /// What is on its way to them.
    pub(crate) on_the_way: usize,
}

impl Nodes {
    pub(crate) fn new(members: usize, others: usize) -> Self {
        let names = (0..members).map(|at| format!("n{at}"));
        let names = names.chain((0..others).map(|at| format!("m{at}")));
        let node = |name| Node { name, is_up: true, boot: 0, news: Vec::new(), next_us: 0 };
        Self { all: names.map(node).collect(), view: 4, ends: 0, on_the_way: 0 }
    }
}

impl World {
    /// A node sees something in a moment.
    fn see(&mut self, observer: usize, item: NewsItem) {
        // Nobody asks for the news of a node without a member.
        if observer >= self.members.len() || !self.nodes.all[observer].is_up {
            return;
        }
        let wait = self.group.rng.below(self.plan.news_us);
        let node = &mut self.nodes.all[observer];
        let at = node.next_us.max(self.group.now_us + wait);
        node.next_us = at + 1;
        self.nodes.on_the_way += 1;
        let boot = self.nodes.all[observer].boot;
        self.after(at - self.group.now_us, Event::News(observer, boot, item));
    }

    pub(crate) fn seen(&mut self, observer: usize, boot: u64, item: NewsItem) {
        self.nodes.on_the_way -= 1;
        let node = &mut self.nodes.all[observer];
        if node.is_up && node.boot == boot {
            node.news.push(item);
            self.drive(observer);
        }
    }

    fn item(&self, node: usize, is_up: bool) -> NewsItem {
        let name = self.nodes.all[node].name.clone();
        let incident = format!("{name} view {}", self.nodes.view);
        NewsItem {
            number: 0,
            node: name,
            group: String::new(),
            is_up,
            type_id: String::new(),
            group_id: 0,
            incident,
            is_monitored: true,
        }
    }

    /// A node goes or comes, in the eyes of the others, who go or come in its own, if it has eyes.
    pub(crate) fn new_view(&mut self, node: usize, is_up: bool) {
        self.nodes.view += 4;
        for other in (0..self.nodes.all.len()).filter(|other| *other != node) {
            if self.nodes.all[other].is_up {
                self.see(other, self.item(node, is_up));
                self.see(node, self.item(other, is_up));
            }
        }
    }

    pub(crate) fn end_node(&mut self, node: usize) {
        let one = &mut self.nodes.all[node];
        (one.is_up, one.boot) = (false, one.boot + 1);
        one.news.clear();
        self.say(|| format!("node {node} has ended"));
        self.new_view(node, false);
    }

    pub(crate) fn begin_node(&mut self, node: usize) {
        self.nodes.all[node].is_up = true;
        self.say(|| format!("node {node} begins"));
        self.new_view(node, true);
    }

    /// A server of another group ends at a node, and begins anew. All nodes see it.
    pub(crate) fn end_server(&mut self, node: usize, group: u64) {
        if !self.nodes.all[node].is_up {
            return;
        }
        self.nodes.ends += 1;
        let name = self.nodes.all[node].name.clone();
        let mut item = NewsItem {
            number: 0,
            incident: format!("{name} {group:016x} {}", self.nodes.ends),
            node: name,
            group: format!("g{group}"),
            is_up: false,
            type_id: super::fault::type_of(group),
            group_id: group,
            is_monitored: true,
        };
        for is_up in [false, true] {
            item.is_up = is_up;
            (0..self.nodes.all.len()).for_each(|observer| self.see(observer, item.clone()));
        }
    }
}
