//! Whether two TypeCodes are of equivalent types (CORBA §4.11.1): the same repository ids where
//! both have them, else the same structure; names and aliases do not count.
//!
//! Invariant: it ends. A pair that is being compared already is taken as equal; types that are
//! nested deeper than their values may be are equivalent to nothing.

use alloc::collections::BTreeSet;

use super::graph::{Graph, Node};
use crate::limits::DEPTH_MAX;

/// Compares two types.
pub(super) fn equivalent(ours: &Graph<'_>, theirs: &Graph<'_>) -> bool {
    let mut comparison = Comparison { ours, theirs, seen: BTreeSet::new(), depth: 0 };
    comparison.nodes(ours.root(), theirs.root())
}

struct Comparison<'a> {
    ours: &'a Graph<'a>,
    theirs: &'a Graph<'a>,
    seen: BTreeSet<(u32, u32)>,
    depth: u32,
}

impl Comparison<'_> {
    fn nodes(&mut self, our: u32, their: u32) -> bool {
        if self.depth > 2 * DEPTH_MAX {
            return false;
        }
        self.depth += 1;
        let equal = self.compare(our, their);
        self.depth -= 1;
        equal
    }

    fn compare(&mut self, our: u32, their: u32) -> bool {
        let (our, their) = (self.ours.original(our), self.theirs.original(their));
        if !self.seen.insert((our, their)) {
            return true;
        }
        let (ours, theirs) = (self.ours, self.theirs);
        let (our, their) = (ours.node(our), theirs.node(their));
        if let (Some(id), Some(other)) = (id(our), id(their)) {
            return id == other && core::mem::discriminant(our) == core::mem::discriminant(their);
        }
        match (our, their) {
            (Node::Basic(kind), Node::Basic(other)) => kind == other,
            (Node::Text { wide, bound }, Node::Text { wide: other_wide, bound: other }) => {
                (wide, bound) == (other_wide, other)
            }
            (Node::Fixed { digits, scale }, Node::Fixed { digits: other, scale: other_scale }) => {
                (digits, scale) == (other, other_scale)
            }
            (Node::Object { .. }, Node::Object { .. }) => true,
            (
                Node::Struct { exception, members, .. },
                Node::Struct { exception: other_exception, members: others, .. },
            ) => exception == other_exception && self.all(members, others),
            (Node::Union { .. }, Node::Union { .. }) => self.unions(our, their),
            (Node::Enum { members, .. }, Node::Enum { members: others, .. }) => members == others,
            (Node::Sequence { items, bound }, Node::Sequence { items: others, bound: other }) => {
                bound == other && self.nodes(*items, *others)
            }
            (Node::Array { items, length }, Node::Array { items: others, length: other }) => {
                length == other && self.nodes(*items, *others)
            }
            (Node::Closed { kind, octets }, Node::Closed { kind: other, octets: others }) => {
                kind == other && octets == others
            }
            _ => false,
        }
    }

    fn all(&mut self, members: &[u32], others: &[u32]) -> bool {
        let pairs = || members.iter().zip(others);
        members.len() == others.len() && pairs().all(|(our, their)| self.nodes(*our, *their))
    }

    fn unions(&mut self, our: &Node<'_>, their: &Node<'_>) -> bool {
        let (
            Node::Union { discriminator, default, arms, .. },
            Node::Union { discriminator: other, default: other_default, arms: others, .. },
        ) = (our, their)
        else {
            return false;
        };
        default == other_default
            && arms.len() == others.len()
            && self.nodes(*discriminator, *other)
            && arms
                .iter()
                .zip(others)
                .all(|(arm, other)| arm.label == other.label && self.nodes(arm.node, other.node))
    }
}

/// A repository id that says something.
fn id<'a>(node: &Node<'a>) -> Option<&'a str> {
    match node {
        Node::Object { id }
        | Node::Struct { id, .. }
        | Node::Union { id, .. }
        | Node::Enum { id, .. }
            if !id.is_empty() =>
        {
            Some(id)
        }
        _ => None,
    }
}
