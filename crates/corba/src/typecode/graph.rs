//! What a TypeCode says, as nodes that name each other by number.
//!
//! Invariant: texts are not copied; a node costs little more than the octets that say it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Kind;

/// The types in one TypeCode.
#[derive(Debug)]
pub(crate) struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// What the members of structs, unions and enums are called, if they were asked for.
    pub(super) names: BTreeMap<u32, Vec<&'a str>>,
}

/// A member of a union.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    pub(crate) label: i64,
    pub(crate) node: u32,
}

/// A type.
#[derive(Debug)]
pub(crate) enum Node<'a> {
    /// Being read; a type that contains itself finds it so, and nobody afterwards.
    Unread,
    /// A number, a character, an any and whatever else has no parameters.
    Basic(Kind),
    /// `string` or `wstring`; a bound of 0 is none.
    Text { wide: bool, bound: u32 },
    /// Fixed point.
    Fixed { digits: u16, scale: i16 },
    /// A reference.
    Object { id: &'a str },
    /// A struct or an exception.
    Struct { id: &'a str, exception: bool, members: Vec<u32> },
    /// A union.
    Union { id: &'a str, discriminator: u32, default: Option<u32>, arms: Vec<Arm> },
    /// An enum, of so many members.
    Enum { id: &'a str, members: u32 },
    /// A sequence; a bound of 0 is none.
    Sequence { items: u32, bound: u32 },
    /// An array.
    Array { items: u32, length: u32 },
    /// A typedef.
    Alias { id: &'a str, original: u32 },
    /// A kind whose values are not read here.
    Closed { kind: Kind, octets: &'a [u8] },
}

impl<'a> Graph<'a> {
    /// The type itself.
    #[allow(clippy::unused_self, reason = "its number belongs to the graph")]
    pub(crate) const fn root(&self) -> u32 {
        0
    }

    /// A type by its number.
    pub(crate) fn node(&self, number: u32) -> &Node<'a> {
        self.nodes.get(number as usize).unwrap_or(&Node::Unread)
    }

    /// The type behind aliases.
    pub(crate) fn original(&self, number: u32) -> u32 {
        let mut number = number;
        for _ in 0..self.nodes.len() {
            match self.node(number) {
                Node::Alias { original, .. } => number = *original,
                _ => break,
            }
        }
        number
    }

    /// A type's repository id.
    pub(crate) fn id(&self, number: u32) -> Option<&'a str> {
        match self.node(number) {
            Node::Object { id }
            | Node::Struct { id, .. }
            | Node::Union { id, .. }
            | Node::Enum { id, .. }
            | Node::Alias { id, .. } => Some(id),
            _ => None,
        }
    }

    /// What a member of a struct, a union or an enum is called; nothing if names were not read.
    pub(crate) fn name(&self, number: u32, member: usize) -> &'a str {
        let names = self.names.get(&self.original(number));
        names.and_then(|names| names.get(member)).copied().unwrap_or_default()
    }

    /// How many octets a label of a union with this discriminator has.
    pub(crate) fn label_bytes(&self, discriminator: u32) -> Option<usize> {
        match self.node(self.original(discriminator)) {
            Node::Enum { .. } => Some(4),
            Node::Basic(Kind::Boolean | Kind::Char) => Some(1),
            Node::Basic(Kind::Short | Kind::UShort) => Some(2),
            Node::Basic(Kind::Long | Kind::ULong) => Some(4),
            Node::Basic(Kind::LongLong | Kind::ULongLong) => Some(8),
            _ => None,
        }
    }
}
