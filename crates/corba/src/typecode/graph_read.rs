//! Reads a [`Graph`] out of a TypeCode's octets.
//!
//! Invariants: it ends, for every node takes octets of its own; an indirection leads to a TypeCode
//! that stands before it in the same octets, and copies nothing: a few octets cannot say a type
//! that takes forever to go through.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quorba_giop::cdr::Reader;
use quorba_giop::{Endian, Fault, MessageError};

use super::graph::{Arm, Graph, Node};
use super::{INDIRECTION, Kind};
use crate::limits::DEPTH_MAX;

/// Reads the TypeCode that `octets` are, without names: they count for nothing but people.
pub(super) fn read(octets: &[u8], endian: Endian) -> Result<Graph<'_>, MessageError> {
    whole(octets, endian, None)
}

/// Reads it with the names of members.
pub(super) fn read_named(octets: &[u8], endian: Endian) -> Result<Graph<'_>, MessageError> {
    whole(octets, endian, Some(BTreeMap::new()))
}

type Names<'a> = BTreeMap<u32, Vec<&'a str>>;

fn whole<'a>(
    octets: &'a [u8],
    endian: Endian,
    names: Option<Names<'a>>,
) -> Result<Graph<'a>, MessageError> {
    let mut parser = Parser { nodes: Vec::new(), places: Vec::new(), names };
    let mut place = Place { reader: Reader::new(octets, endian), base: 0, depth: 0 };
    parser.type_code(&mut place)?;
    Ok(Graph { nodes: parser.nodes, names: parser.names.unwrap_or_default() })
}

struct Parser<'a> {
    nodes: Vec<Node<'a>>,
    /// If they are wanted.
    names: Option<Names<'a>>,
    /// Where each node's kind stands; in rising order, as they are read in it.
    places: Vec<usize>,
}

/// A position, in one encapsulation of many.
struct Place<'a> {
    reader: Reader<'a>,
    /// Where the encapsulation begins in all octets.
    base: usize,
    depth: u32,
}

impl<'a> Place<'a> {
    fn error(&self, what: &'static str, fault: Fault) -> MessageError {
        MessageError { what, offset: self.base + self.reader.position(), fault }
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, MessageError> {
        let error = self.error(what, Fault::Value);
        let octets = self.reader.read_string(usize::MAX - 1, what)?;
        core::str::from_utf8(octets).map_err(|_| error)
    }

    /// The encapsulation of a kind's parameters.
    fn inside(&mut self) -> Result<Self, MessageError> {
        let octets = self.reader.read_octets(usize::MAX, "TypeCode")?;
        let base = self.base + self.reader.position() - octets.len();
        let reader = Reader::encapsulation(octets)?;
        Ok(Place { reader, base, depth: self.depth + 1 })
    }
}

impl<'a> Parser<'a> {
    /// Reads a TypeCode; its number.
    fn type_code(&mut self, place: &mut Place<'a>) -> Result<u32, MessageError> {
        if place.depth > DEPTH_MAX {
            return Err(place.error("TypeCode", Fault::OverLimit));
        }
        place.reader.align(4);
        let at = place.base + place.reader.position();
        let error = place.error("TypeCode", Fault::Value);
        let number = place.reader.read_u32("TypeCode")?;
        if number == INDIRECTION {
            return self.indirection(place);
        }
        let kind = Kind::from_number(number).ok_or(error)?;
        let node = u32::try_from(self.nodes.len()).map_err(|_| error)?;
        self.nodes.push(Node::Unread);
        self.places.push(at);
        let read = self.parameters(node, kind, place)?;
        if let Some(there) = self.nodes.get_mut(node as usize) {
            *there = read;
        }
        Ok(node)
    }

    fn indirection(&self, place: &mut Place<'a>) -> Result<u32, MessageError> {
        place.reader.align(4);
        let from = place.base + place.reader.position();
        let error = place.error("indirection", Fault::Value);
        let distance = place.reader.read_i32("indirection")? as isize;
        let to = from.checked_add_signed(distance).ok_or(error)?;
        let node = self.places.binary_search(&to).map_err(|_| error)?;
        u32::try_from(node).map_err(|_| error)
    }

    /// The name of a member of `node`.
    fn name(&mut self, node: u32, place: &mut Place<'a>) -> Result<(), MessageError> {
        let name = place.text("name")?;
        if let Some(names) = &mut self.names {
            names.entry(node).or_default().push(name);
        }
        Ok(())
    }

