//! What a group is read against: the rest of its domain, and the other groups.
//!
//! What it is not: a way to these. A group of the file and one that is created later are read by
//! the same code; what differs is who answers [`Known`].

use std::collections::{BTreeMap, BTreeSet};

use quorba_base::NodeId;

use super::group::GroupDraft;
use super::node::NodeDraft;
use super::outside::OutsideDraft;
use crate::domain::{Engine, Gateway, Node};
use crate::walk::Span;
use quorba_base::policy::{QuorumRule, Style};

/// What the groups that there are say to whoever reads one more, or one of them anew.
pub trait Known {
    /// Whether there is a group of this name, and if so, whether it is stateless.
    fn is_stateless(&self, name: &str) -> Option<bool>;
    /// Whether there is a server outside of this name.
    fn is_outside(&self, name: &str) -> bool;
    /// How many servers outside there are.
    fn outside_count(&self) -> usize;
    /// The group whose gateways listen on this port, before the nodes' offsets, with TLS or
    /// without.
    fn listener(&self, port: u16) -> Option<String>;
    /// A group that calls the one of this name.
    fn caller_of(&self, name: &str) -> Option<String>;
    /// How many groups call others, or servers outside, but for the one of this name.
    fn callers_beside(&self, name: &str) -> usize;
    /// How many groups there are.
    fn count(&self) -> usize;
    /// The group was found to be right before, beside all others and by what one node's file says.
    /// What files may say in different ways (`[gateway]`, `admin`) makes it neither right nor wrong
    /// now: all nodes must read it alike.
    fn is_judged(&self) -> bool {
        false
    }
    /// Some names of groups and servers outside, for who has written one wrong.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The rest of the domain.
pub(super) struct Scope<'a> {
    pub(super) nodes: &'a [NodeDraft],
    pub(super) gateway: Option<Gateway>,
    pub(super) engine: Engine,
    pub(super) quorum: QuorumRule,
    /// The longest state of a group.
    pub(super) state_bytes: u32,
    /// The nodes stand in the text that is read, so their places can be shown.
    pub(super) shows_nodes: bool,
}

impl Scope<'_> {
    /// The node of an id that was found here.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[usize::from(id.index())].node
    }
}

/// What was told already and is true of many groups.
#[derive(Default)]
pub(super) struct Told {
    /// These two nodes have no offset between them.
    pub(super) pairs: BTreeSet<(usize, usize)>,
    pub(super) callers: bool,
}

/// The groups of one file, of which ports are known as far as it was checked.
#[derive(Default)]
pub(super) struct InFile {
    stateless: BTreeMap<String, bool>,
    outside: BTreeSet<String>,
    callers: usize,
    pub(super) ports: BTreeMap<u16, (String, Span)>,
}

impl InFile {
    /// Those whose names are known.
    pub(super) fn of(drafts: &[GroupDraft], outside: &[OutsideDraft]) -> Self {
        let style = |draft: &GroupDraft| draft.group.style == Style::Stateless;
        let names = drafts.iter().map(|draft| (draft.group.name.clone(), style(draft)));
        let outside = outside.iter().map(|draft| draft.server.name.clone()).collect();
        Self { stateless: names.collect(), outside, ..Self::default() }
    }

    /// One more was checked.
    pub(super) fn add(&mut self, draft: &GroupDraft) {
        self.callers += usize::from(draft.calls.is_caller());
        for (port, span) in draft.listens() {
            let owner = || (draft.group.name.clone(), span.clone());
            self.ports.entry(port).or_insert_with(owner);
        }
    }
}

impl Known for InFile {
    fn is_stateless(&self, name: &str) -> Option<bool> {
        self.stateless.get(name).copied()
    }

    fn is_outside(&self, name: &str) -> bool {
        self.outside.contains(name)
    }

    fn outside_count(&self) -> usize {
        self.outside.len()
    }

    fn listener(&self, port: u16) -> Option<String> {
        self.ports.get(&port).map(|(name, _)| name.clone())
    }

    // In a file the caller is the one that is wrong.
    fn caller_of(&self, _: &str) -> Option<String> {
        None
    }

    fn callers_beside(&self, _: &str) -> usize {
        self.callers
    }

    fn count(&self) -> usize {
        self.stateless.len()
    }

    fn names(&self) -> Vec<String> {
        self.stateless.keys().chain(&self.outside).cloned().collect()
    }
}