    fn parameters(
        &mut self,
        node: u32,
        kind: Kind,
        place: &mut Place<'a>,
    ) -> Result<Node<'a>, MessageError> {
        Ok(match kind {
            Kind::String | Kind::WString => {
                let bound = place.reader.read_u32("bound")?;
                Node::Text { wide: kind == Kind::WString, bound }
            }
            Kind::Fixed => {
                let digits = place.reader.read_u16("digits")?;
                Node::Fixed { digits, scale: place.reader.read_i16("scale")? }
            }
            Kind::ObjRef => {
                let mut inside = place.inside()?;
                let id = inside.text("repository id")?;
                inside.text("name")?;
                Node::Object { id }
            }
            Kind::Struct | Kind::Except => self.structure(node, kind, &mut place.inside()?)?,
            Kind::Union => self.union(node, &mut place.inside()?)?,
            Kind::Enum => {
                let mut inside = place.inside()?;
                let id = inside.text("repository id")?;
                inside.text("name")?;
                let count = inside.reader.read_count(4, usize::MAX, "members")?;
                for _ in 0..count {
                    self.name(node, &mut inside)?;
                }
                Node::Enum { id, members: u32::try_from(count).unwrap_or(u32::MAX) }
            }
            Kind::Sequence | Kind::Array => {
                let mut inside = place.inside()?;
                let items = self.type_code(&mut inside)?;
                let number = inside.reader.read_u32("bound")?;
                if kind == Kind::Array {
                    Node::Array { items, length: number }
                } else {
                    Node::Sequence { items, bound: number }
                }
            }
            Kind::Alias => {
                let mut inside = place.inside()?;
                let id = inside.text("repository id")?;
                inside.text("name")?;
                Node::Alias { id, original: self.type_code(&mut inside)? }
            }
            _ if kind.form() == super::Form::Bare => Node::Basic(kind),
            _ => Node::Closed { kind, octets: place.reader.read_octets(usize::MAX, "TypeCode")? },
        })
    }

    fn structure(
        &mut self,
        node: u32,
        kind: Kind,
        place: &mut Place<'a>,
    ) -> Result<Node<'a>, MessageError> {
        let id = place.text("repository id")?;
        place.text("name")?;
        // A name, which has a length, and a kind.
        let count = place.reader.read_count(8, usize::MAX, "members")?;
        let mut members = Vec::with_capacity(count);
        for _ in 0..count {
            self.name(node, place)?;
            members.push(self.type_code(place)?);
        }
        Ok(Node::Struct { id, exception: kind == Kind::Except, members })
    }

    fn union(&mut self, node: u32, place: &mut Place<'a>) -> Result<Node<'a>, MessageError> {
        let id = place.text("repository id")?;
        place.text("name")?;
        let discriminator = self.type_code(place)?;
        let error = place.error("discriminator", Fault::Value);
        let nodes = core::mem::take(&mut self.nodes);
        let graph = Graph { nodes, names: BTreeMap::new() };
        let label_bytes = graph.label_bytes(discriminator);
        let kind = match graph.node(graph.original(discriminator)) {
            Node::Basic(kind) => *kind,
            _ => Kind::ULong,
        };
        self.nodes = graph.nodes;
        label_bytes.ok_or(error)?;
        let default = u32::try_from(place.reader.read_i32("default")?).ok();
        let count = place.reader.read_count(9, usize::MAX, "members")?;
        if default.is_some_and(|default| default as usize >= count) {
            return Err(place.error("default", Fault::Value));
        }
        let mut arms = Vec::with_capacity(count);
        for index in 0..count {
            let label = if default.is_some_and(|default| default as usize == index) {
                place.reader.read_u8("label")?.into()
            } else {
                read_label(kind, &mut place.reader)?
            };
            self.name(node, place)?;
            arms.push(Arm { label, node: self.type_code(place)? });
        }
        Ok(Node::Union { id, discriminator, default, arms })
    }
}

/// Reads a value of a discriminator's kind; an enum is a number, too.
pub(crate) fn read_label(kind: Kind, reader: &mut Reader<'_>) -> Result<i64, MessageError> {
    Ok(match kind {
        Kind::Boolean => reader.read_bool("label")?.into(),
        Kind::Char => reader.read_u8("label")?.into(),
        Kind::Short => reader.read_i16("label")?.into(),
        Kind::UShort => reader.read_u16("label")?.into(),
        Kind::Long => reader.read_i32("label")?.into(),
        Kind::LongLong => reader.read_i64("label")?,
        Kind::ULongLong => reader.read_u64("label")?.cast_signed(),
        _ => reader.read_u32("label")?.into(),
    })
}
